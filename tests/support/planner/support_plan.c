/*
 * The simplest policy: jobs take turns of one minibatch, each unit runs on the next device, and everything is copied in
 * and out. Memory of a device:
 *
 *     [ half 0 | half 1 | kept states and activations ]
 *
 * Tasks take the halves in turn; within a half, buffers follow each other.
 */
#include "tests/support/planner/support_plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "models/job/memory.h"
#include "planner/plan_work.h"
#include "tests/support/planner/support_planner.h"

enum { ALIGNMENT = 256 };

/* The unit being written. */
struct scribe {
    struct draft *draft;
    struct draft_unit *unit;
    const struct job *job;
    uint32_t job_index, shard, shards;
    const struct plan_shard *layers;
    uint64_t used_bytes; /* of the half */
    struct draft_op *op; /* the computation being written */
};

/* --- sizes ---------------------------------------------------------------------------------- */

static uint64_t state_bytes(const struct draft *d, uint32_t job, uint32_t shard)
{
    const struct plan_shard *s = &d->shards[job * d->shards_per_job + shard];
    const struct job *j = &d->jobs.jobs[job];
    return job_state(j, s->first_layer, s->layer_count).bytes;
}

static uint64_t part_bytes(const struct scribe *s, uint32_t shard)
{
    const struct plan_shard *p = &s->draft->shards[s->job_index * s->shards + shard];
    return memory_parameter_bytes(&s->job->network, p->first_layer, p->layer_count);
}

/* Returns the bytes of the boundary that enters `shard`. */
static uint64_t boundary_bytes(const struct scribe *s, uint32_t shard)
{
    const struct plan_shard *p = &s->draft->shards[s->job_index * s->shards + shard];
    return memory_boundary_bytes(&s->job->network, p->first_layer - 1, s->job->microbatch,
                                 s->job->sequence, s->job->precision);
}

static uint64_t row_bytes(const struct scribe *s)
{
    return s->job->network.width * sizeof(float);
}

static uint64_t table_bytes(const struct scribe *s)
{
    return s->draft->shape.profile ? 0 : s->job->network.vocabulary * row_bytes(s);
}

static uint64_t batch_bytes(const struct scribe *s)
{
    return s->job->microbatch * (s->job->sequence + 1) * sizeof(int32_t);
}

static uint32_t shape_way(const struct scribe *s)
{
    return plan_activations_way(s->draft->shape.activations);
}

static uint64_t activation_bytes(const struct scribe *s)
{
    uint64_t (*bytes)(const struct network *, uint64_t, uint64_t, uint64_t, uint64_t, uint32_t) =
        shape_way(s) & UNIT_INPUTS ? memory_input_bytes : memory_activation_bytes;
    return bytes(&s->job->network, s->layers->first_layer, s->layers->layer_count,
                 s->job->microbatch, s->job->sequence, s->job->precision);
}

/* --- pieces of units ------------------------------------------------------------------------ */

static struct plan_buffer name(const struct scribe *s, uint32_t kind, uint32_t shard,
                               uint32_t variant, bool on_device, uint64_t bytes)
{
    return (struct plan_buffer){.kind = kind,
                                .job = s->job_index,
                                .shard = shard,
                                .variant = variant,
                                .on_device = on_device,
                                .bytes = bytes};
}

static struct draft_op *new_op(struct scribe *s, const struct plan_op *op)
{
    assert_true(s->unit->op_count < DRAFT_OPS_MAX);
    struct draft_op *added = &s->unit->ops[s->unit->op_count++];
    *added = (struct draft_op){.op = *op};
    return added;
}

/* Acquires the next free range of the half. */
static struct draft_access acquired(struct scribe *s, struct plan_buffer buffer, uint32_t flags)
{
    struct draft_access access = {.buffer = buffer,
                                  .flags = flags | ACCESS_WRITE | ACCESS_ACQUIRE,
                                  .slot_offset = s->used_bytes,
                                  .slot_bytes = buffer.bytes};
    s->used_bytes += size_align(buffer.bytes, ALIGNMENT);
    assert_true(s->used_bytes <= s->draft->half_bytes);
    return access;
}

/* Returns the access to a buffer at its place in the kept memory. */
static struct draft_access kept(struct scribe *s, struct plan_buffer buffer, uint32_t flags)
{
    struct draft_access access = acquired(s, buffer, flags);
    access.fixed = true;
    access.slot_offset = 2 * s->draft->half_bytes +
                         (s->job_index * s->shards + s->shard) * s->draft->keep_bytes;
    return access;
}

