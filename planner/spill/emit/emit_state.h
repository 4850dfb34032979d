/* A shard's state on its way between where it lives and a device: host memory, or storage. */
#ifndef SPILLWAY_PLANNER_EMIT_STATE_H
#define SPILLWAY_PLANNER_EMIT_STATE_H

#include "planner/spill/emit/emit_unit.h"

/* Variants of staged buffers, for their sizes differ: held states, transient ones, and from the latter
 * on those of slices. */
enum { STAGED_HELD, STAGED_TRANSIENT };

/* Does the state of a shard of the unit's job live on storage? */
bool emit_is_stored(const struct emitter *e, const struct shard_view *v, uint32_t shard);

/* The buffer that the state lives in, and that of the unit's shard on the device. */
uint32_t emit_host_state(struct emitter *e, const struct shard_view *v, uint32_t shard);
uint32_t emit_device_state(struct emitter *e, const struct shard_view *v);

/* Begin the life of a staged buffer; it takes all of its slot. */
uint32_t emit_stage(struct emitter *e, const struct shard_view *v, uint32_t shard, uint32_t variant,
                    enum area area, uint64_t bytes);

/* Bytes of a shard's state, from wherever it lives to a new device buffer. */
void emit_fetch_state(struct emitter *e, const struct shard_view *v, uint32_t shard,
                      uint32_t variant, uint64_t offset, uint32_t device, enum area area,
                      uint64_t bytes);

/* The front of a shard's state, back from a device buffer. */
void emit_return_state(struct emitter *e, const struct shard_view *v, uint32_t shard,
                       uint32_t device, uint32_t device_flags, uint64_t bytes);

/* What a forward pass reads, whole: fetched unless the state is there. Returns its buffer. */
uint32_t emit_fetch_parameters(struct emitter *e, const struct shard_view *v);

/* The token table for a head, in pieces where the embedding is moved in slices. Returns its buffer. */
uint32_t emit_fetch_table(struct emitter *e, const struct shard_view *v, enum area area);

#endif
