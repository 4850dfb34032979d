/*
 * Kernels over bf16 numbers against those over fp32, with operands that bf16 represents: a result differs by its
 * rounding, and by the rounding of what is added to it in several calls. Results that are fp32 in both differ by the
 * order of sums. Calls again have the same bits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bf16.h"
#include "base/random.h"
#include "exec/kernels/kernels.h"
#include "models/job/memory.h"
#include "tests/support/support_seed.h"

enum { WIDE, HALF, ARRAYS_MAX = 64 };

/* Half a unit in the last of eight bits, and a little more for sums in another order. */
static const double rounding = 0x1p-8, sums = 1e-5;

static struct {
    uint64_t seed, drawn;
    struct kernels *all;
    const struct kernels *kernels[2];
    void *arrays[ARRAYS_MAX];
    uint32_t count;
} test;

static void *room(int64_t n, size_t each)
{
    void *const at = alloc_zeroed((size_t)n + 1, each);
    assert_non_null(at);
    assert_true(test.count < ARRAYS_MAX);
    test.arrays[test.count++] = at;
    return at;
}

static void free_all(void)
{
    while (test.count > 0) free(test.arrays[--test.count]);
}

/* The same numbers, in fp32 and in bf16. */
struct pair {
    kernel_number *at[2];
    int64_t n;
};

static struct pair drawn(int64_t n, double spread)
{
    float *const wide = room(n, sizeof *wide);
    bf16 *const half = room(n, sizeof *half);
    for (int64_t i = 0; i < n; i++) {
        half[i] = bf16_nearest((float)((2 * random_unit(test.seed, test.drawn++) - 1) * spread));
        wide[i] = bf16_widen(half[i]);
    }
    return (struct pair){.at = {wide, half}, .n = n};
}

/* fp32 in both. */
struct twice {
    float *at[2];
    int64_t n;
};

static struct twice results(int64_t n)
{
    return (struct twice){.at = {room(n, sizeof(float)), room(n, sizeof(float))}, .n = n};
}

/* The difference may be `units` roundings of the numbers themselves and, for sums, of the largest. */
static void check(const char *what, const struct pair *x, double units, double of_largest)
{
    const float *const wide = x->at[WIDE];
    const bf16 *const half = x->at[HALF];
    double largest = 0;
    for (int64_t i = 0; i < x->n; i++) largest = fmax(largest, fabs((double)wide[i]));
    for (int64_t i = 0; i < x->n; i++) {
        const double expected = (double)wide[i], found = (double)bf16_widen(half[i]);
        const double slack = units * rounding * fabs(expected) + (of_largest * rounding + sums) * largest;
        if (!(fabs(found - expected) <= slack))
            fail_msg("%s: number %" PRId64 " of %" PRId64 " is %.9g (expected %.9g, seed %" PRIu64 ")", what, i, x->n,
                     found, expected, test.seed);
    }
}

static void check_fp32(const char *what, const struct twice *x, double of_largest)
{
    double largest = 0;
    for (int64_t i = 0; i < x->n; i++) largest = fmax(largest, fabs((double)x->at[WIDE][i]));
    for (int64_t i = 0; i < x->n; i++) {
        const double expected = (double)x->at[WIDE][i], found = (double)x->at[HALF][i];
        if (!(fabs(found - expected) <= (of_largest * rounding + sums) * largest))
            fail_msg("%s: number %" PRId64 " of %" PRId64 " is %.9g (expected %.9g, seed %" PRIu64 ")", what, i, x->n,
                     found, expected, test.seed);
    }
}

/* Calls with K the table, and W which of both. */
#define BOTH(call)                                          \
    for (int W = WIDE; W <= HALF; W++) {                    \
        const struct kernels *const K = test.kernels[W];    \
        call;                                               \
    }

static int64_t size(int64_t most)
{
    return 1 + (int64_t)random_below(test.seed, test.drawn++, (uint64_t)most);
}

/* --- products ----------------------------------------------------------------------------------- */

