/* models/kernel/work.h: FLOPs and bytes of each kernel, by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <assert.h>

#include "base/size.h"
#include "models/kernel/work.h"

/* m, n, k = 3, 5, 7 and twice each unless said otherwise; e = 4 bytes. */
static const struct {
    struct work_item item;
    double flops, bytes;
} rows[] = {
    /* 2 * 3 * 5 * 7 = 210 FLOPs; 21 + 35 + 15 = 71 elements */
    {{KERNEL_MATMUL_FORWARD, 2, 3, 5, 7}, 420, 568},
    {{KERNEL_MATMUL_INPUT, 2, 3, 5, 7}, 420, 568},
    {{KERNEL_MATMUL_WEIGHT, 2, 3, 5, 7}, 420, 568},
    /* 3 heads of 5 tokens, width 7: two products of 2 * 5 * 5 * 7 = 350, half of them causal:
     * 3 * 350 = 1050; q, k, v, out = 4 * 105 elements and 15 statistics: 435 * 4 bytes */
    {{KERNEL_ATTENTION_FORWARD, 2, 3, 5, 7}, 2100, 3480},
    {{KERNEL_ATTENTION_FULL_FORWARD, 2, 3, 5, 7}, 4200, 3480},
    /* four products; q, k, v, out, d out and three gradients: 8 * 105 + 15 = 855 */
    {{KERNEL_ATTENTION_BACKWARD, 2, 3, 5, 7}, 4200, 6840},
    {{KERNEL_ATTENTION_FULL_BACKWARD, 2, 3, 5, 7}, 8400, 6840},
    /* 15 elements in, 15 out; with the sum in front 30 in, 30 out */
    {{KERNEL_NORM_FORWARD, 2, 3, 5, 0}, 0, 240},
    {{KERNEL_NORM_FORWARD, 2, 3, 5, 1}, 0, 480},
    /* x, dy in, dx out; and dx in */
    {{KERNEL_NORM_BACKWARD, 2, 3, 5, 0}, 0, 360},
    {{KERNEL_NORM_BACKWARD, 2, 3, 5, 1}, 0, 480},
    {{KERNEL_GELU_FORWARD, 2, 3, 5, 0}, 0, 240},
    {{KERNEL_GELU_BACKWARD, 2, 3, 5, 0}, 0, 360},
    {{KERNEL_RESIDUAL, 2, 3, 5, 0}, 0, 360},
    {{KERNEL_BIAS_BACKWARD, 2, 3, 5, 0}, 0, 120},
    {{KERNEL_EMBED_FORWARD, 2, 3, 5, 0}, 0, 360},
    /* 3 * 15 + 7 rows of 5 = 80 elements */
    {{KERNEL_EMBED_BACKWARD, 2, 3, 5, 7}, 0, 640},
    {{KERNEL_LOSS, 2, 3, 5, 0}, 0, 240},
    /* p, g in, p out; p, m, v, g in, p, m, v out */
    {{KERNEL_SGD, 2, 11, 0, 0}, 0, 264},
    {{KERNEL_ADAMW, 2, 11, 0, 0}, 0, 616},
    /* p, m, g in, p, m out */
    {{KERNEL_MOMENTUM, 2, 11, 0, 0}, 0, 440},
    {{KERNEL_SQUARES, 2, 11, 0, 0}, 0, 88},
    {{KERNEL_FIXED, 2, 11, 0, 0}, 0, 0},
    {{KERNEL_RMS_NORM_FORWARD, 2, 3, 5, 1}, 0, 480},
    {{KERNEL_RMS_NORM_BACKWARD, 2, 3, 5, 1}, 0, 480},
    {{KERNEL_ROPE, 2, 3, 5, 0}, 0, 240},
    /* two in, one out; three in, two out */
    {{KERNEL_SWIGLU_FORWARD, 2, 3, 5, 0}, 0, 360},
    {{KERNEL_SWIGLU_BACKWARD, 2, 3, 5, 0}, 0, 600},
    {{KERNEL_GATHER, 2, 3, 5, 0}, 0, 240},
    /* 56 elements of two bytes and 15 of four */
    {{KERNEL_MATMUL_BF16_FORWARD, 2, 3, 5, 7}, 420, 344},
    {{KERNEL_MATMUL_BF16_INPUT, 2, 3, 5, 7}, 420, 344},
    {{KERNEL_MATMUL_BF16_WEIGHT, 2, 3, 5, 7}, 420, 344},
    {{KERNEL_ROUND, 2, 11, 0, 0}, 0, 132},
    /* g, p in and p out, of four bytes; m, v in and out, of two; and weights of two out */
    {{KERNEL_ADAMW_BF16, 2, 11, 0, 0}, 0, 440},
    {{KERNEL_MOMENTUM_BF16, 2, 11, 0, 0}, 0, 352},
    {{KERNEL_SGD_APART, 2, 11, 0, 0}, 0, 264},
    {{KERNEL_ADAMW_APART, 2, 11, 0, 0}, 0, 616},
    {{KERNEL_MOMENTUM_APART, 2, 11, 0, 0}, 0, 440},
    {{KERNEL_ADAMW_BF16_APART, 2, 11, 0, 0}, 0, 440},
    {{KERNEL_MOMENTUM_BF16_APART, 2, 11, 0, 0}, 0, 352},
    /* two products of 2 * 3 * 5 * 63; 3 * 63 / 9 = 21 in, 63 * 5 weights, 15 out: 351 elements */
    {{KERNEL_CONVOLUTION_FORWARD, 2, 3, 5, 63}, 3780, 2808},
    /* 3 * 7 in, 7 * 45 weights, 3 * 45 / 9 = 15 out */
    {{KERNEL_CONVOLUTION_INPUT, 2, 3, 45, 7}, 3780, 2808},
    /* 5 * 3 gradients, 3 * 63 / 9 = 21 in, 5 * 63 out */
    {{KERNEL_CONVOLUTION_WEIGHT, 2, 5, 63, 3}, 3780, 2808},
    {{KERNEL_CONVOLUTION_3X3_FORWARD, 2, 3, 5, 63}, 3780, 2808},
    {{KERNEL_CONVOLUTION_3X3_INPUT, 2, 3, 45, 7}, 3780, 2808},
    {{KERNEL_CONVOLUTION_3X3_WEIGHT, 2, 5, 63, 3}, 3780, 2808},
    {{KERNEL_BATCH_NORM_FORWARD, 2, 3, 5, 0}, 0, 360},
    {{KERNEL_BATCH_NORM_BACKWARD, 2, 3, 5, 0}, 0, 600},
    {{KERNEL_RELU_FORWARD, 2, 3, 5, 0}, 0, 240},
    {{KERNEL_RELU_BACKWARD, 2, 3, 5, 0}, 0, 360},
    {{KERNEL_POOL, 2, 3, 5, 0}, 0, 120},
    /* 71 elements of two bytes; gradients of weights are 15 words */
    {{KERNEL_MATMUL_HALF_FORWARD, 2, 3, 5, 7}, 420, 284},
    {{KERNEL_MATMUL_HALF_INPUT, 2, 3, 5, 7}, 420, 284},
    {{KERNEL_MATMUL_HALF_WEIGHT, 2, 3, 5, 7}, 420, 344},
    /* 420 or 840 elements of two bytes, 15 statistics of four */
    {{KERNEL_ATTENTION_HALF_FORWARD, 2, 3, 5, 7}, 2100, 1800},
    {{KERNEL_ATTENTION_HALF_BACKWARD, 2, 3, 5, 7}, 4200, 3480},
    {{KERNEL_ATTENTION_FULL_HALF_FORWARD, 2, 3, 5, 7}, 4200, 1800},
    {{KERNEL_ATTENTION_FULL_HALF_BACKWARD, 2, 3, 5, 7}, 8400, 3480},
    {{KERNEL_NORM_HALF_FORWARD, 2, 3, 5, 0}, 0, 120},
    {{KERNEL_NORM_HALF_BACKWARD, 2, 3, 5, 1}, 0, 240},
    {{KERNEL_RMS_NORM_HALF_FORWARD, 2, 3, 5, 1}, 0, 240},
    {{KERNEL_RMS_NORM_HALF_BACKWARD, 2, 3, 5, 0}, 0, 180},
    {{KERNEL_GELU_HALF_FORWARD, 2, 3, 5, 0}, 0, 120},
    {{KERNEL_GELU_HALF_BACKWARD, 2, 3, 5, 0}, 0, 180},
    {{KERNEL_SWIGLU_HALF_FORWARD, 2, 3, 5, 0}, 0, 180},
    {{KERNEL_SWIGLU_HALF_BACKWARD, 2, 3, 5, 0}, 0, 300},
    {{KERNEL_RESIDUAL_HALF, 2, 3, 5, 0}, 0, 180},
    {{KERNEL_BIAS_HALF_BACKWARD, 2, 3, 5, 0}, 0, 60},
    {{KERNEL_ROPE_HALF, 2, 3, 5, 0}, 0, 120},
    {{KERNEL_GATHER_HALF, 2, 3, 5, 0}, 0, 120},
    {{KERNEL_EMBED_HALF_FORWARD, 2, 3, 5, 0}, 0, 180},
    /* 15 elements of two bytes; 30 and 7 rows of 5 of four */
    {{KERNEL_EMBED_HALF_BACKWARD, 2, 3, 5, 7}, 0, 580},
    {{KERNEL_COLLECTIVE, 2, 0, 0, 0}, 0, 0},
    {{KERNEL_ADAMW, 2, 11, 1, 0}, 0, 660},
    /* two rows of half the size in, one out */
    {{KERNEL_EMBED_FORWARD, 2, 3, 5, 1}, 0, 240},
};

