/*
 * plan_write.c shows the format.
 *
 * People edit these files, so the reader trusts nothing: it checks every name, index and range, and the message says
 * where. Long arrays (base/json/json_stream.h) are read in two passes: the first counts, so that each table is
 * allocated once; the second fills and checks. A table is read before the tables that refer to it:
 *
 *     hardware, jobs -> shards, works -> buffers, slots -> units -> segments
 *
 * Elements of rows: plan_reader.c. Units and their operations: plan_read_units.c. Tasks and segments:
 * plan_read_tasks.c.
 */
#include "models/jobs/jobs_file.h"
#include "planner/files/plan_io.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/files/path.h"
#include "base/try.h"
#include "planner/check/plan_check.h"
#include "planner/files/plan_reader.h"

/* --- jobs and shards ------------------------------------------------------------------------ */

static enum status read_activations(struct plan_reader *r, const json_t *array)
{
    struct plan *plan = r->plan;
    size_t count = json_array_size(array);
    if (count != plan->jobs.count)
        return json_fail_index(r->in, array, JSON_SELF, r->err,
                               "%zu activations for %u jobs (expected one each)", count,
                               plan->jobs.count);
    TRY(ARENA_NEW(&r->plan->arena, count, plan->job_activations, r->err));
    for (size_t j = 0; j < count; j++)
        TRY(plan_reader_choice(r, array, j, "way of activations", plan_activations_names,
                               ACTIVATIONS_COUNT, &plan->job_activations[j]));
    return STATUS_OK;
}

struct shards_read {
    uint32_t count, job;
};

static enum status read_shard(struct plan_reader *r, const json_t *row, void *context)
{
    static const char *const held[] = {"all", "inputs"};
    struct shards_read *read = context;
    struct plan *plan = r->plan;
    struct plan_shard *shard = &plan->shards[read->count];
    uint32_t inputs = 0;
    size_t length = json_array_size(row);
    TRY(plan_reader_row(r, row, length == 4 ? 4 : 3));
    if (length == 4) TRY(plan_reader_choice(r, row, 3, "way of activations", held, 2, &inputs));
    shard->inputs_only = inputs;
    TRY(plan_reader_index(r, row, 0, "job", plan->jobs.count, &shard->job));
    TRY(json_item_u64(r->in, row, 1, 0, NETWORK_LAYERS_MAX, &shard->first_layer, r->err));
    TRY(json_item_u64(r->in, row, 2, 1, NETWORK_LAYERS_MAX, &shard->layer_count, r->err));
    if (shard->job < read->job)
        return json_fail_index(r->in, row, 0, r->err,
                               "a shard of job %u after one of job %u (expected in order)",
                               shard->job, read->job);
    while (read->job < shard->job) plan->job_first_shard[++read->job] = read->count;
    read->count++;
    return STATUS_OK;
}

static enum status read_shards(struct plan_reader *r)
{
    struct plan *plan = r->plan;
    struct shards_read read = {0};
    size_t count, inner;
    TRY(plan_reader_count(r, PLAN_TABLE_SHARDS, &count, &inner));
    TRY(plan_reader_limit(r, r->tables[PLAN_TABLE_SHARDS], count, PLAN_SHARDS_MAX, "shards"));
    TRY(ARENA_NEW(&r->plan->arena, count, plan->shards, r->err));
    TRY(ARENA_NEW(&r->plan->arena, (size_t)plan->jobs.count + 1, plan->job_first_shard, r->err));
    TRY(plan_reader_each(r, PLAN_TABLE_SHARDS, read_shard, &read));
    while (read.job < plan->jobs.count) plan->job_first_shard[++read.job] = (uint32_t)count;
    plan->shard_count = (uint32_t)count;
    return STATUS_OK;
}

/* --- works, buffers, slots ------------------------------------------------------------------ */

