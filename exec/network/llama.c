/*
 * Llama, and with switches mistral, qwen2 (biases of q, k and v), qwen3 (norms of q's and k's heads) and gemma (GELU, a scaled
 * embedding).
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
 * Norms of q and k, where there are any, come before the rotation, and their inputs are kept. Norms are root-mean-square
 * norms; gemma's weights are kept with the 1 that files leave out. Gradients run as in exec/network/gpt2.c. Queries and keys are kept after rotation;
 * their gradients are rotated back. The products that lead back to a norm add up in d_stream2, in the order q, k, v,
 * or gate, up.
 *
 * The head is a norm and the product with the token table (tied) or a matrix of its own.
 *
 * Source: Touvron et al., arXiv 2302.13971, section 2.2; modeling_llama.py, _mistral.py, _qwen2.py, _qwen3.py and _gemma.py of
 * transformers.
 */
#include "exec/network/transformer.h"

#include <math.h>

#include "base/bf16.h"
#include "models/network/network_traits.h"

/* In the order of network_layer_tensors(), which leaves out those that a family does not have (tensor_index()). */
enum block_tensor {
    Q_WEIGHT, Q_BIAS, K_WEIGHT, K_BIAS, V_WEIGHT, V_BIAS, PROJECTION_WEIGHT, Q_NORM, K_NORM, GATE_WEIGHT, UP_WEIGHT, DOWN_WEIGHT,
    NORM1_WEIGHT, NORM2_WEIGHT
};
enum head_tensor { NORMF_WEIGHT, HEAD_WEIGHT };

/* In the order of memory_activations(). Where q and k have norms, their inputs and statistics come after KEPT_V. */
enum block_kept {
    KEPT_NORM1, KEPT_NORM1_STATS, KEPT_Q, KEPT_K, KEPT_V,
    KEPT_ATTENTION, KEPT_ATTENTION_STATS,
    KEPT_MIDDLE, KEPT_NORM2, KEPT_NORM2_STATS, KEPT_GATE, KEPT_UP, KEPT_SWIGLU,
    KEPT_OUTPUT, /* not of the last layer */
    BLOCK_KEPT,
    PLAIN_Q = KEPT_ATTENTION, PLAIN_K, QK_STATS, HEAD_NORMS_KEPT = 3
};
enum head_kept { KEPT_NORMF, KEPT_NORMF_STATS, HEAD_KEPT };

static bool has_head_norms(const struct transformer_unit *unit)
{
    return network_traits(unit->network)->qk_norm;
}

/* Returns a block's tensor by its number in the family. */
static uint32_t tensor_index(const struct transformer_unit *unit, enum block_tensor tensor)
{
    uint32_t index = (uint32_t)tensor;
    if (!unit->network->biases) index -= tensor > V_BIAS ? 3 : (uint32_t)tensor / 2;
    if (!has_head_norms(unit) && tensor > K_NORM) index -= 2;
    return index;
}

/* Returns the kept tensors from KEPT_ATTENTION on, by these numbers. */
static float *const *kept_later(const struct transformer_unit *unit, float *const *kept)
{
    return has_head_norms(unit) ? kept + HEAD_NORMS_KEPT : kept;
}

static struct transformer_linear linear_of(const struct transformer_unit *unit, enum block_tensor weight, int64_t out, int64_t in)
{
    const bool bias = unit->network->biases && weight <= V_WEIGHT;
    return (struct transformer_linear){
        .weight = tensor_index(unit, weight), .rows = unit->r, .out = out, .in = in, .bias = bias};
}

/* `weight`: the tensor's number in its layer. */
static void norm_forward(const struct transformer_unit *unit, float *out, float *sum, float *stats,
                         const float *x, const float *y, uint64_t layer, uint32_t weight)
{
    unit->kernels->rms_norm_forward(unit->kernels, out, sum, stats, x, y,
                                    transformer_vector(unit, layer, weight), unit->own, unit->c,
                                    unit->epsilon);
}

static void norm_pass(const struct transformer_unit *unit, const struct transformer_norm *n)
{
    unit->kernels->rms_norm_backward(unit->kernels, n->dx, n->d_weight, n->dout, n->x, n->stats, n->weight, n->added, n->rows,
                                     unit->c);
}

static void norm_backward(const struct transformer_unit *unit, float *dx, const float *dout, const float *x,
                          const float *stats, const float *added, uint64_t layer, uint32_t weight)
{
    const struct transformer_tensor w = transformer_tensor(unit, layer, weight);
    const struct transformer_norm norm = {.dx = dx, .d_weight = w.g, .dout = dout, .x = x, .stats = stats, .added = added,
                                          .weight = w.weights.fp32, .rows = unit->own};
    transformer_norm_in_parts(unit, &norm, 1, norm_pass);
    transformer_step(unit, &w, false);
}

