/*
 * Common to all families of networks: tensors and scratch, steps, linear layers and norms, and the iteration over a
 * shard's blocks. A family (struct transformer) computes an embedding, a block and a head, forward and backward.
 */
#ifndef SPILLWAY_EXEC_NETWORK_TRANSFORMER_H
#define SPILLWAY_EXEC_NETWORK_TRANSFORMER_H

#include <stddef.h>

#include "exec/network/unit.h"

/* One computation, with sizes and workspace derived. Letters as in models/kernel/work.h. */
struct transformer_unit {
    const struct kernels *kernels;
    const struct unit_arguments *arguments;
    const struct network *network;
    const struct transformer *transformer;
    const struct unit_split *split; /* NULL: one device has the whole network */
    int64_t b, t, r, c, h, d, f, v; /* v: the device's words */
    int64_t own;   /* rows of norms, sums and boundaries: r, or fewer where a tensor group cuts them ... */
    kernel_number *gathered; /* ... and room for all rows (R,C); NULL: not cut */
    float *norm_parts; /* of a tensor group's member, in a backward pass: two rows of C */
    int64_t pieces;    /* of the device's products (transformer_pieces.c); 1: they are whole */
    kernel_number *piece_sums; /* room for a sum of all rows (R,C) of each piece; NULL: one */
    int64_t inner, shared; /* width of all queries, and of all keys: H D, and at most H D */
    float epsilon;
    struct job_optimizer optimizer; /* with this step's learning rate */
    float scale;   /* of gradients in an UPDATE: below 1 when clipped */
    uint32_t microbatch, microbatches; /* index of this one, and their number */
    uint32_t place, held; /* index among the microbatches in `batch`, and their number */
    bool adds;         /* to the sums of earlier microbatches */
    float *sums;       /* of microbatches' gradients so far, laid out like the parameters; may be NULL */
    float *gradients;  /* may be NULL or empty */
    void *levels;      /* partial sums of a tree (memory_level()), of which it makes one; NULL: sums are in order */
    int64_t parts;     /* microbatches of its samples whose gradients are added up as a tree; 1: in order */
    kernel_number *d_stream, *d_stream2, *d_qkv, *d_wide;
    float *scratch, *logits;
    bool leaves_weights; /* a BACKWARD_INPUT: gradients of linear layers' weights come later, from ... */
    kernel_number *d_out, *d_middle; /* ... these, as in memory_block_gradients(), d_qkv and d_wide; else NULL */
    bf16 *rounded, *d_rounded;
    kernel_number *adapter; /* (R,rank), in a backward pass two of them; NULL: no layer has an adapter */
};

enum { TRANSFORMER_KEPT_MAX = 32 };

/* A kernel that some back ends lack. */
struct transformer_need {
    const char *name;
    size_t offset; /* in struct kernels */
};
#define TRANSFORMER_NEED(field) {#field, offsetof(struct kernels, field)}

/*
 * The implementation of a family. `kept`: in the order of memory_activations(), without a block's output. `in`, `out`:
 * (R, C). Their gradients d_out and d_in may be one buffer. The backward pass also makes the parameters' steps.
 *
 * A backward pass in two calls block_backward() with leaves_weights and two gradients that are not one buffer, and
 * later block_weights(). The first call fills d_middle, d_qkv and d_wide. d_out has the gradient of the block's output
 * or, if the block ends with a norm, of that norm's input, which the first call fills, too.
 */
struct transformer {
    void (*embedding_forward)(const struct transformer_unit *unit);
    void (*embedding_backward)(const struct transformer_unit *unit);
    /* `out` NULL: only what the backward pass needs */
    void (*block_forward)(const struct transformer_unit *unit, uint64_t layer, kernel_number *const *kept,
                          const kernel_number *in, kernel_number *out);
    void (*block_backward)(const struct transformer_unit *unit, uint64_t layer, kernel_number *const *kept,
                           const kernel_number *in, const kernel_number *d_out, kernel_number *d_in);
    /* Computes the gradients of linear layers' weights. */
    void (*block_weights)(const struct transformer_unit *unit, uint64_t layer, kernel_number *const *kept,
                          const kernel_number *in, const kernel_number *d_out);
    /* Computes a FORWARD, LOSS, BACKWARD or EVALUATE of any layers by itself, of one microbatch; NULL: by the functions
     * above. */
    void (*pass)(const struct transformer_unit *unit);
    bool ends_with_norm;
    bool whole_head; /* in a tensor group that cuts rows, every device's head has all */
    /* Forward pass, loss and backward pass together, so that the logits need not exist as a whole; d_in NULL: an
     * evaluation. */
    void (*head)(const struct transformer_unit *unit, uint64_t layer, kernel_number *const *kept,
                 const kernel_number *in, kernel_number *d_in);
    const char *(*unsupported)(const struct job *job); /* as unit_unsupported(); NULL: supports all */
    const struct transformer_need *needs;
    uint32_t need_count;
};
extern const struct transformer transformer_gpt2, transformer_llama, transformer_experts, transformer_gemma,
    transformer_gemma2, transformer_turned,
    transformer_opt, transformer_bert, transformer_vit, transformer_graph;