static enum status read_work_item(struct plan_reader *r, const json_t *array, size_t index,
                                  struct work_item *item)
{
    const json_t *row;
    TRY(json_item_array(r->in, array, index, 5, &row, r->err));
    TRY(plan_reader_choice(r, row, 0, "kernel", kernel_names, KERNEL_COUNT, &item->kernel));
    TRY(plan_reader_u32(r, row, 1, 1, UINT32_MAX, &item->count));
    TRY(json_item_u64(r->in, row, 2, 0, UINT64_MAX, &item->m, r->err));
    TRY(json_item_u64(r->in, row, 3, 0, UINT64_MAX, &item->n, r->err));
    TRY(json_item_u64(r->in, row, 4, 0, UINT64_MAX, &item->k, r->err));
    return STATUS_OK;
}

static enum status read_work(struct plan_reader *r, const json_t *row, void *context)
{
    (void)context;
    struct plan *plan = r->plan;
    struct plan_work *work = &plan->works[plan->work_count];
    TRY(plan_reader_row(r, row, SIZE_MAX));
    work->first_item = plan->item_count;
    work->item_count = (uint32_t)json_array_size(row);
    for (size_t i = 0; i < json_array_size(row); i++)
        TRY(read_work_item(r, row, i, &plan->items[plan->item_count++]));
    plan->work_count++;
    return STATUS_OK;
}

static enum status read_works(struct plan_reader *r)
{
    struct plan *plan = r->plan;
    size_t count, item_count;
    TRY(plan_reader_count(r, PLAN_TABLE_WORKS, &count, &item_count));
    TRY(plan_reader_limit(r, r->tables[PLAN_TABLE_WORKS], count, PLAN_OPS_MAX, "works"));
    TRY(plan_reader_limit(r, r->tables[PLAN_TABLE_WORKS], item_count, PLAN_ITEMS_MAX, "work items"));
    TRY(ARENA_NEW(&r->plan->arena, count, plan->works, r->err));
    TRY(ARENA_NEW(&r->plan->arena, item_count, plan->items, r->err));
    return plan_reader_each(r, PLAN_TABLE_WORKS, read_work, NULL);
}

static enum status read_buffer(struct plan_reader *r, const json_t *row, void *context)
{
    (void)context;
    static const char *const places[] = {"host", "device", "storage"};
    struct plan *plan = r->plan;
    uint32_t place;
    struct plan_buffer *buffer = &plan->buffers[plan->buffer_count];
    TRY(plan_reader_row(r, row, 6));
    TRY(plan_reader_choice(r, row, 0, "buffer kind", plan_buffer_names, BUFFER_KIND_COUNT,
                           &buffer->kind));
    TRY(plan_reader_index(r, row, 1, "job", plan->jobs.count, &buffer->job));
    TRY(plan_reader_shard(r, row, 2, buffer->job, &buffer->shard));
    TRY(plan_reader_u32(r, row, 3, 0, UINT32_MAX, &buffer->variant));
    TRY(plan_reader_choice(r, row, 4, "place", places, 3, &place));
    if ((buffer->kind == BUFFER_STORED) != (place == 2))
        return json_fail_index(r->in, row, 4, r->err, "a %s in place '%s' (%s)",
                               plan_buffer_names[buffer->kind], places[place],
                               place == 2 ? "storage holds only stored states"
                                          : "expected 'storage'");
    TRY(json_item_u64(r->in, row, 5, 0, UINT64_MAX, &buffer->bytes, r->err));
    buffer->on_device = place == 1;
    plan->buffer_count++;
    return STATUS_OK;
}

static enum status read_buffers(struct plan_reader *r)
{
    struct plan *plan = r->plan;
    size_t count, inner;
    TRY(plan_reader_count(r, PLAN_TABLE_BUFFERS, &count, &inner));
    TRY(plan_reader_limit(r, r->tables[PLAN_TABLE_BUFFERS], count, PLAN_BUFFERS_MAX, "buffers"));
    TRY(ARENA_NEW(&r->plan->arena, count, plan->buffers, r->err));
    return plan_reader_each(r, PLAN_TABLE_BUFFERS, read_buffer, NULL);
}

