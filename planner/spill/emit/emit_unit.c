/* All units share one array of slots, in ranges. The turns that a unit's task takes are counted meanwhile. */
#include "planner/spill/emit/emit_unit.h"

#include <assert.h>

#include "planner/plan_work.h"

void emit_slot(struct emit_context *e, enum emit_area area, uint64_t offset_bytes, uint64_t bytes)
{
    if (!e->status)
        e->status = array_reserve(&e->acquires, &e->acquire_capacity, e->acquire_count,
                                  sizeof *e->acquires, PLAN_OPS_MAX, "arena ranges", e->err);
    if (e->status) return;
    struct emit_acquire a = {.area = area, .offset_bytes = offset_bytes, .bytes = bytes};
    if (area == EMIT_AREA_EDGE) {
        a.offset_bytes = e->edge_used;
        e->edge_used += emit_padded(bytes);
        e->current.uses_edge = true;
        assert(e->edge_used <= e->partition->edge_bytes);
    } else if (area == EMIT_AREA_WEIGHT_BUFFER) {
        a.turn = e->current.weight_buffer_turns;
        a.offset_bytes = e->weight_buffer_used;
        e->weight_buffer_used += emit_padded(bytes);
    } else if (area == EMIT_AREA_TRANSIENT) {
        a.turn = e->current.transient_turns++;
    } else if (area == EMIT_AREA_HELD) {
        a.turn = e->current.held_turns++;
    } else if (area == EMIT_AREA_BASE) {
        a.turn = e->current.base_turns++;
    }
    e->acquires[e->acquire_count++] = a;
    e->current.acquire_count++;
}

void emit_turn_end(struct emit_context *e)
{
    assert(e->weight_buffer_used <= e->partition->weight_buffer_bytes);
    if (e->weight_buffer_used > 0) e->current.weight_buffer_turns++;
    e->weight_buffer_used = 0;
}

uint32_t emit_buffer(struct emit_context *e, const struct emit_shard_view *v, uint32_t kind,
                     uint32_t shard, uint32_t variant, bool on_device, uint64_t bytes)
{
    struct plan_buffer b = {.kind = kind,
                            .job = v->job_index,
                            .shard = shard,
                            .variant = variant,
                            .on_device = on_device,
                            .bytes = bytes};
    return plan_builder_buffer(e->builder, &b);
}

uint32_t emit_base_buffer(struct emit_context *e, const struct emit_shard_view *v, uint32_t kind, uint32_t shard,
                          bool on_device, uint64_t bytes)
{
    struct emit_shard_view owner = *v;
    owner.job_index = e->partition->base.owner[v->job_index];
    return emit_buffer(e, &owner, kind, shard, 0, on_device, bytes);
}

void emit_use(struct emit_context *e, uint32_t name, uint32_t flags)
{
    assert(e->access_count < EMIT_ACCESSES_MAX);
    e->accesses[e->access_count++] = (struct plan_access){.buffer = name, .flags = flags};
}

void emit_use_new(struct emit_context *e, uint32_t name, uint32_t flags, enum emit_area area,
                  uint64_t offset_bytes, uint64_t bytes)
{
    emit_slot(e, area, offset_bytes, bytes);
    emit_use(e, name, flags | ACCESS_WRITE | ACCESS_ACQUIRE);
}

void emit_copy(struct emit_context *e, uint8_t stream, uint32_t from, uint64_t from_offset,
               uint32_t from_flags, uint32_t to, uint64_t to_offset, uint32_t to_flags,
               uint64_t bytes)
{
    struct plan_op op = {.kind = OP_COPY, .stream = stream, .work = PLAN_NONE, .bytes = bytes};
    struct plan_access accesses[2] = {
        {.buffer = from, .flags = from_flags | ACCESS_READ, .offset_bytes = from_offset},
        {.buffer = to, .flags = to_flags | ACCESS_WRITE, .offset_bytes = to_offset}};
    plan_builder_op(e->builder, &op, accesses, 2, NULL, 0);
}

