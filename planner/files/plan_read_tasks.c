/*
 * Tasks and segments. A segment has its tasks in full, or a number of turns.
 *
 * Turns come first: every device's lane and the turns are decoded, and each lane must have as many tasks as turns.
 * A segment then takes the next turns, and with each the next task of that lane. What a file may stand for is limited
 * (PLAN_TURNS_MAX), because a short one can repeat much.
 *
 * Rows of whole numbers are read without a tree. Where that fails, the row is parsed, which finds the place of the
 * fault.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/try.h"
#include "planner/files/plan_reader.h"

enum { ROW_MAX = 64 }; /* numbers of a row that are read without a tree */

/* --- tasks ---------------------------------------------------------------------------------- */

/* Reads ["gang", gang] or ["gang", gang, peer]. */
static enum status read_gang_places(struct plan_reader *r, const json_t *row, struct plan_task *task)
{
    uint32_t count = r->plan->gang_count, word;
    static const char *const words[] = {"gang"};
    TRY(plan_reader_choice(r, row, 0, "place", words, 1, &word));
    TRY(plan_reader_index(r, row, 1, "gang", count, &task->gang));
    task->device = r->plan->gang_devices[r->plan->gangs[task->gang].first];
    return json_array_size(row) == 3 ? plan_reader_index(r, row, 2, "gang", count, &task->peer) : STATUS_OK;
}

/* Reads the device, or [device, peer], or a gang. */
static enum status read_devices(struct plan_reader *r, const json_t *row, struct plan_task *task)
{
    uint32_t count = r->plan->hardware.device_count;
    const json_t *pair;
    task->peer = task->gang = PLAN_NONE;
    if (!json_is_array(json_array_get(row, 1)))
        return plan_reader_index(r, row, 1, "device", count, &task->device);
    bool gang = json_is_string(json_array_get(json_array_get(row, 1), 0));
    size_t length = gang && json_array_size(json_array_get(row, 1)) == 3 ? 3 : 2;
    TRY(json_item_array(r->in, row, 1, length, &pair, r->err));
    if (gang) return read_gang_places(r, pair, task);
    TRY(plan_reader_index(r, pair, 0, "device", count, &task->device));
    return plan_reader_index(r, pair, 1, "device", count, &task->peer);
}

/* Reads [unit, device, slot ...]. */
static enum status read_task_row(struct plan_reader *r, const json_t *row, void *context)
{
    struct plan *plan = r->plan;
    struct plan_task *task = context;
    TRY(plan_reader_row(r, row, SIZE_MAX));
    if (json_array_size(row) < 2)
        return json_fail_key(r->in, row, NULL, r->err,
                             "a task of %zu elements (expected unit, device, slots)",
                             json_array_size(row));
    TRY(plan_reader_index(r, row, 0, "unit", plan->unit_count, &task->unit));
    TRY(read_devices(r, row, task));
    size_t slot_count = json_array_size(row) - 2;
    uint32_t acquire_count = plan->units[task->unit].acquire_count;
    if (slot_count != acquire_count)
        return json_fail_key(r->in, row, NULL, r->err,
                             "%zu slots for unit %u (it acquires %u buffers)", slot_count,
                             task->unit, acquire_count);
    task->layout = plan->layout_count;
    for (uint32_t a = 0; a < acquire_count; a++)
        TRY(plan_reader_index(r, row, a + 2, "slot", plan->slot_count,
                              &plan->layouts[plan->layout_count++]));
    return STATUS_OK;
}

/* Reads a task on one device, the usual case. Returns false, and changes nothing, for others. */
static bool read_plain_task(struct plan *plan, const struct json_element *element, struct plan_task *task)
{
    uint32_t row[ROW_MAX];
    size_t count;
    if (!json_element_wholes(element, ROW_MAX, row, &count) || count < 2 || row[0] >= plan->unit_count ||
        row[1] >= plan->hardware.device_count || count - 2 != plan->units[row[0]].acquire_count)
        return false;
    for (size_t i = 2; i < count; i++)
        if (row[i] >= plan->slot_count) return false;
    *task = (struct plan_task){.unit = row[0], .device = row[1], .layout = plan->layout_count,
                               .peer = PLAN_NONE, .gang = PLAN_NONE};
    for (size_t i = 2; i < count; i++) plan->layouts[plan->layout_count++] = row[i];
    return true;
}

