/* Kernels of Llama against plain ones in double, over odd shapes. */
#include "tests/support_kernels.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "models/memory.h"

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
    /* one small number in a row magnifies rounding by 1/rms, at most 1/sqrt(epsilon) = 32 */
    assert_near(dx, want_dx, r * c, c < 8 ? 2e-4 : 2e-5);
    assert_near(dw, want_dw, c, 2e-5);

    /* in place: sum over y, dx over what is added */
    if (residual && add) {
        float *again = take(r * c);
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

static const struct rope ropes[] = {
    {.kind = ROPE_DEFAULT, .theta = 10000},
    {.kind = ROPE_LINEAR, .theta = 500, .factor = 2.5},
    {.kind = ROPE_LLAMA3, .theta = 500, .factor = 8, .low_factor = 0.5, .high_factor = 4,
     .original_positions = 40},
};

/* Angles are rounded to single precision (2^-24 of up to 130): sines err by 130 * 6e-8. */
static void check_turned(const float *turned, const float *before, int64_t b, int64_t t,
                         int64_t heads, int64_t d, const struct rope *rope)
{
    for (int64_t i = 0; i < b * t * heads; i++)
        for (int64_t pair = 0; pair < d / 2; pair++) {
            double angle = (double)(i / heads % t) * rope_frequency(rope, (uint64_t)pair, (uint64_t)d);
            double x = (double)before[i * d + pair], y = (double)before[i * d + d / 2 + pair];
            double first = (double)turned[i * d + pair] - (x * cos(angle) - y * sin(angle));
            double second = (double)turned[i * d + d / 2 + pair] - (y * cos(angle) + x * sin(angle));
            assert_true(fabs(first) <= 3e-5 && fabs(second) <= 3e-5);
        }
}

static void rope_case(const struct kernels *kernels, const int64_t *shape, struct outputs *out,
                      bool check)
{
    int64_t b = shape[0], t = shape[1], h = shape[2], kv = shape[3], d = shape[4];
    const struct rope *rope = &ropes[shape[5]];
    int64_t q_count = b * t * h * d, k_count = b * t * kv * d;
    float *q = random_array(q_count, 6, 1), *k = random_array(k_count, 7, 1);
    float *q_before = take(q_count), *k_before = take(k_count);
    memcpy(q_before, q, (size_t)q_count * sizeof *q);
    memcpy(k_before, k, (size_t)k_count * sizeof *k);
    kernels->rope(kernels, q, k, b, t, h, kv, d, rope, false);
    if (check) {
        check_turned(q, q_before, b, t, h, d, rope);
        check_turned(k, k_before, b, t, kv, d, rope);
    }
    float *q_back = take(q_count), *k_back = take(k_count);
    memcpy(q_back, q, (size_t)q_count * sizeof *q);
    memcpy(k_back, k, (size_t)k_count * sizeof *k);
    kernels->rope(kernels, q_back, k_back, b, t, h, kv, d, rope, true);
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
            run_case(rope_case, (int64_t[]){sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3],
                                            sizes[i][4], kind});
}

/* --- attention with shared keys --------------------------------------------------------------- */

/* One query of one head, there and back. */
static void attend(int64_t i, int64_t d, int64_t row_q, int64_t row_kv, int64_t seen,
                   const float *q, const float *k, const float *v, const float *dout, double *out,
                   double *lse, double *dq, double *dk, double *dv, double *p, double *dp)
{
    double scale = 1 / sqrt((double)d), largest = -INFINITY, sum = 0, delta = 0;
    for (int64_t j = 0; j < seen; j++) {
        p[j] = 0;
        for (int64_t e = 0; e < d; e++)
            p[j] += scale * (double)q[i * row_q + e] * (double)k[j * row_kv + e];
        largest = fmax(largest, p[j]);
    }
    for (int64_t j = 0; j < seen; j++) sum += exp(p[j] - largest);
    lse[i] = largest + log(sum);
    for (int64_t e = 0; e < d; e++) out[i * row_q + e] = 0;
    for (int64_t j = 0; j < seen; j++) {
        p[j] = exp(p[j] - largest) / sum;
        dp[j] = 0;
        for (int64_t e = 0; e < d; e++) {
            double g = (double)dout[i * row_q + e];
            out[i * row_q + e] += p[j] * (double)v[j * row_kv + e];
            dp[j] += g * (double)v[j * row_kv + e];
            dv[j * row_kv + e] += p[j] * g;
        }
        delta += p[j] * dp[j];
    }
    for (int64_t j = 0; j < seen; j++) {
        double ds = p[j] * (dp[j] - delta) * scale;
        for (int64_t e = 0; e < d; e++) {
            dq[i * row_q + e] += ds * (double)k[j * row_kv + e];
            dk[j * row_kv + e] += ds * (double)q[i * row_q + e];
        }
    }
}

