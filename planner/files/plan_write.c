/*
 * A plan as JSON, with a line for each item that a person may want to change:
 *
 *     {
 *       "spillway_plan": 1,
 *       "policy": "sharded-lrtf", "seed": 7, ...
 *       "hardware": {...}, "jobs": {...},
 *       "shards": [[job, first layer, layers], [job, first layer, layers, "inputs"], ...],
 *       "works": [[["adamw", count, m, n, k], ...], ...],
 *       "buffers": [["state", job, shard, variant, "host", bytes], ...],  host, device or storage
 *       "slots": [[offset, bytes], ...],
 *       "units": [{"job": 0, "shard": 1, "pass": "backward", "ends_minibatch": false, "ops": [
 *           {"copy": "h2d", "bytes": 4096, "from": [2, 0, "r"], "to": [9, 0, "wa"]},
 *           {"compute": "backward", "work": 3, "access": [[9, "rw"], [11, "wax"]]},
 *           {"copy": "d2h", "bytes": 4096, "from": [9, 0, "rx"], "to": [2, 0, "w"],
 *            "after": [[0, 1]]}]}, ...],
 *       "segments": [{"repeat": 20, "tasks": [[unit, device, slot, slot], ...]}, ...]
 *     }
 *
 * With gangs, "gangs" comes before the units, [[devices along each axis], [device, ...]] each. A gang's task has
 * "gang" and its number in place of the device: [unit, ["gang", 3], slot, ...], or ["gang", 3, peer].
 *
 *           {"collective": "all-reduce", "axes": ["tensor"], "rounds": 2, "bytes": 4096,
 *            "stream": "compute", "access": [9, 0, "rw"]}
 *
 * A collective between buffers has "from" and "to" like a copy.
 *
 * "reservations" comes there too, {"devices": [...], "jobs": [...], "begin_s", "end_s"} each; "follows", the number of
 * the one before it, if any; and "restart_s". "host_ranges" follows, [offset, bytes] or null for each job. "choices",
 * [[unit, device, slot, slot], ...], may follow the segments.
 *
 * A plan of thousands of tasks that do not repeat has them as turns (planner/walk/plan_turns.h):
 *
 *       "tasks": [[unit, device, slot, slot], ...],             each task once
 *       "lanes": [[device, count, back, task, ...], ...],       the devices' lanes, piece by piece: `count` entries as
 *       "turns": [[count, back, device, ...], ...],             `back` entries before, and new ones; likewise the turns
 *       "segments": [{"repeat": 20, "turns": 5120}, ...]        the next 5120 turns
 *
 * An access has its buffer's number and letters: r read, w write, a acquire, x release. Derived fields are left out:
 * streams, the table of layouts (tasks carry their slots), first shards of jobs, counts.
 *
 * Cost: linear; a buffer of lines is in memory, and turns.
 */
#include "models/jobs/jobs_file.h"
#include "planner/files/plan_io.h"

#include <assert.h>
#include <string.h>

#include "base/files/path.h"
#include "base/json/json_out.h"
#include "base/try.h"
#include "planner/check/plan_check.h"
#include "planner/walk/plan_copies.h"
#include "planner/walk/plan_turns.h"

/* --- rows of the tables --------------------------------------------------------------------- */

static void write_index_or_null(struct json_out *out, const char *key, uint32_t index)
{
    if (index == PLAN_NONE)
        json_out_null(out, key);
    else
        json_out_u64(out, key, index);
}

static void write_activations(const struct plan *plan, struct json_out *out)
{
    json_out_array_begin(out, "activations", true);
    for (uint32_t j = 0; j < plan->jobs.count; j++)
        json_out_string(out, NULL, plan_activations_names[plan->job_activations[j]]);
    json_out_array_end(out);
}

