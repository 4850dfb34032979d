/*
 * Letters as in models/kernel/work.h: B samples of T tokens make R rows; C width, H heads, F = 4 C, V tokens of the
 * vocabulary. Weights are stored (in, out). A block, with the names of kept tensors (models/job/memory.h):
 *
 *     in(R,C) --+-- norm1 -- qkv(R,3C) -- attention(R,C) -- projection --+
 *               +--------------------------------------------------------+-- middle(R,C) --+
 *               +-- norm2 -- fc(R,F) -- gelu(R,F) -- projection --+                        |
 *               +-------------------------------------------------+-- out(R,C)        <----+
 *
 * The head is a norm and the product with the token table (tied) or a matrix of its own.
 *
 * One gradient runs along the residual stream. Each branch makes its own gradient from it, which the norm at the
 * branch's root adds:
 *
 *     d_in -> dgelu (d_wide) -> through gelu in place -> dnorm2 (d_stream2) -> d_middle = d_in + ...
 *     d_middle -> dattention (d_stream2) -> d_qkv -> dnorm1 (d_stream2) -> d_in' = d_middle + ...
 *
 * FLOPs of a block: forward 24 R C^2 in the four products and 2 B T^2 C in causal attention; backward twice the
 * former and two and a half times the latter.
 */
#include "exec/network/transformer.h"

/* In the order of network_layer_tensors(). */
enum block_tensor {
    NORM1_WEIGHT, NORM1_BIAS, QKV_WEIGHT, QKV_BIAS, PROJECTION_WEIGHT, PROJECTION_BIAS,
    NORM2_WEIGHT, NORM2_BIAS, FC_WEIGHT, FC_BIAS, OUT_WEIGHT, OUT_BIAS
};
enum head_tensor { NORMF_WEIGHT, NORMF_BIAS, HEAD_WEIGHT };

/* In the order of memory_activations(). */
enum block_kept {
    KEPT_NORM1, KEPT_NORM1_STATS, KEPT_QKV, KEPT_ATTENTION, KEPT_ATTENTION_STATS, KEPT_MIDDLE,
    KEPT_NORM2, KEPT_NORM2_STATS, KEPT_FC, KEPT_GELU
};
enum head_kept { KEPT_NORMF, KEPT_NORMF_STATS };

static struct transformer_linear linear_of(const struct transformer_unit *unit, uint32_t weight, int64_t out,
                                           int64_t in)
{
    return (struct transformer_linear){.weight = weight,
                                       .rows = unit->r,
                                       .out = out,
                                       .in = in,
                                       .in_out = true,
                                       .bias = true};
}

/* q, k and v are columns of one array. */
static struct kernel_attention attention_of(const struct transformer_unit *unit, uint64_t layer,
                                            kernel_number *const *kept)
{
    kernel_number *const q = kept[KEPT_QKV], *const k = transformer_number(unit, q, unit->inner);
    kernel_number *const v = transformer_number(unit, k, unit->inner);
    struct kernel_attention attention =
        transformer_attention(unit, layer, q, k, v, kept[KEPT_ATTENTION], kept[KEPT_ATTENTION_STATS]);
    attention.row_q = attention.row_kv = 3 * unit->inner;
    return attention;
}

static void block_forward(const struct transformer_unit *unit, uint64_t layer, kernel_number *const *kept,
                          const kernel_number *in, kernel_number *out)
{
    const struct kernels *k = unit->kernels;
    int64_t c = unit->c, f = unit->f, inner = unit->inner;
    kernel_number *branch = out ? out : unit->d_stream2;
    transformer_norm_forward(unit, kept[KEPT_NORM1], NULL, kept[KEPT_NORM1_STATS], in, NULL, unit->own,
                             layer, NORM1_WEIGHT);
    transformer_linear_forward(unit, kept[KEPT_QKV], transformer_all_rows(unit, kept[KEPT_NORM1]), layer,
                               linear_of(unit, QKV_WEIGHT, 3 * inner, c));
    const struct kernel_attention attention = attention_of(unit, layer, kept);
    transformer_attend(unit, layer, &attention);
    transformer_linear_forward(unit, branch, kept[KEPT_ATTENTION], layer,
                               transformer_by_rows(linear_of(unit, PROJECTION_WEIGHT, c, inner)));
    transformer_drop(unit, branch, layer, TRANSFORMER_ATTENDED);
    transformer_norm_forward(unit, kept[KEPT_NORM2], kept[KEPT_MIDDLE], kept[KEPT_NORM2_STATS], in,
                             branch, unit->own, layer, NORM2_WEIGHT);
    transformer_linear_forward(unit, kept[KEPT_FC], transformer_all_rows(unit, kept[KEPT_NORM2]), layer,
                               linear_of(unit, FC_WEIGHT, f, c));
    k->gelu_forward(k, kept[KEPT_GELU], kept[KEPT_FC], unit->r * f, unit->network->gelu_tanh);
    if (!out) return;
    transformer_linear_forward(unit, out, kept[KEPT_GELU], layer,
                               transformer_by_rows(linear_of(unit, OUT_WEIGHT, c, f)));
    transformer_drop(unit, out, layer, TRANSFORMER_MADE);
    k->residual(k, out, kept[KEPT_MIDDLE], out, unit->own * c);
}

