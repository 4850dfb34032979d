/*
 * Each operation's forward kernels, and its backward kernels in reverse order.
 *
 *                     forward                     backward
 *     convolution     of R pixels, a class for 3 x 3 with a stride of 1; with 1 x 1 pixel it is a matrix product of
 *                     R rows. On images of a few pixels R counts only what is not in the padding, in the mean over taps
 *     upsample        product of R' pixels of the input, channels * kernel^2 columns
 *     max, mean pool  pixels read and written     the same in reverse, with the index if there is one
 *     add             one sum                     nothing: both inputs have the same gradient
 *     concat          copied together             copied apart
 *     loss            with its gradient           nothing
 *
 * A result with r readers has r gradients: r - 1 sums. The input's gradient is not computed. A recomputation leaves
 * out the loss.
 */
#include "models/network/network_graph.h"

#include <assert.h>

#include "models/kernel/convolution_taps.h"

enum {
    PRODUCT_INPUT = KERNEL_MATMUL_INPUT - KERNEL_MATMUL_FORWARD,
    PRODUCT_WEIGHT = KERNEL_MATMUL_WEIGHT - KERNEL_MATMUL_FORWARD
};
static_assert(KERNEL_CONVOLUTION_FORWARD + PRODUCT_INPUT == KERNEL_CONVOLUTION_INPUT &&
                  KERNEL_CONVOLUTION_FORWARD + PRODUCT_WEIGHT == KERNEL_CONVOLUTION_WEIGHT &&
                  KERNEL_CONVOLUTION_3X3_FORWARD + PRODUCT_INPUT == KERNEL_CONVOLUTION_3X3_INPUT &&
                  KERNEL_CONVOLUTION_3X3_FORWARD + PRODUCT_WEIGHT == KERNEL_CONVOLUTION_3X3_WEIGHT,
              "the three products follow each other alike");

enum part { PART_INPUT = 1, PART_WEIGHT = 2 };

struct network_graph_work {
    const struct network_graph *graph;
    uint64_t samples;
    struct work_list *list;
    uint32_t parts; /* sum of enum part */
};

static void add_times(struct network_graph_work *w, uint64_t times, uint32_t kernel, uint64_t m, uint64_t n, uint64_t k)
{
    const struct work_item item = {.kernel = kernel, .count = 1, .m = m, .n = n, .k = k};
    if (times > 0 && m > 0) work_list_add(w->list, &item, times);
}

static void add(struct network_graph_work *w, uint32_t kernel, uint64_t m, uint64_t n, uint64_t k)
{
    add_times(w, 1, kernel, m, n, k);
}

/* Counts all samples. */
static uint64_t pixels(const struct network_graph_work *w, uint32_t op)
{
    const struct graph_op *o = &w->graph->ops[op];
    return w->samples * o->side * o->side;
}

/* `times` 0: no product. */
struct network_graph_work_product {
    uint64_t times, rows, out, in;
    uint32_t forward, weight, input; /* of a linear layer */
};

/* Returns true if the convolution needs fewer multiplications than a product. */
static bool is_minimal(const struct graph_op *o)
{
    return o->kind == GRAPH_CONVOLUTION && o->kernel == 3 && o->stride == 1;
}

static struct network_graph_work_product with_kernels(struct network_graph_work_product p, const struct graph_op *o,
                                                      uint64_t taps)
{
    bool gathers = o->kind == GRAPH_CONVOLUTION && taps > 1;
    uint32_t first = is_minimal(o) ? KERNEL_CONVOLUTION_3X3_FORWARD
                     : gathers     ? KERNEL_CONVOLUTION_FORWARD
                                   : KERNEL_MATMUL_FORWARD;
    p.forward = first;
    p.input = first + PRODUCT_INPUT;
    p.weight = first + PRODUCT_WEIGHT;
    return p;
}

/* Counts a convolution's pixels, for each tap. */
static uint64_t convolved(const struct network_graph_work *w, uint32_t op)
{
    const struct graph_op *o = &w->graph->ops[op], *in = &w->graph->ops[o->from[0]];
    const struct convolution_side side = {(int64_t)in->side, (int64_t)o->side, o->kernel, o->stride, o->padding};
    if (o->groups > 1 || !convolution_is_padded(&side)) return pixels(w, op);
    const uint64_t met = (uint64_t)convolution_met_by_all(&side), taps = (uint64_t)o->kernel * o->kernel;
    return (w->samples * met * met + taps - 1) / taps;
}

