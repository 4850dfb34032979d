/*
 * Parts of a pass (transformer_pass.c): where its tensors are, runs of blocks, and the halves of a backward pass.
 */
#ifndef SPILLWAY_EXEC_NETWORK_TRANSFORMER_PASS_H
#define SPILLWAY_EXEC_NETWORK_TRANSFORMER_PASS_H

#include "exec/network/transformer.h"

/* Returns NULL if this pass has no such piece. */
void *pass_piece(const struct unit_arguments *a, const struct memory_table *workspace,
                 const char *name);

/* Returns true for a half of a backward pass. */
bool pass_is_half(const struct unit_arguments *a);

/* Returns true if the shard ends with the network's head. */
bool pass_has_head(const struct unit_arguments *a);

/* Returns the table of the pass's workspace. */
const struct memory_table *pass_workspace(const struct unit_arguments *a);

/* Returns true if only inputs of layers are held. */
bool pass_holds_inputs(const struct unit_arguments *a);

/* Returns the unit: sizes, and the pieces of its workspace. */
struct transformer_unit pass_unit(const struct transformer *transformer, const struct kernels *kernels,
                                  const struct unit_arguments *a);

/* Finds a layer's kept tensors in `all`, the kept tensors of all layers, laid out as in the table. Returns the layer's
 * output among these; NULL: it is the shard's last layer, or the head. */
kernel_number *pass_kept(const struct transformer_unit *unit, kernel_number *all, uint64_t layer,
                         kernel_number *out[TRANSFORMER_KEPT_MAX]);

/* Finds a layer's kept tensors in `alone`, only this layer's, without its output. */
void pass_kept_alone(const struct transformer_unit *unit, kernel_number *alone, uint64_t layer,
                     kernel_number *out[TRANSFORMER_KEPT_MAX]);

/* Finds a layer's input in `inputs`, of all layers except the first. */
kernel_number *pass_held_input(const struct transformer_unit *unit, kernel_number *inputs, uint64_t layer);

/* Computes the head as a whole (struct transformer). */
void pass_head(const struct transformer_unit *unit, uint64_t layer, kernel_number *const *kept,
               const kernel_number *in, kernel_number *d_in);

/* Returns the first layer that goes back: below it all is frozen. */
uint64_t pass_lowest_layer(const struct unit_arguments *a);

/* Passes blocks forward and keeps all activations. The last output goes to `out`; NULL: nowhere. */
void pass_blocks_forward(const struct transformer_unit *unit, uint64_t end, kernel_number *all, kernel_number *out);

/* Returns a layer's input: the boundary, or the previous layer's kept output. */
const kernel_number *pass_layer_input(const struct transformer_unit *unit, kernel_number *all, uint64_t layer);

/* Computes a BACKWARD_INPUT of the shard's blocks, which end at layer `end`. */
void pass_input_half(const struct transformer_unit *unit, uint64_t end);

/* Computes the BACKWARD_WEIGHT. */
void pass_weight_half(const struct transformer_unit *unit, uint64_t end);

#endif