static enum status read_tasks(struct plan_reader *r, struct json_stream *stream)
{
    struct plan *plan = r->plan;
    struct json_element element;
    bool more;
    for (;;) {
        TRY(json_stream_next(stream, &element, &more, r->err));
        if (!more) return STATUS_OK;
        struct plan_task *task = &plan->tasks[plan->task_count];
        if (!read_plain_task(plan, &element, task))
            TRY(plan_reader_parse(r, stream, &element, read_task_row, task));
        plan->task_count++;
    }
}

/* --- turns ---------------------------------------------------------------------------------- */

struct turn_list {
    uint32_t *items;
    size_t count, capacity;
};

struct plan_reader_turns {
    struct plan_task *tasks; /* each once */
    uint32_t task_count;
    struct turn_list *lanes; /* per device: numbers of tasks */
    size_t lanes_count;      /* of all lanes together */
    struct turn_list order;  /* devices */
    uint32_t *taken;         /* per device: tasks of its lane that had their turn */
    size_t at;               /* turns before it were taken */
};

static void release_turns(struct plan_reader_turns *t, uint32_t device_count)
{
    for (uint32_t d = 0; t->lanes && d < device_count; d++) free(t->lanes[d].items);
    free(t->lanes);
    free(t->order.items);
    free(t->taken);
    free(t->tasks);
}

/* A list that rows lengthen. */
struct rows_read {
    struct plan_reader_turns *turns;
    bool of_lanes;         /* a row begins with its device */
    struct turn_list *list;
    size_t *total;
    uint32_t bound;        /* numbers are below ... */
    const char *what;      /* ... and name one of these */
};

static enum status append(struct plan_reader *r, struct rows_read *read, uint32_t number)
{
    struct turn_list *list = read->list;
    TRY(array_reserve(&list->items, &list->capacity, list->count, sizeof *list->items, PLAN_TURNS_MAX, "turns",
                      r->err));
    list->items[list->count++] = number;
    ++*read->total;
    return STATUS_OK;
}

static enum status append_again(struct plan_reader *r, struct rows_read *read, uint32_t count, uint32_t back)
{
    for (uint32_t i = 0; i < count; i++) TRY(append(r, read, read->list->items[read->list->count - back]));
    return STATUS_OK;
}

static bool back_exists(const struct rows_read *read, uint32_t count, uint32_t back)
{
    return count == 0 || (back > 0 && back <= read->list->count);
}

static bool have_room(const struct rows_read *read, uint64_t count) { return count <= PLAN_TURNS_MAX - *read->total; }

/* Reads [count, back, number, ...], after the device in lanes. */
static enum status read_turns_row(struct plan_reader *r, const json_t *row, void *context)
{
    struct rows_read *read = context;
    struct plan_reader_turns *t = read->turns;
    uint32_t lane, count, back, number;
    size_t at = read->of_lanes ? 1 : 0, size = json_array_size(row);
    TRY(plan_reader_row(r, row, SIZE_MAX));
    if (size < at + 2)
        return json_fail_key(r->in, row, NULL, r->err,
                             "a row of %zu elements (expected %show many to repeat, how far back, %ss)", size,
                             at > 0 ? "device, " : "", read->what);
    if (read->of_lanes) {
        TRY(plan_reader_index(r, row, 0, "device", r->plan->hardware.device_count, &lane));
        read->list = &t->lanes[lane];
    }
    TRY(plan_reader_u32(r, row, at, 0, PLAN_TURNS_MAX, &count));
    TRY(plan_reader_u32(r, row, at + 1, 0, PLAN_TURNS_MAX, &back));
    if (!back_exists(read, count, back))
        return json_fail_index(r->in, row, at + 1, r->err, "repeats from %" PRIu32 " back (there are %zu)", back,
                               read->list->count);
    if (!have_room(read, count + (size - at - 2)))
        return json_fail_index(r->in, row, at, r->err, "too many %s (limit is %d)",
                               read->of_lanes ? "tasks of lanes" : "turns", PLAN_TURNS_MAX);
    TRY(append_again(r, read, count, back));
    for (size_t i = at + 2; i < size; i++) {
        TRY(plan_reader_index(r, row, i, read->what, read->bound, &number));
        TRY(append(r, read, number));
    }
    return STATUS_OK;
}

