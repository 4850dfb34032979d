/* label: medium
 * Training a Llama by unit_compute(): gradients against finite differences, 20 steps against PyTorch,
 * the same bits however the network is cut, and kernels that a back end may lack.
 *
 * The golden files are made by tests/golden/families_torch/make_families.py; PyTorch is not needed to
 * run this.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/planner/support_family.h"
#include "tests/support/support_seed.h"

static struct family_test test;
static struct kernels *one, *two;

static struct network small_network(void)
{
    return (struct network){.name = "test",
                            .family = NETWORK_LLAMA,
                            .layer_count = 5,
                            .width = 6,
                            .heads = 4,
                            .kv_heads = 2,
                            .head_width = 4, /* four of four are wider than the network */
                            .ff_width = 7,
                            .blocks = 3,
                            .vocabulary = 11,
                            .positions = 9,
                            .norm_epsilon = 1e-3,
                            .tied_head = true,
                            .causal = true,
                            .initializer_range = 0.02,
                            .rope = {.kind = ROPE_DEFAULT, .theta = 7}};
}

static struct job small_job(uint32_t optimizer, bool tied)
{
    struct job job = {.name = "small",
                      .network = small_network(),
                      .sequence = 5,
                      .microbatch = 2, .microbatches = 1,
                      .minibatches = 4,
                      .optimizer = family_optimizer(optimizer),
                      .data_format = DATA_NONE};
    job.network.tied_head = tied;
    return job;
}

/* --- a forward pass in double ----------------------------------------------------------------- */

enum { TOKENS_MAX = 8, WIDTH_MAX = 32 };

static const double *next(const double **cursor, uint64_t count)
{
    const double *here = *cursor;
    *cursor += count;
    return here;
}

/* out(n) = w(n,k) in(k) */
static void judge_linear(double *out, const double *in, const double *w, uint64_t n, uint64_t k)
{
    for (uint64_t j = 0; j < n; j++) {
        out[j] = 0;
        for (uint64_t i = 0; i < k; i++) out[j] += w[j * k + i] * in[i];
    }
}

static void judge_norm(double *out, const double *in, const double *w, uint64_t c, double epsilon)
{
    double squares = 0;
    for (uint64_t i = 0; i < c; i++) squares += in[i] * in[i] / (double)c;
    for (uint64_t i = 0; i < c; i++) out[i] = in[i] / sqrt(squares + epsilon) * w[i];
}

/* Heads of one token: element e of the first half is paired with that of the second. */
static void judge_turn(double *x, uint64_t heads, uint64_t d, uint64_t position, double theta)
{
    for (uint64_t head = 0; head < heads; head++, x += d)
        for (uint64_t e = 0; e < d / 2; e++) {
            double angle = (double)position / pow(theta, 2.0 * (double)e / (double)d);
            double a = x[e], b = x[e + d / 2];
            x[e] = a * cos(angle) - b * sin(angle);
            x[e + d / 2] = b * cos(angle) + a * sin(angle);
        }
}

static void judge_attention(double *out, const double *q, const double *k, const double *v,
                            uint64_t i, const struct network *n)
{
    uint64_t d = n->head_width, row = n->kv_heads * d;
    for (uint64_t head = 0; head < n->heads; head++) {
        uint64_t shared = head * n->kv_heads / n->heads * d;
        double weights[TOKENS_MAX], sum = 0;
        for (uint64_t j = 0; j <= i; j++) {
            double score = 0;
            for (uint64_t e = 0; e < d; e++)
                score += q[i * n->heads * d + head * d + e] * k[j * row + shared + e];
            weights[j] = exp(score / sqrt((double)d));
            sum += weights[j];
        }
        for (uint64_t e = 0; e < d; e++) {
            out[head * d + e] = 0;
            for (uint64_t j = 0; j <= i; j++)
                out[head * d + e] += weights[j] / sum * v[j * row + shared + e];
        }
    }
}