static void add_copy(struct scribe *s, uint32_t stream, struct draft_access from,
                     struct draft_access to, uint64_t bytes)
{
    struct plan_op op = {.kind = OP_COPY, .stream = (uint8_t)stream, .bytes = bytes};
    struct draft_op *added = new_op(s, &op);
    added->accesses[0] = from;
    added->accesses[1] = to;
    added->access_count = 2;
}

static void copy_in(struct scribe *s, struct plan_buffer host, uint64_t host_offset,
                    struct draft_access to, uint64_t bytes)
{
    struct draft_access from = {.buffer = host, .flags = ACCESS_READ, .offset_bytes = host_offset};
    add_copy(s, STREAM_H2D, from, to, bytes);
}

static void copy_out(struct scribe *s, struct plan_buffer device, uint32_t flags,
                     struct plan_buffer host, uint64_t host_offset, uint64_t bytes)
{
    struct draft_access from = {.buffer = device, .flags = ACCESS_READ | flags};
    struct draft_access to = {.buffer = host, .flags = ACCESS_WRITE, .offset_bytes = host_offset};
    add_copy(s, STREAM_D2H, from, to, bytes);
}

/* Copies a whole buffer between places. */
static void fetch(struct scribe *s, uint32_t kind, uint32_t shard, uint64_t bytes)
{
    copy_in(s, name(s, kind, shard, 0, false, bytes), 0,
            acquired(s, name(s, kind, shard, 0, true, bytes), 0), bytes);
}

static void send(struct scribe *s, uint32_t kind, uint32_t shard, uint64_t bytes)
{
    copy_out(s, name(s, kind, shard, 0, true, bytes), ACCESS_RELEASE,
             name(s, kind, shard, 0, false, bytes), 0, bytes);
}

/* Copies the output of the previous unit from another device. */
static void fetch_output(struct scribe *s, uint32_t kind, uint32_t shard, uint64_t bytes)
{
    struct plan_buffer buffer = name(s, kind, shard, 0, true, bytes);
    struct draft_access from = {.buffer = buffer, .flags = ACCESS_READ | ACCESS_RELEASE};
    if (s->draft->shape.direct) add_copy(s, STREAM_P2P, from, acquired(s, buffer, 0), bytes);
    else fetch(s, kind, shard, bytes);
}

/* Copies the output for the next unit; a boundary also for the backward pass. */
static void send_output(struct scribe *s, uint32_t kind, uint32_t shard, uint64_t bytes)
{
    if (!s->draft->shape.direct)
        send(s, kind, shard, bytes);
    else if (kind == BUFFER_BOUNDARY)
        copy_out(s, name(s, kind, shard, 0, true, bytes), 0, name(s, kind, shard, 0, false, bytes),
                 0, bytes);
}

static void use(struct scribe *s, struct draft_access access)
{
    assert_true(s->op->access_count < DRAFT_ACCESSES_MAX);
    s->op->accesses[s->op->access_count++] = access;
}

static void use_here(struct scribe *s, uint32_t kind, uint32_t shard, uint64_t bytes,
                     uint32_t flags)
{
    use(s, (struct draft_access){.buffer = name(s, kind, shard, 0, true, bytes), .flags = flags});
}

static void begin_compute(struct scribe *s, enum plan_pass pass, uint32_t how, uint32_t slice,
                          uint64_t first_row, uint64_t row_count)
{
    static const enum unit_pass passes[] = {UNIT_FORWARD, UNIT_LOSS, UNIT_BACKWARD};
    struct plan_op op = {.kind = OP_COMPUTE,
                         .stream = STREAM_COMPUTE,
                         .pass = (uint8_t)pass,
                         .slice = slice,
                         .first_row = first_row,
                         .row_count = row_count};
    struct work_item items[PLAN_WORK_ITEMS_MAX];
    bool embedding = s->shard == 0 && !s->draft->shape.profile;
    if (embedding) how = UNIT_KEEP;
    s->op = new_op(s, &op);
    s->op->item_count = plan_work_items(s->job, s->layers->first_layer, s->layers->layer_count,
                                        pass, how, first_row, row_count, items);
    assert_true(s->op->item_count <= DRAFT_ITEMS_MAX);
    memcpy(s->op->items, items, s->op->item_count * sizeof *items);
    uint64_t workspace = memory_workspace_bytes(
        &s->job->network, s->layers->first_layer, s->layers->layer_count, passes[pass],
        how, s->job->microbatch, s->job->sequence);
    if (workspace > 0)
        use(s, acquired(s, name(s, BUFFER_WORKSPACE, s->shard, pass, true, workspace),
                        ACCESS_RELEASE));
}

