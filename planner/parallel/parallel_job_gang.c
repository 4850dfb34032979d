#include "planner/parallel/parallel_job_gang.h"

#include <assert.h>

#include "base/size.h"
#include "models/job/parallel_memory.h"
#include "models/job/parallel_offload.h"
#include "models/job/parallel_work.h"

static const uint32_t thing_buffers[PARALLEL_JOB_THINGS] = {BUFFER_ACTIVATIONS, BUFFER_BOUNDARY,
                                                            BUFFER_BOUNDARY_GRADIENT, BUFFER_WORKSPACE,
                                                            BUFFER_GRADIENT};

static bool is_asynchronous(const struct parallel_job *s)
{
    return pipeline_is_asynchronous(s->parallel->schedule);
}

struct gang_unit gang_begin(struct parallel_job *s, uint32_t r, enum plan_pass pass, bool ends_minibatch)
{
    plan_builder_unit_begin(s->builder, s->index, r, pass, ends_minibatch);
    struct parallel_job_stage *stage = &s->stages[s->of[r].stage];
    return (struct gang_unit){.s = s, .chunk = &s->of[r], .stage = stage, .job = s->job, .pass = pass, .r = r,
                                      .gang = stage->gang, .peer = PLAN_NONE};
}

uint32_t gang_in_turn(const struct parallel_job *s, const struct parallel_job_stage *stage)
{
    return stage->first_turn + (uint32_t)(s->microbatch % stage->turns);
}

void gang_pass_over(struct gang_unit *u, uint32_t n)
{
    u->gang = gang_in_turn(u->s, u->stage);
    u->slice = n % parallel_slices(u->s->parallel);
    u->job = parallel_slice_in(u->s->job, u->slice, &u->s->sliced);
}

struct gang_unit gang_begin_pass(struct parallel_job *s, uint32_t r, enum plan_pass pass, uint32_t n)
{
    bool ends_minibatch = parallel_has_own_pace(s->parallel) && pass == PLAN_BACKWARD && r == 0;
    struct gang_unit u = gang_begin(s, r, pass, ends_minibatch);
    gang_pass_over(&u, n);
    return u;
}

void gang_end(struct gang_unit *u)
{
    struct plan_builder *builder = u->s->builder;
    plan_builder_gang_task(builder, plan_builder_unit_end(builder), u->gang, u->slots, u->slot_count);
    if (u->peer != PLAN_NONE) plan_builder_peer(builder, u->peer);
}

/* --- accesses ------------------------------------------------------------------------------- */

uint32_t gang_buffer(const struct gang_unit *u, uint32_t kind, uint32_t chunk, uint32_t variant, uint64_t bytes)
{
    struct plan_buffer b = {.kind = kind, .job = u->s->index, .shard = chunk, .variant = variant, .on_device = true,
                            .bytes = bytes};
    return plan_builder_buffer(u->s->builder, &b);
}

uint32_t gang_host_buffer(const struct gang_unit *u, uint32_t kind, uint32_t variant, uint64_t bytes)
{
    struct plan_buffer b = {.kind = kind, .job = u->s->index, .shard = u->r, .variant = variant, .bytes = bytes};
    return plan_builder_buffer(u->s->builder, &b);
}

void gang_access(struct gang_accesses *a, uint32_t buffer_index, uint32_t flags)
{
    assert(a->count < ARRAY_COUNT(a->of));
    a->of[a->count++] = (struct plan_access){.buffer = buffer_index, .flags = flags};
}

static void add_slot(struct gang_unit *u, uint32_t slot)
{
    assert(u->slot_count < ARRAY_COUNT(u->slots));
    u->slots[u->slot_count++] = slot;
}

/* Adds an access. A slot that it acquires has `bytes` at `offset`. */
static void add_placed(struct gang_unit *u, struct gang_accesses *a, uint32_t buffer_index, uint32_t flags,
                       uint64_t offset, uint64_t bytes)
{
    gang_access(a, buffer_index, flags);
    if (!(flags & ACCESS_ACQUIRE)) return;
    add_slot(u, plan_builder_slot(u->s->builder, offset, parallel_job_range_bytes(bytes)));
}

void gang_access_state(struct gang_unit *u, struct gang_accesses *a, uint32_t flags)
{
    uint64_t bytes = u->chunk->state_bytes;
    add_placed(u, a, gang_buffer(u, BUFFER_STATE, u->r, 0, bytes), flags, u->chunk->state_offset, bytes);
}

