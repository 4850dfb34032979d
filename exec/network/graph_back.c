/*
 * Operations backward. A product's operand gets its gradient before the weight makes its step. Where an operand has a
 * gradient already, a product makes its own in scratch and adds it.
 */
#include "exec/network/graph_layer.h"

/* Returns the gradients of all results that cross the cut after a layer; NULL: there is no cut. */
static float *gradients_after(const struct graph_pass *pass, uint64_t layer)
{
    const struct unit_arguments *const a = pass->unit->arguments;
    float *given;
    *(const void **)&given = a->gradient_in; /* is only read */
    if (layer + 1 == pass->end) return given;
    return layer % 2 ? pass->unit->d_stream2 : pass->unit->d_stream;
}

static float *gradients_before(const struct graph_pass *pass, uint64_t layer)
{
    return layer == pass->first ? pass->unit->arguments->gradient_out : gradients_after(pass, layer - 1);
}

/* An operation's step back. */
struct back {
    const struct graph_layer *l;
    const struct graph_pass *pass;
    const struct kernels *k;
    const struct graph_op *o;
    const struct graph_back *step;
    uint32_t tensor;   /* the operation's first */
    const float *dy;
};

static float *place_at(const struct graph_layer *l, const struct graph_place *place)
{
    const struct graph_pass *const pass = l->pass;
    switch ((enum graph_place_kind)place->kind) {
    case GRAPH_PLACE_LOGITS: return pass->unit->logits + place->offset;
    case GRAPH_PLACE_SCRATCH: return pass->unit->scratch + place->offset;
    case GRAPH_PLACE_GIVEN:
        return gradients_after(pass, l->layer) +
               graph_crossing_offset(pass->graph, l->layer, place->op, pass->samples);
    case GRAPH_PLACE_EARLIER:
        return gradients_before(pass, l->layer) +
               graph_crossing_offset(pass->graph, l->layer - 1, place->op, pass->samples);
    default: return NULL;
    }
}

/* Returns where an operand's gradient goes; NULL: nowhere. */
static float *operand_at(const struct back *d, uint32_t i)
{
    return place_at(d->l, &d->step->in[i].to);
}

static int64_t operand_numbers(const struct back *d, uint32_t i)
{
    return (int64_t)graph_elements(d->pass->graph, d->o->from[i], d->pass->samples);
}

static struct transformer_tensor tensor_of(const struct back *d, uint32_t index)
{
    return transformer_tensor(d->pass->unit, d->l->layer, d->tensor + index);
}

static const float *value_of(const struct back *d, uint32_t i)
{
    return graph_value(d->l, d->o->from[i]);
}

/* Returns where a gradient that is made in one piece goes, and adds it to the operand's. */
static float *room_of(const struct back *d)
{
    return d->step->in[0].adds ? d->pass->unit->scratch + d->step->scratch : operand_at(d, 0);
}

static void add_room(const struct back *d)
{
    float *const to = operand_at(d, 0);
    if (d->step->in[0].adds) d->k->residual(d->k, to, to, room_of(d), operand_numbers(d, 0));
}

static void step(const struct back *d, const struct transformer_tensor *tensor, bool decays)
{
    transformer_step(d->pass->unit, tensor, decays);
}

static void convolve(const struct back *d)
{
    const struct kernels_images *const images = d->k->images;
    const struct kernel_convolution shape = graph_convolution(d->pass, d->step->op);
    const bool up = d->o->kind == GRAPH_UPSAMPLE;
    const struct transformer_tensor w = tensor_of(d, 0);
    if (operand_at(d, 0) && up) images->convolve(d->k, room_of(d), d->dy, w.weights.numbers, NULL, &shape);
    else if (operand_at(d, 0)) images->convolve_input(d->k, room_of(d), d->dy, w.weights.numbers, &shape);
    if (operand_at(d, 0)) add_room(d);
    const float *const x = value_of(d, 0);
    images->convolve_weight(d->k, w.g, up ? x : d->dy, up ? d->dy : x, &shape);
    step(d, &w, true);
    if (!d->o->bias) return;
    const struct transformer_tensor bias = tensor_of(d, 1);
    images->bias_backward(d->k, bias.g, d->dy, graph_rows(d->pass, d->step->op), (int64_t)d->o->channels);
    step(d, &bias, false);
}