/* d_qkv's three parts. */
struct heads {
    float *q, *k, *v;
};

static struct heads heads_of(const struct transformer_unit *unit)
{
    float *q = unit->d_qkv, *k = q + unit->r * unit->inner;
    return (struct heads){q, k, k + unit->r * unit->shared};
}

static void rotate(const struct transformer_unit *unit, float *q, float *k, bool back)
{
    int64_t kv = unit->shared / unit->d;
    const struct kernel_rope rope = {.q = q, .k = k, .b = unit->b, .t = unit->t, .h = unit->h, .kv = kv, .d = unit->d,
                                     .begin = transformer_first_token(unit), .row_q = unit->inner, .row_k = unit->shared,
                                     .turned = unit->d, .back = back, .rope = &unit->network->rope};
    transformer_rotate(unit, &rope);
}

/* The rows of q's or k's norm are heads. */
static void norm_heads(const struct transformer_unit *unit, float *out, float *stats, const float *x, uint64_t layer,
                       enum block_tensor weight, int64_t heads)
{
    unit->kernels->rms_norm_forward(unit->kernels, out, NULL, stats, x, NULL,
                                    transformer_vector(unit, layer, tensor_index(unit, weight)), unit->r * heads, unit->d,
                                    unit->epsilon);
}

static void norm_heads_backward(const struct transformer_unit *unit, float *dx, const float *x, const float *stats,
                                uint64_t layer, enum block_tensor weight, int64_t heads)
{
    const struct transformer_tensor w = transformer_tensor(unit, layer, tensor_index(unit, weight));
    const int64_t rows = unit->r * heads / unit->pieces, count = rows * unit->d;
    for (int64_t p = 0; p < unit->pieces; p++)
        unit->kernels->rms_norm_backward(unit->kernels, dx + p * count, unit->piece_sums ? unit->piece_sums + p * unit->d : w.g,
                                         dx + p * count, x + p * count, stats + p * rows, w.weights.fp32, NULL, rows, unit->d);
    transformer_add_pieces(unit, w.g, unit->piece_sums, unit->d);
    transformer_sum(unit, w.g, unit->d); /* over the heads of all devices */
    transformer_step(unit, &w, false);
}

/* Returns a block's attention; the backward pass adds gradients. */
static struct kernel_attention attention_of(const struct transformer_unit *unit, uint64_t layer, float *const *kept)
{
    float *const *const later = kept_later(unit, kept);
    struct kernel_attention attention = transformer_attention(unit, kept[KEPT_Q], kept[KEPT_K], kept[KEPT_V],
                                                              later[KEPT_ATTENTION],
                                                              later[KEPT_ATTENTION_STATS]);
    if (layer - 1 >= unit->network->window_from) attention.window = (int64_t)unit->network->window;
    return attention;
}

/* Makes q, k and v from the first norm's output, with norms and rotation. */
static void make_heads(const struct transformer_unit *unit, uint64_t layer, float *const *kept)
{
    const bool norms = has_head_norms(unit);
    float *const q = norms ? kept[PLAIN_Q] : kept[KEPT_Q], *const k = norms ? kept[PLAIN_K] : kept[KEPT_K];
    const int64_t c = unit->c, heads = unit->h, shared_heads = unit->shared / unit->d;
    const float *const normed = transformer_all_rows(unit, kept[KEPT_NORM1]);
    transformer_linear_forward(unit, q, normed, layer, linear_of(unit, Q_WEIGHT, unit->inner, c));
    transformer_linear_forward(unit, k, normed, layer, linear_of(unit, K_WEIGHT, unit->shared, c));
    transformer_linear_forward(unit, kept[KEPT_V], normed, layer, linear_of(unit, V_WEIGHT, unit->shared, c));
    if (norms) {
        norm_heads(unit, kept[KEPT_Q], kept[QK_STATS], q, layer, Q_NORM, heads);
        norm_heads(unit, kept[KEPT_K], kept[QK_STATS] + unit->r * heads, k, layer, K_NORM, shared_heads);
    }
    rotate(unit, kept[KEPT_Q], kept[KEPT_K], false);
}

/* Takes the gradients of q and k back through rotation and norms, in place. */
static void unmake_heads(const struct transformer_unit *unit, uint64_t layer, float *const *kept, const struct heads *d)
{
    rotate(unit, d->q, d->k, true);
    if (!has_head_norms(unit)) return;
    norm_heads_backward(unit, d->q, kept[PLAIN_Q], kept[QK_STATS], layer, Q_NORM, unit->h);
    norm_heads_backward(unit, d->k, kept[PLAIN_K], kept[QK_STATS] + unit->r * unit->h, layer, K_NORM, unit->shared / unit->d);
}