/* Implements unit_compute() (transformer_pass.c). */
void transformer_compute(const struct transformer *transformer, const struct kernels *kernels,
                         const struct unit_arguments *arguments);

/* Steps the first `rows` rows of an embedding's tables, laid out in the arguments' state by memory_state_rows(). Uses
 * their job, minibatch, norms and guard. */
void transformer_update_rows(const struct kernels *kernels, const struct unit_arguments *arguments,
                             const float *gradient, uint64_t rows);

/* Returns the factor of gradients in an UPDATE: below 1 when clipped. */
float transformer_clip_scale(const struct unit_arguments *arguments);

/* Steps a range of a tensor's parameters, with the bits of a step of the whole tensor. `place`: the first parameter's
 * number in its layer; `scale`: the factor of its gradient. Sets the key and place of `parameters`. */
struct transformer_range {
    uint64_t layer, place, count;
    bool decays;
    float scale;
};
void transformer_update_range(const struct kernels *kernels, const struct job *job, struct kernel_parameters parameters,
                              const float *gradient, const struct transformer_range *range, uint64_t minibatch,
                              struct unit_guard *guard);

/* Adds up the squares of a tensor group's parts of the layers' tensors. Tensors that all devices have whole count once.
 * `network`: the group's slice. */
void transformer_join_squares(const struct kernels *kernels, const struct unit_split *split,
                              const struct network *network, uint64_t first_layer, uint64_t layer_count, double *sums);

/* Adds up numbers of a member of a tensor group, on its device, with the others: unit_group_sum(). */
void transformer_exchange_sum(const struct kernels *kernels, const struct unit_split *split, float *values,
                              uint64_t count);

/* Copies bytes, a multiple of 4, within a device. */
void transformer_copy(const struct kernels *kernels, void *to, const void *from, uint64_t bytes);

/* Stops the job's steps if its loss is not finite. */
void transformer_shut_by_loss(const struct unit_arguments *arguments);

/* --- tensors ---------------------------------------------------------------------------------- */

/* One of the two is set; none where a second unit of a backward pass finds no weights, because replicas split them. In
 * bf16-weights products read matrices in 16 bits and round their other operand. */
struct transformer_weights {
    const kernel_number *numbers;
    const bf16 *rounded;
    bool is_rounded;
};

/* The gradient is NULL if the pass or the tensor, which is frozen, has none. */
struct transformer_tensor {
    struct transformer_weights weights;
    float *g;
    uint32_t index; /* in the shard's tables */
    bool frozen;
    bool running;   /* struct tensor_spec */
};

static inline void *transformer_at(void *base, uint64_t offset_bytes)
{
    return (char *)base + offset_bytes;
}

/* Return the address of number `index` of an array. */
static inline kernel_number *transformer_number(const struct transformer_unit *unit, kernel_number *array,
                                                int64_t index)
{
    return (char *)array + index * (int64_t)unit->kernels->number_bytes;
}

static inline const kernel_number *transformer_read_number(const struct transformer_unit *unit,
                                                           const kernel_number *array, int64_t index)
{
    return (const char *)array + index * (int64_t)unit->kernels->number_bytes;
}

/* Returns the bytes of numbers. */
static inline uint64_t transformer_number_bytes(const struct transformer_unit *unit, int64_t count)
{
    return (uint64_t)count * unit->kernels->number_bytes;
}

/* A layer's entries in a table. */
struct transformer_entries {
    const struct memory_entry *first;
    uint32_t count;
};
struct transformer_entries transformer_layer_entries(const struct memory_table *table, uint64_t layer);

/* Returns tensors in the order of network_layer_tensors(). An embedding's rows have no gradient here; a separate
 * kernel steps them. */
struct transformer_tensor transformer_tensor(const struct transformer_unit *unit, uint64_t layer, uint32_t index);

