/*
 * The transformer layers that the families of networks share: positions of tensors and scratch, the step of a tensor,
 * linear layers and norms, and the iteration over a shard's blocks.
 *
 * A family's implementation (struct transformer) has functions that compute an embedding, a block and a head, forward
 * and backward. transformer_compute() calls them for the layers of a shard in the order of a pass.
 */
#ifndef SPILLWAY_EXEC_NETWORK_TRANSFORMER_H
#define SPILLWAY_EXEC_NETWORK_TRANSFORMER_H

#include <stddef.h>

#include "exec/network/unit.h"

/* One computation: its arguments, with sizes and pieces of workspace derived. Letters as in models/kernel/work.h. */
struct transformer_unit {
    const struct kernels *kernels;
    const struct unit_arguments *arguments;
    const struct network *network;
    const struct transformer *transformer;
    int64_t b, t, r, c, h, d, f, v;
    int64_t inner, shared; /* width of all queries, and of all keys: H D, and at most H D */
    float epsilon;
    struct job_optimizer optimizer; /* with the learning rate of this step */
    float scale;   /* scale of gradients in an UPDATE: below 1 when they are clipped */
    uint32_t block_tensors; /* tensors of one block, if there is one */
    uint32_t turn, turns; /* index and number of microbatches */
    float *sums;       /* if turns > 1: sums of the gradients of microbatches so far, laid out like the parameters */
    float *gradients;  /* NULL or empty if the pass does not need them */
    float *d_stream, *d_stream2, *d_qkv, *d_wide, *scratch, *logits;
    bf16 *rounded, *d_rounded;
};

enum { TRANSFORMER_KEPT_MAX = 20 }; /* tensors that a layer keeps */

/* A kernel that some back ends lack. */
struct transformer_need {
    const char *name;
    size_t offset; /* in struct kernels */
};
#define TRANSFORMER_NEED(field) {#field, offsetof(struct kernels, field)}

/*
 * The implementation of a family. `kept`: tensors that the layer keeps, in the order of memory_activations(); a block's
 * output is the last one, NULL for the last layer of a shard. `in`, `out`: input and output of the layer, (R, C).
 * d_out and d_in are their gradients and may be one buffer. The backward pass computes gradients of parameters and
 * makes their steps.
 */
struct transformer {
    uint32_t block_kept;    /* entries of memory_activations() per block, including the output */
    uint32_t head_kept;
    void (*embedding_forward)(const struct transformer_unit *unit);
    void (*embedding_backward)(const struct transformer_unit *unit);
    /* `out` NULL: only what the backward pass needs */
    void (*block_forward)(const struct transformer_unit *unit, uint64_t layer, float *const *kept,
                          const float *in, float *out);
    void (*block_backward)(const struct transformer_unit *unit, uint64_t layer, float *const *kept,
                           const float *in, const float *d_out, float *d_in);
    /* forward pass, loss and backward pass together, so that the logits need not exist as a whole; an evaluation has
     * no backward pass: d_in is NULL */
    void (*head)(const struct transformer_unit *unit, uint64_t layer, float *const *kept, const float *in,
                 float *d_in);
    const char *(*unsupported)(const struct job *job); /* as unit_unsupported(); NULL: supports all */
    const struct transformer_need *needs;
    uint32_t need_count;
};
extern const struct transformer transformer_gpt2, transformer_llama, transformer_bert, transformer_vit;

/* Implements unit_compute() for any family. */
void transformer_compute(const struct transformer *transformer, const struct kernels *kernels,
                         const struct unit_arguments *arguments);

/* --- tensors ---------------------------------------------------------------------------------- */

/* Weights as passes read them; one of the two pointers is set. */
struct transformer_weights {
    const float *fp32;
    const bf16 *rounded;
};

/* One tensor of a layer, and the place of its gradient (NULL if the pass has none). */
struct transformer_tensor {
    struct transformer_weights weights;
    float *g;
    uint32_t index; /* index in the tables of the shard */
};

/* Returns tensor `index` of a layer, in the order of network_layer_tensors(). An embedding's tables of rows have no
 * place for a gradient; a separate kernel steps them. */
struct transformer_tensor transformer_tensor(const struct transformer_unit *unit, uint64_t layer, uint32_t index);

