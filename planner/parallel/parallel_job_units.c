/* A unit's slots are collected in the order of the accesses that acquire them, the order of the task's layout. */
#include "planner/parallel/parallel_job_units.h"

#include <assert.h>

#include "base/extreme.h"
#include "base/size.h"
#include "models/job/parallel_memory.h"
#include "models/job/parallel_offload.h"
#include "models/job/parallel_work.h"
#include "planner/parallel/parallel_job_cache.h"

static const uint32_t thing_buffers[PARALLEL_JOB_THINGS] = {BUFFER_ACTIVATIONS, BUFFER_BOUNDARY,
                                                            BUFFER_BOUNDARY_GRADIENT, BUFFER_WORKSPACE};

enum {
    CHANGE = ACCESS_READ | ACCESS_WRITE,
    MAKE = ACCESS_WRITE | ACCESS_ACQUIRE,
    LAST = ACCESS_READ | ACCESS_RELEASE
};

struct parallel_job_unit {
    struct parallel_job *s;
    struct parallel_job_chunk *chunk;
    struct parallel_job_stage *stage;
    const struct job *job; /* the job, or a slice of it ... */
    uint32_t slice;        /* ... and the index of the slice */
    enum plan_pass pass;
    uint32_t r, gang;      /* the chunk; its gang */
    uint32_t peer;         /* the gang it fetches from, or PLAN_NONE */
    uint32_t slots[16];
    uint32_t slot_count;
};

struct accesses {
    struct plan_access of[12];
    uint32_t count;
};

static bool is_asynchronous(const struct parallel_job *s)
{
    return pipeline_is_asynchronous(s->parallel->schedule);
}

static struct parallel_job_unit begin_unit(struct parallel_job *s, uint32_t r, enum plan_pass pass, bool ends_minibatch)
{
    plan_builder_unit_begin(s->builder, s->index, r, pass, ends_minibatch);
    struct parallel_job_stage *stage = &s->stages[s->of[r].stage];
    return (struct parallel_job_unit){.s = s, .chunk = &s->of[r], .stage = stage, .job = s->job, .pass = pass, .r = r,
                                      .gang = stage->gang, .peer = PLAN_NONE};
}

/* Returns the gang of the current microbatch. */
static uint32_t gang_in_turn(const struct parallel_job *s, const struct parallel_job_stage *stage)
{
    return stage->first_turn + (uint32_t)(s->microbatch % stage->turns);
}

/* Begins a pass over microbatch n, or slice n. */
static struct parallel_job_unit begin_pass(struct parallel_job *s, uint32_t r, enum plan_pass pass, uint32_t n)
{
    bool ends_minibatch = parallel_has_own_pace(s->parallel) && pass == PLAN_BACKWARD && r == 0;
    struct parallel_job_unit u = begin_unit(s, r, pass, ends_minibatch);
    u.gang = gang_in_turn(s, u.stage);
    u.slice = n % parallel_slices(s->parallel);
    u.job = parallel_slice_in(s->job, u.slice, &s->sliced);
    return u;
}

static void end_unit(struct parallel_job_unit *u)
{
    struct plan_builder *builder = u->s->builder;
    plan_builder_gang_task(builder, plan_builder_unit_end(builder), u->gang, u->slots, u->slot_count);
    if (u->peer != PLAN_NONE) plan_builder_peer(builder, u->peer);
}

/* --- accesses ------------------------------------------------------------------------------- */

static uint32_t buffer(const struct parallel_job_unit *u, uint32_t kind, uint32_t chunk, uint32_t variant, uint64_t bytes)
{
    struct plan_buffer b = {.kind = kind, .job = u->s->index, .shard = chunk, .variant = variant, .on_device = true,
                            .bytes = bytes};
    return plan_builder_buffer(u->s->builder, &b);
}

/* Returns a buffer of host memory or storage, one per rank. */
static uint32_t host_buffer(const struct parallel_job_unit *u, uint32_t kind, uint32_t variant, uint64_t bytes)
{
    struct plan_buffer b = {.kind = kind, .job = u->s->index, .shard = u->r, .variant = variant, .bytes = bytes};
    return plan_builder_buffer(u->s->builder, &b);
}

static void add_access(struct accesses *a, uint32_t buffer_index, uint32_t flags)
{
    assert(a->count < ARRAY_COUNT(a->of));
    a->of[a->count++] = (struct plan_access){.buffer = buffer_index, .flags = flags};
}

static void add_slot(struct parallel_job_unit *u, uint32_t slot)
{
    assert(u->slot_count < ARRAY_COUNT(u->slots));
    u->slots[u->slot_count++] = slot;
}

/* Adds an access. A slot that it acquires has `bytes` at `offset`. */
static void add_placed(struct parallel_job_unit *u, struct accesses *a, uint32_t buffer_index, uint32_t flags, uint64_t offset,
                       uint64_t bytes)
{
    add_access(a, buffer_index, flags);
    if (!(flags & ACCESS_ACQUIRE)) return;
    add_slot(u, plan_builder_slot(u->s->builder, offset, parallel_job_range_bytes(bytes)));
}

static void access_state(struct parallel_job_unit *u, struct accesses *a, uint32_t flags)
{
    uint64_t bytes = u->chunk->state_bytes;
    add_placed(u, a, buffer(u, BUFFER_STATE, u->r, 0, bytes), flags, u->chunk->state_offset, bytes);
}

static void access_gradient(struct parallel_job_unit *u, struct accesses *a, uint32_t flags)
{
    uint64_t bytes = u->chunk->gradient_bytes;
    add_placed(u, a, buffer(u, BUFFER_GRADIENT, u->r, 0, bytes), flags, u->chunk->gradient_offset, bytes);
}

/* Accesses the partial sums of the gradient, where it is added up as a tree. */
static void access_levels(struct parallel_job_unit *u, struct accesses *a, uint32_t flags)
{
    uint64_t bytes = u->chunk->level_bytes;
    if (bytes == 0) return;
    add_placed(u, a, buffer(u, BUFFER_GRADIENT, u->r, PLAN_GRADIENT_LEVELS, bytes), flags, u->chunk->level_offset, bytes);
}

