/* Units are read in the file's order, then sorted by "after". */
#include "planner/solve/instance/instance_io.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json/json_out.h"
#include "base/json/json_stream.h"
#include "base/try.h"

enum { NO_UNIT = UINT32_MAX };

/* --- devices --------------------------------------------------------------------------------- */

static enum status read_class(const struct json_input *in, const json_t *array, size_t index,
                              struct instance *out, double *speed, struct error *err)
{
    struct json_object object;
    struct instance_class *class = &out->classes[index];
    const char *name = "device";
    class->device_count = 1;
    TRY(json_object_open_at(&object, in, array, index, "a device object", err));
    TRY(json_take_string(&object, "name", JSON_OPTIONAL, &name, err));
    TRY(json_take_u32(&object, "count", JSON_OPTIONAL, 1, INSTANCE_DEVICES_MAX, &class->device_count, err));
    TRY(json_take_u64(&object, "memory", JSON_REQUIRED, 0, UINT64_C(1) << 53, &class->memory, err));
    TRY(json_take_u32(&object, "slots", JSON_OPTIONAL, 1, INSTANCE_SLOTS_MAX, &class->slots, err));
    TRY(json_take_u32(&object, "edges", JSON_OPTIONAL, 0, INSTANCE_STREAM_EDGES_MAX, &class->edges, err));
    TRY(json_take_double(&object, "speed", JSON_OPTIONAL, 1e-6, 1e6, speed, err));
    TRY(json_object_close(&object, err));
    return arena_string(&out->arena, name, &class->name, err);
}

/* --- units ----------------------------------------------------------------------------------- */

struct instance_reader {
    const struct json_input *in;   /* the file, or the job that is read of a stream */
    const struct json_input *head; /* the file, without jobs if they are read from a stream */
    const json_t *jobs;            /* the array; without elements if there is a stream */
    struct json_stream *stream;    /* NULL: none */
    struct instance *out;
    uint32_t *counts;              /* units of each job */
    size_t counts_capacity;
    double speeds[INSTANCE_CLASSES_MAX];
    uint32_t *after; /* (unit_count) of the job being read: numbers; NO_UNIT */
    struct error *err;
};

static enum status read_ticks(struct json_object *object, const char *key, int64_t *out, struct error *err)
{
    uint64_t ticks = 0;
    TRY(json_take_u64(object, key, JSON_OPTIONAL, 0, (uint64_t)INSTANCE_TICKS_MAX, &ticks, err));
    *out = (int64_t)ticks;
    return STATUS_OK;
}

static enum status read_compute(struct instance_reader *r, struct json_object *object, uint32_t unit)
{
    struct instance *out = r->out;
    int64_t *compute = &out->compute[(size_t)unit * out->class_count];
    uint64_t ticks, most = (uint64_t)INSTANCE_TICKS_MAX;
    if (json_is_array(json_object_get(object->value, "compute"))) {
        const json_t *array;
        TRY(json_take_array(object, "compute", JSON_REQUIRED, &array, r->err));
        if (json_array_size(array) != out->class_count)
            return json_fail_key(r->in, object->value, "compute", r->err,
                                 "'compute' has %zu elements (expected %u, one for each class of devices)",
                                 json_array_size(array), out->class_count);
        for (uint32_t c = 0; c < out->class_count; c++) {
            TRY(json_item_u64(r->in, array, c, 1, most, &ticks, r->err));
            compute[c] = (int64_t)ticks;
        }
        return STATUS_OK;
    }
    TRY(json_take_u64(object, "compute", JSON_REQUIRED, 1, most, &ticks, r->err));
    for (uint32_t c = 0; c < out->class_count; c++) {
        double scaled = ceil((double)ticks / r->speeds[c]);
        if (scaled > (double)INSTANCE_TICKS_MAX)
            return json_fail_key(r->in, object->value, "compute", r->err,
                                 "'compute' is too long at the speed of device '%.80s'",
                                 out->classes[c].name);
        compute[c] = (int64_t)scaled;
    }
    return STATUS_OK;
}

