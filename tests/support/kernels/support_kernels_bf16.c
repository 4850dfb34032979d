/*
 * Compares the kernels of weights and moments in bf16 with plain ones: operands rounded by frexp() and rint() and
 * multiplied in double; steps in double, whose moments must be one of the two neighbours in bf16.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "models/job/memory.h"
#include "tests/support/kernels/support_kernels.h"
#include "tests/support/support_cases.h"

/* --- rounding --------------------------------------------------------------------------------- */

/* Returns an array of bf16 in whole words, which are compared. */
static bf16 *allocate_halves(int64_t count)
{
    float *const words = support_floats(count / 2 + 1);
    memset(words, 0, (size_t)(count / 2 + 1) * sizeof *words);
    return (bf16 *)(void *)words;
}

static void output_halves(struct outputs *out, bf16 *x, int64_t count)
{
    output(out, (float *)(void *)x, count / 2 + 1);
}

/* Returns the distance of bf16 numbers at x: eight bits of significand. Inputs are far from the ends of the range. */
static double step_at(double x)
{
    int exponent;
    frexp(x, &exponent);
    return ldexp(1, exponent - 8);
}

static double rounded(float x)
{
    return x == 0 ? 0 : rint((double)x / step_at((double)x)) * step_at((double)x);
}

static void round_case(const struct kernels *kernels, const int64_t *shape, struct outputs *out,
                       bool check)
{
    const int64_t n = shape[0];
    float *const x = random_array(n, 70, 3);
    bf16 *const y = allocate_halves(n);
    kernels->round(kernels, y, x, n);
    output_halves(out, y, n);
    for (int64_t i = 0; i < n && check; i++) assert_true((double)bf16_widen(y[i]) == rounded(x[i]));
}

void test_kernel_bf16_round(void **state)
{
    (void)state;
    static const int64_t counts[] = {1, 63, 64, 65, 1000, 16385, 50021};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        run_case(round_case, (int64_t[]){counts[i]});
}

/* --- linear layers ---------------------------------------------------------------------------- */

static bf16 *random_halves(int64_t count, uint64_t stream)
{
    const float *const x = random_array(count, stream, 1);
    bf16 *const y = allocate_halves(count);
    for (int64_t i = 0; i < count; i++) y[i] = bf16_nearest(x[i]);
    return y;
}

/* Checks a sum in fp32 of exact products: at most a few roundings for each term. */
static void near(float found, double wanted, double size)
{
    assert_true(fabs((double)found - wanted) <= 4e-7 * size + 1e-6);
}

