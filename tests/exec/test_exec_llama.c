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

#include "tests/support/exec/support_layers_judge.h"
#include "tests/support/planner/support_family.h"

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

static void judge_rms_norm(double *out, const double *in, const double *w, uint64_t c, double epsilon)
{
    double squares = 0;
    for (uint64_t i = 0; i < c; i++) squares += in[i] * in[i] / (double)c;
    for (uint64_t i = 0; i < c; i++) out[i] = in[i] / sqrt(squares + epsilon) * w[i];
}

/* Heads of one token: element e of the first half is paired with element e of the second half. */
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

static void judge_group_attention(double *out, const double *q, const double *k, const double *v,
                            uint64_t i, const struct network *n)
{
    uint64_t d = n->head_width, row = n->kv_heads * d;
    for (uint64_t head = 0; head < n->heads; head++) {
        uint64_t shared = head * n->kv_heads / n->heads * d;
        double weights[JUDGE_TOKENS_MAX], sum = 0;
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

/* Computes x(t, c) through one block, in place. */
static void judge_block(const struct network *n, double *x, uint64_t t, const double **cursor)
{
    uint64_t c = n->width, f = n->ff_width, inner = n->heads * n->head_width;
    uint64_t shared = n->kv_heads * n->head_width;
    const double *q_w = judge_next(cursor, inner * c), *k_w = judge_next(cursor, shared * c);
    const double *v_w = judge_next(cursor, shared * c), *o_w = judge_next(cursor, c * inner);
    const double *gate_w = judge_next(cursor, f * c), *up_w = judge_next(cursor, f * c);
    const double *down_w = judge_next(cursor, c * f);
    const double *norm1_w = judge_next(cursor, c), *norm2_w = judge_next(cursor, c);
    double q[JUDGE_TOKENS_MAX * JUDGE_WIDTH_MAX], k[JUDGE_TOKENS_MAX * JUDGE_WIDTH_MAX], v[JUDGE_TOKENS_MAX * JUDGE_WIDTH_MAX];
    double normed[JUDGE_WIDTH_MAX], heads[JUDGE_WIDTH_MAX], branch[JUDGE_WIDTH_MAX], gate[JUDGE_WIDTH_MAX], up[JUDGE_WIDTH_MAX];
    assert_true(t <= JUDGE_TOKENS_MAX && c <= JUDGE_WIDTH_MAX && f <= JUDGE_WIDTH_MAX && inner <= JUDGE_WIDTH_MAX);
    for (uint64_t i = 0; i < t; i++) {
        judge_rms_norm(normed, x + i * c, norm1_w, c, n->norm_epsilon);
        judge_linear(q + i * inner, normed, q_w, NULL, inner, c);
        judge_linear(k + i * shared, normed, k_w, NULL, shared, c);
        judge_linear(v + i * shared, normed, v_w, NULL, shared, c);
        judge_turn(q + i * inner, n->heads, n->head_width, i, n->rope.theta);
        judge_turn(k + i * shared, n->kv_heads, n->head_width, i, n->rope.theta);
    }
    for (uint64_t i = 0; i < t; i++) {
        judge_group_attention(heads, q, k, v, i, n);
        judge_linear(branch, heads, o_w, NULL, c, inner);
        judge_add(x + i * c, branch, c);
        judge_rms_norm(normed, x + i * c, norm2_w, c, n->norm_epsilon);
        judge_linear(gate, normed, gate_w, NULL, f, c);
        judge_linear(up, normed, up_w, NULL, f, c);
        for (uint64_t j = 0; j < f; j++) up[j] *= gate[j] / (1 + exp(-gate[j]));
        judge_linear(branch, up, down_w, NULL, c, f);
        judge_add(x + i * c, branch, c);
    }
}

static double judge(const struct job *job, const int32_t *batch, const double *p)
{
    const struct network *n = &job->network;
    uint64_t c = n->width, v = n->vocabulary, t = job->sequence;
    double total = 0;
    for (uint64_t b = 0; b < job->microbatch; b++) {
        const double *cursor = p, *table = judge_next(&cursor, v * c);
        const int32_t *tokens = batch + b * (t + 1);
        double x[JUDGE_TOKENS_MAX * JUDGE_WIDTH_MAX];
        for (uint64_t i = 0; i < t; i++)
            for (uint64_t j = 0; j < c; j++) x[i * c + j] = table[(uint64_t)tokens[i] * c + j];
        for (uint64_t block = 0; block < n->blocks; block++) judge_block(n, x, t, &cursor);
        const double *norm_w = judge_next(&cursor, c);
        const double *head = n->tied_head ? table : judge_next(&cursor, v * c);
        for (uint64_t i = 0; i < t; i++) {
            double normed[JUDGE_WIDTH_MAX];
            judge_rms_norm(normed, x + i * c, norm_w, c, n->norm_epsilon);
            total += judge_word_loss(normed, head, NULL, v, c, tokens[i + 1]);
        }
    }
    return total / (double)(job->microbatch * t);
}

static struct family_test test = {.fill_batch = family_fill_tokens, .judge = judge};

/* --- gradients -------------------------------------------------------------------------------- */

static void test_gradients(void **state)
{
    (void)state;
    family_check_ways(&test, small_job, 3);
}

/* Each head with its own keys and values, and all heads with the same. */
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
    family_check_optimizers(&test, small_job, true);
}

/* Large enough for several tiles, teams and the library's other ways of dividing a product. */
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

/* 1050 rows in three pieces of 350: ends of pieces and samples do not coincide. */
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

/* Makes the job of make_families.py. */
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
    const struct job job = golden_job();
    family_check_torch(&test, &job, SOURCE_DIR "/tests/golden/families_torch/llama", 4, NULL);
}

/* --- what cannot be trained ------------------------------------------------------------------- */

static void test_missing_kernels(void **state)
{
    (void)state;
    struct job job = small_job(OPTIMIZER_SGD, true);
    struct kernels partial = *test.two;
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
    return family_set_up(&test, "exec/network/llama.c");
}

static int teardown(void **state)
{
    (void)state;
    return family_tear_down(&test);
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