static enum status read_unit(struct instance_reader *r, const json_t *array, size_t index, uint32_t job)
{
    struct json_object object;
    struct instance *out = r->out;
    uint32_t unit = out->jobs[job].first_unit + (uint32_t)index;
    uint32_t most = out->jobs[job].unit_count - 1, shard = (uint32_t)index, after = NO_UNIT;
    struct instance_unit *u = &out->units[unit];
    TRY(json_object_open_at(&object, r->in, array, index, "a unit object", r->err));
    TRY(read_compute(r, &object, unit));
    TRY(read_ticks(&object, "in", &u->in, r->err));
    TRY(read_ticks(&object, "out", &u->out, r->err));
    TRY(json_take_u64(&object, "memory", JSON_OPTIONAL, 0, UINT64_C(1) << 53, &u->memory, r->err));
    TRY(json_take_u64(&object, "in_bytes", JSON_OPTIONAL, 0, INSTANCE_BYTES_MAX, &u->in_bytes, r->err));
    TRY(json_take_u64(&object, "out_bytes", JSON_OPTIONAL, 0, INSTANCE_BYTES_MAX, &u->out_bytes, r->err));
    TRY(read_ticks(&object, "edge_in", &u->edge_in, r->err));
    TRY(read_ticks(&object, "edge_out", &u->edge_out, r->err));
    TRY(read_ticks(&object, "host_before", &u->host_before, r->err));
    TRY(read_ticks(&object, "host_after", &u->host_after, r->err));
    TRY(read_ticks(&object, "update", &u->update, r->err));
    TRY(read_ticks(&object, "table", &u->table, r->err));
    TRY(json_take_bool(&object, "after_host", JSON_OPTIONAL, &u->after_host, r->err));
    TRY(json_take_bool(&object, "in_apart", JSON_OPTIONAL, &u->in_apart, r->err));
    TRY(json_take_bool(&object, "out_apart", JSON_OPTIONAL, &u->out_apart, r->err));
    TRY(json_take_u32(&object, "shard", JSON_OPTIONAL, 0, UINT32_MAX - 1, &shard, r->err));
    TRY(json_take_bool(&object, "writes", JSON_OPTIONAL, &u->writes, r->err));
    TRY(json_take_u32(&object, "after", JSON_OPTIONAL, 0, most, &after, r->err));
    if (u->out > 0 && !u->writes && !out->streams)
        return json_fail_key(r->in, object.value, "out", r->err,
                             "'out' of a unit that does not write its parameters (expected 0)");
    u->job = job;
    u->shard = shard;
    r->after[index] = after;
    return json_object_close(&object, r->err);
}

