/*
 * The checks here establish what searches rely on: every chain has a task, every unit fits some device, and sums of
 * durations cannot overflow.
 */
#include "planner/solve/instance/instance.h"

#include <inttypes.h>

#include "base/size.h"
#include "base/try.h"

const char *const instance_objective_names[OBJECTIVE_COUNT] = {"makespan", "mean", "weighted",
                                                               "tardiness"};

enum status instance_init(struct instance *in, uint32_t class_count, uint32_t job_count,
                          uint32_t unit_count, struct error *err)
{
    if (class_count == 0) return error_set(err, STATUS_BAD_INPUT, "no devices");
    if (job_count == 0) return error_set(err, STATUS_BAD_INPUT, "no jobs");
    if (class_count > INSTANCE_CLASSES_MAX)
        return error_set(err, STATUS_LIMIT, "too many classes of devices (limit is %d)",
                         INSTANCE_CLASSES_MAX);
    if (job_count > INSTANCE_JOBS_MAX)
        return error_set(err, STATUS_LIMIT, "too many jobs (limit is %d)", INSTANCE_JOBS_MAX);
    if (unit_count > INSTANCE_UNITS_MAX)
        return error_set(err, STATUS_LIMIT, "too many units (limit is %d)", INSTANCE_UNITS_MAX);
    TRY(ARENA_NEW(&in->arena, class_count, in->classes, err));
    TRY(ARENA_NEW(&in->arena, job_count, in->jobs, err));
    TRY(ARENA_NEW(&in->arena, unit_count, in->units, err));
    TRY(ARENA_NEW(&in->arena, (size_t)unit_count * class_count, in->compute, err));
    in->class_count = class_count;
    in->job_count = job_count;
    in->unit_count = unit_count;
    return STATUS_OK;
}

/* --- what can be scheduled ------------------------------------------------------------------- */

static enum status finish_devices(struct instance *in, struct error *err)
{
    uint64_t devices = 0;
    for (uint32_t c = 0; c < in->class_count; c++) {
        devices += in->classes[c].device_count;
        if (in->classes[c].slots == 0) in->classes[c].slots = INSTANCE_SLOTS;
        if (in->classes[c].slots > INSTANCE_SLOTS_MAX)
            return error_set(err, STATUS_BAD_INPUT, "a device with %u slots (expected 1 to %d)",
                             in->classes[c].slots, INSTANCE_SLOTS_MAX);
    }
    if (devices == 0) return error_set(err, STATUS_BAD_INPUT, "no devices");
    if (devices > INSTANCE_DEVICES_MAX)
        return error_set(err, STATUS_LIMIT, "too many devices (limit is %d)", INSTANCE_DEVICES_MAX);
    TRY(ARENA_NEW(&in->arena, devices, in->device_class, err));
    in->device_count = 0;
    for (uint32_t c = 0; c < in->class_count; c++)
        for (uint32_t i = 0; i < in->classes[c].device_count; i++)
            in->device_class[in->device_count++] = c;
    for (uint32_t c = 0; c < in->class_count && in->streams; c++)
        if (in->classes[c].slots > INSTANCE_STREAM_SLOTS_MAX)
            return error_set(err, STATUS_BAD_INPUT, "a device with %u slots (expected 1 to %d with streams)",
                             in->classes[c].slots, INSTANCE_STREAM_SLOTS_MAX);
    for (uint32_t c = 0; c < in->class_count; c++)
        if (in->classes[c].edges > (in->streams ? INSTANCE_STREAM_EDGES_MAX : 0))
            return error_set(err, STATUS_BAD_INPUT, "a device with %u edges (expected 0 to %d with streams, else none)",
                             in->classes[c].edges, INSTANCE_STREAM_EDGES_MAX);
    if (in->streams && (in->objective != OBJECTIVE_MAKESPAN || in->bridge_bytes_per_tick > 0))
        return error_set(err, STATUS_BAD_INPUT, "instances with streams have makespans and no bridge");
    return STATUS_OK;
}

