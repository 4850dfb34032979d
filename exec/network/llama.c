/*
 * Llama, and with switches mistral, qwen2 (biases of q, k and v), qwen3 (norms of q's and k's heads), gemma (GELU, a
 * scaled embedding), gemma2 and gemma3 (norms of both parts' results, before they are added), mixtral, qwen2_moe and
 * qwen3_moe (experts, exec/network/experts.h, in all blocks or in some).
 *
 * Letters as in models/kernel/work.h; K heads of keys and values of D, H / K heads of queries to each. Weights are
 * stored (out, in). A block, with the names of kept tensors:
 *
 *     in(R,C) --+-- norm1 --+-- q(R,HD) turned --+
 *               |           +-- k(R,KD) turned --+-- attention(R,HD) -- projection --+
 *               |           +-- v(R,KD) ---------+                                   |
 *               +--------------------------------------------------------------------+-- middle(R,C)
 *
 *     middle  --+-- norm2 --+-- gate(R,F) --+-- swiglu(R,F) -- projection --+
 *               |           +-- up(R,F) ----+                               |
 *               +-----------------------------------------------------------+-- out(R,C)
 *
 * Norms of q and k, where there are any, come before the rotation, and their inputs are kept. Norms are
 * root-mean-square norms; gemma's weights are kept with the 1 that files leave out. Gradients run as in
 * exec/network/gpt2.c. Queries and keys are kept after rotation; their gradients are rotated back. The products that
 * lead back to a norm add up in d_stream2, in the order q, k, v, or gate, up.
 *
 * Where results have norms, the gradient of attention's result is in d_wide, which is free by then, or in d_middle for
 * a backward pass in halves; that of the feed-forward part's result in d_stream2, or in d_out.
 *
 * The head is a norm and the product with the token table (tied) or a matrix of its own.
 *
 * Source: Touvron et al., arXiv 2302.13971, section 2.2; modeling_llama.py, _mistral.py, _qwen2.py, _qwen3.py,
 * _gemma.py, _gemma2.py, _gemma3.py, _mixtral.py, _qwen2_moe.py and _qwen3_moe.py of transformers.
 */
#include "exec/network/experts.h"
#include "exec/network/transformer.h"

#include <math.h>
#include <stdio.h>

#include "base/bf16.h"
#include "models/network/network_traits.h"

/* In the order of network_layer_tensors(), without tensors that a family does not have (tensor_index()). */
enum block_tensor {
    Q_WEIGHT, Q_BIAS, K_WEIGHT, K_BIAS, V_WEIGHT, V_BIAS, PROJECTION_WEIGHT, Q_NORM, K_NORM, GATE_WEIGHT, UP_WEIGHT,
    DOWN_WEIGHT, EXPERTS, /* the first of several, in place of the three before */
    INPUT_NORM, ATTENTION_NORM, BEFORE_NORM, AFTER_NORM /* names: after attention, before and after the feed-forward
                                                           part */
};
enum head_tensor { NORMF_WEIGHT, HEAD_WEIGHT };

/* A block's kept tensors; NULL where the family has none. */
struct kept {
    kernel_number *norm1, *q, *k, *v, *attention, *middle, *norm2;
    kernel_number *plain_q, *plain_k; /* what norms of heads read */
    kernel_number *attended, *made;   /* what norms of results read */
    float *norm1_stats, *qk_stats, *attention_stats, *norm2_stats, *outer_stats;
    kernel_number *gate, *up, *swiglu;
    struct experts_kept experts;          /* in place of these three */
};
enum head_kept { KEPT_NORMF, KEPT_NORMF_STATS };

static bool has_head_norms(const struct transformer_unit *unit)
{
    return network_traits(unit->network)->qk_norm;
}

static bool has_outer_norms(const struct transformer_unit *unit)
{
    return network_traits(unit->network)->outer_norms;
}

/* Of the block that the unit is on (of_block()). */
static bool has_experts(const struct transformer_unit *unit)
{
    return unit->network->experts > 0;
}

