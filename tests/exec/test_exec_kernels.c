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

#include "tests/support/kernels/support_kernels.h"

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

/* More numbers than all ranges of usual length have. */
static void test_squares_of_many(void **state)
{
    (void)state;
    enum { N = 9000011 };
    float *const g = malloc(N * sizeof *g);
    assert_non_null(g);
    for (int64_t k = 0; k < N; k++) g[k] = (float)sin((double)(k * k % 8191)) * 3;
    double sum, again;
    long double expected = 0;
    two->squares(two, &sum, g, N, false);
    one->squares(one, &again, g, N, false);
    for (int64_t k = 0; k < N; k++) expected += (long double)g[k] * (long double)g[k];
    assert_true(sum == again);
    assert_true(fabs(sum - (double)expected) <= 1e-13 * sum);
    free(g);
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
        cmocka_unit_test(test_squares_of_many),
        cmocka_unit_test(test_exponential),
        cmocka_unit_test(test_streams),    cmocka_unit_test(test_text),
    };
    return cmocka_run_group_tests_name("exec/kernels/kernels.h", tests, setup, teardown);
}
