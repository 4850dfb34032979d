/*
 * The reader of plan files. The format is shown in plan_write.c.
 *
 * Files are written by us, edited by people and damaged by accidents, so nothing in them is
 * trusted: every name, index and range is checked where it stands, and the message says where that
 * is. Two passes over the parsed tree: the first only counts, so that each table is allocated once,
 * at its length; the second fills the tables in the order of the file and checks each element. A
 * table is read before those that refer to it:
 *
 *     hardware, jobs -> shards, works -> buffers, slots -> units -> segments
 *
 * The plan that comes out has well-formed tables, nothing more. Whether it makes sense is the
 * question of plan_check(), asked at the end.
 *
 * Elements of rows: plan_reader.c. Units and their operations: plan_read_units.c.
 */
#include "planner/plan_io.h"

#include <inttypes.h>

#include "models/try.h"
#include "planner/plan_check.h"
#include "planner/plan_reader.h"

/* --- jobs and shards ------------------------------------------------------------------------ */

static enum status read_activations(struct plan_reader *r, const json_t *array)
{
    struct plan *plan = r->plan;
    size_t count = json_array_size(array);
    if (count != plan->jobs.count)
        return json_fail_index(r->in, array, JSON_SELF, r->err,
                               "%zu activations for %u jobs (expected one each)", count,
                               plan->jobs.count);
    TRY(plan_reader_allocate(r, count, sizeof *plan->job_activations, &plan->job_activations));
    for (size_t j = 0; j < count; j++)
        TRY(plan_reader_choice(r, array, j, "way of activations", plan_activations_names,
                               ACTIVATIONS_COUNT, &plan->job_activations[j]));
    return STATUS_OK;
}

