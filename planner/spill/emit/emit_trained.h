/* The trained data of a backward pass: a state, or parameters whose gradient the host's processor applies. */
#ifndef SPILLWAY_PLANNER_SPILL_EMIT_EMIT_TRAINED_H
#define SPILLWAY_PLANNER_SPILL_EMIT_EMIT_TRAINED_H

#include "planner/spill/emit/emit_unit.h"

/* Fetch the trained data (state or parameters) and return its buffer; use it, with a new gradient for parameters; bring
 * back state or gradient, and have it applied. */
uint32_t emit_fetch_trained(struct emit_context *e, const struct emit_shard_view *v);
void emit_use_trained(struct emit_context *e, const struct emit_shard_view *v, uint32_t trained);
void emit_send_trained(struct emit_context *e, const struct emit_shard_view *v, uint32_t trained);

/* Returns the shard's gradient on the host; for a job that does not clip, one of a few buffers in turn. */
uint32_t emit_host_gradient(struct emit_context *e, const struct emit_shard_view *v);

/* Adds the gradient on the host to the norm, for a job that clips. */
void emit_norm(struct emit_context *e, const struct emit_shard_view *v);

/* Applies the gradient to the state in host memory, or to the staged copy of a stored state. */
void emit_update(struct emit_context *e, const struct emit_shard_view *v);

#endif
