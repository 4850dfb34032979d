/*
 * A state on storage (partition_storage.h) takes one more step each way, through host memory:
 *
 *       read  state of s           -> staged         (or parameters, or the table)
 *       h2d   staged               -> weight buffer; staged free
 *       ...
 *       d2h   state of s           -> staged
 *       write staged               -> storage; staged free
 */
#include "planner/spill/emit/emit_state.h"

#include <assert.h>

#include "models/jobs/job_base.h"
#include "planner/spill/cut/partition_storage.h"

uint32_t emit_stage(struct emit_context *e, const struct emit_shard_view *v, uint32_t shard,
                    uint32_t variant, enum emit_area area, uint64_t bytes)
{
    const struct partition_storage *storage = &e->partition->storage;
    uint64_t room = area == EMIT_AREA_HELD ? storage->held_bytes : storage->transient_bytes;
    assert(bytes <= room);
    emit_slot(e, area, 0, room);
    return emit_buffer(e, v, BUFFER_STAGED, shard, variant, false, bytes);
}

bool emit_is_stored(const struct emit_context *e, const struct emit_shard_view *v, uint32_t shard)
{
    return storage_has(e->partition, e->partition->job_first_shard[v->job_index] + shard);
}

uint32_t emit_host_state(struct emit_context *e, const struct emit_shard_view *v, uint32_t shard)
{
    const struct partition *p = e->partition;
    const struct plan_shard *s = &p->shards[p->job_first_shard[v->job_index] + shard];
    uint64_t bytes = job_state(v->job, s->first_layer, s->layer_count).bytes;
    uint32_t kind = emit_is_stored(e, v, shard) ? BUFFER_STORED : BUFFER_STATE;
    return emit_buffer(e, v, kind, shard, 0, false, bytes);
}

uint32_t emit_device_state(struct emit_context *e, const struct emit_shard_view *v)
{
    return emit_buffer(e, v, BUFFER_STATE, v->shard, 0, true, v->footprint->state_bytes);
}

void emit_fetch_state(struct emit_context *e, const struct emit_shard_view *v, uint32_t shard,
                      uint32_t variant, uint64_t offset, uint32_t device, enum emit_area area,
                      uint64_t bytes)
{
    uint32_t home = emit_host_state(e, v, shard);
    if (!emit_is_stored(e, v, shard)) {
        emit_fetch(e, home, offset, device, area, 0, bytes);
        return;
    }
    uint32_t staged = emit_stage(e, v, shard, variant, EMIT_AREA_TRANSIENT, bytes);
    emit_copy(e, STREAM_READ, home, offset, 0, staged, 0, ACCESS_ACQUIRE, bytes);
    emit_slot(e, area, 0, bytes);
    emit_copy(e, STREAM_H2D, staged, 0, ACCESS_RELEASE, device, 0, ACCESS_ACQUIRE, bytes);
}

void emit_return_state(struct emit_context *e, const struct emit_shard_view *v, uint32_t shard,
                       uint32_t device, uint32_t device_flags, uint64_t offset, uint64_t bytes)
{
    uint32_t home = emit_host_state(e, v, shard);
    if (!emit_is_stored(e, v, shard)) {
        emit_copy(e, STREAM_D2H, device, offset, device_flags, home, offset, 0, bytes);
        return;
    }
    uint32_t staged = emit_stage(e, v, shard, EMIT_STAGED_TRANSIENT, EMIT_AREA_TRANSIENT, bytes);
    emit_copy(e, STREAM_D2H, device, offset, device_flags, staged, 0, ACCESS_ACQUIRE, bytes);
    emit_copy(e, STREAM_WRITE, staged, 0, ACCESS_RELEASE, home, offset, 0, bytes);
}

uint32_t emit_fetch_parameters(struct emit_context *e, const struct emit_shard_view *v)
{
    uint64_t bytes = v->footprint->weight_bytes;
    if (v->persistent) return emit_device_state(e, v);
    if (bytes == 0 && v->base_bytes > 0) return PLAN_NONE;
    uint32_t parameters = emit_buffer(e, v, BUFFER_PARAMETERS, v->shard, 0, true, bytes);
    emit_fetch_state(e, v, v->shard, EMIT_STAGED_TRANSIENT, 0, parameters, EMIT_AREA_WEIGHT_BUFFER, bytes);
    return parameters;
}