/* Returns the unit as if all blocks were like this one: some have no experts where others have. */
static struct transformer_unit of_block(const struct transformer_unit *unit, uint64_t layer, struct network *room)
{
    struct transformer_unit of = *unit;
    of.network = network_of_layer(unit->network, layer, room);
    of.f = (int64_t)of.network->ff_width;
    return of;
}

/* Names the kept tensors, which are in the order of memory_activations(). */
static struct kept kept_of(const struct transformer_unit *unit, kernel_number *const *next)
{
    struct kept kept = {.norm1 = next[0], .norm1_stats = next[1], .q = next[2], .k = next[3], .v = next[4]};
    next += 5;
    if (has_head_norms(unit)) {
        kept.plain_q = *next++;
        kept.plain_k = *next++;
        kept.qk_stats = *next++;
    }
    kept.attention = *next++;
    kept.attention_stats = *next++;
    kept.middle = *next++;
    kept.norm2 = *next++;
    kept.norm2_stats = *next++;
    if (has_outer_norms(unit)) {
        kept.attended = *next++;
        kept.made = *next++;
        kept.outer_stats = *next++;
    }
    if (has_experts(unit)) {
        kept.experts = experts_kept_of(unit, &next);
        return kept;
    }
    kept.gate = *next++;
    kept.up = *next++;
    kept.swiglu = *next++;
    return kept;
}

static bool has_tensor(const struct transformer_unit *unit, enum block_tensor tensor)
{
    switch (tensor) {
    case Q_BIAS:
    case K_BIAS:
    case V_BIAS: return unit->network->biases;
    case Q_NORM:
    case K_NORM: return has_head_norms(unit);
    case GATE_WEIGHT:
    case UP_WEIGHT:
    case DOWN_WEIGHT: return !has_experts(unit);
    case EXPERTS: return has_experts(unit);
    case BEFORE_NORM:
    case AFTER_NORM: return has_outer_norms(unit);
    default: return true;
    }
}

/* Returns a block's tensor by its number in the family. */
static uint32_t tensor_index(const struct transformer_unit *unit, enum block_tensor tensor)
{
    uint32_t index = 0;
    for (uint32_t i = 0; i < (uint32_t)tensor; i++) index += has_tensor(unit, (enum block_tensor)i);
    return tensor > EXPERTS && has_experts(unit) ? index + experts_tensor_count(unit->network) - 1 : index;
}

static struct transformer_linear linear_of(const struct transformer_unit *unit, enum block_tensor weight, int64_t out,
                                           int64_t in)
{
    return (struct transformer_linear){.weight = tensor_index(unit, weight), .rows = unit->r, .out = out, .in = in,
                                       .bias = weight <= V_WEIGHT && has_tensor(unit, (enum block_tensor)(weight + 1))};
}

/* Returns the norm in front of the feed-forward part. */
static uint32_t second_norm(const struct transformer_unit *unit)
{
    return tensor_index(unit, has_outer_norms(unit) ? BEFORE_NORM : ATTENTION_NORM);
}

/* `weight`: the tensor's number in its layer. */
static void norm_forward(const struct transformer_unit *unit, kernel_number *out, kernel_number *sum, float *stats,
                         const kernel_number *x, const kernel_number *y, uint64_t layer, uint32_t weight)
{
    unit->kernels->rms_norm_forward(unit->kernels, out, sum, stats, x, y,
                                    transformer_vector(unit, layer, weight), unit->own, unit->c,
                                    unit->epsilon);
}

static void norm_pass(const struct transformer_unit *unit, const struct transformer_norm *n)
{
    unit->kernels->rms_norm_backward(unit->kernels, n->dx, n->d_weight, n->dout, n->x, n->stats, n->weight, n->added,
                                     n->rows, unit->c);
}

