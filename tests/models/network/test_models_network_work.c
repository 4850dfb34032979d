/*
 * The work of a network's training step: against the closed forms of the literature, kernel by kernel by hand, and
 * of layers that are computed in pieces.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <math.h>

#include "base/size.h"
#include "models/network/network.h"
#include "tests/support/planner/support_parallel.h"

static const struct state_format adamw = {.optimizer = OPTIMIZER_ADAMW};
static const struct state_format sgd = {.optimizer = OPTIMIZER_SGD};

static double pass_flops(const struct network *n, enum network_pass pass, uint64_t b, uint64_t t)
{
    double sum = 0;
    for (uint64_t layer = 0; layer < n->layer_count; layer++) {
        struct work_item items[LAYER_WORK_MAX];
        uint32_t count = network_layer_work(n, layer, pass, b, t, adamw, items);
        sum += work_flops(items, count);
    }
    return sum;
}

static void assert_close(double found, double expected)
{
    if (fabs(found - expected) > 1e-12 * expected) fail_msg("%.17g and %.17g", found, expected);
}

/*
 * Narayanan et al. (SC 2021), eq. 3, has 96 B T L C^2 (1 + T / 6C + V / 16 L C) for a step with the
 * forward pass of the blocks done twice. Once: 72 B T L C^2 (1 + T / 6C + V / 12 L C). Theirs is full
 * attention; causal attention has half the scores, T / 12C. The formula has F = 4C and nothing but
 * products, as work_flops() does.
 */
static void a_gpt2_step_has_the_flops_of_the_literature(void **state)
{
    (void)state;
    static const char *const names[] = {"gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl"};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        struct network n = support_preset(names[i]);
        double b = 3, t = 640, c = (double)n.width, l = (double)n.blocks, v = (double)n.vocabulary;
        double forward = 24 * b * t * l * c * c * (1 + t / (12 * c) + v / (12 * l * c));
        assert_close(pass_flops(&n, PASS_FORWARD, 3, 640), forward);
        assert_close(pass_flops(&n, PASS_BACKWARD, 3, 640), 2 * forward);
    }
}

/* Llama 2 7B: each token meets every parameter of a product (all but embedding and norms) in two FLOPs
 * forward and four backward; attention adds 2 T C for causal scores and their weighted sum, twice
 * that backward. */
static void a_llama_step_has_two_flops_a_parameter(void **state)
{
    (void)state;
    struct network n = support_preset("llama-2-7b");
    double products = 6738415616.0 - 32000.0 * 4096 - 65 * 4096.0, t = 512, rows = 3 * t;
    double forward = rows * (2 * products + 32 * 2 * t * 4096.0);
    assert_close(pass_flops(&n, PASS_FORWARD, 3, 512), forward);
    assert_close(pass_flops(&n, PASS_BACKWARD, 3, 512), 2 * forward);
}

/* BERT: full attention, and the head's C x C transform for each token: 6 B T C^2 more. */
static void a_bert_step_has_the_flops_of_the_literature(void **state)
{
    (void)state;
    struct network n = support_preset("bert-large");
    double b = 5, t = 384, c = 1024, l = 24, v = 30522;
    double step = 72 * b * t * l * c * c * (1 + t / (6 * c) + v / (12 * l * c)) + 6 * b * t * c * c;
    assert_close(pass_flops(&n, PASS_FORWARD, 5, 384) + pass_flops(&n, PASS_BACKWARD, 5, 384),
                 step);
}

/* ViT: patches of 16 x 16 x 3 = 768 values, twice their product (no input gradient); classes from
 * one token. 197 tokens. */
static void a_vit_step_has_the_flops_of_the_literature(void **state)
{
    (void)state;
    struct network n = support_preset("vit-base");
    double b = 5, t = 197, c = 768, l = 12;
    double step = 72 * b * t * l * c * c * (1 + t / (6 * c)) + 4 * b * 196 * c * 768 +
                  6 * b * 1000 * c;
    assert_close(pass_flops(&n, PASS_FORWARD, 5, 0) + pass_flops(&n, PASS_BACKWARD, 5, 0), step);
}

static const struct work_item *find_item(const struct work_item *items, uint32_t count,
                                         uint32_t kernel, uint64_t m, uint64_t n, uint64_t k)
{
    for (uint32_t i = 0; i < count; i++)
        if (items[i].kernel == kernel && items[i].m == m && items[i].n == n && items[i].k == k)
            return &items[i];
    return NULL;
}