/* Reads a short row without a fault. *done is false, and nothing changed, for others. */
static enum status read_plain_row(struct plan_reader *r, const struct json_element *element, struct rows_read *read,
                                  bool *done)
{
    uint32_t row[ROW_MAX];
    size_t size, at = read->of_lanes ? 1 : 0;
    *done = false;
    if (!json_element_wholes(element, ROW_MAX, row, &size) || size < at + 2) return STATUS_OK;
    if (read->of_lanes && row[0] >= r->plan->hardware.device_count) return STATUS_OK;
    if (read->of_lanes) read->list = &read->turns->lanes[row[0]];
    if (!back_exists(read, row[at], row[at + 1])) return STATUS_OK;
    if (!have_room(read, row[at] + (uint64_t)(size - at - 2))) return STATUS_OK;
    for (size_t i = at + 2; i < size; i++)
        if (row[i] >= read->bound) return STATUS_OK;
    *done = true;
    TRY(append_again(r, read, row[at], row[at + 1]));
    for (size_t i = at + 2; i < size; i++) TRY(append(r, read, row[i]));
    return STATUS_OK;
}

static enum status read_rows(struct plan_reader *r, enum plan_table table, struct rows_read *read)
{
    struct json_element element;
    bool more, done;
    TRY(json_stream_begin(r->file, table, r->err));
    for (;;) {
        TRY(json_stream_next(r->file, &element, &more, r->err));
        if (!more) return STATUS_OK;
        TRY(read_plain_row(r, &element, read, &done));
        if (!done) TRY(plan_reader_parse(r, r->file, &element, read_turns_row, read));
    }
}

/* Returns the error at the table, or at the plan that has none. */
static enum status fail_turns(struct plan_reader *r, const char *text)
{
    const json_t *root = json_input_root(r->in);
    return json_fail_key(r->in, root, r->tables[PLAN_TABLE_TURNS] ? "turns" : NULL, r->err, "%s", text);
}

static enum status check_lanes(struct plan_reader *r, const struct plan_reader_turns *t)
{
    char text[128];
    for (size_t i = 0; i < t->order.count; i++) t->taken[t->order.items[i]]++;
    for (uint32_t d = 0; d < r->plan->hardware.device_count; d++) {
        if (t->lanes[d].count == t->taken[d]) continue;
        snprintf(text, sizeof text, "%" PRIu32 " turns of device %" PRIu32 " (its lane has %zu tasks)", t->taken[d], d,
                 t->lanes[d].count);
        return fail_turns(r, text);
    }
    memset(t->taken, 0, r->plan->hardware.device_count * sizeof *t->taken);
    return STATUS_OK;
}

/* Reads lanes and turns; `task_count` tasks follow later. */
static enum status read_turns(struct plan_reader *r, size_t task_count, struct plan_reader_turns *t)
{
    uint32_t device_count = r->plan->hardware.device_count;
    TRY(plan_reader_limit(r, r->tables[PLAN_TABLE_TASKS], task_count, PLAN_TURNS_MAX, "tasks"));
    t->task_count = (uint32_t)task_count;
    t->lanes = alloc_zeroed(device_count, sizeof *t->lanes);
    t->taken = alloc_zeroed(device_count, sizeof *t->taken);
    t->tasks = alloc_zeroed(task_count, sizeof *t->tasks);
    if (!t->lanes || !t->taken || !t->tasks)
        return error_memory(r->err, "the turns of a plan", task_count * sizeof *t->tasks);
    struct rows_read lanes = {t, true, NULL, &t->lanes_count, t->task_count, "task"};
    size_t turns_count = 0;
    struct rows_read order = {t, false, &t->order, &turns_count, device_count, "device"};
    TRY(read_rows(r, PLAN_TABLE_LANES, &lanes));
    TRY(read_rows(r, PLAN_TABLE_TURNS, &order));
    return check_lanes(r, t);
}