/* Sorts the units of a job by "after". */
static enum status order_units(struct instance_reader *r, const json_t *array, uint32_t job)
{
    struct instance *out = r->out;
    uint32_t count = out->jobs[job].unit_count, first = out->jobs[job].first_unit;
    uint32_t begin = NO_UNIT, placed = 0;
    bool any = false;
    for (uint32_t u = 0; u < count; u++) any |= r->after[u] != NO_UNIT;
    if (!any) return STATUS_OK;
    uint32_t *next = alloc_zeroed(count, sizeof *next);
    struct instance_unit *units = alloc_zeroed(count, sizeof *units);
    int64_t *compute = alloc_zeroed((size_t)count * out->class_count, sizeof *compute);
    if (!next || !units || !compute) {
        error_memory(r->err, "a chain", count * sizeof *units);
        goto out;
    }
    for (uint32_t u = 0; u < count; u++) next[u] = NO_UNIT;
    for (uint32_t u = 0; u < count; u++) {
        uint32_t before = r->after[u];
        if (before == NO_UNIT && begin != NO_UNIT) {
            json_fail_index(r->in, array, u, r->err,
                            "unit %u is after no other, as is unit %u (expected one such unit)", u, begin);
            goto out;
        }
        if (before == NO_UNIT) {
            begin = u;
        } else if (next[before] != NO_UNIT) {
            json_fail_index(r->in, array, u, r->err, "unit %u is after unit %u, as is unit %u (expected a chain)",
                            u, before, next[before]);
            goto out;
        } else {
            next[before] = u;
        }
    }
    for (uint32_t u = begin; u != NO_UNIT; u = next[u], placed++) {
        units[placed] = out->units[first + u];
        memcpy(compute + (size_t)placed * out->class_count,
               out->compute + (size_t)(first + u) * out->class_count, out->class_count * sizeof *compute);
        r->after[u] = NO_UNIT; /* the remaining units form a cycle */
    }
    for (uint32_t u = 0; u < count && placed < count; u++)
        if (r->after[u] != NO_UNIT) {
            json_fail_index(r->in, array, u, r->err, "unit %u comes after itself: 'after' goes round in a circle", u);
            goto out;
        }
    memcpy(out->units + first, units, count * sizeof *units);
    memcpy(out->compute + (size_t)first * out->class_count, compute,
           (size_t)count * out->class_count * sizeof *compute);
out:
    free(next);
    free(units);
    free(compute);
    return r->err->status;
}

/* --- jobs ------------------------------------------------------------------------------------ */

static enum status read_job(struct instance_reader *r, struct json_object *object, uint32_t index)
{
    struct instance_job *job = &r->out->jobs[index];
    const json_t *units;
    const char *name;
    uint64_t deadline = (uint64_t)INSTANCE_HORIZON_MAX;
    job->repeat = job->weight = 1;
    TRY(json_take_string(object, "name", JSON_REQUIRED, &name, r->err));
    TRY(json_take_u32(object, "repeat", JSON_OPTIONAL, 1, INSTANCE_TASKS_MAX, &job->repeat, r->err));
    TRY(json_take_u32(object, "weight", JSON_OPTIONAL, 1, INSTANCE_WEIGHT_MAX, &job->weight, r->err));
    TRY(json_take_u64(object, "deadline", JSON_OPTIONAL, 0, (uint64_t)INSTANCE_HORIZON_MAX, &deadline, r->err));
    TRY(read_ticks(object, "load", &job->load, r->err));
    TRY(read_ticks(object, "store", &job->store, r->err));
    TRY(json_take_array(object, "units", JSON_REQUIRED, &units, r->err));
    job->deadline = (int64_t)deadline;
    TRY(arena_string(&r->out->arena, name, &job->name, r->err));
    TRY(json_object_close(object, r->err));
    for (size_t u = 0; u < json_array_size(units); u++) TRY(read_unit(r, units, u, index));
    return order_units(r, units, index);
}

static enum status open_and_read_job(struct instance_reader *r, const json_t *job, uint32_t index)
{
    (void)job; /* found again below, for the position of an error */
    struct json_object object;
    if (r->stream) TRY(json_object_open_element(&object, r->in, index, "a job object", r->err));
    else TRY(json_object_open_at(&object, r->in, r->jobs, index, "a job object", r->err));
    return read_job(r, &object, index);
}

/* Counts the units of a job before anything is allocated for them. */
static enum status count_units(struct instance_reader *r, const json_t *job, uint32_t index)
{
    const json_t *units = json_object_get(job, "units");
    size_t count = json_array_size(units);
    if (json_is_array(units) && count == 0)
        return json_fail_key(r->in, job, "units", r->err, "an empty chain (expected at least one unit)");
    if (count > INSTANCE_JOB_UNITS_MAX)
        return json_fail_key(r->in, job, "units", r->err, "too many units in a job (limit is %d)",
                             INSTANCE_JOB_UNITS_MAX);
    TRY(array_reserve(&r->counts, &r->counts_capacity, index, sizeof *r->counts, INSTANCE_JOBS_MAX, "jobs", r->err));
    r->counts[index] = (uint32_t)count;
    return STATUS_OK;
}