static void write_shards(const struct plan *plan, struct json_out *out)
{
    json_out_array_begin(out, "shards", false);
    for (uint32_t s = 0; s < plan->shard_count; s++) {
        json_out_array_begin(out, NULL, true);
        json_out_u64(out, NULL, plan->shards[s].job);
        json_out_u64(out, NULL, plan->shards[s].first_layer);
        json_out_u64(out, NULL, plan->shards[s].layer_count);
        if (plan->shards[s].inputs_only) json_out_string(out, NULL, "inputs");
        json_out_array_end(out);
    }
    json_out_array_end(out);
}

static void write_works(const struct plan *plan, struct json_out *out)
{
    json_out_array_begin(out, "works", false);
    for (uint32_t w = 0; w < plan->work_count; w++) {
        json_out_array_begin(out, NULL, true);
        for (uint32_t i = 0; i < plan->works[w].item_count; i++) {
            const struct work_item *item = &plan->items[plan->works[w].first_item + i];
            json_out_array_begin(out, NULL, true);
            json_out_string(out, NULL, kernel_names[item->kernel]);
            json_out_u64(out, NULL, item->count);
            json_out_u64(out, NULL, item->m);
            json_out_u64(out, NULL, item->n);
            json_out_u64(out, NULL, item->k);
            json_out_array_end(out);
        }
        json_out_array_end(out);
    }
    json_out_array_end(out);
}

static void write_buffers(const struct plan *plan, struct json_out *out)
{
    json_out_array_begin(out, "buffers", false);
    for (uint32_t b = 0; b < plan->buffer_count; b++) {
        const struct plan_buffer *buffer = &plan->buffers[b];
        json_out_array_begin(out, NULL, true);
        json_out_string(out, NULL, plan_buffer_names[buffer->kind]);
        json_out_u64(out, NULL, buffer->job);
        write_index_or_null(out, NULL, buffer->shard);
        json_out_u64(out, NULL, buffer->variant);
        json_out_string(out, NULL, buffer->on_device                ? "device"
                                   : buffer->kind == BUFFER_STORED ? "storage"
                                                                   : "host");
        json_out_u64(out, NULL, buffer->bytes);
        json_out_array_end(out);
    }
    json_out_array_end(out);
}

static void write_slots(const struct plan *plan, struct json_out *out)
{
    json_out_array_begin(out, "slots", false);
    for (uint32_t s = 0; s < plan->slot_count; s++) {
        json_out_array_begin(out, NULL, true);
        json_out_u64(out, NULL, plan->slots[s].offset_bytes);
        json_out_u64(out, NULL, plan->slots[s].bytes);
        json_out_array_end(out);
    }
    json_out_array_end(out);
}

/* --- units ---------------------------------------------------------------------------------- */

static void write_flags(struct json_out *out, uint32_t flags)
{
    char letters[5];
    size_t length = 0;
    if (flags & ACCESS_READ) letters[length++] = 'r';
    if (flags & ACCESS_WRITE) letters[length++] = 'w';
    if (flags & ACCESS_ACQUIRE) letters[length++] = 'a';
    if (flags & ACCESS_RELEASE) letters[length++] = 'x';
    letters[length] = '\0';
    json_out_string(out, NULL, letters);
}

static void write_copy_end(struct json_out *out, const char *key, const struct plan_access *access)
{
    json_out_array_begin(out, key, true);
    json_out_u64(out, NULL, access->buffer);
    json_out_u64(out, NULL, access->offset_bytes);
    write_flags(out, access->flags);
    json_out_array_end(out);
}

static void write_copy(const struct plan *plan, const struct plan_op *op, struct json_out *out)
{
    const struct plan_access *ends = plan->accesses + op->first_access;
    assert(op->access_count == 2);
    json_out_string(out, "copy", plan_stream_names[op->stream]);
    json_out_u64(out, "bytes", op->bytes);
    write_copy_end(out, "from", &ends[0]);
    write_copy_end(out, "to", &ends[1]);
}