/* Returns a vector, whose numbers are as those of activations. */
const kernel_number *transformer_vector(const struct transformer_unit *unit, uint64_t layer, uint32_t index);

/* Takes a microbatch's complete gradient, unless the tensor is frozen: steps, or adds to the microbatches' sum, or
 * leaves it to be applied elsewhere. */
void transformer_step(const struct transformer_unit *unit, const struct transformer_tensor *tensor, bool decays);

/* --- layers of several families --------------------------------------------------------------- */

/*
 * `rows` rows; its bias, if any, is the tensor after its weight.
 *
 * In a tensor group, a product by *columns* makes the device's columns from all rows; its input's gradient is a part
 * of a sum, which transformer_own_sum() completes after the last product from the same input. A product by *rows* makes
 * a part of a sum from the device's columns; it completes the sum, to which rank 0 adds the bias. Its result, and the
 * result's gradient, are the device's own rows; the backward pass leaves that gradient's rows of all in `gathered`.
 */
struct transformer_linear {
    uint32_t weight;
    int64_t rows, out, in;
    bool in_out; /* weight stored as (in, out); false: (out, in) */
    bool bias;
    bool logits; /* the result is fp32, and so is its gradient */
    bool by_rows;
    bool apart;      /* by rows: the caller gathers gradients of rows, and completes the sum with
                        transformer_complete_sum() */
    bool part;       /* one of several matrices of a tensor, which the caller steps as a whole; rows may be 0 */
    int64_t skipped; /* numbers of the tensor before it */
};

static inline struct transformer_linear transformer_by_rows(struct transformer_linear linear)
{
    linear.by_rows = true;
    return linear;
}

/* Adds up the devices' parts of a sum, if there is a tensor group. */
void transformer_sum(const struct transformer_unit *unit, float *values, int64_t count);

/* As transformer_sum(), of numbers. Those of 16 bits are in host memory. */
void transformer_sum_numbers(const struct transformer_unit *unit, kernel_number *values, int64_t count);

/* Returns room for all rows of a sum (R,C) whose own rows go to `own`, and completes that sum. */
kernel_number *transformer_sum_room(const struct transformer_unit *unit, kernel_number *own);
void transformer_complete_sum(const struct transformer_unit *unit, kernel_number *own, kernel_number *sum);

/*
 * Sequence parallelism. A tensor group's devices may cut the rows of norms, sums and boundaries: each has `own` rows of
 * R. A product by columns reads the rows of all, which are gathered before it; a sum leaves each device its own rows.
 * The results have the same bits as without the cut.
 *
 * transformer_all_rows() returns all rows (R,C), in `gathered` until the next call, or `own` where nothing is cut;
 * transformer_rows_for_weights() does so where the pass makes gradients of weights, which alone read them.
 * transformer_own_sum() completes a sum in place and returns the device's rows.
 */
const kernel_number *transformer_all_rows(const struct transformer_unit *unit, const kernel_number *own);
const kernel_number *transformer_rows_for_weights(const struct transformer_unit *unit, const kernel_number *own);
kernel_number *transformer_own_sum(const struct transformer_unit *unit, kernel_number *values);
/* Returns the device's rows in `gathered`, from where they may be gathered. */
kernel_number *transformer_own_gathered(const struct transformer_unit *unit);

/* Returns the unit as if rows were not cut, for a layer that every device computes for all rows. */
struct transformer_unit transformer_with_all_rows(const struct transformer_unit *unit);

/* Copies the device's own of all rows. */
void transformer_keep_own_rows(const struct transformer_unit *unit, kernel_number *own, const kernel_number *all);

/* Returns true if the device's part of a sum begins with a whole value that is added to it. */
static inline bool transformer_adds_whole(const struct transformer_unit *unit)
{
    return !unit->split || unit->split->rank == 0;
}

/*
 * Pieces ("tensor_pieces"). A device computes what several devices of a larger tensor group would: a product by columns
 * has pieces of its columns, one by rows pieces of a sum. All that a piece makes is together, as on a device of its
 * own: y(pieces, rows, out / pieces), and so are its weights. Sums are trees, whose upper levels are the group's.
 */

/* Adds up `count` numbers of each piece, which follow each other in `parts`, in `out`, which may be the first
 * piece's. */
void transformer_add_pieces(const struct transformer_unit *unit, float *out, float *parts, int64_t count);