uint32_t gang_gradient(const struct gang_unit *u, uint32_t chunk)
{
    const struct parallel_job_chunk *of = &u->s->of[chunk];
    return gang_buffer(u, BUFFER_GRADIENT, chunk, of->gradient_turn > 0 ? PLAN_GRADIENT_TURNS + of->gradient_turn : 0,
                       of->gradient_bytes);
}

void gang_access_gradient(struct gang_unit *u, struct gang_accesses *a, uint32_t flags)
{
    const uint64_t bytes = u->chunk->gradient_bytes, turn = u->chunk->gradient_turn * parallel_job_range_bytes(bytes);
    add_placed(u, a, gang_gradient(u, u->r), flags, u->chunk->gradient_offset + turn, bytes);
}

void gang_access_levels(struct gang_unit *u, struct gang_accesses *a, uint32_t flags)
{
    uint64_t bytes = u->chunk->level_bytes;
    if (bytes == 0) return;
    uint32_t levels = gang_buffer(u, BUFFER_GRADIENT, u->r, PLAN_GRADIENT_LEVELS, bytes);
    add_placed(u, a, levels, flags, u->chunk->level_offset, bytes);
}

void gang_access_ring(struct gang_unit *u, struct gang_accesses *a, uint32_t kind, const struct parallel_job_ring *ring,
                      uint32_t turn, uint64_t bytes, uint32_t flags)
{
    uint32_t slot = turn % ring->slots, variant = slot + (kind == BUFFER_GRADIENT ? 1 : 0);
    add_placed(u, a, gang_buffer(u, kind, u->r, variant, bytes), flags, ring->offset + slot * ring->bytes, bytes);
}

void gang_access_version(struct gang_unit *u, struct gang_accesses *a, uint64_t version, uint32_t flags)
{
    const struct parallel_job_chunk *chunk = u->chunk;
    uint32_t slot = (uint32_t)(version % chunk->versions);
    uint64_t offset = chunk->version_offset + slot * parallel_job_range_bytes(chunk->version_bytes);
    uint32_t weights = gang_buffer(u, BUFFER_PARAMETERS, u->r, slot, chunk->version_bytes);
    add_placed(u, a, weights, flags, offset, chunk->version_bytes);
}

void gang_access_weights(struct gang_unit *u, struct gang_accesses *a)
{
    struct parallel_job_ring *ring = &u->stage->weights;
    if (u->chunk->versions > 0)
        gang_access_version(u, a, u->chunk->version, ACCESS_READ | (u->chunk->version_ends ? ACCESS_RELEASE : 0));
    else if (u->chunk->gathers)
        gang_access_ring(u, a, BUFFER_PARAMETERS, ring, ring->given++, u->chunk->whole_weight_bytes, GANG_LAST);
    else
        gang_access_state(u, a, ACCESS_READ);
}

void gang_access_sum(struct gang_unit *u, struct gang_accesses *a)
{
    struct parallel_job_ring *ring = &u->stage->gradients;
    if (u->chunk->scatters)
        gang_access_ring(u, a, BUFFER_GRADIENT, ring, ring->taken++, u->chunk->whole_gradient_bytes, GANG_MAKE);
    else if (!parallel_drains(u->s->job))
        gang_access_gradient(u, a, u->chunk->begins_sum ? GANG_MAKE : GANG_CHANGE);
}

static uint32_t shares(const struct gang_unit *u)
{
    const struct rank_state *host = &u->chunk->host;
    return gang_host_buffer(u, u->s->parallel->storage ? BUFFER_STORED : BUFFER_STATE, 0,
                       host->weight_bytes + host->state_bytes);
}

/* Accesses the next slot of a ring in host memory. Variant 0 has only weights, variant 1 the whole state, variant 2 a
 * tied table for another chunk. */
static void access_staged(struct gang_unit *u, struct gang_accesses *a, struct parallel_job_ring *ring,
                          uint32_t variant, uint64_t bytes, uint32_t flags)
{
    if (flags & ACCESS_ACQUIRE) ring->taken++;
    uint32_t slot = (ring->taken - 1) % ring->slots;
    add_placed(u, a, gang_host_buffer(u, BUFFER_STAGED, variant, bytes), flags, ring->offset + slot * ring->bytes,
               bytes);
}