/* Weights have an image channel by channel. */
static void multiply(const struct back *d)
{
    const struct kernels *const k = d->k;
    const struct graph_op *const in = &d->pass->graph->ops[d->o->from[0]];
    const int64_t b = (int64_t)d->pass->samples, area = (int64_t)(in->side * in->side), c = (int64_t)in->channels;
    const int64_t out = (int64_t)d->o->channels;
    const struct transformer_tensor w = tensor_of(d, 0), bias = d->o->bias ? tensor_of(d, 1) : w;
    float *const to = operand_at(d, 0), *const turned = d->pass->unit->scratch + d->step->scratch;
    float *const d_turned = d->pass->unit->scratch + d->step->turned;
    const float *x = value_of(d, 0);
    if (to && area == 1)
        k->linear_input(k, to, d->dy, w.weights.numbers, b, out, c, false, d->step->in[0].adds);
    else if (to)
        k->linear_input(k, d_turned, d->dy, w.weights.numbers, b, out, area * c, false, false);
    if (to && area > 1) k->images->transpose(k, to, d_turned, b, c, area, d->step->in[0].adds);
    if (area > 1) k->images->transpose(k, turned, x, b, area, c, false);
    k->linear_weight(k, w.g, d->o->bias ? bias.g : NULL, d->dy, area > 1 ? turned : x, b, out, area * c, false, 0);
    step(d, &w, true);
    if (d->o->bias) step(d, &bias, false);
}

static void norm(const struct back *d)
{
    const struct kernels_images *const images = d->k->images;
    const int64_t rows = graph_rows(d->pass, d->step->op), c = (int64_t)d->o->channels;
    const float *const stats = graph_notes(d->l, d->step->op);
    struct transformer_tensor tensors[GRAPH_TENSORS_MAX]; /* weight, bias, mean, variance */
    for (uint32_t i = 0; i < GRAPH_TENSORS_MAX; i++) tensors[i] = tensor_of(d, i);
    tensors[2].running = tensors[3].running = true;
    images->batch_norm_backward(d->k, operand_at(d, 0), tensors[0].g, tensors[1].g, d->dy, value_of(d, 0), stats,
                                tensors[0].weights.numbers, rows, c, d->step->in[0].adds);
    images->batch_norm_means(d->k, tensors[2].g, tensors[3].g, stats, rows, c, (float)GRAPH_EPSILON);
    for (uint32_t i = 0; i < GRAPH_TENSORS_MAX; i++) step(d, &tensors[i], false);
}

/* Passes the gradient on as it is. */
static void pass_on(const struct back *d, uint32_t i)
{
    float *const to = operand_at(d, i);
    if (!to || d->step->in[i].shared) return;
    if (d->step->in[i].adds) d->k->residual(d->k, to, to, d->dy, operand_numbers(d, i));
    else graph_copy(d->pass, to, d->dy, operand_numbers(d, i));
}

static void mask(const struct back *d)
{
    if (!d->step->masks) {
        pass_on(d, 0);
        return;
    }
    d->k->relu_backward(d->k, room_of(d), d->dy, graph_result(d->l, d->step->op), operand_numbers(d, 0));
    add_room(d);
}

static void concat(const struct back *d)
{
    const int64_t rows = graph_rows(d->pass, d->step->op), all = (int64_t)d->o->channels;
    int64_t at = 0;
    for (uint32_t i = 0; i < 2; i++) {
        const int64_t c = (int64_t)d->pass->graph->ops[d->o->from[i]].channels;
        float *const to = operand_at(d, i);
        if (to) d->k->images->move_rows(d->k, to, c, d->dy + at, all, rows, c, d->step->in[i].adds);
        at += c;
    }
}

