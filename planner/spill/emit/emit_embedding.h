/* Passes of an embedding that no weight buffer holds: in slices, or on the host's processor. */
#ifndef SPILLWAY_PLANNER_EMIT_EMBEDDING_H
#define SPILLWAY_PLANNER_EMIT_EMBEDDING_H

#include "planner/spill/emit/emit_unit.h"

/* The boundary that a sliced forward pass makes is in its edge; who calls sends it on. */
void emit_embedding_forward_sliced(struct emitter *e, const struct shard_view *v);
void emit_embedding_backward_sliced(struct emitter *e, const struct shard_view *v);

/* These leave and find everything in host memory. */
void emit_embedding_forward_cpu(struct emitter *e, const struct shard_view *v);
void emit_embedding_backward_cpu(struct emitter *e, const struct shard_view *v);

#endif