/* Accesses whole weights or a gradient in slot `turn` of a ring. */
static void access_ring(struct parallel_job_unit *u, struct accesses *a, uint32_t kind, const struct parallel_job_ring *ring,
                        uint32_t turn, uint64_t bytes, uint32_t flags)
{
    uint32_t slot = turn % ring->slots, variant = slot + (kind == BUFFER_GRADIENT ? 1 : 0);
    add_placed(u, a, buffer(u, kind, u->r, variant, bytes), flags, ring->offset + slot * ring->bytes, bytes);
}

static void access_version(struct parallel_job_unit *u, struct accesses *a, uint64_t version, uint32_t flags)
{
    const struct parallel_job_chunk *chunk = u->chunk;
    uint32_t slot = (uint32_t)(version % chunk->versions);
    uint64_t offset = chunk->version_offset + slot * parallel_job_range_bytes(chunk->version_bytes);
    add_placed(u, a, buffer(u, BUFFER_PARAMETERS, u->r, slot, chunk->version_bytes), flags, offset, chunk->version_bytes);
}

static void access_weights(struct parallel_job_unit *u, struct accesses *a)
{
    struct parallel_job_ring *ring = &u->stage->weights;
    if (u->chunk->versions > 0)
        access_version(u, a, u->chunk->version, ACCESS_READ | (u->chunk->version_ends ? ACCESS_RELEASE : 0));
    else if (u->chunk->gathers)
        access_ring(u, a, BUFFER_PARAMETERS, ring, ring->given++, u->chunk->whole_weight_bytes, LAST);
    else
        access_state(u, a, ACCESS_READ);
}

static void access_sum(struct parallel_job_unit *u, struct accesses *a)
{
    struct parallel_job_ring *ring = &u->stage->gradients;
    if (u->chunk->scatters)
        access_ring(u, a, BUFFER_GRADIENT, ring, ring->taken++, u->chunk->whole_gradient_bytes, MAKE);
    else if (!parallel_offloads(u->s->parallel))
        access_gradient(u, a, CHANGE);
}

static uint32_t shares(const struct parallel_job_unit *u)
{
    const struct rank_state *host = &u->chunk->host;
    return host_buffer(u, u->s->parallel->storage ? BUFFER_STORED : BUFFER_STATE, 0,
                       host->weight_bytes + host->state_bytes);
}

/* Accesses the next slot of a ring in host memory. Variant 0 has only weights, variant 1 the whole state. */
static void access_staged(struct parallel_job_unit *u, struct accesses *a, struct parallel_job_ring *ring, uint32_t variant,
                          uint64_t bytes, uint32_t flags)
{
    if (flags & ACCESS_ACQUIRE) ring->taken++;
    uint32_t slot = (ring->taken - 1) % ring->slots;
    add_placed(u, a, host_buffer(u, BUFFER_STAGED, variant, bytes), flags, ring->offset + slot * ring->bytes, bytes);
}

/* Returns a buffer of the whole job. */
static uint32_t job_buffer(const struct parallel_job_unit *u, uint32_t kind, bool on_device, uint64_t bytes)
{
    struct plan_buffer b = {.kind = kind, .job = u->s->index, .shard = PLAN_NONE, .on_device = on_device, .bytes = bytes};
    return plan_builder_buffer(u->s->builder, &b);
}

/* Returns the loss of a held-out minibatch; on the device with its partial sums. */
static uint32_t held_out_loss(const struct parallel_job_unit *u, bool on_device)
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

/* Accesses the minibatch's data, on a stage of the first or the last chunk of a job that is carried out. In asynchronous
 * schedules minibatches take turns. */
static void access_batch(struct parallel_job_unit *u, struct accesses *a, uint32_t flags)
{
    uint64_t bytes = job_replica_batch_bytes(u->s->job);
    if (!u->s->carried_out || !u->chunk->has_batch) return;
    uint32_t slot = is_asynchronous(u->s) ? (uint32_t)(u->s->microbatch / microbatches_each(u->s) % u->stage->batches) : 0;
    struct plan_buffer b = {.kind = BUFFER_BATCH, .job = u->s->index, .shard = PLAN_NONE, .variant = slot, .on_device = true,
                            .bytes = bytes};
    add_placed(u, a, plan_builder_buffer(u->s->builder, &b), flags,
               u->stage->batch_offset + slot * parallel_job_range_bytes(bytes), bytes);
}

/* Returns ACCESS_RELEASE for a backward pass of an asynchronous schedule that reads a minibatch's data last. */
static uint32_t ends_batch(const struct parallel_job_unit *u)
{
    const uint64_t each = microbatches_each(u->s);
    return is_asynchronous(u->s) && u->s->microbatch % each == each - 1 ? ACCESS_RELEASE : 0;
}

/* Accesses the minibatch's loss, on the last chunk's stage. */
static void access_loss(struct parallel_job_unit *u, struct accesses *a, uint32_t flags)
{
    uint64_t bytes = u->chunk->loss_bytes;
    if (!u->s->carried_out || !u->chunk->has_loss) return;
    add_placed(u, a, job_buffer(u, BUFFER_LOSS, true, bytes), flags, u->stage->loss_offset, bytes);
}

/* Accesses the loss of a held-out minibatch, on the last chunk's stage of a job that is evaluated. */
static void access_held_out_loss(struct parallel_job_unit *u, struct accesses *a, uint32_t flags)
{
    if (!u->s->carried_out || !u->chunk->has_loss || u->s->job->evaluation.every == 0) return;
    add_placed(u, a, held_out_loss(u, true), flags, u->stage->held_out_offset, u->chunk->loss_bytes);
}

/* Accesses the squares of all tensors' gradients, on each stage of a job that clips. */
static void access_norms(struct parallel_job_unit *u, struct accesses *a, uint32_t flags)
{
    uint64_t bytes = memory_norm_bytes(&u->s->job->network);
    if (!job_clips(u->s->job)) return;
    add_placed(u, a, job_buffer(u, BUFFER_NORMS, true, bytes), flags, u->stage->norms_offset, bytes);
}

/* Returns true if the head reads the embedding's table, and the embedding's step the head's gradient of it. */
static bool shares_table(const struct parallel_job *s)
{
    return s->carried_out && s->job->network.tied_head && s->joined_bytes == 0 && s->chunks > 1;
}