/* Returns true if a tensor group of pieces would cut tensor `index` of the shard. */
bool transformer_is_cut(const struct transformer_unit *unit, uint32_t index);

/* Returns the sum of squares of a cut tensor's gradient. */
double transformer_piece_squares(const struct transformer_unit *unit, const float *gradient, int64_t count);

/* Rotate q and k, and compute attention, piece by piece. */
void transformer_rotate(const struct transformer_unit *unit, const struct kernel_rope *rope);
struct kernel_attention transformer_piece_of_attention(const struct transformer_unit *unit,
                                                       const struct kernel_attention *all, int64_t p);

/* Computes y(rows,out) = x(rows,in) w + bias. */
void transformer_linear_forward(const struct transformer_unit *unit, kernel_number *y, const kernel_number *x,
                                uint64_t layer, struct transformer_linear linear);
/* Computes dx(rows,in) = (accumulate: +=) from dy(rows,out); may be NULL. Then steps weight and bias, unless the unit
 * leaves weights. */
void transformer_linear_backward(const struct transformer_unit *unit, kernel_number *dx, const kernel_number *dy,
                                 const kernel_number *x, uint64_t layer, struct transformer_linear linear,
                                 bool accumulate);

/* Computes the gradients of the weight alone, and steps it. */
void transformer_linear_weight(const struct transformer_unit *unit, const kernel_number *dy, const kernel_number *x,
                               uint64_t layer, struct transformer_linear linear);

/* Returns where the gradient of a block's first sum goes: it is kept, or continues in d_in. */
static inline kernel_number *transformer_d_middle(const struct transformer_unit *unit, kernel_number *d_in)
{
    return unit->d_middle ? unit->d_middle : d_in;
}

/* Norms rows; the bias is the tensor after the weight; arguments as for the kernel. The devices of a tensor group add
 * up the gradients of the weights over equal parts of the rows, in the order of ranks, whether each has its part or all
 * rows. */
void transformer_norm_forward(const struct transformer_unit *unit, kernel_number *out, kernel_number *sum, float *stats,
                              const kernel_number *x, const kernel_number *y, int64_t rows, uint64_t layer,
                              uint32_t weight);
void transformer_norm_backward(const struct transformer_unit *unit, kernel_number *dx, const kernel_number *dout,
                               const kernel_number *x, const float *stats, const kernel_number *added, int64_t rows,
                               uint64_t layer, uint32_t weight);

/* A norm's backward pass over some rows. d_bias is NULL for norms without a bias. */
struct transformer_norm {
    kernel_number *dx;
    float *d_weight, *d_bias;
    const kernel_number *dout, *x, *added; /* added may be NULL */
    const float *stats;
    const kernel_number *weight;
    int64_t rows;
};
typedef void transformer_norm_pass(const struct transformer_unit *unit, const struct transformer_norm *norm);

/* Calls `pass` for the device's parts of a norm's rows, and adds up the gradients of its weights. `values`: statistics
 * of a row. */
void transformer_norm_in_parts(const struct transformer_unit *unit, const struct transformer_norm *norm, int64_t values,
                               transformer_norm_pass *pass);

/* Returns separate arrays q, k and v, for the forward pass; the caller adds gradients for the backward pass. */
struct kernel_attention transformer_attention(const struct transformer_unit *unit, uint64_t layer,
                                              const kernel_number *q, const kernel_number *k, const kernel_number *v,
                                              kernel_number *out, float *stats);

/* Compute attention, forward and backward. Queries of a slice of tokens also see the keys of earlier ones: its keys and
 * values go where those of all slices are, and the gradients of its own, complete by then, come back
 * (transformer_context.c). */
void transformer_attend(const struct transformer_unit *unit, uint64_t layer, const struct kernel_attention *attention);
void transformer_attend_backward(const struct transformer_unit *unit, uint64_t layer,
                                 const struct kernel_attention *attention);

/*
 * Dropout, in passes that train: of the embedding's result, of attention's weights, and of the results of attention and
 * of the feed-forward part before they are added (models/network/network_ignored.h has the rates). transformer_drop()
 * works in place. A gradient that goes back through it is d where nothing is dropped, else in `room` (R,C), which may
 * be d.
 */
enum transformer_dropped { TRANSFORMER_EMBEDDED, TRANSFORMER_SCORES, TRANSFORMER_ATTENDED, TRANSFORMER_MADE };
struct kernel_dropout transformer_dropout(const struct transformer_unit *unit, uint64_t layer,
                                          enum transformer_dropped place);
