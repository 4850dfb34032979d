/*
 * The kernels of the host: the cases of support_kernels.h on two threads and on one, and the cases
 * that only the host has. The host's kernels are the reference of all other back ends.
 */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/exec/support_kernels.h"

static struct kernels *one, *two;

/* --- numbers too small ------------------------------------------------------------------------ */

static const struct job_optimizer adamw = {.kind = OPTIMIZER_ADAMW,
                                           .learning_rate = 0.0123,
                                           .weight_decay = 0.07,
                                           .beta1 = 0.87,
                                           .beta2 = 0.963,
                                           .epsilon = 3e-7};

/* Second moments below 2^-126 become zero, on each thread of a team. */
static void test_subnormals(void **state)
{
    (void)state;
    enum { N = 100000 };
    test_kernels();
    float *p = support_floats(N), *m = support_floats(N), *v = support_floats(N);
    float *g = support_floats(N);
    for (int i = 0; i < N; i++) {
        p[i] = 0.5f;
        m[i] = g[i] = 0.0f;
        v[i] = 0x1p-126f;
    }
    two->update(two, &(struct kernel_parameters){.p = p, .m = m, .v = v}, g, N, &adamw, false, 1);
    for (int i = 0; i < N; i++) assert_true(v[i] == 0.0f && p[i] == 0.5f);
}

/* --- clipping --------------------------------------------------------------------------------- */

/* Equal up to a double's rounding of n terms, with equal bits on one thread and on two. */
static void test_squares(void **state)
{
    (void)state;
    static const int64_t counts[] = {0, 1, 15, 16, 17, 8192, 8193, 16385, 99991, 9000011};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        int64_t n = counts[i];
        float *g = malloc(((size_t)n + 1) * sizeof *g);
        assert_non_null(g);
        for (int64_t k = 0; k < n; k++) g[k] = (float)sin((double)(k * k % 8191)) * 3;
        double sum = two->squares(two, g, n);
        long double expected = 0;
        for (int64_t k = 0; k < n; k++) expected += (long double)g[k] * (long double)g[k];
        assert_true(sum == one->squares(one, g, n));
        assert_true(fabs(sum - (double)expected) <= 1e-13 * sum);
        free(g);
    }
}

/* A step with a scaled gradient. */
static void test_update_scaled(void **state)
{
    (void)state;
    static const int64_t counts[] = {1, 65, 4097, 50021};
    static const struct job_optimizer kinds[] = {
        {.kind = OPTIMIZER_SGD, .learning_rate = 0.013, .weight_decay = 0.07},
        {.kind = OPTIMIZER_ADAMW, .learning_rate = 0.013, .weight_decay = 0.07, .beta1 = 0.87,
         .beta2 = 0.963, .epsilon = 3e-7},
        {.kind = OPTIMIZER_MOMENTUM, .learning_rate = 0.013, .momentum = 0.83, .nesterov = true}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            test_kernels();
            int64_t n = counts[i];
            uint32_t words = optimizer_moments(kinds[k].kind);
            float *p[2], *m[2], *v[2], *g = random_array(n, 53, 1), *scaled = support_floats(n);
            for (uint32_t w = 0; w < 2; w++) {
                p[w] = random_array(n, 50, 1);
                m[w] = random_array(n, 51, 0.1);
                v[w] = support_floats(n);
                for (int64_t e = 0; e < n; e++) v[w][e] = 0.25f;
            }
            for (int64_t e = 0; e < n; e++) scaled[e] = g[e] * 0.3f;
            struct kernel_parameters of[2];
            for (uint32_t w = 0; w < 2; w++)
                of[w] = (struct kernel_parameters){
                    .p = p[w], .m = words > 0 ? m[w] : NULL, .v = words > 1 ? v[w] : NULL};
            two->update_scaled(two, &of[0], g, n, &kinds[k], true, 7, 0.3f);
            one->update(one, &of[1], scaled, n, &kinds[k], true, 7);
            assert_memory_equal(p[0], p[1], (size_t)n * sizeof *g);
            assert_memory_equal(m[0], m[1], (size_t)n * sizeof *g);
            assert_memory_equal(v[0], v[1], (size_t)n * sizeof *g);
        }
}

