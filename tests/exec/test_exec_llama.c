/* label: medium
 * Training a Llama, and mistral, qwen2, qwen3, gemma, gemma2, gemma3, mixtral, qwen2_moe and qwen3_moe, by
 * unit_compute(): gradients against finite differences, 20 steps against PyTorch,
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
#include <stdlib.h>

#include <cmocka.h>

#include "base/random.h"
#include "tests/support/kernels/support_layers_judge.h"
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

/* The families whose blocks differ from llama's. */
static const uint32_t others[] = {NETWORK_QWEN2, NETWORK_QWEN3, NETWORK_GEMMA, NETWORK_MISTRAL, NETWORK_GEMMA2,
                                  NETWORK_GEMMA3_TEXT, NETWORK_MIXTRAL, NETWORK_QWEN2_MOE, NETWORK_QWEN3_MOE};
enum { OTHERS = sizeof others / sizeof *others };

static void make_experts(struct network *network)
{
    const uint32_t family = network->family;
    const bool has = family == NETWORK_MIXTRAL || family == NETWORK_QWEN2_MOE || family == NETWORK_QWEN3_MOE;
    network->experts = has ? 5 : 0;
    network->experts_chosen = has ? 2 : 0;
    network->experts_normalized = has && family != NETWORK_QWEN2_MOE;
    network->shared_width = family == NETWORK_QWEN2_MOE ? 3 : 0;
    network->dense_width = family == NETWORK_QWEN2_MOE || family == NETWORK_QWEN3_MOE ? 9 : 0;
    network->sparse_step = family == NETWORK_QWEN2_MOE ? 2 : 0;
    network->dense_count = family == NETWORK_QWEN3_MOE;
    network->dense_blocks[0] = network->dense_count;
}

static bool is_sparse(const struct network *n, uint64_t block)
{
    if (n->family == NETWORK_QWEN2_MOE) return block == 1;
    return n->experts > 0 && !(n->family == NETWORK_QWEN3_MOE && block == 1);
}

static void make_family(struct network *network, uint32_t family)
{
    network->family = family;
    network->biases = family == NETWORK_QWEN2 || family == NETWORK_QWEN2_MOE;
    make_experts(network);
    network->window = family == NETWORK_MISTRAL || family == NETWORK_QWEN2 ? 2 : 0;
    network->window_from = family == NETWORK_QWEN2 ? 1 : 0;
    if (family != NETWORK_GEMMA2 && family != NETWORK_GEMMA3_TEXT) return;
    network->window = network->window_every = 2; /* blocks 0 and 2 */
    network->score_scalar = 3;
    if (family == NETWORK_GEMMA2) {
        network->score_cap = 0.4;
        network->logit_cap = 1.3;
        return;
    }
    network->window_theta = 3;
    network->rope.kind = ROPE_LINEAR;
    network->rope.factor = 2.5;
}

static bool is_new_gemma(const struct network *n) { return n->family == NETWORK_GEMMA2 ||
                                                   n->family == NETWORK_GEMMA3_TEXT; }
static bool has_head_norms(const struct network *n) { return n->family == NETWORK_QWEN3 || n->family ==
                                                     NETWORK_GEMMA3_TEXT || n->family == NETWORK_QWEN3_MOE; }
static bool is_gemma(const struct network *n) { return n->family == NETWORK_GEMMA || is_new_gemma(n); }

static bool has_window(const struct network *n, uint64_t block)
{
    return n->window > 0 && block >= n->window_from && (n->window_every == 0 || block % n->window_every == 0);
}

/* --- a forward pass in double ----------------------------------------------------------------- */

static void judge_rms_norm(double *out, const double *in, const double *w, uint64_t c, double epsilon)
{
    double squares = 0;
    for (uint64_t i = 0; i < c; i++) squares += in[i] * in[i] / (double)c;
    for (uint64_t i = 0; i < c; i++) out[i] = in[i] / sqrt(squares + epsilon) * w[i];
}

