/* Batches, boundaries and their gradients: what enters and leaves a unit by the edge of its device. */
#ifndef SPILLWAY_PLANNER_EMIT_BOUNDARY_H
#define SPILLWAY_PLANNER_EMIT_BOUNDARY_H

#include "planner/spill/emit/emit_unit.h"

uint32_t emit_boundary(struct emitter *e, const struct shard_view *v, uint32_t kind, uint32_t shard,
                       bool on_device, uint64_t bytes);

/* Batch, boundary or gradient that enters: fetched to an edge unless it is here, and used up. */
void emit_fetch_input(struct emitter *e, const struct shard_view *v, uint32_t kind, uint32_t shard,
                      uint64_t bytes, enum origin origin);
void emit_use_input(struct emitter *e, const struct shard_view *v, uint32_t kind, uint32_t shard,
                    uint64_t bytes);

/* The same for a job's batch; nothing where it has none. */
void emit_fetch_batch(struct emitter *e, const struct shard_view *v);
void emit_use_batch(struct emitter *e, const struct shard_view *v);

/* Boundary or gradient that leaves: it stays for the job's next unit, goes to the host, or both. */
void emit_output(struct emitter *e, const struct shard_view *v, uint32_t kind, uint32_t shard,
                 uint64_t bytes, bool to_host);

#endif