static enum status read_shards(struct plan_reader *r, const json_t *array)
{
    struct plan *plan = r->plan;
    size_t count = json_array_size(array);
    TRY(plan_reader_limit(r, array, count, PLAN_SHARDS_MAX, "shards"));
    TRY(plan_reader_allocate(r, count, sizeof *plan->shards, &plan->shards));
    TRY(plan_reader_allocate(r, (size_t)plan->jobs.count + 1, sizeof *plan->job_first_shard,
                             &plan->job_first_shard));
    uint32_t job = 0;
    for (size_t i = 0; i < count; i++) {
        const json_t *row;
        struct plan_shard *shard = &plan->shards[i];
        static const char *const held[] = {"all", "inputs"};
        uint32_t inputs = 0;
        size_t length = json_array_size(json_array_get(array, i));
        TRY(json_item_array(r->in, array, i, length == 4 ? 4 : 3, &row, r->err));
        if (length == 4) TRY(plan_reader_choice(r, row, 3, "way of activations", held, 2, &inputs));
        shard->inputs_only = inputs;
        TRY(plan_reader_index(r, row, 0, "job", plan->jobs.count, &shard->job));
        TRY(json_item_u64(r->in, row, 1, 0, LAYERS_MAX, &shard->first_layer, r->err));
        TRY(json_item_u64(r->in, row, 2, 1, LAYERS_MAX, &shard->layer_count, r->err));
        if (shard->job < job)
            return json_fail_index(r->in, row, 0, r->err,
                                   "a shard of job %u behind one of job %u (expected in order)",
                                   shard->job, job);
        while (job < shard->job) plan->job_first_shard[++job] = (uint32_t)i;
    }
    while (job < plan->jobs.count) plan->job_first_shard[++job] = (uint32_t)count;
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

static enum status read_works(struct plan_reader *r, const json_t *array)
{
    struct plan *plan = r->plan;
    size_t count = json_array_size(array), item_count = plan_reader_inner(array);
    TRY(plan_reader_limit(r, array, count, PLAN_OPS_MAX, "works"));
    TRY(plan_reader_limit(r, array, item_count, PLAN_ITEMS_MAX, "work items"));
    TRY(plan_reader_allocate(r, count, sizeof *plan->works, &plan->works));
    TRY(plan_reader_allocate(r, item_count, sizeof *plan->items, &plan->items));
    for (size_t w = 0; w < count; w++) {
        const json_t *row;
        TRY(json_item_array(r->in, array, w, SIZE_MAX, &row, r->err));
        plan->works[w].first_item = plan->item_count;
        plan->works[w].item_count = (uint32_t)json_array_size(row);
        for (size_t i = 0; i < json_array_size(row); i++)
            TRY(read_work_item(r, row, i, &plan->items[plan->item_count++]));
    }
    plan->work_count = (uint32_t)count;
    return STATUS_OK;
}

static enum status read_buffers(struct plan_reader *r, const json_t *array)
{
    static const char *const places[] = {"host", "device", "storage"};
    struct plan *plan = r->plan;
    size_t count = json_array_size(array);
    TRY(plan_reader_limit(r, array, count, PLAN_BUFFERS_MAX, "buffers"));
    TRY(plan_reader_allocate(r, count, sizeof *plan->buffers, &plan->buffers));
    for (size_t b = 0; b < count; b++) {
        const json_t *row;
        uint32_t place;
        struct plan_buffer *buffer = &plan->buffers[b];
        TRY(json_item_array(r->in, array, b, 6, &row, r->err));
        TRY(plan_reader_choice(r, row, 0, "buffer kind", plan_buffer_names, BUFFER_KIND_COUNT,
                               &buffer->kind));
        TRY(plan_reader_index(r, row, 1, "job", plan->jobs.count, &buffer->job));
        TRY(plan_reader_shard(r, row, 2, buffer->job, &buffer->shard));
        TRY(plan_reader_u32(r, row, 3, 0, UINT32_MAX, &buffer->variant));
        TRY(plan_reader_choice(r, row, 4, "place", places, 3, &place));
        if ((buffer->kind == BUFFER_STORED) != (place == 2))
            return json_fail_index(r->in, row, 4, r->err, "a %s in place '%s' (%s)",
                                   plan_buffer_names[buffer->kind], places[place],
                                   place == 2 ? "on storage are stored states alone"
                                              : "expected 'storage'");
        TRY(json_item_u64(r->in, row, 5, 0, UINT64_MAX, &buffer->bytes, r->err));
        buffer->on_device = place == 1;
    }
    plan->buffer_count = (uint32_t)count;
    return STATUS_OK;
}

static enum status read_slots(struct plan_reader *r, const json_t *array)
{
    struct plan *plan = r->plan;
    size_t count = json_array_size(array);
    TRY(plan_reader_limit(r, array, count, PLAN_SLOTS_MAX, "slots"));
    TRY(plan_reader_allocate(r, count, sizeof *plan->slots, &plan->slots));
    for (size_t s = 0; s < count; s++) {
        const json_t *row;
        TRY(json_item_array(r->in, array, s, 2, &row, r->err));
        TRY(json_item_u64(r->in, row, 0, 0, UINT64_MAX, &plan->slots[s].offset_bytes, r->err));
        TRY(json_item_u64(r->in, row, 1, 0, UINT64_MAX, &plan->slots[s].bytes, r->err));
    }
    plan->slot_count = (uint32_t)count;
    return STATUS_OK;
}

/* --- gangs ---------------------------------------------------------------------------------- */

/* [[devices along each axis], [device, ...]] */
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
    TRY(plan_reader_allocate(r, json_array_size(array), sizeof *plan->gangs, &plan->gangs));
    TRY(plan_reader_allocate(r, devices, sizeof *plan->gang_devices, &plan->gang_devices));
    for (size_t g = 0; g < json_array_size(array); g++) {
        TRY(read_gang(r, array, g, &plan->gangs[g]));
        plan->gang_count++;
    }
    return STATUS_OK;
}

/* --- leases --------------------------------------------------------------------------------- */

static enum status read_lease_jobs(struct plan_reader *r, const json_t *jobs, uint32_t index)
{
    struct plan *plan = r->plan;
    for (size_t i = 0; i < json_array_size(jobs); i++) {
        uint32_t job;
        TRY(plan_reader_index(r, jobs, i, "job", plan->jobs.count, &job));
        if (plan->job_lease[job] != PLAN_NONE)
            return json_fail_index(r->in, jobs, i, r->err, "job %u is in lease %u already", job,
                                   plan->job_lease[job]);
        plan->job_lease[job] = index;
    }
    return STATUS_OK;
}

