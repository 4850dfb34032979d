/*
 * Networks of operations that read results of any earlier operation: a list in the order of execution, cut into
 * layers. Operation 0 is the input, an image. All else follows from the list.
 *
 * A result has channels x side x side numbers per sample (side 1 after a linear layer). A backward pass reads
 *
 *     for a convolution, linear, upsample       its input
 *     for a batch norm                          its input, and mean and 1/std of each channel
 *     for a relu                                its result, which replaces its input in memory
 *     for a max pooling                         the index of the chosen pixel, one number per result
 *
 * and for all others nothing. A result that a backward pass reads is kept once for all its readers. Images stay in the
 * batch. A layer passes on all results of this and earlier layers that later operations read: a shortcut across a cut
 * is copied with the boundary.
 *
 * The gradient of a relu's result that later layers read is masked by these layers, which have the result at hand; so a
 * layer's backward pass needs no result that only others read.
 *
 * A batch norm has running means of its channels' means and variances (the unbiased ones), which evaluations use. A
 * backward pass leaves a microbatch's in place of a gradient; the step of a minibatch is
 *
 *     running = (1 - GRAPH_MOMENTUM) running + GRAPH_MOMENTUM * mean over microbatches
 *
 * which for one microbatch is PyTorch's.
 *
 * Results are stored pixel by pixel, all channels of a pixel together (samples, side, side, channels). Numbers are
 * fp32. Not modelled: dropout, and the libraries' scratch of convolutions.
 *
 * Source: torch.nn and autograd's saved tensors of PyTorch 2, for kept results.
 */
#ifndef SPILLWAY_MODELS_NETWORK_NETWORK_GRAPH_H
#define SPILLWAY_MODELS_NETWORK_NETWORK_GRAPH_H

#include "models/kernel/work_list.h"
#include "models/network/network.h"

enum graph_kind {
    GRAPH_INPUT,
    GRAPH_CONVOLUTION, /* kernel, stride, padding, groups; bias */
    GRAPH_UPSAMPLE,    /* a transposed convolution with stride = kernel; bias */
    GRAPH_LINEAR,      /* of a sample's numbers; bias */
    GRAPH_BATCH_NORM,
    GRAPH_RELU,
    GRAPH_MAX_POOL,    /* kernel, stride, padding */
    GRAPH_MEAN_POOL,   /* any image becomes `kernel` pixels per side */
    GRAPH_ADD,         /* results of equal size */
    GRAPH_CONCAT,      /* of equal side: channels of the first result, then of the second */
    GRAPH_LOSS,        /* softmax and cross-entropy for each pixel */
    GRAPH_KINDS
};
extern const char *const graph_kind_names[GRAPH_KINDS]; /* "convolution", ...; in files */

#define GRAPH_MOMENTUM 0.1 /* of running means, and what norms add to a variance; PyTorch's defaults */
#define GRAPH_EPSILON 1e-5

enum { GRAPH_FROM_MAX = 2, GRAPH_OPS_MAX = 1 << 16, GRAPH_KERNEL_MAX = 64, GRAPH_LAYER_OPS_MAX = 64 };
#define GRAPH_ELEMENTS_MAX (UINT64_C(1) << 36) /* of a sample's result, and of a tensor of parameters */

struct graph_op {
    uint32_t kind;  /* enum graph_kind */
    uint32_t layer;
    uint32_t from[GRAPH_FROM_MAX]; /* earlier operations; graph_op_reads() of them */
    uint64_t channels; /* of its result; derived if there is no choice */
    uint32_t kernel, stride, padding, groups;
    bool bias;
    const char *name; /* of its module in files of weights; NULL: the layer's name, a word and a number */
    /* derived */
    uint64_t side;
    uint32_t readers;    /* of its result */
    uint32_t own_readers; /* among them, of its own layer */
    uint32_t last_layer; /* with a reader, or its own */
    bool kept;           /* a backward pass reads it */
};

struct network_graph {
    const struct graph_op *ops; /* (op_count) */
    uint32_t op_count;
    const uint32_t *begins;     /* (layer_count + 1) first operation of each layer, and op_count */
    const char *const *names;   /* (layer_count) */
    /* for a sample: */
    const uint64_t *crossing;     /* (layer_count) numbers that cross the cut after the layer */
    const uint64_t (*scratch)[2]; /* (layer_count) words of a forward pass and of a backward pass */
};

