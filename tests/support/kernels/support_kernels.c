/*
 * Compares each kernel with a plain one in double, over odd shapes, on the back end that the caller names. Also checks
 * that bits depend neither on the number of threads nor on the place of the data.
 *
 * Inputs are random, a function of the seed. A reference is written here from the formula in exec/kernels/kernels.h,
 * one number at a time. Every kernel runs on one table, then on another, then with all arrays shifted; results must be
 * equal bit by bit. All data of a kernel is in one pool, so that a back end with its own memory can copy the pool there
 * and back around each call.
 */
#include "tests/support/kernels/support_kernels.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "models/job/memory.h"
#include "tests/support/support_cases.h"

/* --- linear layers ---------------------------------------------------------------------------- */

static double weight_at(const float *w, int64_t in, int64_t out, int64_t n, int64_t k, bool in_out)
{
    return (double)(in_out ? w[in * n + out] : w[out * k + in]);
}

static void linear_case(const struct kernels *kernels, const int64_t *shape, struct outputs *out,
                        bool check)
{
    int64_t m = shape[0], n = shape[1], k = shape[2];
    bool in_out = shape[3], with_bias = shape[4], accumulate = shape[5];
    uint32_t add = (uint32_t)shape[6];
    float *x = random_array(m * k, 1, 1), *w = random_array(n * k, 2, 1);
    float *bias = random_array(n, 3, 1), *dy = random_array(m * n, 4, 1);
    bool add_weight = add & KERNEL_LINEAR_ADD_WEIGHT, add_bias = add & KERNEL_LINEAR_ADD_BIAS;
    float *y = empty_array(m * n), *dx = random_array(m * k, 5, 1), *before = support_floats(m * k);
    float *dw = add_weight ? random_array(n * k, 6, 1) : empty_array(n * k);
    float *dbias = add_bias ? random_array(n, 7, 1) : empty_array(n);
    float *dw_before = support_floats(n * k), *dbias_before = support_floats(n);
    memcpy(before, dx, (size_t)(m * k) * sizeof *dx);
    memcpy(dw_before, dw, (size_t)(n * k) * sizeof *dw);
    memcpy(dbias_before, dbias, (size_t)n * sizeof *dbias);
    kernels->linear_forward(kernels, y, x, w, with_bias ? bias : NULL, m, n, k, in_out);
    kernels->linear_input(kernels, dx, dy, w, m, n, k, in_out, accumulate);
    kernels->linear_weight(kernels, dw, with_bias ? dbias : NULL, dy, x, m, n, k, in_out, add);
    output(out, y, m * n);
    output(out, dx, m * k);
    output(out, dw, n * k);
    if (with_bias) output(out, dbias, n);
    if (!check) return;

    double *want = malloc((size_t)(m * n + m * k + n * k + n) * sizeof *want);
    double *want_dx = want + m * n, *want_dw = want_dx + m * k, *want_db = want_dw + n * k;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = with_bias ? (double)bias[j] : 0;
            for (int64_t l = 0; l < k; l++)
                sum += (double)x[i * k + l] * weight_at(w, l, j, n, k, in_out);
            want[i * n + j] = sum;
        }
    for (int64_t i = 0; i < m; i++)
        for (int64_t l = 0; l < k; l++) {
            double sum = accumulate ? (double)before[i * k + l] : 0;
            for (int64_t j = 0; j < n; j++)
                sum += (double)dy[i * n + j] * weight_at(w, l, j, n, k, in_out);
            want_dx[i * k + l] = sum;
        }
    for (int64_t j = 0; j < n; j++) {
        want_db[j] = add_bias ? (double)dbias_before[j] : 0;
        for (int64_t i = 0; i < m; i++) want_db[j] += (double)dy[i * n + j];
        for (int64_t l = 0; l < k; l++) {
            int64_t at = in_out ? l * n + j : j * k + l;
            double sum = add_weight ? (double)dw_before[at] : 0;
            for (int64_t i = 0; i < m; i++) sum += (double)dy[i * n + j] * (double)x[i * k + l];
            want_dw[at] = sum;
        }
    }
    assert_near(y, want, m * n, 2e-5);
    assert_near(dx, want_dx, m * k, 2e-5);
    assert_near(dw, want_dw, n * k, 2e-5);
    if (with_bias) assert_near(dbias, want_db, n, 2e-5);
    free(want);
}