/* Returns a vector, which is fp32 for every precision. */
const float *transformer_vector(const struct transformer_unit *unit, uint64_t layer, uint32_t index);

/* Processes a complete gradient of a tensor for this microbatch: makes the optimizer's step, or adds the gradient to
 * other microbatches' sum, or does nothing in a backward pass whose gradients are applied elsewhere. */
void transformer_step(const struct transformer_unit *unit, const struct transformer_tensor *tensor, bool decays);

/* --- layers of several families --------------------------------------------------------------- */

/* A linear layer of `rows` rows. Its bias, if any, is the tensor after its weight. */
struct transformer_linear {
    uint32_t weight;
    int64_t rows, out, in;
    bool in_out; /* weight stored as (in, out); false: (out, in) */
    bool bias;
};

/* y(rows,out) = x(rows,in) w + bias */
void transformer_linear_forward(const struct transformer_unit *unit, float *y, const float *x, uint64_t layer,
                                struct transformer_linear linear);
/* dx(rows,in) = (accumulate: +=) from dy(rows,out), NULL: not wanted. Then computes the gradients of weight and bias
 * and makes their steps. */
void transformer_linear_backward(const struct transformer_unit *unit, float *dx, const float *dy, const float *x,
                                 uint64_t layer, struct transformer_linear linear, bool accumulate);

/* Layer norm of `rows` rows, whose bias is the tensor after its weight; arguments as for the kernel. */
void transformer_norm_forward(const struct transformer_unit *unit, float *out, float *sum, float *stats,
                              const float *x, const float *y, int64_t rows, uint64_t layer,
                              uint32_t weight);
void transformer_norm_backward(const struct transformer_unit *unit, float *dx, const float *dout, const float *x,
                               const float *stats, const float *added, int64_t rows, uint64_t layer,
                               uint32_t weight);

/* Returns the arguments of a block's attention over separate arrays q, k and v, for the forward pass; for the
 * backward pass the caller adds gradients. */
struct kernel_attention transformer_attention(const struct transformer_unit *unit, const float *q, const float *k,
                                              const float *v, float *out, float *stats);

/* Rows of an embedding's tables, starting at row `first` of the state: gathered into x(R,C) and stepped, as by
 * kernels.embed_forward and embed_update. */
struct transformer_table_rows {
    int64_t first;      /* in the state */
    const int32_t *tokens;
    int64_t token_stride, vocabulary, first_row, row_count;
    int64_t padded;     /* as in struct kernel_parameters */
};
void transformer_gather(const struct transformer_unit *unit, float *x, const struct transformer_table_rows *rows);
void transformer_step_rows(const struct transformer_unit *unit, const struct transformer_table_rows *rows,
                           const float *head_gradient, const float *dx, float *scratch);

/* Returns the network's padding token in the form of kernel arguments. */
int64_t transformer_padded(const struct network *network);

/* Compute embeddings that consist only of tables of rows. */
void transformer_tables_forward(const struct transformer_unit *unit);
void transformer_tables_backward(const struct transformer_unit *unit);

/* The output of a language model: the product with the token table, and the targets. */
struct transformer_words {
    uint32_t own_weight;   /* the head's own table, unless it uses the embedding's */
    uint32_t bias;         /* bias tensor of the head, or TRANSFORMER_WORDS_WITHOUT_BIAS */
    bool masked;           /* only rows with a label count: uses loss_labels() instead of loss() */
    const int32_t *labels; /* labels, or tokens whose next tokens are the targets */
    int64_t stride;        /* distance from one sample's labels to the next sample's */
};
enum { TRANSFORMER_WORDS_WITHOUT_BIAS = LAYER_TENSORS_MAX };

/* Computes the loss of normf(R,C). Unless d_normf is NULL, also computes its gradient and the gradients of table and
 * bias, and makes their steps; network_logit_rows() rows at a time. d_normf must not be normf. */
void transformer_words(const struct transformer_unit *unit, uint64_t layer, const struct transformer_words *words,
                       const float *normf, float *d_normf);
/* Returns the output of a network that predicts the next token. */
struct transformer_words transformer_next_words(const struct transformer_unit *unit, uint32_t own_weight);

#endif