/* Checks what only instances with streams have. */
static enum status finish_streams(const struct instance *in, const struct instance_job *job, uint32_t unit,
                                  int64_t *sum, struct error *err)
{
    const struct instance_unit *u = &in->units[unit];
    const int64_t parts[] = {u->edge_in, u->edge_out, u->host_before, u->host_after, u->update, u->table};
    uint32_t number = unit - job->first_unit;
    *sum = 0;
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
        if (parts[i] < 0 || parts[i] > INSTANCE_TICKS_MAX)
            return error_set(err, STATUS_BAD_INPUT, "job '%.80s', unit %u: a time out of range", job->name, number);
        *sum += parts[i];
    }
    if (!in->streams && (*sum > 0 || u->after_host || u->in_apart || u->out_apart))
        return error_set(err, STATUS_BAD_INPUT, "job '%.80s', unit %u: has parts that need streams ('streams')",
                         job->name, number);
    if (u->update > 0 && !u->writes)
        return error_set(err, STATUS_BAD_INPUT,
                         "job '%.80s', unit %u: the host updates parameters that it does not write", job->name, number);
    return STATUS_OK;
}

static enum status finish_unit(struct instance *in, const struct instance_job *job, uint32_t unit,
                               int64_t *longest, struct error *err)
{
    const struct instance_unit *u = &in->units[unit];
    uint32_t number = unit - job->first_unit;
    uint64_t memory = 0;
    bool fits = false;
    *longest = 0;
    if (u->in < 0 || u->in > INSTANCE_TICKS_MAX || u->out < 0 || u->out > INSTANCE_TICKS_MAX)
        return error_set(err, STATUS_BAD_INPUT, "job '%.80s', unit %u: a copy of a time out of range",
                         job->name, number);
    if (u->out > 0 && !u->writes && !in->streams)
        return error_set(err, STATUS_BAD_INPUT,
                         "job '%.80s', unit %u: copies out parameters that it does not write", job->name, number);
    if (u->memory > UINT64_MAX / 4 || u->in_bytes > INSTANCE_BYTES_MAX ||
        u->out_bytes > INSTANCE_BYTES_MAX)
        return error_set(err, STATUS_LIMIT, "job '%.80s', unit %u: too much memory or too many bytes",
                         job->name, number);
    for (uint32_t c = 0; c < in->class_count; c++) {
        int64_t p = instance_compute(in, unit, c);
        if (in->classes[c].memory > memory) memory = in->classes[c].memory;
        if (!instance_fits(in, unit, c)) continue;
        if (p < 1 || p > INSTANCE_TICKS_MAX)
            return error_set(err, STATUS_BAD_INPUT,
                             "job '%.80s', unit %u: computes for %" PRId64 " ticks (expected 1 to %" PRId64 ")",
                             job->name, number, p, INSTANCE_TICKS_MAX);
        if (p > *longest) *longest = p;
        fits = true;
    }
    if (!fits)
        return error_set(err, STATUS_INFEASIBLE,
                         "job '%.80s', unit %u: needs memory %" PRIu64 ", and no device has more than %" PRIu64,
                         job->name, number, u->memory, memory);
    int64_t more;
    TRY(finish_streams(in, job, unit, &more, err));
    *longest += u->in + u->out + more;
    return STATUS_OK;
}