void test_kernel_linear(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {{1, 1, 1},    {3, 5, 7},       {17, 129, 31}, {67, 1, 13},
                                       {1, 131, 48}, {131, 257, 127}, {64, 128, 96}, {200, 96, 1}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int64_t form = 0; form < 8; form++) /* additions: all pairs of flags in eight forms */
            run_case(linear_case, (int64_t[]){sizes[i][0], sizes[i][1], sizes[i][2], form & 1,
                                              form >> 1 & 1, form >> 2 & 1, (form + (int64_t)i) % 4});
}

/* --- elementwise ------------------------------------------------------------------------------ */

static double gelu(double x, bool tanh_form)
{
    if (!tanh_form) return x * 0.5 * erfc(-x / sqrt(2.0));
    return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

static double gelu_slope(double x, bool tanh_form)
{
    if (!tanh_form)
        return 0.5 * erfc(-x / sqrt(2.0)) + x * exp(-x * x / 2) / sqrt(2 * M_PI);
    double root = sqrt(2 / M_PI), u = root * (x + 0.044715 * x * x * x), t = tanh(u);
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * root * (1 + 3 * 0.044715 * x * x);
}

static void elementwise_case(const struct kernels *kernels, const int64_t *shape,
                             struct outputs *out, bool check)
{
    int64_t n = shape[0];
    bool tanh_form = shape[1];
    float *x = random_array(n, 6, 12), *dy = random_array(n, 7, 2), *y = empty_array(n);
    float *dx = support_floats(n), *z = empty_array(n), *z_in_place = support_floats(n);
    memcpy(dx, dy, (size_t)n * sizeof *dx);
    memcpy(z_in_place, dy, (size_t)n * sizeof *z);
    kernels->gelu_forward(kernels, y, x, n, tanh_form);
    kernels->gelu_backward(kernels, dx, dx, x, n, tanh_form);
    kernels->residual(kernels, z, x, dy, n);
    kernels->residual(kernels, z_in_place, x, z_in_place, n);
    output(out, y, n);
    output(out, dx, n);
    output(out, z, n);
    output(out, z_in_place, n);
    if (!check) return;
    for (int64_t i = 0; i < n; i++) {
        double in = (double)x[i], want = gelu(in, tanh_form);
        assert_true(fabs((double)y[i] - want) <= test_kernels_slack() * (1e-6 * fabs(want) + 2e-7));
        double slope = (double)dy[i] * gelu_slope(in, tanh_form);
        assert_true(fabs((double)dx[i] - slope) <= test_kernels_slack() * (1e-6 * fabs(slope) + 2e-6));
        assert_true(z[i] == x[i] + dy[i] && z_in_place[i] == z[i]);
    }
}

void test_kernel_elementwise(void **state)
{
    (void)state;
    static const int64_t counts[] = {1, 63, 64, 65, 127, 1000, 16384, 16385, 40009};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (int64_t tanh_form = 0; tanh_form < 2; tanh_form++)
            run_case(elementwise_case, (int64_t[]){counts[i], tanh_form});
}

static void relu_case(const struct kernels *kernels, const int64_t *shape, struct outputs *out, bool check)
{
    const int64_t n = shape[0];
    float *x = random_array(n, 6, 12), *dy = random_array(n, 7, 2), *y = empty_array(n), *dx = support_floats(n);
    memcpy(dx, dy, (size_t)n * sizeof *dx);
    x[0] = 0;
    kernels->relu_forward(kernels, y, x, n);
    kernels->relu_backward(kernels, dx, dx, x, n);
    output(out, y, n);
    output(out, dx, n);
    for (int64_t i = 0; check && i < n; i++) assert_true(y[i] == fmaxf(x[i], 0) && dx[i] == (x[i] > 0 ? dy[i] : 0));
}

void test_kernel_relu(void **state)
{
    (void)state;
    static const int64_t counts[] = {1, 63, 65, 16385};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) run_case(relu_case, &counts[i]);
}