/* Counts the results that this kind reads. */
static inline uint32_t graph_op_reads(uint32_t kind)
{
    return kind == GRAPH_INPUT ? 0 : kind == GRAPH_ADD || kind == GRAPH_CONCAT ? 2 : 1;
}

/* Writes an operation's parameters, for fingerprints. */
enum { GRAPH_CODE_WORDS = 6 };
void graph_op_code(const struct graph_op *op, uint64_t code[GRAPH_CODE_WORDS]);
bool graph_is_same(const struct network_graph *a, const struct network_graph *b); /* either may be NULL */

/* --- making one ------------------------------------------------------------------------------- */

struct graph_builder {
    struct network_graph graph; /* on the heap */
    struct graph_op *ops;
    const char **names;
    size_t op_capacity, name_capacity;
    uint32_t layer_count, layer_begin;
    uint64_t classes; /* for builders of known networks; 0: their own */
    struct arena *arena;
    struct error *err; /* first error; later calls do nothing */
};

/* Begins a graph for images of channels x side x side. Always call graph_end() afterwards. */
void graph_begin(struct graph_builder *b, struct arena *arena, uint64_t channels, uint64_t side,
                 struct error *err);

/* Begins a layer, to which later operations belong. */
void graph_layer(struct graph_builder *b, const char *format, ...) PRINTF_LIKE(2, 3);

/* Adds to the newest layer and returns the index for `from`. Absent strides and groups are 1. Errors, in b->err:
 * STATUS_BAD_INPUT for an impossible operation; STATUS_LIMIT. */
uint32_t graph_add(struct graph_builder *b, struct graph_op op);

/* Names the newest operation's module. */
void graph_name(struct graph_builder *b, const char *name);

/* Returns the newest layer's name. */
static inline const char *graph_newest_layer(const struct graph_builder *b)
{
    return b->layer_count > 0 ? b->names[b->layer_count - 1] : "";
}

static inline uint32_t graph_newest(const struct graph_builder *b) { return b->graph.op_count - 1; }

/* Sets graph, layer count, channels, image and classes of `out`; the arena owns its arrays. Errors: as earlier
 * calls; STATUS_BAD_INPUT for a graph that does not end in a loss. */
MUST_CHECK enum status graph_end(struct graph_builder *b, struct network *out);

/* Adapts a network to another size of images.
 * Errors: STATUS_BAD_INPUT for a network without images, and when a kernel does not fit; STATUS_LIMIT. */
MUST_CHECK enum status network_for_image(const struct network *network, uint64_t image, struct arena *arena,
                                         struct network *out, struct error *err);

/* --- sizes and work for a number of samples --------------------------------------------------- */

/* Counts a result's numbers. */
static inline uint64_t graph_elements(const struct network_graph *graph, uint32_t op, uint64_t samples)
{
    const struct graph_op *const o = &graph->ops[op];
    return samples * o->channels * o->side * o->side;
}

struct graph_kept {
    uint64_t inner;  /* words that a backward pass reads of the layer's results that no other layer reads */
    uint64_t output; /* words of the layer's results that others read */
    uint64_t own;    /* ... and of those among them that operations of the layer read, too */
    uint64_t widest; /* words of the largest result made or read */
    uint64_t logits;
};
struct graph_kept graph_layer_kept(const struct network_graph *graph, uint64_t layer, uint64_t samples);

/* Counts words of statistics and indexes that an operation keeps. */
static inline uint64_t graph_noted_words(const struct network_graph *graph, uint32_t op, uint64_t samples)
{
    const uint32_t kind = graph->ops[op].kind;
    if (kind == GRAPH_BATCH_NORM) return 2 * graph->ops[op].channels;
    return kind == GRAPH_MAX_POOL ? graph_elements(graph, op, samples) : 0;
}

/* Counts words of results of this and earlier layers that later layers read. */
static inline uint64_t graph_boundary(const struct network_graph *graph, uint64_t layer, uint64_t samples)
{
    return samples * graph->crossing[layer];
}

/* Adds kernels; none for PASS_UPDATE. */
void graph_layer_work(const struct network_graph *graph, uint64_t layer, enum network_pass pass, uint64_t samples,
                      struct work_list *list);

/* Returns their number. With `named`, names consist of the module's and the tensor's. */
enum { GRAPH_TENSORS_MAX = 4 };
uint32_t graph_op_tensors(const struct network_graph *graph, uint32_t op, bool named,
                          struct tensor_spec out[GRAPH_TENSORS_MAX]);

#endif