static void norm_backward(const struct transformer_unit *unit, kernel_number *dx, const kernel_number *dout,
                          const kernel_number *x, const float *stats, const kernel_number *added, uint64_t layer,
                          uint32_t weight)
{
    const struct transformer_tensor w = transformer_tensor(unit, layer, weight);
    const struct transformer_norm norm = {.dx = dx, .d_weight = w.g, .dout = dout, .x = x, .stats = stats,
                                          .added = added,
                                          .weight = w.weights.numbers, .rows = unit->own};
    transformer_norm_in_parts(unit, &norm, 1, norm_pass);
    transformer_step(unit, &w, false);
}

/* d_qkv's three parts. */
struct heads {
    kernel_number *q, *k, *v;
};

static struct heads heads_of(const struct transformer_unit *unit)
{
    kernel_number *const q = unit->d_qkv, *const k = transformer_number(unit, q, unit->r * unit->inner);
    return (struct heads){q, k, transformer_number(unit, k, unit->r * unit->shared)};
}

static void rotate(const struct transformer_unit *unit, uint64_t layer, kernel_number *q, kernel_number *k, bool back)
{
    const int64_t kv = unit->shared / unit->d;
    const struct network_rope positions = network_block_rope(unit->network, layer);
    const struct kernel_rope rope = {.q = q, .k = k, .b = unit->b, .t = unit->t, .h = unit->h, .kv = kv, .d = unit->d,
                                     .begin = transformer_first_token(unit), .begins = unit->arguments->begins,
                                     .row_q = unit->inner, .row_k = unit->shared,
                                     .turned = unit->d, .back = back, .rope = &positions};
    transformer_rotate(unit, &rope);
}

/* The rows of q's or k's norm are heads. */
static void norm_heads(const struct transformer_unit *unit, kernel_number *out, float *stats, const kernel_number *x,
                       uint64_t layer, enum block_tensor weight, int64_t heads)
{
    unit->kernels->rms_norm_forward(unit->kernels, out, NULL, stats, x, NULL,
                                    transformer_vector(unit, layer, tensor_index(unit, weight)), unit->r * heads,
                                    unit->d, unit->epsilon);
}

static void norm_heads_backward(const struct transformer_unit *unit, kernel_number *dx, const kernel_number *x,
                                const float *stats, uint64_t layer, enum block_tensor weight, int64_t heads)
{
    const struct transformer_tensor w = transformer_tensor(unit, layer, tensor_index(unit, weight));
    const int64_t rows = unit->r * heads / unit->pieces, count = rows * unit->d;
    float *const sums = unit->piece_sums;
    for (int64_t p = 0; p < unit->pieces; p++) {
        kernel_number *const d = transformer_number(unit, dx, p * count);
        unit->kernels->rms_norm_backward(unit->kernels, d, sums ? sums + p * unit->d : w.g, d,
                                         transformer_read_number(unit, x, p * count), stats + p * rows,
                                         w.weights.numbers, NULL, rows, unit->d);
    }
    transformer_add_pieces(unit, w.g, sums, unit->d);
    if (w.g) transformer_sum(unit, w.g, unit->d); /* over the heads of all devices */
    transformer_step(unit, &w, false);
}

/* Returns a block's attention; the backward pass adds gradients. */
static struct kernel_attention attention_of(const struct transformer_unit *unit, uint64_t layer,
                                            const struct kept *kept)
{
    struct kernel_attention attention =
        transformer_attention(unit, layer, kept->q, kept->k, kept->v, kept->attention, kept->attention_stats);
    attention.window = (int64_t)network_block_window(unit->network, layer);
    return attention;
}

/* Makes q, k and v from the first norm's output, with norms and rotation. */
static void make_heads(const struct transformer_unit *unit, uint64_t layer, const struct kept *kept)
{
    const bool norms = has_head_norms(unit);
    kernel_number *const q = norms ? kept->plain_q : kept->q, *const k = norms ? kept->plain_k : kept->k;
    const int64_t c = unit->c, heads = unit->h, shared_heads = unit->shared / unit->d;
    const kernel_number *const normed = transformer_all_rows(unit, kept->norm1);
    transformer_linear_forward(unit, q, normed, layer, linear_of(unit, Q_WEIGHT, unit->inner, c));
    transformer_linear_forward(unit, k, normed, layer, linear_of(unit, K_WEIGHT, unit->shared, c));
    transformer_linear_forward(unit, kept->v, normed, layer, linear_of(unit, V_WEIGHT, unit->shared, c));
    if (norms) {
        norm_heads(unit, kept->q, kept->qk_stats, q, layer, Q_NORM, heads);
        norm_heads(unit, kept->k, kept->qk_stats + unit->r * heads, k, layer, K_NORM, shared_heads);
    }
    rotate(unit, layer, kept->q, kept->k, false);
}