/* The gradient followed by a step equals the step that makes no gradient, with a head's and without. */
static void test_embed_gradient(void **state)
{
    (void)state;
    enum { B = 3, T = 29, C = 37, V = 101, P = 33, ROWS = V + P };
    for (int head = 0; head < 2; head++) {
        test_kernels();
        int64_t n = ROWS * C;
        const float *dx = random_array(B * T * C, 60, 1);
        const float *head_gradient = head ? random_array(V * C, 61, 1) : NULL;
        float *fused = support_floats(3 * n), *apart = support_floats(3 * n), *gradient = support_floats(n);
        float *scratch = support_floats(4 * B * T);
        int32_t tokens[B * (T + 1)];
        for (int i = 0; i < B * (T + 1); i++) tokens[i] = i * i % 13 * 7;
        const float *p = random_array(n, 62, 1);
        memset(fused, 0, 3 * (size_t)n * sizeof *p);
        memcpy(fused, p, (size_t)n * sizeof *p);
        memcpy(apart, fused, 3 * (size_t)n * sizeof *p);
        for (int64_t i = 0; i < n; i++) gradient[i] = NAN;
        const struct kernel_parameters of_fused = {.p = fused, .m = fused + n, .v = fused + 2 * n,
                                                    .padded = 1 + 7 * head};
        const struct kernel_parameters of_apart = {.p = apart, .m = apart + n, .v = apart + 2 * n};
        one->embed_update(one, &of_fused, head_gradient, dx, tokens, T + 1, B, T, C, V, 0, ROWS,
                          &adamw, 3, scratch);
        two->embed_gradient(two, gradient, false, head_gradient, dx, tokens, T + 1, B, T, C, V, 0, ROWS,
                            of_fused.padded, scratch);
        two->update(two, &of_apart, gradient, n, &adamw, true, 3);
        assert_memory_equal(fused, apart, 3 * (size_t)n * sizeof *p);
    }
}

/* The gradient of all samples at once equals the gradient that goes on sample by sample. */
static void test_embed_gradient_continues(void **state)
{
    (void)state;
    enum { B = 4, T = 17, C = 37, V = 53, P = 19, ROWS = V + P };
    test_kernels();
    const float *dx = random_array(B * T * C, 63, 1);
    float *once = support_floats(ROWS * C), *apart = support_floats(ROWS * C), *scratch = support_floats(4 * B * T);
    int32_t tokens[B * (T + 1)];
    for (int i = 0; i < B * (T + 1); i++) tokens[i] = i * i % 11 * 3;
    one->embed_gradient(one, once, false, NULL, dx, tokens, T + 1, B, T, C, V, 0, ROWS, 0, scratch);
    for (int b = 0; b < B; b++)
        two->embed_gradient(two, apart, b > 0, NULL, dx + b * T * C, tokens + b * (T + 1), T + 1, 1, T, C, V, 0, ROWS, 0,
                            scratch);
    assert_memory_equal(once, apart, ROWS * C * sizeof *once);
}

/* --- exponential and normal distribution ------------------------------------------------------ */

/*
 * The loss of one row of two logits is log(1 + exp(z)) with target 0, and its gradient contains the
 * exponential itself: exp(z) = d1 / (1 - d1) where d1 is the weight of the other logit. For z <= -17,
 * d1 is exp(z) to within 2^-24, which lets us see the relative error of small results.
 */
static void test_exponential(void **state)
{
    (void)state;
    double worst = 0;
    for (int i = 0; i < 70000; i++) {
        float logits[2] = {0.0f, -17.0f - (float)i * 1e-3f};
        int32_t tokens[2] = {0, 0};
        double loss, expected = exp((double)logits[1]);
        one->loss(one, &loss, logits, tokens, 2, 1, 1, 2,
                  (struct kernel_loss_rows){.count = 1, .parts = 1});
        worst = fmax(worst, fabs((double)logits[1] / expected - 1));
    }
    /* 1.2 ulp of at most 2^-23, and the 2^-24 above */
    assert_true(worst < 2.5e-7);
}

/* --- streams at the same time ----------------------------------------------------------------- */

enum { STREAMS = 3, STREAM_ROUNDS = 40 };
struct stream {
    uint32_t threads;
    const float *x, *w, *qkv;
    float *y, *attention, *stats, *scratch;
    const float *expected_y, *expected_attention;
    bool equal;
};

enum { STREAM_ROWS = 64, STREAM_WIDTH = 96 };

