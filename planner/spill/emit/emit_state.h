/* Copies of a shard's state between its home (host memory or storage) and a device: prefetch and eviction. */
#ifndef SPILLWAY_PLANNER_SPILL_EMIT_EMIT_STATE_H
#define SPILLWAY_PLANNER_SPILL_EMIT_EMIT_STATE_H

#include "planner/spill/emit/emit_unit.h"

/* Variants of staged buffers, whose sizes differ: held states, transient ones, and from the latter on slices. */
enum { EMIT_STAGED_HELD, EMIT_STAGED_TRANSIENT };

/* Returns true when the state of a shard of the unit's job is on storage. */
bool emit_is_stored(const struct emit_context *e, const struct emit_shard_view *v, uint32_t shard);

/* Return the buffer of the state in its home, and of the unit's shard on the device. */
uint32_t emit_host_state(struct emit_context *e, const struct emit_shard_view *v, uint32_t shard);
uint32_t emit_device_state(struct emit_context *e, const struct emit_shard_view *v);

/* Acquires a staged buffer, which takes all of its slot. */
uint32_t emit_stage(struct emit_context *e, const struct emit_shard_view *v, uint32_t shard, uint32_t variant,
                    enum emit_area area, uint64_t bytes);

/* Fetches bytes of a shard's state from its home to a new device buffer. */
void emit_fetch_state(struct emit_context *e, const struct emit_shard_view *v, uint32_t shard,
                      uint32_t variant, uint64_t offset, uint32_t device, enum emit_area area,
                      uint64_t bytes);

/* Brings bytes of a shard's state back from a device buffer. */
void emit_return_state(struct emit_context *e, const struct emit_shard_view *v, uint32_t shard,
                       uint32_t device, uint32_t device_flags, uint64_t offset, uint64_t bytes);

/* Fetches the parameters of a forward pass unless the state is on the device. Returns their buffer; PLAN_NONE: all of
 * them are in a base. */
uint32_t emit_fetch_parameters(struct emit_context *e, const struct emit_shard_view *v);

/* Uses the fetched parameters in a pass that does not train. */
void emit_use_parameters(struct emit_context *e, const struct emit_shard_view *v, uint32_t parameters);

/* For a job that shares a base: fetch the shard's, where the schedule says so; use it, after the unit's other copies to
 * the device, and fetch a piece of another shard's ahead. */
void emit_fetch_base(struct emit_context *e, const struct emit_shard_view *v);
void emit_use_base(struct emit_context *e, const struct emit_shard_view *v);

/* Fetches the token table for a head, in pieces where the embedding is moved in slices. Returns its buffer. */
uint32_t emit_fetch_table(struct emit_context *e, const struct emit_shard_view *v, enum emit_area area);

#endif