static void one_linear(bool w_in_out, bool biased)
{
    const int64_t m = size(150), n = size(200), k = size(200);
    const struct pair x = drawn(m * k, 1), w = drawn(n * k, 1), bias = drawn(n, 1), dy = drawn(m * n, 1);
    const struct pair y = drawn(m * n, 1), dx = drawn(m * k, 4);
    const struct twice dw = results(n * k), dbias = results(n), logits = results(m * n);
    BOTH(K->linear_forward(K, y.at[W], x.at[W], w.at[W], biased ? bias.at[W] : NULL, m, n, k, w_in_out));
    check("linear_forward", &y, 1, 0);
    BOTH(K->linear_input(K, dx.at[W], dy.at[W], w.at[W], m, n, k, w_in_out, biased));
    check("linear_input", &dx, 1, 0);
    BOTH(K->linear_weight(K, dw.at[W], dbias.at[W], dy.at[W], x.at[W], m, n, k, w_in_out, 0));
    BOTH(K->linear_weight(K, dw.at[W], dbias.at[W], dy.at[W], x.at[W], m, n, k, w_in_out,
                          KERNEL_LINEAR_ADD_WEIGHT | KERNEL_LINEAR_ADD_BIAS));
    check_fp32("linear_weight", &dw, 0);
    check_fp32("the bias of linear_weight", &dbias, 0);
    test.kernels[WIDE]->linear_forward(test.kernels[WIDE], logits.at[WIDE], x.at[WIDE], w.at[WIDE],
                                       biased ? bias.at[WIDE] : NULL, m, n, k, w_in_out);
    test.kernels[HALF]->linear_forward_bf16(test.kernels[HALF], logits.at[HALF], x.at[HALF], w.at[HALF],
                                            biased ? bias.at[HALF] : NULL, m, n, k, w_in_out);
    check_fp32("linear_forward_bf16", &logits, 0);
    bf16 *const first = room(m * n, sizeof *first);
    memcpy(first, y.at[HALF], (size_t)(m * n) * sizeof *first);
    const struct kernels *const half = test.kernels[HALF];
    half->linear_forward(half, y.at[HALF], x.at[HALF], w.at[HALF], biased ? bias.at[HALF] : NULL, m, n, k, w_in_out);
    assert_memory_equal(first, y.at[HALF], (size_t)(m * n) * sizeof *first);
    free_all();
}

static void test_linear(void **state)
{
    (void)state;
    for (int i = 0; i < 24; i++) one_linear(i & 1, i & 2);
}

/* More columns than a block of results has rows for, and a deeper sum than a tile. */
static void test_linear_in_blocks(void **state)
{
    (void)state;
    const int64_t m = 37, n = 40000, k = 1100;
    const struct pair x = drawn(m * k, 1), w = drawn(n * k, 1), bias = drawn(n, 1), y = drawn(m * n, 1);
    BOTH(K->linear_forward(K, y.at[W], x.at[W], w.at[W], bias.at[W], m, n, k, false));
    check("linear_forward in blocks", &y, 1, 0);
    free_all();
}

/* --- elementwise -------------------------------------------------------------------------------- */

static void test_elementwise(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        const int64_t n = i < 3 ? size(200) : 20000 + size(20000);
        const struct pair x = drawn(n, 4), y = drawn(n, 4), d = drawn(n, 2), out = drawn(n, 1), other = drawn(n, 1);
        const struct twice squares = results(2);
        BOTH(K->gelu_forward(K, out.at[W], x.at[W], n, i & 1));
        check("gelu_forward", &out, 1, 0);
        BOTH(K->gelu_backward(K, out.at[W], d.at[W], x.at[W], n, i & 1));
        check("gelu_backward", &out, 1, 0);
        BOTH(K->relu_forward(K, out.at[W], x.at[W], n));
        check("relu_forward", &out, 0, 0);
        BOTH(K->relu_backward(K, out.at[W], d.at[W], x.at[W], n));
        check("relu_backward", &out, 0, 0);
        BOTH((i & 1 ? K->swiglu_forward : K->geglu_forward)(K, out.at[W], x.at[W], y.at[W], n));
        check("a gated unit", &out, 1, 0);
        BOTH((i & 1 ? K->swiglu_backward : K->geglu_backward)(K, out.at[W], other.at[W], d.at[W], x.at[W], y.at[W], n));
        check("a gated unit's gradient", &out, 1, 0);
        check("its other operand's", &other, 1, 0);
        BOTH(K->residual(K, out.at[W], x.at[W], y.at[W], n));
        check("residual", &out, 1, 0);
        BOTH(K->scale(K, out.at[W], x.at[W], n, 0.3f));
        check("scale", &out, 1, 0);
        for (int w = WIDE; w <= HALF; w++) {
            double sum;
            test.kernels[w]->number_squares(test.kernels[w], &sum, x.at[w], n, false);
            squares.at[w][0] = (float)sum;
        }
        check_fp32("squares", &squares, 0);
        free_all();
    }
}

