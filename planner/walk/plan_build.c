/*
 * Interning: a new unit (slot, layout, work, buffer) is appended and looked up by a hash of its contents; if an equal
 * one exists, the arrays are cut back and its index is returned. So one representation is hashed and compared, without
 * scratch. The hash tables are open-addressed, hold index + 1, and double when half full.
 *
 *     work {matmul 2 times, gelu}  ->  items: [ ... | matmul gelu ]   works: [ ... | (12, 2) ]
 *     the same again               ->  appended at 14, found equal to (12, 2), cut back to 14
 *
 * Units are compared without operations' `first_access`, which differs by place.
 *
 * Finally the tasks are folded (plan_fold.h), and every array is copied at its exact length into the plan's arena.
 * Cost: linear in appended elements.
 */
#include "planner/walk/plan_build.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "base/try.h"
#include "planner/walk/plan_fold.h"

/* Index + 1 by contents; 0: empty. The stored hash makes growing cheap. */
struct intern_cell {
    uint32_t index_plus_1;
    uint32_t hash;
};
struct intern {
    struct intern_cell *cells;
    size_t capacity; /* a power of two, or 0 */
    size_t count;
};

/* Allocated elements of the plan's arrays while it grows. */
struct capacities {
    size_t shards, items, works, buffers, slots, accesses, afters, ops, units, layouts, gangs, gang_devices,
        tasks, segments;
};

enum { ADOPTED_BYTES_MIN = 64 << 10 };

struct plan_builder {
    struct plan plan; /* arrays are malloc'ed until finish; job_* and strings in the arena */
    struct error error;
    struct capacities capacity;
    struct intern unit_table, slot_table, layout_table, work_table, buffer_table;
    struct plan_repeat *repeats; /* of tasks, in order */
    uint32_t repeat_count;
    size_t repeat_capacity;
    bool in_unit;
    bool finished;
};

/* --- growing -------------------------------------------------------------------------------- */

/* Makes room for one more element; remembers the error. */
static bool reserve(struct plan_builder *b, void *items, size_t *capacity, uint32_t count,
                    size_t size, size_t limit, const char *what)
{
    if (b->error.status != STATUS_OK) return false;
    return array_reserve(items, capacity, count, size, limit, what, &b->error) == STATUS_OK;
}

#define RESERVE(b, name, count, limit, what) \
    reserve(b, &(b)->plan.name, &(b)->capacity.name, (b)->plan.count, sizeof *(b)->plan.name, \
            limit, what)

static bool push_item(struct plan_builder *b, const struct work_item *item)
{
    if (!RESERVE(b, items, item_count, PLAN_ITEMS_MAX, "work items")) return false;
    b->plan.items[b->plan.item_count++] = *item;
    return true;
}

static bool push_access(struct plan_builder *b, const struct plan_access *access)
{
    if (!RESERVE(b, accesses, access_count, PLAN_ACCESSES_MAX, "accesses")) return false;
    b->plan.accesses[b->plan.access_count++] = *access;
    return true;
}

static bool push_after(struct plan_builder *b, const struct plan_after *after)
{
    if (!RESERVE(b, afters, after_count, PLAN_ACCESSES_MAX, "orderings")) return false;
    b->plan.afters[b->plan.after_count++] = *after;
    return true;
}

static bool push_layout(struct plan_builder *b, uint32_t slot)
{
    if (!RESERVE(b, layouts, layout_count, PLAN_ACCESSES_MAX, "layouts")) return false;
    b->plan.layouts[b->plan.layout_count++] = slot;
    return true;
}

/* --- interning ------------------------------------------------------------------------------ */

static bool intern_grow(struct intern *table, struct error *err)
{
    size_t capacity = table->capacity > 0 ? table->capacity * 2 : 64;
    struct intern_cell *cells = alloc_zeroed(capacity, sizeof *cells);
    if (!cells) {
        error_memory(err, "a table of the plan", capacity * sizeof *cells);
        return false;
    }
    for (size_t i = 0; i < table->capacity; i++) {
        if (table->cells[i].index_plus_1 == 0) continue;
        size_t at = table->cells[i].hash & (capacity - 1);
        while (cells[at].index_plus_1 != 0) at = (at + 1) & (capacity - 1);
        cells[at] = table->cells[i];
    }
    free(table->cells);
    table->cells = cells;
    table->capacity = capacity;
    return true;
}