static void write_compute(const struct plan *plan, const struct plan_op *op, struct json_out *out)
{
    json_out_string(out, "compute", plan_pass_names[op->pass]);
    if (op->stream == STREAM_CPU) json_out_bool(out, "cpu", true);
    if (op->stream == STREAM_HOST && op->pass != PLAN_BATCH && op->pass != PLAN_KEEP)
        json_out_bool(out, "host", true);
    if (op->work != PLAN_NONE) json_out_u64(out, "work", op->work);
    if (op->row_count > 0) {
        json_out_u64(out, "slice", op->slice);
        json_out_array_begin(out, "rows", true);
        json_out_u64(out, NULL, op->first_row);
        json_out_u64(out, NULL, op->row_count);
        json_out_array_end(out);
    } else if (op->slice > 0) {
        json_out_u64(out, "tokens", op->slice);
    }
    json_out_array_begin(out, "access", true);
    for (uint32_t a = 0; a < op->access_count; a++) {
        const struct plan_access *access = &plan->accesses[op->first_access + a];
        json_out_array_begin(out, NULL, true);
        json_out_u64(out, NULL, access->buffer);
        write_flags(out, access->flags);
        json_out_array_end(out);
    }
    json_out_array_end(out);
}

static void write_collective(const struct plan *plan, const struct plan_op *op, struct json_out *out)
{
    json_out_string(out, "collective", collective_kind_names[op->collective]);
    json_out_array_begin(out, "axes", true);
    for (uint32_t a = 0; a < AXIS_COUNT; a++)
        if (op->axes & 1u << a) json_out_string(out, NULL, plan_axis_names[a]);
    json_out_array_end(out);
    json_out_u64(out, "rounds", op->rounds);
    json_out_u64(out, "bytes", op->bytes);
    json_out_string(out, "stream", plan_stream_names[op->stream]);
    const struct plan_access *ends = plan->accesses + op->first_access;
    write_copy_end(out, op->access_count == 1 ? "access" : "from", &ends[0]);
    if (op->access_count > 1) write_copy_end(out, "to", &ends[1]);
}

static void write_op(const struct plan *plan, const struct plan_op *op, struct json_out *out)
{
    json_out_object_begin(out, NULL, true);
    if (op->kind == OP_COPY)
        write_copy(plan, op, out);
    else if (op->kind == OP_COLLECTIVE)
        write_collective(plan, op, out);
    else
        write_compute(plan, op, out);
    if (op->after_count > 0) {
        json_out_array_begin(out, "after", true);
        for (uint32_t a = 0; a < op->after_count; a++) {
            const struct plan_after *after = &plan->afters[op->first_after + a];
            json_out_array_begin(out, NULL, true);
            json_out_u64(out, NULL, after->tasks);
            json_out_u64(out, NULL, after->op);
            json_out_array_end(out);
        }
        json_out_array_end(out);
    }
    json_out_object_end(out);
}

static void write_gangs(const struct plan *plan, struct json_out *out)
{
    if (plan->gang_count == 0) return;
    json_out_array_begin(out, "gangs", false);
    for (uint32_t g = 0; g < plan->gang_count; g++) {
        const struct plan_gang *gang = &plan->gangs[g];
        json_out_array_begin(out, NULL, true);
        json_out_array_begin(out, NULL, true);
        for (uint32_t a = 0; a < AXIS_COUNT; a++)
            if (a != AXIS_ENDS || gang->extents[a] > 1) json_out_u64(out, NULL, gang->extents[a]);
        json_out_array_end(out);
        json_out_array_begin(out, NULL, true);
        for (uint32_t i = 0; i < plan_gang_size(gang); i++)
            json_out_u64(out, NULL, plan->gang_devices[gang->first + i]);
        json_out_array_end(out);
        json_out_array_end(out);
    }
    json_out_array_end(out);
}