/* x(t, c) through one block, in place. */
static void judge_block(const struct network *n, double *x, uint64_t t, const double **cursor)
{
    uint64_t c = n->width, f = n->ff_width, inner = n->heads * n->head_width;
    uint64_t shared = n->kv_heads * n->head_width;
    const double *q_w = next(cursor, inner * c), *k_w = next(cursor, shared * c);
    const double *v_w = next(cursor, shared * c), *o_w = next(cursor, c * inner);
    const double *gate_w = next(cursor, f * c), *up_w = next(cursor, f * c);
    const double *down_w = next(cursor, c * f);
    const double *norm1_w = next(cursor, c), *norm2_w = next(cursor, c);
    double q[TOKENS_MAX * WIDTH_MAX], k[TOKENS_MAX * WIDTH_MAX], v[TOKENS_MAX * WIDTH_MAX];
    double normed[WIDTH_MAX], heads[WIDTH_MAX], branch[WIDTH_MAX], gate[WIDTH_MAX], up[WIDTH_MAX];
    assert_true(t <= TOKENS_MAX && c <= WIDTH_MAX && f <= WIDTH_MAX && inner <= WIDTH_MAX);
    for (uint64_t i = 0; i < t; i++) {
        judge_norm(normed, x + i * c, norm1_w, c, n->norm_epsilon);
        judge_linear(q + i * inner, normed, q_w, inner, c);
        judge_linear(k + i * shared, normed, k_w, shared, c);
        judge_linear(v + i * shared, normed, v_w, shared, c);
        judge_turn(q + i * inner, n->heads, n->head_width, i, n->rope.theta);
        judge_turn(k + i * shared, n->kv_heads, n->head_width, i, n->rope.theta);
    }
    for (uint64_t i = 0; i < t; i++) {
        judge_attention(heads, q, k, v, i, n);
        judge_linear(branch, heads, o_w, c, inner);
        for (uint64_t j = 0; j < c; j++) x[i * c + j] += branch[j];
        judge_norm(normed, x + i * c, norm2_w, c, n->norm_epsilon);
        judge_linear(gate, normed, gate_w, f, c);
        judge_linear(up, normed, up_w, f, c);
        for (uint64_t j = 0; j < f; j++) up[j] *= gate[j] / (1 + exp(-gate[j]));
        judge_linear(branch, up, down_w, c, f);
        for (uint64_t j = 0; j < c; j++) x[i * c + j] += branch[j];
    }
}

static double judge(const struct job *job, const int32_t *batch, const double *p)
{
    const struct network *n = &job->network;
    uint64_t c = n->width, v = n->vocabulary, t = job->sequence;
    double total = 0;
    for (uint64_t b = 0; b < job->microbatch; b++) {
        const double *cursor = p, *table = next(&cursor, v * c);
        const int32_t *tokens = batch + b * (t + 1);
        double x[TOKENS_MAX * WIDTH_MAX];
        for (uint64_t i = 0; i < t; i++)
            for (uint64_t j = 0; j < c; j++) x[i * c + j] = table[(uint64_t)tokens[i] * c + j];
        for (uint64_t block = 0; block < n->blocks; block++) judge_block(n, x, t, &cursor);
        const double *norm_w = next(&cursor, c);
        const double *head = n->tied_head ? table : next(&cursor, v * c);
        for (uint64_t i = 0; i < t; i++) {
            double normed[WIDTH_MAX], sum = 0, at_target = 0;
            judge_norm(normed, x + i * c, norm_w, c, n->norm_epsilon);
            for (uint64_t word = 0; word < v; word++) {
                double logit = 0;
                for (uint64_t j = 0; j < c; j++) logit += normed[j] * head[word * c + j];
                sum += exp(logit);
                if ((int32_t)word == tokens[i + 1]) at_target = logit;
            }
            total += log(sum) - at_target;
        }
    }
    return total / (double)(job->microbatch * t);
}

/* --- gradients -------------------------------------------------------------------------------- */

static void test_gradients(void **state)
{
    (void)state;
    static const struct trainer_options ways[] = {
        {.blocks_per_shard = 2, .slices = 1, .poison = true},
        {.blocks_per_shard = 1, .head_alone = true, .keep = true, .slices = 3, .poison = true},
        {.blocks_per_shard = 8, .slices = 1, .poison = true},
    };
    double largest = 0;
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        struct job job = small_job(OPTIMIZER_SGD, way != 2);
        largest = fmax(largest, family_check_gradients(&test, &job, &ways[way]));
    }
    print_message("gradients: errors of at most %.1e of their norm\n", largest);
}

/* Every head with keys and values of its own, and all with the same. */
static void test_gradients_of_other_groups(void **state)
{
    (void)state;
    for (uint64_t kv = 1; kv <= 4; kv += 3) {
        struct job job = small_job(OPTIMIZER_SGD, true);
        job.network.kv_heads = kv;
        family_check_gradients(&test, &job,
                               &(struct trainer_options){.blocks_per_shard = 2, .slices = 1});
    }
}