/* Reads the tasks that lanes refer to. Their slots stay in the plan. */
static enum status read_turn_tasks(struct plan_reader *r, struct plan_reader_turns *t)
{
    struct plan *plan = r->plan;
    TRY(json_stream_begin(r->file, PLAN_TABLE_TASKS, r->err));
    TRY(read_tasks(r, r->file));
    if (t->task_count > 0) memcpy(t->tasks, plan->tasks, t->task_count * sizeof *t->tasks);
    plan->task_count = 0;
    return STATUS_OK;
}

static void take_turns(struct plan *plan, struct plan_reader_turns *t, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t device = t->order.items[t->at++];
        plan->tasks[plan->task_count++] = t->tasks[t->lanes[device].items[t->taken[device]++]];
    }
}

/* --- segments ------------------------------------------------------------------------------- */

/* Segments are objects, each with a long array; in plans of version 0.1 the second. */
static const char *const segment_arrays[] = {"tasks", "instances", NULL};

static size_t tasks_at(const struct json_stream *segment) { return json_stream_first(segment, 1) > 0 ? 1 : 0; }

static bool has_turns(const struct json_stream *segment)
{
    return json_object_get(json_input_root(json_stream_head(segment)), "turns") != NULL;
}

struct segment_sizes {
    size_t segments, tasks, slots;
};

/* Counts the turns of a segment. */
static enum status count_turns(struct plan_reader *r, const struct json_stream *segment, struct plan_reader_turns *t,
                               struct segment_sizes *sizes)
{
    const struct json_input *in = json_stream_head(segment);
    struct json_object object;
    uint32_t count;
    TRY(json_object_open(&object, in, json_input_root(in), "a segment", r->err));
    TRY(json_take_u32(&object, "turns", JSON_REQUIRED, 1, PLAN_TURNS_MAX, &count, r->err));
    if (count > t->order.count - t->at)
        return json_fail_key(in, object.value, "turns", r->err, "%" PRIu32 " turns (%zu are left)", count,
                             t->order.count - t->at);
    t->at += count;
    sizes->tasks += count;
    return STATUS_OK;
}

static enum status count_tasks(struct plan_reader *r, struct json_stream *segment, struct segment_sizes *sizes)
{
    struct json_element element;
    bool more;
    TRY(json_stream_begin(segment, tasks_at(segment), r->err));
    for (;; sizes->tasks++) {
        TRY(json_stream_next(segment, &element, &more, r->err));
        if (!more) return STATUS_OK;
        sizes->slots += json_element_size(&element);
    }
}

static enum status read_segment(struct plan_reader *r, struct json_stream *stream, struct plan_reader_turns *t,
                                struct plan_segment *segment)
{
    struct plan *plan = r->plan;
    const struct json_input *in = json_stream_head(stream);
    const char *key = segment_arrays[tasks_at(stream)];
    struct json_object object;
    const json_t *tasks;
    uint32_t turns = 0;
    TRY(json_object_open(&object, in, json_input_root(in), "a segment", r->err));
    TRY(json_take_u32(&object, "repeat", JSON_REQUIRED, 1, UINT32_MAX, &segment->repeat_count,
                      r->err));
    if (has_turns(stream)) TRY(json_take_u32(&object, "turns", JSON_REQUIRED, 1, PLAN_TURNS_MAX, &turns, r->err));
    else TRY(json_take_array(&object, key, JSON_REQUIRED, &tasks, r->err));
    TRY(json_object_close(&object, r->err));
    segment->first_task = plan->task_count;
    take_turns(plan, t, turns);
    if (turns == 0) {
        TRY(json_stream_begin(stream, tasks_at(stream), r->err));
        TRY(read_tasks(r, stream));
    }
    segment->task_count = plan->task_count - segment->first_task;
    if (segment->task_count == 0)
        return json_fail_key(in, object.value, key, r->err, "a segment without tasks");
    return STATUS_OK;
}