static enum status fail_many(const struct instance_reader *r)
{
    return error_set(r->err, STATUS_LIMIT, "%s: too many classes of devices or jobs (limits are %d and %d)",
                     json_input_name(r->head), INSTANCE_CLASSES_MAX, INSTANCE_JOBS_MAX);
}

typedef enum status (*visit_job)(struct instance_reader *r, const json_t *job, uint32_t index);

/* Visits a job of the stream; *more is false when there is none. */
static enum status visit_next(struct instance_reader *r, visit_job visit, bool *more)
{
    struct json_element element;
    struct json_input *in;
    TRY(json_stream_next(r->stream, &element, more, r->err));
    if (!*more) return STATUS_OK;
    if (element.index >= INSTANCE_JOBS_MAX) return fail_many(r);
    TRY(json_stream_parse(r->stream, &element, &in, r->err));
    r->in = in;
    enum status status = visit(r, json_input_root(in), (uint32_t)element.index);
    r->in = r->head;
    json_input_destroy(in);
    return status;
}

/* Visits all jobs in the order of the file; *count is their number. */
static enum status visit_jobs(struct instance_reader *r, visit_job visit, uint32_t *count)
{
    bool more = true;
    *count = 0;
    if (!r->stream && json_array_size(r->jobs) > INSTANCE_JOBS_MAX) return fail_many(r);
    for (; !r->stream && *count < json_array_size(r->jobs); ++*count)
        TRY(visit(r, json_array_get(r->jobs, *count), *count));
    if (!r->stream) return STATUS_OK;
    TRY(json_stream_begin(r->stream, 0, r->err));
    for (;; ++*count) {
        TRY(visit_next(r, visit, &more));
        if (!more) return STATUS_OK;
    }
}

static enum status count_jobs(struct instance_reader *r, uint32_t *jobs, uint32_t *units, uint32_t *longest)
{
    uint64_t total = 0;
    TRY(visit_jobs(r, count_units, jobs));
    *longest = 0;
    for (uint32_t j = 0; j < *jobs; j++) {
        total += r->counts[j];
        if (r->counts[j] > *longest) *longest = r->counts[j];
    }
    *units = (uint32_t)total;
    if (total > INSTANCE_UNITS_MAX)
        return error_set(r->err, STATUS_LIMIT, "%s: too many units (limit is %d)", json_input_name(r->head),
                         INSTANCE_UNITS_MAX);
    return STATUS_OK;
}

static enum status read_jobs(struct instance_reader *r)
{
    uint32_t unit = 0, count;
    for (size_t j = 0; j < r->out->job_count; j++) {
        r->out->jobs[j].first_unit = unit;
        r->out->jobs[j].unit_count = r->counts[j];
        unit += r->out->jobs[j].unit_count;
    }
    return visit_jobs(r, open_and_read_job, &count);
}

static enum status read_devices(struct instance_reader *r, const json_t *devices)
{
    for (size_t c = 0; c < r->out->class_count; c++) {
        r->speeds[c] = 1;
        TRY(read_class(r->head, devices, c, r->out, &r->speeds[c], r->err));
    }
    return STATUS_OK;
}