static enum status read_slot(struct plan_reader *r, const json_t *row, void *context)
{
    (void)context;
    struct plan_slot *slot = &r->plan->slots[r->plan->slot_count];
    TRY(plan_reader_row(r, row, 2));
    TRY(json_item_u64(r->in, row, 0, 0, UINT64_MAX, &slot->offset_bytes, r->err));
    TRY(json_item_u64(r->in, row, 1, 0, UINT64_MAX, &slot->bytes, r->err));
    r->plan->slot_count++;
    return STATUS_OK;
}

static enum status read_slots(struct plan_reader *r)
{
    struct plan *plan = r->plan;
    size_t count, inner;
    TRY(plan_reader_count(r, PLAN_TABLE_SLOTS, &count, &inner));
    TRY(plan_reader_limit(r, r->tables[PLAN_TABLE_SLOTS], count, PLAN_SLOTS_MAX, "slots"));
    TRY(ARENA_NEW(&r->plan->arena, count, plan->slots, r->err));
    return plan_reader_each(r, PLAN_TABLE_SLOTS, read_slot, NULL);
}

/* --- gangs ---------------------------------------------------------------------------------- */

/* Reads [[devices along each axis], [device, ...]]. */
static enum status read_gang(struct plan_reader *r, const json_t *array, size_t index, struct plan_gang *gang)
{
    struct plan *plan = r->plan;
    const json_t *row, *extents, *devices;
    uint64_t size = 1;
    TRY(json_item_array(r->in, array, index, 2, &row, r->err));
    TRY(json_item_array(r->in, row, 0, SIZE_MAX, &extents, r->err));
    bool ends = json_array_size(extents) > AXIS_ENDS;
    TRY(json_item_array(r->in, row, 0, ends ? AXIS_COUNT : AXIS_ENDS, &extents, r->err));
    gang->extents[AXIS_ENDS] = 1;
    TRY(json_item_array(r->in, row, 1, SIZE_MAX, &devices, r->err));
    for (uint32_t a = 0; a < (ends ? AXIS_COUNT : AXIS_ENDS); a++) {
        TRY(plan_reader_u32(r, extents, a, 1, PLAN_GANG_DEVICES_MAX, &gang->extents[a]));
        size *= gang->extents[a];
        if (size > plan->hardware.device_count)
            return json_fail_index(r->in, extents, a, r->err, "a gang of %" PRIu64 " devices (there are %" PRIu32 ")",
                                   size, plan->hardware.device_count);
    }
    if (json_array_size(devices) != size)
        return json_fail_index(r->in, row, 1, r->err, "%zu devices in a gang of %" PRIu64,
                               json_array_size(devices), size);
    gang->first = plan->gang_device_count;
    for (size_t i = 0; i < size; i++)
        TRY(plan_reader_index(r, devices, i, "device", plan->hardware.device_count,
                              &plan->gang_devices[plan->gang_device_count++]));
    return STATUS_OK;
}

static enum status read_gangs(struct plan_reader *r, struct json_object *root)
{
    struct plan *plan = r->plan;
    const json_t *array = NULL;
    size_t devices = 0;
    TRY(json_take_array(root, "gangs", JSON_OPTIONAL, &array, r->err));
    if (!array) return STATUS_OK;
    for (size_t g = 0; g < json_array_size(array); g++)
        devices += json_array_size(json_array_get(json_array_get(array, g), 1));
    TRY(plan_reader_limit(r, array, devices, PLAN_GANG_DEVICES_MAX, "devices of gangs"));
    TRY(ARENA_NEW(&r->plan->arena, json_array_size(array), plan->gangs, r->err));
    TRY(ARENA_NEW(&r->plan->arena, devices, plan->gang_devices, r->err));
    for (size_t g = 0; g < json_array_size(array); g++) {
        TRY(read_gang(r, array, g, &plan->gangs[g]));
        plan->gang_count++;
    }
    return STATUS_OK;
}

/* --- reservations --------------------------------------------------------------------------------- */