/* Counts the segments; reads them if `sizes` is NULL. */
static enum status each_segment(struct plan_reader *r, struct plan_reader_turns *t, struct segment_sizes *sizes)
{
    struct json_element element;
    bool more;
    t->at = 0;
    TRY(json_stream_begin(r->file, PLAN_TABLE_SEGMENTS, r->err));
    for (size_t s = 0;; s++) {
        struct json_stream *segment = NULL;
        enum status status;
        TRY(json_stream_next(r->file, &element, &more, r->err));
        if (!more) return STATUS_OK;
        TRY(json_stream_of_element(r->file, &element, segment_arrays, &segment, r->err));
        if (!sizes) status = read_segment(r, segment, t, &r->plan->segments[s]);
        else if (has_turns(segment)) status = count_turns(r, segment, t, sizes);
        else status = count_tasks(r, segment, sizes);
        json_stream_close(segment);
        if (status != STATUS_OK) return status;
        if (sizes) sizes->segments++;
    }
}

/* Allocates tasks, at least those that have turns, and the rest. */
static enum status allocate(struct plan_reader *r, const struct segment_sizes *sizes, uint32_t turn_tasks)
{
    TRY(plan_reader_limit(r, r->tables[PLAN_TABLE_SEGMENTS], sizes->segments, PLAN_SEGMENTS_MAX, "segments"));
    TRY(plan_reader_limit(r, r->tables[PLAN_TABLE_SEGMENTS], sizes->tasks, PLAN_TASKS_MAX, "tasks"));
    TRY(plan_reader_limit(r, r->tables[PLAN_TABLE_SEGMENTS], sizes->slots, PLAN_ACCESSES_MAX, "slots of tasks"));
    TRY(ARENA_NEW(&r->plan->arena, sizes->segments, r->plan->segments, r->err));
    TRY(ARENA_NEW(&r->plan->arena, sizes->tasks > turn_tasks ? sizes->tasks : turn_tasks, r->plan->tasks, r->err));
    return ARENA_NEW(&r->plan->arena, sizes->slots, r->plan->layouts, r->err);
}

static enum status read_segments(struct plan_reader *r, struct plan_reader_turns *t)
{
    struct plan *plan = r->plan;
    struct segment_sizes sizes = {0};
    size_t task_count, task_slots, choice_count, choice_slots;
    char text[128];
    TRY(plan_reader_count(r, PLAN_TABLE_TASKS, &task_count, &task_slots));
    TRY(plan_reader_count(r, PLAN_TABLE_CHOICES, &choice_count, &choice_slots));
    TRY(read_turns(r, task_count, t));
    TRY(each_segment(r, t, &sizes));
    if (t->at < t->order.count) {
        snprintf(text, sizeof text, "%zu turns (the segments have %zu)", t->order.count, t->at);
        return fail_turns(r, text);
    }
    sizes.tasks += choice_count;
    sizes.slots += choice_slots + task_slots;
    TRY(allocate(r, &sizes, t->task_count));
    TRY(read_turn_tasks(r, t));
    TRY(each_segment(r, t, NULL));
    plan->segment_count = (uint32_t)sizes.segments;
    TRY(json_stream_begin(r->file, PLAN_TABLE_CHOICES, r->err));
    TRY(read_tasks(r, r->file));
    plan->choice_count = (uint32_t)choice_count;
    return STATUS_OK;
}

enum status plan_reader_segments(struct plan_reader *r)
{
    struct plan_reader_turns turns = {0};
    enum status status = read_segments(r, &turns);
    release_turns(&turns, r->plan->hardware.device_count);
    return status;
}