static void write_reservation(const struct plan *plan, uint32_t index, struct json_out *out)
{
    const struct plan_reservation *reservation = &plan->reservations[index];
    json_out_object_begin(out, NULL, true);
    json_out_array_begin(out, "devices", true);
    for (uint32_t i = 0; i < reservation->device_count; i++)
        json_out_u64(out, NULL, plan_reservation_devices(plan, index)[i]);
    json_out_array_end(out);
    json_out_array_begin(out, "jobs", true);
    for (uint32_t j = 0; j < plan->jobs.count; j++)
        if (plan->job_reservation[j] == index) json_out_u64(out, NULL, j);
    json_out_array_end(out);
    if (reservation->follows != PLAN_NONE) json_out_u64(out, "follows", reservation->follows);
    json_out_double(out, "begin_s", reservation->begin_s);
    json_out_double(out, "end_s", reservation->end_s);
    if (reservation->restart_s > 0) json_out_double(out, "restart_s", reservation->restart_s);
    json_out_object_end(out);
}

static void write_reservations(const struct plan *plan, struct json_out *out)
{
    if (plan->reservation_count == 0) return;
    json_out_array_begin(out, "reservations", false);
    for (uint32_t l = 0; l < plan->reservation_count; l++) write_reservation(plan, l, out);
    json_out_array_end(out);
}

static void write_ranges(const struct plan *plan, struct json_out *out)
{
    if (!plan->host_ranges) return;
    json_out_array_begin(out, "host_ranges", false);
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        if (!plan_has_range(plan, j)) {
            json_out_null(out, NULL);
            continue;
        }
        json_out_array_begin(out, NULL, true);
        json_out_u64(out, NULL, plan->host_ranges[j].offset_bytes);
        json_out_u64(out, NULL, plan->host_ranges[j].bytes);
        json_out_array_end(out);
    }
    json_out_array_end(out);
}

static void write_units(const struct plan *plan, struct json_out *out)
{
    json_out_array_begin(out, "units", false);
    for (uint32_t u = 0; u < plan->unit_count; u++) {
        const struct plan_unit *unit = &plan->units[u];
        json_out_object_begin(out, NULL, false);
        json_out_u64(out, "job", unit->job);
        write_index_or_null(out, "shard", unit->shard);
        json_out_string(out, "pass", plan_pass_names[unit->pass]);
        json_out_bool(out, "ends_minibatch", unit->ends_minibatch);
        json_out_array_begin(out, "ops", false);
        for (uint32_t o = 0; o < unit->op_count; o++)
            write_op(plan, &plan->ops[unit->first_op + o], out);
        json_out_array_end(out);
        json_out_object_end(out);
    }
    json_out_array_end(out);
}

/* Writes [device, peer] for P2P copies, else the device; gangs begin with "gang". */
static void write_devices(const struct plan_task *task, struct json_out *out)
{
    if (task->gang != PLAN_NONE) {
        json_out_array_begin(out, NULL, true);
        json_out_string(out, NULL, "gang");
        json_out_u64(out, NULL, task->gang);
        if (task->peer != PLAN_NONE) json_out_u64(out, NULL, task->peer);
        json_out_array_end(out);
        return;
    }
    if (task->peer == PLAN_NONE) {
        json_out_u64(out, NULL, task->device);
        return;
    }
    json_out_array_begin(out, NULL, true);
    json_out_u64(out, NULL, task->device);
    json_out_u64(out, NULL, task->peer);
    json_out_array_end(out);
}

static void write_task(const struct plan *plan, const struct plan_task *task, struct json_out *out)
{
    json_out_array_begin(out, NULL, true);
    json_out_u64(out, NULL, task->unit);
    write_devices(task, out);
    for (uint32_t a = 0; a < plan->units[task->unit].acquire_count; a++)
        json_out_u64(out, NULL, plan->layouts[task->layout + a]);
    json_out_array_end(out);
}

static void write_tasks(const struct plan *plan, const char *key, uint32_t first, uint32_t count,
                        struct json_out *out)
{
    json_out_array_begin(out, key, false);
    for (uint32_t i = first; i < first + count; i++) write_task(plan, &plan->tasks[i], out);
    json_out_array_end(out);
}