static enum status read_reservation_jobs(struct plan_reader *r, const json_t *jobs, uint32_t index)
{
    struct plan *plan = r->plan;
    for (size_t i = 0; i < json_array_size(jobs); i++) {
        uint32_t job;
        TRY(plan_reader_index(r, jobs, i, "job", plan->jobs.count, &job));
        if (plan->job_reservation[job] != PLAN_NONE)
            return json_fail_index(r->in, jobs, i, r->err, "job %u is in reservation %u already", job,
                                   plan->job_reservation[job]);
        plan->job_reservation[job] = index;
    }
    return STATUS_OK;
}

static enum status read_reservation(struct plan_reader *r, const json_t *array, uint32_t index)
{
    struct plan *plan = r->plan;
    struct plan_reservation *reservation = &plan->reservations[index];
    struct json_object object;
    const json_t *devices, *jobs;
    reservation->follows = PLAN_NONE;
    reservation->first_device = plan->reservation_device_count;
    TRY(json_object_open_at(&object, r->in, array, index, "a reservation", r->err));
    TRY(json_take_array(&object, "devices", JSON_REQUIRED, &devices, r->err));
    TRY(json_take_array(&object, "jobs", JSON_REQUIRED, &jobs, r->err));
    TRY(json_take_u32(&object, "follows", JSON_OPTIONAL, 0, PLAN_NONE - 1, &reservation->follows, r->err));
    TRY(json_take_double(&object, "begin_s", JSON_REQUIRED, 0, 1e300, &reservation->begin_s, r->err));
    TRY(json_take_double(&object, "end_s", JSON_REQUIRED, 0, 1e300, &reservation->end_s, r->err));
    TRY(json_take_double(&object, "restart_s", JSON_OPTIONAL, 0, 1e9, &reservation->restart_s, r->err));
    for (size_t i = 0; i < json_array_size(devices); i++, reservation->device_count++)
        TRY(plan_reader_index(r, devices, i, "device", plan->hardware.device_count,
                              &plan->reservation_devices[plan->reservation_device_count++]));
    TRY(read_reservation_jobs(r, jobs, index));
    return json_object_close(&object, r->err);
}

static enum status read_reservations(struct plan_reader *r, struct json_object *root)
{
    struct plan *plan = r->plan;
    const json_t *array = NULL;
    size_t devices = 0;
    static const char now[] = "reservations", before[] = "leases"; /* the second in plans of version 0.1 */
    TRY(json_take_array(root, json_has(root, before) ? before : now, JSON_OPTIONAL, &array, r->err));
    if (!array) return STATUS_OK;
    for (size_t l = 0; l < json_array_size(array); l++)
        devices += json_array_size(json_object_get(json_array_get(array, l), "devices"));
    TRY(plan_reader_limit(r, array, json_array_size(array), PLAN_RESERVATIONS_MAX, "reservations"));
    TRY(plan_reader_limit(r, array, devices, PLAN_GANG_DEVICES_MAX, "devices of reservations"));
    TRY(ARENA_NEW(&r->plan->arena, json_array_size(array), plan->reservations, r->err));
    TRY(ARENA_NEW(&r->plan->arena, devices, plan->reservation_devices, r->err));
    TRY(ARENA_NEW(&r->plan->arena, plan->jobs.count, plan->job_reservation, r->err));
    for (uint32_t j = 0; j < plan->jobs.count; j++) plan->job_reservation[j] = PLAN_NONE;
    for (uint32_t l = 0; l < json_array_size(array); l++) TRY(read_reservation(r, array, l));
    plan->reservation_count = (uint32_t)json_array_size(array);
    return STATUS_OK;
}

/* --- ranges of host memory ------------------------------------------------------------------ */

