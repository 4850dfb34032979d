/* Where the results of operations are. */
#include "exec/network/graph_value.h"

#include <assert.h>

struct graph_layer graph_layer_of(const struct graph_pass *pass, uint64_t layer)
{
    struct graph_layer l = {.pass = pass, .layer = layer};
    graph_places_forward(pass->graph, layer, pass->samples, &l.places);
    return l;
}

/* A layer's entries in the table of activations: what it keeps for itself, then its outputs or a copy of some. */
enum kept_entry { KEPT_OWN, KEPT_OUTPUT };

static float *kept_at(const struct graph_pass *pass, uint64_t layer, enum kept_entry which)
{
    const struct transformer_entries kept =
        transformer_layer_entries(&pass->unit->arguments->tables->activations, layer);
    assert(kept.count == 2);
    if (pass->hold == GRAPH_HOLDS_ALL) return transformer_at(pass->all, kept.first[which].offset_bytes);
    return transformer_at(pass->alone, kept.first[which].offset_bytes - kept.first[0].offset_bytes);
}

static bool is_last(const struct graph_pass *pass, uint64_t layer)
{
    return layer + 1 == pass->end;
}

float *graph_crossing(const struct graph_pass *pass, uint64_t layer)
{
    const struct transformer_unit *const unit = pass->unit;
    if (is_last(pass, layer)) return unit->arguments->boundary_out;
    if (pass->hold != GRAPH_HOLDS_NOTHING) return NULL;
    return layer % 2 ? unit->d_stream2 : unit->d_stream;
}

/* Returns an output among all results that cross a cut. */
static float *in_crossing(const struct graph_pass *pass, float *crossing, uint64_t layer, uint32_t op)
{
    return crossing ? crossing + graph_crossing_offset(pass->graph, layer, op, pass->samples) : NULL;
}

/* Returns where a layer of the pass leaves an output. */
static float *output_at(const struct graph_pass *pass, uint32_t op)
{
    const uint64_t layer = pass->graph->ops[op].layer;
    const uint64_t offset = graph_output_offset(pass->graph, op, pass->samples);
    if (is_last(pass, layer) || pass->hold == GRAPH_HOLDS_NOTHING)
        return in_crossing(pass, graph_crossing(pass, layer), layer, op);
    if (pass->hold == GRAPH_HOLDS_ALL) return kept_at(pass, layer, KEPT_OUTPUT) + offset;
    return (float *)pass_held_input(pass->unit, pass->inputs, layer + 1) + offset;
}

float *graph_result(const struct graph_layer *l, uint32_t op)
{
    const struct graph_pass *const pass = l->pass;
    const uint32_t at = op - pass->graph->begins[l->layer];
    const struct graph_place *const place = &l->places.results[at];
    switch ((enum graph_place_kind)place->kind) {
    case GRAPH_PLACE_KEPT: return kept_at(pass, l->layer, KEPT_OWN) + place->offset;
    case GRAPH_PLACE_LOGITS: return pass->unit->logits + place->offset;
    case GRAPH_PLACE_SCRATCH: return pass->unit->scratch + place->offset;
    case GRAPH_PLACE_OUTPUT: break;
    default: assert(!"the place of a result");
    }
    float *const output = output_at(pass, place->op);
    if (output || pass->graph->ops[place->op].own_readers == 0) return output;
    return graph_own_copy(l, place->op);
}

float *graph_own_copy(const struct graph_layer *l, uint32_t op)
{
    return kept_at(l->pass, l->layer, KEPT_OUTPUT) + l->places.copies[op - l->pass->graph->begins[l->layer]];
}

float *graph_notes(const struct graph_layer *l, uint32_t op)
{
    return kept_at(l->pass, l->layer, KEPT_OWN) + l->places.notes[op - l->pass->graph->begins[l->layer]];
}

const float *graph_value(const struct graph_layer *l, uint32_t op)
{
    const struct graph_pass *const pass = l->pass;
    const uint64_t layer = pass->graph->ops[op].layer;
    if (op == 0) return graph_pixels(pass);
    if (layer == l->layer) return graph_result(l, op);
    if (pass->hold == GRAPH_HOLDS_NOTHING && l->layer > pass->first)
        return in_crossing(pass, graph_crossing(pass, l->layer - 1), l->layer - 1, op);
    if (layer >= pass->first) return output_at(pass, op);
    return in_crossing(pass, pass->unit->arguments->boundary_in, pass->first - 1, op);
}

/* Labels of all microbatches in the batch come first, then all pixels. */
const int32_t *graph_labels(const struct graph_pass *pass)
{
    return pass->unit->arguments->batch;
}

const float *graph_pixels(const struct graph_pass *pass)
{
    const struct transformer_unit *const unit = pass->unit;
    const int64_t image = (int64_t)graph_elements(pass->graph, 0, 1);
    const int64_t labels = (int64_t)job_image_labels(unit->arguments->job);
    const int64_t left = (int64_t)(unit->held - unit->place) * unit->b; /* of this microbatch and later ones */
    return (const float *)(const void *)(unit->arguments->batch + left * labels) +
           (int64_t)unit->place * unit->b * image;
}

uint32_t graph_first_tensor(const struct network_graph *graph, uint32_t op)
{
    struct tensor_spec specs[GRAPH_TENSORS_MAX];
    uint32_t count = 0;
    for (uint32_t i = graph->begins[graph->ops[op].layer]; i < op; i++)
        count += graph_op_tensors(graph, i, false, specs);
    return count;
}

struct kernel_convolution graph_convolution(const struct graph_pass *pass, uint32_t op)
{
    const struct graph_op *const o = &pass->graph->ops[op], *const in = &pass->graph->ops[o->from[0]];
    const bool up = o->kind == GRAPH_UPSAMPLE;
    const struct graph_op *const x = up ? o : in, *const y = up ? in : o;
    return (struct kernel_convolution){.b = (int64_t)pass->samples,
                                       .in = (int64_t)x->channels,
                                       .out = (int64_t)y->channels,
                                       .side_in = (int64_t)x->side,
                                       .side_out = (int64_t)y->side,
                                       .kernel = o->kernel,
                                       .stride = o->stride,
                                       .padding = o->padding,
                                       .groups = o->groups};
}

struct kernel_pool graph_pool(const struct graph_pass *pass, uint32_t op)
{
    const struct graph_op *const o = &pass->graph->ops[op], *const in = &pass->graph->ops[o->from[0]];
    return (struct kernel_pool){.b = (int64_t)pass->samples,
                                .c = (int64_t)o->channels,
                                .side_in = (int64_t)in->side,
                                .side_out = (int64_t)o->side,
                                .kernel = o->kernel,
                                .stride = o->stride,
                                .padding = o->padding};
}

void graph_copy(const struct graph_pass *pass, float *to, const float *from, int64_t count)
{
    const struct kernels *const k = pass->unit->kernels;
    if (to != from && count > 0) k->images->move_rows(k, to, count, from, count, 1, count, false);
}