/* --- turns ---------------------------------------------------------------------------------- */

enum {
    FRESH_MAX = 60,     /* numbers in a row after those that it repeats */
    LANE_COPY_MIN = 4,  /* shorter copies take more bytes than ... */
    TURN_COPY_MIN = 10, /* ... the numbers themselves */
};

/* Takes the next numbers without copies, for want of memory to look for them. */
static bool next_fresh(uint32_t count, struct plan_copy *copy)
{
    copy->first += copy->fresh;
    copy->fresh = count - copy->first < FRESH_MAX ? count - copy->first : FRESH_MAX;
    return copy->fresh > 0;
}

/* Writes rows of one device's lane, or of the turns (`lane` PLAN_NONE). */
static void write_rows(const uint32_t *numbers, uint32_t count, uint32_t lane, struct json_out *out)
{
    struct plan_copy copy = {0};
    uint32_t shortest = lane == PLAN_NONE ? TURN_COPY_MIN : LANE_COPY_MIN;
    struct plan_copies *copies = plan_copies_create(numbers, count, shortest);
    while (copies ? plan_copies_next(copies, FRESH_MAX, &copy) : next_fresh(count, &copy)) {
        json_out_array_begin(out, NULL, true);
        if (lane != PLAN_NONE) json_out_u64(out, NULL, lane);
        json_out_u64(out, NULL, copy.count);
        json_out_u64(out, NULL, copy.back);
        for (uint32_t i = 0; i < copy.fresh; i++) json_out_u64(out, NULL, numbers[copy.first + i]);
        json_out_array_end(out);
    }
    plan_copies_destroy(copies);
}

static void write_turns(const struct plan *plan, const struct plan_turns *turns, struct json_out *out)
{
    json_out_array_begin(out, "tasks", false);
    for (uint32_t i = 0; i < turns->distinct_count; i++) write_task(plan, &plan->tasks[turns->distinct[i]], out);
    json_out_array_end(out);
    json_out_array_begin(out, "lanes", false);
    for (uint32_t d = 0, first = 0; d < plan->hardware.device_count; first = turns->lane_end[d++])
        write_rows(turns->lanes + first, turns->lane_end[d] - first, d, out);
    json_out_array_end(out);
    json_out_array_begin(out, "turns", false);
    write_rows(turns->turns, turns->count, PLAN_NONE, out);
    json_out_array_end(out);
}

static void write_segments(const struct plan *plan, bool as_turns, struct json_out *out)
{
    json_out_array_begin(out, "segments", false);
    for (uint32_t s = 0; s < plan->segment_count; s++) {
        const struct plan_segment *segment = &plan->segments[s];
        json_out_object_begin(out, NULL, false);
        json_out_u64(out, "repeat", segment->repeat_count);
        if (as_turns) json_out_u64(out, "turns", segment->task_count);
        else write_tasks(plan, "tasks", segment->first_task, segment->task_count, out);
        json_out_object_end(out);
    }
    json_out_array_end(out);
}

/* Writes tasks in full, or as turns where that is shorter. */
static void write_order(const struct plan *plan, struct json_out *out)
{
    struct plan_turns turns;
    bool as_turns = plan_turns_make(plan, &turns);
    if (as_turns) {
        write_turns(plan, &turns, out);
        plan_turns_release(&turns);
    }
    write_segments(plan, as_turns, out);
}

/* --- public --------------------------------------------------------------------------------- */

static void write_bases(const struct plan *plan, struct json_out *out)
{
    uint32_t j = 0;
    while (j < plan->jobs.count && !plan->jobs.jobs[j].shares_base) j++;
    if (j == plan->jobs.count) return;
    json_out_array_begin(out, "base_owners", true);
    for (j = 0; j < plan->jobs.count; j++)
        if (plan->jobs.jobs[j].shares_base) json_out_u64(out, NULL, plan->jobs.jobs[j].base_owner);
        else json_out_null(out, NULL);
    json_out_array_end(out);
}