/* Takes the gradients of q and k back through rotation and norms, in place. */
static void unmake_heads(const struct transformer_unit *unit, uint64_t layer, const struct kept *kept,
                         const struct heads *d)
{
    rotate(unit, layer, d->q, d->k, true);
    if (!has_head_norms(unit)) return;
    norm_heads_backward(unit, d->q, kept->plain_q, kept->qk_stats, layer, Q_NORM, unit->h);
    norm_heads_backward(unit, d->k, kept->plain_k, kept->qk_stats + unit->r * unit->h, layer, K_NORM,
                        unit->shared / unit->d);
}

static void gate_forward(const struct transformer_unit *unit, kernel_number *y, const kernel_number *gate,
                         const kernel_number *up)
{
    const struct kernels *k = unit->kernels;
    (network_traits(unit->network)->less_one ? k->geglu_forward : k->swiglu_forward)(k, y, gate, up, unit->r * unit->f);
}

static void gate_backward(const struct transformer_unit *unit, kernel_number *d_gate, kernel_number *d_up,
                          const kernel_number *gate, const kernel_number *up)
{
    const struct kernels *k = unit->kernels;
    (network_traits(unit->network)->less_one ? k->geglu_backward : k->swiglu_backward)(k, d_gate, d_up, d_gate, gate,
                                                                                       up, unit->r * unit->f);
}

/* --- feed-forward parts ------------------------------------------------------------------------- */

/* Fills `made` unless it is NULL. */
static void feed_forward(const struct transformer_unit *unit, uint64_t layer, const struct kept *kept,
                         kernel_number *made)
{
    const int64_t c = unit->c, f = unit->f;
    const kernel_number *const normed = transformer_all_rows(unit, kept->norm2);
    if (has_experts(unit)) {
        experts_forward(unit, layer, tensor_index(unit, EXPERTS), &kept->experts, normed, made);
        return;
    }
    transformer_linear_forward(unit, kept->gate, normed, layer, linear_of(unit, GATE_WEIGHT, f, c));
    transformer_linear_forward(unit, kept->up, normed, layer, linear_of(unit, UP_WEIGHT, f, c));
    gate_forward(unit, kept->swiglu, kept->gate, kept->up);
    if (made)
        transformer_linear_forward(unit, made, kept->swiglu, layer,
                                   transformer_by_rows(linear_of(unit, DOWN_WEIGHT, c, f)));
}

/* Makes the gradient of the second norm's result, in d_stream2, from the gradient of the part's. */
static void feed_forward_backward(const struct transformer_unit *unit, uint64_t layer, const struct kept *kept,
                                  const kernel_number *d_made)
{
    const int64_t c = unit->c, f = unit->f;
    kernel_number *const d_gate = unit->d_wide, *const d_up = transformer_number(unit, d_gate, unit->r * f);
    kernel_number *const d_branch = unit->d_stream2;
    if (has_experts(unit)) {
        experts_backward(unit, layer, tensor_index(unit, EXPERTS), &kept->experts, kept->norm2, d_made, d_branch);
        return;
    }
    transformer_linear_backward(unit, d_gate, d_made, kept->swiglu, layer,
                                transformer_by_rows(linear_of(unit, DOWN_WEIGHT, c, f)), false);
    gate_backward(unit, d_gate, d_up, kept->gate, kept->up);
    const kernel_number *const gated = transformer_rows_for_weights(unit, kept->norm2);
    transformer_linear_backward(unit, d_branch, d_gate, gated, layer, linear_of(unit, GATE_WEIGHT, f, c), false);
    transformer_linear_backward(unit, d_branch, d_up, gated, layer, linear_of(unit, UP_WEIGHT, f, c), true);
}