/* Reads another chunk's state or gradient. */
static void access_other(struct parallel_job_unit *u, struct accesses *a, uint32_t kind, uint32_t chunk, uint64_t bytes)
{
    add_access(a, buffer(u, kind, chunk, 0, bytes), ACCESS_READ);
}

static void access_workspace(struct parallel_job_unit *u, struct accesses *a, uint32_t flags)
{
    uint64_t bytes = u->chunk->workspace_bytes;
    add_placed(u, a, buffer(u, BUFFER_WORKSPACE, u->r, 0, bytes), flags, u->stage->workspace_offset, bytes);
}

/* Accesses data of chunk r; none enters chunk 0 or leaves the last chunk. */
static void access_thing(struct parallel_job_unit *u, struct accesses *a, enum parallel_job_thing thing, uint32_t r,
                         uint32_t microbatch, uint32_t flags)
{
    struct parallel_job *s = u->s;
    const bool crosses = thing == PARALLEL_JOB_BOUNDARY || thing == PARALLEL_JOB_GRADIENT;
    if (r == s->chunks || (r == 0 && crosses)) return;
    struct parallel_job_pool *pool = &s->of[r].pools[thing];
    if (thing == PARALLEL_JOB_HANDOVER && pool->bytes == 0) return;
    uint32_t variant = pool->variant_of[microbatch], place = variant;
    uint32_t first = thing == PARALLEL_JOB_HANDOVER ? 1 : 0; /* scratch is a workspace, too */
    bool in_front = s->of[r].stage != u->chunk->stage;
    struct parallel_job_variant unknown = {0}, *known = variant < pool->variant_room ? &pool->variants[variant] : &unknown;
    if (known->buffer == 0) known->buffer = 1 + buffer(u, thing_buffers[thing], r, first + variant, pool->bytes);
    add_access(a, known->buffer - 1, flags);
    if (!(flags & ACCESS_ACQUIRE)) return;
    if (pool->front > 0) place = in_front ? variant % pool->front : variant / pool->front;
    uint64_t range = parallel_job_range_bytes(pool->bytes), offset = pool->offset[in_front] + place * range;
    uint32_t *slot = &known->slots[in_front];
    if (*slot == 0) *slot = 1 + plan_builder_slot(s->builder, offset, range);
    add_slot(u, *slot - 1);
}

/* Accesses a backward pass's inputs. `release`: for the last time. */
static void access_inputs(struct parallel_job_unit *u, struct accesses *a, uint32_t n, uint32_t release)
{
    access_thing(u, a, PARALLEL_JOB_BOUNDARY, u->r, n, ACCESS_READ | release);
    access_thing(u, a, PARALLEL_JOB_ACTIVATIONS, u->r, n, ACCESS_READ | release);
    access_thing(u, a, PARALLEL_JOB_GRADIENT, u->r + 1, n, ACCESS_READ | release);
}

/* --- operations ----------------------------------------------------------------------------- */

static void add_compute(struct parallel_job_unit *u, enum plan_pass pass, uint32_t work, const struct accesses *a)
{
    struct plan_op op = {.kind = OP_COMPUTE, .stream = STREAM_COMPUTE, .pass = (uint8_t)pass, .work = work,
                         .slice = u->slice};
    plan_builder_op(u->s->builder, &op, a->of, a->count, NULL, 0);
}

static uint32_t work_of(const struct parallel_job_unit *u, enum parallel_pass pass)
{
    struct parallel_job_work *known = &u->chunk->works[pass];
    bool sliced = u->s->parallel->slices > 1;
    if (known->known && !sliced) return known->work;
    struct work_item items[PARALLEL_WORK_MAX];
    uint32_t count = parallel_work(u->job, u->chunk->layers, pass, items);
    *known = (struct parallel_job_work){true, count > 0 ? plan_builder_work(u->s->builder, items, count) : PLAN_NONE};
    return known->work;
}

static void add_collective(struct parallel_job_unit *u, enum collective_kind kind, enum plan_axis axis, uint32_t stream,
                           uint32_t rounds, uint64_t bytes, const struct accesses *a)
{
    struct plan_op op = {.kind = OP_COLLECTIVE, .stream = (uint8_t)stream, .collective = (uint8_t)kind,
                         .axes = (uint8_t)(1u << axis), .rounds = rounds, .bytes = bytes, .work = PLAN_NONE};
    plan_builder_op(u->s->builder, &op, a->of, a->count, NULL, 0);
}

static void add_in_data_group(struct parallel_job_unit *u, enum collective_kind kind, uint64_t bytes, const struct accesses *a)
{
    add_collective(u, kind, AXIS_DATA, STREAM_DATA, 1, bytes, a);
}

static const struct parallel_job_exchange *exchange_of(const struct parallel_job_unit *u, enum parallel_pass pass)
{
    struct parallel_job_exchange *known = &u->chunk->exchanges[pass];
    bool sliced = u->s->parallel->slices > 1;
    if (!known->known || sliced) known->count = parallel_collectives(u->job, u->chunk->layers, pass, known->list);
    known->known = true;
    return known;
}

/* Adds the tensor group's overlapping or other collectives, which change the buffer `on` in place. */
static void add_tensor_collectives(struct parallel_job_unit *u, enum parallel_pass pass, bool overlapping, uint32_t stream,
                                   uint32_t on)
{
    const struct parallel_job_exchange *exchange = exchange_of(u, pass);
    struct accesses a = {0};
    add_access(&a, on, CHANGE);
    for (uint32_t i = 0; i < exchange->count; i++) {
        const struct parallel_collective *c = &exchange->list[i];
        if (c->overlaps == overlapping && c->bytes > 0)
            add_collective(u, c->kind, AXIS_TENSOR, stream, c->count, c->bytes, &a);
    }
}

/* Makes a blocking stage acquire the place for fetched data on the compute stream, between passes. */
static void hold_place(struct parallel_job_unit *u, enum parallel_job_thing thing, uint32_t r, uint32_t microbatch)
{
    struct accesses held = {0};
    access_thing(u, &held, thing, r, microbatch, MAKE);
    add_compute(u, u->pass, PLAN_NONE, &held);
}

