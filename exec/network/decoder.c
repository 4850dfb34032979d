/*
 * gpt_neox, gptj, phi and opt: layer norms, biases, a feed-forward part without a gate. Letters as in
 * models/kernel/work.h; K heads of keys and values. Weights are stored (out, in). The two parts of a block run side by
 * side, or in opt and in gpt_neox by a switch one after the other. With the names of kept tensors:
 *
 *     in(R,C) --+-- norm1 -- q(R,HD), k(R,KD) turned, v(R,KD) -- attention(R,HD) -- projection --+
 *               +-- norm2 -- fc(R,F) -- gelu(R,F) -- projection ---------------------------------+-- out(R,C)
 *               +--------------------------------------------------------------------------------+
 *
 *     in(R,C) --+-- norm1 -- q(R,HD), k(R,KD), v(R,KD) -- attention(R,HD) -- projection --+
 *               +-------------------------------------------------------------------------+-- middle(R,C) --+
 *               +-- norm2 -- fc(R,F) -- gelu(R,F) -- projection --+                                         |
 *               +-------------------------------------------------+-- out(R,C)                         <----+
 *
 * gptj and phi have one norm for both parts. gpt_neox keeps q, k and v as columns of one array; its files have them
 * head by head (exec/files/weights.c). Only the first numbers of a head turn, in gptj in adjacent pairs; opt's do not.
 * In opt a ReLU takes the place of the GELU, and positions begin after two rows without use.
 *
 * Gradients of parts side by side are both made from d_out before d_in is written, as they may be one buffer.
 *
 * A tensor group cuts both parts, and adds up the results of parts side by side at once. The gradient of each norm's
 * output is a sum of its own.
 *
 * Source: Wang and Komatsuzaki, GPT-J-6B; Black et al., arXiv 2204.06745; Zhang et al., arXiv 2205.01068;
 * modeling_gpt_neox.py, _gptj.py, _phi.py and _opt.py of transformers.
 */
#include "exec/network/transformer.h"
#include "models/network/network_traits.h"

/* In the order of network_layer_tensors(), without tensors that a family does not have (tensor_index()). Q also
 * stands for the one tensor of q, k and v. */
enum block_tensor {
    NORM1_WEIGHT, NORM1_BIAS, Q_WEIGHT, Q_BIAS, K_WEIGHT, K_BIAS, V_WEIGHT, V_BIAS, PROJECTION_WEIGHT, PROJECTION_BIAS,
    NORM2_WEIGHT, NORM2_BIAS, FC_WEIGHT, FC_BIAS, OUT_WEIGHT, OUT_BIAS
};
enum head_tensor { NORMF_WEIGHT, NORMF_BIAS, HEAD_WEIGHT, HEAD_BIAS };

enum head_kept { KEPT_NORMF, KEPT_NORMF_STATS };

/* A block's kept tensors. */
struct kept {
    kernel_number *norm1, *norm2, *q, *k, *v, *attention, *fc, *gelu;
    kernel_number *middle; /* of parts one after the other */
    float *norm1_stats, *norm2_stats, *attention_stats;
    int64_t row_q, row_kv;
};

static bool is_parallel(const struct transformer_unit *unit)
{
    return network_traits(unit->network)->parallel;
}

/* Names the kept tensors, which are in the order of memory_activations(). */
static struct kept kept_of(const struct transformer_unit *unit, kernel_number *const *next)
{
    const struct network_traits *const traits = network_traits(unit->network);
    struct kept kept = {.norm1 = next[0], .norm1_stats = next[1], .q = next[2], .row_q = unit->inner,
                        .row_kv = unit->shared};
    next += 3;
    if (traits->fused_qkv) {
        kept.k = transformer_number(unit, kept.q, unit->inner);
        kept.v = transformer_number(unit, kept.k, unit->inner);
        kept.row_q = kept.row_kv = 3 * unit->inner;
    } else {
        kept.k = *next++;
        kept.v = *next++;
    }
    kept.attention = *next++;
    kept.attention_stats = *next++;
    if (!traits->parallel) kept.middle = *next++;
    kept.norm2 = traits->one_norm ? kept.norm1 : *next++;
    kept.norm2_stats = traits->one_norm ? kept.norm1_stats : *next++;
    kept.fc = *next++;
    kept.gelu = *next++;
    return kept;
}

