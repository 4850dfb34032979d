/* label: medium
 * Training a BERT by unit_compute(): gradients against finite differences, 20 steps against PyTorch,
 * the same bits however the network is cut, and what cannot be trained.
 *
 * The golden files are made by tests/golden/families_torch/make_families.py; PyTorch is not needed to
 * run this.
 */
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
                            .family = NETWORK_BERT,
                            .layer_count = 5,
                            .width = 6,
                            .heads = 2,
                            .head_width = 4, /* two of four are wider than the network */
                            .ff_width = 7,
                            .blocks = 3,
                            .vocabulary = 11,
                            .positions = 7,
                            .token_types = 2,
                            .norm_epsilon = 1e-3,
                            .tied_head = true,
                            .biases = true,
                            .initializer_range = 0.02};
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

/* Fills in random tokens; a third of them are to be guessed, the first in any case; token types are random. */
static void fill_batch(const struct job *job, uint64_t seed, uint64_t minibatch, int32_t *batch)
{
    const struct network *n = &job->network;
    uint64_t t = job->sequence, count = job->microbatch * t;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t place = minibatch * count + i;
        int32_t *token = batch + i / t * 3 * t + i % t;
        token[0] = (int32_t)random_below(seed ^ 77, place, n->vocabulary);
        bool guessed = i == 0 || random_below(seed ^ 78, place, 3) == 0;
        token[t] = guessed ? (int32_t)random_below(seed ^ 79, place, n->vocabulary) : -1;
        uint64_t type = n->token_types > 0 ? random_below(seed ^ 80, place, n->token_types) : 0;
        token[2 * t] = (int32_t)(n->vocabulary + n->positions + type);
    }
}

/* --- a forward pass in double ----------------------------------------------------------------- */

/* Computes x(t, c) through one block, in place. */
static void judge_block(const struct network *n, double *x, uint64_t t, const double **cursor)
{
    uint64_t c = n->width, f = n->ff_width, inner = n->heads * n->head_width;
    const double *q_w = judge_next(cursor, inner * c), *q_b = judge_next(cursor, inner);
    const double *k_w = judge_next(cursor, inner * c), *k_b = judge_next(cursor, inner);
    const double *v_w = judge_next(cursor, inner * c), *v_b = judge_next(cursor, inner);
    const double *o_w = judge_next(cursor, c * inner), *o_b = judge_next(cursor, c);
    const double *norm1_w = judge_next(cursor, c), *norm1_b = judge_next(cursor, c);
    const double *fc_w = judge_next(cursor, f * c), *fc_b = judge_next(cursor, f);
    const double *out_w = judge_next(cursor, c * f), *out_b = judge_next(cursor, c);
    const double *norm2_w = judge_next(cursor, c), *norm2_b = judge_next(cursor, c);
    double q[JUDGE_TOKENS_MAX * JUDGE_WIDTH_MAX], k[JUDGE_TOKENS_MAX * JUDGE_WIDTH_MAX],
        v[JUDGE_TOKENS_MAX * JUDGE_WIDTH_MAX];
    double heads[JUDGE_WIDTH_MAX], branch[JUDGE_WIDTH_MAX], wide[JUDGE_WIDTH_MAX];
    assert_true(t <= JUDGE_TOKENS_MAX && c <= JUDGE_WIDTH_MAX && f <= JUDGE_WIDTH_MAX && inner <= JUDGE_WIDTH_MAX);
    for (uint64_t i = 0; i < t; i++) {
        judge_linear(q + i * inner, x + i * c, q_w, q_b, inner, c);
        judge_linear(k + i * inner, x + i * c, k_w, k_b, inner, c);
        judge_linear(v + i * inner, x + i * c, v_w, v_b, inner, c);
    }
    for (uint64_t i = 0; i < t; i++) {
        double *row = x + i * c;
        judge_attention(heads, q, k, v, i, t, n);
        judge_linear(branch, heads, o_w, o_b, c, inner);
        judge_add(row, branch, c);
        judge_norm(row, row, norm1_w, norm1_b, c, n->norm_epsilon);
        judge_linear(wide, row, fc_w, fc_b, f, c);
        for (uint64_t j = 0; j < f; j++) wide[j] = judge_gelu(wide[j]);
        judge_linear(branch, wide, out_w, out_b, c, f);
        judge_add(row, branch, c);
        judge_norm(row, row, norm2_w, norm2_b, c, n->norm_epsilon);
    }
}

struct judge_head {
    const double *word_bias, *transform_w, *transform_b, *norm_w, *norm_b, *table;
};