/* --- the same bits in every cut --------------------------------------------------------------- */

static void test_cuts(void **state)
{
    (void)state;
    for (uint32_t optimizer = 0; optimizer < OPTIMIZER_COUNT; optimizer++)
        for (int tied = 0; tied < 2; tied++) {
            struct job job = small_job(optimizer, tied);
            if (optimizer == OPTIMIZER_SGD) job.optimizer.learning_rate = 0.05;
            family_check_cuts(&test, &job, true);
        }
}

/* Large enough for several tiles, teams and the library's other ways of cutting a product. */
static void test_cuts_larger(void **state)
{
    (void)state;
    struct job job = small_job(OPTIMIZER_ADAMW, true);
    job.network.width = 96;
    job.network.heads = 6;
    job.network.kv_heads = 3;
    job.network.head_width = 16;
    job.network.ff_width = 259;
    job.network.vocabulary = 509;
    job.network.positions = job.sequence = 130;
    family_check_cuts(&test, &job, true);
}

/* --- logits in pieces ------------------------------------------------------------------------- */

/* 1050 rows in three pieces of 350: the ends of pieces and samples do not meet. */
static void test_pieces(void **state)
{
    (void)state;
    for (int tied = 0; tied < 2; tied++) {
        struct job job = small_job(OPTIMIZER_SGD, tied);
        job.network.vocabulary = 40009;
        job.network.positions = job.sequence = 210;
        job.microbatch = 5;
        family_check_pieces(&test, &job, NULL);
    }
}

/* --- PyTorch ---------------------------------------------------------------------------------- */

/* As make_families.py has it. */
static struct job golden_job(void)
{
    struct job job = {.name = "golden",
                      .network = small_network(),
                      .sequence = 16,
                      .microbatch = 3, .microbatches = 1,
                      .minibatches = 20};
    struct network *n = &job.network;
    n->width = 32;
    n->heads = 4;
    n->kv_heads = 2;
    n->head_width = 8;
    n->ff_width = 56;
    n->blocks = 3;
    n->layer_count = 5;
    n->vocabulary = 61;
    n->positions = 16;
    n->norm_epsilon = 1e-5;
    n->tied_head = false;
    n->rope = (struct network_rope){.kind = ROPE_LLAMA3,
                                    .theta = 100,
                                    .factor = 4,
                                    .low_factor = 0.25,
                                    .high_factor = 1.5,
                                    .original_positions = 12};
    return job;
}

static void test_torch(void **state)
{
    (void)state;
    static const char folder[] = SOURCE_DIR "/tests/golden/families_torch/llama";
    struct job job = golden_job();
    double adamw = family_check_golden(
        &test, &job, &(struct trainer_options){.blocks_per_shard = 2, .slices = 1}, folder,
        "adamw", NULL);
    double sgd = family_check_golden(
        &test, &job, &(struct trainer_options){.blocks_per_shard = 1, .slices = 4}, folder, "sgd",
        NULL);
    print_message("PyTorch: losses differ by at most %.1e (adamw) and %.1e (sgd)\n", adamw, sgd);
}

/* --- what cannot be trained ------------------------------------------------------------------- */

static void test_missing_kernels(void **state)
{
    (void)state;
    struct job job = small_job(OPTIMIZER_SGD, true);
    struct kernels partial = *two;
    assert_null(unit_unsupported(&job));
    assert_null(unit_missing_kernel(&partial, &job));
    partial.rope = NULL;
    assert_string_equal(unit_missing_kernel(&partial, &job), "rope");
    job.network = support_gpt2_network(6, 2, 3, 11, 7);
    assert_null(unit_missing_kernel(&partial, &job));
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
                                .seed = support_seed("exec/network/llama.c"),
                                .fill_batch = family_fill_tokens,
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
        cmocka_unit_test(test_gradients), cmocka_unit_test(test_gradients_of_other_groups),
        cmocka_unit_test(test_cuts),      cmocka_unit_test(test_cuts_larger),
        cmocka_unit_test(test_pieces), cmocka_unit_test(test_torch),     cmocka_unit_test(test_missing_kernels),
    };
    return cmocka_run_group_tests_name("exec/network/llama.c", tests, setup, teardown);
}
