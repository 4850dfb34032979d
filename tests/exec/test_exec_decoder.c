/* label: medium
 * Training gpt_neox (also with parts one after the other), gptj, phi and opt by unit_compute(): gradients against
 * finite differences of a forward pass in double, 20 steps against PyTorch, the same bits however the network is cut.
 *
 * The golden files are made by tests/golden/families_torch/make_families.py; PyTorch is not needed to run this.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/size.h"
#include "tests/support/kernels/support_layers_judge.h"
#include "tests/support/planner/support_family.h"

enum { SERIAL_NEOX = NETWORK_FAMILY_COUNT };
static const uint32_t families[] = {NETWORK_GPT_NEOX, NETWORK_GPTJ, NETWORK_PHI, NETWORK_OPT, SERIAL_NEOX};

static struct network small_network(uint32_t family)
{
    const bool serial = family == SERIAL_NEOX;
    if (serial) family = NETWORK_GPT_NEOX;
    return (struct network){.name = "test",
                            .family = family,
                            .serial_residual = serial,
                            .has_padding = family == NETWORK_OPT,
                            .padding_token = 4,
                            .layer_count = 5,
                            .width = 24,
                            .heads = 4,
                            .kv_heads = family == NETWORK_PHI ? 2 : 4,
                            .head_width = 6,
                            .rotary_width = family == NETWORK_OPT ? 0 : 4,
                            .ff_width = 7,
                            .blocks = 3,
                            .vocabulary = 11,
                            .positions = 9,
                            .norm_epsilon = 1e-3,
                            .causal = true,
                            .biases = family != NETWORK_GPTJ,
                            .gelu_tanh = family != NETWORK_GPT_NEOX,
                            .initializer_range = 0.02,
                            .rope = {.kind = ROPE_DEFAULT, .theta = 7}};
}

static struct job small_job(uint32_t family, uint32_t optimizer)
{
    return (struct job){.name = "small",
                        .network = small_network(family),
                        .sequence = 5,
                        .microbatch = 2, .microbatches = 1,
                        .minibatches = 4,
                        .optimizer = family_optimizer(optimizer),
                        .data_format = DATA_NONE};
}

/* --- a forward pass in double ----------------------------------------------------------------- */

static void judge_turn(double *head, uint64_t turned, uint64_t position, double theta, bool adjacent)
{
    for (uint64_t i = 0; i < turned / 2; i++) {
        const double angle = (double)position / pow(theta, 2.0 * (double)i / (double)turned);
        double *const first = head + (adjacent ? 2 * i : i), *const second = adjacent ? first + 1 : first + turned / 2;
        const double a = *first, b = *second;
        *first = a * cos(angle) - b * sin(angle);
        *second = b * cos(angle) + a * sin(angle);
    }
}

static double judge_activation(const struct network *n, double x)
{
    const bool tanh_form = n->gelu_tanh;
    if (n->family == NETWORK_OPT) return x > 0 ? x : 0;
    if (!tanh_form) return x * (1 + erf(x / sqrt(2))) / 2;
    return x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))) / 2;
}

struct weights {
    const double *norm1[2], *qkv[3], *qkv_bias[3], *out[2], *norm2[2], *fc[2], *fc2[2];
};

/* Takes a block's tensors; one tensor of q, k and v has them one after the other. */
static struct weights judge_weights(const struct network *n, const double **cursor)
{
    const uint64_t c = n->width, inner = n->heads * n->head_width, shared = n->kv_heads * n->head_width;
    const bool fused = n->family == NETWORK_GPT_NEOX;
    struct weights w = {.norm1 = {judge_next(cursor, c), NULL}};
    w.norm1[1] = judge_next(cursor, c);
    for (int i = 0; i < 3; i++) {
        w.qkv[i] = judge_next(cursor, (i == 0 ? inner : shared) * c);
        if (n->biases && !fused) w.qkv_bias[i] = judge_next(cursor, i == 0 ? inner : shared);
    }
    for (int i = 0; i < 3 && fused; i++) w.qkv_bias[i] = judge_next(cursor, inner);
    w.out[0] = judge_next(cursor, c * inner);
    if (n->family != NETWORK_GPTJ) w.out[1] = judge_next(cursor, c);
    for (int i = 0; i < 2 && (fused || n->family == NETWORK_OPT); i++) w.norm2[i] = judge_next(cursor, c);
    w.fc[0] = judge_next(cursor, n->ff_width * c);
    w.fc[1] = judge_next(cursor, n->ff_width);
    w.fc2[0] = judge_next(cursor, c * n->ff_width);
    w.fc2[1] = judge_next(cursor, c);
    return w;
}