static double judge_word(const struct network *n, const struct judge_head *head, const double *x,
                         int32_t label)
{
    uint64_t c = n->width;
    double row[JUDGE_WIDTH_MAX];
    judge_linear(row, x, head->transform_w, head->transform_b, c, c);
    for (uint64_t j = 0; j < c; j++) row[j] = judge_gelu(row[j]);
    judge_norm(row, row, head->norm_w, head->norm_b, c, n->norm_epsilon);
    return judge_word_loss(row, head->table, head->word_bias, n->vocabulary, c, label);
}

static double judge(const struct job *job, const int32_t *batch, const double *p)
{
    const struct network *n = &job->network;
    uint64_t c = n->width, t = job->sequence, guessed = 0;
    double total = 0;
    for (uint64_t b = 0; b < job->microbatch; b++) {
        const double *cursor = p, *tables = judge_next(&cursor, network_table_rows(n) * c);
        const double *norm_w = judge_next(&cursor, c), *norm_b = judge_next(&cursor, c);
        const int32_t *tokens = batch + b * 3 * t;
        double x[JUDGE_TOKENS_MAX * JUDGE_WIDTH_MAX];
        for (uint64_t i = 0; i < t; i++) {
            for (uint64_t j = 0; j < c; j++) {
                x[i * c + j] = tables[(uint64_t)tokens[i] * c + j] +
                               tables[(n->vocabulary + i) * c + j];
                if (n->token_types > 0)
                    x[i * c + j] += tables[(uint64_t)tokens[2 * t + i] * c + j];
            }
            judge_norm(x + i * c, x + i * c, norm_w, norm_b, c, n->norm_epsilon);
        }
        for (uint64_t block = 0; block < n->blocks; block++) judge_block(n, x, t, &cursor);
        struct judge_head head = {.word_bias = judge_next(&cursor, n->vocabulary)};
        head.transform_w = judge_next(&cursor, c * c);
        head.transform_b = judge_next(&cursor, c);
        head.norm_w = judge_next(&cursor, c);
        head.norm_b = judge_next(&cursor, c);
        head.table = n->tied_head ? tables : judge_next(&cursor, n->vocabulary * c);
        for (uint64_t i = 0; i < t; i++) {
            if (tokens[t + i] < 0) continue;
            total += judge_word(n, &head, x + i * c, tokens[t + i]);
            guessed++;
        }
    }
    return total / (double)guessed;
}

static struct family_test test = {.fill_batch = fill_batch, .judge = judge};

/* --- gradients -------------------------------------------------------------------------------- */

static void test_gradients(void **state)
{
    (void)state;
    family_check_ways(&test, small_job, 1);
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
    job.network.head_width = 16;
    job.network.ff_width = 259;
    job.network.vocabulary = 509;
    job.network.positions = job.sequence = 130;
    family_check_cuts(&test, &job, false);
}

/* --- logits in pieces ------------------------------------------------------------------------- */

static uint64_t guessed_words(const int32_t *sample, uint64_t t)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < t; i++) count += sample[t + i] >= 0;
    return count;
}

/* 1050 rows in three pieces of 350: ends of pieces and samples do not coincide. */
static void test_pieces(void **state)
{
    (void)state;
    for (int tied = 0; tied < 2; tied++) {
        struct job job = small_job(OPTIMIZER_SGD, tied);
        job.network.vocabulary = 40009;
        job.network.positions = job.sequence = 210;
        job.microbatch = 5;
        family_check_pieces(&test, &job, guessed_words);
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
    n->head_width = 8;
    n->ff_width = 56;
    n->vocabulary = 61;
    n->positions = 20;
    n->norm_epsilon = 1e-12;
    return job;
}

static void test_torch(void **state)
{
    (void)state;
    const struct job job = golden_job();
    family_check_torch(&test, &job, SOURCE_DIR "/tests/golden/families_torch/bert", 1, family_is_key_bias);
}

/* --- what cannot be trained ------------------------------------------------------------------- */

static void test_unsupported(void **state)
{
    (void)state;
    struct job job = small_job(OPTIMIZER_SGD, true);
    struct kernels partial = *test.two;
    assert_null(unit_unsupported(&job));
    assert_null(unit_missing_kernel(&partial, &job));
    partial.loss_labels = NULL;
    assert_string_equal(unit_missing_kernel(&partial, &job), "loss_labels");
    job.network.pooler = true;
    assert_string_equal(unit_unsupported(&job),
                        "its next-sentence classifier is not trained (found a pooler, as "
                        "BertForPreTraining and BertModel have it; expected the architecture "
                        "BertForMaskedLM)");
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
    return family_set_up(&test, "exec/network/bert.c");
}

static int teardown(void **state)
{
    (void)state;
    return family_tear_down(&test);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients),   cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_cuts_larger), cmocka_unit_test(test_pieces), cmocka_unit_test(test_torch),
        cmocka_unit_test(test_unsupported), cmocka_unit_test(test_half),
    };
    return cmocka_run_group_tests_name("exec/network/bert.c", tests, setup, teardown);
}