/* Heads of one token: element e of the first half is paired with element e of the second half. */
static void judge_turn(double *x, uint64_t heads, uint64_t d, double position, double theta)
{
    for (uint64_t head = 0; head < heads; head++, x += d)
        for (uint64_t e = 0; e < d / 2; e++) {
            double angle = position / pow(theta, 2.0 * (double)e / (double)d);
            double a = x[e], b = x[e + d / 2];
            x[e] = a * cos(angle) - b * sin(angle);
            x[e + d / 2] = b * cos(angle) + a * sin(angle);
        }
}

static void judge_group_attention(double *out, const double *q, const double *k, const double *v,
                            uint64_t i, const struct network *n, uint64_t block)
{
    const uint64_t first = has_window(n, block) && i + 1 > n->window ? i + 1 - n->window : 0;
    uint64_t d = n->head_width, row = n->kv_heads * d;
    for (uint64_t head = 0; head < n->heads; head++) {
        uint64_t shared = head * n->kv_heads / n->heads * d;
        double weights[JUDGE_TOKENS_MAX], sum = 0;
        for (uint64_t j = first; j <= i; j++) {
            double score = 0;
            for (uint64_t e = 0; e < d; e++)
                score += q[i * n->heads * d + head * d + e] * k[j * row + shared + e];
            score /= sqrt(n->score_scalar > 0 ? n->score_scalar : (double)d);
            if (n->score_cap > 0) score = n->score_cap * tanh(score / n->score_cap);
            weights[j] = exp(score);
            sum += weights[j];
        }
        for (uint64_t e = 0; e < d; e++) {
            out[head * d + e] = 0;
            for (uint64_t j = first; j <= i; j++)
                out[head * d + e] += weights[j] / sum * v[j * row + shared + e];
        }
    }
}

/* Norms each head in place, where the family has norms of heads. */
static void judge_head_norms(double *x, const double *w, uint64_t heads, const struct network *n)
{
    for (uint64_t head = 0; w && head < heads; head++) {
        double normed[JUDGE_WIDTH_MAX];
        judge_rms_norm(normed, x + head * n->head_width, w, n->head_width, n->norm_epsilon);
        for (uint64_t e = 0; e < n->head_width; e++) x[head * n->head_width + e] = normed[e];
    }
}

static double judge_gelu_tanh(double x)
{
    return x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))) / 2;
}

static double judge_logistic(double x) { return 1 / (1 + exp(-x)); }

/* out(c) = a feed-forward part with f columns, of weights one after the other: gate, up and down may be apart. */
static void judge_gated(double *out, const double *in, const double *gate_w, const double *up_w, const double *down_w,
                        uint64_t f, uint64_t c, bool gelu)
{
    double gate[JUDGE_WIDTH_MAX], up[JUDGE_WIDTH_MAX];
    judge_linear(gate, in, gate_w, NULL, f, c);
    judge_linear(up, in, up_w, NULL, f, c);
    for (uint64_t j = 0; j < f; j++) up[j] *= gelu ? judge_gelu_tanh(gate[j]) : gate[j] * judge_logistic(gate[j]);
    judge_linear(out, up, down_w, NULL, c, f);
}

/* A block's feed-forward weights: of one part, or of a router and experts, and perhaps of an expert of all rows. */
struct parts {
    const double *gate, *up, *down, *router, *gate_up, *back, *shared_gate, *shared_up, *shared_down, *factor;
};