static void feed_forward_weights(const struct transformer_unit *unit, uint64_t layer, const struct kept *kept,
                                 const kernel_number *d_made)
{
    const int64_t c = unit->c, f = unit->f;
    const kernel_number *const d_gate = unit->d_wide;
    const kernel_number *const d_up = transformer_read_number(unit, d_gate, unit->r * f);
    if (has_experts(unit)) {
        experts_weights(unit, layer, tensor_index(unit, EXPERTS), &kept->experts, kept->norm2, d_made);
        return;
    }
    transformer_linear_weight(unit, d_made, kept->swiglu, layer,
                              transformer_by_rows(linear_of(unit, DOWN_WEIGHT, c, f)));
    const kernel_number *const gated = transformer_all_rows(unit, kept->norm2);
    transformer_linear_weight(unit, d_gate, gated, layer, linear_of(unit, GATE_WEIGHT, f, c));
    transformer_linear_weight(unit, d_up, gated, layer, linear_of(unit, UP_WEIGHT, f, c));
}

/* --- blocks --------------------------------------------------------------------------------------- */

static void block_forward(const struct transformer_unit *all_blocks, uint64_t layer, kernel_number *const *all,
                          const kernel_number *in, kernel_number *out)
{
    struct network room;
    const struct transformer_unit of = of_block(all_blocks, layer, &room), *const unit = &of;
    const struct kernels *k = unit->kernels;
    const struct kept kept = kept_of(unit, all);
    const bool outer = has_outer_norms(unit);
    kernel_number *const attended = outer ? kept.attended : kept.middle, *const made = outer ? kept.made : out;
    norm_forward(unit, kept.norm1, NULL, kept.norm1_stats, in, NULL, layer, tensor_index(unit, INPUT_NORM));
    make_heads(unit, layer, &kept);
    const struct kernel_attention attention = attention_of(unit, layer, &kept);
    transformer_attend(unit, layer, &attention);
    transformer_linear_forward(unit, attended, kept.attention, layer,
                               transformer_by_rows(linear_of(unit, PROJECTION_WEIGHT, unit->c, unit->inner)));
    if (outer)
        norm_forward(unit, kept.middle, NULL, kept.outer_stats, attended, NULL, layer,
                     tensor_index(unit, ATTENTION_NORM));
    norm_forward(unit, kept.norm2, kept.middle, kept.norm2_stats, in, kept.middle, layer, second_norm(unit));
    feed_forward(unit, layer, &kept, made);
    if (outer) /* the backward pass needs its statistics */
        norm_forward(unit, out ? out : unit->d_stream2, NULL, kept.outer_stats + unit->own, made, NULL, layer,
                     tensor_index(unit, AFTER_NORM));
    if (out) k->residual(k, out, kept.middle, out, unit->own * unit->c);
}

/* Returns the gradient of a part's result from the gradient of the sum, in `room` if the norm `weight` is between. */
static const kernel_number *through_outer_norm(const struct transformer_unit *unit, kernel_number *room,
                                               const kernel_number *d, const struct kept *kept, uint64_t layer,
                                               enum block_tensor weight)
{
    const bool first = weight == ATTENTION_NORM;
    if (!has_outer_norms(unit)) return d;
    norm_backward(unit, room, d, first ? kept->attended : kept->made, kept->outer_stats + (first ? 0 : unit->own), NULL,
                  layer, tensor_index(unit, weight));
    return room;
}

