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
#include "tests/support/planner/support_family.h"
#include "tests/support/support_seed.h"

static struct family_test test;
static struct kernels *one, *two;

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

enum { TOKENS_MAX = 8, WIDTH_MAX = 32 };

static const double *next(const double **cursor, uint64_t count)
{
    const double *here = *cursor;
    *cursor += count;
    return here;
}

/* out(n) = w(n,k) in(k) + bias(n); bias NULL: none */
static void judge_linear(double *out, const double *in, const double *w, const double *bias,
                         uint64_t n, uint64_t k)
{
    for (uint64_t j = 0; j < n; j++) {
        out[j] = bias ? bias[j] : 0;
        for (uint64_t i = 0; i < k; i++) out[j] += w[j * k + i] * in[i];
    }
}

/* `out` may be `in` */
static void judge_norm(double *out, const double *in, const double *w, const double *b, uint64_t c,
                       double epsilon)
{
    double mean = 0, variance = 0;
    for (uint64_t i = 0; i < c; i++) mean += in[i] / (double)c;
    for (uint64_t i = 0; i < c; i++) variance += (in[i] - mean) * (in[i] - mean) / (double)c;
    for (uint64_t i = 0; i < c; i++)
        out[i] = (in[i] - mean) / sqrt(variance + epsilon) * w[i] + b[i];
}

static double judge_gelu(double x)
{
    return 0.5 * x * erfc(-x / sqrt(2.0));
}

static void judge_attention(double *out, const double *q, const double *k, const double *v,
                            uint64_t i, uint64_t t, const struct network *n)
{
    uint64_t d = n->head_width, row = n->heads * d;
    for (uint64_t head = 0; head < n->heads; head++) {
        double weights[TOKENS_MAX], sum = 0;
        for (uint64_t j = 0; j < t; j++) {
            double score = 0;
            for (uint64_t e = 0; e < d; e++)
                score += q[i * row + head * d + e] * k[j * row + head * d + e];
            weights[j] = exp(score / sqrt((double)d));
            sum += weights[j];
        }
        for (uint64_t e = 0; e < d; e++) {
            out[head * d + e] = 0;
            for (uint64_t j = 0; j < t; j++)
                out[head * d + e] += weights[j] / sum * v[j * row + head * d + e];
        }
    }
}

/* x(t, c) through one block, in place. */
static void judge_block(const struct network *n, double *x, uint64_t t, const double **cursor)
{
    uint64_t c = n->width, f = n->ff_width, inner = n->heads * n->head_width;
    const double *norm1_w = next(cursor, c), *norm1_b = next(cursor, c);
    const double *qkv_w[3], *qkv_b[3];
    for (int part = 0; part < 3; part++) {
        qkv_w[part] = next(cursor, inner * c);
        qkv_b[part] = n->biases ? next(cursor, inner) : NULL;
    }
    const double *o_w = next(cursor, c * inner), *o_b = next(cursor, c);
    const double *norm2_w = next(cursor, c), *norm2_b = next(cursor, c);
    const double *fc_w = next(cursor, f * c), *fc_b = next(cursor, f);
    const double *out_w = next(cursor, c * f), *out_b = next(cursor, c);
    double qkv[3][TOKENS_MAX * WIDTH_MAX], normed[WIDTH_MAX];
    double heads[WIDTH_MAX], branch[WIDTH_MAX], wide[WIDTH_MAX];
    assert_true(t <= TOKENS_MAX && c <= WIDTH_MAX && f <= WIDTH_MAX && inner <= WIDTH_MAX);
    for (uint64_t i = 0; i < t; i++) {
        judge_norm(normed, x + i * c, norm1_w, norm1_b, c, n->norm_epsilon);
        for (int part = 0; part < 3; part++)
            judge_linear(qkv[part] + i * inner, normed, qkv_w[part], qkv_b[part], inner, c);
    }
    for (uint64_t i = 0; i < t; i++) {
        double *row = x + i * c;
        judge_attention(heads, qkv[0], qkv[1], qkv[2], i, t, n);
        judge_linear(branch, heads, o_w, o_b, c, inner);
        for (uint64_t j = 0; j < c; j++) row[j] += branch[j];
        judge_norm(normed, row, norm2_w, norm2_b, c, n->norm_epsilon);
        judge_linear(wide, normed, fc_w, fc_b, f, c);
        for (uint64_t j = 0; j < f; j++) wide[j] = judge_gelu(wide[j]);
        judge_linear(branch, wide, out_w, out_b, c, f);
        for (uint64_t j = 0; j < c; j++) row[j] += branch[j];
    }
}

