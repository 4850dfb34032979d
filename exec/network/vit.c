/*
 * ViT with a classifier: the forward and backward computations of its layers.
 *
 * Letters as in models/kernel/work.h; an image is cut into N patches of P x P pixels, T = N + 1. Weights are stored
 * (out, in); the patches' weight is Hugging Face's convolution (C, channels, P, P), which is (out, in) as well. A
 * block is GPT-2's (exec/network/gpt2.c) with separate q, k and v, which may lack biases, and with every token
 * attending to every other one. Heads together may be narrower or wider than the network.
 *
 *     embedding   pixels -> patches(B N, channels P P) -> embedded(B N,C), preceded by the class token,
 *                 all + positions; patches and embedded patches are scratch
 *     head        the class tokens(B,C) -> norm -> classes(B), and the loss of the labels
 *
 * The embedding keeps nothing: its backward pass cuts the images into patches again.
 *
 * Source: Dosovitskiy et al., arXiv 2010.11929; modeling_vit.py of transformers
 * (ViTForImageClassification).
 */
#include "exec/network/transformer.h"

enum embedding_tensor { CLASS_TOKEN, POSITIONS, PATCH_WEIGHT, PATCH_BIAS };

/* The tensors of a block, in the order of network_layer_tensors(): tensors before the optional biases. behind_qkv()
 * counts the tensors after them. */
enum block_tensor { NORM1_WEIGHT, NORM1_BIAS, QKV_WEIGHT };
enum block_tensor_behind {
    PROJECTION_WEIGHT, PROJECTION_BIAS, NORM2_WEIGHT, NORM2_BIAS, FC_WEIGHT, FC_BIAS, OUT_WEIGHT,
    OUT_BIAS
};
enum head_tensor { NORMF_WEIGHT, NORMF_BIAS, CLASSES_WEIGHT, CLASSES_BIAS };

/* Tensors that a layer keeps, in the order of memory_activations(). */
enum block_kept {
    KEPT_NORM1, KEPT_NORM1_STATS, KEPT_Q, KEPT_K, KEPT_V, KEPT_ATTENTION, KEPT_ATTENTION_STATS,
    KEPT_MIDDLE, KEPT_NORM2, KEPT_NORM2_STATS, KEPT_FC, KEPT_GELU
};
enum head_kept { KEPT_CLASS, KEPT_NORMF, KEPT_NORMF_STATS };

/* --- embedding -------------------------------------------------------------------------------- */

static int64_t pixels_of(const struct transformer_unit *unit)
{
    const struct network *n = unit->network;
    return (int64_t)(n->channels * n->patch * n->patch);
}

static struct transformer_linear patch_linear(const struct transformer_unit *unit)
{
    return (struct transformer_linear){.weight = PATCH_WEIGHT,
                                       .rows = unit->b * (unit->t - 1),
                                       .out = unit->c,
                                       .in = pixels_of(unit),
                                       .bias = true};
}

/* Cuts the images of the batch into patches, in the first piece of scratch. */
static kernel_number *cut_images(const struct transformer_unit *unit)
{
    const struct network *n = unit->network;
    const int64_t image = (int64_t)(n->channels * n->image * n->image);
    const int64_t labels = (int64_t)(unit->held - unit->place) * unit->b; /* of this microbatch and later ones */
    const float *images =
        (const float *)(const void *)(unit->arguments->batch + labels) + (int64_t)unit->place * unit->b * image;
    unit->kernels->patches(unit->kernels, unit->scratch, images, unit->b, (int64_t)n->channels,
                           (int64_t)n->image, (int64_t)n->patch);
    return unit->scratch;
}

/* Returns the second piece of scratch: a row of C for each patch. */
static kernel_number *patch_rows(const struct transformer_unit *unit)
{
    return unit->scratch + unit->b * (unit->t - 1) * pixels_of(unit);
}

static void embedding_forward(const struct transformer_unit *unit)
{
    const kernel_number *patches = cut_images(unit);
    kernel_number *embedded = patch_rows(unit);
    transformer_linear_forward(unit, embedded, patches, 0, patch_linear(unit));
    unit->kernels->join_forward(unit->kernels, unit->arguments->boundary_out, embedded,
                                transformer_vector(unit, 0, CLASS_TOKEN),
                                transformer_vector(unit, 0, POSITIONS), unit->b, unit->t, unit->c);
}

static void embedding_backward(const struct transformer_unit *unit)
{
    const kernel_number *patches = cut_images(unit);
    kernel_number *d_embedded = patch_rows(unit);
    struct transformer_tensor token = transformer_tensor(unit, 0, CLASS_TOKEN);
    struct transformer_tensor positions = transformer_tensor(unit, 0, POSITIONS);
    unit->kernels->join_backward(unit->kernels, d_embedded, token.g, positions.g,
                                 unit->arguments->gradient_in, unit->b, unit->t, unit->c);
    transformer_linear_backward(unit, NULL, d_embedded, patches, 0, patch_linear(unit), false);
    transformer_step(unit, &token, false);
    transformer_step(unit, &positions, false);
}