/* Reads [offset, bytes], or null. */
static enum status read_ranges(struct plan_reader *r, struct json_object *root)
{
    struct plan *plan = r->plan;
    const json_t *array = NULL, *row;
    TRY(json_take_array(root, "host_ranges", JSON_OPTIONAL, &array, r->err));
    if (!array) return STATUS_OK;
    if (json_array_size(array) != plan->jobs.count)
        return json_fail_key(r->in, root->value, "host_ranges", r->err, "%zu ranges of host memory (expected %" PRIu32
                             ", one for each job)", json_array_size(array), plan->jobs.count);
    TRY(ARENA_NEW(&r->plan->arena, plan->jobs.count, plan->host_ranges, r->err));
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        struct plan_host_range *range = &plan->host_ranges[j];
        if (json_is_null(json_array_get(array, j))) continue;
        TRY(json_item_array(r->in, array, j, 2, &row, r->err));
        TRY(json_item_u64(r->in, row, 0, 0, INT64_MAX, &range->offset_bytes, r->err));
        TRY(json_item_u64(r->in, row, 1, 1, INT64_MAX, &range->bytes, r->err));
    }
    return STATUS_OK;
}

/* --- the file ------------------------------------------------------------------------------- */

static enum status read_header(struct plan_reader *r, struct json_object *root)
{
    struct plan *plan = r->plan;
    uint32_t version;
    const char *policy;
    TRY(json_take_u32(root, "spillway_plan", JSON_REQUIRED, 0, UINT32_MAX, &version, r->err));
    if (version != PLAN_VERSION)
        return json_fail_key(r->in, root->value, "spillway_plan", r->err,
                             "a plan of version %u (this program reads version %d)", version,
                             PLAN_VERSION);
    TRY(json_take_string(root, "policy", JSON_REQUIRED, &policy, r->err));
    TRY(arena_string(&plan->arena, policy, &plan->policy, r->err));
    TRY(json_take_u64(root, "seed", JSON_REQUIRED, 0, UINT64_MAX, &plan->seed, r->err));
    TRY(json_take_bool(root, "double_buffer", JSON_REQUIRED, &plan->double_buffer, r->err));
    TRY(json_take_bool(root, "any_order", JSON_OPTIONAL, &plan->any_order, r->err));
    TRY(json_take_double(root, "estimated_makespan_s", JSON_REQUIRED, 0, 1e300,
                         &plan->estimated_makespan_s, r->err));
    return json_take_double(root, "lower_bound_s", JSON_REQUIRED, 0, 1e300, &plan->lower_bound_s,
                            r->err);
}

static enum status read_bound(struct plan_reader *r, struct json_object *root)
{
    const json_t *value;
    struct json_object object;
    size_t kind = 0;
    const char *text;
    TRY(json_take_object(root, "bound", JSON_REQUIRED, &value, r->err));
    TRY(json_object_open(&object, r->in, value, "a bound", r->err));
    TRY(json_take_choice(&object, "kind", JSON_REQUIRED, plan_bound_names, BOUND_KIND_COUNT, &kind,
                         r->err));
    TRY(json_take_string(&object, "text", JSON_REQUIRED, &text, r->err));
    r->plan->bound_kind = (uint32_t)kind;
    TRY(arena_string(&r->plan->arena, text, &r->plan->bound_text, r->err));
    return json_object_close(&object, r->err);
}

/* Plans of version 0.1 have "regions" for weight buffers. */
static enum status read_order_kind(struct plan_reader *r, struct json_object *object, size_t *kind)
{
    const char *word = json_string_value(json_object_get(object->value, "kind"));
    if (!word || strcmp(word, "regions") != 0)
        return json_take_choice(object, "kind", JSON_REQUIRED, plan_order_names, PLAN_ORDER_COUNT, kind, r->err);
    *kind = PLAN_ORDER_WEIGHT_BUFFERS;
    return json_take_string(object, "kind", JSON_REQUIRED, &word, r->err);
}

static enum status read_order(struct plan_reader *r, struct json_object *root)
{
    const json_t *value;
    struct json_object object;
    struct plan_order *order = &r->plan->order;
    size_t kind = 0;
    TRY(json_take_object(root, "order", JSON_OPTIONAL, &value, r->err));
    if (!value) return STATUS_OK;
    TRY(json_object_open(&object, r->in, value, "the order's bound", r->err));
    TRY(read_order_kind(r, &object, &kind));
    order->kind = (uint32_t)kind;
    TRY(json_take_double(&object, "bound_s", JSON_REQUIRED, 0, 1e300, &order->bound_s, r->err));
    TRY(json_take_u64(&object, "tried", JSON_REQUIRED, 0, INT64_MAX, &order->tried, r->err));
    return json_object_close(&object, r->err);
}

