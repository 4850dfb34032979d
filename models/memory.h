/*
 * Where each tensor lies: the tables that the executor allocates by and the planner counts by.
 *
 * A *state blob* is one contiguous piece per shard: all parameters, then (AdamW) all first moments,
 * then all second moments, each part with the same layout. Tensors start on 64-byte boundaries,
 * except in an embedding layer, whose tables lie row behind row without padding so that any range
 * of rows is a shard of its own (a slice) and updating slices one after the other is the same
 * arithmetic as updating the whole.
 *
 *     [ parameters | first moments | second moments ]
 *       ^ t0 t1 t2 ...                                 part_bytes each
 */
#ifndef SPILLWAY_MODELS_MEMORY_H
#define SPILLWAY_MODELS_MEMORY_H

#include <stdint.h>

#include "base/arena.h"
#include "models/network.h"

enum { MEMORY_ALIGNMENT = 64 };

struct memory_entry {
    char name[96];
    uint64_t layer;
    uint64_t offset_bytes;
    uint64_t bytes;
};

struct memory_table {
    struct memory_entry *entries;
    uint32_t count;
    uint64_t bytes; /* end of the last entry, aligned */
};

/* Parameters of layers [first, first + count): entries are the tensors in order. fp32. */
MUST_CHECK enum status memory_parameters(const struct network *network, uint64_t first_layer,
                                         uint64_t layer_count, struct arena *arena,
                                         struct memory_table *out, struct error *err);

/* Bytes of one part of the state blob, and of the whole, without building the table. */
uint64_t memory_parameter_bytes(const struct network *network, uint64_t first_layer,
                                uint64_t layer_count);
uint64_t memory_state_bytes(const struct network *network, uint64_t first_layer,
                            uint64_t layer_count, uint32_t optimizer);

/*
 * Activations that a forward pass over the layers keeps for its backward pass, the input of each
 * layer included (the first layer's input is a buffer of its own: the boundary). Entry names are
 * "L.what" with L the layer's number, for gpt2 blocks: norm1, norm1_stats, qkv, attention,
 * attention_stats, middle (residual stream after attention), norm2, norm2_stats, fc, gelu, output;
 * head: normf, normf_stats.
 */
MUST_CHECK enum status memory_activations(const struct network *network, uint64_t first_layer,
                                          uint64_t layer_count, uint64_t microbatch,
                                          uint64_t sequence, struct arena *arena,
                                          struct memory_table *out, struct error *err);
uint64_t memory_activation_bytes(const struct network *network, uint64_t first_layer,
                                 uint64_t layer_count, uint64_t microbatch, uint64_t sequence);

/*
 * Scratch that a compute operation needs beside state, boundaries and kept activations. A forward
 * pass that keeps nothing needs one layer's activations of scratch and two boundary-sized buffers;
 * a backward pass: the gradients of the largest layer (each layer is updated as soon as its
 * gradients are complete), gradients of the activations in flight, and for the head the logits.
 * Entry names: gradients, d_stream, d_stream2, d_qkv, d_wide, scratch, logits, keep (one layer's
 * activations in a forward that keeps nothing).
 */
enum unit_pass { UNIT_FORWARD, UNIT_BACKWARD, UNIT_LOSS };
MUST_CHECK enum status memory_workspace(const struct network *network, uint64_t first_layer,
                                        uint64_t layer_count, enum unit_pass pass, bool keep,
                                        uint64_t microbatch, uint64_t sequence,
                                        struct arena *arena, struct memory_table *out,
                                        struct error *err);
uint64_t memory_workspace_bytes(const struct network *network, uint64_t first_layer,
                                uint64_t layer_count, enum unit_pass pass, bool keep,
                                uint64_t microbatch, uint64_t sequence);

/* Bytes passed from layer to layer for one microbatch: R * C * 4 (a profile says it itself). */
uint64_t memory_boundary_bytes(const struct network *network, uint64_t layer, uint64_t microbatch,
                               uint64_t sequence);

/* NULL when there is no such entry. */
const struct memory_entry *memory_find(const struct memory_table *table, uint64_t layer,
                                       const char *name);

#endif