/* Writes for each job null, what it makes, or the layers and the maker of the outputs that it takes. */
static void write_outputs(const struct plan *plan, struct json_out *out)
{
    uint32_t j = 0;
    while (j < plan->jobs.count && plan->jobs.jobs[j].outputs.layers == 0) j++;
    if (j == plan->jobs.count) return;
    json_out_array_begin(out, "kept_outputs", true);
    for (j = 0; j < plan->jobs.count; j++) {
        const struct job_outputs *outputs = &plan->jobs.jobs[j].outputs;
        if (outputs->layers == 0) {
            json_out_null(out, NULL);
            continue;
        }
        json_out_object_begin(out, NULL, true);
        json_out_u64(out, "layers", outputs->layers);
        if (outputs->makes) {
            json_out_u64(out, "samples", outputs->samples);
            json_out_u64(out, "held_out", outputs->held_out);
        } else {
            json_out_u64(out, "maker", outputs->maker);
        }
        json_out_object_end(out);
    }
    json_out_array_end(out);
}

/* `folder` NULL: paths as they are. */
static void write_plan(const struct plan *plan, const char *folder, struct json_out *out)
{
    json_out_object_begin(out, NULL, false);
    json_out_u64(out, "spillway_plan", PLAN_VERSION);
    json_out_string(out, "policy", plan->policy);
    json_out_u64(out, "seed", plan->seed);
    json_out_bool(out, "double_buffer", plan->double_buffer);
    json_out_double(out, "estimated_makespan_s", plan->estimated_makespan_s);
    json_out_double(out, "lower_bound_s", plan->lower_bound_s);
    json_out_object_begin(out, "bound", true);
    json_out_string(out, "kind", plan_bound_names[plan->bound_kind]);
    json_out_string(out, "text", plan->bound_text);
    json_out_object_end(out);
    if (plan->order.kind != PLAN_ORDER_NONE) {
        json_out_object_begin(out, "order", true);
        json_out_string(out, "kind", plan_order_names[plan->order.kind]);
        json_out_double(out, "bound_s", plan->order.bound_s);
        json_out_u64(out, "tried", plan->order.tried);
        json_out_object_end(out);
    }
    hardware_write(&plan->hardware, out, "hardware");
    write_bases(plan, out);
    write_outputs(plan, out);
    job_set_write(plan->jobs.jobs, plan->jobs.count, folder, out, "jobs");
    write_activations(plan, out);
    write_shards(plan, out);
    write_works(plan, out);
    write_buffers(plan, out);
    write_slots(plan, out);
    write_gangs(plan, out);
    write_reservations(plan, out);
    write_ranges(plan, out);
    write_units(plan, out);
    write_order(plan, out);
    if (plan->any_order) json_out_bool(out, "any_order", true);
    if (plan->choice_count > 0)
        write_tasks(plan, "choices", plan_first_choice(plan), plan->choice_count, out);
    json_out_object_end(out);
}

void plan_write_json(const struct plan *plan, struct json_out *out) { write_plan(plan, NULL, out); }

static enum status write_file(const struct plan *plan, const char *folder, const char *path, struct error *err)
{
    struct json_file file;
    TRY(json_file_begin(&file, path, "writing a plan", err));
    write_plan(plan, folder, file.out);
    return json_file_end(&file, err);
}

enum status plan_write(const struct plan *plan, const char *path, struct error *err)
{
    struct arena arena = {0};
    const char *folder = NULL;
    enum status status = plan_check(plan, err);
    if (status == STATUS_OK && strcmp(path, "-") != 0) status = path_folder(path, &arena, &folder, err);
    if (status == STATUS_OK) status = write_file(plan, folder, path, err);
    arena_release(&arena);
    return status;
}