typedef bool (*intern_equal)(const struct plan *plan, uint32_t a, uint32_t b);

/* Returns an element equal to number `candidate`; else adds `candidate` and returns it, also without memory (the error
 * is remembered). */
static uint32_t intern(struct plan_builder *b, struct intern *table, uint64_t hash64,
                       uint32_t candidate, intern_equal equal)
{
    if (table->count * 2 >= table->capacity && !intern_grow(table, &b->error)) return candidate;
    uint32_t hash = (uint32_t)(hash64 ^ hash64 >> 32);
    size_t at = hash & (table->capacity - 1);
    for (; table->cells[at].index_plus_1 != 0; at = (at + 1) & (table->capacity - 1)) {
        uint32_t known = table->cells[at].index_plus_1 - 1;
        if (table->cells[at].hash == hash && equal(&b->plan, known, candidate)) return known;
    }
    table->cells[at] = (struct intern_cell){.index_plus_1 = candidate + 1, .hash = hash};
    table->count++;
    return candidate;
}

/* Hashes a small number by one product, because large plans need some hundred thousand hashes. intern() would undo a
 * shift by 32. */
static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

/* --- works ---------------------------------------------------------------------------------- */

static bool work_equal(const struct plan *plan, uint32_t a, uint32_t b)
{
    const struct plan_work *x = &plan->works[a], *y = &plan->works[b];
    if (x->item_count != y->item_count) return false;
    for (uint32_t i = 0; i < x->item_count; i++) {
        const struct work_item *p = &plan->items[x->first_item + i];
        const struct work_item *q = &plan->items[y->first_item + i];
        if (p->kernel != q->kernel || p->count != q->count || p->m != q->m || p->n != q->n ||
            p->k != q->k)
            return false;
    }
    return true;
}

static uint64_t work_hash(const struct work_item *items, uint32_t count)
{
    uint64_t hash = count;
    for (uint32_t i = 0; i < count; i++) {
        hash = mix(hash, (uint64_t)items[i].kernel << 32 | items[i].count);
        hash = mix(hash, items[i].m);
        hash = mix(hash, items[i].n);
        hash = mix(hash, items[i].k);
    }
    return hash;
}

uint32_t plan_builder_work(struct plan_builder *builder, const struct work_item *items,
                           uint32_t count)
{
    struct plan *plan = &builder->plan;
    uint32_t first = plan->item_count;
    for (uint32_t i = 0; i < count; i++)
        if (!push_item(builder, &items[i])) return 0;
    if (!RESERVE(builder, works, work_count, PLAN_OPS_MAX, "works")) return 0;
    uint32_t candidate = plan->work_count;
    plan->works[candidate] = (struct plan_work){.first_item = first, .item_count = count};
    uint32_t index = intern(builder, &builder->work_table, work_hash(items, count), candidate,
                            work_equal);
    if (index == candidate)
        plan->work_count++;
    else
        plan->item_count = first;
    return index;
}

/* --- buffers and slots ---------------------------------------------------------------------- */

static bool buffer_equal(const struct plan *plan, uint32_t a, uint32_t b)
{
    const struct plan_buffer *x = &plan->buffers[a], *y = &plan->buffers[b];
    return x->kind == y->kind && x->job == y->job && x->shard == y->shard &&
           x->variant == y->variant && x->on_device == y->on_device;
}