uint32_t gang_job_buffer(const struct gang_unit *u, uint32_t kind, bool on_device, uint64_t bytes)
{
    struct plan_buffer b = {.kind = kind, .job = u->s->index, .shard = PLAN_NONE, .on_device = on_device,
                            .bytes = bytes};
    return plan_builder_buffer(u->s->builder, &b);
}

uint32_t gang_held_out_loss(const struct gang_unit *u, bool on_device)
{
    struct plan_buffer b = {.kind = BUFFER_LOSS, .job = u->s->index, .shard = PLAN_NONE, .variant = 1,
                            .on_device = on_device, .bytes = on_device ? u->chunk->loss_bytes : sizeof(double)};
    return plan_builder_buffer(u->s->builder, &b);
}

/* Returns the microbatches of a minibatch on each replica. */
static uint64_t microbatches_each(const struct parallel_job *s)
{
    return s->job->microbatches / s->parallel->data;
}

void gang_access_batch(struct gang_unit *u, struct gang_accesses *a, uint32_t flags)
{
    uint64_t bytes = job_replica_batch_bytes(u->s->job);
    if (!u->s->carried_out || !u->chunk->has_batch) return;
    /* minibatches of several replicas */
    const uint64_t turns = parallel_has_own_pace(u->s->parallel) ? u->stage->turns : 1;
    const uint64_t minibatch = u->s->microbatch / microbatches_each(u->s) / turns;
    uint32_t slot = is_asynchronous(u->s) ? (uint32_t)(minibatch % u->stage->batches) : 0;
    struct plan_buffer b = {.kind = BUFFER_BATCH, .job = u->s->index, .shard = PLAN_NONE, .variant = slot,
                            .on_device = true, .bytes = bytes};
    add_placed(u, a, plan_builder_buffer(u->s->builder, &b), flags,
               u->stage->batch_offset + slot * parallel_job_range_bytes(bytes), bytes);
}

/* A replica's last microbatch of a minibatch ends its data. */
uint32_t gang_ends_batch(const struct gang_unit *u)
{
    const uint64_t each = microbatches_each(u->s);
    return is_asynchronous(u->s) && u->s->microbatch % each + u->stage->turns >= each ? ACCESS_RELEASE : 0;
}

void gang_access_loss(struct gang_unit *u, struct gang_accesses *a, uint32_t flags)
{
    uint64_t bytes = u->chunk->loss_bytes;
    if (!u->s->carried_out || !u->chunk->has_loss) return;
    add_placed(u, a, gang_job_buffer(u, BUFFER_LOSS, true, bytes), flags, u->stage->loss_offset, bytes);
}

void gang_copy_loss(struct gang_unit *u)
{
    struct gang_accesses a = {0};
    if (!u->s->carried_out || !u->chunk->has_loss) return;
    gang_access_loss(u, &a, ACCESS_READ);
    gang_access(&a, gang_job_buffer(u, BUFFER_LOSS, false, sizeof(double)), ACCESS_WRITE);
    gang_copy(u, STREAM_D2H, sizeof(double), &a);
}

void gang_access_held_out_loss(struct gang_unit *u, struct gang_accesses *a, uint32_t flags)
{
    if (!u->s->carried_out || !u->chunk->has_loss || u->s->job->evaluation.every == 0) return;
    add_placed(u, a, gang_held_out_loss(u, true), flags, u->stage->held_out_offset, u->chunk->loss_bytes);
}

void gang_access_norms(struct gang_unit *u, struct gang_accesses *a, uint32_t flags)
{
    uint64_t bytes = memory_norm_bytes(&u->s->job->network);
    if (!job_clips(u->s->job)) return;
    add_placed(u, a, gang_job_buffer(u, BUFFER_NORMS, true, bytes), flags, u->stage->norms_offset, bytes);
}

bool gang_shares_table(const struct parallel_job *s)
{
    return s->carried_out && parallel_shares_table(s->job);
}

void gang_access_other(struct gang_unit *u, struct gang_accesses *a, uint32_t kind, uint32_t chunk, uint64_t bytes)
{
    gang_access(a, gang_buffer(u, kind, chunk, 0, bytes), ACCESS_READ);
}

void gang_access_table(struct gang_unit *u, struct gang_accesses *a)
{
    if (u->chunk->has_loss && gang_shares_table(u->s) && !u->chunk->gathers)
        gang_access_other(u, a, BUFFER_STATE, 0, u->s->of[0].state_bytes);
}