/* Makes the gradient of the first norm's result, in d_stream2, from the gradient of attention's. */
static void attention_backward(const struct transformer_unit *unit, uint64_t layer, const struct kept *kept,
                               const kernel_number *d_attended)
{
    const int64_t c = unit->c, inner = unit->inner, shared = unit->shared;
    const struct heads d = heads_of(unit);
    kernel_number *const d_branch = unit->d_stream2;
    transformer_linear_backward(unit, d_branch, d_attended, kept->attention, layer,
                                transformer_by_rows(linear_of(unit, PROJECTION_WEIGHT, c, inner)), false);
    struct kernel_attention attention = attention_of(unit, layer, kept);
    attention.dout = d_branch;
    attention.dq = d.q;
    attention.dk = d.k;
    attention.dv = d.v;
    transformer_attend_backward(unit, layer, &attention);
    unmake_heads(unit, layer, kept, &d);
    const kernel_number *const attending = transformer_rows_for_weights(unit, kept->norm1);
    transformer_linear_backward(unit, d_branch, d.q, attending, layer, linear_of(unit, Q_WEIGHT, inner, c), false);
    transformer_linear_backward(unit, d_branch, d.k, attending, layer, linear_of(unit, K_WEIGHT, shared, c), true);
    transformer_linear_backward(unit, d_branch, d.v, attending, layer, linear_of(unit, V_WEIGHT, shared, c), true);
}

static void block_backward(const struct transformer_unit *all_blocks, uint64_t layer, kernel_number *const *all,
                           const kernel_number *in, const kernel_number *d_out, kernel_number *d_in)
{
    struct network room;
    const struct transformer_unit of = of_block(all_blocks, layer, &room), *const unit = &of;
    const struct kept kept = kept_of(unit, all);
    kernel_number *const d_branch = unit->d_stream2, *const d_middle = has_outer_norms(unit) ? d_in
                                                                                     : transformer_d_middle(unit, d_in);
    const kernel_number *const d_made =
        through_outer_norm(unit, unit->d_out ? unit->d_out : d_branch, d_out, &kept, layer, AFTER_NORM);
    feed_forward_backward(unit, layer, &kept, d_made);
    norm_backward(unit, d_middle, transformer_own_sum(unit, d_branch), kept.middle, kept.norm2_stats, d_out, layer,
                  second_norm(unit));
    kernel_number *const room_middle = unit->d_middle ? unit->d_middle : unit->d_wide;
    const kernel_number *const d_attended = through_outer_norm(unit, room_middle, d_middle, &kept, layer,
                                                               ATTENTION_NORM);
    attention_backward(unit, layer, &kept, d_attended);
    norm_backward(unit, d_in, transformer_own_sum(unit, d_branch), in, kept.norm1_stats, d_middle, layer,
                  tensor_index(unit, INPUT_NORM));
}

static void block_weights(const struct transformer_unit *all_blocks, uint64_t layer, kernel_number *const *all,
                          const kernel_number *in, const kernel_number *d_out)
{
    struct network room;
    const struct transformer_unit of = of_block(all_blocks, layer, &room), *const unit = &of;
    const struct kept kept = kept_of(unit, all);
    const int64_t c = unit->c, inner = unit->inner, shared = unit->shared;
    const struct heads d = heads_of(unit);
    (void)in;
    feed_forward_weights(unit, layer, &kept, has_outer_norms(unit) ? unit->d_out : d_out);
    transformer_linear_weight(unit, unit->d_middle, kept.attention, layer,
                              transformer_by_rows(linear_of(unit, PROJECTION_WEIGHT, c, inner)));
    const kernel_number *const attending = transformer_all_rows(unit, kept.norm1);
    transformer_linear_weight(unit, d.q, attending, layer, linear_of(unit, Q_WEIGHT, inner, c));
    transformer_linear_weight(unit, d.k, attending, layer, linear_of(unit, K_WEIGHT, shared, c));
    transformer_linear_weight(unit, d.v, attending, layer, linear_of(unit, V_WEIGHT, shared, c));
}

static void head(const struct transformer_unit *unit, uint64_t layer, kernel_number *const *kept,
                 const kernel_number *in, kernel_number *d_in)
{
    const struct transformer_words words = transformer_next_words(unit, HEAD_WEIGHT);
    norm_forward(unit, kept[KEPT_NORMF], NULL, kept[KEPT_NORMF_STATS], in, NULL, layer,
                 NORMF_WEIGHT);
    const kernel_number *const d_normf =
        transformer_words(unit, layer, &words, kept[KEPT_NORMF], d_in ? unit->d_stream2 : NULL);
    if (!d_in) return;
    norm_backward(unit, d_in, d_normf, in, kept[KEPT_NORMF_STATS], NULL, layer,
                  NORMF_WEIGHT);
}