static void test_rows(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++) {
        const int64_t b = size(3), t = size(40), c = 2 * size(60), h = size(3), r = b * t;
        const struct pair x = drawn(r * c, 2), y = drawn(r * c, 2), w = drawn(c, 2), bias = drawn(c, 1);
        const struct pair out = drawn(r * c, 1), sum = drawn(r * c, 1), dout = drawn(r * c, 1), dx = drawn(r * c, 1);
        const struct twice stats = results(2 * r), dw = results(c), db = results(c);
        const bool adds = i & 1;
        BOTH(K->norm_forward(K, out.at[W], NULL, stats.at[W], x.at[W], NULL, w.at[W], bias.at[W], r, c, 1e-5f));
        check("norm_forward", &out, 1, 0.1);
        check_fp32("statistics", &stats, 0);
        BOTH(K->norm_backward(K, dx.at[W], dw.at[W], db.at[W], dout.at[W], x.at[W], stats.at[W], w.at[W],
                              adds ? y.at[W] : NULL, r, c));
        check("norm_backward", &dx, 1, 0.1);
        check_fp32("a norm's weight", &dw, 0);
        check_fp32("a norm's bias", &db, 0);
        BOTH(K->norm_forward(K, out.at[W], sum.at[W], stats.at[W], x.at[W], y.at[W], w.at[W], bias.at[W], r, c, 1e-5f));
        check("a norm's sum", &sum, 1, 0);
        BOTH(K->rms_norm_forward(K, out.at[W], NULL, stats.at[W], x.at[W], NULL, w.at[W], r, c, 1e-5f));
        check("rms_norm_forward", &out, 1, 0);
        BOTH(K->rms_norm_backward(K, dx.at[W], dw.at[W], dout.at[W], x.at[W], stats.at[W], w.at[W],
                                  adds ? y.at[W] : NULL, r, c));
        check("rms_norm_backward", &dx, 1, 0.1);
        check_fp32("a root-mean-square norm's weight", &dw, 0);
        const struct kernel_dropout dropout = {.key = test.seed + (uint64_t)i, .p = 0.3f};
        BOTH(K->dropout(K, out.at[W], x.at[W], r, t, c, &dropout));
        check("dropout", &out, 1, 0);
        const struct pair q = drawn(r * h * c, 1), k = drawn(r * c, 1);
        const struct network_rope rope = {.theta = 10000};
        BOTH(K->rope(K, &(struct kernel_rope){.q = q.at[W], .k = k.at[W], .b = b, .t = t, .h = h, .kv = 1, .d = c,
                                              .row_q = h * c, .row_k = c, .turned = c, .adjacent = i & 2,
                                              .rope = &rope}));
        check("rope of q", &q, 1, 0.1);
        check("rope of k", &k, 1, 0.1);
        BOTH(K->copy_rows(K, out.at[W], c, x.at[W], c, r, c));
        check("copy_rows", &out, 0, 0);
        free_all();
    }
}

/* --- tables ------------------------------------------------------------------------------------- */

static void test_embedding(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        const int64_t b = size(3), t = size(30), c = size(50), v = 20, rows = v + t;
        const struct pair table = drawn(rows * c, 1), x = drawn(b * t * c, 1), dx = drawn(b * t * c, 1);
        const struct twice gradient = results(rows * c);
        float *const scratch = room(MEMORY_EMBEDDING_WORDS * b * t + 2, sizeof *scratch);
        int32_t *const tokens = room(b * (t + 1), sizeof *tokens);
        for (int64_t n = 0; n < b * (t + 1); n++) tokens[n] = (int32_t)random_below(test.seed, test.drawn++, v);
        BOTH(K->embed_forward(K, x.at[W], table.at[W], tokens, t + 1, b, t, c, v, 0, rows));
        check("embed_forward", &x, 1, 0);
        const struct kernels *const half = test.kernels[HALF];
        bf16 *const whole = room(b * t * c, sizeof *whole);
        memcpy(whole, x.at[HALF], (size_t)(b * t * c) * sizeof *whole);
        half->embed_forward(half, x.at[HALF], table.at[HALF], tokens, t + 1, b, t, c, v, 0, 7);
        half->embed_forward(half, x.at[HALF], (const bf16 *)table.at[HALF] + 7 * c, tokens, t + 1, b, t, c, v, 7,
                            rows - 7);
        assert_memory_equal(whole, x.at[HALF], (size_t)(b * t * c) * sizeof *whole);
        BOTH(K->embed_gradient(K, gradient.at[W], false, NULL, dx.at[W], tokens, t + 1, b, t, c, v, 0, rows, 0,
                               1, scratch));
        check_fp32("embed_gradient", &gradient, 0);
        free_all();
    }
}