void emit_use_parameters(struct emit_context *e, const struct emit_shard_view *v, uint32_t parameters)
{
    emit_use_base(e, v);
    if (parameters != PLAN_NONE) emit_use(e, parameters, ACCESS_READ | (v->persistent ? 0 : ACCESS_RELEASE));
}

/* Fetches a piece of a base's shard; the first one acquires its place, in turn or to stay. */
static void fetch_base(struct emit_context *e, const struct emit_shard_view *v, uint32_t shard, uint64_t offset,
                       uint64_t bytes)
{
    const struct partition *p = e->partition;
    const uint32_t global = p->job_first_shard[p->base.owner[v->job_index]] + shard;
    const uint64_t all = job_base_bytes(v->job, p->shards[global].first_layer, p->shards[global].layer_count);
    const uint32_t home = emit_base_buffer(e, v, BUFFER_BASE, shard, false, all);
    const uint32_t device = emit_base_buffer(e, v, BUFFER_BASE, shard, true, all);
    if (offset == 0 && p->base.stays[global]) emit_slot(e, EMIT_AREA_BASE_STAYS, p->base.offset[global], all);
    else if (offset == 0) emit_slot(e, EMIT_AREA_BASE, 0, all);
    emit_copy(e, STREAM_H2D, home, offset, 0, device, offset, offset == 0 ? ACCESS_ACQUIRE : 0, bytes);
}

void emit_fetch_base(struct emit_context *e, const struct emit_shard_view *v)
{
    if (v->base && v->base->fetches) fetch_base(e, v, v->shard, 0, v->base_bytes);
}

void emit_use_base(struct emit_context *e, const struct emit_shard_view *v)
{
    if (!v->base) return;
    if (v->base->ahead != PLAN_NONE) fetch_base(e, v, v->base->ahead, v->base->ahead_offset, v->base->ahead_bytes);
    if (v->base_bytes > 0)
        emit_use(e, emit_base_buffer(e, v, BUFFER_BASE, v->shard, true, v->base_bytes),
                 ACCESS_READ | (v->base->releases ? ACCESS_RELEASE : 0));
}

/* Fetches the table of a base where the schedule says so. Returns its buffer. */
static uint32_t fetch_base_table(struct emit_context *e, const struct emit_shard_view *v, enum emit_area area)
{
    const uint64_t bytes = footprint_table_bytes(v->job);
    const uint32_t device = emit_base_buffer(e, v, BUFFER_TABLE, PLAN_NONE, true, bytes);
    if (v->base->fetches_table)
        emit_fetch(e, emit_base_buffer(e, v, BUFFER_BASE, 0, false, v->table_base_bytes), 0, device, area, 0, bytes);
    return device;
}

uint32_t emit_fetch_table(struct emit_context *e, const struct emit_shard_view *v, enum emit_area area)
{
    if (v->table_base_bytes > 0) return fetch_base_table(e, v, area);
    uint64_t bytes = footprint_table_bytes(v->job);
    uint64_t slice = e->partition->slice_rows[v->job_index] * footprint_table_row_bytes(v->job);
    uint32_t device = emit_buffer(e, v, BUFFER_TABLE, PLAN_NONE, 0, true, bytes);
    if (!emit_is_stored(e, v, 0) || slice == 0) {
        emit_fetch_state(e, v, 0, EMIT_STAGED_TRANSIENT, 0, device, area, bytes);
        return device;
    }
    uint32_t acquire = ACCESS_ACQUIRE;
    for (uint64_t at = 0; at < bytes; at += slice, acquire = 0) {
        uint64_t piece = bytes - at < slice ? bytes - at : slice;
        uint32_t variant = EMIT_STAGED_TRANSIENT + (uint32_t)(at / slice);
        uint32_t staged = emit_stage(e, v, 0, variant, EMIT_AREA_TRANSIENT, piece);
        emit_copy(e, STREAM_READ, emit_host_state(e, v, 0), at, 0, staged, 0, ACCESS_ACQUIRE, piece);
        if (acquire) emit_slot(e, area, 0, bytes); /* slots are in the order of the acquires */
        emit_copy(e, STREAM_H2D, staged, 0, ACCESS_RELEASE, device, at, acquire, piece);
    }
    return device;
}
