/*
 * Where the results of a layer of operations are while a pass goes over it, and the gradients of results while its
 * backward pass goes back: from these the planner counts scratch memory, and the executor computes.
 *
 * Results. What later layers read is an output; what the backward pass reads is kept; the last operation's input, if
 * nothing else reads it, is where the logits are. All others are scratch from the operation that makes them to the last
 * one that reads them. An operation that a relu or a sum (as its first operand) is the only reader of shares that
 * reader's place, which works in place:
 *
 *     convolution -> norm -> relu            norm and relu share one place, kept for the next convolution
 *     convolution -> norm -> add -> relu     norm, add and relu share the output's
 *     convolution -> norm ---^               the shortcut's norm is scratch
 *
 * Gradients. A result's gradient is the sum of one for each reader. The first is written, later ones are added in the
 * order of the operations, from the last back. The gradient of an output is given; that of an earlier layer's result
 * goes where the gradients before the layer are; others are scratch.
 *
 * All offsets are in words of four bytes. A sample's scratch is laid out; that of several samples is as many times as
 * large throughout.
 */
#ifndef SPILLWAY_MODELS_NETWORK_GRAPH_PLACES_H
#define SPILLWAY_MODELS_NETWORK_GRAPH_PLACES_H

#include "models/network/network_graph.h"

enum graph_place_kind {
    GRAPH_PLACE_NONE,
    GRAPH_PLACE_KEPT,    /* among what the layer keeps for itself */
    GRAPH_PLACE_OUTPUT,  /* among its outputs */
    GRAPH_PLACE_LOGITS,
    GRAPH_PLACE_SCRATCH,
    GRAPH_PLACE_GIVEN,   /* a gradient that later layers made, of this operation; only read */
    GRAPH_PLACE_EARLIER  /* a gradient of an earlier layer's result, of this operation */
};

struct graph_place {
    uint32_t kind; /* enum graph_place_kind */
    uint32_t op;   /* OUTPUT: the output, whose place others may share; GIVEN, EARLIER */
    uint64_t offset;
};

/* A layer's forward pass, by the number of an operation in the layer. */
struct graph_places {
    struct graph_place results[GRAPH_LAYER_OPS_MAX];
    uint64_t notes[GRAPH_LAYER_OPS_MAX];  /* what a batch norm or a max pooling keeps of its own, among what is kept */
    uint64_t copies[GRAPH_LAYER_OPS_MAX]; /* of outputs that the layer itself reads, among these: struct graph_kept */
    uint64_t turned[GRAPH_LAYER_OPS_MAX]; /* scratch in which a linear layer has its image channel by channel */
};

void graph_places_forward(const struct network_graph *graph, uint64_t layer, uint64_t samples,
                          struct graph_places *out);

/* A gradient of an operation's operand. */
struct graph_gradient {
    struct graph_place to;   /* NONE: nothing is computed */
    struct graph_place from; /* what is copied there first; else NONE */
    bool adds;               /* to what is there */
    bool shared;             /* the place is the result's own gradient, which is the operand's too */
};

/* An operation's backward pass. */
struct graph_back {
    uint32_t op;
    struct graph_place gradient;         /* of its result */
    struct graph_gradient in[GRAPH_FROM_MAX];
    uint64_t scratch;                    /* room for a product that is added, or of an image channel by channel ... */
    uint64_t turned;                     /* ... and for the gradient of one */
    bool masks;                          /* a relu whose gradient is not masked yet */
};

/* A layer's backward pass, from the last operation back. */
struct graph_places_back {
    struct graph_back steps[GRAPH_LAYER_OPS_MAX];
    uint32_t count;
};

void graph_places_back(const struct network_graph *graph, uint64_t layer, uint64_t samples,
                       struct graph_places_back *out);

/* Counts the words of a sample's scratch: of a forward pass, and of a backward pass. */
void graph_places_count(const struct network_graph *graph, uint64_t layer, uint64_t words[2]);

/* Returns where a result begins among a layer's outputs, and among all results that cross the cut after a layer. */
uint64_t graph_output_offset(const struct network_graph *graph, uint32_t op, uint64_t samples);
uint64_t graph_crossing_offset(const struct network_graph *graph, uint64_t layer, uint32_t op, uint64_t samples);

#endif