/* Extreme arguments: a kernel makes no NaN of its own, and passes on a NaN from its input. */
void test_kernel_gelu_extremes(void **state)
{
    (void)state;
    const struct kernels *k = test_kernels();
    static const float in[] = {0.0f, -0.0f, 1e-38f, 20.0f, -20.0f, 1e6f, -1e6f, 3e38f, -3e38f};
    enum { N = sizeof in / sizeof *in };
    for (int form = 0; form < 2; form++) {
        test_kernels();
        float *y = support_floats(N), *dx = support_floats(N), *ones = support_floats(N), *x = support_floats(N);
        memcpy(x, in, sizeof in);
        for (int i = 0; i < N; i++) ones[i] = 1.0f;
        k->gelu_forward(k, y, x, N, form);
        k->gelu_backward(k, dx, ones, x, N, form);
        for (int i = 0; i < N; i++) {
            if (fabsf(in[i]) > 1e30f) continue; /* x^3 has no float: only the sign of y is known */
            double want = in[i] > 10 ? (double)in[i] : 0;
            assert_true(fabs((double)y[i] - want) <= 1e-6 * fabs(want) + 1e-30);
            double slope = in[i] > 10 ? 1 : in[i] < -10 ? 0 : 0.5;
            assert_true(fabs((double)dx[i] - slope) <= 1e-6);
        }
        x[0] = NAN;
        k->gelu_forward(k, y, x, 1, form);
        assert_true(isnan(y[0]));
    }
}

/* --- norm ------------------------------------------------------------------------------------- */

static void norm_reference(double *out, double *dx, double *dw, double *db, const double *sum,
                           const float *w, const float *b, const float *dout, const float *added,
                           int64_t r, int64_t c, double epsilon)
{
    for (int64_t j = 0; j < c; j++) dw[j] = db[j] = 0;
    for (int64_t i = 0; i < r; i++) {
        const double *x = sum + i * c;
        double mean = 0, variance = 0, g_mean = 0, gn_mean = 0;
        for (int64_t j = 0; j < c; j++) mean += x[j] / (double)c;
        for (int64_t j = 0; j < c; j++) variance += (x[j] - mean) * (x[j] - mean) / (double)c;
        double inverse = 1 / sqrt(variance + epsilon);
        for (int64_t j = 0; j < c; j++) {
            double n = (x[j] - mean) * inverse, d = (double)dout[i * c + j];
            out[i * c + j] = n * (double)w[j] + (double)b[j];
            g_mean += d * (double)w[j] / (double)c;
            gn_mean += d * (double)w[j] * n / (double)c;
            dw[j] += d * n;
            db[j] += d;
        }
        for (int64_t j = 0; j < c; j++) {
            double n = (x[j] - mean) * inverse;
            double g = ((double)dout[i * c + j] * (double)w[j] - g_mean - n * gn_mean) * inverse;
            dx[i * c + j] = g + (added ? (double)added[i * c + j] : 0);
        }
    }
}