/* Fetches data of chunk `from` from another stage. Ranks that receive parts gather them. */
static void add_fetch(struct parallel_job_unit *u, enum parallel_job_thing thing, uint32_t r, uint32_t microbatch,
                      uint32_t from)
{
    struct accesses a = {0};
    const struct parallel_job *s = u->s;
    bool blocking = s->parallel->blocking;
    if (from >= s->chunks || s->of[from].stage == u->chunk->stage) return;
    if (blocking) hold_place(u, thing, r, microbatch);
    access_thing(u, &a, thing, r, microbatch, LAST);
    access_thing(u, &a, thing, r, microbatch, blocking ? ACCESS_WRITE : MAKE);
    uint64_t layer = s->of[r].layers.first - 1;
    struct plan_op op = {.kind = OP_COPY, .stream = STREAM_P2P, .work = PLAN_NONE,
                         .bytes = parallel_sent_bytes(u->job, layer)};
    plan_builder_op(s->builder, &op, a.of, a.count, NULL, 0);
    if (s->parallel->scatter) {
        struct accesses whole = {0};
        add_access(&whole, a.of[1].buffer, CHANGE);
        add_collective(u, COLLECTIVE_ALL_GATHER, AXIS_TENSOR, STREAM_GROUP, 1, parallel_boundary_bytes(u->job, layer),
                       &whole);
    }
    u->peer = gang_in_turn(s, &s->stages[s->of[from].stage]);
}

static void add_copy(struct parallel_job_unit *u, enum plan_stream_kind stream, uint64_t bytes, const struct accesses *a)
{
    struct plan_op op = {.kind = OP_COPY, .stream = (uint8_t)stream, .work = PLAN_NONE, .bytes = bytes};
    plan_builder_op(u->s->builder, &op, a->of, a->count, NULL, 0);
}

/* Reads from storage into host memory. */
static void add_read(struct parallel_job_unit *u, struct parallel_job_ring *ring, uint32_t variant, uint64_t bytes)
{
    struct accesses a = {0};
    add_access(&a, shares(u), ACCESS_READ);
    access_staged(u, &a, ring, variant, bytes, MAKE);
    add_copy(u, STREAM_READ, bytes, &a);
}

static void access_raised(struct parallel_job_unit *u, struct accesses *a)
{
    uint64_t bytes = u->chunk->host.weight_bytes;
    if (!u->s->parallel->storage) {
        add_access(a, shares(u), ACCESS_READ);
        return;
    }
    add_read(u, &u->stage->staged_weights, 0, bytes);
    access_staged(u, a, &u->stage->staged_weights, 0, bytes, LAST);
}

/* --- passes --------------------------------------------------------------------------------- */

/* Copies activations to the rank's host and frees their place; add_swap_in() copies them back. */
static void add_swap_out(struct parallel_job_unit *u, uint32_t n)
{
    struct accesses a = {0};
    uint64_t bytes = u->chunk->pools[PARALLEL_JOB_ACTIVATIONS].bytes;
    if (!u->chunk->swaps) return;
    access_thing(u, &a, PARALLEL_JOB_ACTIVATIONS, u->r, n, LAST);
    add_access(&a, host_buffer(u, BUFFER_ACTIVATIONS, 0, bytes), ACCESS_WRITE);
    add_copy(u, STREAM_D2H, bytes, &a);
}

static void add_swap_in(struct parallel_job_unit *u, uint32_t n)
{
    struct accesses a = {0};
    uint64_t bytes = u->chunk->pools[PARALLEL_JOB_ACTIVATIONS].bytes;
    if (!u->chunk->swaps) return;
    add_access(&a, host_buffer(u, BUFFER_ACTIVATIONS, 0, bytes), ACCESS_READ);
    access_thing(u, &a, PARALLEL_JOB_ACTIVATIONS, u->r, n, MAKE);
    add_copy(u, STREAM_H2D, bytes, &a);
}

static void emit_forward(struct parallel_job *s, uint32_t r, uint32_t n)
{
    struct parallel_job_unit u = begin_pass(s, r, PLAN_FORWARD, n);
    struct accesses a = {0};
    add_fetch(&u, PARALLEL_JOB_BOUNDARY, r, n, r - 1);
    access_weights(&u, &a);
    access_thing(&u, &a, PARALLEL_JOB_BOUNDARY, r, n, ACCESS_READ);
    access_thing(&u, &a, PARALLEL_JOB_ACTIVATIONS, r, n, MAKE);
    access_thing(&u, &a, PARALLEL_JOB_BOUNDARY, r + 1, n, MAKE);
    uint32_t output = a.of[a.count - 1].buffer; /* the activations if no boundary leaves */
    if (r == 0) access_batch(&u, &a, ACCESS_READ);
    access_workspace(&u, &a, MAKE | ACCESS_RELEASE);
    add_compute(&u, PLAN_FORWARD, work_of(&u, PARALLEL_FORWARD), &a);
    add_tensor_collectives(&u, PARALLEL_FORWARD, false, STREAM_COMPUTE, output);
    add_tensor_collectives(&u, PARALLEL_FORWARD, true, STREAM_GROUP, output);
    add_swap_out(&u, n);
    end_unit(&u);
}

/* The collectives of a tensor group follow; the executor carries them out within the pass. */
static void emit_backward_in_one(struct parallel_job_unit *u, uint32_t n)
{
    struct accesses a = {0};
    access_weights(u, &a);
    access_inputs(u, &a, n, ACCESS_RELEASE);
    access_sum(u, &a);
    access_levels(u, &a, CHANGE);
    access_thing(u, &a, PARALLEL_JOB_GRADIENT, u->r, n, MAKE);
    uint32_t output = a.of[a.count - 1].buffer; /* the parameters' gradient if no boundary's leaves */
    access_batch(u, &a, ACCESS_READ | ends_batch(u));
    access_loss(u, &a, CHANGE);
    if (u->chunk->has_loss && shares_table(u->s) && !u->chunk->gathers) access_other(u, &a, BUFFER_STATE, 0, u->s->of[0].state_bytes);
    access_workspace(u, &a, MAKE | ACCESS_RELEASE);
    add_compute(u, PLAN_BACKWARD, work_of(u, PARALLEL_BACKWARD), &a);
    add_tensor_collectives(u, PARALLEL_INPUT, false, STREAM_COMPUTE, output);
    add_tensor_collectives(u, PARALLEL_WEIGHT, false, STREAM_COMPUTE, output);
}