uint32_t plan_builder_buffer(struct plan_builder *builder, const struct plan_buffer *buffer)
{
    struct plan *plan = &builder->plan;
    if (!RESERVE(builder, buffers, buffer_count, PLAN_BUFFERS_MAX, "buffers")) return 0;
    uint32_t candidate = plan->buffer_count;
    plan->buffers[candidate] = *buffer;
    uint64_t hash = mix(0, (uint64_t)buffer->kind << 32 | buffer->on_device);
    hash = mix(hash, (uint64_t)buffer->job << 32 | buffer->shard);
    hash = mix(hash, buffer->variant);
    uint32_t index = intern(builder, &builder->buffer_table, hash, candidate, buffer_equal);
    if (index == candidate)
        plan->buffer_count++;
    else if (plan->buffers[index].bytes < buffer->bytes)
        plan->buffers[index].bytes = buffer->bytes;
    return index;
}

static bool slot_equal(const struct plan *plan, uint32_t a, uint32_t b)
{
    const struct plan_slot *x = &plan->slots[a], *y = &plan->slots[b];
    return x->offset_bytes == y->offset_bytes && x->bytes == y->bytes;
}

uint32_t plan_builder_slot(struct plan_builder *builder, uint64_t offset_bytes, uint64_t bytes)
{
    struct plan *plan = &builder->plan;
    if (!RESERVE(builder, slots, slot_count, PLAN_SLOTS_MAX, "slots")) return 0;
    uint32_t candidate = plan->slot_count;
    plan->slots[candidate] = (struct plan_slot){.offset_bytes = offset_bytes, .bytes = bytes};
    uint64_t hash = mix(mix(0, offset_bytes), bytes);
    uint32_t index = intern(builder, &builder->slot_table, hash, candidate, slot_equal);
    if (index == candidate) plan->slot_count++;
    return index;
}

/* --- units ---------------------------------------------------------------------------------- */

static bool op_equal(const struct plan *plan, const struct plan_op *a, const struct plan_op *b)
{
    if (a->kind != b->kind || a->stream != b->stream || a->pass != b->pass || a->work != b->work ||
        a->collective != b->collective || a->axes != b->axes || a->rounds != b->rounds ||
        a->slice != b->slice || a->access_count != b->access_count ||
        a->after_count != b->after_count || a->bytes != b->bytes ||
        a->first_row != b->first_row || a->row_count != b->row_count)
        return false;
    for (uint32_t i = 0; i < a->access_count; i++) {
        const struct plan_access *p = &plan->accesses[a->first_access + i];
        const struct plan_access *q = &plan->accesses[b->first_access + i];
        if (p->buffer != q->buffer || p->flags != q->flags || p->offset_bytes != q->offset_bytes)
            return false;
    }
    for (uint32_t i = 0; i < a->after_count; i++) {
        const struct plan_after *p = &plan->afters[a->first_after + i];
        const struct plan_after *q = &plan->afters[b->first_after + i];
        if (p->tasks != q->tasks || p->op != q->op) return false;
    }
    return true;
}

static bool unit_equal(const struct plan *plan, uint32_t a, uint32_t b)
{
    const struct plan_unit *x = &plan->units[a], *y = &plan->units[b];
    if (x->job != y->job || x->shard != y->shard || x->pass != y->pass ||
        x->op_count != y->op_count || x->ends_minibatch != y->ends_minibatch)
        return false;
    for (uint32_t o = 0; o < x->op_count; o++)
        if (!op_equal(plan, &plan->ops[x->first_op + o], &plan->ops[y->first_op + o])) return false;
    return true;
}

static uint64_t op_hash(const struct plan *plan, const struct plan_op *op, uint64_t hash)
{
    hash = mix(hash, (uint64_t)op->kind << 32 | (uint64_t)op->stream << 16 | op->pass);
    hash = mix(hash, (uint64_t)op->work << 32 | op->slice);
    hash = mix(hash, (uint64_t)op->rounds << 32 | (uint64_t)op->collective << 8 | op->axes);
    hash = mix(hash, op->bytes);
    hash = mix(hash, op->first_row);
    hash = mix(hash, op->row_count);
    for (uint32_t i = 0; i < op->access_count; i++) {
        const struct plan_access *access = &plan->accesses[op->first_access + i];
        hash = mix(hash, (uint64_t)access->buffer << 32 | access->flags);
        hash = mix(hash, access->offset_bytes);
    }
    for (uint32_t i = 0; i < op->after_count; i++) {
        const struct plan_after *after = &plan->afters[op->first_after + i];
        hash = mix(hash, (uint64_t)after->tasks << 32 | after->op);
    }
    return hash;
}