static void check_items_of(const struct network *n, uint64_t layer, enum network_pass pass, uint64_t b,
                           uint64_t t, const struct work_item *expected, uint32_t count)
{
    struct work_item items[LAYER_WORK_MAX];
    assert_int_equal(network_layer_work(n, layer, pass, b, t, adamw, items), count);
    for (uint32_t i = 0; i < count; i++) {
        const struct work_item *e = &expected[i];
        const struct work_item *item = find_item(items, count, e->kernel, e->m, e->n, e->k);
        if (!item || item->count != e->count)
            fail_msg("no %" PRIu32 " times %s %" PRIu64 " %" PRIu64 " %" PRIu64, e->count,
                     kernel_names[e->kernel], e->m, e->n, e->k);
    }
}

static void check_items(const struct network *n, uint64_t layer, enum network_pass pass,
                        const struct work_item *expected, uint32_t count)
{
    check_items_of(n, layer, pass, 2, 96, expected, count);
}

/* B 2, T 96, R 192, C 768, F 3072, H 12, D 64. */
static void kernels_of_gpt2_by_hand(void **state)
{
    (void)state;
    static const struct work_item forward[] = {
        {KERNEL_NORM_FORWARD, 1, 192, 768, 0},
        {KERNEL_NORM_FORWARD, 1, 192, 768, 1},
        {KERNEL_MATMUL_FORWARD, 1, 192, 2304, 768},
        {KERNEL_MATMUL_FORWARD, 1, 192, 768, 768},
        {KERNEL_MATMUL_FORWARD, 1, 192, 3072, 768},
        {KERNEL_MATMUL_FORWARD, 1, 192, 768, 3072},
        {KERNEL_ATTENTION_FORWARD, 1, 24, 96, 64},
        {KERNEL_GELU_FORWARD, 1, 192, 3072, 0},
        {KERNEL_RESIDUAL, 1, 192, 768, 0},
    };
    static const struct work_item backward[] = {
        {KERNEL_MATMUL_INPUT, 1, 192, 768, 2304},
        {KERNEL_MATMUL_INPUT, 1, 192, 768, 768},
        {KERNEL_MATMUL_INPUT, 1, 192, 768, 3072},
        {KERNEL_MATMUL_INPUT, 1, 192, 3072, 768},
        {KERNEL_MATMUL_WEIGHT, 1, 2304, 768, 192},
        {KERNEL_MATMUL_WEIGHT, 1, 768, 768, 192},
        {KERNEL_MATMUL_WEIGHT, 1, 3072, 768, 192},
        {KERNEL_MATMUL_WEIGHT, 1, 768, 3072, 192},
        {KERNEL_BIAS_BACKWARD, 1, 192, 2304, 0},
        {KERNEL_BIAS_BACKWARD, 2, 192, 768, 0},
        {KERNEL_BIAS_BACKWARD, 1, 192, 3072, 0},
        {KERNEL_ATTENTION_BACKWARD, 1, 24, 96, 64},
        {KERNEL_GELU_BACKWARD, 1, 192, 3072, 0},
        {KERNEL_NORM_BACKWARD, 2, 192, 768, 1},
    };
    static const struct work_item head_forward[] = {
        {KERNEL_NORM_FORWARD, 1, 192, 768, 0},
        {KERNEL_MATMUL_FORWARD, 1, 192, 50257, 768},
        {KERNEL_LOSS, 1, 192, 50257, 0},
    };
    static const struct work_item head_backward[] = {
        {KERNEL_MATMUL_INPUT, 1, 192, 768, 50257},
        {KERNEL_MATMUL_WEIGHT, 1, 50257, 768, 192},
        {KERNEL_NORM_BACKWARD, 1, 192, 768, 0},
    };
    static const struct work_item embedding_forward[] = {{KERNEL_EMBED_FORWARD, 1, 192, 768, 0}};
    static const struct work_item embedding_backward[] = {
        {KERNEL_EMBED_BACKWARD, 1, 192, 768, 51281}};
    static const struct work_item update[] = {{KERNEL_ADAMW, 1, 7087872, 0, 0}};
    static const struct work_item head_update[] = {{KERNEL_ADAMW, 1, 1536, 0, 0}};
    struct network n = support_preset("gpt2");
    check_items(&n, 1, PASS_FORWARD, forward, ARRAY_COUNT(forward));
    check_items(&n, 1, PASS_BACKWARD, backward, ARRAY_COUNT(backward));
    check_items(&n, 1, PASS_UPDATE, update, 1);
    check_items(&n, 13, PASS_FORWARD, head_forward, ARRAY_COUNT(head_forward));
    check_items(&n, 13, PASS_BACKWARD, head_backward, ARRAY_COUNT(head_backward));
    check_items(&n, 13, PASS_UPDATE, head_update, 1);
    check_items(&n, 0, PASS_FORWARD, embedding_forward, 1);
    check_items(&n, 0, PASS_BACKWARD, embedding_backward, 1);
}