static void use_activations(struct scribe *s, bool forward)
{
    uint64_t bytes = activation_bytes(s);
    uint32_t way = s->draft->shape.activations;
    if (way == ACTIVATIONS_RECOMPUTE || bytes == 0) return;
    struct plan_buffer here = name(s, BUFFER_ACTIVATIONS, s->shard, 0, true, bytes);
    if (forward)
        use(s, plan_activations_stay(way) ? kept(s, here, 0) : acquired(s, here, 0));
    else
        use(s, (struct draft_access){.buffer = here, .flags = ACCESS_READ | ACCESS_RELEASE});
}

static bool spills(const struct scribe *s)
{
    return plan_activations_spill(s->draft->shape.activations) && activation_bytes(s) > 0;
}

/* --- passes --------------------------------------------------------------------------------- */

static void write_batch(struct scribe *s)
{
    struct plan_op op = {.kind = OP_COMPUTE, .stream = STREAM_HOST, .pass = PLAN_BATCH};
    s->op = new_op(s, &op);
    use(s, (struct draft_access){
               .buffer = name(s, BUFFER_BATCH, PLAN_NONE, 0, false, batch_bytes(s)),
               .flags = ACCESS_WRITE});
}

/* Finds the rows of slice k of n. All slices but the last are equal. */
static void slice_rows(const struct scribe *s, uint32_t k, uint64_t *first, uint64_t *count)
{
    uint64_t rows = s->job->network.vocabulary + s->job->network.positions;
    uint64_t each = rows / s->draft->shape.slices;
    *first = k * each;
    *count = k + 1 == s->draft->shape.slices ? rows - *first : each;
}

static void write_sliced_forward(struct scribe *s)
{
    uint32_t slices = s->draft->shape.slices;
    uint64_t first, count, out_bytes = boundary_bytes(s, 1);
    struct plan_buffer host = name(s, BUFFER_STATE, 0, 0, false,
                                   state_bytes(s->draft, s->job_index, 0));
    for (uint32_t k = 0; k < slices; k++) {
        slice_rows(s, k, &first, &count);
        uint64_t bytes = count * row_bytes(s);
        struct plan_buffer rows = name(s, BUFFER_PARAMETERS, 0, 1 + k, true, bytes);
        copy_in(s, host, first * row_bytes(s), acquired(s, rows, 0), bytes);
        begin_compute(s, PLAN_FORWARD, false, k, first, count);
        use(s, (struct draft_access){.buffer = rows, .flags = ACCESS_READ | ACCESS_RELEASE});
        use_here(s, BUFFER_BATCH, PLAN_NONE, batch_bytes(s),
                 ACCESS_READ | (k + 1 == slices ? ACCESS_RELEASE : 0));
        struct plan_buffer out = name(s, BUFFER_BOUNDARY, 1, 0, true, out_bytes);
        if (k == 0)
            use(s, acquired(s, out, 0));
        else
            use(s, (struct draft_access){.buffer = out, .flags = ACCESS_READ | ACCESS_WRITE});
    }
}

static void write_forward(struct scribe *s)
{
    const struct draft_shape *shape = &s->draft->shape;
    uint64_t part = part_bytes(s, s->shard), whole = state_bytes(s->draft, s->job_index, s->shard);
    bool text_first = s->shard == 0 && !shape->profile;
    if (text_first) write_batch(s);
    if (text_first) fetch(s, BUFFER_BATCH, PLAN_NONE, batch_bytes(s));
    if (text_first && shape->slices > 0) {
        write_sliced_forward(s);
        send_output(s, BUFFER_BOUNDARY, 1, boundary_bytes(s, 1));
        return;
    }
    struct plan_buffer parameters = name(s, BUFFER_PARAMETERS, s->shard, 0, true, part);
    if (!shape->resident)
        copy_in(s, name(s, BUFFER_STATE, s->shard, 0, false, whole), 0,
                acquired(s, parameters, 0), part);
    if (s->shard > 0) fetch_output(s, BUFFER_BOUNDARY, s->shard, boundary_bytes(s, s->shard));
    begin_compute(s, PLAN_FORWARD, shape_way(s), 0, 0, 0);
    if (shape->resident)
        use_here(s, BUFFER_STATE, s->shard, whole, ACCESS_READ);
    else
        use(s, (struct draft_access){.buffer = parameters, .flags = ACCESS_READ | ACCESS_RELEASE});
    if (text_first)
        use_here(s, BUFFER_BATCH, PLAN_NONE, batch_bytes(s), ACCESS_READ | ACCESS_RELEASE);
    if (s->shard > 0)
        use_here(s, BUFFER_BOUNDARY, s->shard, boundary_bytes(s, s->shard),
                 ACCESS_READ | ACCESS_RELEASE);
    use(s, acquired(s, name(s, BUFFER_BOUNDARY, s->shard + 1, 0, true,
                            boundary_bytes(s, s->shard + 1)), 0));
    use_activations(s, true);
    send_output(s, BUFFER_BOUNDARY, s->shard + 1, boundary_bytes(s, s->shard + 1));
    if (spills(s)) send(s, BUFFER_ACTIVATIONS, s->shard, activation_bytes(s));
}