enum status instance_finish(struct instance *in, struct error *err)
{
    uint64_t tasks = 0, horizon = 0, weights = 0;
    TRY(finish_devices(in, err));
    for (uint32_t i = 0; i < in->job_count; i++) {
        const struct instance_job *job = &in->jobs[i];
        uint64_t sum = 0;
        if (job->unit_count == 0 || job->repeat == 0)
            return error_set(err, STATUS_BAD_INPUT, "job '%.80s': an empty chain", job->name);
        if (job->unit_count > INSTANCE_JOB_UNITS_MAX)
            return error_set(err, STATUS_LIMIT, "job '%.80s': too many units (limit is %d)", job->name,
                             INSTANCE_JOB_UNITS_MAX);
        if (job->weight < 1 || job->weight > INSTANCE_WEIGHT_MAX)
            return error_set(err, STATUS_BAD_INPUT, "job '%.80s': weight %u (expected 1 to %d)",
                             job->name, job->weight, INSTANCE_WEIGHT_MAX);
        if (job->deadline < 0 || job->deadline > INSTANCE_HORIZON_MAX)
            return error_set(err, STATUS_BAD_INPUT, "job '%.80s': a deadline out of range", job->name);
        tasks += (uint64_t)job->unit_count * job->repeat;
        if (tasks > INSTANCE_TASKS_MAX)
            return error_set(err, STATUS_LIMIT, "too many tasks (limit is %d)", INSTANCE_TASKS_MAX);
        if (job->load < 0 || job->load > INSTANCE_TICKS_MAX || job->store < 0 || job->store > INSTANCE_TICKS_MAX ||
            (!in->streams && (job->load > 0 || job->store > 0)))
            return error_set(err, STATUS_BAD_INPUT, "job '%.80s': a load or store out of range", job->name);
        horizon += (uint64_t)job->load + (uint64_t)job->store;
        for (uint32_t u = 0; u < job->unit_count; u++) {
            int64_t longest;
            TRY(finish_unit(in, job, job->first_unit + u, &longest, err));
            sum += (uint64_t)longest; /* at most 2^20 units of 8e12 ticks */
        }
        if (!size_mul(sum, job->repeat, &sum) || !size_add(horizon, sum, &horizon) ||
            horizon > (uint64_t)INSTANCE_HORIZON_MAX)
            return error_set(err, STATUS_LIMIT, "the durations add up to more than %" PRId64 " ticks",
                             INSTANCE_HORIZON_MAX);
        weights += job->weight;
    }
    uint64_t factor = in->objective == OBJECTIVE_WEIGHTED ? weights : in->job_count;
    if (factor > (uint64_t)(INT64_MAX / 4) / (horizon + 1))
        return error_set(err, STATUS_LIMIT, "weights by durations are too large to be added up");
    if (!(in->tick_s > 0)) in->tick_s = INSTANCE_TICK_S;
    in->task_count = (uint32_t)tasks;
    in->horizon = (int64_t)horizon;
    return STATUS_OK;
}

void instance_release(struct instance *in)
{
    arena_release(&in->arena);
    *in = (struct instance){0};
}

/* --- values ---------------------------------------------------------------------------------- */

int64_t instance_value(const struct instance *in, const int64_t *ends, uint64_t bytes)
{
    int64_t value = 0;
    for (uint32_t i = 0; i < in->job_count; i++) {
        const struct instance_job *job = &in->jobs[i];
        int64_t late;
        switch (in->objective) {
        case OBJECTIVE_MEAN: value += ends[i]; break;
        case OBJECTIVE_WEIGHTED: value += (int64_t)job->weight * ends[i]; break;
        case OBJECTIVE_TARDINESS:
            late = ends[i] - job->deadline;
            if (late > value) value = late;
            break;
        default:
            if (ends[i] > value) value = ends[i];
        }
    }
    if (in->objective == OBJECTIVE_MAKESPAN && in->bridge_bytes_per_tick > 0) {
        uint64_t rate = in->bridge_bytes_per_tick, least = bytes / rate + (bytes % rate > 0);
        if (least > (uint64_t)value) value = (int64_t)least;
    }
    return value;
}

int64_t instance_compute_min(const struct instance *in, uint32_t unit)
{
    int64_t least = INT64_MAX;
    for (uint32_t c = 0; c < in->class_count; c++)
        if (instance_fits(in, unit, c) && instance_compute(in, unit, c) < least)
            least = instance_compute(in, unit, c);
    return least;
}