/* --- blocks ----------------------------------------------------------------------------------- */

static uint32_t behind_qkv(const struct transformer_unit *unit, uint32_t index)
{
    return QKV_WEIGHT + (unit->network->biases ? 6u : 3u) + index;
}

/* q, k and v: part 0, 1 and 2. */
static struct transformer_linear qkv_linear(const struct transformer_unit *unit, uint32_t part)
{
    bool bias = unit->network->biases;
    return (struct transformer_linear){.weight = QKV_WEIGHT + part * (bias ? 2u : 1u),
                                       .rows = unit->r,
                                       .out = unit->inner,
                                       .in = unit->c,
                                       .bias = bias};
}

static struct transformer_linear linear_of(const struct transformer_unit *unit, uint32_t index, int64_t out, int64_t in)
{
    return (struct transformer_linear){.weight = behind_qkv(unit, index),
                                       .rows = unit->r,
                                       .out = out,
                                       .in = in,
                                       .bias = true};
}

static void block_forward(const struct transformer_unit *unit, uint64_t layer, kernel_number *const *kept,
                          const kernel_number *in, kernel_number *out)
{
    const struct kernels *k = unit->kernels;
    int64_t c = unit->c, f = unit->f;
    kernel_number *branch = kept[KEPT_MIDDLE];
    transformer_norm_forward(unit, kept[KEPT_NORM1], NULL, kept[KEPT_NORM1_STATS], in, NULL, unit->own,
                             layer, NORM1_WEIGHT);
    const kernel_number *const all = transformer_all_rows(unit, kept[KEPT_NORM1]);
    for (uint32_t part = 0; part < 3; part++)
        transformer_linear_forward(unit, kept[KEPT_Q + part], all, layer,
                                   qkv_linear(unit, part));
    const struct kernel_attention attention =
        transformer_attention(unit, layer, kept[KEPT_Q], kept[KEPT_K], kept[KEPT_V], kept[KEPT_ATTENTION],
                              kept[KEPT_ATTENTION_STATS]);
    k->attention_forward(k, &attention);
    transformer_linear_forward(unit, branch, kept[KEPT_ATTENTION], layer,
                               transformer_by_rows(linear_of(unit, PROJECTION_WEIGHT, c, unit->inner)));
    transformer_norm_forward(unit, kept[KEPT_NORM2], kept[KEPT_MIDDLE], kept[KEPT_NORM2_STATS], in,
                             branch, unit->own, layer, behind_qkv(unit, NORM2_WEIGHT));
    transformer_linear_forward(unit, kept[KEPT_FC], transformer_all_rows(unit, kept[KEPT_NORM2]), layer,
                               linear_of(unit, FC_WEIGHT, f, c));
    k->gelu_forward(k, kept[KEPT_GELU], kept[KEPT_FC], unit->r * f, unit->network->gelu_tanh);
    if (!out) return;
    transformer_linear_forward(unit, out, kept[KEPT_GELU], layer,
                               transformer_by_rows(linear_of(unit, OUT_WEIGHT, c, f)));
    k->residual(k, out, kept[KEPT_MIDDLE], out, unit->own * c);
}

static void block_backward(const struct transformer_unit *unit, uint64_t layer, kernel_number *const *kept,
                           const kernel_number *in, const kernel_number *d_out, kernel_number *d_in)
{
    const struct kernels *k = unit->kernels;
    int64_t c = unit->c, f = unit->f, part_numbers = unit->r * unit->inner;
    kernel_number *d_branch = unit->d_stream2, *d_qkv = unit->d_qkv, *d_middle = transformer_d_middle(unit, d_in);
    transformer_linear_backward(unit, unit->d_wide, d_out, kept[KEPT_GELU], layer,
                                transformer_by_rows(linear_of(unit, OUT_WEIGHT, c, f)), false);
    k->gelu_backward(k, unit->d_wide, unit->d_wide, kept[KEPT_FC], unit->r * f,
                     unit->network->gelu_tanh);
    transformer_linear_backward(unit, d_branch, unit->d_wide, transformer_rows_for_weights(unit, kept[KEPT_NORM2]),
                                layer, linear_of(unit, FC_WEIGHT, f, c), false);
    transformer_norm_backward(unit, d_middle, transformer_own_sum(unit, d_branch), kept[KEPT_MIDDLE],
                              kept[KEPT_NORM2_STATS], d_out, unit->own, layer, behind_qkv(unit, NORM2_WEIGHT));

    transformer_linear_backward(unit, d_branch, d_middle, kept[KEPT_ATTENTION], layer,
                                transformer_by_rows(linear_of(unit, PROJECTION_WEIGHT, c, unit->inner)), false);
    struct kernel_attention attention =
        transformer_attention(unit, layer, kept[KEPT_Q], kept[KEPT_K], kept[KEPT_V], kept[KEPT_ATTENTION],
                              kept[KEPT_ATTENTION_STATS]);
    attention.dout = d_branch;
    attention.dq = d_qkv;
    attention.dk = transformer_number(unit, d_qkv, part_numbers);
    attention.dv = transformer_number(unit, d_qkv, 2 * part_numbers);
    k->attention_backward(k, &attention);
    const kernel_number *const normed = transformer_rows_for_weights(unit, kept[KEPT_NORM1]);
    for (uint32_t part = 0; part < 3; part++)
        transformer_linear_backward(unit, d_branch, transformer_number(unit, d_qkv, part * part_numbers), normed,
                                    layer, qkv_linear(unit, part), part > 0);
    transformer_norm_backward(unit, d_in, transformer_own_sum(unit, d_branch), in, kept[KEPT_NORM1_STATS], d_middle,
                              unit->own, layer, NORM1_WEIGHT);
}