/* Returns true if the family has the tensor. */
static bool has_tensor(const struct network *network, enum block_tensor tensor)
{
    const struct network_traits *const traits = network_traits(network);
    switch (tensor) {
    case Q_BIAS: return network->biases;
    case K_WEIGHT:
    case V_WEIGHT: return !traits->fused_qkv;
    case K_BIAS:
    case V_BIAS: return network->biases && !traits->fused_qkv;
    case PROJECTION_BIAS: return traits->out_bias;
    case NORM2_WEIGHT:
    case NORM2_BIAS: return !traits->one_norm;
    case FC_BIAS:
    case OUT_BIAS: return traits->ff_bias;
    default: return true;
    }
}

static uint32_t tensor_index(const struct transformer_unit *unit, enum block_tensor tensor)
{
    uint32_t index = 0;
    for (uint32_t i = 0; i < (uint32_t)tensor; i++) index += has_tensor(unit->network, (enum block_tensor)i);
    return index;
}

static struct transformer_linear linear_of(const struct transformer_unit *unit, enum block_tensor weight, int64_t out,
                                           int64_t in)
{
    return (struct transformer_linear){.weight = tensor_index(unit, weight), .rows = unit->r, .out = out, .in = in,
                                       .bias = has_tensor(unit->network, (enum block_tensor)(weight + 1))};
}

/* Returns a product that makes a part of the block's sum. */
static struct transformer_linear part_of(const struct transformer_unit *unit, enum block_tensor weight, int64_t in)
{
    struct transformer_linear linear = transformer_by_rows(linear_of(unit, weight, unit->c, in));
    linear.apart = true;
    return linear;
}

/* Returns the product after attention. The result of parts one after the other is a sum of its own. */
static struct transformer_linear projection_of(const struct transformer_unit *unit)
{
    if (is_parallel(unit)) return part_of(unit, PROJECTION_WEIGHT, unit->inner);
    return transformer_by_rows(linear_of(unit, PROJECTION_WEIGHT, unit->c, unit->inner));
}

static struct kernel_attention attention_of(const struct transformer_unit *unit, uint64_t layer,
                                            const struct kept *kept)
{
    struct kernel_attention attention =
        transformer_attention(unit, layer, kept->q, kept->k, kept->v, kept->attention, kept->attention_stats);
    attention.row_q = kept->row_q;
    attention.row_kv = kept->row_kv;
    return attention;
}

static void rotate(const struct transformer_unit *unit, const struct kept *kept, kernel_number *q, kernel_number *k,
                   bool back)
{
    const struct kernel_rope rope = {.q = q, .k = k, .b = unit->b, .t = unit->t, .h = unit->h,
                                     .kv = unit->shared / unit->d,
                                     .d = unit->d, .begin = transformer_first_token(unit),
                                     .begins = unit->arguments->begins, .row_q = kept->row_q,
                                     .row_k = kept->row_kv, .turned = (int64_t)unit->network->rotary_width / 2 * 2,
                                     .adjacent = unit->network->family == NETWORK_GPTJ, .back = back,
                                     .rope = &unit->network->rope};
    if (network_traits(unit->network)->rotary) transformer_rotate(unit, &rope);
}

/* --- products to and from q, k and v ---------------------------------------------------------------- */

static void heads_forward(const struct transformer_unit *unit, const kernel_number *normed, uint64_t layer,
                          const struct kept *kept)
{
    const int64_t c = unit->c;
    if (network_traits(unit->network)->fused_qkv) {
        transformer_linear_forward(unit, kept->q, normed, layer, linear_of(unit, Q_WEIGHT, 3 * unit->inner, c));
    } else {
        transformer_linear_forward(unit, kept->q, normed, layer, linear_of(unit, Q_WEIGHT, unit->inner, c));
        transformer_linear_forward(unit, kept->k, normed, layer, linear_of(unit, K_WEIGHT, unit->shared, c));
        transformer_linear_forward(unit, kept->v, normed, layer, linear_of(unit, V_WEIGHT, unit->shared, c));
    }
    rotate(unit, kept, kept->q, kept->k, false);
}