static uint64_t unit_hash(const struct plan *plan, const struct plan_unit *unit)
{
    uint64_t hash = mix(0, (uint64_t)unit->job << 32 | unit->shard);
    hash = mix(hash, (uint64_t)unit->pass << 32 | unit->ends_minibatch);
    for (uint32_t o = 0; o < unit->op_count; o++)
        hash = op_hash(plan, &plan->ops[unit->first_op + o], hash);
    return hash;
}

void plan_builder_unit_begin(struct plan_builder *builder, uint32_t job, uint32_t shard,
                             enum plan_pass pass, bool ends_minibatch)
{
    struct plan *plan = &builder->plan;
    assert(!builder->in_unit);
    builder->in_unit = true;
    if (!RESERVE(builder, units, unit_count, PLAN_UNITS_MAX, "units")) return;
    plan->units[plan->unit_count] = (struct plan_unit){
        .job = job,
        .shard = shard,
        .pass = pass,
        .first_op = plan->op_count,
        .ends_minibatch = ends_minibatch,
    };
}

void plan_builder_op(struct plan_builder *builder, const struct plan_op *op,
                     const struct plan_access *accesses, uint32_t access_count,
                     const struct plan_after *afters, uint32_t after_count)
{
    struct plan *plan = &builder->plan;
    assert(builder->in_unit);
    struct plan_op added = *op;
    if (op->kind != OP_COLLECTIVE) { /* fields without meaning get one value: equal units are equal */
        added.collective = added.axes = 0;
        added.rounds = 0;
    }
    if (op->kind != OP_COMPUTE) {
        added.pass = 0;
        added.work = PLAN_NONE;
        added.slice = 0;
        added.first_row = added.row_count = 0;
    } else {
        added.bytes = 0;
    }
    added.first_access = plan->access_count;
    added.access_count = access_count;
    added.first_after = plan->after_count;
    added.after_count = after_count;
    uint32_t acquires = 0;
    for (uint32_t i = 0; i < access_count; i++) {
        if (!push_access(builder, &accesses[i])) return;
        if (accesses[i].flags & ACCESS_ACQUIRE) acquires++;
    }
    for (uint32_t i = 0; i < after_count; i++)
        if (!push_after(builder, &afters[i])) return;
    if (!RESERVE(builder, ops, op_count, PLAN_OPS_MAX, "operations")) return;
    plan->ops[plan->op_count++] = added;
    plan->units[plan->unit_count].op_count++;
    plan->units[plan->unit_count].acquire_count += acquires;
}

uint32_t plan_builder_unit_end(struct plan_builder *builder)
{
    struct plan *plan = &builder->plan;
    assert(builder->in_unit);
    builder->in_unit = false;
    if (builder->error.status != STATUS_OK) return 0;
    uint32_t candidate = plan->unit_count;
    struct plan_unit *unit = &plan->units[candidate];
    uint32_t index = intern(builder, &builder->unit_table, unit_hash(plan, unit), candidate,
                            unit_equal);
    if (index == candidate) {
        plan->unit_count++;
        return index;
    }
    if (unit->op_count > 0) {
        plan->access_count = plan->ops[unit->first_op].first_access;
        plan->after_count = plan->ops[unit->first_op].first_after;
        plan->op_count = unit->first_op;
    }
    return index;
}

/* --- tasks ------------------------------------------------------------------------------ */

/* The plan has no table of layouts: while building, the hash table holds the tasks that brought them. */
static bool layout_equal(const struct plan *plan, uint32_t a, uint32_t b)
{
    const struct plan_task *x = &plan->tasks[a], *y = &plan->tasks[b];
    uint32_t count = plan->units[x->unit].acquire_count;
    if (plan->units[y->unit].acquire_count != count) return false;
    return memcmp(plan->layouts + x->layout, plan->layouts + y->layout,
                  count * sizeof *plan->layouts) == 0;
}