void gang_access_workspace(struct gang_unit *u, struct gang_accesses *a, uint32_t flags)
{
    uint64_t bytes = u->chunk->workspace_bytes;
    add_placed(u, a, gang_buffer(u, BUFFER_WORKSPACE, u->r, 0, bytes), flags, u->stage->workspace_offset, bytes);
}

void gang_access_thing(struct gang_unit *u, struct gang_accesses *a, enum parallel_job_thing thing, uint32_t r,
                       uint32_t microbatch, uint32_t flags)
{
    struct parallel_job *s = u->s;
    const bool crosses = thing == PARALLEL_JOB_BOUNDARY || thing == PARALLEL_JOB_GRADIENT;
    if (r == s->chunks || (r == 0 && crosses)) return;
    struct parallel_job_pool *pool = &s->of[r].pools[thing];
    const bool of_halves = thing == PARALLEL_JOB_HANDOVER || thing == PARALLEL_JOB_APART;
    if (of_halves && pool->bytes == 0) return;
    uint32_t variant = pool->variant_of[microbatch], place = variant;
    uint32_t first = of_halves ? 1 : 0; /* scratch is a workspace, and a sum is a gradient, too */
    bool in_front = s->of[r].stage != u->chunk->stage;
    struct parallel_job_variant unknown = {0},
                                *known = variant < pool->variant_room ? &pool->variants[variant] : &unknown;
    if (known->buffer == 0) known->buffer = 1 + gang_buffer(u, thing_buffers[thing], r, first + variant, pool->bytes);
    gang_access(a, known->buffer - 1, flags);
    if (!(flags & ACCESS_ACQUIRE)) return;
    if (pool->front > 0) place = in_front ? variant % pool->front : variant / pool->front;
    uint64_t range = parallel_job_range_bytes(pool->bytes), offset = pool->offset[in_front] + place * range;
    uint32_t *slot = &known->slots[in_front];
    if (*slot == 0) *slot = 1 + plan_builder_slot(s->builder, offset, range);
    add_slot(u, *slot - 1);
}

void gang_access_context(struct gang_unit *u, struct gang_accesses *a, uint32_t n)
{
    const uint32_t slices = parallel_slices(u->s->parallel), ends_at = u->pass == PLAN_EVALUATE ? slices - 1 : 0;
    if (slices <= 1) return;
    const bool makes = u->slice == 0 && u->pass != PLAN_BACKWARD, ends = u->slice == ends_at && u->pass != PLAN_FORWARD;
    gang_access_thing(u, a, PARALLEL_JOB_HANDOVER, u->r, n,
                      makes  ? GANG_MAKE
                      : ends ? GANG_CHANGE | ACCESS_RELEASE
                             : GANG_CHANGE);
}

void gang_access_inputs(struct gang_unit *u, struct gang_accesses *a, uint32_t n, uint32_t release)
{
    gang_access_thing(u, a, PARALLEL_JOB_BOUNDARY, u->r, n, ACCESS_READ | release);
    gang_access_thing(u, a, PARALLEL_JOB_ACTIVATIONS, u->r, n, ACCESS_READ | release);
    gang_access_thing(u, a, PARALLEL_JOB_GRADIENT, u->r + 1, n, ACCESS_READ | release);
}

/* --- operations ----------------------------------------------------------------------------- */

void gang_compute(struct gang_unit *u, enum plan_pass pass, uint32_t work, const struct gang_accesses *a)
{
    struct plan_op op = {.kind = OP_COMPUTE, .stream = STREAM_COMPUTE, .pass = (uint8_t)pass, .work = work,
                         .slice = u->slice};
    plan_builder_op(u->s->builder, &op, a->of, a->count, NULL, 0);
}

void gang_host_compute(struct gang_unit *u, enum plan_pass pass, enum parallel_pass work, const struct gang_accesses *a)
{
    struct plan_op op = {.kind = OP_COMPUTE, .stream = STREAM_CPU, .pass = (uint8_t)pass, .work = gang_work(u, work)};
    plan_builder_op(u->s->builder, &op, a->of, a->count, NULL, 0);
}

uint32_t gang_state_on_host(const struct gang_unit *u)
{
    const struct rank_state *offloaded = &u->chunk->host;
    uint64_t all = parallel_offloads(u->s->parallel) ? offloaded->weight_bytes + offloaded->state_bytes
                                                     : u->chunk->state_bytes;
    return gang_host_buffer(u, BUFFER_STATE, 0, all);
}