static void pool(const struct back *d)
{
    const struct kernel_pool shape = graph_pool(d->pass, d->step->op);
    const int32_t *const index = (const int32_t *)(const void *)graph_notes(d->l, d->step->op);
    float *const to = operand_at(d, 0);
    if (!to) return;
    if (d->o->kind == GRAPH_MAX_POOL)
        d->k->images->max_pool_backward(d->k, to, d->dy, index, &shape, d->step->in[0].adds);
    else
        d->k->images->mean_pool_backward(d->k, to, d->dy, &shape, d->step->in[0].adds);
}

static void go_back(const struct back *d)
{
    for (uint32_t i = 0; i < graph_op_reads(d->o->kind); i++)
        if (d->step->in[i].from.kind != GRAPH_PLACE_NONE)
            graph_copy(d->pass, operand_at(d, i), place_at(d->l, &d->step->in[i].from), operand_numbers(d, i));
    switch ((enum graph_kind)d->o->kind) {
    case GRAPH_CONVOLUTION:
    case GRAPH_UPSAMPLE: convolve(d); break;
    case GRAPH_LINEAR: multiply(d); break;
    case GRAPH_BATCH_NORM: norm(d); break;
    case GRAPH_RELU: mask(d); break;
    case GRAPH_MAX_POOL:
    case GRAPH_MEAN_POOL: pool(d); break;
    case GRAPH_CONCAT: concat(d); break;
    case GRAPH_ADD:
    case GRAPH_LOSS:
        for (uint32_t i = 0; i < graph_op_reads(d->o->kind); i++) pass_on(d, i);
        break;
    default: break;
    }
}

/* Takes over the gradients of earlier layers' results that cross the layer. */
static void begin_earlier(const struct graph_layer *l)
{
    const struct graph_pass *const pass = l->pass;
    const struct network_graph *const graph = pass->graph;
    for (uint32_t i = 1; i < graph->begins[l->layer]; i++)
        if (graph->ops[i].last_layer > l->layer)
            graph_copy(pass, place_at(l, &(struct graph_place){.kind = GRAPH_PLACE_EARLIER, .op = i}),
                       place_at(l, &(struct graph_place){.kind = GRAPH_PLACE_GIVEN, .op = i}),
                       (int64_t)graph_elements(graph, i, pass->samples));
}

/* Masks the gradients of earlier layers' relus that the layer has added to. */
static void mask_earlier(const struct graph_layer *l)
{
    const struct graph_pass *const pass = l->pass;
    const struct network_graph *const graph = pass->graph;
    const struct kernels *const k = pass->unit->kernels;
    for (uint32_t i = 1; i < graph->begins[l->layer]; i++) {
        bool reads = false;
        if (graph->ops[i].kind != GRAPH_RELU || graph->ops[i].last_layer < l->layer) continue;
        for (uint32_t j = graph->begins[l->layer]; j < graph->begins[l->layer + 1]; j++)
            for (uint32_t r = 0; r < graph_op_reads(graph->ops[j].kind); r++)
                reads = reads || graph->ops[j].from[r] == i;
        if (!reads) continue;
        float *const gradient = place_at(l, &(struct graph_place){.kind = GRAPH_PLACE_EARLIER, .op = i});
        k->relu_backward(k, gradient, gradient, graph_value(l, i), (int64_t)graph_elements(graph, i, pass->samples));
    }
}

void graph_layer_back(const struct graph_pass *pass, uint64_t layer)
{
    const struct graph_layer l = graph_layer_of(pass, layer);
    struct graph_places_back steps;
    graph_places_back(pass->graph, layer, pass->samples, &steps);
    begin_earlier(&l);
    for (uint32_t i = 0; i < steps.count; i++) {
        const struct graph_back *const one = &steps.steps[i];
        const struct back d = {.l = &l,
                               .pass = pass,
                               .k = pass->unit->kernels,
                               .o = &pass->graph->ops[one->op],
                               .step = one,
                               .tensor = graph_first_tensor(pass->graph, one->op),
                               .dy = place_at(&l, &one->gradient)};
        go_back(&d);
    }
    mask_earlier(&l);
}
