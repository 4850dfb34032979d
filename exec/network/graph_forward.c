/* Operations forward. An operation whose result nobody takes only leaves what its backward pass reads. */
#include "exec/network/graph_layer.h"

/* An operation's operands. */
struct operands {
    const struct graph_layer *l;
    const struct graph_pass *pass;
    const struct kernels *k;
    const struct graph_op *o;
    uint32_t op, tensor; /* its first one */
    float *y;            /* may be NULL */
    const float *x;
};

static const float *tensor_of(const struct operands *d, uint32_t index)
{
    return transformer_vector(d->pass->unit, d->l->layer, d->tensor + index);
}

static const float *bias_of(const struct operands *d)
{
    return d->o->bias ? tensor_of(d, 1) : NULL;
}

static void convolve(const struct operands *d)
{
    const struct kernel_convolution shape = graph_convolution(d->pass, d->op);
    d->k->images->convolve(d->k, d->y, d->x, tensor_of(d, 0), bias_of(d), &shape);
}

static void upsample(const struct operands *d)
{
    const struct kernel_convolution shape = graph_convolution(d->pass, d->op);
    d->k->images->convolve_input(d->k, d->y, d->x, tensor_of(d, 0), &shape);
    if (d->o->bias)
        d->k->images->add_bias(d->k, d->y, bias_of(d), graph_rows(d->pass, d->op), (int64_t)d->o->channels);
}

/* Weights have an image channel by channel. */
static void multiply(const struct operands *d)
{
    const struct graph_op *const in = &d->pass->graph->ops[d->o->from[0]];
    const int64_t b = (int64_t)d->pass->samples, area = (int64_t)(in->side * in->side), c = (int64_t)in->channels;
    float *const turned =
        d->pass->unit->scratch + d->l->places.turned[d->op - d->pass->graph->begins[d->l->layer]];
    if (area > 1) d->k->images->transpose(d->k, turned, d->x, b, area, c, false);
    d->k->linear_forward(d->k, d->y, area > 1 ? turned : d->x, tensor_of(d, 0), bias_of(d), b, (int64_t)d->o->channels,
                         area * c, false);
}

static void norm(const struct operands *d)
{
    const int64_t rows = graph_rows(d->pass, d->op), c = (int64_t)d->o->channels;
    const float *const w = tensor_of(d, 0), *const b = tensor_of(d, 1), epsilon = (float)GRAPH_EPSILON;
    if (!d->pass->evaluates)
        d->k->images->batch_norm(d->k, d->y, graph_notes(d->l, d->op), d->x, w, b, rows, c, epsilon);
    else if (d->y)
        d->k->images->batch_norm_apply(d->k, d->y, d->x, tensor_of(d, 2), tensor_of(d, 3), w, b, rows, c, epsilon);
}

static void pool(const struct operands *d)
{
    const struct kernel_pool shape = graph_pool(d->pass, d->op);
    int32_t *const index = (int32_t *)(void *)graph_notes(d->l, d->op);
    d->k->images->max_pool(d->k, d->y, index, d->x, &shape);
}

static void mean(const struct operands *d)
{
    const struct kernel_pool shape = graph_pool(d->pass, d->op);
    d->k->images->mean_pool(d->k, d->y, d->x, &shape);
}

static void concat(const struct operands *d)
{
    const int64_t rows = graph_rows(d->pass, d->op), all = (int64_t)d->o->channels;
    int64_t at = 0;
    for (uint32_t i = 0; i < 2; i++) {
        const int64_t c = (int64_t)d->pass->graph->ops[d->o->from[i]].channels;
        d->k->images->move_rows(d->k, d->y + at, all, graph_value(d->l, d->o->from[i]), c, rows, c, false);
        at += c;
    }
}

static void loss(const struct operands *d)
{
    const struct transformer_unit *const unit = d->pass->unit;
    const int64_t rows = graph_rows(d->pass, d->op), classes = (int64_t)d->o->channels;
    const struct kernel_loss_rows part = {.count = rows, .part = unit->microbatch, .parts = unit->microbatches};
    graph_copy(d->pass, d->y, d->x, rows * classes);
    d->k->loss_labels(d->k, unit->arguments->loss, d->y, graph_labels(d->pass), 1, rows, 1, classes, part);
}

static void compute(const struct operands *d)
{
    const int64_t count = graph_rows(d->pass, d->op) * (int64_t)d->o->channels;
    if (d->o->kind == GRAPH_BATCH_NORM) norm(d);
    else if (d->o->kind == GRAPH_MAX_POOL) pool(d);
    if (!d->y) return;
    switch ((enum graph_kind)d->o->kind) {
    case GRAPH_CONVOLUTION: convolve(d); break;
    case GRAPH_UPSAMPLE: upsample(d); break;
    case GRAPH_LINEAR: multiply(d); break;
    case GRAPH_RELU: d->k->relu_forward(d->k, d->y, d->x, count); break;
    case GRAPH_MEAN_POOL: mean(d); break;
    case GRAPH_ADD: d->k->residual(d->k, d->y, d->x, graph_value(d->l, d->o->from[1]), count); break;
    case GRAPH_CONCAT: concat(d); break;
    case GRAPH_LOSS: loss(d); break;
    default: break;
    }
}

/* Copies to the cut after the layer what crosses it from earlier layers, and keeps what the layer's backward pass reads
 * of its outputs. */
static void hand_on(const struct graph_layer *l)
{
    const struct graph_pass *const pass = l->pass;
    const struct network_graph *const graph = pass->graph;
    float *const crossing = graph_crossing(pass, l->layer);
    if (!crossing) return;
    for (uint32_t i = 1; i < graph->begins[l->layer]; i++)
        if (graph->ops[i].last_layer > l->layer)
            graph_copy(pass, crossing + graph_crossing_offset(graph, l->layer, i, pass->samples), graph_value(l, i),
                       (int64_t)graph_elements(graph, i, pass->samples));
    if (l->layer + 1 < pass->end || pass->evaluates) return;
    for (uint32_t i = graph->begins[l->layer]; i < graph->begins[l->layer + 1]; i++)
        if (graph->ops[i].last_layer > l->layer && graph->ops[i].own_readers > 0)
            graph_copy(pass, graph_own_copy(l, i), graph_result(l, i),
                       (int64_t)graph_elements(graph, i, pass->samples));
}

void graph_layer_forward(const struct graph_pass *pass, uint64_t layer)
{
    const struct graph_layer l = graph_layer_of(pass, layer);
    for (uint32_t i = pass->graph->begins[layer]; i < pass->graph->begins[layer + 1]; i++) {
        const struct operands d = {.l = &l,
                                   .pass = pass,
                                   .k = pass->unit->kernels,
                                   .o = &pass->graph->ops[i],
                                   .op = i,
                                   .tensor = graph_first_tensor(pass->graph, i),
                                   .y = graph_result(&l, i),
                                   .x = graph_value(&l, pass->graph->ops[i].from[0])};
        compute(&d);
    }
    hand_on(&l);
}