static void norm_case(const struct kernels *kernels, const int64_t *shape, struct outputs *out,
                      bool check)
{
    int64_t r = shape[0], c = shape[1];
    bool residual = shape[2], add = shape[3];
    const float epsilon = 1e-5f;
    float *x = random_array(r * c, 8, 2), *y = random_array(r * c, 9, 1);
    float *w = random_array(c, 10, 1.5), *b = random_array(c, 11, 1);
    float *dout = random_array(r * c, 12, 1), *added = random_array(r * c, 13, 1);
    float *result = empty_array(r * c), *sum = empty_array(r * c), *stats = empty_array(2 * r);
    float *dx = empty_array(r * c), *dw = empty_array(c), *db = empty_array(c);
    kernels->norm_forward(kernels, result, sum, stats, x, residual ? y : NULL, w, b, r, c, epsilon);
    const float *in = residual ? sum : x;
    kernels->norm_backward(kernels, dx, dw, db, dout, in, stats, w, add ? added : NULL, r, c);
    output(out, result, r * c);
    output(out, stats, 2 * r);
    output(out, dx, r * c);
    output(out, dw, c);
    output(out, db, c);
    if (residual) output(out, sum, r * c);
    if (!check) return;

    double *exact = malloc((size_t)(3 * r * c + 2 * c) * sizeof *exact);
    double *want = exact + r * c, *want_dx = want + r * c, *want_dw = want_dx + r * c;
    for (int64_t i = 0; i < r * c; i++) {
        if (residual) assert_true(sum[i] == x[i] + y[i]);
        exact[i] = (double)in[i];
    }
    norm_reference(want, want_dx, want_dw, want_dw + c, exact, w, b, dout, add ? added : NULL, r,
                   c, (double)epsilon);
    assert_near(result, want, r * c, c == 1 ? 1e-6 : 2e-5);
    /* rounding in a row of two nearly equal numbers is magnified by 1/std */
    assert_near(dx, want_dx, r * c, c < 8 ? 2e-2 : 1e-4);
    assert_near(dw, want_dw, c, 1e-4);
    assert_near(db, want_dw + c, c, 2e-5);

    /* in place: the sum goes over y, dx over the added array */
    if (residual && add) {
        float *again = support_floats(r * c);
        memcpy(again, y, (size_t)(r * c) * sizeof *again);
        kernels->norm_forward(kernels, result, again, stats, x, again, w, b, r, c, epsilon);
        assert_memory_equal(again, sum, (size_t)(r * c) * sizeof *sum);
        memcpy(again, added, (size_t)(r * c) * sizeof *again);
        kernels->norm_backward(kernels, again, dw, db, dout, sum, stats, w, again, r, c);
        assert_memory_equal(again, dx, (size_t)(r * c) * sizeof *dx);
    }
    free(exact);
}

void test_kernel_norm(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{1, 1},   {2, 3},    {5, 31},   {64, 64},
                                       {65, 67}, {130, 48}, {33, 193}, {257, 128}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int64_t form = 0; form < 4; form++)
            run_case(norm_case, (int64_t[]){sizes[i][0], sizes[i][1], form & 1, form >> 1});
}

/* --- loss ------------------------------------------------------------------------------------- */

static void loss_case(const struct kernels *kernels, const int64_t *shape, struct outputs *out,
                      bool check)
{
    int64_t b = shape[0], t = shape[1], v = shape[2], piece = shape[3], rows = b * t;
    float *logits = random_array(rows * v, 16, 8), *before = support_floats(rows * v);
    memcpy(before, logits, (size_t)(rows * v) * sizeof *before);
    int32_t *tokens = random_tokens(b * (t + 1), 17, v);
    double *loss = support_loss();
    struct kernel_loss_rows part = {.parts = 1};
    for (; part.first < rows; part.first += piece) {
        part.count = rows - part.first < piece ? rows - part.first : piece;
        kernels->loss(kernels, loss, logits + part.first * v, tokens, t + 1, b, t, v, part);
    }
    out->loss = *loss;
    output(out, logits, rows * v);
    if (check) {
        double *want = malloc((size_t)(rows * v) * sizeof *want), total = 0;
        for (int64_t r = 0; r < rows; r++) {
            const float *z = before + r * v;
            int64_t target = tokens[r / t * (t + 1) + r % t + 1];
            double largest = -INFINITY, sum = 0;
            for (int64_t j = 0; j < v; j++) largest = fmax(largest, (double)z[j]);
            for (int64_t j = 0; j < v; j++) sum += exp((double)z[j] - largest);
            for (int64_t j = 0; j < v; j++)
                want[r * v + j] =
                    (exp((double)z[j] - largest) / sum - (j == target)) / (double)rows;
            total += log(sum) + largest - (double)z[target];
        }
        /* relative to the size of a gradient, 1 / rows */
        for (int64_t i = 0; i < rows * v; i++)
            assert_true(fabs((double)logits[i] - want[i]) <= test_kernels_slack() * 1e-6 / (double)rows);
        assert_true(fabs(out->loss - total / (double)rows) <= test_kernels_slack() * 1e-6 * (1 + out->loss));
        free(want);
    }
}