void emit_fetch(struct emit_context *e, uint32_t host, uint64_t host_offset, uint32_t device,
                enum emit_area area, uint64_t slot_offset, uint64_t bytes)
{
    emit_slot(e, area, slot_offset, bytes);
    emit_copy(e, STREAM_H2D, host, host_offset, 0, device, 0, ACCESS_ACQUIRE, bytes);
}

void emit_send(struct emit_context *e, uint32_t device, uint32_t device_flags, uint32_t host,
               uint64_t host_offset, uint64_t bytes)
{
    emit_copy(e, STREAM_D2H, device, 0, device_flags, host, host_offset, 0, bytes);
}

/* Adds a computation with the accesses gathered so far. */
static void add_op(struct emit_context *e, struct plan_op op)
{
    op.kind = OP_COMPUTE;
    plan_builder_op(e->builder, &op, e->accesses, e->access_count, NULL, 0);
    e->access_count = 0;
}

static void add_work(struct emit_context *e, const struct emit_shard_view *v, struct plan_op op, uint32_t how)
{
    struct work_item items[PLAN_WORK_ITEMS_MAX];
    const struct plan_shard *shard = &e->partition->shards[v->global];
    uint32_t count = plan_work_items(v->job, shard->first_layer, shard->layer_count,
                                     (enum plan_pass)op.pass, how, op.first_row, op.row_count,
                                     items);
    op.work = plan_builder_work(e->builder, items, count);
    add_op(e, op);
}

void emit_compute(struct emit_context *e, const struct emit_shard_view *v, enum plan_pass pass,
                  enum unit_pass unit_pass, uint32_t how, uint32_t slice, uint64_t first_row,
                  uint64_t row_count)
{
    uint64_t workspace = v->footprint->workspace_bytes[unit_pass][how];
    if (workspace > 0) {
        uint32_t variant = (uint32_t)unit_pass * UNIT_WAYS + how;
        uint32_t name = emit_buffer(e, v, BUFFER_WORKSPACE, v->shard, variant, true, workspace);
        emit_use_new(e, name, ACCESS_RELEASE, EMIT_AREA_WORKSPACE, 0, workspace);
    }
    struct plan_op op = {.stream = STREAM_COMPUTE,
                         .pass = (uint8_t)pass,
                         .slice = slice,
                         .first_row = first_row,
                         .row_count = row_count};
    add_work(e, v, op, how);
}

/* If a job clips, rows of its embedding are gathered on the host stream, and its gradient is left for later. */
void emit_cpu(struct emit_context *e, const struct emit_shard_view *v, enum plan_pass pass,
              uint64_t workspace)
{
    bool gathers = pass == PLAN_FORWARD || pass == PLAN_EVALUATE || pass == PLAN_RECALL, clips = job_clips(v->job);
    if (workspace > 0)
        emit_use(e, emit_buffer(e, v, BUFFER_WORKSPACE, v->shard, pass, false, workspace),
                 ACCESS_WRITE);
    struct plan_op op = {.stream = clips && gathers ? STREAM_HOST : STREAM_CPU,
                         .pass = (uint8_t)pass};
    add_work(e, v, op, clips && pass == PLAN_BACKWARD ? UNIT_GRADIENTS_OUT : 0);
}

void emit_host(struct emit_context *e, enum plan_pass pass)
{
    add_op(e, (struct plan_op){.stream = STREAM_HOST, .pass = (uint8_t)pass, .work = PLAN_NONE});
}

void emit_end(struct emit_context *e, enum plan_pass pass)
{
    add_op(e, (struct plan_op){.stream = STREAM_COMPUTE, .pass = (uint8_t)pass, .work = PLAN_NONE});
}

void emit_files(struct emit_context *e, enum plan_pass pass)
{
    add_op(e, (struct plan_op){.stream = STREAM_FILE, .pass = (uint8_t)pass, .work = PLAN_NONE});
}
