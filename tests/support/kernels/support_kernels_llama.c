/* Compares kernels of Llama with plain ones in double, over odd shapes. */
#include "tests/support/kernels/support_kernels.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "models/job/memory.h"

/* --- root-mean-square norm -------------------------------------------------------------------- */

static void rms_norm_case(const struct kernels *kernels, const int64_t *shape,
                          struct outputs *out, bool check)
{
    int64_t r = shape[0], c = shape[1];
    bool residual = shape[2], add = shape[3];
    const double epsilon = 1e-3;
    float *x = random_array(r * c, 1, 2), *y = random_array(r * c, 2, 1);
    float *w = random_array(c, 3, 1.5), *dout = random_array(r * c, 4, 1);
    float *added = random_array(r * c, 5, 1), *result = empty_array(r * c);
    float *sum = empty_array(r * c), *stats = empty_array(r), *dx = empty_array(r * c);
    float *dw = empty_array(c);
    kernels->rms_norm_forward(kernels, result, sum, stats, x, residual ? y : NULL, w, r, c,
                              (float)epsilon);
    const float *in = residual ? sum : x;
    kernels->rms_norm_backward(kernels, dx, dw, dout, in, stats, w, add ? added : NULL, r, c);
    output(out, result, r * c);
    output(out, stats, r);
    output(out, dx, r * c);
    output(out, dw, c);
    if (residual) output(out, sum, r * c);
    if (!check) return;

    double *want = calloc((size_t)(2 * r * c + c), sizeof *want);
    double *want_dx = want + r * c, *want_dw = want_dx + r * c;
    for (int64_t i = 0; i < r; i++) {
        const float *row = in + i * c, *d = dout + i * c;
        double squares = 0, slope = 0;
        for (int64_t j = 0; j < c; j++) squares += (double)row[j] * (double)row[j] / (double)c;
        double inverse = 1 / sqrt(squares + epsilon);
        for (int64_t j = 0; j < c; j++) {
            double n = (double)row[j] * inverse;
            if (residual) assert_true(sum[i * c + j] == x[i * c + j] + y[i * c + j]);
            want[i * c + j] = n * (double)w[j];
            want_dw[j] += (double)d[j] * n;
            slope += (double)d[j] * (double)w[j] * n / (double)c;
        }
        for (int64_t j = 0; j < c; j++)
            want_dx[i * c + j] =
                ((double)d[j] * (double)w[j] - (double)row[j] * inverse * slope) * inverse +
                (add ? (double)added[i * c + j] : 0);
    }
    assert_near(result, want, r * c, 2e-6);
    /* rounding of one small number in a row is magnified by 1/rms, at most 1/sqrt(epsilon) = 32 */
    assert_near(dx, want_dx, r * c, c < 8 ? 2e-4 : 2e-5);
    assert_near(dw, want_dw, c, 2e-5);

    /* in place: the sum goes over y, dx over the added array */
    if (residual && add) {
        float *again = support_floats(r * c);
        memcpy(again, y, (size_t)(r * c) * sizeof *again);
        kernels->rms_norm_forward(kernels, result, again, stats, x, again, w, r, c,
                                  (float)epsilon);
        assert_memory_equal(again, sum, (size_t)(r * c) * sizeof *sum);
        memcpy(again, added, (size_t)(r * c) * sizeof *again);
        kernels->rms_norm_backward(kernels, again, dw, dout, sum, stats, w, again, r, c);
        assert_memory_equal(again, dx, (size_t)(r * c) * sizeof *dx);
    }
    free(want);
}

void test_kernel_rms_norm(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{1, 1},   {2, 3},    {5, 31},   {64, 64},
                                       {65, 67}, {130, 48}, {33, 193}, {257, 128}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int64_t form = 0; form < 4; form++)
            run_case(rms_norm_case, (int64_t[]){sizes[i][0], sizes[i][1], form & 1, form >> 1});
}

/* --- rotary positions ------------------------------------------------------------------------- */

static const struct network_rope ropes[] = {
    {.kind = ROPE_DEFAULT, .theta = 10000},
    {.kind = ROPE_LINEAR, .theta = 500, .factor = 2.5},
    {.kind = ROPE_LLAMA3, .theta = 500, .factor = 8, .low_factor = 0.5, .high_factor = 4,
     .original_positions = 40},
};

/* Angles are rounded to single precision (2^-24 of up to 130): sines err by 130 * 6e-8. */
static void check_turned(const float *turned, const float *before, int64_t b, int64_t t, int64_t begin,
                         const int32_t *begins, int64_t heads, int64_t d, const struct network_rope *rope)
{
    for (int64_t i = 0; i < b * t * heads; i++)
        for (int64_t pair = 0; pair < d / 2; pair++) {
            const int64_t position = begins ? i / heads % t - begins[i / heads] : begin + i / heads % t;
            double angle = (double)position * rope_frequency(rope, (uint64_t)pair, (uint64_t)d);
            double x = (double)before[i * d + pair], y = (double)before[i * d + d / 2 + pair];
            double first = (double)turned[i * d + pair] - (x * cos(angle) - y * sin(angle));
            double second = (double)turned[i * d + d / 2 + pair] - (y * cos(angle) + x * sin(angle));
            assert_true(fabs(first) <= 3e-5 && fabs(second) <= 3e-5);
        }
}