/* Reads everything but the jobs. */
static enum status read_head(struct instance_reader *r, const json_t **devices, const char **name)
{
    const struct json_input *in = r->head;
    struct instance *out = r->out;
    struct error *err = r->err;
    struct json_object object;
    uint64_t version;
    size_t objective = OBJECTIVE_MAKESPAN;
    TRY(json_object_open(&object, in, json_input_root(in), "an instance object", err));
    TRY(json_take_u64(&object, "spillway_instance", JSON_REQUIRED, 1, 1, &version, err));
    TRY(json_take_string(&object, "name", JSON_OPTIONAL, name, err));
    TRY(json_take_choice(&object, "objective", JSON_OPTIONAL, instance_objective_names,
                         OBJECTIVE_COUNT, &objective, err));
    TRY(json_take_u64(&object, "bridge_bytes_per_tick", JSON_OPTIONAL, 0, UINT64_C(1) << 53,
                      &out->bridge_bytes_per_tick, err));
    TRY(json_take_bool(&object, "streams", JSON_OPTIONAL, &out->streams, err));
    TRY(json_take_double(&object, "tick_s", JSON_OPTIONAL, 1e-12, 1e6, &out->tick_s, err));
    TRY(json_take_array(&object, "devices", JSON_REQUIRED, devices, err));
    TRY(json_take_array(&object, "jobs", JSON_REQUIRED, &r->jobs, err));
    TRY(json_object_close(&object, err));
    out->objective = (enum instance_objective)objective;
    if (json_array_size(*devices) > 0) return STATUS_OK;
    return json_fail_key(in, json_input_root(in), "devices", err, "no devices (expected at least one)");
}

static enum status read_all(struct instance_reader *r)
{
    struct instance *out = r->out;
    const json_t *devices;
    const char *name = "instance";
    uint32_t jobs, units, longest;
    TRY(read_head(r, &devices, &name));
    TRY(count_jobs(r, &jobs, &units, &longest));
    if (jobs == 0)
        return json_fail_key(r->head, json_input_root(r->head), "jobs", r->err, "no jobs (expected at least one)");
    if (json_array_size(devices) > INSTANCE_CLASSES_MAX) return fail_many(r);
    TRY(instance_init(out, (uint32_t)json_array_size(devices), jobs, units, r->err));
    TRY(arena_string(&out->arena, name, &out->name, r->err));
    r->after = alloc_zeroed(longest + 1u, sizeof *r->after);
    if (!r->after) return error_memory(r->err, "a chain", longest * sizeof *r->after);
    TRY(read_devices(r, devices));
    TRY(read_jobs(r));
    return instance_finish(out, r->err) ? error_add(r->err, "%s", json_input_name(r->head)) : STATUS_OK;
}

static enum status parse(struct instance_reader *r)
{
    enum status status = read_all(r);
    free(r->after);
    free(r->counts);
    return status;
}

enum status instance_parse(const struct json_input *in, struct instance *out, struct error *err)
{
    return parse(&(struct instance_reader){.in = in, .head = in, .out = out, .err = err});
}

const char *const instance_long_arrays[] = {"jobs", NULL};

enum status instance_parse_stream(struct json_stream *stream, struct instance *out, struct error *err)
{
    const struct json_input *head = json_stream_head(stream);
    return parse(&(struct instance_reader){.in = head, .head = head, .stream = stream, .out = out, .err = err});
}

enum status instance_read(const char *path, struct instance *out, struct error *err)
{
    struct json_stream *stream;
    TRY(json_stream_open(path, instance_long_arrays, &stream, err));
    enum status status = instance_parse_stream(stream, out, err);
    json_stream_close(stream);
    return status;
}

/* --- writing --------------------------------------------------------------------------------- */