static void block_weights(const struct transformer_unit *unit, uint64_t layer, kernel_number *const *kept,
                          const kernel_number *in, const kernel_number *d_out)
{
    int64_t c = unit->c, f = unit->f, part_numbers = unit->r * unit->inner;
    (void)in;
    transformer_linear_weight(unit, d_out, kept[KEPT_GELU], layer,
                              transformer_by_rows(linear_of(unit, OUT_WEIGHT, c, f)));
    transformer_linear_weight(unit, unit->d_wide, transformer_all_rows(unit, kept[KEPT_NORM2]), layer,
                              linear_of(unit, FC_WEIGHT, f, c));
    transformer_linear_weight(unit, unit->d_middle, kept[KEPT_ATTENTION], layer,
                              transformer_by_rows(linear_of(unit, PROJECTION_WEIGHT, c, unit->inner)));
    const kernel_number *const normed = transformer_all_rows(unit, kept[KEPT_NORM1]);
    for (uint32_t part = 0; part < 3; part++)
        transformer_linear_weight(unit, transformer_number(unit, unit->d_qkv, part * part_numbers), normed, layer,
                                  qkv_linear(unit, part));
}

/* --- head ------------------------------------------------------------------------------------- */

static struct transformer_linear classifier_of(const struct transformer_unit *unit)
{
    return (struct transformer_linear){.weight = CLASSES_WEIGHT,
                                       .rows = unit->b,
                                       .out = (int64_t)unit->network->classes,
                                       .in = unit->c,
                                       .bias = true,
                                       .logits = true};
}

static void head(const struct transformer_unit *unit, uint64_t layer, kernel_number *const *kept,
                 const kernel_number *in, kernel_number *d_in)
{
    const struct unit_arguments *a = unit->arguments;
    const struct kernels *k = unit->kernels;
    int64_t b = unit->b, classes = (int64_t)unit->network->classes;
    const struct kernel_loss_rows rows = {.count = b, .part = unit->microbatch, .parts = unit->microbatches};
    k->first_forward(k, kept[KEPT_CLASS], in, b, unit->t, unit->c);
    transformer_norm_forward(unit, kept[KEPT_NORMF], NULL, kept[KEPT_NORMF_STATS], kept[KEPT_CLASS],
                             NULL, b, layer, NORMF_WEIGHT);
    transformer_linear_forward(unit, unit->logits, kept[KEPT_NORMF], layer, classifier_of(unit));
    k->loss_labels(k, a->loss, unit->logits, a->batch, 1, b, 1, classes, rows);
    if (!d_in) return;

    /* room for all tokens: two rows for each sample fit */
    kernel_number *d_normf = unit->d_stream2, *d_class = transformer_number(unit, d_normf, b * unit->c);
    transformer_linear_backward(unit, d_normf, unit->logits, kept[KEPT_NORMF], layer,
                                classifier_of(unit), false);
    transformer_norm_backward(unit, d_class, d_normf, kept[KEPT_CLASS], kept[KEPT_NORMF_STATS], NULL, b,
                              layer, NORMF_WEIGHT);
    k->first_backward(k, d_in, d_class, b, unit->t, unit->c);
}

static const struct transformer_need needs[] = {
    TRANSFORMER_NEED(loss_labels), TRANSFORMER_NEED(patches), TRANSFORMER_NEED(join_forward),
    TRANSFORMER_NEED(join_backward), TRANSFORMER_NEED(first_forward), TRANSFORMER_NEED(first_backward),
};

const struct transformer transformer_vit = {
    .embedding_forward = embedding_forward,
    .embedding_backward = embedding_backward,
    .block_forward = block_forward,
    .block_backward = block_backward,
    .block_weights = block_weights,
    .whole_head = true,
    .head = head,
    .needs = needs,
    .need_count = sizeof needs / sizeof *needs,
};