static void test_images(void **state)
{
    (void)state;
    const int64_t b = 3, channels = 3, image = 8, patch = 4, n = 4, t = n + 1, c = 19;
    const int64_t pixels = channels * patch * patch;
    const struct pair out = drawn(b * n * pixels, 1), patches = drawn(b * n * c, 1), token = drawn(c, 1);
    const struct pair positions = drawn(t * c, 1), x = drawn(b * t * c, 1), first = drawn(b * c, 1);
    const struct pair images = drawn(b * channels * image * image, 1);
    const struct twice d_token = results(c), d_positions = results(t * c);
    BOTH(K->patches(K, out.at[W], images.at[WIDE], b, channels, image, patch));
    check("patches", &out, 0, 0);
    BOTH(K->join_forward(K, x.at[W], patches.at[W], token.at[W], positions.at[W], b, t, c));
    check("join_forward", &x, 1, 0);
    BOTH(K->first_forward(K, first.at[W], x.at[W], b, t, c));
    check("first_forward", &first, 1, 0);
    const struct pair dx = drawn(b * t * c, 1);
    BOTH(K->join_backward(K, patches.at[W], d_token.at[W], d_positions.at[W], dx.at[W], b, t, c));
    check("join_backward", &patches, 0, 0);
    check_fp32("positions", &d_positions, 0);
    check_fp32("the class token", &d_token, 0);
    BOTH(K->first_backward(K, dx.at[W], first.at[W], b, t, c));
    check("first_backward", &dx, 1, 0);
    free_all();
}

/* --- experts ------------------------------------------------------------------------------------ */

/* Rows choose the same experts in both: they have the same results of the router. */
static void test_experts(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        const int64_t r = size(60), e = 1 + size(9), k = 1 + size(e - 1) % 3 % e, c = size(300), pairs = r * k;
        const struct pair router = drawn(r * e, 3), x = drawn(r * c, 1), sent = drawn(pairs * c, 1);
        const struct pair out = drawn(r * c, 1), gate = drawn(r, 2), d_router = drawn(r * e, 1), dw = drawn(pairs, 1);
        const struct pair d_sent = drawn(pairs * c, 1), d_gate = drawn(r, 1), returned = drawn(pairs * c, 1);
        const struct twice weights = results(pairs);
        struct kernel_routes routes[2];
        for (int w = WIDE; w <= HALF; w++) {
            int32_t *const numbers = room(3 * pairs + e + 1, sizeof *numbers);
            routes[w] = (struct kernel_routes){.r = r, .e = e, .k = k, .normalized = i & 1,
                                               .probabilities = router.at[w], .weights = weights.at[w],
                                               .experts = numbers, .places = numbers + pairs,
                                               .rows = numbers + 2 * pairs, .begins = numbers + 3 * pairs};
        }
        BOTH(K->route(K, &routes[W]));
        check("probabilities", &router, 1, 0);
        check_fp32("weights of chosen experts", &weights, 0);
        assert_memory_equal(routes[WIDE].experts, routes[HALF].experts, (size_t)(3 * pairs + e + 1) * sizeof(int32_t));
        BOTH(K->route_backward(K, d_router.at[W], dw.at[W], &routes[W]));
        check("a router's gradient", &d_router, 1, 2);
        BOTH(K->send(K, sent.at[W], x.at[W], &routes[W], c));
        check("sent rows", &sent, 0, 0);
        BOTH(K->collect(K, out.at[W], returned.at[W], &routes[W], c, i & 2, i & 1));
        check("collected rows", &out, 1, 0);
        BOTH(K->collect_backward(K, d_sent.at[W], dw.at[W], x.at[W], returned.at[W], &routes[W], c));
        check("gradients of returned rows", &d_sent, 1, 0);
        check("gradients of weights", &dw, 1, 0);
        BOTH(K->gate_rows_backward(K, d_sent.at[W], d_gate.at[W], x.at[W], returned.at[W], gate.at[W], r, c));
        check("gradients of gated rows", &d_sent, 1, 0);
        check("gradients of factors", &d_gate, 1, 0);
        BOTH(K->gate_rows(K, out.at[W], x.at[W], gate.at[W], r, c));
        check("gated rows", &out, 1, 1);
        free_all();
    }
}

/* --- attention ---------------------------------------------------------------------------------- */

/* Packed rows of some tokens each. */
static const int32_t *begins_of(int64_t b, int64_t t)
{
    int32_t *const begins = room(b * t, sizeof *begins);
    for (int64_t sample = 0; sample < b; sample++)
        for (int64_t token = 0, begin = 0; token < t; token++) {
            if (random_below(test.seed, test.drawn++, 20) == 0) begin = token;
            begins[sample * t + token] = (int32_t)begin;
        }
    return begins;
}