static struct parts judge_parts(const struct network *n, uint64_t block, const double **cursor)
{
    const uint64_t c = n->width, f = n->dense_width > 0 && !is_sparse(n, block) ? n->dense_width : n->ff_width,
        s = n->shared_width;
    struct parts p = {.router = NULL};
    if (!is_sparse(n, block)) {
        p.gate = judge_next(cursor, f * c);
        p.up = judge_next(cursor, f * c);
        p.down = judge_next(cursor, c * f);
        return p;
    }
    p.router = judge_next(cursor, n->experts * c);
    p.gate_up = judge_next(cursor, n->experts * 2 * f * c);
    p.back = judge_next(cursor, n->experts * c * f);
    if (s == 0) return p;
    p.shared_gate = judge_next(cursor, s * c);
    p.shared_up = judge_next(cursor, s * c);
    p.shared_down = judge_next(cursor, c * s);
    p.factor = judge_next(cursor, c);
    return p;
}

/* Each chosen expert's result, times its part of all chosen ones' probabilities, or of all. */
static void judge_experts(double *out, const double *in, const struct parts *p, const struct network *n)
{
    const uint64_t c = n->width, f = n->ff_width;
    double z[JUDGE_WIDTH_MAX], made[JUDGE_WIDTH_MAX], all = 0, chosen_sum = 0;
    bool chosen[JUDGE_WIDTH_MAX] = {false};
    judge_linear(z, in, p->router, NULL, n->experts, c);
    for (uint64_t e = 0; e < n->experts; e++) all += z[e] = exp(z[e]);
    for (uint64_t k = 0; k < n->experts_chosen; k++) {
        uint64_t best = n->experts;
        for (uint64_t e = 0; e < n->experts; e++)
            if (!chosen[e] && (best == n->experts || z[e] > z[best])) best = e;
        chosen[best] = true;
        chosen_sum += z[best];
    }
    for (uint64_t j = 0; j < c; j++) out[j] = 0;
    for (uint64_t e = 0; e < n->experts; e++) {
        if (!chosen[e]) continue;
        judge_gated(made, in, p->gate_up + 2 * e * f * c, p->gate_up + (2 * e + 1) * f * c, p->back + e * c * f, f, c,
                    false);
        for (uint64_t j = 0; j < c; j++) out[j] += made[j] * z[e] / (n->experts_normalized ? chosen_sum : all);
    }
    if (!p->factor) return;
    double factor;
    judge_linear(&factor, in, p->factor, NULL, 1, c);
    judge_gated(made, in, p->shared_gate, p->shared_up, p->shared_down, n->shared_width, c, false);
    for (uint64_t j = 0; j < c; j++) out[j] += judge_logistic(factor) * made[j];
}