static void linear_case(const struct kernels *kernels, const int64_t *shape, struct outputs *out,
                        bool check)
{
    const int64_t m = shape[0], n = shape[1], k = shape[2];
    const bool in_out = shape[3], with_bias = shape[4], accumulate = shape[5];
    bf16 *const x = random_halves(m * k, 71), *const w = random_halves(n * k, 72);
    float *const bias = random_array(n, 73, 1), *const dy = random_array(m * n, 74, 1);
    bf16 *const dy16 = allocate_halves(m * n);
    float *const y = empty_array(m * n), *const dx = random_array(m * k, 75, 1);
    float *const dw = random_array(n * k, 76, 1), *const dbias = empty_array(n);
    float *const before = support_floats(m * k), *const dw_before = support_floats(n * k);
    memcpy(before, dx, (size_t)(m * k) * sizeof *dx);
    memcpy(dw_before, dw, (size_t)(n * k) * sizeof *dw);
    for (int64_t i = 0; i < m * n; i++) dy16[i] = bf16_nearest(dy[i]);
    kernels->linear_forward_bf16(kernels, y, x, w, with_bias ? bias : NULL, m, n, k, in_out);
    kernels->linear_input_bf16(kernels, dx, dy16, w, m, n, k, in_out, accumulate);
    kernels->linear_weight_bf16(kernels, dw, with_bias ? dbias : NULL, dy, dy16, x, m, n, k, in_out,
                                accumulate);
    output(out, y, m * n);
    output(out, dx, m * k);
    output(out, dw, n * k);
    if (with_bias) output(out, dbias, n);
    if (!check) return;
#define W(in, outer) ((double)bf16_widen(in_out ? w[(in) * n + (outer)] : w[(outer) * k + (in)]))
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = with_bias ? (double)bias[j] : 0, size = fabs(sum);
            for (int64_t l = 0; l < k; l++) {
                const double term = (double)bf16_widen(x[i * k + l]) * W(l, j);
                sum += term;
                size += fabs(term);
            }
            near(y[i * n + j], sum, size);
        }
    for (int64_t i = 0; i < m; i++)
        for (int64_t l = 0; l < k; l++) {
            double sum = accumulate ? (double)before[i * k + l] : 0, size = fabs(sum);
            for (int64_t j = 0; j < n; j++) {
                const double term = rounded(dy[i * n + j]) * W(l, j);
                sum += term;
                size += fabs(term);
            }
            near(dx[i * k + l], sum, size);
        }
    for (int64_t j = 0; j < n; j++) {
        double bias_sum = 0, bias_size = 0;
        for (int64_t i = 0; i < m; i++) bias_sum += (double)dy[i * n + j];
        for (int64_t i = 0; i < m; i++) bias_size += fabs((double)dy[i * n + j]);
        if (with_bias) near(dbias[j], bias_sum, bias_size); /* of gradients before rounding */
        for (int64_t l = 0; l < k; l++) {
            const int64_t at = in_out ? l * n + j : j * k + l;
            double sum = accumulate ? (double)dw_before[at] : 0, size = fabs(sum);
            for (int64_t i = 0; i < m; i++) {
                const double term = rounded(dy[i * n + j]) * (double)bf16_widen(x[i * k + l]);
                sum += term;
                size += fabs(term);
            }
            near(dw[at], sum, size);
        }
    }
#undef W
}

/* The last shapes are wider than the host's tiles, outside and inside. */
void test_kernel_bf16_linear(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {{1, 1, 1},    {3, 5, 7},       {17, 33, 65},   {40, 130, 70},
                                       {5, 1037, 9}, {1051, 3, 11},   {4, 7, 2059}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int64_t form = 0; form < 8; form++)
            run_case(linear_case, (int64_t[]){sizes[i][0], sizes[i][1], sizes[i][2], form & 1,
                                              form >> 1 & 1, form >> 2});
}

/* --- steps ------------------------------------------------------------------------------------ */

static const struct job_optimizer adamw = {.kind = OPTIMIZER_ADAMW,
                                           .learning_rate = 0.0123,
                                           .weight_decay = 0.07,
                                           .beta1 = 0.87,
                                           .beta2 = 0.963,
                                           .epsilon = 3e-7};
static const struct job_optimizer sgd = {
    .kind = OPTIMIZER_SGD, .learning_rate = 0.0123, .weight_decay = 0.07};
static const struct job_optimizer momentum = {
    .kind = OPTIMIZER_MOMENTUM, .learning_rate = 0.0123, .momentum = 0.83, .nesterov = true};
static const struct job_optimizer *const optimizers[] = {&sgd, &adamw, &momentum};
static const uint64_t KEY = UINT64_C(0x123456789abcdef), PLACE = (UINT64_C(1) << 32) - 777;

/* Returns the moments of n parameters; both formats have the same numbers. */
static void *moments_of(int64_t n, uint64_t stream, bool halves)
{
    float *const wide = random_array(n, stream, 0.1);
    bf16 *const narrow = allocate_halves(n);
    for (int64_t i = 0; i < n; i++) {
        narrow[i] = bf16_nearest(fabsf(wide[i]));
        wide[i] = bf16_widen(narrow[i]);
    }
    return halves ? (void *)narrow : (void *)wide;
}

static void output_moments(struct outputs *out, void *moments, int64_t n, bool halves)
{
    if (!moments) return;
    if (halves) output_halves(out, moments, n);
    else output(out, moments, n);
}

static double moment(const void *moments, int64_t i, bool halves)
{
    return (double)(halves ? bf16_widen(((const bf16 *)moments)[i]) : ((const float *)moments)[i]);
}

/* Checks that `found` is one of the two neighbours of the double, except for fp32's rounding of terms of about one,
 * which may cancel. */
