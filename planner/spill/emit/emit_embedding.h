/* Passes of an embedding without a weight buffer: in slices, or on the host's processor. */
#ifndef SPILLWAY_PLANNER_SPILL_EMIT_EMIT_EMBEDDING_H
#define SPILLWAY_PLANNER_SPILL_EMIT_EMIT_EMBEDDING_H

#include "planner/spill/emit/emit_unit.h"

/* Emits a sliced forward pass, which leaves the boundary in its edge; the caller sends it on. */
void emit_embedding_forward_sliced(struct emit_context *e, const struct emit_shard_view *v);
void emit_embedding_backward_sliced(struct emit_context *e, const struct emit_shard_view *v);

/* Emit passes on the host's processor, whose data are all in host memory. */
void emit_embedding_forward_cpu(struct emit_context *e, const struct emit_shard_view *v);
void emit_embedding_backward_cpu(struct emit_context *e, const struct emit_shard_view *v);

#endif
