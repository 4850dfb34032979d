/*
 * Letters as in models/kernel/work.h; K heads of keys and values of D, H / K heads of queries to each. Weights are
 * stored (out, in), no layer has a bias. A block, with the names of kept tensors:
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
 * Norms are root-mean-square norms. Gradients run as in exec/network/gpt2.c. Queries and keys are kept after rotation;
 * their gradients are rotated back. The products that lead back to a norm add up in d_stream2, in the order q, k, v,
 * or gate, up.
 *
 * The head is a norm and the product with the token table (tied) or a matrix of its own.
 *
 * Source: Touvron et al., arXiv 2302.13971, section 2.2; modeling_llama.py of transformers.
 */
#include "exec/network/transformer.h"

/* In the order of network_layer_tensors(). */
enum block_tensor {
    Q_WEIGHT, K_WEIGHT, V_WEIGHT, PROJECTION_WEIGHT, GATE_WEIGHT, UP_WEIGHT, DOWN_WEIGHT,
    NORM1_WEIGHT, NORM2_WEIGHT
};
enum head_tensor { NORMF_WEIGHT, HEAD_WEIGHT };

/* In the order of memory_activations(). */
enum block_kept {
    KEPT_NORM1, KEPT_NORM1_STATS, KEPT_Q, KEPT_K, KEPT_V, KEPT_ATTENTION, KEPT_ATTENTION_STATS,
    KEPT_MIDDLE, KEPT_NORM2, KEPT_NORM2_STATS, KEPT_GATE, KEPT_UP, KEPT_SWIGLU,
    KEPT_OUTPUT, /* not of the last layer */
    BLOCK_KEPT
};
enum head_kept { KEPT_NORMF, KEPT_NORMF_STATS, HEAD_KEPT };

static struct transformer_linear linear_of(const struct transformer_unit *unit, uint32_t weight, int64_t out, int64_t in)
{
    return (struct transformer_linear){.weight = weight, .rows = unit->r, .out = out, .in = in};
}

static void norm_forward(const struct transformer_unit *unit, float *out, float *sum, float *stats,
                         const float *x, const float *y, uint64_t layer, uint32_t weight)
{
    unit->kernels->rms_norm_forward(unit->kernels, out, sum, stats, x, y,
                                    transformer_vector(unit, layer, weight), unit->r, unit->c,
                                    unit->epsilon);
}

static void norm_backward(const struct transformer_unit *unit, float *dx, const float *dout, const float *x,
                          const float *stats, const float *added, uint64_t layer, uint32_t weight)
{
    const struct transformer_tensor w = transformer_tensor(unit, layer, weight);
    unit->kernels->rms_norm_backward(unit->kernels, dx, w.g, dout, x, stats, w.weights.fp32, added,
                                     unit->r, unit->c);
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
    unit->kernels->rope(unit->kernels, q, k, unit->b, unit->t, transformer_first_token(unit), unit->h, kv, unit->d,
                        &unit->network->rope, back);
}

static void block_forward(const struct transformer_unit *unit, uint64_t layer, float *const *kept,
                          const float *in, float *out)
{
    const struct kernels *k = unit->kernels;
    int64_t c = unit->c, f = unit->f, inner = unit->inner, shared = unit->shared;
    float *branch = kept[KEPT_MIDDLE];
    norm_forward(unit, kept[KEPT_NORM1], NULL, kept[KEPT_NORM1_STATS], in, NULL, layer,
                 NORM1_WEIGHT);
    transformer_linear_forward(unit, kept[KEPT_Q], kept[KEPT_NORM1], layer,
                               linear_of(unit, Q_WEIGHT, inner, c));
    transformer_linear_forward(unit, kept[KEPT_K], kept[KEPT_NORM1], layer,
                               linear_of(unit, K_WEIGHT, shared, c));
    transformer_linear_forward(unit, kept[KEPT_V], kept[KEPT_NORM1], layer,
                               linear_of(unit, V_WEIGHT, shared, c));
    rotate(unit, kept[KEPT_Q], kept[KEPT_K], false);
    const struct kernel_attention attention =
        transformer_attention(unit, kept[KEPT_Q], kept[KEPT_K], kept[KEPT_V], kept[KEPT_ATTENTION],
                              kept[KEPT_ATTENTION_STATS]);
    transformer_attend(unit, layer, &attention);
    transformer_linear_forward(unit, branch, kept[KEPT_ATTENTION], layer,
                               transformer_by_rows(linear_of(unit, PROJECTION_WEIGHT, c, inner)));
    norm_forward(unit, kept[KEPT_NORM2], kept[KEPT_MIDDLE], kept[KEPT_NORM2_STATS], in, branch,
                 layer, NORM2_WEIGHT);
    transformer_linear_forward(unit, kept[KEPT_GATE], kept[KEPT_NORM2], layer,
                               linear_of(unit, GATE_WEIGHT, f, c));
    transformer_linear_forward(unit, kept[KEPT_UP], kept[KEPT_NORM2], layer,
                               linear_of(unit, UP_WEIGHT, f, c));
    k->swiglu_forward(k, kept[KEPT_SWIGLU], kept[KEPT_GATE], kept[KEPT_UP], unit->r * f);
    if (!out) return;
    transformer_linear_forward(unit, out, kept[KEPT_SWIGLU], layer,
                               transformer_by_rows(linear_of(unit, DOWN_WEIGHT, c, f)));
    k->residual(k, out, kept[KEPT_MIDDLE], out, unit->r * c);
}