static void *run_stream(void *argument)
{
    struct stream *s = argument;
    struct kernels *kernels = NULL;
    struct error err = {0};
    if (kernels_host_create(s->threads, &kernels, &err) != STATUS_OK) return NULL;
    kernels_host_attach(kernels);
    s->equal = true;
    for (int round = 0; round < STREAM_ROUNDS; round++) {
        int64_t n = 3 * STREAM_WIDTH;
        kernels->linear_forward(kernels, s->y, s->x, s->w, NULL, STREAM_ROWS, n, STREAM_WIDTH,
                                true);
        const struct kernel_attention attention = {.out = s->attention,
                                                   .stats = s->stats,
                                                   .q = s->qkv,
                                                   .k = s->qkv + STREAM_WIDTH,
                                                   .v = s->qkv + 2 * STREAM_WIDTH,
                                                   .scratch = s->scratch,
                                                   .b = 1,
                                                   .t = STREAM_ROWS,
                                                   .h = 4,
                                                   .kv = 4,
                                                   .d = STREAM_WIDTH / 4,
                                                   .row_q = n,
                                                   .row_kv = n,
                                                   .causal = true};
        kernels->attention_forward(kernels, &attention);
        if (!s->expected_y) continue;
        s->equal = s->equal &&
                   memcmp(s->y, s->expected_y, (size_t)(STREAM_ROWS * n) * sizeof *s->y) == 0 &&
                   memcmp(s->attention, s->expected_attention,
                          STREAM_ROWS * STREAM_WIDTH * sizeof *s->attention) == 0;
    }
    kernels_host_destroy(kernels);
    return NULL;
}

/* Streams of one, one and two threads compute the same at the same time: each gets the result
 * that it gets when it is the only stream. */
static void test_streams(void **state)
{
    (void)state;
    test_kernels();
    int64_t n = 3 * STREAM_WIDTH;
    struct stream streams[STREAMS + 1] = {0};
    const float *x = random_array(STREAM_ROWS * STREAM_WIDTH, 30, 1);
    const float *w = random_array(STREAM_WIDTH * n, 31, 1);
    const float *qkv = random_array(STREAM_ROWS * n, 32, 1);
    for (int i = 0; i <= STREAMS; i++)
        streams[i] = (struct stream){.threads = i == STREAMS - 1 ? 2 : 1,
                                     .x = x,
                                     .w = w,
                                     .qkv = qkv,
                                     .y = empty_array(STREAM_ROWS * n),
                                     .attention = empty_array(STREAM_ROWS * STREAM_WIDTH),
                                     .stats = empty_array(4 * STREAM_ROWS),
                                     .scratch = empty_array(4 * 2 * 64 * STREAM_ROWS)};
    run_stream(&streams[STREAMS]); /* alone */
    pthread_t threads[STREAMS];
    for (int i = 0; i < STREAMS; i++) {
        streams[i].expected_y = streams[STREAMS].y;
        streams[i].expected_attention = streams[STREAMS].attention;
        assert_int_equal(pthread_create(&threads[i], NULL, run_stream, &streams[i]), 0);
    }
    for (int i = 0; i < STREAMS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(streams[i].equal);
    }
    kernels_host_attach(two);
}

/* --- the table -------------------------------------------------------------------------------- */

static void test_text(void **state)
{
    (void)state;
    assert_non_null(strstr(kernels_host_text(), "oneDNN "));
    struct kernels *kernels = NULL;
    struct error err = {0};
    assert_int_equal(kernels_host_create(2, &kernels, &err), STATUS_OK);
    assert_non_null(strstr(kernels_host_text(), ", 2 threads, "));
    assert_non_null(strstr(kernels_host_text(), " GFLOP/s in a product of 512^3"));
    kernels_host_destroy(kernels);
}

static int setup(void **state)
{
    (void)state;
    struct error err = {0};
    if (kernels_host_create(1, &one, &err) != STATUS_OK) return -1;
    if (kernels_host_create(2, &two, &err) != STATUS_OK) return -1;
    kernels_host_attach(two);
    return kernel_cases_setup(&(struct kernel_cases){
        .first = two, .second = one, .attach = kernels_host_attach, .shift = 1, .slack = 1});
}

static int teardown(void **state)
{
    (void)state;
    kernels_host_destroy(one);
    kernels_host_destroy(two);
    kernel_cases_teardown();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        KERNEL_CASES(KERNEL_CASE_TEST)
        cmocka_unit_test(test_subnormals),
        cmocka_unit_test(test_squares),
        cmocka_unit_test(test_update_scaled),
        cmocka_unit_test(test_embed_gradient),
        cmocka_unit_test(test_embed_gradient_continues), cmocka_unit_test(test_exponential),
        cmocka_unit_test(test_streams),    cmocka_unit_test(test_text),
    };
    return cmocka_run_group_tests_name("exec/kernels/kernels.h", tests, setup, teardown);
}