static void attention_case(const struct kernels *kernels, const int64_t *shape,
                           struct outputs *out, bool check)
{
    int64_t b = shape[0], t = shape[1], h = shape[2], kv = shape[3], d = shape[4];
    bool causal = shape[5];
    int64_t rows = b * t, row_q = h * d, row_kv = kv * d;
    int64_t tile = t < MEMORY_ATTENTION_TILE ? t : MEMORY_ATTENTION_TILE;
    float *q = random_array(rows * row_q, 8, 3), *k = random_array(rows * row_kv, 9, 3);
    float *v = random_array(rows * row_kv, 10, 3), *dout = random_array(rows * row_q, 11, 1);
    float *result = empty_array(rows * row_q), *stats = empty_array(b * h * t);
    float *dq = empty_array(rows * row_q), *dk = empty_array(rows * row_kv);
    float *dv = empty_array(rows * row_kv), *scratch = empty_array(2 * tile * t * b * h);
    kernels->attention_grouped_forward(kernels, result, stats, q, k, v, b, t, h, kv, d, causal,
                                       scratch);
    kernels->attention_grouped_backward(kernels, dq, dk, dv, dout, q, k, v, result, stats, b, t, h,
                                        kv, d, causal, scratch);
    output(out, result, rows * row_q);
    output(out, stats, b * h * t);
    output(out, dq, rows * row_q);
    output(out, dk, rows * row_kv);
    output(out, dv, rows * row_kv);
    if (!check) return;

    int64_t numbers = rows * (2 * row_q + 2 * row_kv) + b * h * t + 2 * t;
    double *want = calloc((size_t)numbers, sizeof *want), *want_dq = want + rows * row_q;
    double *want_dk = want_dq + rows * row_q, *want_dv = want_dk + rows * row_kv;
    double *lse = want_dv + rows * row_kv, *p = lse + b * h * t, *dp = p + t;
    for (int64_t sample = 0; sample < b; sample++)
        for (int64_t head = 0; head < h; head++)
            for (int64_t i = 0; i < t; i++) {
                int64_t at = sample * t * row_q + head * d;
                int64_t keys = sample * t * row_kv + head / (h / kv) * d;
                attend(i, d, row_q, row_kv, causal ? i + 1 : t, q + at, k + keys, v + keys,
                       dout + at, want + at, lse + (sample * h + head) * t, want_dq + at,
                       want_dk + keys, want_dv + keys, p, dp);
            }
    assert_near(result, want, rows * row_q, 1e-5);
    assert_near(stats, lse, b * h * t, 1e-5);
    assert_near(dq, want_dq, rows * row_q, 5e-5);
    assert_near(dk, want_dk, rows * row_kv, 5e-5);
    assert_near(dv, want_dv, rows * row_kv, 5e-5);
    free(want);
}

void test_kernel_attention_grouped(void **state)
{
    (void)state;
    static const int64_t sizes[][5] = {{1, 1, 1, 1, 1},  {2, 3, 4, 2, 3},   {1, 64, 2, 1, 32},
                                       {1, 65, 6, 3, 8}, {3, 17, 5, 5, 7},  {1, 131, 8, 2, 16},
                                       {2, 200, 4, 1, 24}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int64_t causal = 0; causal < 2; causal++)
            run_case(attention_case, (int64_t[]){sizes[i][0], sizes[i][1], sizes[i][2],
                                                 sizes[i][3], sizes[i][4], causal});
}

/* With as many heads of keys as of queries it is the attention over q, k and v as one: equal bits. */
void test_kernel_attention_as_one(void **state)
{
    (void)state;
    enum { B = 2, T = 70, H = 3, D = 16, C = H * D, ROWS = B * T };
    const struct kernels *kernels = test_kernels();
    float *q = random_array(ROWS * C, 12, 1), *k = random_array(ROWS * C, 13, 1);
    float *v = random_array(ROWS * C, 14, 1), *as_one = take(ROWS * 3 * C);
    float *scratch = take(2 * 64 * T * B * H), *result = take(ROWS * C), *other = take(ROWS * C);
    float *stats = take(B * H * T);
    for (int64_t row = 0; row < ROWS; row++) {
        memcpy(as_one + row * 3 * C, q + row * C, C * sizeof *q);
        memcpy(as_one + row * 3 * C + C, k + row * C, C * sizeof *k);
        memcpy(as_one + row * 3 * C + 2 * C, v + row * C, C * sizeof *v);
    }
    kernels->attention_forward(kernels, result, stats, as_one, B, T, C, H, true, scratch);
    kernels->attention_grouped_forward(kernels, other, stats, q, k, v, B, T, H, H, D, true,
                                       scratch);
    assert_memory_equal(result, other, ROWS * C * sizeof *result);
}

/* --- SwiGLU ----------------------------------------------------------------------------------- */

static void swiglu_case(const struct kernels *kernels, const int64_t *shape, struct outputs *out,
                        bool check)
{
    int64_t n = shape[0];
    double slack = test_kernels_slack();
    float *gate = random_array(n, 15, 12), *up = random_array(n, 16, 2), *y = empty_array(n);
    float *dgate = random_array(n, 17, 2), *dup = empty_array(n), *dy = take(n);
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

/* No NaN comes from nowhere, and a NaN that goes in comes out. */
void test_kernel_swiglu_extremes(void **state)
{
    (void)state;
    static const float gates[] = {0.0f, -0.0f, 1e-38f, 100.0f, -100.0f, 3e38f, -3e38f};
    enum { N = sizeof gates / sizeof *gates };
    const struct kernels *kernels = test_kernels();
    float *ones = take(N), *y = take(N), *dgate = take(N), *dup = take(N), *gate = take(N);
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