static void gate_forward(const struct transformer_unit *unit, float *y, const float *gate, const float *up)
{
    const struct kernels *k = unit->kernels;
    (network_traits(unit->network)->less_one ? k->geglu_forward : k->swiglu_forward)(k, y, gate, up, unit->r * unit->f);
}

static void gate_backward(const struct transformer_unit *unit, float *d_gate, float *d_up, const float *gate, const float *up)
{
    const struct kernels *k = unit->kernels;
    (network_traits(unit->network)->less_one ? k->geglu_backward : k->swiglu_backward)(k, d_gate, d_up, d_gate, gate, up,
                                                                                      unit->r * unit->f);
}

static void block_forward(const struct transformer_unit *unit, uint64_t layer, float *const *kept,
                          const float *in, float *out)
{
    const struct kernels *k = unit->kernels;
    int64_t c = unit->c, f = unit->f, inner = unit->inner;
    float *const *const later = kept_later(unit, kept);
    float *branch = later[KEPT_MIDDLE];
    norm_forward(unit, kept[KEPT_NORM1], NULL, kept[KEPT_NORM1_STATS], in, NULL, layer,
                 tensor_index(unit, NORM1_WEIGHT));
    make_heads(unit, layer, kept);
    const struct kernel_attention attention = attention_of(unit, layer, kept);
    transformer_attend(unit, layer, &attention);
    transformer_linear_forward(unit, branch, later[KEPT_ATTENTION], layer,
                               transformer_by_rows(linear_of(unit, PROJECTION_WEIGHT, c, inner)));
    norm_forward(unit, later[KEPT_NORM2], later[KEPT_MIDDLE], later[KEPT_NORM2_STATS], in, branch,
                 layer, tensor_index(unit, NORM2_WEIGHT));
    const float *const normed = transformer_all_rows(unit, later[KEPT_NORM2]);
    transformer_linear_forward(unit, later[KEPT_GATE], normed, layer,
                               linear_of(unit, GATE_WEIGHT, f, c));
    transformer_linear_forward(unit, later[KEPT_UP], normed, layer,
                               linear_of(unit, UP_WEIGHT, f, c));
    gate_forward(unit, later[KEPT_SWIGLU], later[KEPT_GATE], later[KEPT_UP]);
    if (!out) return;
    transformer_linear_forward(unit, out, later[KEPT_SWIGLU], layer,
                               transformer_by_rows(linear_of(unit, DOWN_WEIGHT, c, f)));
    k->residual(k, out, later[KEPT_MIDDLE], out, unit->own * c);
}

static void block_backward(const struct transformer_unit *unit, uint64_t layer, float *const *kept,
                           const float *in, const float *d_out, float *d_in)
{
    int64_t c = unit->c, f = unit->f, inner = unit->inner, shared = unit->shared;
    float *const *const later = kept_later(unit, kept);
    float *d_gate = unit->d_wide, *d_up = unit->d_wide + unit->r * f;
    float *d_branch = unit->d_stream2, *d_middle = transformer_d_middle(unit, d_in);
    transformer_linear_backward(unit, d_gate, d_out, later[KEPT_SWIGLU], layer,
                                transformer_by_rows(linear_of(unit, DOWN_WEIGHT, c, f)), false);
    gate_backward(unit, d_gate, d_up, later[KEPT_GATE], later[KEPT_UP]);
    const float *const gated = transformer_rows_for_weights(unit, later[KEPT_NORM2]);
    transformer_linear_backward(unit, d_branch, d_gate, gated, layer,
                                linear_of(unit, GATE_WEIGHT, f, c), false);
    transformer_linear_backward(unit, d_branch, d_up, gated, layer,
                                linear_of(unit, UP_WEIGHT, f, c), true);
    norm_backward(unit, d_middle, transformer_own_sum(unit, d_branch), later[KEPT_MIDDLE], later[KEPT_NORM2_STATS], d_out,
                  layer, tensor_index(unit, NORM2_WEIGHT));

    struct heads d = heads_of(unit);
    transformer_linear_backward(unit, d_branch, d_middle, later[KEPT_ATTENTION], layer,
                                transformer_by_rows(linear_of(unit, PROJECTION_WEIGHT, c, inner)), false);
    struct kernel_attention attention = attention_of(unit, layer, kept);
    attention.dout = d_branch;
    attention.dq = d.q;
    attention.dk = d.k;
    attention.dv = d.v;
    transformer_attend_backward(unit, layer, &attention);
    unmake_heads(unit, layer, kept, &d);
    const float *const attending = transformer_rows_for_weights(unit, kept[KEPT_NORM1]);
    transformer_linear_backward(unit, d_branch, d.q, attending, layer,
                                linear_of(unit, Q_WEIGHT, inner, c), false);
    transformer_linear_backward(unit, d_branch, d.k, attending, layer,
                                linear_of(unit, K_WEIGHT, shared, c), true);
    transformer_linear_backward(unit, d_branch, d.v, attending, layer,
                                linear_of(unit, V_WEIGHT, shared, c), true);
    norm_backward(unit, d_in, transformer_own_sum(unit, d_branch), in, kept[KEPT_NORM1_STATS], d_middle, layer,
                  tensor_index(unit, NORM1_WEIGHT));
}