static void flops_and_bytes_by_hand(void **state)
{
    (void)state;
    static_assert(ARRAY_COUNT(rows) == KERNEL_COUNT + 4, "every kernel, four of them twice");
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        double flops = work_item_flops(&rows[i].item), bytes = work_item_bytes(&rows[i].item, 4);
        if (flops != rows[i].flops || bytes != rows[i].bytes)
            fail_msg("%s: %g FLOPs, %g bytes", kernel_names[rows[i].item.kernel], flops, bytes);
    }
}

static void half_precision_halves_all_but_fp32_state(void **state)
{
    (void)state;
    struct work_item matmul = {KERNEL_MATMUL_FORWARD, 1, 3, 5, 7};
    struct work_item adamw = {KERNEL_ADAMW, 1, 11, 0, 0};
    struct work_item attention = {KERNEL_ATTENTION_FORWARD, 1, 3, 5, 7};
    assert_true(work_item_bytes(&matmul, 2) == 142);
    assert_true(work_item_bytes(&adamw, 2) == 11 * (24 + 2));
    assert_true(work_item_bytes(&attention, 2) == 420 * 2 + 15 * 4);
}

/* A class of 16 bits equals its wide class with elements of two bytes, except for results in fp32. */
static void halves_are_their_wide_classes_in_two_bytes(void **state)
{
    (void)state;
    uint32_t halves = 0;
    for (uint32_t k = 0; k < KERNEL_COUNT; k++) {
        uint32_t half = kernel_half(k);
        if (half == k) continue;
        struct work_item narrow = {half, 3, 13, 17, 1}, full = {k, 3, 13, 17, 1};
        if (k == KERNEL_EMBED_FORWARD) full.k = 0; /* 1 would be: from tables in bf16 */
        assert_int_equal(kernel_wide(half), k);
        assert_int_equal(kernel_half(half), half);
        assert_true(work_item_flops(&narrow) == work_item_flops(&full));
        halves++;
        if (k == KERNEL_MATMUL_WEIGHT || k == KERNEL_EMBED_BACKWARD) continue;
        assert_true(work_item_bytes(&narrow, 4) == work_item_bytes(&full, 2));
    }
    assert_int_equal(halves, KERNEL_COLLECTIVE - KERNEL_MATMUL_HALF_FORWARD);
    assert_int_equal(kernel_half(KERNEL_LOSS), KERNEL_LOSS);
    assert_int_equal(kernel_wide(KERNEL_MATMUL_BF16_INPUT), KERNEL_MATMUL_BF16_INPUT);
}