static void write_loss(struct scribe *s)
{
    const struct draft_shape *shape = &s->draft->shape;
    uint64_t whole = state_bytes(s->draft, s->job_index, s->shard), table = table_bytes(s);
    if (!shape->resident) fetch(s, BUFFER_STATE, s->shard, whole);
    if (!shape->profile) fetch(s, BUFFER_BATCH, PLAN_NONE, batch_bytes(s));
    if (s->shard > 0) fetch_output(s, BUFFER_BOUNDARY, s->shard, boundary_bytes(s, s->shard));
    struct plan_buffer table_name = name(s, BUFFER_TABLE, PLAN_NONE, 0, true, table);
    uint64_t first_bytes = state_bytes(s->draft, s->job_index, 0);
    if (!shape->profile && !shape->resident)
        copy_in(s, name(s, BUFFER_STATE, 0, 0, false, first_bytes), 0, acquired(s, table_name, 0),
                table);
    begin_compute(s, PLAN_LOSS, shape_way(s) & UNIT_INPUTS, 0, 0, 0);
    use_here(s, BUFFER_STATE, s->shard, whole, ACCESS_READ | ACCESS_WRITE);
    if (s->shard > 0) {
        use_here(s, BUFFER_BOUNDARY, s->shard, boundary_bytes(s, s->shard),
                 ACCESS_READ | ACCESS_RELEASE);
        use(s, acquired(s, name(s, BUFFER_BOUNDARY_GRADIENT, s->shard, 0, true,
                                boundary_bytes(s, s->shard)), 0));
    }
    if (!shape->profile) {
        use_here(s, BUFFER_BATCH, PLAN_NONE, batch_bytes(s), ACCESS_READ | ACCESS_RELEASE);
        use(s, acquired(s, name(s, BUFFER_LOSS, PLAN_NONE, 0, true, sizeof(double)), 0));
        if (shape->resident)
            use_here(s, BUFFER_STATE, 0, first_bytes, ACCESS_READ);
        else
            use(s, (struct draft_access){.buffer = table_name,
                                         .flags = ACCESS_READ | ACCESS_RELEASE});
        use(s, acquired(s, name(s, BUFFER_TABLE_GRADIENT, PLAN_NONE, 0, true, table), 0));
    }
    if (s->shard > 0)
        send_output(s, BUFFER_BOUNDARY_GRADIENT, s->shard, boundary_bytes(s, s->shard));
    if (!shape->profile) {
        send(s, BUFFER_LOSS, PLAN_NONE, sizeof(double));
        send(s, BUFFER_TABLE_GRADIENT, PLAN_NONE, table);
    }
    if (!shape->resident) send(s, BUFFER_STATE, s->shard, whole);
}

