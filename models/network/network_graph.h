/*
 * Networks that are no chain of equal blocks: operations that read the results of earlier ones.
 *
 * Convolutional networks are a list of operations in the order in which they run, cut into layers. Operation 0 is
 * the input, an image. All else follows from the list: the sizes of results, what a backward pass has to find again,
 * what crosses from one layer to those behind it (shortcuts included), kernels, parameters.
 *
 * A result is channels x side x side of each sample (side 1 behind a linear layer). A backward pass reads
 *
 *     of a convolution, linear, upsample        its input
 *     of a batch norm                           its input, and mean and 1/std of each channel
 *     of a relu                                 its result, which lies where its input did
 *     of a max pooling                          which pixel it was, a number for each of its result
 *
 * and of all others nothing. A result that is read so is kept from the forward pass on, once, whoever reads it; so are
 * the images, by the first layer, and a plan does not copy them to the device. A layer passes to the next what
 * operations behind it read of all in front: the boundary of a plan holds that, so that a shortcut over a cut is copied
 * along with it.
 *
 * Numbers are fp32. Not modelled: dropout, running means of batch norms (which are no parameters), work space of a
 * library's convolutions.
 *
 * Source: torch.nn and autograd's saved tensors of PyTorch 2, for what is kept; relus are in place, as in torchvision.
 */
#ifndef SPILLWAY_MODELS_NETWORK_GRAPH_H
#define SPILLWAY_MODELS_NETWORK_GRAPH_H

#include "models/kernel/work_list.h"
#include "models/network/network.h"

enum graph_kind {
    GRAPH_INPUT,
    GRAPH_CONVOLUTION, /* kernel, stride, padding, groups; bias */
    GRAPH_UPSAMPLE,    /* a transposed convolution whose stride is its kernel: no pixel is written twice; bias */
    GRAPH_LINEAR,      /* of all numbers of a sample; bias */
    GRAPH_BATCH_NORM,
    GRAPH_RELU,
    GRAPH_MAX_POOL,    /* kernel, stride, padding */
    GRAPH_MEAN_POOL,   /* down to `kernel` pixels a side, whatever the image */
    GRAPH_ADD,         /* two results of one size */
    GRAPH_CONCAT,      /* two results of one side: the channels of the first, then those of the second */
    GRAPH_LOSS,        /* softmax and cross-entropy over the channels of each pixel */
    GRAPH_KINDS
};
extern const char *const graph_kind_names[GRAPH_KINDS]; /* "convolution", ...; in files */

enum { GRAPH_FROM_MAX = 2, GRAPH_OPS_MAX = 1 << 16, GRAPH_KERNEL_MAX = 64, GRAPH_LAYER_OPS_MAX = 64 };
#define GRAPH_ELEMENTS_MAX (UINT64_C(1) << 36) /* of a result of one sample, and of a tensor of parameters */

struct graph_op {
    uint32_t kind;  /* enum graph_kind */
    uint32_t layer;
    uint32_t from[GRAPH_FROM_MAX]; /* operations in front; as many as graph_op_reads() says */
    uint64_t channels; /* of its result; where an operation cannot choose them, derived */
    uint32_t kernel, stride, padding, groups;
    bool bias;
    /* derived */
    uint64_t side;
    uint32_t readers;    /* operations that read its result */
    uint32_t last_layer; /* of them; its own: none */
    bool kept;           /* its result is read by a backward pass */
};

struct network_graph {
    const struct graph_op *ops; /* (op_count) */
    uint32_t op_count;
    const uint32_t *begins;     /* (layer_count + 1) first operation of each layer, and op_count */
    const char *const *names;   /* (layer_count) */
};

/* How many results an operation of this kind reads. */
uint32_t graph_op_reads(uint32_t kind);

/* All that an operation was made with, for comparing and for fingerprints. */
enum { GRAPH_CODE_WORDS = 6 };
void graph_op_code(const struct graph_op *op, uint64_t code[GRAPH_CODE_WORDS]);
bool graph_is_same(const struct network_graph *a, const struct network_graph *b); /* either may be NULL */

/* --- making one ------------------------------------------------------------------------------- */

struct graph_builder {
    struct network_graph graph; /* arrays of the heap, growing */
    struct graph_op *ops;
    const char **names;
    size_t op_capacity, name_capacity;
    uint32_t layer_count, layer_begin;
    struct arena *arena;
    struct error *err; /* of the first call that failed; those behind it do nothing */
};

/* Of images channels x side x side. Call graph_end() behind it, whatever fails. */
void graph_begin(struct graph_builder *b, struct arena *arena, uint64_t channels, uint64_t side,
                 struct error *err);

/* What follows belongs to a new layer. */
void graph_layer(struct graph_builder *b, const char *format, ...) PRINTF_LIKE(2, 3);

/* Add an operation; its `layer` is the newest, absent strides and groups are 1. Returns its index, for `from`.
 * Errors, in b->err: STATUS_BAD_INPUT for one that cannot be; STATUS_LIMIT; STATUS_NO_MEMORY. */
uint32_t graph_add(struct graph_builder *b, struct graph_op op);

/* The newest operation. */
static inline uint32_t graph_newest(const struct graph_builder *b) { return b->graph.op_count - 1; }

/* Set graph, layer count, channels, image and classes of `out`. Its arrays are the arena's.
 * Errors: those of the calls in front; STATUS_BAD_INPUT for a graph that does not end in a loss. */
MUST_CHECK enum status graph_end(struct graph_builder *b, struct network *out);

/* The same network for images of another size. Errors: STATUS_BAD_INPUT for a network that reads none, and where a
 * kernel does not fit; STATUS_LIMIT; STATUS_NO_MEMORY. */
MUST_CHECK enum status network_for_image(const struct network *network, uint64_t image, struct arena *arena,
                                         struct network *out, struct error *err);

/* --- what follows from it, for so many samples ------------------------------------------------- */

/* Numbers of a result. */
uint64_t graph_elements(const struct network_graph *graph, uint32_t op, uint64_t samples);

struct graph_kept {
    uint64_t inner;  /* words that a backward pass reads of results made in the layer, and no other layer reads */
    uint64_t output; /* of results made in the layer that others read */
    uint64_t widest; /* of the largest result that the layer makes or reads */
    uint64_t logits;
};
struct graph_kept graph_layer_kept(const struct network_graph *graph, uint64_t layer, uint64_t samples);

/* Words that cross behind a layer: results made up to it that others read. */
uint64_t graph_boundary(const struct network_graph *graph, uint64_t layer, uint64_t samples);

/* The kernels of a pass, none of PASS_UPDATE. */
void graph_layer_work(const struct network_graph *graph, uint64_t layer, enum pass pass, uint64_t samples,
                      struct work_list *list);

/* Tensors of an operation: returns how many of out[2], with the layer's name and a number in front of theirs. */
enum { GRAPH_TENSORS_MAX = 2 };
uint32_t graph_op_tensors(const struct network_graph *graph, uint32_t op, bool named,
                          struct tensor_spec out[GRAPH_TENSORS_MAX]);

#endif