void plan_builder_task(struct plan_builder *builder, uint32_t unit, uint32_t device,
                       const uint32_t *slots, uint32_t slot_count)
{
    struct plan *plan = &builder->plan;
    if (!RESERVE(builder, tasks, task_count, PLAN_TASKS_MAX, "tasks")) return;
    assert(!builder->in_unit);
    assert(unit < plan->unit_count);
    assert(slot_count == plan->units[unit].acquire_count);
    uint32_t candidate = plan->task_count;
    struct plan_task *task = &plan->tasks[candidate];
    *task = (struct plan_task){.unit = unit, .device = device, .gang = PLAN_NONE, .peer = PLAN_NONE};
    plan->task_count++;
    if (slot_count == 0) return;

    uint32_t first = plan->layout_count;
    uint64_t hash = slot_count;
    for (uint32_t i = 0; i < slot_count; i++) {
        if (!push_layout(builder, slots[i])) return;
        hash = mix(hash, slots[i]);
    }
    task->layout = first;
    uint32_t index = intern(builder, &builder->layout_table, hash, candidate, layout_equal);
    if (index == candidate) return;
    task->layout = plan->tasks[index].layout;
    plan->layout_count = first;
}

void plan_builder_again(struct plan_builder *builder, uint32_t task)
{
    struct plan *plan = &builder->plan;
    if (!RESERVE(builder, tasks, task_count, PLAN_TASKS_MAX, "tasks")) return;
    assert(!builder->in_unit);
    assert(task < plan->task_count);
    plan->tasks[plan->task_count] = plan->tasks[task];
    plan->task_count++;
}

void plan_builder_choice(struct plan_builder *builder, uint32_t unit, uint32_t device,
                         const uint32_t *slots, uint32_t slot_count)
{
    uint32_t before = builder->plan.task_count;
    plan_builder_task(builder, unit, device, slots, slot_count);
    builder->plan.choice_count += builder->plan.task_count - before;
}

void plan_builder_peer(struct plan_builder *builder, uint32_t peer)
{
    struct plan *plan = &builder->plan;
    if (builder->error.status != STATUS_OK) return;
    assert(plan->task_count > 0);
    plan->tasks[plan->task_count - 1].peer = peer;
}

void plan_builder_repeat(struct plan_builder *builder, uint32_t count, uint64_t times)
{
    struct plan *plan = &builder->plan;
    if (!reserve(builder, &builder->repeats, &builder->repeat_capacity, builder->repeat_count, sizeof *builder->repeats,
                 PLAN_SEGMENTS_MAX, "repeats"))
        return;
    assert(count <= plan->task_count);
    builder->repeats[builder->repeat_count++] = (struct plan_repeat){plan->task_count - count, count, times};
}

void plan_builder_segment(struct plan_builder *builder, uint32_t repeat_count)
{
    struct plan *plan = &builder->plan;
    if (!RESERVE(builder, segments, segment_count, PLAN_SEGMENTS_MAX, "segments")) return;
    const struct plan_segment *before = plan->segment_count > 0 ? &plan->segments[plan->segment_count - 1] : NULL;
    uint32_t first = before ? before->first_task + before->task_count : 0;
    if (plan->task_count == first) return;
    plan->segments[plan->segment_count++] = (struct plan_segment){
        .first_task = first, .task_count = plan->task_count - first, .repeat_count = repeat_count};
}

uint32_t plan_builder_gang(struct plan_builder *builder, const uint32_t extents[AXIS_COUNT],
                           const uint32_t *devices)
{
    struct plan *plan = &builder->plan;
    uint32_t index = plan->gang_count;
    if (!RESERVE(builder, gangs, gang_count, PLAN_GANG_DEVICES_MAX, "gangs")) return 0;
    struct plan_gang *gang = &plan->gangs[index];
    gang->first = plan->gang_device_count;
    for (uint32_t a = 0; a < AXIS_COUNT; a++) gang->extents[a] = extents[a];
    for (uint32_t i = 0; i < plan_gang_size(gang); i++) {
        if (!RESERVE(builder, gang_devices, gang_device_count, PLAN_GANG_DEVICES_MAX, "devices of gangs"))
            return 0;
        assert(devices[i] < plan->hardware.device_count);
        plan->gang_devices[plan->gang_device_count++] = devices[i];
    }
    plan->gang_count++;
    return index;
}