/* Chunks collectives during the second computation. */
static void emit_backward_in_three(struct parallel_job_unit *u, uint32_t n)
{
    struct accesses input = {0}, weight = {0}, output = {0};
    uint32_t scratch = buffer(u, BUFFER_WORKSPACE, u->r, 0, u->chunk->workspace_bytes);
    access_weights(u, &input);
    access_inputs(u, &input, n, 0);
    access_workspace(u, &input, MAKE);
    add_compute(u, PLAN_BACKWARD_INPUT, work_of(u, PARALLEL_INPUT), &input);
    add_tensor_collectives(u, PARALLEL_INPUT, false, STREAM_COMPUTE, scratch);
    add_tensor_collectives(u, PARALLEL_WEIGHT, false, STREAM_COMPUTE, scratch);
    add_tensor_collectives(u, PARALLEL_INPUT, true, STREAM_GROUP, scratch);
    add_tensor_collectives(u, PARALLEL_WEIGHT, true, STREAM_GROUP, scratch);
    access_inputs(u, &weight, n, ACCESS_RELEASE);
    access_sum(u, &weight);
    add_compute(u, PLAN_BACKWARD_WEIGHT, work_of(u, PARALLEL_WEIGHT), &weight);
    access_workspace(u, &output, LAST);
    access_thing(u, &output, PARALLEL_JOB_GRADIENT, u->r, n, MAKE);
    add_compute(u, PLAN_BACKWARD, PLAN_NONE, &output);
}

static void emit_backward(struct parallel_job *s, uint32_t r, uint32_t n)
{
    struct parallel_job_unit u = begin_pass(s, r, PLAN_BACKWARD, n);
    add_fetch(&u, PARALLEL_JOB_GRADIENT, r + 1, n, r + 1);
    (s->parallel->tensor == 1 || s->carried_out ? emit_backward_in_one : emit_backward_in_three)(&u, n);
    end_unit(&u);
}

static void emit_input(struct parallel_job *s, uint32_t r, uint32_t n)
{
    struct parallel_job_unit u = begin_pass(s, r, PLAN_BACKWARD_INPUT, n);
    struct accesses a = {0};
    add_fetch(&u, PARALLEL_JOB_GRADIENT, r + 1, n, r + 1);
    access_weights(&u, &a);
    access_inputs(&u, &a, n, 0);
    uint32_t output = a.of[r > 0 ? 2 : 1].buffer; /* the activations if no gradient leaves */
    access_thing(&u, &a, PARALLEL_JOB_GRADIENT, r, n, MAKE);
    if (r > 0) output = a.of[a.count - 1].buffer;
    access_thing(&u, &a, PARALLEL_JOB_HANDOVER, r, n, MAKE);
    if (s->carried_out) access_gradient(&u, &a, CHANGE);
    access_batch(&u, &a, ACCESS_READ);
    access_loss(&u, &a, CHANGE);
    if (u.chunk->has_loss && shares_table(s)) access_other(&u, &a, BUFFER_STATE, 0, s->of[0].state_bytes);
    access_workspace(&u, &a, MAKE | ACCESS_RELEASE);
    add_compute(&u, PLAN_BACKWARD_INPUT, work_of(&u, PARALLEL_INPUT), &a);
    add_tensor_collectives(&u, PARALLEL_INPUT, false, STREAM_COMPUTE, output);
    add_tensor_collectives(&u, PARALLEL_INPUT, true, STREAM_GROUP, output);
    end_unit(&u);
}

/* The collectives gather the kept activations. Carried out, units find tensors in the state, and the first chunk's reads data. */
static void emit_weight(struct parallel_job *s, uint32_t r, uint32_t n)
{
    struct parallel_job_unit u = begin_pass(s, r, PLAN_BACKWARD_WEIGHT, n);
    struct accesses a = {0};
    access_inputs(&u, &a, n, ACCESS_RELEASE);
    uint32_t kept = a.of[r > 0 ? 1 : 0].buffer;
    add_tensor_collectives(&u, PARALLEL_WEIGHT, false, STREAM_COMPUTE, kept);
    add_tensor_collectives(&u, PARALLEL_WEIGHT, true, STREAM_COMPUTE, kept);
    access_sum(&u, &a);
    access_thing(&u, &a, PARALLEL_JOB_HANDOVER, r, n, LAST);
    if (s->carried_out) access_weights(&u, &a);
    if (r == 0) access_batch(&u, &a, ACCESS_READ);
    access_workspace(&u, &a, MAKE | ACCESS_RELEASE);
    add_compute(&u, PLAN_BACKWARD_WEIGHT, work_of(&u, PARALLEL_WEIGHT), &a);
    end_unit(&u);
}

void parallel_job_emit_pass(struct parallel_job *s, const struct pipeline_step *step)
{
    static void (*const emits[PIPELINE_PASSES])(struct parallel_job *s, uint32_t r, uint32_t n) = {
        [PIPELINE_FORWARD] = emit_forward,
        [PIPELINE_BACKWARD] = emit_backward,
        [PIPELINE_INPUT] = emit_input,
        [PIPELINE_WEIGHT] = emit_weight,
    };
    if (parallel_job_repeat_pass(s, step)) return;
    emits[step->pass](s, step->chunk, step->microbatch);
    parallel_job_cache_pass(s, step);
}

/* --- exchanges of data-parallel ranks ------------------------------------------------------- */

/* Copies weights up from the host; ranks that copy shares gather them. */
static void emit_raise(struct parallel_job *s, const struct pipeline_step *step)
{
    struct parallel_job_unit u = begin_unit(s, step->chunk, PLAN_GATHER, false);
    struct accesses up = {0}, whole = {0};
    struct parallel_job_ring *ring = &u.stage->weights;
    uint32_t turn = ring->taken++;
    uint64_t bytes = u.chunk->whole_weight_bytes;
    access_raised(&u, &up);
    access_ring(&u, &up, BUFFER_PARAMETERS, ring, turn, bytes, MAKE);
    add_copy(&u, STREAM_H2D, u.chunk->host.weight_bytes, &up);
    access_ring(&u, &whole, BUFFER_PARAMETERS, ring, turn, bytes, CHANGE);
    if (parallel_splits(s->parallel, ZERO_WEIGHTS)) add_in_data_group(&u, COLLECTIVE_ALL_GATHER, bytes, &whole);
    if (step->pass != PIPELINE_FORWARD) add_swap_in(&u, step->microbatch);
    end_unit(&u);
}