static void write_sliced_backward(struct scribe *s)
{
    uint32_t slices = s->draft->shape.slices;
    uint64_t first, count, row = row_bytes(s), part_size = part_bytes(s, 0);
    uint64_t parts = 1 + optimizer_moments(s->job->optimizer.kind);
    struct plan_buffer host = name(s, BUFFER_STATE, 0, 0, false,
                                   state_bytes(s->draft, s->job_index, 0));
    struct plan_buffer host_gradient = name(s, BUFFER_TABLE_GRADIENT, PLAN_NONE, 0, false,
                                            table_bytes(s));
    for (uint32_t k = 0; k < slices; k++) {
        slice_rows(s, k, &first, &count);
        uint64_t bytes = count * row, before = first * row;
        uint64_t gradient = before < table_bytes(s) ? table_bytes(s) - before : 0;
        if (gradient > bytes) gradient = bytes;
        struct plan_buffer rows = name(s, BUFFER_STATE, 0, 1 + k, true, parts * bytes);
        struct plan_buffer own = name(s, BUFFER_TABLE_GRADIENT, PLAN_NONE, 1 + k, true, gradient);
        for (uint64_t part = 0; part < parts; part++) {
            struct draft_access to = {.buffer = rows, .flags = ACCESS_WRITE};
            if (part == 0) to = acquired(s, rows, 0);
            to.offset_bytes = part * bytes;
            copy_in(s, host, part * part_size + before, to, bytes);
        }
        if (gradient > 0) copy_in(s, host_gradient, before, acquired(s, own, 0), gradient);
        begin_compute(s, PLAN_BACKWARD, false, k, first, count);
        uint32_t release = k + 1 == slices ? ACCESS_RELEASE : 0;
        use(s, (struct draft_access){.buffer = rows, .flags = ACCESS_READ | ACCESS_WRITE});
        use_here(s, BUFFER_BATCH, PLAN_NONE, batch_bytes(s), ACCESS_READ | release);
        use_here(s, BUFFER_BOUNDARY_GRADIENT, 1, boundary_bytes(s, 1), ACCESS_READ | release);
        if (gradient > 0)
            use(s, (struct draft_access){.buffer = own, .flags = ACCESS_READ | ACCESS_RELEASE});
        for (uint64_t part = 0; part < parts; part++) {
            copy_out(s, rows, part + 1 == parts ? ACCESS_RELEASE : 0, host,
                     part * part_size + before, bytes);
            s->unit->ops[s->unit->op_count - 1].accesses[0].offset_bytes = part * bytes;
        }
    }
}

static void write_backward(struct scribe *s)
{
    const struct draft_shape *shape = &s->draft->shape;
    uint64_t whole = state_bytes(s->draft, s->job_index, s->shard), table = table_bytes(s);
    bool text_first = s->shard == 0 && !shape->profile;
    uint64_t out_bytes = boundary_bytes(s, s->shard + 1);
    fetch_output(s, BUFFER_BOUNDARY_GRADIENT, s->shard + 1, out_bytes);
    if (text_first) fetch(s, BUFFER_BATCH, PLAN_NONE, batch_bytes(s));
    if (text_first && shape->slices > 0) {
        write_sliced_backward(s);
        return;
    }
    if (!shape->resident) fetch(s, BUFFER_STATE, s->shard, whole);
    if (text_first) fetch(s, BUFFER_TABLE_GRADIENT, PLAN_NONE, table);
    if (s->shard > 0) fetch(s, BUFFER_BOUNDARY, s->shard, boundary_bytes(s, s->shard));
    if (spills(s)) fetch(s, BUFFER_ACTIVATIONS, s->shard, activation_bytes(s));
    begin_compute(s, PLAN_BACKWARD, shape_way(s), 0, 0, 0);
    use_here(s, BUFFER_STATE, s->shard, whole, ACCESS_READ | ACCESS_WRITE);
    use_here(s, BUFFER_BOUNDARY_GRADIENT, s->shard + 1, out_bytes, ACCESS_READ | ACCESS_RELEASE);
    if (text_first) {
        use_here(s, BUFFER_BATCH, PLAN_NONE, batch_bytes(s), ACCESS_READ | ACCESS_RELEASE);
        use_here(s, BUFFER_TABLE_GRADIENT, PLAN_NONE, table, ACCESS_READ | ACCESS_RELEASE);
    }
    if (s->shard > 0) {
        uint64_t bytes = boundary_bytes(s, s->shard);
        use_here(s, BUFFER_BOUNDARY, s->shard, bytes, ACCESS_READ | ACCESS_RELEASE);
        use(s, acquired(s, name(s, BUFFER_BOUNDARY_GRADIENT, s->shard, 0, true, bytes), 0));
    }
    use_activations(s, false);
    if (s->shard > 0) send_output(s, BUFFER_BOUNDARY_GRADIENT, s->shard, boundary_bytes(s, s->shard));
    if (!shape->resident) send(s, BUFFER_STATE, s->shard, whole);
}