void plan_builder_gang_task(struct plan_builder *builder, uint32_t unit, uint32_t gang,
                            const uint32_t *slots, uint32_t slot_count)
{
    struct plan *plan = &builder->plan;
    if (builder->error.status != STATUS_OK) return;
    plan_builder_task(builder, unit, plan->gang_devices[plan->gangs[gang].first], slots, slot_count);
    if (builder->error.status == STATUS_OK) plan->tasks[plan->task_count - 1].gang = gang;
}

/* --- the whole ------------------------------------------------------------------------------ */

static enum status make_job_arrays(struct plan *plan, struct error *err)
{
    TRY(ARENA_NEW(&plan->arena, (size_t)plan->jobs.count + 1, plan->job_first_shard, err));
    TRY(ARENA_NEW(&plan->arena, plan->jobs.count, plan->job_activations, err));
    plan->policy = "";
    plan->bound_text = "";
    return STATUS_OK;
}

enum status plan_builder_create(struct hardware *hardware, struct job_set *jobs,
                                struct plan_builder **out, struct error *err)
{
    struct plan_builder *builder = alloc_zeroed(1, sizeof *builder);
    if (!builder) {
        hardware_release(hardware);
        job_set_release(jobs);
        return error_memory(err, "a plan", sizeof *builder);
    }
    builder->plan.hardware = *hardware;
    builder->plan.jobs = *jobs;
    *hardware = (struct hardware){0};
    *jobs = (struct job_set){0};
    enum status status = make_job_arrays(&builder->plan, err);
    if (status != STATUS_OK) {
        plan_builder_destroy(builder);
        return status;
    }
    *out = builder;
    return STATUS_OK;
}

void plan_builder_destroy(struct plan_builder *builder)
{
    if (!builder) return;
    struct plan *plan = &builder->plan;
    if (!builder->finished) {
        void *arrays[] = {plan->shards,   plan->items,  plan->works, plan->buffers,
                          plan->slots,    plan->accesses, plan->afters, plan->ops, plan->gangs,
                          plan->gang_devices, plan->segments,
                          plan->units,    plan->layouts, plan->tasks};
        for (size_t i = 0; i < ARRAY_COUNT(arrays); i++) free(arrays[i]);
        plan_release(plan);
    }
    struct intern *tables[] = {&builder->unit_table, &builder->slot_table, &builder->layout_table,
                               &builder->work_table, &builder->buffer_table};
    for (size_t i = 0; i < ARRAY_COUNT(tables); i++) free(tables[i]->cells);
    free(builder->repeats);
    free(builder);
}

struct plan *plan_builder_plan(struct plan_builder *builder)
{
    return &builder->plan;
}

/* Later shards fill in the entries of job_first_shard after the current job. */
uint32_t plan_builder_shard(struct plan_builder *builder, uint32_t job, uint64_t first_layer,
                            uint64_t layer_count, bool inputs_only)
{
    struct plan *plan = &builder->plan;
    uint32_t index = plan->shard_count;
    assert(job < plan->jobs.count);
    if (!RESERVE(builder, shards, shard_count, PLAN_SHARDS_MAX, "shards")) return 0;
    uint32_t last_job = index > 0 ? plan->shards[index - 1].job : 0;
    assert(job >= last_job);
    for (uint32_t j = last_job + 1; j <= job; j++) plan->job_first_shard[j] = index;
    plan->shards[index] = (struct plan_shard){job, first_layer, layer_count, inputs_only};
    plan->shard_count++;
    plan->job_first_shard[job + 1] = plan->shard_count;
    return index;
}