void parallel_job_emit_gather(struct parallel_job *s, const struct pipeline_step *step)
{
    if (s->parallel->offload == OFFLOAD_WEIGHTS) {
        emit_raise(s, step);
        return;
    }
    struct parallel_job_unit u = begin_unit(s, step->chunk, PLAN_GATHER, false);
    struct accesses a = {0}, of_table = {0};
    uint64_t bytes = u.chunk->whole_weight_bytes, table_bytes = u.chunk->gathered_table_bytes;
    uint32_t turn = u.stage->weights.taken++;
    access_state(&u, &a, ACCESS_READ);
    access_ring(&u, &a, BUFFER_PARAMETERS, &u.stage->weights, turn, bytes, MAKE);
    add_in_data_group(&u, COLLECTIVE_ALL_GATHER, bytes - table_bytes, &a);
    if (table_bytes > 0) {
        access_other(&u, &of_table, BUFFER_STATE, 0, s->of[0].state_bytes);
        access_ring(&u, &of_table, BUFFER_PARAMETERS, &u.stage->weights, turn, bytes, CHANGE);
        add_in_data_group(&u, COLLECTIVE_ALL_GATHER, table_bytes, &of_table);
    }
    end_unit(&u);
}

/* Adds work of the host's processor. */
static void add_step(struct parallel_job_unit *u, enum plan_pass pass, enum parallel_pass work, const struct accesses *a)
{
    struct plan_op op = {.kind = OP_COMPUTE, .stream = STREAM_CPU, .pass = (uint8_t)pass, .work = work_of(u, work)};
    plan_builder_op(u->s->builder, &op, a->of, a->count, NULL, 0);
}

/* Copies a gradient's share to the host, which keeps it or adds it to the minibatch's sum, and frees its place. */
static void emit_drain(struct parallel_job *s, uint32_t r)
{
    struct parallel_job_unit u = begin_unit(s, r, PLAN_REDUCE, false);
    struct accesses reduced = {0}, down = {0}, sum = {0};
    struct parallel_job_ring *ring = &u.stage->gradients;
    uint32_t turn = ring->given++;
    bool sums = parallel_sums_on_host(s->job);
    uint64_t bytes = u.chunk->whole_gradient_bytes, share = u.chunk->host.gradient_bytes;
    access_ring(&u, &reduced, BUFFER_GRADIENT, ring, turn, bytes, CHANGE);
    if (u.chunk->joins && parallel_splits(s->parallel, ZERO_GRADIENTS))
        add_in_data_group(&u, COLLECTIVE_REDUCE_SCATTER, bytes, &reduced);
    access_ring(&u, &down, BUFFER_GRADIENT, ring, turn, bytes, LAST);
    add_access(&down, host_buffer(&u, BUFFER_GRADIENT, sums, share), ACCESS_WRITE);
    add_copy(&u, STREAM_D2H, share, &down);
    if (sums) {
        uint64_t sum_bytes = parallel_host_sum_bytes(s->job, u.chunk->layers);
        add_access(&sum, host_buffer(&u, BUFFER_GRADIENT, 0, sum_bytes), CHANGE);
        add_access(&sum, host_buffer(&u, BUFFER_GRADIENT, 1, share), ACCESS_READ);
        add_step(&u, PLAN_REDUCE, PARALLEL_SUM, &sum);
    }
    end_unit(&u);
}

void parallel_job_emit_reduce(struct parallel_job *s, uint32_t r)
{
    if (parallel_offloads(s->parallel)) {
        emit_drain(s, r);
        return;
    }
    struct parallel_job_unit u = begin_unit(s, r, PLAN_REDUCE, false);
    struct accesses a = {0};
    struct parallel_job_ring *ring = &u.stage->gradients;
    uint64_t bytes = u.chunk->whole_gradient_bytes;
    if (u.chunk->scatters) access_ring(&u, &a, BUFFER_GRADIENT, ring, ring->given++, bytes, LAST);
    access_gradient(&u, &a, CHANGE);
    bool shares = parallel_splits(s->parallel, ZERO_STATES);
    if (compression_is_set(&s->job->compression[COMPRESSION_GRADIENTS])) {
        add_compute(&u, PLAN_REDUCE, work_of(&u, PARALLEL_ENCODE), &a);
        bytes = parallel_reduced_bytes(s->job, u.chunk->layers);
    }
    add_in_data_group(&u, shares ? COLLECTIVE_REDUCE_SCATTER : COLLECTIVE_ALL_REDUCE, bytes, &a);
    end_unit(&u);
}

void parallel_job_emit_join(struct parallel_job *s)
{
    struct parallel_job_unit u = begin_unit(s, 0, PLAN_JOIN, false);
    struct accesses a = {0};
    uint32_t last = s->chunks - 1;
    u.gang = s->ends_gang;
    add_access(&a, buffer(&u, BUFFER_GRADIENT, 0, 0, s->of[0].gradient_bytes), CHANGE);
    add_access(&a, buffer(&u, BUFFER_GRADIENT, last, 0, s->of[last].gradient_bytes), CHANGE);
    add_collective(&u, COLLECTIVE_ALL_REDUCE, AXIS_ENDS, STREAM_DATA, 1, s->joined_bytes, &a);
    end_unit(&u);
}