static void write_load(struct scribe *s)
{
    uint64_t whole = state_bytes(s->draft, s->job_index, s->shard);
    copy_in(s, name(s, BUFFER_STATE, s->shard, 0, false, whole), 0,
            kept(s, name(s, BUFFER_STATE, s->shard, 0, true, whole), 0), whole);
}

static void write_store(struct scribe *s)
{
    send(s, BUFFER_STATE, s->shard, state_bytes(s->draft, s->job_index, s->shard));
}

/* --- the draft ------------------------------------------------------------------------------ */

static struct draft_unit *new_unit(struct draft *d)
{
    assert_true(d->unit_count < DRAFT_UNITS_MAX);
    struct draft_unit *unit = calloc(1, sizeof *unit);
    assert_non_null(unit);
    d->units[d->unit_count++] = unit;
    return unit;
}

static void write_unit(struct draft *d, uint32_t job, uint32_t shard, enum plan_pass pass)
{
    struct scribe s = {.draft = d, .job_index = job, .shard = shard, .shards = d->shards_per_job};
    s.unit = new_unit(d);
    s.job = &d->jobs.jobs[job];
    s.layers = &d->shards[job * d->shards_per_job + shard];
    *s.unit = (struct draft_unit){.job = job, .shard = shard, .pass = pass};
    s.unit->ends_minibatch = shard == 0 && (pass == PLAN_BACKWARD || pass == PLAN_LOSS);
    static void (*const writers[PLAN_PASS_COUNT])(struct scribe *) = {
        [PLAN_FORWARD] = write_forward, [PLAN_LOSS] = write_loss, [PLAN_BACKWARD] = write_backward,
        [PLAN_LOAD] = write_load,       [PLAN_STORE] = write_store};
    writers[pass](&s);
}

static uint32_t find_unit(struct draft *d, uint32_t job, uint32_t shard, uint32_t pass)
{
    for (uint32_t u = 0; u < d->unit_count; u++)
        if (d->units[u]->job == job && d->units[u]->shard == shard && d->units[u]->pass == pass)
            return u;
    return PLAN_NONE;
}

static void append(struct draft *d, uint32_t job, uint32_t shard, enum plan_pass pass)
{
    uint32_t unit = find_unit(d, job, shard, pass);
    assert_int_not_equal(unit, PLAN_NONE);
    assert_true(d->task_count < DRAFT_TASKS_MAX);
    bool stays = d->shape.resident || plan_activations_stay(d->shape.activations);
    uint32_t device = (stays ? job : d->task_count) % d->shape.devices;
    bool fetches = d->shape.direct && (pass == PLAN_FORWARD ? shard > 0 : pass <= PLAN_BACKWARD);
    uint32_t peer = fetches ? d->tasks[d->task_count - 1].device : PLAN_NONE;
    d->tasks[d->task_count++] = (struct draft_task){unit, device, peer};
}

static void write_order(struct draft *d)
{
    uint32_t shards = d->shards_per_job, jobs = d->shape.jobs;
    for (uint32_t j = 0; d->shape.resident && j < jobs; j++)
        for (uint32_t s = 0; s < shards; s++) append(d, j, s, PLAN_LOAD);
    for (uint64_t m = 0; m < d->shape.minibatches; m++)
        for (uint32_t j = 0; j < jobs; j++) {
            for (uint32_t s = 0; s + 1 < shards; s++) append(d, j, s, PLAN_FORWARD);
            append(d, j, shards - 1, PLAN_LOSS);
            for (uint32_t s = shards - 1; s-- > 0;) append(d, j, s, PLAN_BACKWARD);
        }
    for (uint32_t j = 0; d->shape.resident && j < jobs; j++)
        for (uint32_t s = 0; s < shards; s++) append(d, j, s, PLAN_STORE);
}

static struct test_layer layer_sizes(void *context, uint32_t job, uint32_t layer)
{
    (void)context;
    return (struct test_layer){.parameter_bytes = 4096 + 512 * layer + 128 * job,
                               .boundary_bytes = 640,
                               .activation_bytes = 2816,
                               .forward_ns = 3100 + layer,
                               .backward_ns = 6700 + job};
}