/* Moves an array to the arena at its exact length: a long one as it is, others by a copy. */
static bool settle(struct plan_builder *b, void *array, size_t count, size_t size)
{
    void *old, *settled;
    memcpy(&old, array, sizeof old); /* any object pointer: copied as bytes */
    if (count * size >= ADOPTED_BYTES_MIN) {
        settled = alloc_resize(old, count * size);
        if (!settled) {
            error_memory(&b->error, "a plan", count * size);
            return false;
        }
        memcpy(array, &settled, sizeof settled);
        return arena_adopt(&b->plan.arena, settled, count * size, &b->error) == STATUS_OK;
    }
    if (arena_array(&b->plan.arena, count, size, &settled, &b->error) != STATUS_OK) return false;
    if (count > 0) memcpy(settled, old, count * size);
    memcpy(array, &settled, sizeof settled);
    free(old);
    return true;
}

/* The arena owns each moved array; on failure the others must still be freed. */
static bool settle_all(struct plan_builder *b)
{
    struct plan *plan = &b->plan;
    const struct {
        void *array;
        size_t count, size;
    } arrays[] = {
        {&plan->shards, plan->shard_count, sizeof *plan->shards},
        {&plan->items, plan->item_count, sizeof *plan->items},
        {&plan->works, plan->work_count, sizeof *plan->works},
        {&plan->buffers, plan->buffer_count, sizeof *plan->buffers},
        {&plan->slots, plan->slot_count, sizeof *plan->slots},
        {&plan->accesses, plan->access_count, sizeof *plan->accesses},
        {&plan->afters, plan->after_count, sizeof *plan->afters},
        {&plan->ops, plan->op_count, sizeof *plan->ops},
        {&plan->units, plan->unit_count, sizeof *plan->units},
        {&plan->layouts, plan->layout_count, sizeof *plan->layouts},
        {&plan->gang_devices, plan->gang_device_count, sizeof *plan->gang_devices},
        {&plan->gangs, plan->gang_count, sizeof *plan->gangs},
        {&plan->tasks, plan->task_count, sizeof *plan->tasks},
        {&plan->segments, plan->segment_count, sizeof *plan->segments},
    };
    const size_t array_count = ARRAY_COUNT(arrays);
    size_t settled = 0;
    while (settled < array_count &&
           settle(b, arrays[settled].array, arrays[settled].count, arrays[settled].size))
        settled++;
    if (settled == array_count) return true;
    for (size_t i = 0; i < array_count; i++) {
        void *memory;
        memcpy(&memory, arrays[i].array, sizeof memory);
        if (i >= settled) free(memory);
        memset(arrays[i].array, 0, sizeof memory);
    }
    return false;
}

enum status plan_builder_finish(struct plan_builder *builder, struct plan *out, struct error *err)
{
    struct plan *plan = &builder->plan;
    assert(!builder->finished);
    assert(!builder->in_unit);
    if (builder->error.status == STATUS_OK && plan->segment_count > 0) {
        settle_all(builder);
    } else if (builder->error.status == STATUS_OK) {
        struct plan_folded folded;
        uint32_t first_choice = plan_first_choice(plan);
        if (plan_fold_repeats(plan->tasks, first_choice, builder->repeats, builder->repeat_count, &folded,
                              &builder->error) == STATUS_OK) {
            if (plan->choice_count > 0)
                memmove(plan->tasks + folded.task_count, plan->tasks + first_choice,
                        plan->choice_count * sizeof *plan->tasks);
            plan->task_count = folded.task_count + plan->choice_count;
            plan->segments = folded.segments;
            plan->segment_count = folded.segment_count;
            settle_all(builder);
        }
    }
    if (builder->error.status != STATUS_OK)
        return error_set(err, builder->error.status, "%s", builder->error.text);
    uint32_t last_job = plan->shard_count > 0 ? plan->shards[plan->shard_count - 1].job : 0;
    for (uint32_t j = last_job + 1; j <= plan->jobs.count; j++)
        plan->job_first_shard[j] = plan->shard_count;
    builder->finished = true;
    *out = *plan;
    *plan = (struct plan){0};
    return STATUS_OK;
}