/* Computes x(t, c) through one block, in place. */
static void judge_block(const struct network *n, uint64_t block, double *x, uint64_t t, const double **cursor)
{
    uint64_t c = n->width, f = n->ff_width, inner = n->heads * n->head_width;
    uint64_t shared = n->kv_heads * n->head_width;
    const double *w[3], *bias[3] = {NULL}, *head_norms[2] = {NULL};
    for (int i = 0; i < 3; i++) {
        w[i] = judge_next(cursor, (i == 0 ? inner : shared) * c);
        if (n->biases) bias[i] = judge_next(cursor, i == 0 ? inner : shared);
    }
    const double *o_w = judge_next(cursor, c * inner);
    for (int i = 0; i < 2 && has_head_norms(n); i++) head_norms[i] = judge_next(cursor, n->head_width);
    const struct parts parts = judge_parts(n, block, cursor);
    const uint64_t ff = n->dense_width > 0 && !is_sparse(n, block) ? n->dense_width : f;
    const double *norm1_w = judge_next(cursor, c), *norm2_w = judge_next(cursor, c), *outer_w[2] = {NULL};
    if (is_new_gemma(n)) {
        outer_w[0] = norm2_w;
        norm2_w = judge_next(cursor, c);
        outer_w[1] = judge_next(cursor, c);
    }
    const bool local = n->window_theta > 0 && has_window(n, block);
    const double theta = local ? n->window_theta : n->rope.theta,
        factor = !local && n->rope.kind == ROPE_LINEAR ? n->rope.factor : 1;
    double q[JUDGE_TOKENS_MAX * JUDGE_WIDTH_MAX], k[JUDGE_TOKENS_MAX * JUDGE_WIDTH_MAX],
        v[JUDGE_TOKENS_MAX * JUDGE_WIDTH_MAX];
    double normed[JUDGE_WIDTH_MAX], heads[JUDGE_WIDTH_MAX], branch[JUDGE_WIDTH_MAX];
    assert_true(t <= JUDGE_TOKENS_MAX && c <= JUDGE_WIDTH_MAX && f <= JUDGE_WIDTH_MAX && inner <= JUDGE_WIDTH_MAX);
    for (uint64_t i = 0; i < t; i++) {
        judge_rms_norm(normed, x + i * c, norm1_w, c, n->norm_epsilon);
        judge_linear(q + i * inner, normed, w[0], bias[0], inner, c);
        judge_linear(k + i * shared, normed, w[1], bias[1], shared, c);
        judge_linear(v + i * shared, normed, w[2], bias[2], shared, c);
        judge_head_norms(q + i * inner, head_norms[0], n->heads, n);
        judge_head_norms(k + i * shared, head_norms[1], n->kv_heads, n);
        judge_turn(q + i * inner, n->heads, n->head_width, (double)i / factor, theta);
        judge_turn(k + i * shared, n->kv_heads, n->head_width, (double)i / factor, theta);
    }
    for (uint64_t i = 0; i < t; i++) {
        judge_group_attention(heads, q, k, v, i, n, block);
        judge_linear(branch, heads, o_w, NULL, c, inner);
        if (outer_w[0]) judge_rms_norm(branch, branch, outer_w[0], c, n->norm_epsilon);
        judge_add(x + i * c, branch, c);
        judge_rms_norm(normed, x + i * c, norm2_w, c, n->norm_epsilon);
        if (parts.router) judge_experts(branch, normed, &parts, n);
        else judge_gated(branch, normed, parts.gate, parts.up, parts.down, ff, c, is_gemma(n));
        if (outer_w[1]) judge_rms_norm(branch, branch, outer_w[1], c, n->norm_epsilon);
        judge_add(x + i * c, branch, c);
    }
}