void test_kernel_loss(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {{1, 1, 1},    {1, 1, 2},    {3, 5, 97},
                                       {1, 64, 511}, {2, 33, 1024}, {5, 307, 67}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int64_t rows = sizes[i][0] * sizes[i][1], pieces[] = {rows, (rows + 2) / 3, 1 + rows / 2};
        for (int p = 0; p < 3; p++)
            run_case(loss_case, (int64_t[]){sizes[i][0], sizes[i][1], sizes[i][2], pieces[p]});
    }
}

/* --- optimizer -------------------------------------------------------------------------------- */

static const struct job_optimizer adamw = {.kind = OPTIMIZER_ADAMW,
                                           .learning_rate = 0.0123,
                                           .weight_decay = 0.07,
                                           .beta1 = 0.87,
                                           .beta2 = 0.963,
                                           .epsilon = 3e-7};
static const struct job_optimizer sgd = {
    .kind = OPTIMIZER_SGD, .learning_rate = 0.0123, .weight_decay = 0.07};
static const struct job_optimizer momentum = {.kind = OPTIMIZER_MOMENTUM,
                                              .learning_rate = 0.0123,
                                              .weight_decay = 0.07,
                                              .momentum = 0.83};
static const struct job_optimizer nesterov = {.kind = OPTIMIZER_MOMENTUM,
                                              .learning_rate = 0.0123,
                                              .weight_decay = 0.07,
                                              .momentum = 0.83,
                                              .nesterov = true};
static const struct job_optimizer *const optimizers[] = {&sgd, &adamw, &momentum, &nesterov};

static double reference_step(const struct job_optimizer *o, double p, double *m, double *v, double g,
                             bool decays, uint64_t step)
{
    double decay = decays || o->decay == DECAY_ALL ? o->weight_decay : 0;
    if (o->kind == OPTIMIZER_SGD) return p - o->learning_rate * (g + decay * p);
    if (o->kind == OPTIMIZER_MOMENTUM) {
        double d = g + decay * p;
        *m = o->momentum * *m + d;
        return p - o->learning_rate * (o->nesterov ? d + o->momentum * *m : *m);
    }
    *m = o->beta1 * *m + (1 - o->beta1) * g;
    *v = o->beta2 * *v + (1 - o->beta2) * g * g;
    double m_hat = *m / (1 - pow(o->beta1, (double)step));
    double v_hat = *v / (1 - pow(o->beta2, (double)step));
    return p * (1 - o->learning_rate * decay) -
           o->learning_rate * m_hat / (sqrt(v_hat) + o->epsilon);
}