static enum status read_lease(struct plan_reader *r, const json_t *array, uint32_t index)
{
    struct plan *plan = r->plan;
    struct plan_lease *lease = &plan->leases[index];
    struct json_object object;
    const json_t *devices, *jobs;
    lease->follows = PLAN_NONE;
    lease->first_device = plan->lease_device_count;
    TRY(json_object_open_at(&object, r->in, array, index, "a lease", r->err));
    TRY(json_take_array(&object, "devices", JSON_REQUIRED, &devices, r->err));
    TRY(json_take_array(&object, "jobs", JSON_REQUIRED, &jobs, r->err));
    TRY(json_take_u32(&object, "follows", JSON_OPTIONAL, 0, PLAN_NONE - 1, &lease->follows, r->err));
    TRY(json_take_double(&object, "begin_s", JSON_REQUIRED, 0, 1e300, &lease->begin_s, r->err));
    TRY(json_take_double(&object, "end_s", JSON_REQUIRED, 0, 1e300, &lease->end_s, r->err));
    TRY(json_take_double(&object, "restart_s", JSON_OPTIONAL, 0, 1e9, &lease->restart_s, r->err));
    for (size_t i = 0; i < json_array_size(devices); i++, lease->device_count++)
        TRY(plan_reader_index(r, devices, i, "device", plan->hardware.device_count,
                              &plan->lease_devices[plan->lease_device_count++]));
    TRY(read_lease_jobs(r, jobs, index));
    return json_object_close(&object, r->err);
}

static enum status read_leases(struct plan_reader *r, struct json_object *root)
{
    struct plan *plan = r->plan;
    const json_t *array = NULL;
    size_t devices = 0;
    TRY(json_take_array(root, "leases", JSON_OPTIONAL, &array, r->err));
    if (!array) return STATUS_OK;
    for (size_t l = 0; l < json_array_size(array); l++)
        devices += json_array_size(json_object_get(json_array_get(array, l), "devices"));
    TRY(plan_reader_limit(r, array, json_array_size(array), PLAN_LEASES_MAX, "leases"));
    TRY(plan_reader_limit(r, array, devices, PLAN_GANG_DEVICES_MAX, "devices of leases"));
    TRY(plan_reader_allocate(r, json_array_size(array), sizeof *plan->leases, &plan->leases));
    TRY(plan_reader_allocate(r, devices, sizeof *plan->lease_devices, &plan->lease_devices));
    TRY(plan_reader_allocate(r, plan->jobs.count, sizeof *plan->job_lease, &plan->job_lease));
    for (uint32_t j = 0; j < plan->jobs.count; j++) plan->job_lease[j] = PLAN_NONE;
    for (uint32_t l = 0; l < json_array_size(array); l++) TRY(read_lease(r, array, l));
    plan->lease_count = (uint32_t)json_array_size(array);
    return STATUS_OK;
}

/* --- plan order ----------------------------------------------------------------------------- */

/* ["gang", gang] or ["gang", gang, peer]. */
static enum status read_gang_places(struct plan_reader *r, const json_t *row, struct plan_instance *instance)
{
    uint32_t count = r->plan->gang_count, word;
    static const char *const words[] = {"gang"};
    TRY(plan_reader_choice(r, row, 0, "place", words, 1, &word));
    TRY(plan_reader_index(r, row, 1, "gang", count, &instance->gang));
    instance->device = r->plan->gang_devices[r->plan->gangs[instance->gang].first];
    return json_array_size(row) == 3 ? plan_reader_index(r, row, 2, "gang", count, &instance->peer) : STATUS_OK;
}