/* Cross entropy of logits with a cap. */
static double judge_capped_loss(const double *row, const double *table, const struct network *n, int32_t target)
{
    double sum = 0, at_target = 0;
    for (uint64_t word = 0; word < n->vocabulary; word++) {
        double logit = 0;
        for (uint64_t j = 0; j < n->width; j++) logit += row[j] * table[word * n->width + j];
        logit = n->logit_cap * tanh(logit / n->logit_cap);
        if (word == (uint64_t)target) at_target = logit;
        sum += exp(logit);
    }
    return log(sum) - at_target;
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
            for (uint64_t j = 0; j < c; j++)
                x[i * c + j] = table[(uint64_t)tokens[i] * c + j] * (is_gemma(n) ? sqrt((double)c) : 1);
        for (uint64_t block = 0; block < n->blocks; block++) judge_block(n, block, x, t, &cursor);
        const double *norm_w = judge_next(&cursor, c);
        const double *head = n->tied_head ? table : judge_next(&cursor, v * c);
        for (uint64_t i = 0; i < t; i++) {
            double normed[JUDGE_WIDTH_MAX];
            judge_rms_norm(normed, x + i * c, norm_w, c, n->norm_epsilon);
            total += n->logit_cap > 0 ? judge_capped_loss(normed, head, n, tokens[i + 1])
                                      : judge_word_loss(normed, head, NULL, v, c, tokens[i + 1]);
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

/* Biases, norms of heads, GELU and a scaled embedding, tied and not. */
static void test_gradients_of_families(void **state)
{
    (void)state;
    for (int f = 0; f < 2 * OTHERS; f++) {
        struct job job = small_job(OPTIMIZER_SGD, f % 2);
        make_family(&job.network, others[f / 2]);
        family_check_gradients(&test, &job, &(struct trainer_options){.blocks_per_shard = 2, .slices = 1});
    }
}

/* --- the same bits in every cut --------------------------------------------------------------- */

static void test_cuts(void **state)
{
    (void)state;
    family_check_optimizers(&test, small_job, true);
}

static void test_cuts_of_families(void **state)
{
    (void)state;
    for (int f = 0; f < OTHERS; f++) {
        struct job job = small_job(OPTIMIZER_ADAMW, true);
        make_family(&job.network, others[f]);
        family_check_cuts(&test, &job, true);
    }
}

/* Wide enough that no norm divides by a small number. */
static void make_wider(struct job *job)
{
    job->network.width = 32;
    job->network.heads = 4;
    job->network.kv_heads = 2;
    job->network.head_width = 8;
    job->network.ff_width = 57;
    job->network.positions = job->sequence = 17;
}

static void test_half(void **state)
{
    (void)state;
    for (int tied = 0; tied < 2; tied++) {
        struct job job = small_job(OPTIMIZER_SGD, tied);
        make_wider(&job);
        family_check_half(&test, &job, true);
    }
    for (int f = 0; f < OTHERS; f++) {
        struct job job = small_job(OPTIMIZER_SGD, true);
        make_family(&job.network, others[f]);
        make_wider(&job);
        const uint64_t chosen = job.network.experts_chosen;
        job.network.experts_chosen = job.network.experts; /* which rounding cannot change */
        family_check_half(&test, &job, true);
        if (chosen == 0) continue;
        job.network.experts_chosen = chosen;
        job.precision = PRECISION_BF16;
        family_check_cuts(&test, &job, true);
    }
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

static void check_family_torch(uint32_t family, const char *folder, bool tied)
{
    struct job job = golden_job();
    make_family(&job.network, family);
    job.network.window = family == NETWORK_MISTRAL ? 5 : 0;
    job.network.rope = (struct network_rope){.kind = ROPE_DEFAULT, .theta = 100};
    job.network.tied_head = tied;
    family_check_torch(&test, &job, folder, 4, NULL);
}

static void test_torch_of_families(void **state)
{
    (void)state;
    check_family_torch(NETWORK_MISTRAL, SOURCE_DIR "/tests/golden/families_torch/mistral", false);
    check_family_torch(NETWORK_QWEN2, SOURCE_DIR "/tests/golden/families_torch/qwen2", false);
    check_family_torch(NETWORK_QWEN3, SOURCE_DIR "/tests/golden/families_torch/qwen3", false);
    check_family_torch(NETWORK_GEMMA, SOURCE_DIR "/tests/golden/families_torch/gemma", true);
}

/* A window over several tiles of queries: each token's attention against its own sequence of the window's tokens
 * alone. */
static void test_windows(void **state)
{
    (void)state;
    enum { T = 200, D = 4, W = 70 };
    float q[T * D], k[T * D], v[T * D], out[T * D], stats[T], one[D], one_stats[1],
        *scratch = calloc(2 * 64 * T, sizeof *scratch);
    assert_non_null(scratch);
    for (int i = 0; i < T * D; i++) {
        q[i] = (float)random_unit(test.seed, 3 * (uint64_t)i) - 0.5f;
        k[i] = (float)random_unit(test.seed, 3 * (uint64_t)i + 1) - 0.5f;
        v[i] = (float)random_unit(test.seed, 3 * (uint64_t)i + 2) - 0.5f;
    }
    struct kernel_attention a = {.out = out, .stats = stats, .q = q, .k = k, .v = v, .scratch = scratch, .b = 1, .t = T,
                                 .h = 1,
                                 .kv = 1, .d = D, .row_q = D, .row_kv = D, .causal = true, .window = W};
    test.one->attention_forward(test.one, &a);
    for (int i = 0; i < T; i++) {
        const int first = i + 1 > W ? i + 1 - W : 0;
        struct kernel_attention alone = a;
        alone.q = q + i * D;
        alone.k = k + first * D;
        alone.v = v + first * D;
        alone.out = one;
        alone.stats = one_stats;
        alone.t = 1;
        alone.earlier = i - first;
        alone.held = i - first + 1;
        alone.window = 0;
        test.one->attention_forward(test.one, &alone);
        for (int e = 0; e < D; e++) assert_true(fabsf(one[e] - out[i * D + e]) <= 2e-6f);
    }
    free(scratch);
}

/* Odd lengths against double; in place. */
static void test_geglu(void **state)
{
    (void)state;
    static const int64_t counts[] = {1, 63, 65, 1000, 16385};
    const struct kernels *k = test.two;
    for (size_t n = 0; n < sizeof counts / sizeof *counts; n++) {
        const int64_t count = counts[n];
        float *gate = calloc((size_t)count, sizeof *gate), *up = calloc((size_t)count, sizeof *up),
            *y = calloc((size_t)count, sizeof *y);
        float *dgate = calloc((size_t)count, sizeof *dgate), *dup = calloc((size_t)count, sizeof *dup);
        assert_true(gate && up && y && dgate && dup);
        for (int64_t i = 0; i < count; i++) {
            gate[i] = 8 * (float)random_unit(test.seed, 3 * (uint64_t)i) - 4;
            up[i] = 2 * (float)random_unit(test.seed, 3 * (uint64_t)i + 1) - 1;
            dgate[i] = 1;
        }
        k->geglu_forward(k, y, gate, up, count);
        k->geglu_backward(k, dgate, dup, dgate, gate, up, count);
        for (int64_t i = 0; i < count; i++) {
            const double g = (double)gate[i], u = (double)up[i], step = 1e-5;
            const double slope = (judge_gelu_tanh(g + step) - judge_gelu_tanh(g - step)) / (2 * step);
            assert_true(fabs((double)y[i] - judge_gelu_tanh(g) * u) <= 2e-6 &&
                        fabs((double)dup[i] - judge_gelu_tanh(g)) <= 2e-6);
            assert_true(fabs((double)dgate[i] - slope * u) <= 2e-6);
        }
        k->scale(k, y, up, count, 3);
        for (int64_t i = 0; i < count; i++) assert_true(fabsf(y[i] - 3 * up[i]) <= 0);
        free(gate);
        free(up);
        free(y);
        free(dgate);
        free(dup);
    }
}

/* --- experts ------------------------------------------------------------------------------------ */

/* Equal probabilities choose the lower number; places are sorted by expert, then by row. */
static void test_routes(void **state)
{
    (void)state;
    float z[] = {1, 3, 3, 2, /* 1, 2 */ 5, 5, 5, 5, /* 0, 1 */ -2, 7, -2, 7 /* 1, 3 */}, weights[6];
    int32_t experts[6], places[6], rows[6], begins[5];
    const struct kernel_routes routes = {.r = 3, .e = 4, .k = 2, .normalized = true, .probabilities = z,
                                         .weights = weights,
                                         .experts = experts, .places = places, .rows = rows, .begins = begins};
    static const int32_t chosen[] = {1, 2, 0, 1, 1, 3}, at[] = {1, 4, 0, 2, 3, 5}, of[] = {1, 0, 1, 2, 0, 2},
        from[] = {0, 1, 4, 5, 6};
    test.two->route(test.two, &routes);
    assert_memory_equal(experts, chosen, sizeof chosen);
    assert_memory_equal(places, at, sizeof at);
    assert_memory_equal(rows, of, sizeof of);
    assert_memory_equal(begins, from, sizeof from);
    for (int i = 0; i < 6; i++) assert_true(fabsf(weights[i] - 0.5f) <= 1e-7f);
    const double sum = exp(-2) + 2 + exp(-1); /* of the first row, relative to its largest */
    assert_true(fabs((double)z[1] - 1 / sum) <= 1e-7 && fabs((double)z[0] - exp(-2) / sum) <= 1e-7);
}

/* Rows of the worst case, all to the same two experts, fit in what is planned, and give the same bits in all cuts. */
static void test_mixed_tables(void **state)
{
    (void)state;
    struct job job = small_job(OPTIMIZER_ADAMW, true);
    make_family(&job.network, NETWORK_QWEN3_MOE);
    const struct network *const n = &job.network;
    const uint64_t pairs = job.microbatch * job.sequence * n->experts_chosen;
    static const char *const names[] = {"sent", "returned", "gate", "up", "swiglu"};
    const uint64_t widths[] = {n->width, n->width, n->ff_width, n->ff_width, n->ff_width};
    struct arena arena = {0};
    struct error err = {0};
    struct memory_table kept;
    assert_int_equal(memory_activations(n, 1, 3, job.microbatch, job.sequence, PRECISION_FP32, &arena, &kept, &err),
                     STATUS_OK);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(memory_find(&kept, 1, names[i])->bytes, pairs * widths[i] * sizeof(float));
        if (i < 2) assert_null(memory_find(&kept, 2, names[i]));
    }
    assert_int_equal(memory_find(&kept, 2, "gate")->bytes,
                     job.microbatch * job.sequence * n->dense_width * sizeof(float));
    assert_int_equal(network_alike_end(n, 1), 2);
    assert_int_equal(network_alike_begin(n, 3), 3);
    arena_release(&arena);
}

/* --- what cannot be trained ------------------------------------------------------------------- */

static void test_unsupported(void **state)
{
    (void)state;
    struct job job = small_job(OPTIMIZER_ADAMW, true);
    make_family(&job.network, NETWORK_MIXTRAL);
    assert_null(unit_unsupported(&job));
    job.network.auxiliary_loss = true;
    assert_string_equal(unit_unsupported(&job),
                        "its auxiliary loss of routers is not trained (expected \"output_router_logits\": false)");
    job.network.auxiliary_loss = false;
    job.network.experts_chosen = 65;
    assert_string_equal(unit_unsupported(&job), "more than 64 experts of a token are not trained");
    make_family(&job.network, NETWORK_GEMMA);
    assert_null(unit_unsupported(&job));
    job.optimizer.decay = DECAY_ALL;
    assert_string_equal(unit_unsupported(&job), "decay of all tensors is not for norms whose weights files have less "
                                                "1 (expected \"decay\": \"matrices\")");
}

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
    job = small_job(OPTIMIZER_SGD, true);
    make_family(&job.network, NETWORK_GEMMA);
    partial = *test.two;
    partial.scale = NULL;
    assert_string_equal(unit_missing_kernel(&partial, &job), "scale");
    job.network.family = NETWORK_MISTRAL;
    partial.attends_in_windows = false;
    assert_null(unit_missing_kernel(&partial, &job));
    job.network.window = job.sequence;
    assert_null(unit_missing_kernel(&partial, &job));
    job.network.window--;
    assert_string_equal(unit_missing_kernel(&partial, &job), "attention over a window");
    make_family(&job.network, NETWORK_GEMMA2);
    partial = *test.two;
    assert_null(unit_missing_kernel(&partial, &job));
    partial.caps = false;
    assert_string_equal(unit_missing_kernel(&partial, &job), "caps and a scale of scores");
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
        cmocka_unit_test(test_gradients_of_families), cmocka_unit_test(test_cuts_of_families),
        cmocka_unit_test(test_torch_of_families), cmocka_unit_test(test_windows), cmocka_unit_test(test_geglu),
        cmocka_unit_test(test_pieces), cmocka_unit_test(test_torch),     cmocka_unit_test(test_missing_kernels),
        cmocka_unit_test(test_unsupported), cmocka_unit_test(test_routes), cmocka_unit_test(test_mixed_tables),
        cmocka_unit_test(test_half),
    };
    return cmocka_run_group_tests_name("exec/network/llama.c", tests, setup, teardown);
}