static void a_list_adds_up(void **state)
{
    (void)state;
    struct work_item items[] = {{KERNEL_MATMUL_FORWARD, 2, 3, 5, 7},
                                {KERNEL_GELU_FORWARD, 1, 3, 5, 0},
                                {KERNEL_ATTENTION_FORWARD, 2, 3, 5, 7}};
    assert_true(work_flops(items, 3) == 2520);
    assert_true(work_flops(items, 0) == 0);
}

/* 64 x 1024 rows of gpt2's logits: 2 * 65536 * 50257 * 768 is past 32 bits and exact in a double. */
static void large_sizes_do_not_wrap(void **state)
{
    (void)state;
    struct work_item logits = {KERNEL_MATMUL_FORWARD, 1, 65536, 50257, 768};
    assert_true(work_item_flops(&logits) == 5059035267072.0);
    assert_true(work_item_bytes(&logits, 4) == 4.0 * (50331648.0 + 38597376.0 + 3293642752.0));
}

static void names_are_distinct(void **state)
{
    (void)state;
    for (size_t i = 0; i < KERNEL_COUNT; i++)
        for (size_t j = 0; j < i; j++) assert_string_not_equal(kernel_names[i], kernel_names[j]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flops_and_bytes_by_hand),
        cmocka_unit_test(half_precision_halves_all_but_fp32_state),
        cmocka_unit_test(halves_are_their_wide_classes_in_two_bytes),
        cmocka_unit_test(a_list_adds_up),
        cmocka_unit_test(large_sizes_do_not_wrap),
        cmocka_unit_test(names_are_distinct),
    };
    return cmocka_run_group_tests_name("models/kernel/work.h", tests, NULL, NULL);
}