static void judge_causal(double *out, const double *q, const double *k, const double *v, uint64_t i,
                         const struct network *n)
{
    const uint64_t d = n->head_width, row_q = n->heads * d, row = n->kv_heads * d;
    for (uint64_t head = 0; head < n->heads; head++) {
        const uint64_t shared = head * n->kv_heads / n->heads * d;
        double weights[JUDGE_TOKENS_MAX], sum = 0;
        for (uint64_t j = 0; j <= i; j++) {
            double score = 0;
            for (uint64_t e = 0; e < d; e++) score += q[i * row_q + head * d + e] * k[j * row + shared + e];
            sum += weights[j] = exp(score / sqrt((double)d));
        }
        for (uint64_t e = 0; e < d; e++) {
            out[head * d + e] = 0;
            for (uint64_t j = 0; j <= i; j++) out[head * d + e] += weights[j] / sum * v[j * row + shared + e];
        }
    }
}

static bool is_serial(const struct network *n) { return n->serial_residual || n->family == NETWORK_OPT; }

/* Computes x(t, c) through one block, in place. */
static void judge_block(const struct network *n, double *x, uint64_t t, const double **cursor)
{
    const struct weights w = judge_weights(n, cursor);
    const uint64_t c = n->width, f = n->ff_width, widths[] = {n->heads * n->head_width, n->kv_heads * n->head_width,
                                                               n->kv_heads * n->head_width};
    double made[3][JUDGE_TOKENS_MAX * JUDGE_WIDTH_MAX], normed[JUDGE_TOKENS_MAX * JUDGE_WIDTH_MAX];
    assert_true(t <= JUDGE_TOKENS_MAX && c <= JUDGE_WIDTH_MAX && f <= JUDGE_WIDTH_MAX);
    for (uint64_t i = 0; i < t; i++) {
        judge_norm(normed + i * c, x + i * c, w.norm1[0], w.norm1[1], c, n->norm_epsilon);
        for (int part = 0; part < 3; part++)
            judge_linear(made[part] + i * widths[part], normed + i * c, w.qkv[part], w.qkv_bias[part], widths[part], c);
        for (int part = 0; part < 2 && n->family != NETWORK_OPT; part++)
            for (uint64_t head = 0; head < widths[part] / n->head_width; head++)
                judge_turn(made[part] + i * widths[part] + head * n->head_width, n->rotary_width, i, n->rope.theta,
                           n->family == NETWORK_GPTJ);
    }
    for (uint64_t i = 0; i < t; i++) {
        double heads[JUDGE_WIDTH_MAX], branch[JUDGE_WIDTH_MAX], other[JUDGE_WIDTH_MAX], fc[JUDGE_WIDTH_MAX];
        judge_causal(heads, made[0], made[1], made[2], i, n);
        judge_linear(branch, heads, w.out[0], w.out[1], c, widths[0]);
        if (is_serial(n)) judge_add(x + i * c, branch, c);
        if (w.norm2[0]) judge_norm(normed + i * c, x + i * c, w.norm2[0], w.norm2[1], c, n->norm_epsilon);
        judge_linear(fc, normed + i * c, w.fc[0], w.fc[1], f, c);
        for (uint64_t j = 0; j < f; j++) fc[j] = judge_activation(n, fc[j]);
        judge_linear(other, fc, w.fc2[0], w.fc2[1], c, f);
        if (!is_serial(n)) judge_add(x + i * c, branch, c);
        judge_add(x + i * c, other, c);
    }
}

static double judge(const struct job *job, const int32_t *batch, const double *p)
{
    const struct network *n = &job->network;
    const uint64_t c = n->width, v = n->vocabulary, t = job->sequence;
    double total = 0;
    for (uint64_t b = 0; b < job->microbatch; b++) {
        const double *cursor = p, *table = judge_next(&cursor, v * c);
        const double *const positions = n->family == NETWORK_OPT
                                        ? judge_next(&cursor, (n->positions + 2) * c) + 2 * c : NULL;
        const int32_t *tokens = batch + b * (t + 1);
        double x[JUDGE_TOKENS_MAX * JUDGE_WIDTH_MAX], normed[JUDGE_WIDTH_MAX];
        for (uint64_t i = 0; i < t; i++)
            for (uint64_t j = 0; j < c; j++)
                x[i * c + j] = table[(uint64_t)tokens[i] * c + j] + (positions ? positions[i * c + j] : 0);
        for (uint64_t block = 0; block < n->blocks; block++) judge_block(n, x, t, &cursor);
        const double *norm_w = judge_next(&cursor, c), *norm_b = judge_next(&cursor, c);
        const double *head = n->tied_head ? table : judge_next(&cursor, v * c);
        const double *bias = n->tied_head || n->family == NETWORK_GPT_NEOX || n->family == NETWORK_OPT
                             ? NULL : judge_next(&cursor, v);
        for (uint64_t i = 0; i < t; i++) {
            judge_norm(normed, x + i * c, norm_w, norm_b, c, n->norm_epsilon);
            total += judge_word_loss(normed, head, bias, v, c, tokens[i + 1]);
        }
    }
    return total / (double)(job->microbatch * t);
}