uint32_t gang_best_on_host(const struct gang_unit *u)
{
    const struct parallel_layers *layers = &u->chunk->layers;
    return gang_host_buffer(u, BUFFER_KEPT, 0,
                            memory_parameter_bytes(&u->s->job->network, layers->first, layers->count));
}

void gang_host_stream(struct gang_unit *u, enum plan_stream_kind stream, enum plan_pass pass,
                      const struct gang_accesses *a)
{
    struct plan_op op = {.kind = OP_COMPUTE, .stream = (uint8_t)stream, .pass = (uint8_t)pass, .work = PLAN_NONE};
    plan_builder_op(u->s->builder, &op, a->of, a->count, NULL, 0);
}

uint32_t gang_work(const struct gang_unit *u, enum parallel_pass pass)
{
    struct parallel_job_work *known = &u->chunk->works[pass];
    bool sliced = u->s->parallel->slices > 1;
    if (known->known && !sliced) return known->work;
    struct work_item items[PARALLEL_WORK_MAX];
    uint32_t count = parallel_work(u->job, u->chunk->layers, pass, items);
    *known = (struct parallel_job_work){true, count > 0 ? plan_builder_work(u->s->builder, items, count) : PLAN_NONE};
    return known->work;
}

void gang_collective(struct gang_unit *u, enum collective_kind kind, enum plan_axis axis, uint32_t stream,
                     uint32_t rounds, uint64_t bytes, const struct gang_accesses *a)
{
    struct plan_op op = {.kind = OP_COLLECTIVE, .stream = (uint8_t)stream, .collective = (uint8_t)kind,
                         .axes = (uint8_t)(1u << axis), .rounds = rounds, .bytes = bytes, .work = PLAN_NONE};
    plan_builder_op(u->s->builder, &op, a->of, a->count, NULL, 0);
}

void gang_in_data_group(struct gang_unit *u, enum collective_kind kind, uint64_t bytes, const struct gang_accesses *a)
{
    gang_collective(u, kind, AXIS_DATA, STREAM_DATA, 1, bytes, a);
}

static const struct parallel_job_exchange *exchange_of(const struct gang_unit *u, enum parallel_pass pass)
{
    struct parallel_job_exchange *known = &u->chunk->exchanges[pass];
    bool sliced = u->s->parallel->slices > 1;
    if (!known->known || sliced) known->count = parallel_collectives(u->job, u->chunk->layers, pass, known->list);
    known->known = true;
    return known;
}

void gang_tensor_collectives(struct gang_unit *u, enum parallel_pass pass, bool overlapping, uint32_t stream,
                             uint32_t on)
{
    const struct parallel_job_exchange *exchange = exchange_of(u, pass);
    struct gang_accesses a = {0};
    gang_access(&a, on, GANG_CHANGE);
    for (uint32_t i = 0; i < exchange->count; i++) {
        const struct parallel_collective *c = &exchange->list[i];
        if (c->overlaps == overlapping && c->bytes > 0)
            gang_collective(u, c->kind, AXIS_TENSOR, stream, c->count, c->bytes, &a);
    }
}

/* Makes a blocking stage acquire the place for fetched data on the compute stream, between passes. */
static void hold_place(struct gang_unit *u, enum parallel_job_thing thing, uint32_t r, uint32_t microbatch)
{
    struct gang_accesses held = {0};
    gang_access_thing(u, &held, thing, r, microbatch, GANG_MAKE);
    gang_compute(u, u->pass, PLAN_NONE, &held);
}

void gang_fetch(struct gang_unit *u, enum parallel_job_thing thing, uint32_t r, uint32_t microbatch,
                uint32_t from)
{
    struct gang_accesses a = {0};
    const struct parallel_job *s = u->s;
    bool blocking = s->parallel->blocking;
    if (from >= s->chunks || s->of[from].stage == u->chunk->stage) return;
    if (blocking) hold_place(u, thing, r, microbatch);
    gang_access_thing(u, &a, thing, r, microbatch, GANG_LAST);
    gang_access_thing(u, &a, thing, r, microbatch, blocking ? ACCESS_WRITE : GANG_MAKE);
    uint64_t layer = s->of[r].layers.first - 1;
    struct plan_op op = {.kind = OP_COPY, .stream = STREAM_P2P, .work = PLAN_NONE,
                         .bytes = parallel_sent_bytes(u->job, layer)};
    plan_builder_op(s->builder, &op, a.of, a.count, NULL, 0);
    if (s->parallel->scatter) {
        struct gang_accesses whole = {0};
        gang_access(&whole, a.of[1].buffer, GANG_CHANGE);
        gang_collective(u, COLLECTIVE_ALL_GATHER, AXIS_TENSOR, STREAM_GROUP, 1, parallel_boundary_bytes(u->job, layer),
                       &whole);
    }
    u->peer = gang_in_turn(s, &s->stages[s->of[from].stage]);
}