/* Updates on the host: sums whole gradients of the ranks, reads and writes back stored states. */
static void emit_host_update(struct parallel_job *s, uint32_t r, bool ends_minibatch)
{
    struct parallel_job_unit u = begin_unit(s, r, PLAN_UPDATE, ends_minibatch);
    struct accesses step = {0}, back = {0}, joined = {0};
    const struct rank_state *host = &u.chunk->host;
    struct parallel_job_ring *ring = &u.stage->staged_states;
    uint64_t bytes = host->weight_bytes + host->state_bytes;
    uint32_t gradient = host_buffer(&u, BUFFER_GRADIENT, 0, parallel_host_gradient_bytes(s->job, u.chunk->layers));
    bool stored = s->parallel->storage;
    add_access(&joined, gradient, CHANGE);
    if (u.chunk->joins && parallel_joins_on_hosts(s->parallel))
        add_in_data_group(&u, COLLECTIVE_ALL_REDUCE, host->gradient_bytes, &joined);
    if (stored) {
        add_read(&u, ring, 1, bytes);
        access_staged(&u, &step, ring, 1, bytes, CHANGE);
    } else {
        add_access(&step, shares(&u), CHANGE);
    }
    add_access(&step, gradient, ACCESS_READ);
    add_step(&u, PLAN_UPDATE, PARALLEL_UPDATE, &step);
    if (stored) {
        access_staged(&u, &back, ring, 1, bytes, LAST);
        add_access(&back, shares(&u), ACCESS_WRITE);
        add_copy(&u, STREAM_WRITE, bytes, &back);
    }
    end_unit(&u);
}

void parallel_job_emit_refresh(struct parallel_job *s, uint32_t r)
{
    if (s->of[r].whole_weight_bytes == 0) return;
    struct parallel_job_unit u = begin_unit(s, r, PLAN_REFRESH, false);
    struct accesses up = {0}, whole = {0};
    access_raised(&u, &up);
    access_state(&u, &up, ACCESS_WRITE);
    add_copy(&u, STREAM_H2D, u.chunk->host.weight_bytes, &up);
    access_state(&u, &whole, CHANGE);
    if (u.chunk->joins && !u.chunk->gathers)
        add_in_data_group(&u, COLLECTIVE_ALL_GATHER, u.chunk->whole_weight_bytes, &whole);
    end_unit(&u);
}

/* Copies the minibatch's loss to the host. */
static void add_loss(struct parallel_job_unit *u)
{
    struct accesses a = {0};
    if (!u->s->carried_out || !u->chunk->has_loss) return;
    access_loss(u, &a, ACCESS_READ);
    add_access(&a, job_buffer(u, BUFFER_LOSS, false, sizeof(double)), ACCESS_WRITE);
    add_copy(u, STREAM_D2H, sizeof(double), &a);
}

/* Copies squares of gradients between host and device: the chunk's to the host, or all to the device. */
static void add_norms_copy(struct parallel_job_unit *u, bool up)
{
    const struct network *network = &u->s->job->network;
    const struct parallel_layers layers = u->chunk->layers;
    const uint64_t all = memory_norm_bytes(network);
    const uint64_t offset = up ? 0 : memory_tensor_count(network, 0, layers.first) * sizeof(double);
    const uint64_t bytes = up ? all : memory_tensor_count(network, layers.first, layers.count) * sizeof(double);
    const uint32_t host = job_buffer(u, BUFFER_NORMS, false, all), device = job_buffer(u, BUFFER_NORMS, true, all);
    struct accesses a = {.of = {{.buffer = up ? host : device, .flags = ACCESS_READ, .offset_bytes = offset},
                                {.buffer = up ? device : host, .flags = ACCESS_WRITE, .offset_bytes = offset}},
                         .count = 2};
    add_copy(u, up ? STREAM_H2D : STREAM_D2H, bytes, &a);
}

/* Accesses the head's gradient of a tied table on the first chunk's stage, which the first chunk adds to its own. */
static void access_table_gradient(struct parallel_job_unit *u, struct accesses *a)
{
    const struct parallel_job *s = u->s;
    if (u->r == 0 && shares_table(s))
        access_other(u, a, BUFFER_GRADIENT, s->chunks - 1, s->of[s->chunks - 1].gradient_bytes);
}

void parallel_job_emit_norm(struct parallel_job *s, uint32_t r)
{
    struct parallel_job_unit u = begin_unit(s, r, PLAN_NORM, false);
    struct accesses a = {0};
    access_gradient(&u, &a, r == 0 && shares_table(s) ? CHANGE : ACCESS_READ);
    access_norms(&u, &a, ACCESS_WRITE);
    access_table_gradient(&u, &a);
    add_compute(&u, PLAN_NORM, work_of(&u, PARALLEL_NORM), &a);
    add_loss(&u);
    add_norms_copy(&u, false);
    end_unit(&u);
}

/* Emits an update. If ranks have shares of states but whole weights, weights are gathered after it. */
void parallel_job_emit_update(struct parallel_job *s, uint32_t r, bool ends_minibatch)
{
    if (parallel_offloads(s->parallel)) {
        emit_host_update(s, r, ends_minibatch);
        return;
    }
    struct parallel_job_unit u = begin_unit(s, r, PLAN_UPDATE, ends_minibatch);
    struct accesses a = {0}, state = {0};
    access_state(&u, &a, CHANGE);
    access_gradient(&u, &a, CHANGE);
    if (u.chunk->versions == 1) {
        access_version(&u, &a, u.chunk->version, CHANGE);
    } else if (u.chunk->versions > 1) {
        access_version(&u, &a, u.chunk->version, ACCESS_READ | (u.chunk->version_ends ? ACCESS_RELEASE : 0));
        access_version(&u, &a, u.chunk->version + 1, MAKE);
    }
    if (job_clips(s->job)) add_norms_copy(&u, true);
    else access_table_gradient(&u, &a);
    access_norms(&u, &a, ACCESS_READ);
    add_tensor_collectives(&u, PARALLEL_UPDATE, false, STREAM_COMPUTE, a.of[1].buffer);
    add_tensor_collectives(&u, PARALLEL_UPDATE, true, STREAM_COMPUTE, a.of[1].buffer);
    add_compute(&u, PLAN_UPDATE, work_of(&u, PARALLEL_UPDATE), &a);
    if (!job_clips(s->job)) add_loss(&u);
    access_state(&u, &state, CHANGE);
    if (parallel_splits(s->parallel, ZERO_STATES) && !u.chunk->gathers && u.chunk->whole_weight_bytes > 0)
        add_in_data_group(&u, COLLECTIVE_ALL_GATHER, u.chunk->whole_weight_bytes, &state);
    end_unit(&u);
}