static void update_case(const struct kernels *kernels, const int64_t *shape, struct outputs *out,
                        bool check)
{
    int64_t n = shape[0];
    struct job_optimizer optimizer = *optimizers[shape[1]];
    uint32_t words = optimizer_moments(optimizer.kind);
    bool decays = shape[2] == 1;
    if (shape[2] == 2) optimizer.decay = DECAY_ALL;
    float *p = random_array(n, 18, 1), *m = random_array(n, 19, 0.1), *v = random_array(n, 20, 0.1);
    float *g = random_array(n, 21, 1), *before = support_floats(3 * n);
    for (int64_t i = 0; i < n; i++) v[i] = fabsf(v[i]);
    memcpy(before, p, (size_t)n * sizeof *p);
    memcpy(before + n, m, (size_t)n * sizeof *p);
    memcpy(before + 2 * n, v, (size_t)n * sizeof *p);
    const struct kernel_parameters parameters = {
        .p = p, .m = words > 0 ? m : NULL, .v = words > 1 ? v : NULL};
    kernels->update(kernels, &parameters, g, n, &optimizer, decays, 7);
    output(out, p, n);
    output(out, m, n);
    output(out, v, n);
    if (!check) return;
    for (int64_t i = 0; i < n; i++) {
        double want_m = (double)before[n + i], want_v = (double)before[2 * n + i];
        double want = reference_step(&optimizer, (double)before[i], &want_m, &want_v, (double)g[i],
                                     decays, 7);
        assert_true(fabs((double)p[i] - want) <= 1e-6);
        /* sums of gradients are ten times as large as moments */
        double most = optimizer.kind == OPTIMIZER_MOMENTUM ? 5e-7 : 1e-7;
        assert_true(fabs((double)m[i] - want_m) <= most && fabs((double)v[i] - want_v) <= 1e-7);
    }
}

void test_kernel_update(void **state)
{
    (void)state;
    static const int64_t counts[] = {1, 63, 64, 65, 1000, 16385, 50021};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (int64_t form = 0; form < 4; form++)
            for (int64_t decay = 0; decay < 3; decay++)
                run_case(update_case, (int64_t[]){counts[i], form, decay});
}

/* --- embedding -------------------------------------------------------------------------------- */

enum { PARTS = 3 };

/* Returns the first row of slice k of V + P rows; shape[6] is the number of slices. */
static int64_t cut_at(int64_t rows, int64_t slices, int64_t k)
{
    return rows * k / slices;
}

/* An embedding's forward pass and update. */
struct embed_run {
    int64_t b, t, c, v, rows;
    bool with_head;
    int64_t padded; /* a token without a gradient + 1; 0: none */
    const int32_t *tokens;
    const float *x, *dx, *head, *before, *state; /* state `before` and after the update */
    const struct job_optimizer *optimizer;
};

static void check_embedding(const struct embed_run *e)
{
    const int64_t b = e->b, t = e->t, c = e->c, v = e->v, rows = e->rows;
    double *g = calloc((size_t)(rows * c), sizeof *g);
    for (int64_t r = 0; r < b * t; r++) {
        int64_t token = e->tokens[r / t * (t + 1) + r % t], position = v + r % t;
        for (int64_t i = 0; i < c; i++) {
            assert_true(e->x[r * c + i] == e->before[token * c + i] + e->before[position * c + i]);
            if (token + 1 != e->padded) g[token * c + i] += (double)e->dx[r * c + i];
            g[position * c + i] += (double)e->dx[r * c + i];
        }
    }
    for (int64_t i = 0; i < rows * c; i++) {
        if (e->with_head && i < v * c) g[i] += (double)e->head[i];
        double m = (double)e->before[rows * c + i], s = (double)e->before[2 * rows * c + i];
        double want = reference_step(e->optimizer, (double)e->before[i], &m, &s, g[i], true, 3);
        assert_true(fabs((double)e->state[i] - want) <= 1e-5);
    }
    free(g);
}