static void block_backward(const struct transformer_unit *unit, uint64_t layer, float *const *kept,
                           const float *in, const float *d_out, float *d_in)
{
    const struct kernels *k = unit->kernels;
    int64_t c = unit->c, f = unit->f, inner = unit->inner, shared = unit->shared;
    float *d_gate = unit->d_wide, *d_up = unit->d_wide + unit->r * f;
    float *d_branch = unit->d_stream2, *d_middle = transformer_d_middle(unit, d_in);
    transformer_linear_backward(unit, d_gate, d_out, kept[KEPT_SWIGLU], layer,
                                transformer_by_rows(linear_of(unit, DOWN_WEIGHT, c, f)), false);
    k->swiglu_backward(k, d_gate, d_up, d_gate, kept[KEPT_GATE], kept[KEPT_UP], unit->r * f);
    transformer_linear_backward(unit, d_branch, d_gate, kept[KEPT_NORM2], layer,
                                linear_of(unit, GATE_WEIGHT, f, c), false);
    transformer_linear_backward(unit, d_branch, d_up, kept[KEPT_NORM2], layer,
                                linear_of(unit, UP_WEIGHT, f, c), true);
    transformer_sum(unit, d_branch, unit->r * c);
    norm_backward(unit, d_middle, d_branch, kept[KEPT_MIDDLE], kept[KEPT_NORM2_STATS], d_out, layer,
                  NORM2_WEIGHT);

    struct heads d = heads_of(unit);
    transformer_linear_backward(unit, d_branch, d_middle, kept[KEPT_ATTENTION], layer,
                                transformer_by_rows(linear_of(unit, PROJECTION_WEIGHT, c, inner)), false);
    struct kernel_attention attention =
        transformer_attention(unit, kept[KEPT_Q], kept[KEPT_K], kept[KEPT_V], kept[KEPT_ATTENTION],
                              kept[KEPT_ATTENTION_STATS]);
    attention.dout = d_branch;
    attention.dq = d.q;
    attention.dk = d.k;
    attention.dv = d.v;
    transformer_attend_backward(unit, layer, &attention);
    rotate(unit, d.q, d.k, true);
    transformer_linear_backward(unit, d_branch, d.q, kept[KEPT_NORM1], layer,
                                linear_of(unit, Q_WEIGHT, inner, c), false);
    transformer_linear_backward(unit, d_branch, d.k, kept[KEPT_NORM1], layer,
                                linear_of(unit, K_WEIGHT, shared, c), true);
    transformer_linear_backward(unit, d_branch, d.v, kept[KEPT_NORM1], layer,
                                linear_of(unit, V_WEIGHT, shared, c), true);
    transformer_sum(unit, d_branch, unit->r * c);
    norm_backward(unit, d_in, d_branch, in, kept[KEPT_NORM1_STATS], d_middle, layer, NORM1_WEIGHT);
}

static void block_weights(const struct transformer_unit *unit, uint64_t layer, float *const *kept, const float *in,
                          const float *d_out)
{
    int64_t c = unit->c, f = unit->f, inner = unit->inner, shared = unit->shared;
    const struct heads d = heads_of(unit);
    const float *d_gate = unit->d_wide, *d_up = unit->d_wide + unit->r * f;
    (void)in;
    transformer_linear_weight(unit, d_out, kept[KEPT_SWIGLU], layer, transformer_by_rows(linear_of(unit, DOWN_WEIGHT, c, f)));
    transformer_linear_weight(unit, d_gate, kept[KEPT_NORM2], layer, linear_of(unit, GATE_WEIGHT, f, c));
    transformer_linear_weight(unit, d_up, kept[KEPT_NORM2], layer, linear_of(unit, UP_WEIGHT, f, c));
    transformer_linear_weight(unit, unit->d_middle, kept[KEPT_ATTENTION], layer,
                              transformer_by_rows(linear_of(unit, PROJECTION_WEIGHT, c, inner)));
    transformer_linear_weight(unit, d.q, kept[KEPT_NORM1], layer, linear_of(unit, Q_WEIGHT, inner, c));
    transformer_linear_weight(unit, d.k, kept[KEPT_NORM1], layer, linear_of(unit, K_WEIGHT, shared, c));
    transformer_linear_weight(unit, d.v, kept[KEPT_NORM1], layer, linear_of(unit, V_WEIGHT, shared, c));
}

static void head(const struct transformer_unit *unit, uint64_t layer, float *const *kept, const float *in,
                 float *d_in)
{
    const struct transformer_words words = transformer_next_words(unit, HEAD_WEIGHT);
    float *d_normf = d_in ? unit->d_stream2 : NULL;
    norm_forward(unit, kept[KEPT_NORMF], NULL, kept[KEPT_NORMF_STATS], in, NULL, layer,
                 NORMF_WEIGHT);
    transformer_words(unit, layer, &words, kept[KEPT_NORMF], d_normf);
    if (!d_in) return;
    norm_backward(unit, d_in, d_normf, in, kept[KEPT_NORMF_STATS], NULL, layer,
                  NORMF_WEIGHT);
}

static const struct transformer_need needs[] = {
    TRANSFORMER_NEED(rms_norm_forward), TRANSFORMER_NEED(rms_norm_backward), TRANSFORMER_NEED(rope),
    TRANSFORMER_NEED(swiglu_forward), TRANSFORMER_NEED(swiglu_backward),
};

const struct transformer transformer_llama = {
    .block_kept = BLOCK_KEPT,
    .head_kept = HEAD_KEPT,
    .embedding_forward = transformer_tables_forward,
    .embedding_backward = transformer_tables_backward,
    .block_forward = block_forward,
    .block_backward = block_backward,
    .block_weights = block_weights,
    .head = head,
    .needs = needs,
    .need_count = sizeof needs / sizeof *needs,
};