void transformer_drop(const struct transformer_unit *unit, kernel_number *x, uint64_t layer,
                      enum transformer_dropped place);
const kernel_number *transformer_dropped_gradient(const struct transformer_unit *unit, kernel_number *room,
                                                  const kernel_number *d, uint64_t layer,
                                                  enum transformer_dropped place);

/* Returns the unit's first token, in the sequence. */
static inline int64_t transformer_first_token(const struct transformer_unit *unit)
{
    return (int64_t)unit->arguments->job->parallel.slice_begin;
}

/* An embedding's rows from row `first` of the state, for kernels.embed_forward and embed_update. */
struct transformer_table_rows {
    bool split;         /* the words' rows, which come first, are cut over a tensor group; numbers are of its slice */
    int64_t first;      /* in the state */
    const int32_t *tokens;
    int64_t token_stride, vocabulary, first_row, row_count; /* vocabulary: the row of the first token's position */
    int64_t padded;     /* as in struct kernel_parameters */
};
void transformer_gather(const struct transformer_unit *unit, kernel_number *x,
                        const struct transformer_table_rows *rows);
/* Steps the rows, or makes or continues their gradient. */
void transformer_rows_backward(const struct transformer_unit *unit, const struct transformer_table_rows *rows,
                               const float *head_gradient, const kernel_number *dx, float *scratch);

/* Do the same for rows whose words are cut: words of other devices count as zero in a sum (transformer_split.c). */
void transformer_gather_split(const struct transformer_unit *unit, kernel_number *x,
                              const struct transformer_table_rows *rows);
void transformer_rows_backward_split(const struct transformer_unit *unit, const struct transformer_table_rows *rows,
                                     const kernel_number *dx, float *scratch);

/* Returns the words of the whole network. */
static inline int64_t transformer_all_words(const struct transformer_unit *unit)
{
    return unit->split ? (int64_t)unit->split->vocabulary : unit->v;
}

/* Returns the padding token as a kernel argument. */
int64_t transformer_padded(const struct network *network);

/* Compute embeddings that only have tables of rows. */
void transformer_tables_forward(const struct transformer_unit *unit);
/* Returns true if the unit has the tables' last rows: only then is the embedding's output complete. */
bool transformer_tables_end(const struct transformer_unit *unit);
void transformer_tables_backward(const struct transformer_unit *unit);
/* From another gradient than the boundary's, which may be in the scratch after MEMORY_EMBEDDING_WORDS for each row. */
void transformer_tables_backward_from(const struct transformer_unit *unit, const kernel_number *dx);

/* The product with the token table, and the targets. */
struct transformer_words {
    uint32_t own_weight;   /* unless it is the embedding's table */
    uint32_t bias;         /* or TRANSFORMER_WORDS_WITHOUT_BIAS */
    bool masked;           /* only rows with a label count: loss_labels() */
    const int32_t *labels; /* or tokens whose next tokens are the targets */
    int64_t stride;        /* from one sample's labels to the next */
};
enum { TRANSFORMER_WORDS_WITHOUT_BIAS = LAYER_TENSORS_MAX };

/* Computes the loss of normf, the device's rows. Unless d_normf(R,C) is NULL, also its gradient and the steps of table
 * and bias; network_logit_rows() rows at a time. d_normf must not be normf. Returns the device's rows of the
 * gradient. */
kernel_number *transformer_words(const struct transformer_unit *unit, uint64_t layer,
                                 const struct transformer_words *words, const kernel_number *normf,
                                 kernel_number *d_normf);
/* The words of piece p of a device, from its first one. There may be none. */
struct transformer_word_piece {
    int64_t first, count;
};
static inline struct transformer_word_piece transformer_word_piece(const struct transformer_unit *unit, int64_t p)
{
    const int64_t each = (int64_t)unit->network->vocabulary / unit->pieces, first = p * each, left = unit->v - first;
    return (struct transformer_word_piece){first, left < 0 ? 0 : left < each ? left : each};
}
/* Computes the loss of a piece of rows, and the gradient of its logits in place, where devices have words each. */
void transformer_loss_split(const struct transformer_unit *unit, const struct transformer_words *words,
                            struct kernel_loss_rows rows);
/* Zeroes the gradients of a device's rows without a word, after the loss. */
void transformer_zero_padding(const struct transformer_unit *unit, float *d_table, float *d_bias);

/* Returns the output that predicts the next token. */
struct transformer_words transformer_next_words(const struct transformer_unit *unit, uint32_t own_weight);

#endif