/* Makes paths of network files, which are networks' names, absolute. */
static enum status place_networks(struct plan_reader *r)
{
    for (uint32_t j = 0; j < r->plan->jobs.count; j++) {
        struct network *network = &r->plan->jobs.jobs[j].network;
        const char *path;
        if (network->name[0] == '/' || !network_is_path(network->name)) continue;
        TRY(path_absolute(r->folder, network->name, &r->plan->arena, &path, r->err));
        if (strlen(path) < sizeof network->name) snprintf(network->name, sizeof network->name, "%s", path);
    }
    return STATUS_OK;
}

/* Reads which jobs share a base, and whose buffers it has. */
static enum status read_bases(struct plan_reader *r, struct json_object *root)
{
    const json_t *array = NULL;
    struct job_set *jobs = &r->plan->jobs;
    TRY(json_take_array(root, "base_owners", JSON_OPTIONAL, &array, r->err));
    if (!array) return STATUS_OK;
    if (json_array_size(array) != jobs->count)
        return json_fail_key(r->in, root->value, "base_owners", r->err, "%zu owners of bases (expected %" PRIu32
                             ", one for each job)", json_array_size(array), jobs->count);
    for (uint32_t j = 0; j < jobs->count; j++) {
        if (json_is_null(json_array_get(array, j))) continue;
        TRY(plan_reader_index(r, array, j, "job", jobs->count, &jobs->jobs[j].base_owner));
        jobs->jobs[j].shares_base = true;
    }
    return STATUS_OK;
}

static enum status read_outputs_of(struct plan_reader *r, const json_t *array, uint32_t j)
{
    struct job_outputs *out = &r->plan->jobs.jobs[j].outputs;
    const uint64_t layers = r->plan->jobs.jobs[j].network.layer_count;
    struct json_object object;
    if (json_is_null(json_array_get(array, j))) return STATUS_OK;
    TRY(json_object_open_at(&object, r->in, array, j, "kept outputs", r->err));
    TRY(json_take_u64(&object, "layers", JSON_REQUIRED, 1, layers - 1, &out->layers, r->err));
    out->makes = !json_has(&object, "maker");
    if (out->makes) {
        TRY(json_take_u64(&object, "samples", JSON_REQUIRED, 1, UINT32_MAX, &out->samples, r->err));
        TRY(json_take_u64(&object, "held_out", JSON_REQUIRED, 0, UINT32_MAX, &out->held_out, r->err));
    } else {
        TRY(json_take_u32(&object, "maker", JSON_REQUIRED, 0, r->plan->jobs.count - 1, &out->maker, r->err));
    }
    return json_object_close(&object, r->err);
}

/* Reads which jobs make or take kept outputs. */
static enum status read_outputs(struct plan_reader *r, struct json_object *root)
{
    const json_t *array = NULL;
    const uint32_t count = r->plan->jobs.count;
    TRY(json_take_array(root, "kept_outputs", JSON_OPTIONAL, &array, r->err));
    if (!array) return STATUS_OK;
    if (json_array_size(array) != count)
        return json_fail_key(r->in, root->value, "kept_outputs", r->err, "%zu kept outputs (expected %" PRIu32
                             ", one for each job)", json_array_size(array), count);
    for (uint32_t j = 0; j < count; j++) TRY(read_outputs_of(r, array, j));
    return STATUS_OK;
}