struct draft *draft_create(const struct draft_shape *shape)
{
    struct draft *d = calloc(1, sizeof *d);
    assert_non_null(d);
    d->shape = *shape;
    d->half_bytes = 4 << 20;
    d->keep_bytes = 1 << 20;
    d->shards_per_job = shape->middle + 2;
    uint32_t each = shape->blocks ? shape->blocks : 1, blocks = shape->middle * each + shape->blocks;
    if (shape->profile)
        test_profile_jobs(&d->jobs, shape->jobs, blocks + 2, shape->minibatches, layer_sizes, NULL);
    else
        test_gpt_jobs(&d->jobs, shape->jobs, blocks, 8, 96, shape->minibatches);
    assert_true(d->shards_per_job * shape->jobs <= DRAFT_SHARDS_MAX);
    for (uint32_t j = 0; j < shape->jobs; j++)
        for (uint32_t s = 0; s < d->shards_per_job; s++)
            d->shards[d->shard_count++] = (struct plan_shard){
                j, s ? 1 + (s - 1) * each : 0,
                s == 0 ? 1 : s <= shape->middle ? each : 1 + shape->blocks,
                (s > 0 || shape->profile) &&
                    (plan_activations_way(shape->activations) & UNIT_INPUTS)};
    test_hardware(&d->hardware, shape->devices,
                  2 * d->half_bytes + d->shard_count * d->keep_bytes, 1e9);
    for (uint32_t i = 0; i < shape->devices && shape->direct; i++)
        hardware_join(&d->hardware.devices[i], 1);
    hardware_note_p2p(&d->hardware);
    for (uint32_t j = 0; j < shape->jobs; j++)
        for (uint32_t s = 0; s < d->shards_per_job; s++) {
            bool last = s + 1 == d->shards_per_job;
            if (shape->resident) write_unit(d, j, s, PLAN_LOAD);
            write_unit(d, j, s, last ? PLAN_LOSS : PLAN_FORWARD);
            if (!last) write_unit(d, j, s, PLAN_BACKWARD);
            if (shape->resident) write_unit(d, j, s, PLAN_STORE);
        }
    write_order(d);
    return d;
}

void draft_destroy(struct draft *draft)
{
    hardware_release(&draft->hardware);
    job_set_release(&draft->jobs);
    for (uint32_t u = 0; u < draft->unit_count; u++) free(draft->units[u]);
    free(draft);
}

/* --- changing it ---------------------------------------------------------------------------- */

struct draft_unit *draft_unit(struct draft *draft, uint32_t job, uint32_t shard, uint32_t pass)
{
    uint32_t unit = find_unit(draft, job, shard, pass);
    return unit == PLAN_NONE ? NULL : draft->units[unit];
}

uint32_t draft_task(struct draft *draft, uint32_t job, uint32_t shard, uint32_t pass,
                    uint32_t n)
{
    for (uint32_t i = 0; i < draft->task_count; i++) {
        const struct draft_unit *unit = draft->units[draft->tasks[i].unit];
        if (unit->job == job && unit->shard == shard && unit->pass == pass && n-- == 0) return i;
    }
    fail_msg("no task of job %u shard %u pass %u", job, shard, pass);
    return 0;
}

struct draft_unit *draft_own(struct draft *draft, uint32_t task)
{
    struct draft_unit *copy = new_unit(draft);
    *copy = *draft->units[draft->tasks[task].unit];
    draft->tasks[task].unit = draft->unit_count - 1;
    return copy;
}

uint32_t draft_find(const struct draft_unit *unit, uint32_t stream, uint32_t buffer_kind)
{
    for (uint32_t o = 0; o < unit->op_count; o++)
        for (uint32_t a = 0; a < unit->ops[o].access_count; a++)
            if (unit->ops[o].op.stream == stream &&
                unit->ops[o].accesses[a].buffer.kind == buffer_kind)
                return o;
    fail_msg("no operation on the %s stream with a %s", plan_stream_names[stream],
             plan_buffer_names[buffer_kind]);
    return 0;
}

struct draft_access *draft_access(struct draft_op *op, uint32_t buffer_kind)
{
    for (uint32_t a = 0; a < op->access_count; a++)
        if (op->accesses[a].buffer.kind == buffer_kind) return &op->accesses[a];
    fail_msg("no access of a %s", plan_buffer_names[buffer_kind]);
    return NULL;
}

void draft_drop_op(struct draft_unit *unit, uint32_t op)
{
    draft_move_op(unit, op, unit->op_count - 1);
    unit->op_count--;
}

void draft_move_op(struct draft_unit *unit, uint32_t from, uint32_t to)
{
    struct draft_op moved = unit->ops[from];
    for (; from < to; from++) unit->ops[from] = unit->ops[from + 1];
    for (; from > to; from--) unit->ops[from] = unit->ops[from - 1];
    unit->ops[to] = moved;
}

