/*
 * Training a ViT by unit_compute(): gradients against finite differences, 20 steps against PyTorch, the
 * same bits however the network is cut, and kernels that a back end may lack.
 *
 * The golden files are made by tests/golden/families_torch/make_families.py; PyTorch is not needed to
 * run this.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "tests/support/kernels/support_layers_judge.h"
#include "tests/support/planner/support_family.h"

static struct network small_network(void)
{
    return (struct network){.name = "test",
                            .family = NETWORK_VIT,
                            .layer_count = 5,
                            .width = 6,
                            .heads = 2,
                            .head_width = 4, /* two of four are wider than the network */
                            .ff_width = 7,
                            .blocks = 3,
                            .image = 6,
                            .patch = 3,
                            .channels = 2,
                            .classes = 5,
                            .norm_epsilon = 1e-3,
                            .biases = true,
                            .initializer_range = 0.02};
}

static struct job small_job(uint32_t optimizer, bool biases)
{
    struct job job = {.name = "small",
                      .network = small_network(),
                      .microbatch = 3, .microbatches = 1,
                      .minibatches = 4,
                      .optimizer = family_optimizer(optimizer),
                      .data_format = DATA_NONE};
    job.network.biases = biases;
    job.sequence = network_tokens(&job.network, 0);
    return job;
}

static uint64_t pixels_of(const struct network *n)
{
    return n->channels * n->image * n->image;
}

static void fill_batch(const struct job *job, uint64_t seed, uint64_t minibatch, int32_t *batch)
{
    const struct network *n = &job->network;
    uint64_t count = job->microbatch * pixels_of(n);
    float *pixels = (float *)(void *)(batch + job->microbatch);
    for (uint64_t b = 0; b < job->microbatch; b++)
        batch[b] = (int32_t)random_below(seed ^ 77, minibatch * job->microbatch + b, n->classes);
    for (uint64_t i = 0; i < count; i++)
        pixels[i] = (float)(2 * random_unit(seed ^ 78, minibatch * count + i) - 1);
}

/* --- a forward pass in double ----------------------------------------------------------------- */

/* Computes x(t, c) through one block, in place. */
static void judge_block(const struct network *n, double *x, uint64_t t, const double **cursor)
{
    uint64_t c = n->width, f = n->ff_width, inner = n->heads * n->head_width;
    const double *norm1_w = judge_next(cursor, c), *norm1_b = judge_next(cursor, c);
    const double *qkv_w[3], *qkv_b[3];
    for (int part = 0; part < 3; part++) {
        qkv_w[part] = judge_next(cursor, inner * c);
        qkv_b[part] = n->biases ? judge_next(cursor, inner) : NULL;
    }
    const double *o_w = judge_next(cursor, c * inner), *o_b = judge_next(cursor, c);
    const double *norm2_w = judge_next(cursor, c), *norm2_b = judge_next(cursor, c);
    const double *fc_w = judge_next(cursor, f * c), *fc_b = judge_next(cursor, f);
    const double *out_w = judge_next(cursor, c * f), *out_b = judge_next(cursor, c);
    double qkv[3][JUDGE_TOKENS_MAX * JUDGE_WIDTH_MAX], normed[JUDGE_WIDTH_MAX];
    double heads[JUDGE_WIDTH_MAX], branch[JUDGE_WIDTH_MAX], wide[JUDGE_WIDTH_MAX];
    assert_true(t <= JUDGE_TOKENS_MAX && c <= JUDGE_WIDTH_MAX && f <= JUDGE_WIDTH_MAX && inner <= JUDGE_WIDTH_MAX);
    for (uint64_t i = 0; i < t; i++) {
        judge_norm(normed, x + i * c, norm1_w, norm1_b, c, n->norm_epsilon);
        for (int part = 0; part < 3; part++)
            judge_linear(qkv[part] + i * inner, normed, qkv_w[part], qkv_b[part], inner, c);
    }
    for (uint64_t i = 0; i < t; i++) {
        double *row = x + i * c;
        judge_attention(heads, qkv[0], qkv[1], qkv[2], i, t, n);
        judge_linear(branch, heads, o_w, o_b, c, inner);
        judge_add(row, branch, c);
        judge_norm(normed, row, norm2_w, norm2_b, c, n->norm_epsilon);
        judge_linear(wide, normed, fc_w, fc_b, f, c);
        for (uint64_t j = 0; j < f; j++) wide[j] = judge_gelu(wide[j]);
        judge_linear(branch, wide, out_w, out_b, c, f);
        judge_add(row, branch, c);
    }
}

/* x(t, c) from one image: a convolution, the class token in front, positions. */
static void judge_embedding(const struct network *n, double *x, const float *pixels,
                            const double **cursor)
{
    uint64_t c = n->width, t = network_tokens(n, 0), side = n->image / n->patch;
    const double *token = judge_next(cursor, c), *positions = judge_next(cursor, t * c);
    const double *kernel = judge_next(cursor, c * n->channels * n->patch * n->patch);
    const double *bias = judge_next(cursor, c);
    for (uint64_t j = 0; j < c; j++) x[j] = token[j] + positions[j];
    for (uint64_t i = 1; i < t; i++)
        for (uint64_t j = 0; j < c; j++) {
            uint64_t top = (i - 1) / side * n->patch, left = (i - 1) % side * n->patch;
            const double *w = kernel + j * n->channels * n->patch * n->patch;
            double sum = bias[j] + positions[i * c + j];
            for (uint64_t channel = 0; channel < n->channels; channel++)
                for (uint64_t y = 0; y < n->patch; y++)
                    for (uint64_t z = 0; z < n->patch; z++)
                        sum += w[(channel * n->patch + y) * n->patch + z] *
                               (double)pixels[(channel * n->image + top + y) * n->image + left + z];
            x[i * c + j] = sum;
        }
}