void gang_copy(struct gang_unit *u, enum plan_stream_kind stream, uint64_t bytes, const struct gang_accesses *a)
{
    struct plan_op op = {.kind = OP_COPY, .stream = (uint8_t)stream, .work = PLAN_NONE, .bytes = bytes};
    plan_builder_op(u->s->builder, &op, a->of, a->count, NULL, 0);
}

/* Reads from storage into host memory. */
static void read_up(struct gang_unit *u, struct parallel_job_ring *ring, uint32_t variant, uint64_t bytes)
{
    struct gang_accesses a = {0};
    gang_access(&a, shares(u), ACCESS_READ);
    access_staged(u, &a, ring, variant, bytes, GANG_MAKE);
    gang_copy(u, STREAM_READ, bytes, &a);
}

/* Accesses the beginning of the rank's state in host memory, after it was read from storage if it is there. */
static void access_shares(struct gang_unit *u, struct gang_accesses *a, uint32_t variant, uint64_t bytes)
{
    if (!u->s->parallel->storage) {
        gang_access(a, shares(u), ACCESS_READ);
        return;
    }
    read_up(u, &u->stage->staged_weights, variant, bytes);
    access_staged(u, a, &u->stage->staged_weights, variant, bytes, GANG_LAST);
}

void gang_access_raised(struct gang_unit *u, struct gang_accesses *a)
{
    access_shares(u, a, 0, u->chunk->read_bytes);
}

void gang_access_raised_table(struct gang_unit *u, struct gang_accesses *a)
{
    struct parallel_job_chunk *const own = u->chunk;
    const uint32_t r = u->r;
    u->r = 0;
    u->chunk = &u->s->of[0];
    access_shares(u, a, 2, own->raised_table_offset + own->raised_table_bytes);
    a->of[a->count - 1].offset_bytes = own->raised_table_offset;
    u->r = r;
    u->chunk = own;
}

static uint64_t bytes_below(const struct gang_unit *u)
{
    return u->chunk->host.weight_bytes + u->chunk->host.state_bytes;
}

void gang_access_stepped(struct gang_unit *u, struct gang_accesses *a)
{
    struct parallel_job_ring *ring = &u->stage->staged_states;
    if (!u->s->parallel->storage) {
        gang_access(a, shares(u), GANG_CHANGE);
        return;
    }
    read_up(u, ring, 1, bytes_below(u));
    access_staged(u, a, ring, 1, bytes_below(u), GANG_CHANGE);
}

void gang_write_stepped(struct gang_unit *u)
{
    struct gang_accesses back = {0};
    if (!u->s->parallel->storage) return;
    access_staged(u, &back, &u->stage->staged_states, 1, bytes_below(u), GANG_LAST);
    gang_access(&back, shares(u), ACCESS_WRITE);
    gang_copy(u, STREAM_WRITE, bytes_below(u), &back);
}

void gang_swap_out(struct gang_unit *u, uint32_t n)
{
    struct gang_accesses a = {0};
    uint64_t bytes = u->chunk->pools[PARALLEL_JOB_ACTIVATIONS].bytes;
    if (!u->chunk->swaps) return;
    gang_access_thing(u, &a, PARALLEL_JOB_ACTIVATIONS, u->r, n, GANG_LAST);
    gang_access(&a, gang_host_buffer(u, BUFFER_ACTIVATIONS, 0, bytes), ACCESS_WRITE);
    gang_copy(u, STREAM_D2H, bytes, &a);
}

void gang_swap_in(struct gang_unit *u, uint32_t n)
{
    struct gang_accesses a = {0};
    uint64_t bytes = u->chunk->pools[PARALLEL_JOB_ACTIVATIONS].bytes;
    if (!u->chunk->swaps) return;
    gang_access(&a, gang_host_buffer(u, BUFFER_ACTIVATIONS, 0, bytes), ACCESS_READ);
    gang_access_thing(u, &a, PARALLEL_JOB_ACTIVATIONS, u->r, n, GANG_MAKE);
    gang_copy(u, STREAM_H2D, bytes, &a);
}