/* The device, or [device, peer], or a gang. */
static enum status read_devices(struct plan_reader *r, const json_t *row, struct plan_instance *instance)
{
    uint32_t count = r->plan->hardware.device_count;
    const json_t *pair;
    instance->peer = instance->gang = PLAN_NONE;
    if (!json_is_array(json_array_get(row, 1)))
        return plan_reader_index(r, row, 1, "device", count, &instance->device);
    bool gang = json_is_string(json_array_get(json_array_get(row, 1), 0));
    size_t length = gang && json_array_size(json_array_get(row, 1)) == 3 ? 3 : 2;
    TRY(json_item_array(r->in, row, 1, length, &pair, r->err));
    if (gang) return read_gang_places(r, pair, instance);
    TRY(plan_reader_index(r, pair, 0, "device", count, &instance->device));
    return plan_reader_index(r, pair, 1, "device", count, &instance->peer);
}

/* [unit, device, slot ...] */
static enum status read_instance(struct plan_reader *r, const json_t *array, size_t index,
                                 struct plan_instance *instance)
{
    struct plan *plan = r->plan;
    const json_t *row;
    TRY(json_item_array(r->in, array, index, SIZE_MAX, &row, r->err));
    if (json_array_size(row) < 2)
        return json_fail_index(r->in, array, index, r->err,
                               "an instance of %zu elements (expected unit, device, slots)",
                               json_array_size(row));
    TRY(plan_reader_index(r, row, 0, "unit", plan->unit_count, &instance->unit));
    TRY(read_devices(r, row, instance));
    size_t slot_count = json_array_size(row) - 2;
    uint32_t acquire_count = plan->units[instance->unit].acquire_count;
    if (slot_count != acquire_count)
        return json_fail_index(r->in, array, index, r->err,
                               "%zu slots for unit %u (it acquires %u buffers)", slot_count,
                               instance->unit, acquire_count);
    instance->layout = plan->layout_count;
    for (uint32_t a = 0; a < acquire_count; a++)
        TRY(plan_reader_index(r, row, a + 2, "slot", plan->slot_count,
                              &plan->layouts[plan->layout_count++]));
    return STATUS_OK;
}

static enum status read_segment(struct plan_reader *r, const json_t *array, size_t index,
                                struct plan_segment *segment)
{
    struct plan *plan = r->plan;
    struct json_object object;
    const json_t *instances;
    TRY(json_object_open_at(&object, r->in, array, index, "a segment", r->err));
    TRY(json_take_u32(&object, "repeat", JSON_REQUIRED, 1, UINT32_MAX, &segment->repeat_count,
                      r->err));
    TRY(json_take_array(&object, "instances", JSON_REQUIRED, &instances, r->err));
    if (json_array_size(instances) == 0)
        return json_fail_key(r->in, object.value, "instances", r->err,
                             "a segment without instances");
    segment->first_instance = plan->instance_count;
    segment->instance_count = (uint32_t)json_array_size(instances);
    for (size_t i = 0; i < json_array_size(instances); i++)
        TRY(read_instance(r, instances, i, &plan->instances[plan->instance_count++]));
    return json_object_close(&object, r->err);
}

