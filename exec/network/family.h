/*
 * What the families of networks share when they compute: where tensors and scratch lie, the step of a
 * tensor, linear layers and norms, and the walk over a shard's blocks.
 *
 * A family says how an embedding, a block and a head compute, there and back; family_compute() calls
 * that for the layers of a shard in the order of a pass. Included by exec/network/unit.c and the families.
 */
#ifndef SPILLWAY_EXEC_FAMILY_H
#define SPILLWAY_EXEC_FAMILY_H

#include <stddef.h>

#include "exec/network/unit.h"

/* One computation: the arguments with the sizes and the pieces of workspace worked out. Letters as in
 * models/kernel/work.h. */
struct unit {
    const struct kernels *kernels;
    const struct unit_arguments *arguments;
    const struct network *network;
    const struct family *family;
    int64_t b, t, r, c, h, d, f, v;
    int64_t inner, shared; /* width of all queries, of all keys: H D, and as much or less */
    float epsilon;
    struct optimizer optimizer; /* with the learning rate of this step */
    float scale;   /* of gradients in an UPDATE: below 1 where they are clipped */
    uint32_t block_tensors; /* of one block, if there are any */
    uint32_t turn, turns; /* which microbatch of how many */
    float *sums;       /* where turns > 1: gradients of all microbatches so far, as the parameters */
    float *gradients;  /* these are NULL or empty where the pass has none */
    float *d_stream, *d_stream2, *d_qkv, *d_wide, *scratch, *logits;
    bf16 *rounded, *d_rounded;
};

enum { FAMILY_KEPT_MAX = 20 }; /* tensors that a layer keeps */

/* A kernel that not every back end has. */
struct kernel_need {
    const char *name;
    size_t offset; /* in struct kernels */
};
#define KERNEL_NEED(field) {#field, offsetof(struct kernels, field)}

/*
 * How a family computes. `kept`: what the layer keeps, in the order of memory_activations(); a block's
 * output is the last and NULL for the last layer of a shard. `in`, `out`: input and output of the
 * layer, (R, C); d_out and d_in are their gradients and may be one buffer. Gradients of parameters are
 * made and stepped on the way back.
 */
struct family {
    uint32_t block_kept;    /* entries of memory_activations() of a block, the output included */
    uint32_t head_kept;
    void (*embedding_forward)(const struct unit *unit);
    void (*embedding_backward)(const struct unit *unit);
    /* `out` NULL: only what the backward pass needs */
    void (*block_forward)(const struct unit *unit, uint64_t layer, float *const *kept,
                          const float *in, float *out);
    void (*block_backward)(const struct unit *unit, uint64_t layer, float *const *kept,
                           const float *in, const float *d_out, float *d_in);
    /* there with the loss and back in one go, so that logits need not exist whole; an evaluation has
     * no way back: d_in is NULL */
    void (*head)(const struct unit *unit, uint64_t layer, float *const *kept, const float *in,
                 float *d_in);
    const char *(*unsupported)(const struct job *job); /* as unit_unsupported(); NULL: does all */
    const struct kernel_need *needs;
    uint32_t need_count;
};
extern const struct family family_gpt2, family_llama, family_bert, family_vit;

/* What unit_compute() does, for any family. */
void family_compute(const struct family *family, const struct kernels *kernels,
                    const struct unit_arguments *arguments);

/* --- tensors ---------------------------------------------------------------------------------- */

/* Weights as passes read them: one of the two. */
struct weights {
    const float *fp32;
    const bf16 *rounded;
};

/* One tensor of a layer, and where its gradient goes (NULL where the pass has none). */
struct tensor {
    struct weights weights;
    float *g;
    uint32_t index; /* in the tables of the shard */
};

/* Tensor `index` of a layer, in the order of network_layer_tensors(). An embedding's tables of rows
 * are stepped by their own kernel and have no place for a gradient. */
struct tensor family_tensor(const struct unit *unit, uint64_t layer, uint32_t index);

/* A vector: what is fp32 whatever the precision. */
const float *family_vector(const struct unit *unit, uint64_t layer, uint32_t index);

/* What follows when a tensor's gradient of this microbatch is complete: the optimizer's step; or it is
 * added to those of other microbatches; nothing in a backward pass whose gradients are applied
 * elsewhere. */
void family_step(const struct unit *unit, const struct tensor *tensor, bool decays);

/* --- layers that many have -------------------------------------------------------------------- */

/* A linear layer of `rows` rows. Its bias, if it has one, is the tensor behind its weight. */
struct linear {
    uint32_t weight;
    int64_t rows, out, in;
    bool in_out; /* the weight is stored (in, out), else (out, in) */
    bool bias;
};

/* y(rows,out) = x(rows,in) w + bias */
void family_linear_forward(const struct unit *unit, float *y, const float *x, uint64_t layer,
                           struct linear linear);
/* dx(rows,in) = (accumulate: +=) from dy(rows,out), NULL: not wanted; then the gradients of weight and
 * bias and their steps. */
void family_linear_backward(const struct unit *unit, float *dx, const float *dy, const float *x,
                            uint64_t layer, struct linear linear, bool accumulate);

/* Layer norm of `rows` rows, whose bias is the tensor behind its weight; as the kernel. */
void family_norm_forward(const struct unit *unit, float *out, float *sum, float *stats,
                         const float *x, const float *y, int64_t rows, uint64_t layer,
                         uint32_t weight);
void family_norm_backward(const struct unit *unit, float *dx, const float *dout, const float *x,
                          const float *stats, const float *added, int64_t rows, uint64_t layer,
                          uint32_t weight);

/* Attention of a block over q, k and v, each an array of its own, as its forward pass calls it; for the
 * way back gradients are added to it. */
struct attention family_attention(const struct unit *unit, const float *q, const float *k,
                                  const float *v, float *out, float *stats);

/* Rows of an embedding's tables from `first` on, counted in what the state has of them: gathered into
 * x(R,C) and stepped, as kernels.embed_forward and embed_update have it. */
struct table_rows {
    int64_t first;      /* in the state */
    const int32_t *tokens;
    int64_t token_stride, vocabulary, first_row, row_count;
    int64_t padded;     /* as in struct kernel_parameters */
};
void family_gather(const struct unit *unit, float *x, const struct table_rows *rows);
void family_step_rows(const struct unit *unit, const struct table_rows *rows,
                      const float *head_gradient, const float *dx, float *scratch);

/* The network's padding token, as kernels take it. */
int64_t family_padded(const struct network *network);

/* Embeddings that are tables of rows and nothing else. */
void family_tables_forward(const struct unit *unit);
void family_tables_backward(const struct unit *unit);

/* A language model's words: the product with the token table, and what is to be found. */
struct words {
    uint32_t own_weight;   /* the head's tensor that is the table, unless that is the embedding's */
    uint32_t bias;         /* the head's tensor; WORDS_WITHOUT_BIAS */
    bool masked;           /* only rows with a label count: loss_labels() instead of loss() */
    const int32_t *labels; /* or the tokens, whose next ones are the words */
    int64_t stride;        /* from one sample's to the next one's */
};
enum { WORDS_WITHOUT_BIAS = LAYER_TENSORS_MAX };

/* The loss of normf(R,C), and unless d_normf is NULL its gradient, those of table and bias, and their
 * steps; network_logit_rows() rows at a time. d_normf must not be normf. */
void family_words(const struct unit *unit, uint64_t layer, const struct words *words,
                  const float *normf, float *d_normf);
/* The words of a network that guesses the next one. */
struct words family_next_words(const struct unit *unit, uint32_t own_weight);

#endif
