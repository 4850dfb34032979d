/*
 * An input is on the host, or in the edge where the job's previous unit left it, here or on another device with a
 * direct link. A buffer has one name on all devices: copies between two are from and to it.
 */
#include "planner/spill/emit/emit_boundary.h"

uint32_t emit_boundary(struct emit_context *e, const struct emit_shard_view *v, uint32_t kind,
                       uint32_t shard, bool on_device, uint64_t bytes)
{
    return emit_buffer(e, v, kind, shard, 0, on_device, bytes);
}

/* Copies a buffer of another device to a new one here. */
static void fetch_from_peer(struct emit_context *e, uint32_t device, enum emit_area area, uint64_t bytes)
{
    emit_slot(e, area, 0, bytes);
    emit_copy(e, STREAM_P2P, device, 0, ACCESS_RELEASE, device, 0, ACCESS_ACQUIRE, bytes);
}

void emit_fetch_input(struct emit_context *e, const struct emit_shard_view *v, uint32_t kind, uint32_t shard,
                      uint64_t bytes, enum emit_origin origin)
{
    uint32_t device = emit_boundary(e, v, kind, shard, true, bytes);
    if (origin == EMIT_ORIGIN_PEER)
        fetch_from_peer(e, device, EMIT_AREA_EDGE, bytes);
    else if (origin == EMIT_ORIGIN_HOST)
        emit_fetch(e, emit_boundary(e, v, kind, shard, false, bytes), 0, device, EMIT_AREA_EDGE, 0, bytes);
}

void emit_use_input(struct emit_context *e, const struct emit_shard_view *v, uint32_t kind, uint32_t shard,
                    uint64_t bytes)
{
    emit_use(e, emit_boundary(e, v, kind, shard, true, bytes), ACCESS_READ | ACCESS_RELEASE);
}

void emit_fetch_batch(struct emit_context *e, const struct emit_shard_view *v)
{
    uint64_t bytes = job_batch_bytes(v->job);
    if (bytes > 0) emit_fetch_input(e, v, BUFFER_BATCH, PLAN_NONE, bytes, EMIT_ORIGIN_HOST);
}

void emit_use_batch(struct emit_context *e, const struct emit_shard_view *v)
{
    uint64_t bytes = job_batch_bytes(v->job);
    if (bytes > 0) emit_use_input(e, v, BUFFER_BATCH, PLAN_NONE, bytes);
}

void emit_output(struct emit_context *e, const struct emit_shard_view *v, uint32_t kind, uint32_t shard,
                 uint64_t bytes, bool to_host)
{
    uint32_t device = emit_boundary(e, v, kind, shard, true, bytes);
    if (!to_host) return;
    uint32_t host = emit_boundary(e, v, kind, shard, false, bytes);
    emit_send(e, device, v->stays ? 0 : ACCESS_RELEASE, host, 0, bytes);
}