static void embed_case(const struct kernels *kernels, const int64_t *shape, struct outputs *out,
                       bool check)
{
    int64_t b = shape[0], t = shape[1], c = shape[2], v = shape[3], positions = shape[4];
    bool with_head = shape[5];
    int64_t slices = shape[6], rows = v + positions;
    struct job_optimizer optimizer = shape[7] ? adamw : sgd;
    if (shape[7] == 2) optimizer = (struct job_optimizer){.kind = OPTIMIZER_SGD, .learning_rate = 0.5};
    if (shape[7] == 3) optimizer = nesterov;
    uint32_t parts = 1 + optimizer_moments(optimizer.kind);

    float *state = support_floats(PARTS * rows * c), *x = empty_array(b * t * c);
    for (int64_t i = 0; i < PARTS * rows * c; i++)
        state[i] = (float)(random_unit(test_kernels_seed() ^ 22, (uint64_t)i) - (i < rows * c ? 0.5 : 0));
    float *head = random_array(v * c, 23, 1), *dx = random_array(b * t * c, 24, 1);
    float *before = support_floats(PARTS * rows * c), *piece = support_floats(PARTS * rows * c);
    memcpy(before, state, (size_t)(PARTS * rows * c) * sizeof *state);
    int32_t *tokens = random_tokens(b * (t + 1), 25, v);
    for (int64_t i = 0; i < b * (t + 1); i++) /* few different tokens, so that rows repeat */
        tokens[i] = tokens[i] / 3 * 2;
    float *scratch = support_floats_aligned(MEMORY_EMBEDDING_WORDS * b * t);
    int64_t padded = with_head ? tokens[0] + 1 : 0; /* in some cases a token that occurs */

    for (int64_t k = 0; k < slices; k++) {
        int64_t first = cut_at(rows, slices, k), count = cut_at(rows, slices, k + 1) - first;
        kernels->embed_forward(kernels, x, state + first * c, tokens, t + 1, b, t, c, v, first,
                               count);
    }
    for (int64_t k = 0; k < slices; k++) {
        int64_t first = cut_at(rows, slices, k), count = cut_at(rows, slices, k + 1) - first;
        size_t bytes = (size_t)(count * c) * sizeof *state;
        for (uint32_t part = 0; part < parts; part++)
            memcpy(piece + part * count * c, state + part * rows * c + first * c, bytes);
        const float *slice_head = with_head && first < v ? head + first * c : NULL;
        const struct kernel_parameters of_piece = {.p = piece,
                                                   .m = parts > 1 ? piece + count * c : NULL,
                                                   .v = parts > 2 ? piece + 2 * count * c : NULL,
                                                   .padded = padded};
        kernels->embed_update(kernels, &of_piece, slice_head, dx, tokens, t + 1, b, t, c, v, first,
                              count, &optimizer, 3, 1, scratch);
        for (uint32_t part = 0; part < parts; part++)
            memcpy(state + part * rows * c + first * c, piece + part * count * c, bytes);
    }
    output(out, x, b * t * c);
    output(out, state, PARTS * rows * c);

    if (check) {
        const struct embed_run run = {b, t, c, v, rows, with_head, padded, tokens, x, dx, head, before, state,
                                      &optimizer};
        check_embedding(&run);
    }
}

void test_kernel_embedding(void **state)
{
    (void)state;
    static const int64_t sizes[][5] = {
        {1, 1, 1, 1, 1}, {2, 5, 7, 11, 9}, {3, 17, 65, 97, 17}, {2, 40, 130, 1201, 64}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int64_t form = 0; form < 8; form++) {
            int64_t shape[8] = {sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3],
                                sizes[i][4], form % 2,    1,           form / 2};
            run_case(embed_case, shape);
        }
}

/* The whole embedding and slices of it give the same bits. */
void test_kernel_embedding_slices(void **state)
{
    (void)state;
    for (int64_t form = 0; form < 8; form++) {
        struct outputs whole = {0};
        const struct kernels *kernels = test_kernels();
        embed_case(kernels, (int64_t[]){3, 17, 65, 97, 20, form % 2, 1, form / 2}, &whole, false);
        for (int64_t slices = 2; slices < 9; slices += 3) {
            struct outputs cut = {0};
            embed_case(kernels, (int64_t[]){3, 17, 65, 97, 20, form % 2, slices, form / 2}, &cut,
                       false);
            for (int i = 0; i < whole.count; i++)
                assert_memory_equal(whole.at[i], cut.at[i],
                                    (size_t)whole.floats[i] * sizeof(float));
        }
    }
}
