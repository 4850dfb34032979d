/* Units are read in the file's order, then sorted by "after". */
#include "planner/solve/instance/instance_io.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json/json_out.h"
#include "base/size.h"
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
    TRY(json_take_double(&object, "speed", JSON_OPTIONAL, 1e-6, 1e6, speed, err));
    TRY(json_object_close(&object, err));
    return arena_string(&out->arena, name, &class->name, err);
}

/* --- units ----------------------------------------------------------------------------------- */

struct instance_reader {
    const struct json_input *in;
    struct instance *out;
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
    TRY(json_take_u32(&object, "shard", JSON_OPTIONAL, 0, UINT32_MAX - 1, &shard, r->err));
    TRY(json_take_bool(&object, "writes", JSON_OPTIONAL, &u->writes, r->err));
    TRY(json_take_u32(&object, "after", JSON_OPTIONAL, 0, most, &after, r->err));
    if (u->out > 0 && !u->writes)
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
            json_fail_index(r->in, array, u, r->err, "unit %u is after no other, as is unit %u (expected one such unit)",
                            u, begin);
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

static enum status read_job(struct instance_reader *r, const json_t *array, size_t index)
{
    struct json_object object;
    struct instance_job *job = &r->out->jobs[index];
    const json_t *units;
    const char *name;
    uint64_t deadline = (uint64_t)INSTANCE_HORIZON_MAX;
    job->repeat = job->weight = 1;
    TRY(json_object_open_at(&object, r->in, array, index, "a job object", r->err));
    TRY(json_take_string(&object, "name", JSON_REQUIRED, &name, r->err));
    TRY(json_take_u32(&object, "repeat", JSON_OPTIONAL, 1, INSTANCE_TASKS_MAX, &job->repeat, r->err));
    TRY(json_take_u32(&object, "weight", JSON_OPTIONAL, 1, INSTANCE_WEIGHT_MAX, &job->weight, r->err));
    TRY(json_take_u64(&object, "deadline", JSON_OPTIONAL, 0, (uint64_t)INSTANCE_HORIZON_MAX, &deadline, r->err));
    TRY(json_take_array(&object, "units", JSON_REQUIRED, &units, r->err));
    job->deadline = (int64_t)deadline;
    TRY(arena_string(&r->out->arena, name, &job->name, r->err));
    TRY(json_object_close(&object, r->err));
    for (size_t u = 0; u < json_array_size(units); u++) TRY(read_unit(r, units, u, (uint32_t)index));
    return order_units(r, units, (uint32_t)index);
}

/* Counts the units of each job before anything is allocated for them. */
static enum status count_units(struct instance_reader *r, const json_t *jobs, uint64_t *total, uint32_t *most)
{
    *total = 0;
    *most = 0;
    for (size_t j = 0; j < json_array_size(jobs); j++) {
        const json_t *units = json_object_get(json_array_get(jobs, j), "units");
        size_t count = json_array_size(units);
        if (json_is_array(units) && count == 0)
            return json_fail_key(r->in, json_array_get(jobs, j), "units", r->err,
                                 "an empty chain (expected at least one unit)");
        if (count > INSTANCE_JOB_UNITS_MAX)
            return json_fail_key(r->in, json_array_get(jobs, j), "units", r->err,
                                 "too many units in a job (limit is %d)", INSTANCE_JOB_UNITS_MAX);
        *total += count;
        if (count > *most) *most = (uint32_t)count;
    }
    if (*total > INSTANCE_UNITS_MAX)
        return error_set(r->err, STATUS_LIMIT, "%s: too many units (limit is %d)",
                         json_input_name(r->in), INSTANCE_UNITS_MAX);
    return STATUS_OK;
}

static enum status read_jobs(struct instance_reader *r, const json_t *jobs)
{
    uint32_t unit = 0;
    for (size_t j = 0; j < r->out->job_count; j++) {
        const json_t *units = json_object_get(json_array_get(jobs, j), "units");
        r->out->jobs[j].first_unit = unit;
        r->out->jobs[j].unit_count = (uint32_t)json_array_size(units);
        unit += r->out->jobs[j].unit_count;
    }
    for (size_t j = 0; j < r->out->job_count; j++) TRY(read_job(r, jobs, j));
    return STATUS_OK;
}

static enum status read_devices(struct instance_reader *r, const json_t *devices)
{
    for (size_t c = 0; c < r->out->class_count; c++) {
        r->speeds[c] = 1;
        TRY(read_class(r->in, devices, c, r->out, &r->speeds[c], r->err));
    }
    return STATUS_OK;
}

enum status instance_parse(const struct json_input *in, struct instance *out, struct error *err)
{
    struct instance_reader r = {.in = in, .out = out, .err = err};
    struct json_object object;
    const json_t *devices, *jobs;
    const char *name = "instance";
    uint64_t version, units;
    uint32_t longest;
    size_t objective = OBJECTIVE_MAKESPAN;
    TRY(json_object_open(&object, in, json_input_root(in), "an instance object", err));
    TRY(json_take_u64(&object, "spillway_instance", JSON_REQUIRED, 1, 1, &version, err));
    TRY(json_take_string(&object, "name", JSON_OPTIONAL, &name, err));
    TRY(json_take_choice(&object, "objective", JSON_OPTIONAL, instance_objective_names,
                         OBJECTIVE_COUNT, &objective, err));
    TRY(json_take_u64(&object, "bridge_bytes_per_tick", JSON_OPTIONAL, 0, UINT64_C(1) << 53,
                      &out->bridge_bytes_per_tick, err));
    TRY(json_take_double(&object, "tick_s", JSON_OPTIONAL, 1e-12, 1e6, &out->tick_s, err));
    TRY(json_take_array(&object, "devices", JSON_REQUIRED, &devices, err));
    TRY(json_take_array(&object, "jobs", JSON_REQUIRED, &jobs, err));
    TRY(json_object_close(&object, err));
    if (json_array_size(devices) == 0)
        return json_fail_key(in, json_input_root(in), "devices", err, "no devices (expected at least one)");
    if (json_array_size(jobs) == 0)
        return json_fail_key(in, json_input_root(in), "jobs", err, "no jobs (expected at least one)");
    if (json_array_size(devices) > INSTANCE_CLASSES_MAX || json_array_size(jobs) > INSTANCE_JOBS_MAX)
        return error_set(err, STATUS_LIMIT, "%s: too many classes of devices or jobs (limits are %d and %d)",
                         json_input_name(in), INSTANCE_CLASSES_MAX, INSTANCE_JOBS_MAX);
    TRY(count_units(&r, jobs, &units, &longest));
    TRY(instance_init(out, (uint32_t)json_array_size(devices), (uint32_t)json_array_size(jobs),
                      (uint32_t)units, err));
    out->objective = (enum instance_objective)objective;
    TRY(arena_string(&out->arena, name, &out->name, err));
    r.after = alloc_zeroed(longest + 1u, sizeof *r.after);
    if (!r.after) return error_memory(err, "a chain", longest * sizeof *r.after);
    enum status status = read_devices(&r, devices);
    if (status == STATUS_OK) status = read_jobs(&r, jobs);
    free(r.after);
    if (status) return status;
    if (instance_finish(out, err)) return error_add(err, "%s", json_input_name(in));
    return STATUS_OK;
}

enum status instance_read(const char *path, struct instance *out, struct error *err)
{
    struct json_input *in;
    TRY(json_input_read(path, &in, err));
    enum status status = instance_parse(in, out, err);
    json_input_destroy(in);
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
    if (in->tick_s < INSTANCE_TICK_S || in->tick_s > INSTANCE_TICK_S)
        json_out_double(out, "tick_s", in->tick_s);
    json_out_array_begin(out, "devices", false);
    for (uint32_t c = 0; c < in->class_count; c++) {
        json_out_object_begin(out, NULL, true);
        json_out_string(out, "name", in->classes[c].name);
        json_out_u64(out, "count", in->classes[c].device_count);
        json_out_u64(out, "memory", in->classes[c].memory);
        if (in->classes[c].slots != INSTANCE_SLOTS) json_out_u64(out, "slots", in->classes[c].slots);
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