static void block_weights(const struct transformer_unit *unit, uint64_t layer, float *const *kept, const float *in,
                          const float *d_out)
{
    int64_t c = unit->c, f = unit->f, inner = unit->inner, shared = unit->shared;
    float *const *const later = kept_later(unit, kept);
    const struct heads d = heads_of(unit);
    const float *d_gate = unit->d_wide, *d_up = unit->d_wide + unit->r * f;
    (void)in;
    transformer_linear_weight(unit, d_out, later[KEPT_SWIGLU], layer, transformer_by_rows(linear_of(unit, DOWN_WEIGHT, c, f)));
    const float *const gated = transformer_all_rows(unit, later[KEPT_NORM2]);
    transformer_linear_weight(unit, d_gate, gated, layer, linear_of(unit, GATE_WEIGHT, f, c));
    transformer_linear_weight(unit, d_up, gated, layer, linear_of(unit, UP_WEIGHT, f, c));
    transformer_linear_weight(unit, unit->d_middle, later[KEPT_ATTENTION], layer,
                              transformer_by_rows(linear_of(unit, PROJECTION_WEIGHT, c, inner)));
    const float *const attending = transformer_all_rows(unit, kept[KEPT_NORM1]);
    transformer_linear_weight(unit, d.q, attending, layer, linear_of(unit, Q_WEIGHT, inner, c));
    transformer_linear_weight(unit, d.k, attending, layer, linear_of(unit, K_WEIGHT, shared, c));
    transformer_linear_weight(unit, d.v, attending, layer, linear_of(unit, V_WEIGHT, shared, c));
}

static void head(const struct transformer_unit *unit, uint64_t layer, float *const *kept, const float *in,
                 float *d_in)
{
    const struct transformer_words words = transformer_next_words(unit, HEAD_WEIGHT);
    norm_forward(unit, kept[KEPT_NORMF], NULL, kept[KEPT_NORMF_STATS], in, NULL, layer,
                 NORMF_WEIGHT);
    const float *const d_normf =
        transformer_words(unit, layer, &words, kept[KEPT_NORMF], d_in ? unit->d_stream2 : NULL);
    if (!d_in) return;
    norm_backward(unit, d_in, d_normf, in, kept[KEPT_NORMF_STATS], NULL, layer,
                  NORMF_WEIGHT);
}

/* --- gemma's embedding -------------------------------------------------------------------------- */

/* Returns its factor, in the precision of the table. */
static float embedding_factor(const struct transformer_unit *unit)
{
    const float factor = sqrtf((float)unit->network->width);
    return unit->arguments->job->precision == PRECISION_BF16_WEIGHTS ? bf16_widen(bf16_nearest(factor)) : factor;
}

static void scaled_forward(const struct transformer_unit *unit)
{
    float *const x = unit->arguments->boundary_out;
    transformer_tables_forward(unit);
    if (transformer_tables_end(unit)) unit->kernels->scale(unit->kernels, x, x, unit->r * unit->c, embedding_factor(unit));
}

static void scaled_backward(const struct transformer_unit *unit)
{
    float *const d = unit->scratch + MEMORY_EMBEDDING_WORDS * unit->r;
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

#define LLAMA_LIKE \
    .head_kept = HEAD_KEPT, .block_forward = block_forward, .block_backward = block_backward, \
    .block_weights = block_weights, .head = head
#define WITH_SILU \
    .embedding_forward = transformer_tables_forward, .embedding_backward = transformer_tables_backward, \
    .needs = silu_needs, .need_count = sizeof silu_needs / sizeof *silu_needs

const struct transformer transformer_llama = {LLAMA_LIKE, WITH_SILU, .block_kept = BLOCK_KEPT};
const struct transformer transformer_qwen3 = {LLAMA_LIKE, WITH_SILU, .block_kept = BLOCK_KEPT + HEAD_NORMS_KEPT};
const struct transformer transformer_gemma = {
    LLAMA_LIKE,
    .block_kept = BLOCK_KEPT,
    .embedding_forward = scaled_forward,
    .embedding_backward = scaled_backward,
    .needs = gelu_needs,
    .need_count = sizeof gelu_needs / sizeof *gelu_needs,
};