static void is_neighbour(double found, double wanted)
{
    const double slack = 4e-7;
    assert_true(found > wanted - step_at(wanted) - slack && found < wanted + step_at(wanted) + slack);
}

/* shape: count, optimizer, moments in bf16, weights in bf16 */
static void update_case(const struct kernels *kernels, const int64_t *shape, struct outputs *out,
                        bool check)
{
    const int64_t n = shape[0];
    struct job_optimizer o = *optimizers[shape[1]];
    const uint32_t count = optimizer_moments(o.kind);
    const bool halves = shape[2] && count > 0;
    o.moments = halves ? PRECISION_BF16 : PRECISION_FP32;
    float *const p = random_array(n, 80, 1), *const g = random_array(n, 81, 1), *const old = support_floats(n);
    void *const m = count > 0 ? moments_of(n, 82, halves) : NULL;
    void *const v = count > 1 ? moments_of(n, 83, halves) : NULL;
    const float *const old_m = random_array(n, 82, 0.1), *const old_v = random_array(n, 83, 0.1);
    const struct kernel_parameters parameters = {.p = p,
                                                 .rounded = shape[3] ? allocate_halves(n) : NULL,
                                                 .m = m,
                                                 .v = v,
                                                 .key = KEY,
                                                 .place = PLACE};
    memcpy(old, p, (size_t)n * sizeof *p);
    kernels->update(kernels, &parameters, g, n, &o, true, 7);
    output(out, p, n);
    output_moments(out, m, n, halves);
    output_moments(out, v, n, halves);
    if (parameters.rounded) output_halves(out, parameters.rounded, n);
    for (int64_t i = 0; i < n && check; i++) {
        const double x = (double)old[i], slope = (double)g[i];
        const double m0 = rounded(fabsf(old_m[i])), v0 = rounded(fabsf(old_v[i]));
        double want = x - o.learning_rate * (slope + o.weight_decay * x), want_m = 0, want_v = 0;
        if (o.kind == OPTIMIZER_MOMENTUM) {
            want_m = o.momentum * m0 + slope;
            want = x - o.learning_rate * (slope + o.momentum * want_m);
        } else if (o.kind == OPTIMIZER_ADAMW) {
            want_m = o.beta1 * m0 + (1 - o.beta1) * slope;
            want_v = o.beta2 * v0 + (1 - o.beta2) * slope * slope;
            want = x * (1 - o.learning_rate * o.weight_decay) -
                   o.learning_rate * (want_m / (1 - pow(o.beta1, 7))) /
                       (sqrt(want_v / (1 - pow(o.beta2, 7))) + o.epsilon);
        }
        assert_true(fabs((double)p[i] - want) <= 2e-6 * (1 + fabs(want))); /* from moments before rounding */
        if (parameters.rounded)
            assert_true((double)bf16_widen(parameters.rounded[i]) == rounded(p[i]));
        if (m && halves) is_neighbour(moment(m, i, true), want_m);
        if (v && halves) is_neighbour(moment(v, i, true), want_v);
        if (m && !halves) assert_true(fabs(moment(m, i, false) - want_m) <= 5e-7);
        if (v && !halves) assert_true(fabs(moment(v, i, false) - want_v) <= 5e-7);
    }
}

/* Two halves, the second at its own place, give the same bits as the whole. */
static void check_cut(const struct kernels *kernels, int64_t n)
{
    struct job_optimizer o = adamw;
    o.moments = PRECISION_BF16;
    float *p[2];
    bf16 *m[2], *v[2], *weights[2];
    float *const g = random_array(n, 81, 1);
    for (int i = 0; i < 2; i++) {
        p[i] = random_array(n, 80, 1);
        m[i] = moments_of(n, 82, true);
        v[i] = moments_of(n, 83, true);
        weights[i] = allocate_halves(n);
        const struct kernel_parameters whole = {
            .p = p[i], .rounded = weights[i], .m = m[i], .v = v[i], .key = KEY, .place = PLACE};
        const int64_t first = i == 0 ? n : n / 3;
        const struct kernel_parameters rest = kernel_parameters_from(whole, first, true);
        kernels->update(kernels, &whole, g, first, &o, true, 7);
        if (first < n) kernels->update(kernels, &rest, g + first, n - first, &o, true, 7);
    }
    assert_memory_equal(p[0], p[1], (size_t)n * sizeof *p[0]);
    assert_memory_equal(m[0], m[1], (size_t)n * sizeof *m[0]);
    assert_memory_equal(v[0], v[1], (size_t)n * sizeof *v[0]);
    assert_memory_equal(weights[0], weights[1], (size_t)n * sizeof *weights[0]);
}