/* The gradients of q, k and v. */
struct heads {
    kernel_number *q, *k, *v;
};

static struct heads heads_of(const struct transformer_unit *unit)
{
    const bool fused = network_traits(unit->network)->fused_qkv;
    kernel_number *const q = unit->d_qkv;
    kernel_number *const k = transformer_number(unit, q, fused ? unit->inner : unit->r * unit->inner);
    return (struct heads){q, k, transformer_number(unit, k, fused ? unit->inner : unit->r * unit->shared)};
}

/* Adds what comes from q, k and v to d_norm, or sets it. `normed`: all rows of the norm, for the gradients of
 * weights. */
static void heads_backward(const struct transformer_unit *unit, kernel_number *d_norm, const kernel_number *normed,
                           uint64_t layer, const struct kept *kept, bool adds)
{
    const struct heads d = heads_of(unit);
    const int64_t c = unit->c;
    rotate(unit, kept, d.q, d.k, true);
    if (network_traits(unit->network)->fused_qkv) {
        transformer_linear_backward(unit, d_norm, d.q, normed, layer, linear_of(unit, Q_WEIGHT, 3 * unit->inner, c),
                                    adds);
        return;
    }
    transformer_linear_backward(unit, d_norm, d.q, normed, layer, linear_of(unit, Q_WEIGHT, unit->inner, c), adds);
    transformer_linear_backward(unit, d_norm, d.k, normed, layer, linear_of(unit, K_WEIGHT, unit->shared, c), true);
    transformer_linear_backward(unit, d_norm, d.v, normed, layer, linear_of(unit, V_WEIGHT, unit->shared, c), true);
}

/* --- blocks ----------------------------------------------------------------------------------------- */

static void activate(const struct transformer_unit *unit, const struct kept *kept)
{
    const struct kernels *k = unit->kernels;
    if (network_traits(unit->network)->relu) k->relu_forward(k, kept->gelu, kept->fc, unit->r * unit->f);
    else k->gelu_forward(k, kept->gelu, kept->fc, unit->r * unit->f, unit->network->gelu_tanh);
}

/* Takes the gradient in d_wide back through the activation. */
static void activate_backward(const struct transformer_unit *unit, const struct kept *kept)
{
    const struct kernels *k = unit->kernels;
    kernel_number *const d = unit->d_wide;
    if (network_traits(unit->network)->relu) k->relu_backward(k, d, d, kept->fc, unit->r * unit->f);
    else k->gelu_backward(k, d, d, kept->fc, unit->r * unit->f, unit->network->gelu_tanh);
}

static void block_forward(const struct transformer_unit *unit, uint64_t layer, kernel_number *const *all,
                          const kernel_number *in, kernel_number *out)
{
    const struct kernels *k = unit->kernels;
    const struct kept kept = kept_of(unit, all);
    const int64_t c = unit->c, f = unit->f;
    const bool parallel = is_parallel(unit);
    const struct transformer_unit whole = transformer_with_all_rows(unit);
    transformer_norm_forward(unit, kept.norm1, NULL, kept.norm1_stats, in, NULL, unit->own, layer, NORM1_WEIGHT);
    const kernel_number *normed = transformer_all_rows(unit, kept.norm1);
    heads_forward(unit, normed, layer, &kept);
    const struct kernel_attention attention = attention_of(unit, layer, &kept);
    transformer_attend(unit, layer, &attention);
    if (!parallel) {
        transformer_linear_forward(unit, kept.middle, kept.attention, layer, projection_of(unit));
        transformer_drop(unit, kept.middle, layer, TRANSFORMER_ATTENDED);
    }
    if (!network_traits(unit->network)->one_norm) {
        transformer_norm_forward(unit, kept.norm2, kept.middle, kept.norm2_stats, in, kept.middle, unit->own, layer,
                                 tensor_index(unit, NORM2_WEIGHT));
        normed = transformer_all_rows(unit, kept.norm2);
    }
    transformer_linear_forward(unit, kept.fc, normed, layer, linear_of(unit, FC_WEIGHT, f, c));
    activate(unit, &kept);
    if (!out) return;
    kernel_number *const branch = unit->scratch, *const sum = transformer_sum_room(unit, out);
    transformer_linear_forward(unit, sum, kept.gelu, layer, part_of(unit, OUT_WEIGHT, f));
    transformer_drop(&whole, sum, layer, TRANSFORMER_MADE);
    if (parallel) {
        transformer_linear_forward(unit, branch, kept.attention, layer, projection_of(unit));
        transformer_drop(&whole, branch, layer, TRANSFORMER_ATTENDED);
        k->residual(k, sum, branch, sum, unit->pieces * unit->r * c);
    }
    transformer_complete_sum(unit, out, sum);
    k->residual(k, out, parallel ? in : kept.middle, out, unit->own * c);
}