static enum status read_segments(struct plan_reader *r, const json_t *array)
{
    struct plan *plan = r->plan;
    size_t count = json_array_size(array), choice_count = json_array_size(r->choices);
    size_t instance_count = choice_count, layout_count = plan_reader_inner(r->choices);
    for (size_t s = 0; s < count; s++) {
        const json_t *instances = json_object_get(json_array_get(array, s), "instances");
        instance_count += json_array_size(instances);
        layout_count += plan_reader_inner(instances);
    }
    TRY(plan_reader_limit(r, array, count, PLAN_SEGMENTS_MAX, "segments"));
    TRY(plan_reader_limit(r, array, instance_count, PLAN_INSTANCES_MAX, "instances"));
    TRY(plan_reader_limit(r, array, layout_count, PLAN_ACCESSES_MAX, "slots of instances"));
    TRY(plan_reader_allocate(r, count, sizeof *plan->segments, &plan->segments));
    TRY(plan_reader_allocate(r, instance_count, sizeof *plan->instances, &plan->instances));
    TRY(plan_reader_allocate(r, layout_count, sizeof *plan->layouts, &plan->layouts));
    for (size_t s = 0; s < count; s++) TRY(read_segment(r, array, s, &plan->segments[s]));
    plan->segment_count = (uint32_t)count;
    for (size_t i = 0; i < choice_count; i++)
        TRY(read_instance(r, r->choices, i, &plan->instances[plan->instance_count++]));
    plan->choice_count = (uint32_t)choice_count;
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

static enum status read_order(struct plan_reader *r, struct json_object *root)
{
    const json_t *value;
    struct json_object object;
    struct plan_order *order = &r->plan->order;
    size_t kind = 0;
    TRY(json_take_object(root, "order", JSON_OPTIONAL, &value, r->err));
    if (!value) return STATUS_OK;
    TRY(json_object_open(&object, r->in, value, "the order's bound", r->err));
    TRY(json_take_choice(&object, "kind", JSON_REQUIRED, plan_order_names, PLAN_ORDER_COUNT, &kind,
                         r->err));
    order->kind = (uint32_t)kind;
    TRY(json_take_double(&object, "bound_s", JSON_REQUIRED, 0, 1e300, &order->bound_s, r->err));
    TRY(json_take_u64(&object, "tried", JSON_REQUIRED, 0, INT64_MAX, &order->tried, r->err));
    return json_object_close(&object, r->err);
}

static enum status read_machine_and_jobs(struct plan_reader *r, struct json_object *root)
{
    const json_t *value;
    TRY(json_take_object(root, "hardware", JSON_REQUIRED, &value, r->err));
    TRY(hardware_parse(r->in, value, &r->plan->hardware, r->err));
    TRY(json_take_object(root, "jobs", JSON_REQUIRED, &value, r->err));
    TRY(job_set_parse(r->in, value, "/", &r->plan->jobs, r->err));
    if (r->plan->jobs.count == 0)
        return json_fail_key(r->in, root->value, "jobs", r->err, "a plan without jobs");
    return STATUS_OK;
}

static enum status read_tables(struct plan_reader *r, struct json_object *root)
{
    static const struct {
        const char *key;
        enum status (*read)(struct plan_reader *r, const json_t *array);
    } tables[] = {
        {"activations", read_activations}, {"shards", read_shards}, {"works", read_works},
        {"buffers", read_buffers},         {"slots", read_slots},   {"units", plan_reader_units},
        {"segments", read_segments},
    };
    TRY(json_take_array(root, "choices", JSON_OPTIONAL, &r->choices, r->err));
    for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++) {
        const json_t *array;
        TRY(json_take_array(root, tables[t].key, JSON_REQUIRED, &array, r->err));
        TRY(tables[t].read(r, array));
    }
    return STATUS_OK;
}

static enum status read_plan(const struct json_input *in, struct plan *plan, struct error *err)
{
    struct plan_reader r = {.in = in, .plan = plan, .err = err};
    struct json_object root;
    TRY(json_object_open(&root, in, json_input_root(in), "a plan", err));
    TRY(read_header(&r, &root));
    TRY(read_bound(&r, &root));
    TRY(read_order(&r, &root));
    TRY(read_machine_and_jobs(&r, &root));
    TRY(read_gangs(&r, &root));
    TRY(read_leases(&r, &root));
    TRY(read_tables(&r, &root));
    TRY(json_object_close(&root, err));
    if (plan_check(plan, err) != STATUS_OK) return error_add(err, "%s", json_input_name(in));
    return STATUS_OK;
}

enum status plan_read(const char *path, struct plan *out, struct error *err)
{
    struct json_input *in;
    TRY(json_input_read(path, &in, err));
    enum status status = read_plan(in, out, err);
    json_input_destroy(in);
    return status;
}

enum status plan_parse(const char *name, const char *text, size_t length, struct plan *out,
                       struct error *err)
{
    struct json_input *in;
    TRY(json_input_parse(name, text, length, &in, err));
    enum status status = read_plan(in, out, err);
    json_input_destroy(in);
    return status;
}