void test_kernel_bf16_update(void **state)
{
    (void)state;
    static const int64_t counts[] = {1, 65, 4097, 50021};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (int64_t form = 0; form < 12; form++)
            run_case(update_case, (int64_t[]){counts[i], form % 3, form / 3 % 2, form / 6});
    check_cut(test_kernels(), 50021);
}

/* --- embedding -------------------------------------------------------------------------------- */

/* Gathers rows in bf16, then steps by the gradient that the fp32 kernel makes of the same rows, as in an update of
 * all rows. */
static void embed_case(const struct kernels *kernels, const int64_t *shape, struct outputs *out,
                       bool check)
{
    const int64_t b = 2, t = shape[0], c = shape[1], v = shape[2], rows = v + t, n = rows * c;
    const bool halves = shape[3];
    struct job_optimizer o = adamw;
    o.moments = halves ? PRECISION_BF16 : PRECISION_FP32;
    float *const p = random_array(n, 90, 1), *const x = empty_array(b * t * c);
    float *const dx = random_array(b * t * c, 91, 1), *const head = random_array(v * c, 92, 1);
    bf16 *const weights = allocate_halves(n);
    int32_t *const tokens = random_tokens(b * (t + 1), 93, v);
    float *const scratch = support_floats_aligned(MEMORY_EMBEDDING_WORDS * b * t);
    const struct kernel_parameters parameters = {.p = p,
                                                 .rounded = weights,
                                                 .m = moments_of(n, 94, halves),
                                                 .v = moments_of(n, 95, halves),
                                                 .key = KEY,
                                                 .place = PLACE};
    for (int64_t i = 0; i < n; i++) weights[i] = bf16_nearest(p[i]);
    kernels->embed_forward_bf16(kernels, x, weights, tokens, t + 1, b, t, c, v, 0, rows);
    for (int64_t r = 0; r < b * t && check; r++)
        for (int64_t i = 0; i < c; i++)
            assert_true(x[r * c + i] ==
                        bf16_widen(weights[tokens[r / t * (t + 1) + r % t] * c + i]) +
                            bf16_widen(weights[(v + r % t) * c + i]));
    kernels->embed_update(kernels, &parameters, head, dx, tokens, t + 1, b, t, c, v, 0, rows, &o, 3,
                          1, scratch);
    output(out, x, b * t * c);
    output(out, p, n);
    output_moments(out, parameters.m, n, halves);
    output_moments(out, parameters.v, n, halves);
    output_halves(out, weights, n);
    if (!check) return;
    float *const gradient = support_floats(n), *const again = random_array(n, 90, 1);
    const struct kernel_parameters apart = {.p = again,
                                            .rounded = allocate_halves(n),
                                            .m = moments_of(n, 94, halves),
                                            .v = moments_of(n, 95, halves),
                                            .key = KEY,
                                            .place = PLACE};
    kernels->embed_gradient(kernels, gradient, false, head, dx, tokens, t + 1, b, t, c, v, 0, rows, parameters.padded,
                            1, scratch);
    kernels->update(kernels, &apart, gradient, n, &o, true, 3);
    assert_memory_equal(again, p, (size_t)n * sizeof *p);
    assert_memory_equal(apart.rounded, weights, (size_t)n * sizeof *weights);
    assert_memory_equal(apart.m, parameters.m, (size_t)n * (halves ? 2 : 4));
    assert_memory_equal(apart.v, parameters.v, (size_t)n * (halves ? 2 : 4));
}

void test_kernel_bf16_embedding(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {{1, 1, 1}, {5, 7, 11}, {17, 65, 97}, {29, 130, 301}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int64_t halves = 0; halves < 2; halves++)
            run_case(embed_case, (int64_t[]){sizes[i][0], sizes[i][1], sizes[i][2], halves});
}