static void write_unit(const struct instance *in, uint32_t unit, uint32_t number, struct json_out *out)
{
    const struct instance_unit *u = &in->units[unit];
    json_out_object_begin(out, NULL, true);
    if (in->class_count == 1) {
        json_out_u64(out, "compute", (uint64_t)instance_compute(in, unit, 0));
    } else {
        json_out_array_begin(out, "compute", true);
        for (uint32_t c = 0; c < in->class_count; c++)
            json_out_u64(out, NULL, (uint64_t)instance_compute(in, unit, c));
        json_out_array_end(out);
    }
    if (u->in) json_out_u64(out, "in", (uint64_t)u->in);
    if (u->out) json_out_u64(out, "out", (uint64_t)u->out);
    if (u->memory) json_out_u64(out, "memory", u->memory);
    if (u->in_bytes) json_out_u64(out, "in_bytes", u->in_bytes);
    if (u->out_bytes) json_out_u64(out, "out_bytes", u->out_bytes);
    if (u->edge_in) json_out_u64(out, "edge_in", (uint64_t)u->edge_in);
    if (u->edge_out) json_out_u64(out, "edge_out", (uint64_t)u->edge_out);
    if (u->host_before) json_out_u64(out, "host_before", (uint64_t)u->host_before);
    if (u->host_after) json_out_u64(out, "host_after", (uint64_t)u->host_after);
    if (u->update) json_out_u64(out, "update", (uint64_t)u->update);
    if (u->table) json_out_u64(out, "table", (uint64_t)u->table);
    if (u->after_host) json_out_bool(out, "after_host", true);
    if (u->in_apart) json_out_bool(out, "in_apart", true);
    if (u->out_apart) json_out_bool(out, "out_apart", true);
    if (u->shard != number) json_out_u64(out, "shard", u->shard);
    if (u->writes) json_out_bool(out, "writes", true);
    json_out_object_end(out);
}

static void write_job(const struct instance *in, const struct instance_job *job, struct json_out *out)
{
    json_out_object_begin(out, NULL, false);
    json_out_string(out, "name", job->name);
    if (job->repeat > 1) json_out_u64(out, "repeat", job->repeat);
    if (job->weight > 1) json_out_u64(out, "weight", job->weight);
    if (job->deadline < INSTANCE_HORIZON_MAX) json_out_u64(out, "deadline", (uint64_t)job->deadline);
    if (job->load) json_out_u64(out, "load", (uint64_t)job->load);
    if (job->store) json_out_u64(out, "store", (uint64_t)job->store);
    json_out_array_begin(out, "units", false);
    for (uint32_t u = 0; u < job->unit_count; u++) write_unit(in, job->first_unit + u, u, out);
    json_out_array_end(out);
    json_out_object_end(out);
}

void instance_write_json(const struct instance *in, struct json_out *out)
{
    json_out_object_begin(out, NULL, false);
    json_out_u64(out, "spillway_instance", 1);
    json_out_string(out, "name", in->name ? in->name : "instance");
    json_out_string(out, "objective", instance_objective_names[in->objective]);
    if (in->bridge_bytes_per_tick) json_out_u64(out, "bridge_bytes_per_tick", in->bridge_bytes_per_tick);
    if (in->streams) json_out_bool(out, "streams", true);
    if (in->tick_s < INSTANCE_TICK_S || in->tick_s > INSTANCE_TICK_S)
        json_out_double(out, "tick_s", in->tick_s);
    json_out_array_begin(out, "devices", false);
    for (uint32_t c = 0; c < in->class_count; c++) {
        json_out_object_begin(out, NULL, true);
        json_out_string(out, "name", in->classes[c].name);
        json_out_u64(out, "count", in->classes[c].device_count);
        json_out_u64(out, "memory", in->classes[c].memory);
        if (in->classes[c].slots != INSTANCE_SLOTS) json_out_u64(out, "slots", in->classes[c].slots);
        if (in->classes[c].edges) json_out_u64(out, "edges", in->classes[c].edges);
        json_out_object_end(out);
    }
    json_out_array_end(out);
    json_out_array_begin(out, "jobs", false);
    for (uint32_t i = 0; i < in->job_count; i++) write_job(in, &in->jobs[i], out);
    json_out_array_end(out);
    json_out_object_end(out);
}

enum status instance_write(const struct instance *in, const char *path, struct error *err)
{
    struct json_file file;
    TRY(json_file_begin(&file, path, "writing an instance", err));
    instance_write_json(in, file.out);
    return json_file_end(&file, err);
}