/* Grouped heads: R 192, C 2048, 32 heads of 64, 8 of keys, F 8192. */
static void kernels_of_llama_by_hand(void **state)
{
    (void)state;
    static const struct work_item forward[] = {
        {KERNEL_RMS_NORM_FORWARD, 1, 192, 2048, 0}, {KERNEL_RMS_NORM_FORWARD, 1, 192, 2048, 1},
        {KERNEL_MATMUL_FORWARD, 2, 192, 2048, 2048}, {KERNEL_MATMUL_FORWARD, 2, 192, 512, 2048},
        {KERNEL_MATMUL_FORWARD, 2, 192, 8192, 2048}, {KERNEL_MATMUL_FORWARD, 1, 192, 2048, 8192},
        {KERNEL_ROPE, 1, 192, 2560, 0}, {KERNEL_ATTENTION_FORWARD, 1, 64, 96, 64},
        {KERNEL_SWIGLU_FORWARD, 1, 192, 8192, 0}, {KERNEL_RESIDUAL, 1, 192, 2048, 0}};
    static const struct work_item backward[] = {
        {KERNEL_RMS_NORM_BACKWARD, 2, 192, 2048, 1},
        {KERNEL_MATMUL_INPUT, 2, 192, 2048, 2048}, {KERNEL_MATMUL_WEIGHT, 2, 2048, 2048, 192},
        {KERNEL_MATMUL_INPUT, 2, 192, 2048, 512}, {KERNEL_MATMUL_WEIGHT, 2, 512, 2048, 192},
        {KERNEL_MATMUL_INPUT, 2, 192, 2048, 8192}, {KERNEL_MATMUL_WEIGHT, 2, 8192, 2048, 192},
        {KERNEL_MATMUL_INPUT, 1, 192, 8192, 2048}, {KERNEL_MATMUL_WEIGHT, 1, 2048, 8192, 192},
        {KERNEL_ROPE, 1, 192, 2560, 0}, {KERNEL_ATTENTION_BACKWARD, 1, 64, 96, 64},
        {KERNEL_SWIGLU_BACKWARD, 1, 192, 8192, 0}};
    static const struct work_item embedding_backward[] = {
        {KERNEL_EMBED_BACKWARD, 1, 192, 2048, 128256}}; /* no positions */
    struct network n = support_preset("llama-3.2-1b");
    check_items(&n, 3, PASS_FORWARD, forward, ARRAY_COUNT(forward));
    check_items(&n, 3, PASS_BACKWARD, backward, ARRAY_COUNT(backward));
    check_items(&n, 0, PASS_BACKWARD, embedding_backward, 1);
}