/* Returns the gradient of the projection: of all rows where parts are side by side, which have one gathering, else of
 * own rows. */
static const kernel_number *d_projected(const struct transformer_unit *unit, kernel_number *room,
                                        const kernel_number *d_result, uint64_t layer)
{
    const struct transformer_unit whole = transformer_with_all_rows(unit);
    return transformer_dropped_gradient(is_parallel(unit) ? &whole : unit, room, d_result, layer, TRANSFORMER_ATTENDED);
}

/* Computes the gradients of attention's result, in d_stream2, and of what it reads, from that of the projection's
 * result. */
static void attend_backward(const struct transformer_unit *unit, uint64_t layer, const struct kept *kept,
                            const kernel_number *d_result)
{
    const struct heads d = heads_of(unit);
    struct kernel_attention attention = attention_of(unit, layer, kept);
    transformer_linear_backward(unit, unit->d_stream2, d_projected(unit, unit->scratch, d_result, layer),
                                kept->attention, layer, projection_of(unit), false);
    attention.dout = unit->d_stream2;
    attention.dq = d.q;
    attention.dk = d.k;
    attention.dv = d.v;
    transformer_attend_backward(unit, layer, &attention);
}

static void block_backward(const struct transformer_unit *unit, uint64_t layer, kernel_number *const *all,
                           const kernel_number *in, const kernel_number *d_out, kernel_number *d_in)
{
    const struct kept kept = kept_of(unit, all);
    const int64_t c = unit->c, f = unit->f;
    const bool one_norm = network_traits(unit->network)->one_norm, parallel = is_parallel(unit);
    const struct transformer_unit whole = transformer_with_all_rows(unit);
    kernel_number *const d_branch = unit->d_stream2;
    kernel_number *const d_middle = parallel ? d_in : transformer_d_middle(unit, d_in);
    const kernel_number *const d_sum = transformer_all_rows(unit, d_out);
    const kernel_number *const d_made = transformer_dropped_gradient(&whole, d_branch, d_sum, layer, TRANSFORMER_MADE);
    transformer_linear_backward(unit, unit->d_wide, d_made, kept.gelu, layer, part_of(unit, OUT_WEIGHT, f), false);
    activate_backward(unit, &kept);
    if (parallel) attend_backward(unit, layer, &kept, d_sum);
    const kernel_number *normed = transformer_rows_for_weights(unit, kept.norm2);
    transformer_linear_backward(unit, d_branch, unit->d_wide, normed, layer, linear_of(unit, FC_WEIGHT, f, c), false);
    if (!one_norm)
        transformer_norm_backward(unit, d_middle, transformer_own_sum(unit, d_branch), parallel ? in : kept.middle,
                                  kept.norm2_stats, d_out, unit->own, layer, tensor_index(unit, NORM2_WEIGHT));
    if (!parallel) attend_backward(unit, layer, &kept, d_middle);
    if (!one_norm) normed = transformer_rows_for_weights(unit, kept.norm1); /* after other rows were gathered there */
    heads_backward(unit, d_branch, normed, layer, &kept, one_norm);
    transformer_norm_backward(unit, d_in, transformer_own_sum(unit, d_branch), in, kept.norm1_stats,
                              one_norm ? d_out : d_middle, unit->own, layer, NORM1_WEIGHT);
}