static enum status read_machine_and_jobs(struct plan_reader *r, struct json_object *root)
{
    const json_t *value;
    TRY(json_take_object(root, "hardware", JSON_REQUIRED, &value, r->err));
    TRY(hardware_parse(r->in, value, &r->plan->hardware, r->err));
    TRY(json_take_object(root, "jobs", JSON_REQUIRED, &value, r->err));
    TRY(job_set_parse(r->in, value, r->folder, &r->plan->jobs, r->err));
    TRY(place_networks(r));
    TRY(read_bases(r, root));
    TRY(read_outputs(r, root));
    if (r->plan->jobs.count == 0)
        return json_fail_key(r->in, root->value, "jobs", r->err, "a plan without jobs");
    return STATUS_OK;
}

static const char *const table_keys[PLAN_TABLE_COUNT + 1] = {
    [PLAN_TABLE_SHARDS] = "shards",   [PLAN_TABLE_WORKS] = "works", [PLAN_TABLE_BUFFERS] = "buffers",
    [PLAN_TABLE_SLOTS] = "slots",     [PLAN_TABLE_UNITS] = "units", [PLAN_TABLE_SEGMENTS] = "segments",
    [PLAN_TABLE_CHOICES] = "choices", [PLAN_TABLE_TASKS] = "tasks", [PLAN_TABLE_LANES] = "lanes",
    [PLAN_TABLE_TURNS] = "turns",
};

/* Takes the empty tables from the head. */
static enum status find_tables(struct plan_reader *r, struct json_object *root)
{
    for (size_t t = 0; t < PLAN_TABLE_COUNT; t++) {
        TRY(json_take_array(root, table_keys[t], t >= PLAN_TABLE_CHOICES ? JSON_OPTIONAL : JSON_REQUIRED, &r->tables[t],
                            r->err));
        if (json_array_size(r->tables[t]) > 0)
            return json_fail_key(r->in, root->value, table_keys[t], r->err, "the key '%s' is written with escapes",
                                 table_keys[t]);
    }
    return STATUS_OK;
}

static enum status read_tables(struct plan_reader *r, struct json_object *root)
{
    static enum status (*const readers[])(struct plan_reader *r) = {read_shards, read_works, read_buffers,
                                                                    read_slots, plan_reader_units,
                                                                    plan_reader_segments};
    const json_t *activations;
    TRY(find_tables(r, root));
    TRY(json_take_array(root, "activations", JSON_REQUIRED, &activations, r->err));
    TRY(read_activations(r, activations));
    for (size_t t = 0; t < sizeof readers / sizeof readers[0]; t++) TRY(readers[t](r));
    return STATUS_OK;
}

static enum status read_plan(struct json_stream *file, const char *folder, struct plan *plan, struct error *err)
{
    const struct json_input *in = json_stream_head(file);
    struct plan_reader r = {.in = in, .plan = plan, .err = err, .file = file, .folder = folder};
    struct json_object root;
    TRY(json_object_open(&root, in, json_input_root(in), "a plan", err));
    TRY(read_header(&r, &root));
    TRY(read_bound(&r, &root));
    TRY(read_order(&r, &root));
    TRY(read_machine_and_jobs(&r, &root));
    TRY(read_gangs(&r, &root));
    TRY(read_reservations(&r, &root));
    TRY(read_ranges(&r, &root));
    TRY(read_tables(&r, &root));
    TRY(json_object_close(&root, err));
    if (plan_check(plan, err) != STATUS_OK) return error_add(err, "%s", json_input_name(in));
    return STATUS_OK;
}

/* Takes `file` over. */
static enum status read_and_close(struct json_stream *file, const char *folder, struct plan *plan, struct error *err)
{
    enum status status = read_plan(file, folder, plan, err);
    json_stream_close(file);
    return status;
}

enum status plan_read(const char *path, struct plan *out, struct error *err)
{
    struct json_stream *file;
    const char *folder;
    TRY(path_folder(path, &out->arena, &folder, err));
    TRY(json_stream_open(path, table_keys, &file, err));
    return read_and_close(file, folder, out, err);
}

enum status plan_parse(const char *name, const char *text, size_t length, struct plan *out,
                       struct error *err)
{
    struct json_stream *file;
    TRY(json_stream_of_text(name, text, length, table_keys, &file, err));
    return read_and_close(file, "/", out, err);
}