/* B 2: 196 patches of 768 pixels each, 197 tokens; the head sees one token of each sample. */
static void kernels_of_vit_by_hand(void **state)
{
    (void)state;
    static const struct work_item embedding_forward[] = {
        {KERNEL_GATHER, 1, 392, 768, 0},
        {KERNEL_MATMUL_FORWARD, 1, 392, 1024, 768},
        {KERNEL_RESIDUAL, 1, 394, 1024, 0}};
    static const struct work_item embedding_backward[] = {
        {KERNEL_GATHER, 1, 392, 768, 0},         /* the images again */
        {KERNEL_GATHER, 1, 392, 1024, 0},        /* gradients of patches, without class tokens */
        {KERNEL_BIAS_BACKWARD, 1, 2, 197 * 1024, 0}, /* of positions */
        {KERNEL_MATMUL_WEIGHT, 1, 1024, 768, 392},
        {KERNEL_BIAS_BACKWARD, 1, 392, 1024, 0}};
    static const struct work_item block_forward[] = {
        {KERNEL_NORM_FORWARD, 1, 394, 1024, 0}, {KERNEL_NORM_FORWARD, 1, 394, 1024, 1},
        {KERNEL_MATMUL_FORWARD, 4, 394, 1024, 1024}, {KERNEL_MATMUL_FORWARD, 1, 394, 4096, 1024},
        {KERNEL_MATMUL_FORWARD, 1, 394, 1024, 4096},
        {KERNEL_ATTENTION_FULL_FORWARD, 1, 32, 197, 64}, {KERNEL_GELU_FORWARD, 1, 394, 4096, 0},
        {KERNEL_RESIDUAL, 1, 394, 1024, 0}};
    static const struct work_item head_forward[] = {
        {KERNEL_GATHER, 1, 2, 1024, 0}, {KERNEL_NORM_FORWARD, 1, 2, 1024, 0},
        {KERNEL_MATMUL_FORWARD, 1, 2, 1000, 1024}, {KERNEL_LOSS, 1, 2, 1000, 0}};
    static const struct work_item head_backward[] = {
        {KERNEL_MATMUL_INPUT, 1, 2, 1024, 1000}, {KERNEL_MATMUL_WEIGHT, 1, 1000, 1024, 2},
        {KERNEL_BIAS_BACKWARD, 1, 2, 1000, 0}, {KERNEL_NORM_BACKWARD, 1, 2, 1024, 0},
        {KERNEL_GATHER, 1, 394, 1024, 0}}; /* nothing for the other tokens */
    struct network n = support_preset("vit-large");
    check_items(&n, 0, PASS_FORWARD, embedding_forward, ARRAY_COUNT(embedding_forward));
    check_items(&n, 0, PASS_BACKWARD, embedding_backward, ARRAY_COUNT(embedding_backward));
    check_items(&n, 1, PASS_FORWARD, block_forward, ARRAY_COUNT(block_forward));
    check_items(&n, 25, PASS_FORWARD, head_forward, ARRAY_COUNT(head_forward));
    check_items(&n, 25, PASS_BACKWARD, head_backward, ARRAY_COUNT(head_backward));
}

/* The pooler and the next-sentence classifier see one token of each sample. */
static void a_pooler_works_on_samples(void **state)
{
    (void)state;
    static const struct work_item head_forward[] = {
        {KERNEL_MATMUL_FORWARD, 1, 192, 768, 768},   /* the transform */
        {KERNEL_GELU_FORWARD, 1, 192, 768, 0},
        {KERNEL_NORM_FORWARD, 1, 192, 768, 0},
        {KERNEL_MATMUL_FORWARD, 1, 192, 30522, 768},
        {KERNEL_LOSS, 1, 192, 30522, 0},
        {KERNEL_MATMUL_FORWARD, 1, 2, 768, 768},
        {KERNEL_MATMUL_FORWARD, 1, 2, 2, 768},
        {KERNEL_LOSS, 1, 2, 2, 0},
    };
    static const struct work_item embedding_backward[] = {
        {KERNEL_EMBED_FORWARD, 2, 192, 768, 0}, /* the norm's input, gathered again: text and types */
        {KERNEL_NORM_FORWARD, 1, 192, 768, 0},
        {KERNEL_NORM_BACKWARD, 1, 192, 768, 0},
        {KERNEL_EMBED_BACKWARD, 1, 192, 768, 30522 + 512},
        {KERNEL_EMBED_BACKWARD, 1, 192, 768, 2},
    };
    struct network n = support_preset("bert-base");
    n.pooler = true;
    check_items(&n, 13, PASS_FORWARD, head_forward, ARRAY_COUNT(head_forward));
    check_items(&n, 0, PASS_BACKWARD, embedding_backward, ARRAY_COUNT(embedding_backward));
}

/* 512 rows, or 64 MiB of them where those are more: 16777216 / V. */
static void logits_exist_in_pieces(void **state)
{
    (void)state;
    static const struct {
        uint64_t vocabulary, rows, expected;
    } cases[] = {
        {50257, 1, 1},      {50257, 512, 512},  {50257, 513, 257}, {50257, 1024, 512},
        {50257, 1030, 344}, {128256, 8192, 512}, {32768, 1024, 512}, {32767, 1024, 512},
        {32000, 524, 524},  {32000, 525, 263},  {256, 65536, 65536}, {256, 65537, 32769},
        {1, 1 << 24, 1 << 24}, {1 << 24, UINT64_C(1) << 31, 512},
    };
    struct network n = support_preset("gpt2");
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        n.vocabulary = cases[i].vocabulary;
        assert_int_equal(network_logit_rows(&n, cases[i].rows), cases[i].expected);
    }
    /* none is smaller than half of the most that there may be, but for the last of many */
    n.vocabulary = 50257;
    for (uint64_t rows = 513; rows < 20000; rows++) {
        uint64_t piece = network_logit_rows(&n, rows);
        assert_in_range(piece, 257, 512);
        assert_in_range((rows - 1) / piece * piece, rows - piece, rows - 1);
    }
}