static void block_weights(const struct transformer_unit *unit, uint64_t layer, kernel_number *const *all,
                          const kernel_number *in, const kernel_number *d_out)
{
    const struct kept kept = kept_of(unit, all);
    const struct heads d = heads_of(unit);
    const int64_t c = unit->c, f = unit->f, inner = unit->inner;
    kernel_number *const room = unit->d_stream2;
    (void)in;
    const struct transformer_unit whole = transformer_with_all_rows(unit);
    const kernel_number *const d_sum = transformer_all_rows(unit, d_out), *const d_result = is_parallel(unit) ? d_sum
                                                                                                      : unit->d_middle;
    transformer_linear_weight(unit, transformer_dropped_gradient(&whole, room, d_sum, layer, TRANSFORMER_MADE),
                              kept.gelu, layer, part_of(unit, OUT_WEIGHT, f));
    transformer_linear_weight(unit, d_projected(unit, room, d_result, layer), kept.attention, layer,
                              projection_of(unit));
    const kernel_number *normed = transformer_all_rows(unit, kept.norm2);
    transformer_linear_weight(unit, unit->d_wide, normed, layer, linear_of(unit, FC_WEIGHT, f, c));
    if (!network_traits(unit->network)->one_norm) normed = transformer_all_rows(unit, kept.norm1);
    if (network_traits(unit->network)->fused_qkv) {
        transformer_linear_weight(unit, d.q, normed, layer, linear_of(unit, Q_WEIGHT, 3 * inner, c));
        return;
    }
    transformer_linear_weight(unit, d.q, normed, layer, linear_of(unit, Q_WEIGHT, inner, c));
    transformer_linear_weight(unit, d.k, normed, layer, linear_of(unit, K_WEIGHT, unit->shared, c));
    transformer_linear_weight(unit, d.v, normed, layer, linear_of(unit, V_WEIGHT, unit->shared, c));
}

static void head(const struct transformer_unit *unit, uint64_t layer, kernel_number *const *kept,
                 const kernel_number *in, kernel_number *d_in)
{
    struct transformer_words words = transformer_next_words(unit, HEAD_WEIGHT);
    if (network_traits(unit->network)->head_bias && !unit->network->tied_head) words.bias = HEAD_BIAS;
    transformer_norm_forward(unit, kept[KEPT_NORMF], NULL, kept[KEPT_NORMF_STATS], in, NULL, unit->own, layer,
                             NORMF_WEIGHT);
    const kernel_number *const d_normf = transformer_words(unit, layer, &words, kept[KEPT_NORMF],
                                                   d_in ? unit->d_stream2 : NULL);
    if (!d_in) return;
    transformer_norm_backward(unit, d_in, d_normf, in, kept[KEPT_NORMF_STATS], NULL, unit->own, layer, NORMF_WEIGHT);
}

static const char *opt_unsupported(const struct job *job)
{
    if (job->network.word_width == 0 && !job->network.post_norm) return NULL;
    return "the variant of opt-350m, with words of another width or norms after sums, "
           "can be planned and simulated only";
}

static const struct transformer_need turned_needs[] = {TRANSFORMER_NEED(rope)};
static const struct transformer_need opt_needs[] = {TRANSFORMER_NEED(relu_forward), TRANSFORMER_NEED(relu_backward)};

#define DECODER(needs_) \
    .embedding_forward = transformer_tables_forward, .embedding_backward = transformer_tables_backward, \
    .block_forward = block_forward, .block_backward = block_backward, .block_weights = block_weights, .head = head, \
    .needs = needs_, .need_count = sizeof needs_ / sizeof *needs_

const struct transformer transformer_turned = {DECODER(turned_needs)};
const struct transformer transformer_opt = {DECODER(opt_needs), .unsupported = opt_unsupported};