/* fp32 rounds the operands of its products here, as in bf16-weights: what remains are other orders of sums, which may
 * round a number of the middle the other way. */
static void one_attention(int64_t t, uint32_t form)
{
    const int64_t b = 1 + (form & 1), kv = 2, h = kv * (form & 2 ? 3 : 1), d = form & 4 ? 40 : 16;
    const int32_t *const begins = form & 8 ? begins_of(b, t) : NULL;
    const bool causal = !(form & 16) || begins, follows = causal && !begins && (form & 256);
    const int64_t earlier = follows ? 1 + 33 * (form % 4) : 0, held = earlier + t + (follows ? form % 3 : 0);
    const int64_t row = h * d, shared = kv * d, rows = b * t, keys = b * held;
    const struct attention_sizes sizes = {.samples = (uint64_t)b, .tokens = (uint64_t)t, .heads = (uint64_t)h,
                                          .kv_heads = (uint64_t)kv, .head_width = (uint64_t)d};
    const struct pair q = drawn(rows * row, 1), k = drawn(keys * shared, 1), v = drawn(keys * shared, 1);
    const struct pair out = drawn(rows * row, 1), dout = drawn(rows * row, 1), dq = drawn(rows * row, 1);
    const struct pair dk = drawn(keys * shared, 1), dv = drawn(keys * shared, 1);
    const struct twice stats = results(rows * h);
    const uint64_t alone[2] = {memory_attention_copies(sizes, true) + memory_attention_workspace(sizes, true),
                               memory_attention_half_tiles(sizes)};
    const uint64_t after[2] = {memory_attention_after(sizes, (uint64_t)earlier, PRECISION_BF16_WEIGHTS),
                               memory_attention_after(sizes, (uint64_t)earlier, PRECISION_BF16)};
    float *const scratch[2] = {room((int64_t)(follows ? after : alone)[0], sizeof(float)),
                               room((int64_t)(follows ? after : alone)[1], sizeof(float))};
    struct kernel_attention a[2];
    for (int w = WIDE; w <= HALF; w++)
        a[w] = (struct kernel_attention){.out = out.at[w], .stats = stats.at[w], .q = q.at[w], .k = k.at[w],
                                         .v = v.at[w], .dout = NULL, .scratch = scratch[w], .b = b, .t = t, .h = h,
                                         .kv = kv, .d = d, .row_q = row, .row_kv = shared, .causal = causal,
                                         .window = causal && (form & 32) ? 17 : 0, .cap = form & 64 ? 2.0f : 0.0f,
                                         .begins = begins, .rounded = w == WIDE, .earlier = earlier,
                                         .held = follows ? held : 0, .adds = follows && form % 3 > 0,
                                         .dropout = {.key = test.seed, .p = form & 128 ? 0.2f : 0, .samples = 3}};
    BOTH(K->attention_forward(K, &a[W]));
    check("attention's result", &out, 1, 0.6);
    check_fp32("attention's statistics", &stats, 0);
    for (int w = WIDE; w <= HALF; w++) {
        a[w].dout = dout.at[w];
        a[w].dq = dq.at[w];
        a[w].dk = dk.at[w];
        a[w].dv = dv.at[w];
    }
    BOTH(K->attention_backward(K, &a[W]));
    check("the gradient of queries", &dq, 1, 1);
    check("the gradient of keys", &dk, 1, 1);
    check("the gradient of values", &dv, 1, 1);
    free_all();
}

static void test_attention(void **state)
{
    (void)state;
    static const int64_t tokens[] = {1, 7, 63, 64, 65, 100, 150, 200};
    for (uint32_t form = 0; form < 512; form += 5)
        for (uint32_t i = 0; i < sizeof tokens / sizeof *tokens; i++) one_attention(tokens[i], form);
}

/* --- program ------------------------------------------------------------------------------------ */

static int setup(void **state)
{
    (void)state;
    struct error err = {0};
    if (kernels_host_create(2, &test.all, &err) != STATUS_OK) return -1;
    test.kernels[WIDE] = test.all;
    test.kernels[HALF] = test.all->half;
    kernels_host_attach(test.all);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    kernels_host_destroy(test.all);
    return 0;
}

int main(void)
{
    test.seed = support_seed("test_exec_half");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_linear),    cmocka_unit_test(test_linear_in_blocks), cmocka_unit_test(test_elementwise),
        cmocka_unit_test(test_rows),      cmocka_unit_test(test_embedding),        cmocka_unit_test(test_images),
        cmocka_unit_test(test_experts),   cmocka_unit_test(test_attention),
    };
    return cmocka_run_group_tests_name("kernels over bf16 numbers", tests, setup, teardown);
}