static void rope_case(const struct kernels *kernels, const int64_t *shape, struct outputs *out,
                      bool check)
{
    int64_t b = shape[0], t = shape[1], h = shape[2], kv = shape[3], d = shape[4], begin = shape[6];
    const struct network_rope *rope = &ropes[shape[5]];
    int64_t q_count = b * t * h * d, k_count = b * t * kv * d;
    float *q = random_array(q_count, 6, 1), *k = random_array(k_count, 7, 1);
    float *q_before = support_floats(q_count), *k_before = support_floats(k_count);
    memcpy(q_before, q, (size_t)q_count * sizeof *q);
    memcpy(k_before, k, (size_t)k_count * sizeof *k);
    struct kernel_rope arguments = {.q = q, .k = k, .b = b, .t = t, .h = h, .kv = kv, .d = d, .begin = begin,
                                    .row_q = h * d,
                                    .row_k = kv * d, .turned = d, .rope = rope};
    int32_t *const begins = shape[7] ? support_tokens(b * t) : NULL;
    for (int64_t i = 0; begins && i < b * t; i++) /* rows of 1, 2, ... tokens, in each sample one more */
        begins[i] = (int32_t)(i % t - i % t % (1 + i / t + shape[7]));
    arguments.begins = begins;
    kernels->rope(kernels, &arguments);
    if (check) {
        check_turned(q, q_before, b, t, begin, begins, h, d, rope);
        check_turned(k, k_before, b, t, begin, begins, kv, d, rope);
    }
    float *q_back = support_floats(q_count), *k_back = support_floats(k_count);
    memcpy(q_back, q, (size_t)q_count * sizeof *q);
    memcpy(k_back, k, (size_t)k_count * sizeof *k);
    arguments.q = q_back;
    arguments.k = k_back;
    arguments.back = true;
    kernels->rope(kernels, &arguments);
    output(out, q, q_count);
    output(out, k, k_count);
    output(out, q_back, q_count);
    for (int64_t i = 0; check && i < q_count; i++)
        assert_true(fabsf(q_back[i] - q_before[i]) <= 1e-6f);
    for (int64_t i = 0; check && i < k_count; i++)
        assert_true(fabsf(k_back[i] - k_before[i]) <= 1e-6f);
}

void test_kernel_rope(void **state)
{
    (void)state;
    static const int64_t sizes[][5] = {{1, 1, 1, 1, 2},   {2, 5, 4, 2, 6},  {1, 130, 6, 3, 64},
                                       {3, 17, 2, 1, 34}, {1, 3, 2, 1, 300}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int64_t kind = 0; kind < ROPE_KIND_COUNT; kind++)
            for (int64_t rows = 0; rows < (test_kernels()->attends_in_rows ? 8 : 1); rows += 7)
                run_case(rope_case, (int64_t[]){sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3],
                                                sizes[i][4], kind, kind % 2 && rows == 0 ? 9 : 0, rows});
}

/* --- SwiGLU ----------------------------------------------------------------------------------- */

static void swiglu_case(const struct kernels *kernels, const int64_t *shape, struct outputs *out,
                        bool check)
{
    int64_t n = shape[0];
    double slack = test_kernels_slack();
    float *gate = random_array(n, 15, 12), *up = random_array(n, 16, 2), *y = empty_array(n);
    float *dgate = random_array(n, 17, 2), *dup = empty_array(n), *dy = support_floats(n);
    memcpy(dy, dgate, (size_t)n * sizeof *dy);
    kernels->swiglu_forward(kernels, y, gate, up, n);
    kernels->swiglu_backward(kernels, dgate, dup, dgate, gate, up, n); /* in place */
    output(out, y, n);
    output(out, dgate, n);
    output(out, dup, n);
    for (int64_t i = 0; check && i < n; i++) {
        double g = (double)gate[i], u = (double)up[i], d = (double)dy[i], s = 1 / (1 + exp(-g));
        assert_true(fabs((double)y[i] - g * s * u) <= slack * (1e-6 * fabs(g * s * u) + 1e-7));
        double want = d * u * (s + g * s * (1 - s));
        assert_true(fabs((double)dgate[i] - want) <= slack * (1e-6 * fabs(want) + 2e-6));
        assert_true(fabs((double)dup[i] - d * g * s) <= slack * (1e-6 * fabs(d * g * s) + 1e-7));
    }
}

void test_kernel_swiglu(void **state)
{
    (void)state;
    static const int64_t counts[] = {1, 63, 64, 65, 127, 1000, 16384, 16385, 40009};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        run_case(swiglu_case, (int64_t[]){counts[i]});
}

/* A kernel makes no NaN of its own, and passes on a NaN from its input. */
void test_kernel_swiglu_extremes(void **state)
{
    (void)state;
    static const float gates[] = {0.0f, -0.0f, 1e-38f, 100.0f, -100.0f, 3e38f, -3e38f};
    enum { N = sizeof gates / sizeof *gates };
    const struct kernels *kernels = test_kernels();
    float *ones = support_floats(N), *y = support_floats(N), *dgate = support_floats(N), *dup = support_floats(N);
    float *gate = support_floats(N);
    memcpy(gate, gates, sizeof gates);
    for (int i = 0; i < N; i++) ones[i] = 1.0f;
    kernels->swiglu_forward(kernels, y, gate, ones, N);
    kernels->swiglu_backward(kernels, dgate, dup, ones, gate, ones, N);
    for (int i = 0; i < N; i++) {
        double want = gate[i] > 10 ? (double)gate[i] : 0;
        assert_true(fabs((double)y[i] - want) <= 1e-6 * fabs(want) + 1e-30);
        assert_true(dup[i] == y[i]);
        double slope = gate[i] > 10 ? 1 : gate[i] < -10 ? 0 : 0.5;
        assert_true(fabs((double)dgate[i] - slope) <= 1e-6);
    }
    gate[0] = NAN;
    kernels->swiglu_forward(kernels, y, gate, ones, 1);
    assert_true(isnan(y[0]));
}
