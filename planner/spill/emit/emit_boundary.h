/* Batches, boundaries and their gradients: the data that enter and leave a unit by the edge of its device. */
#ifndef SPILLWAY_PLANNER_SPILL_EMIT_EMIT_BOUNDARY_H
#define SPILLWAY_PLANNER_SPILL_EMIT_EMIT_BOUNDARY_H

#include "planner/spill/emit/emit_unit.h"

uint32_t emit_boundary(struct emit_context *e, const struct emit_shard_view *v, uint32_t kind, uint32_t shard,
                       bool on_device, uint64_t bytes);

/* Fetches the input (batch, boundary or gradient) to an edge unless it is on the device, and uses it up. */
void emit_fetch_input(struct emit_context *e, const struct emit_shard_view *v, uint32_t kind, uint32_t shard,
                      uint64_t bytes, enum emit_origin origin);
void emit_use_input(struct emit_context *e, const struct emit_shard_view *v, uint32_t kind, uint32_t shard,
                    uint64_t bytes);

/* Fetches a job's batch; does nothing for a job without batches. */
void emit_fetch_batch(struct emit_context *e, const struct emit_shard_view *v);
void emit_use_batch(struct emit_context *e, const struct emit_shard_view *v);

/* Emits the output (boundary or gradient): it stays for the job's next unit, goes to the host, or both. */
void emit_output(struct emit_context *e, const struct emit_shard_view *v, uint32_t kind, uint32_t shard,
                 uint64_t bytes, bool to_host);

#endif