void draft_drop_task(struct draft *draft, uint32_t task)
{
    draft->task_count--;
    for (uint32_t i = task; i < draft->task_count; i++)
        draft->tasks[i] = draft->tasks[i + 1];
}

void draft_repeat_task(struct draft *draft, uint32_t task)
{
    assert_true(draft->task_count < DRAFT_TASKS_MAX);
    for (uint32_t i = draft->task_count++; i > task; i--)
        draft->tasks[i] = draft->tasks[i - 1];
}

void draft_swap_tasks(struct draft *draft, uint32_t a, uint32_t b)
{
    struct draft_task kept_a = draft->tasks[a];
    draft->tasks[a] = draft->tasks[b];
    draft->tasks[b] = kept_a;
}

/* --- to a plan ------------------------------------------------------------------------------ */

static void build_op(struct plan_builder *builder, const struct draft_op *op)
{
    struct plan_access accesses[DRAFT_ACCESSES_MAX];
    struct plan_op plain = op->op;
    for (uint32_t a = 0; a < op->access_count; a++)
        accesses[a] = (struct plan_access){
            .buffer = plan_builder_buffer(builder, &op->accesses[a].buffer),
            .flags = op->accesses[a].flags,
            .offset_bytes = op->accesses[a].offset_bytes};
    plain.work = op->item_count > 0 ? plan_builder_work(builder, op->items, op->item_count)
                                    : PLAN_NONE;
    plan_builder_op(builder, &plain, accesses, op->access_count, &op->after, op->has_after);
}

static void build_task(struct plan_builder *builder, const struct draft *d, uint32_t task,
                       uint32_t unit_index)
{
    const struct draft_unit *unit = d->units[d->tasks[task].unit];
    uint32_t slots[DRAFT_OPS_MAX * DRAFT_ACCESSES_MAX], count = 0;
    for (uint32_t o = 0; o < unit->op_count; o++)
        for (uint32_t a = 0; a < unit->ops[o].access_count; a++) {
            const struct draft_access *access = &unit->ops[o].accesses[a];
            if (!(access->flags & ACCESS_ACQUIRE)) continue;
            uint64_t base = access->fixed ? 0 : (task & 1) * d->half_bytes;
            slots[count++] = plan_builder_slot(builder, base + access->slot_offset,
                                               access->slot_bytes);
        }
    plan_builder_task(builder, unit_index, d->tasks[task].device, slots, count);
    plan_builder_peer(builder, d->tasks[task].peer);
}

void draft_build(struct draft *draft, struct plan *out)
{
    struct plan_builder *builder;
    struct error err = {0};
    uint32_t unit_of[DRAFT_UNITS_MAX];
    assert_int_equal(plan_builder_create(&draft->hardware, &draft->jobs, &builder, &err), 0);
    struct plan *plan = plan_builder_plan(builder);
    plan->policy = "by hand";
    plan->seed = 5;
    plan->double_buffer = true;
    plan->estimated_makespan_s = 2.385;
    plan->lower_bound_s = 1.125;
    plan->bound_kind = BOUND_CHAIN;
    plan->bound_text = "the longest job is one chain";
    for (uint32_t j = 0; j < plan->jobs.count; j++)
        plan->job_activations[j] = draft->shape.activations;
    for (uint32_t s = 0; s < draft->shard_count; s++)
        plan_builder_shard(builder, draft->shards[s].job, draft->shards[s].first_layer,
                           draft->shards[s].layer_count, draft->shards[s].inputs_only);
    for (uint32_t u = 0; u < draft->unit_count; u++) {
        const struct draft_unit *unit = draft->units[u];
        plan_builder_unit_begin(builder, unit->job, unit->shard, (enum plan_pass)unit->pass,
                                unit->ends_minibatch);
        for (uint32_t o = 0; o < unit->op_count; o++) build_op(builder, &unit->ops[o]);
        unit_of[u] = plan_builder_unit_end(builder);
    }
    for (uint32_t i = 0; i < draft->task_count; i++)
        build_task(builder, draft, i, unit_of[draft->tasks[i].unit]);
    if (plan_builder_finish(builder, out, &err) != STATUS_OK) fail_msg("%s", err.text);
    plan_builder_destroy(builder);
}

void support_plan(const struct draft_shape *shape, struct plan *out)
{
    struct draft *draft = draft_create(shape);
    draft_build(draft, out);
    draft_destroy(draft);
}