/* x(t, c) from one image: a convolution, the class token in front, positions. */
static void judge_embedding(const struct network *n, double *x, const float *pixels,
                            const double **cursor)
{
    uint64_t c = n->width, t = network_tokens(n, 0), side = n->image / n->patch;
    const double *token = next(cursor, c), *positions = next(cursor, t * c);
    const double *kernel = next(cursor, c * n->channels * n->patch * n->patch);
    const double *bias = next(cursor, c);
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
        double x[TOKENS_MAX * WIDTH_MAX], logits[WIDTH_MAX], sum = 0;
        judge_embedding(n, x, pixels, &cursor);
        for (uint64_t block = 0; block < n->blocks; block++) judge_block(n, x, t, &cursor);
        const double *norm_w = next(&cursor, c), *norm_b = next(&cursor, c);
        const double *w = next(&cursor, n->classes * c), *bias = next(&cursor, n->classes);
        judge_norm(x, x, norm_w, norm_b, c, n->norm_epsilon);
        judge_linear(logits, x, w, bias, n->classes, c);
        for (uint64_t j = 0; j < n->classes; j++) sum += exp(logits[j]);
        total += log(sum) - logits[batch[b]];
    }
    return total / (double)job->microbatch;
}

/* --- gradients -------------------------------------------------------------------------------- */

static void test_gradients(void **state)
{
    (void)state;
    static const struct trainer_options ways[] = {
        {.blocks_per_shard = 2, .slices = 1, .poison = true},
        {.blocks_per_shard = 1, .head_alone = true, .keep = true, .slices = 1, .poison = true},
        {.blocks_per_shard = 8, .slices = 1, .poison = true},
    };
    double largest = 0;
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        struct job job = small_job(OPTIMIZER_SGD, way != 2);
        largest = fmax(largest, family_check_gradients(&test, &job, &ways[way]));
    }
    print_message("gradients: errors of at most %.1e of their norm\n", largest);
}

/* One patch is the whole image: two tokens. */
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
    for (uint32_t optimizer = 0; optimizer < OPTIMIZER_COUNT; optimizer++)
        for (int biases = 0; biases < 2; biases++) {
            struct job job = small_job(optimizer, biases);
            if (optimizer == OPTIMIZER_SGD) job.optimizer.learning_rate = 0.05;
            family_check_cuts(&test, &job, false);
        }
}

/* Large enough for several tiles, teams and the library's other ways of cutting a product. */
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

/* As make_families.py has it. */
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

/*
 * A bias of the keys shifts all scores of a query alike, which softmax does not see: its gradient is
 * zero but for rounding, and AdamW scales rounding up to steps of the learning rate.
 */
static bool is_noise(const char *name, uint64_t i, uint64_t count)
{
    (void)i;
    (void)count;
    return strstr(name, "key.bias") != NULL;
}

static void test_torch(void **state)
{
    (void)state;
    static const char folder[] = SOURCE_DIR "/tests/golden/families_torch/vit";
    struct job job = golden_job();
    double adamw = family_check_golden(
        &test, &job, &(struct trainer_options){.blocks_per_shard = 2, .slices = 1}, folder,
        "adamw", is_noise);
    double sgd = family_check_golden(
        &test, &job, &(struct trainer_options){.blocks_per_shard = 1, .slices = 1}, folder, "sgd",
        is_noise);
    print_message("PyTorch: losses differ by at most %.1e (adamw) and %.1e (sgd)\n", adamw, sgd);
}

/* --- what cannot be trained ------------------------------------------------------------------- */

static void test_unsupported(void **state)
{
    (void)state;
    struct job job = small_job(OPTIMIZER_SGD, true);
    struct kernels partial = *two;
    assert_null(unit_unsupported(&job));
    assert_null(unit_missing_kernel(&partial, &job));
    partial.patches = NULL;
    assert_string_equal(unit_missing_kernel(&partial, &job), "patches");
}

static int setup(void **state)
{
    (void)state;
    struct error err = {0};
    if (kernels_host_create(1, &one, &err) != STATUS_OK) return -1;
    if (kernels_host_create(2, &two, &err) != STATUS_OK) return -1;
    kernels_host_attach(two);
    test = (struct family_test){.one = one,
                                .two = two,
                                .seed = support_seed("exec/network/vit.c"),
                                .fill_batch = fill_batch,
                                .judge = judge};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    kernels_host_destroy(one);
    kernels_host_destroy(two);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients),   cmocka_unit_test(test_gradients_of_one_patch),
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_cuts_larger), cmocka_unit_test(test_torch),
        cmocka_unit_test(test_unsupported),
    };
    return cmocka_run_group_tests_name("exec/network/vit.c", tests, setup, teardown);
}
