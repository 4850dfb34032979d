/*
 * A pass over layers of operations (models/network/network_graph.h): where results and gradients are.
 *
 * Which results of the layers before stay depends on the pass:
 *
 *     GRAPH_HOLDS_ALL      each layer's kept results and its outputs are in one table (memory_activations())
 *     GRAPH_HOLDS_INPUTS   each layer's outputs are in memory_inputs(); what it keeps for itself, the next layer's
 *                          replaces
 *     GRAPH_HOLDS_NOTHING  all results that cross the cut after a layer are together, and two cuts alternate
 *
 * The last layer's outputs are in the boundary, with those of earlier layers that pass through. A backward pass has no
 * boundary to write: it computes of the last layer only what goes back.
 */
#ifndef SPILLWAY_EXEC_NETWORK_GRAPH_VALUE_H
#define SPILLWAY_EXEC_NETWORK_GRAPH_VALUE_H

#include "exec/network/transformer_pass.h"
#include "models/network/graph_places.h"

enum graph_hold { GRAPH_HOLDS_ALL, GRAPH_HOLDS_INPUTS, GRAPH_HOLDS_NOTHING };

struct graph_pass {
    const struct transformer_unit *unit;
    const struct network_graph *graph;
    uint64_t first, end; /* layers */
    uint64_t samples;
    enum graph_hold hold;
    void *all;           /* GRAPH_HOLDS_ALL: what is kept of all layers ... */
    void *alone, *inputs; /* ... else of one, and with GRAPH_HOLDS_INPUTS the inputs of all but the first */
    bool evaluates;
};

/* A layer in the pass. */
struct graph_layer {
    const struct graph_pass *pass;
    uint64_t layer;
    struct graph_places places;
};

struct graph_layer graph_layer_of(const struct graph_pass *pass, uint64_t layer);

/* Returns a result of the layer; NULL: an output that nobody takes. */
float *graph_result(const struct graph_layer *l, uint32_t op);

/* Returns the copy of an output of the last layer that the layer itself reads. */
float *graph_own_copy(const struct graph_layer *l, uint32_t op);

/* Returns what an operation of the layer keeps of its own. */
float *graph_notes(const struct graph_layer *l, uint32_t op);

/* Returns a value that an operation of the layer reads. */
const float *graph_value(const struct graph_layer *l, uint32_t op);

/* Returns where all results that cross the cut after the layer are; NULL: they are not together, or nowhere. */
float *graph_crossing(const struct graph_pass *pass, uint64_t layer);

/* Returns a sample's labels and the pixels of the microbatch. */
const int32_t *graph_labels(const struct graph_pass *pass);
const float *graph_pixels(const struct graph_pass *pass);

/* Returns the number of an operation's first tensor in its layer. */
uint32_t graph_first_tensor(const struct network_graph *graph, uint32_t op);

/* Returns a convolution, or the one that an upsampling reverses; a pooling. */
struct kernel_convolution graph_convolution(const struct graph_pass *pass, uint32_t op);
struct kernel_pool graph_pool(const struct graph_pass *pass, uint32_t op);

/* Pixels of a result, of all samples. */
static inline int64_t graph_rows(const struct graph_pass *pass, uint32_t op)
{
    return (int64_t)(pass->samples * pass->graph->ops[op].side * pass->graph->ops[op].side);
}

/* Copies numbers. */
void graph_copy(const struct graph_pass *pass, float *to, const float *from, int64_t count);

#endif