static void block_backward(const struct transformer_unit *unit, uint64_t layer, kernel_number *const *kept,
                           const kernel_number *in, const kernel_number *d_out, kernel_number *d_in)
{
    const struct kernels *k = unit->kernels;
    int64_t c = unit->c, f = unit->f, inner = unit->inner;
    kernel_number *d_branch = unit->d_stream2, *d_middle = transformer_d_middle(unit, d_in);
    const kernel_number *const d_made = transformer_dropped_gradient(unit, d_branch, d_out, layer, TRANSFORMER_MADE);
    transformer_linear_backward(unit, unit->d_wide, d_made, kept[KEPT_GELU], layer,
                                transformer_by_rows(linear_of(unit, OUT_WEIGHT, c, f)), false);
    k->gelu_backward(k, unit->d_wide, unit->d_wide, kept[KEPT_FC], unit->r * f,
                     unit->network->gelu_tanh);
    transformer_linear_backward(unit, d_branch, unit->d_wide, transformer_rows_for_weights(unit, kept[KEPT_NORM2]),
                                layer, linear_of(unit, FC_WEIGHT, f, c), false);
    transformer_norm_backward(unit, d_middle, transformer_own_sum(unit, d_branch), kept[KEPT_MIDDLE],
                              kept[KEPT_NORM2_STATS], d_out, unit->own, layer, NORM2_WEIGHT);

    const kernel_number *const d_attended = transformer_dropped_gradient(unit, unit->scratch, d_middle, layer,
                                                                 TRANSFORMER_ATTENDED);
    transformer_linear_backward(unit, d_branch, d_attended, kept[KEPT_ATTENTION], layer,
                                transformer_by_rows(linear_of(unit, PROJECTION_WEIGHT, c, inner)), false);
    struct kernel_attention attention = attention_of(unit, layer, kept);
    attention.dout = d_branch;
    attention.dq = unit->d_qkv;
    attention.dk = transformer_number(unit, attention.dq, inner);
    attention.dv = transformer_number(unit, attention.dk, inner);
    transformer_attend_backward(unit, layer, &attention);
    transformer_linear_backward(unit, d_branch, unit->d_qkv, transformer_rows_for_weights(unit, kept[KEPT_NORM1]),
                                layer, linear_of(unit, QKV_WEIGHT, 3 * inner, c), false);
    transformer_norm_backward(unit, d_in, transformer_own_sum(unit, d_branch), in, kept[KEPT_NORM1_STATS], d_middle,
                              unit->own, layer, NORM1_WEIGHT);
}

static void block_weights(const struct transformer_unit *unit, uint64_t layer, kernel_number *const *kept,
                          const kernel_number *in, const kernel_number *d_out)
{
    int64_t c = unit->c, f = unit->f, inner = unit->inner;
    kernel_number *const room = unit->d_stream2;
    (void)in;
    transformer_linear_weight(unit, transformer_dropped_gradient(unit, room, d_out, layer, TRANSFORMER_MADE),
                              kept[KEPT_GELU], layer, transformer_by_rows(linear_of(unit, OUT_WEIGHT, c, f)));
    transformer_linear_weight(unit, unit->d_wide, transformer_all_rows(unit, kept[KEPT_NORM2]), layer,
                              linear_of(unit, FC_WEIGHT, f, c));
    transformer_linear_weight(unit,
                              transformer_dropped_gradient(unit, room, unit->d_middle, layer, TRANSFORMER_ATTENDED),
                              kept[KEPT_ATTENTION], layer,
                              transformer_by_rows(linear_of(unit, PROJECTION_WEIGHT, c, inner)));
    transformer_linear_weight(unit, unit->d_qkv, transformer_all_rows(unit, kept[KEPT_NORM1]), layer,
                              linear_of(unit, QKV_WEIGHT, 3 * inner, c));
}

static void head(const struct transformer_unit *unit, uint64_t layer, kernel_number *const *kept,
                 const kernel_number *in, kernel_number *d_in)
{
    const struct transformer_words words = transformer_next_words(unit, HEAD_WEIGHT);
    transformer_norm_forward(unit, kept[KEPT_NORMF], NULL, kept[KEPT_NORMF_STATS], in, NULL, unit->own,
                             layer, NORMF_WEIGHT);
    const kernel_number *const d_normf =
        transformer_words(unit, layer, &words, kept[KEPT_NORMF], d_in ? unit->d_stream2 : NULL);
    if (!d_in) return;
    transformer_norm_backward(unit, d_in, d_normf, in, kept[KEPT_NORMF_STATS], NULL, unit->own,
                              layer, NORMF_WEIGHT);
}

static const char *unsupported(const struct job *job)
{
    const struct network *n = &job->network;
    if (n->heads * n->head_width != n->width)
        return "its heads do not make up its width";
    if (!n->causal) return "its attention is not causal";
    return NULL;
}

const struct transformer transformer_gpt2 = {
    .embedding_forward = transformer_tables_forward,
    .embedding_backward = transformer_tables_backward,
    .block_forward = block_forward,
    .block_backward = block_backward,
    .block_weights = block_weights,
    .head = head,
    .unsupported = unsupported,
};