static double judge(const struct job *job, const int32_t *batch, const double *p)
{
    const struct network *n = &job->network;
    uint64_t c = n->width, t = job->sequence;
    double total = 0;
    for (uint64_t b = 0; b < job->microbatch; b++) {
        const float *pixels =
            (const float *)(const void *)(batch + job->microbatch) + b * pixels_of(n);
        const double *cursor = p;
        double x[JUDGE_TOKENS_MAX * JUDGE_WIDTH_MAX], logits[JUDGE_WIDTH_MAX], sum = 0;
        judge_embedding(n, x, pixels, &cursor);
        for (uint64_t block = 0; block < n->blocks; block++) judge_block(n, x, t, &cursor);
        const double *norm_w = judge_next(&cursor, c), *norm_b = judge_next(&cursor, c);
        const double *w = judge_next(&cursor, n->classes * c), *bias = judge_next(&cursor, n->classes);
        judge_norm(x, x, norm_w, norm_b, c, n->norm_epsilon);
        judge_linear(logits, x, w, bias, n->classes, c);
        for (uint64_t j = 0; j < n->classes; j++) sum += exp(logits[j]);
        total += log(sum) - logits[batch[b]];
    }
    return total / (double)job->microbatch;
}

static struct family_test test = {.fill_batch = fill_batch, .judge = judge};

/* --- gradients -------------------------------------------------------------------------------- */

static void test_gradients(void **state)
{
    (void)state;
    family_check_ways(&test, small_job, 1);
}

/* One patch is the whole image, so there are two tokens. */
static void test_gradients_of_one_patch(void **state)
{
    (void)state;
    struct job job = small_job(OPTIMIZER_SGD, true);
    job.network.image = 3;
    job.sequence = network_tokens(&job.network, 0);
    assert_int_equal(job.sequence, 2);
    family_check_gradients(&test, &job,
                           &(struct trainer_options){.blocks_per_shard = 2, .slices = 1});
}

/* --- the same bits in every cut --------------------------------------------------------------- */

static void test_cuts(void **state)
{
    (void)state;
    family_check_optimizers(&test, small_job, false);
}

/* Large enough for several tiles, teams and the library's other ways of dividing a product. */
static void test_cuts_larger(void **state)
{
    (void)state;
    struct job job = small_job(OPTIMIZER_ADAMW, true);
    job.network.width = 96;
    job.network.heads = 6;
    job.network.head_width = 20;
    job.network.ff_width = 259;
    job.network.image = 44;
    job.network.patch = 4;
    job.network.channels = 3;
    job.network.classes = 37;
    job.sequence = network_tokens(&job.network, 0);
    family_check_cuts(&test, &job, false);
}

/* --- PyTorch ---------------------------------------------------------------------------------- */

/* Makes the job of make_families.py. */
static struct job golden_job(void)
{
    struct job job = {.name = "golden",
                      .network = small_network(),
                      .microbatch = 3, .microbatches = 1,
                      .minibatches = 20};
    struct network *n = &job.network;
    n->width = 32;
    n->heads = 3;
    n->head_width = 12;
    n->ff_width = 56;
    n->image = 8;
    n->patch = 4;
    n->channels = 3;
    n->classes = 7;
    n->norm_epsilon = 1e-12;
    job.sequence = network_tokens(n, 0);
    return job;
}

static void test_torch(void **state)
{
    (void)state;
    const struct job job = golden_job();
    family_check_torch(&test, &job, SOURCE_DIR "/tests/golden/families_torch/vit", 1, family_is_key_bias);
}

/* --- what cannot be trained ------------------------------------------------------------------- */

static void test_unsupported(void **state)
{
    (void)state;
    struct job job = small_job(OPTIMIZER_SGD, true);
    struct kernels partial = *test.two;
    assert_null(unit_unsupported(&job));
    assert_null(unit_missing_kernel(&partial, &job));
    partial.patches = NULL;
    assert_string_equal(unit_missing_kernel(&partial, &job), "patches");
}

static void test_half(void **state)
{
    (void)state;
    for (int choice = 0; choice < 2; choice++) {
        struct job job = small_job(OPTIMIZER_SGD, choice);
        family_check_half(&test, &job, false);
    }
}

static int setup(void **state)
{
    (void)state;
    return family_set_up(&test, "exec/network/vit.c");
}

static int teardown(void **state)
{
    (void)state;
    return family_tear_down(&test);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients),   cmocka_unit_test(test_gradients_of_one_patch),
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_cuts_larger), cmocka_unit_test(test_torch),
        cmocka_unit_test(test_unsupported), cmocka_unit_test(test_half),
    };
    return cmocka_run_group_tests_name("exec/network/vit.c", tests, setup, teardown);
}