/* --- embeddings of gemma -------------------------------------------------------------------------- */

/* Returns its factor, in the precision of the table. */
static float embedding_factor(const struct transformer_unit *unit)
{
    const float factor = sqrtf((float)unit->network->width);
    return unit->arguments->job->precision == PRECISION_FP32 ? factor : bf16_widen(bf16_nearest(factor));
}

static void scaled_forward(const struct transformer_unit *unit)
{
    kernel_number *const x = unit->arguments->boundary_out;
    transformer_tables_forward(unit);
    if (transformer_tables_end(unit))
        unit->kernels->scale(unit->kernels, x, x, unit->r * unit->c, embedding_factor(unit));
}

static void scaled_backward(const struct transformer_unit *unit)
{
    kernel_number *const d = unit->scratch + MEMORY_EMBEDDING_WORDS * unit->r;
    unit->kernels->scale(unit->kernels, d, unit->arguments->gradient_in, unit->r * unit->c, embedding_factor(unit));
    transformer_tables_backward_from(unit, d);
}

/* --- families ----------------------------------------------------------------------------------- */

#define NEEDS_OF_ALL TRANSFORMER_NEED(rms_norm_forward), TRANSFORMER_NEED(rms_norm_backward), TRANSFORMER_NEED(rope)
static const struct transformer_need silu_needs[] = {
    NEEDS_OF_ALL, TRANSFORMER_NEED(swiglu_forward), TRANSFORMER_NEED(swiglu_backward),
};
static const struct transformer_need gelu_needs[] = {
    NEEDS_OF_ALL, TRANSFORMER_NEED(geglu_forward), TRANSFORMER_NEED(geglu_backward), TRANSFORMER_NEED(scale),
};

static const struct transformer_need expert_needs[] = {
    NEEDS_OF_ALL, TRANSFORMER_NEED(swiglu_forward), TRANSFORMER_NEED(swiglu_backward), TRANSFORMER_NEED(route),
    TRANSFORMER_NEED(route_backward), TRANSFORMER_NEED(send), TRANSFORMER_NEED(collect),
    TRANSFORMER_NEED(collect_backward), TRANSFORMER_NEED(gate_rows), TRANSFORMER_NEED(gate_rows_backward),
};

static const char *experts_unsupported(const struct job *job)
{
    static _Thread_local char text[96];
    if (job->network.auxiliary_loss)
        return "its auxiliary loss of routers is not trained (expected \"output_router_logits\": false)";
    if (job->network.experts_chosen <= KERNEL_CHOSEN_MAX) return NULL;
    snprintf(text, sizeof text, "more than %d experts of a token are not trained", KERNEL_CHOSEN_MAX);
    return text;
}

#define LLAMA_LIKE \
    .block_forward = block_forward, .block_backward = block_backward, .block_weights = block_weights, .head = head
#define PLAIN_TABLES .embedding_forward = transformer_tables_forward, .embedding_backward = transformer_tables_backward
#define GEMMA_LIKE \
    LLAMA_LIKE, .embedding_forward = scaled_forward, .embedding_backward = scaled_backward, .needs = gelu_needs, \
    .need_count = sizeof gelu_needs / sizeof *gelu_needs

const struct transformer transformer_llama = {
    LLAMA_LIKE, PLAIN_TABLES, .needs = silu_needs, .need_count = sizeof silu_needs / sizeof *silu_needs};
const struct transformer transformer_experts = {
    LLAMA_LIKE, PLAIN_TABLES, .needs = expert_needs, .need_count = sizeof expert_needs / sizeof *expert_needs,
    .unsupported = experts_unsupported};
const struct transformer transformer_gemma = {GEMMA_LIKE};
const struct transformer transformer_gemma2 = {GEMMA_LIKE, .ends_with_norm = true};
