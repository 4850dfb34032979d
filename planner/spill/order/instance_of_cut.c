#include "planner/spill/order/instance_of_cut.h"

#include <assert.h>
#include <math.h>

#include "base/try.h"

static int64_t ticks(double seconds, int64_t least)
{
    double count = ceil(seconds * 1e6 - 1e-6); /* a whole number with a rounding error stays whole */
    return count > (double)least ? (int64_t)count : least;
}

/* Returns the number of the job's units on devices before the position. */
static uint32_t unit_before(const struct cost_table *t, uint32_t job, uint32_t position)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < position; i++) count += !cost_table_at(t, 0, job, i)->cpu_alone;
    return count;
}

static uint32_t positions_of(const struct cost_table *t, uint32_t job)
{
    return schedule_unit_count(partition_job_units(t->partition, job));
}

static uint32_t device_of(const struct hardware *hw, uint32_t type)
{
    uint32_t device = 0;
    while (hw->devices[device].type != type) device++;
    return device;
}

static uint32_t devices_of(const struct hardware *hw, uint32_t type)
{
    uint32_t count = 0;
    for (uint32_t d = 0; d < hw->device_count; d++) count += hw->devices[d].type == type;
    return count;
}

static enum status fill_classes(const struct cost_table *t, struct instance *out, uint32_t types[],
                                struct error *err)
{
    const struct hardware *hw = t->hardware;
    uint32_t class = 0;
    for (uint32_t type = 0; type < hw->type_count; type++) {
        if (devices_of(hw, type) == 0) continue;
        struct instance_class *to = &out->classes[class];
        TRY(arena_string(&out->arena, hw->types[type].name, &to->name, err));
        to->device_count = devices_of(hw, type);
        to->memory = t->partition->weight_buffer_count;
        types[class++] = type;
    }
    return STATUS_OK;
}

static enum status fill_job(const struct cost_table *t, uint32_t j, uint32_t first,
                            const uint32_t types[], struct instance *out, struct error *err)
{
    const struct job *job = &t->jobs->jobs[j];
    struct instance_job *to = &out->jobs[j];
    const struct partition_units units = partition_job_units(t->partition, j);
    uint32_t positions = positions_of(t, j);
    TRY(arena_string(&out->arena, job->name, &to->name, err));
    to->first_unit = first;
    to->unit_count = unit_before(t, j, positions);
    to->weight = 1;
    to->deadline = INSTANCE_HORIZON_MAX;
    if (job->minibatches > INSTANCE_TASKS_MAX)
        return error_set(err, STATUS_LIMIT, "job '%s' has %llu minibatches (limit of an instance is %d)",
                         job->name, (unsigned long long)job->minibatches, INSTANCE_TASKS_MAX);
    to->repeat = (uint32_t)job->minibatches;
    for (uint32_t i = 0; i < positions; i++) {
        const struct cost_unit *time = cost_table_at(t, 0, j, i);
        if (time->cpu_alone) continue;
        uint32_t at = first + unit_before(t, j, i);
        struct instance_unit *unit = &out->units[at];
        unit->job = j;
        unit->shard = schedule_unit_shard(units, i);
        unit->in = ticks(time->in_s, 0);
        unit->writes = schedule_unit_pass(units, i) != PLAN_FORWARD;
        unit->out = unit->writes ? ticks(time->out_s, 0) : 0;
        unit->memory = 1;
        for (uint32_t c = 0; c < out->class_count; c++) {
            uint32_t device = device_of(t->hardware, types[c]);
            out->compute[(size_t)at * out->class_count + c] =
                ticks(cost_table_at(t, device, j, i)->compute_s, 1);
        }
    }
    return STATUS_OK;
}

enum status instance_of_cut(const struct cost_table *t, struct instance *out, struct error *err)
{
    uint32_t units = 0, classes = 0, types[INSTANCE_CLASSES_MAX];
    assert(!t->partition->resident);
    for (uint32_t j = 0; j < t->jobs->count; j++) units += unit_before(t, j, positions_of(t, j));
    for (uint32_t type = 0; type < t->hardware->type_count; type++)
        classes += devices_of(t->hardware, type) > 0;
    if (classes > INSTANCE_CLASSES_MAX)
        return error_set(err, STATUS_LIMIT, "%u types of device (limit of an instance is %d)", classes,
                         INSTANCE_CLASSES_MAX);
    TRY(instance_init(out, classes, t->jobs->count, units, err));
    TRY(arena_string(&out->arena, t->hardware->name, &out->name, err));
    TRY(fill_classes(t, out, types, err));
    for (uint32_t j = 0, first = 0; j < t->jobs->count; first += out->jobs[j++].unit_count)
        TRY(fill_job(t, j, first, types, out, err));
    return instance_finish(out, err);
}