/* GPT-2, R 1030: two pieces of 344 and one of 342. BERT's have a bias each. */
static void work_of_words_is_that_of_their_pieces(void **state)
{
    (void)state;
    static const struct work_item forward[] = {
        {KERNEL_NORM_FORWARD, 1, 1030, 768, 0},
        {KERNEL_MATMUL_FORWARD, 2, 344, 50257, 768}, {KERNEL_MATMUL_FORWARD, 1, 342, 50257, 768},
        {KERNEL_LOSS, 2, 344, 50257, 0},             {KERNEL_LOSS, 1, 342, 50257, 0},
    };
    static const struct work_item backward[] = {
        {KERNEL_MATMUL_INPUT, 2, 344, 768, 50257},  {KERNEL_MATMUL_INPUT, 1, 342, 768, 50257},
        {KERNEL_MATMUL_WEIGHT, 2, 50257, 768, 344}, {KERNEL_MATMUL_WEIGHT, 1, 50257, 768, 342},
        {KERNEL_NORM_BACKWARD, 1, 1030, 768, 0},
    };
    static const struct work_item masked[] = {
        {KERNEL_MATMUL_INPUT, 2, 549, 768, 30522},  {KERNEL_MATMUL_WEIGHT, 2, 30522, 768, 549},
        {KERNEL_BIAS_BACKWARD, 2, 549, 30522, 0},   {KERNEL_MATMUL_INPUT, 1, 1098, 768, 768},
        {KERNEL_MATMUL_WEIGHT, 1, 768, 768, 1098},  {KERNEL_BIAS_BACKWARD, 1, 1098, 768, 0},
        {KERNEL_NORM_BACKWARD, 1, 1098, 768, 0},    {KERNEL_GELU_BACKWARD, 1, 1098, 768, 0},
    };
    struct network n = support_preset("gpt2");
    check_items_of(&n, 13, PASS_FORWARD, 1, 1030, forward, ARRAY_COUNT(forward));
    check_items_of(&n, 13, PASS_BACKWARD, 1, 1030, backward, ARRAY_COUNT(backward));
    n = support_preset("bert-base"); /* 64 MiB are 549 rows */
    check_items_of(&n, 13, PASS_BACKWARD, 3, 366, masked, ARRAY_COUNT(masked));
}

static void equal_products_are_one_item(void **state)
{
    (void)state;
    struct network n = support_preset("hydra-bert-1b"); /* F = C: all six products are equal */
    struct work_item items[LAYER_WORK_MAX];
    uint32_t count = network_layer_work(&n, 5, PASS_FORWARD, 4, 128, sgd, items);
    const struct work_item *square =
        find_item(items, count, KERNEL_MATMUL_FORWARD, 512, 1024, 1024);
    assert_non_null(square);
    assert_int_equal(square->count, 6);
    assert_non_null(
        find_item(items, count, KERNEL_ATTENTION_FULL_FORWARD, 64, 128, 64));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gpt2_step_has_the_flops_of_the_literature),
        cmocka_unit_test(a_llama_step_has_two_flops_a_parameter),
        cmocka_unit_test(a_bert_step_has_the_flops_of_the_literature),
        cmocka_unit_test(a_vit_step_has_the_flops_of_the_literature),
        cmocka_unit_test(kernels_of_gpt2_by_hand),
        cmocka_unit_test(kernels_of_llama_by_hand),
        cmocka_unit_test(kernels_of_vit_by_hand),
        cmocka_unit_test(a_pooler_works_on_samples),
        cmocka_unit_test(logits_exist_in_pieces),
        cmocka_unit_test(work_of_words_is_that_of_their_pieces),
        cmocka_unit_test(equal_products_are_one_item),
    };
    return cmocka_run_group_tests_name("models/network/network.h, work", tests, NULL, NULL);
}