static struct network_graph_work_product product_of(const struct network_graph_work *w, uint32_t op)
{
    const struct graph_op *o = &w->graph->ops[op], *in = &w->graph->ops[o->from[0]];
    uint64_t taps = (uint64_t)o->kernel * o->kernel;
    struct network_graph_work_product p = {0};
    switch ((enum graph_kind)o->kind) {
    case GRAPH_CONVOLUTION:
        p = (struct network_graph_work_product){o->groups,
                                                convolved(w, op),
                                                o->channels / o->groups,
                                                in->channels / o->groups * taps,
                                                0,
                                                0,
                                                0};
        break;
    case GRAPH_UPSAMPLE:
        p = (struct network_graph_work_product){1, pixels(w, o->from[0]), o->channels * taps, in->channels, 0, 0, 0};
        break;
    case GRAPH_LINEAR:
        p = (struct network_graph_work_product){1, pixels(w, op), o->channels, in->channels * in->side * in->side, 0, 0,
                                                0};
        break;
    default: break;
    }
    return with_kernels(p, o, taps);
}

/* Counts rows of channels. */
static uint64_t pooled(const struct network_graph_work *w, uint32_t op)
{
    const struct graph_op *o = &w->graph->ops[op];
    return pixels(w, o->from[0]) + pixels(w, op) * (o->kind == GRAPH_MAX_POOL ? 2 : 1);
}

static void forward_op(struct network_graph_work *w, uint32_t op, bool loss)
{
    const struct graph_op *o = &w->graph->ops[op];
    const struct network_graph_work_product p = product_of(w, op);
    uint64_t rows = pixels(w, op);
    if (p.times > 0)
        add_times(w, p.times, p.forward, p.rows, p.out, p.in);
    switch ((enum graph_kind)o->kind) {
    case GRAPH_BATCH_NORM: add(w, KERNEL_BATCH_NORM_FORWARD, rows, o->channels, 0); break;
    case GRAPH_RELU: add(w, KERNEL_RELU_FORWARD, rows, o->channels, 0); break;
    case GRAPH_MAX_POOL:
    case GRAPH_MEAN_POOL: add(w, KERNEL_POOL, pooled(w, op), o->channels, 0); break;
    case GRAPH_ADD: add(w, KERNEL_RESIDUAL, rows, o->channels, 0); break;
    case GRAPH_CONCAT: add(w, KERNEL_GATHER, rows, o->channels, 0); break;
    case GRAPH_LOSS:
        if (loss) add(w, KERNEL_LOSS, rows, o->channels, 0);
        break;
    default: break;
    }
}

static void backward_weight(struct network_graph_work *w, uint32_t op)
{
    const struct graph_op *o = &w->graph->ops[op];
    const struct network_graph_work_product p = product_of(w, op);
    if (p.times > 0) {
        add_times(w, p.times, p.weight, p.out, p.in, p.rows);
        if (o->bias) add(w, KERNEL_BIAS_BACKWARD, pixels(w, op), o->channels, 0);
    }
}

static void backward_input(struct network_graph_work *w, uint32_t op)
{
    const struct graph_op *o = &w->graph->ops[op];
    const struct network_graph_work_product p = product_of(w, op);
    uint64_t rows = pixels(w, op);
    if (o->readers > 1) add_times(w, o->readers - 1, KERNEL_RESIDUAL, rows, o->channels, 0);
    if (p.times > 0 && o->from[0] > 0)
        add_times(w, p.times, p.input, p.rows, p.in, p.out);
    switch ((enum graph_kind)o->kind) {
    case GRAPH_BATCH_NORM: add(w, KERNEL_BATCH_NORM_BACKWARD, rows, o->channels, 0); break;
    case GRAPH_RELU: add(w, KERNEL_RELU_BACKWARD, rows, o->channels, 0); break;
    case GRAPH_MAX_POOL:
    case GRAPH_MEAN_POOL: add(w, KERNEL_POOL, pooled(w, op), o->channels, 0); break;
    case GRAPH_CONCAT: add(w, KERNEL_GATHER, rows, o->channels, 0); break;
    default: break;
    }
}

void graph_layer_work(const struct network_graph *graph, uint64_t layer, enum network_pass pass, uint64_t samples,
                      struct work_list *list)
{
    struct network_graph_work w = {graph, samples, list, PART_INPUT | PART_WEIGHT};
    uint32_t begin = graph->begins[layer], end = graph->begins[layer + 1];
    assert(pass != PASS_UPDATE);
    switch (pass) {
    case PASS_FORWARD:
    case PASS_RECOMPUTE:
        for (uint32_t i = begin; i < end; i++) forward_op(&w, i, pass == PASS_FORWARD);
        return;
    case PASS_RECOMPUTE_CORE: return; /* no attention */
    case PASS_INPUT: w.parts = PART_INPUT; break;
    case PASS_WEIGHT: w.parts = PART_WEIGHT; break;
    default: break;
    }
    for (uint32_t i = end; i-- > begin;) {
        if (w.parts & PART_WEIGHT) backward_weight(&w, i);
        if (w.parts & PART_INPUT) backward_input(&w, i);
    }
}