/* Reads a minibatch's data and copies them to the device. */
static void add_batch(struct parallel_job_unit *u)
{
    uint64_t bytes = job_replica_batch_bytes(u->s->job);
    uint32_t read = job_buffer(u, BUFFER_BATCH, false, bytes);
    struct accesses made = {0}, up = {0};
    struct plan_op op = {.kind = OP_COMPUTE, .stream = STREAM_HOST, .pass = PLAN_BATCH, .work = PLAN_NONE};
    add_access(&made, read, ACCESS_WRITE);
    plan_builder_op(u->s->builder, &op, made.of, made.count, NULL, 0);
    add_access(&up, read, ACCESS_READ);
    access_batch(u, &up, is_asynchronous(u->s) ? MAKE : ACCESS_WRITE);
    add_copy(u, STREAM_H2D, bytes, &up);
}

void parallel_job_emit_batch(struct parallel_job *s, uint32_t r)
{
    struct parallel_job_unit u = begin_unit(s, r, PLAN_BATCH, false);
    add_batch(&u);
    end_unit(&u);
}

/* --- evaluation ----------------------------------------------------------------------------- */

/* Passes forward over a held-out microbatch; the last chunk's pass adds to the loss. A replica's first pass brings the
 * data, and its last one copies the loss to the host. */
static void emit_evaluate(struct parallel_job *s, uint32_t r, uint32_t n, bool ends_minibatch)
{
    struct parallel_job_unit u = begin_unit(s, r, PLAN_EVALUATE, ends_minibatch);
    struct accesses a = {0}, loss = {0};
    u.gang = gang_in_turn(s, u.stage);
    if (u.chunk->brings_batch && n < u.stage->turns) add_batch(&u);
    add_fetch(&u, PARALLEL_JOB_BOUNDARY, r, n, r - 1);
    access_weights(&u, &a);
    access_thing(&u, &a, PARALLEL_JOB_BOUNDARY, r, n, LAST);
    access_thing(&u, &a, PARALLEL_JOB_BOUNDARY, r + 1, n, MAKE);
    access_batch(&u, &a, ACCESS_READ);
    access_held_out_loss(&u, &a, CHANGE);
    if (u.chunk->has_loss && shares_table(s) && !u.chunk->gathers)
        access_other(&u, &a, BUFFER_STATE, 0, s->of[0].state_bytes);
    access_workspace(&u, &a, MAKE | ACCESS_RELEASE);
    add_compute(&u, PLAN_EVALUATE, work_of(&u, PARALLEL_EVALUATE), &a);
    if (u.chunk->has_loss && n + u.stage->turns >= s->microbatches) {
        access_held_out_loss(&u, &loss, ACCESS_READ);
        add_access(&loss, held_out_loss(&u, false), ACCESS_WRITE);
        add_copy(&u, STREAM_D2H, sizeof(double), &loss);
    }
    end_unit(&u);
}

/* Returns how many microbatches pass a chunk before the next chunk begins: a turn of the stages, as far as there are
 * places for boundaries. */
static uint32_t held_out_at_once(const struct parallel_job *s)
{
    uint32_t count = s->parallel->pipeline;
    for (uint32_t r = 1; r < s->chunks; r++) count = min_u32(count, s->of[r].pools[PARALLEL_JOB_BOUNDARY].made);
    return count;
}

/* Places of boundaries are used in turn: none is in use between minibatches. */
static void assign_boundary(struct parallel_job *s, uint32_t r, uint32_t n)
{
    struct parallel_job_pool *pool = &s->of[r].pools[PARALLEL_JOB_BOUNDARY];
    if (s->parallel->replicated > 0) parallel_job_assign_place(s, r, PARALLEL_JOB_BOUNDARY, n);
    else pool->variant_of[n] = n % pool->made;
}

void parallel_job_emit_evaluation(struct parallel_job *s)
{
    const uint64_t minibatches = s->job->evaluation.minibatches;
    const uint32_t group = held_out_at_once(s), m = s->microbatches;
    for (uint64_t h = 0; h < minibatches; h++)
        for (uint32_t first = 0; first < m; first += group)
            for (uint32_t r = 0; r < s->chunks; r++)
                for (uint32_t n = first; n < min_u32(first + group, m); n++) {
                    s->microbatch = n;
                    if (r + 1 < s->chunks) assign_boundary(s, r + 1, n);
                    const struct pipeline_step step = {.pass = PIPELINE_FORWARD, .chunk = r, .microbatch = n};
                    if (s->of[r].gathers) parallel_job_emit_gather(s, &step);
                    emit_evaluate(s, r, n, h + 1 == minibatches && r + 1 == s->chunks && n + 1 == m);
                }
}

/* Copies a chunk's state from the host, or back. */
static void add_state_copy(struct parallel_job_unit *u, bool load)
{
    struct accesses a = {0};
    uint32_t host = host_buffer(u, BUFFER_STATE, 0, u->chunk->state_bytes);
    if (load) add_access(&a, host, ACCESS_READ);
    access_state(u, &a, load ? MAKE : LAST);
    if (!load) add_access(&a, host, ACCESS_WRITE);
    add_copy(u, load ? STREAM_H2D : STREAM_D2H, u->chunk->state_bytes, &a);
}

void parallel_job_emit_resident(struct parallel_job *s, uint32_t r, bool load)
{
    struct parallel_job_unit u = begin_unit(s, r, load ? PLAN_LOAD : PLAN_STORE, false);
    struct accesses a = {0};
    if (s->carried_out) add_state_copy(&u, load);
    else access_state(&u, &a, load ? MAKE : LAST);
    if (s->carried_out && load && u.chunk->versions > 0) access_state(&u, &a, ACCESS_READ); /* copied to the version */
    if (!parallel_offloads(s->parallel)) access_gradient(&u, &a, load ? MAKE : LAST);
    access_levels(&u, &a, load ? MAKE : LAST);
    if (u.chunk->versions > 0) access_version(&u, &a, u.chunk->version, load ? MAKE : LAST);
    if (u.chunk->brings_batch && !is_asynchronous(s)) access_batch(&u, &a, load ? MAKE : LAST);
    access_loss(&u, &a, load ? MAKE : LAST);
    access_held_out_loss(&u, &a, load ? MAKE : LAST);
    if (u.chunk->brings_norms) access_norms(&u, &a, load ? MAKE : LAST);
    add_compute(&u, load ? PLAN_LOAD : PLAN_STORE, PLAN_NONE, &a);
    end_unit(&u);
}