static struct family_test test = {.fill_batch = family_fill_tokens, .judge = judge};

/* --- tests ------------------------------------------------------------------------------------ */

static void test_gradients(void **state)
{
    (void)state;
    for (size_t f = 0; f < ARRAY_COUNT(families); f++)
        for (int tied = 0; tied < 2; tied++) {
            struct job job = small_job(families[f], OPTIMIZER_SGD);
            job.network.tied_head = tied;
            job.network.has_padding = false; /* the judge has no padding */
            family_check_gradients(&test, &job, &(struct trainer_options){.blocks_per_shard = 2, .slices = 1});
        }
}

static void test_cuts(void **state)
{
    (void)state;
    for (size_t f = 0; f < ARRAY_COUNT(families); f++) {
        struct job job = small_job(families[f], OPTIMIZER_ADAMW);
        family_check_cuts(&test, &job, true);
        for (size_t i = 0; i < 3; i++) job.network.ignored[i] = 0.2; /* of results, attention's weights, embedding:
                                                                        network_ignored.c */
        family_check_cuts(&test, &job, true);
    }
}

static void test_half(void **state)
{
    (void)state;
    for (size_t f = 0; f < ARRAY_COUNT(families); f++) {
        struct job job = small_job(families[f], OPTIMIZER_SGD);
        family_check_half(&test, &job, true);
        for (size_t i = 0; i < 3; i++) job.network.ignored[i] = 0.2;
        job.precision = PRECISION_BF16;
        family_check_cuts(&test, &job, true);
    }
}

/* A bias of keys that do not turn adds the same to all scores of a row: its gradient is noise, which AdamW makes steps
 * of. Files have gpt_neox's q, k and v in another order than memory. */
static bool is_noise(const char *name, uint64_t i, uint64_t count)
{
    (void)i;
    (void)count;
    return strstr(name, "k_proj.bias") || strstr(name, "query_key_value");
}

static void test_torch(void **state)
{
    (void)state;
    static const char *const folders[] = {SOURCE_DIR "/tests/golden/families_torch/gpt_neox",
                                          SOURCE_DIR "/tests/golden/families_torch/gptj",
                                          SOURCE_DIR "/tests/golden/families_torch/phi"};
    for (size_t f = 0; f < ARRAY_COUNT(folders); f++) {
        struct job job = {.name = "golden", .network = small_network(families[f]), .sequence = 16, .microbatch = 3,
                          .microbatches = 1, .minibatches = 20};
        struct network *const n = &job.network;
        n->width = 32;
        n->head_width = 8;
        n->ff_width = 56;
        n->vocabulary = 61;
        n->positions = 16;
        n->norm_epsilon = 1e-5;
        n->rope.theta = 100;
        family_check_torch(&test, &job, folders[f], 4, is_noise);
    }
}

static void test_missing_kernels(void **state)
{
    (void)state;
    struct job job = small_job(NETWORK_PHI, OPTIMIZER_SGD);
    struct kernels partial = *test.two;
    assert_null(unit_unsupported(&job));
    assert_null(unit_missing_kernel(&partial, &job));
    partial.turns_parts = false;
    assert_string_equal(unit_missing_kernel(&partial, &job), "rotary positions of parts of heads");
    job.network = small_network(NETWORK_OPT);
    partial.relu_backward = NULL;
    assert_string_equal(unit_missing_kernel(&partial, &job), "relu_backward");
}

/* opt-350m is another network. */
static void test_other_opt(void **state)
{
    (void)state;
    static const char message[] =
        "the variant of opt-350m, with words of another width or norms after sums, can be planned and simulated only";
    struct job job = small_job(NETWORK_OPT, OPTIMIZER_SGD);
    assert_null(unit_unsupported(&job));
    job.network.post_norm = true;
    assert_string_equal(unit_unsupported(&job), message);
    job.network.post_norm = false;
    job.network.word_width = 12;
    assert_string_equal(unit_unsupported(&job), message);
}

static int setup(void **state)
{
    (void)state;
    return family_set_up(&test, "exec/network/decoder.c");
}

static int teardown(void **state)
{
    (void)state;
    return family_tear_down(&test);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients), cmocka_unit_test(test_cuts), cmocka_unit_test(test_torch),
        cmocka_unit_test(test_missing_kernels), cmocka_unit_test(test_other_opt), cmocka_unit_test(test_half),
    };
    return cmocka_run_group_tests_name("exec/network/decoder.c", tests, setup, teardown);
}
