/*
 * The rules are written out again from instance.h's sentences, without its functions: a mistake in either shows.
 *
 * A table has each task's device and previous task there; then tasks are checked one by one.
 */
#include "planner/solve/instance/timetable_check.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "planner/solve/instance/timetable_check_streams.h"

struct timetable_check_placed {
    int64_t start;
    uint32_t device;
    uint32_t index;  /* in timetable.tasks */
    uint32_t before; /* index in timetable.tasks; TIMETABLE_NONE: the first of its device */
    bool there;
};

struct check {
    const struct instance *in;
    const struct timetable *table;
    struct timetable_check_placed *placed; /* (task_count), by job and position */
    uint32_t *first;                       /* (job_count): where a job begins in placed */
    int64_t *ends;                         /* (job_count) */
    uint64_t bytes;
    uint32_t looked_at;      /* index of a task, or TIMETABLE_NONE */
    struct error *err;
};

static const struct instance_unit *unit_of(const struct check *c, uint32_t job, uint32_t position,
                                           uint32_t device, int64_t *compute)
{
    const struct instance_job *j = &c->in->jobs[job];
    uint32_t unit = j->first_unit + position % j->unit_count;
    *compute = c->in->compute[(size_t)unit * c->in->class_count + c->in->device_class[device]];
    return &c->in->units[unit];
}

static enum status place(struct check *c, uint32_t device, uint32_t index)
{
    const struct timetable_task *task = &c->table->tasks[index];
    c->looked_at = index;
    if (task->job >= c->in->job_count)
        return error_set(c->err, STATUS_CHECK, "device %u: there is no job %u", device, task->job);
    const struct instance_job *job = &c->in->jobs[task->job];
    if (task->position >= job->unit_count * job->repeat)
        return error_set(c->err, STATUS_CHECK, "job '%.80s' has no task %u", job->name, task->position);
    struct timetable_check_placed *placed = &c->placed[c->first[task->job] + task->position];
    int64_t compute;
    const struct instance_unit *unit = unit_of(c, task->job, task->position, device, &compute);
    uint64_t memory = c->in->classes[c->in->device_class[device]].memory;
    if (placed->there)
        return error_set(c->err, STATUS_CHECK, "job '%.80s', task %u: runs twice", job->name,
                         task->position);
    if (unit->memory > memory)
        return error_set(c->err, STATUS_CHECK,
                         "job '%.80s', task %u: needs memory %" PRIu64 ", device %u has %" PRIu64,
                         job->name, task->position, unit->memory, device, memory);
    bool first = index == c->table->device_first[device];
    *placed = (struct timetable_check_placed){task->start, device, index, first ? TIMETABLE_NONE : index - 1, true};
    return STATUS_OK;
}

static enum status place_all(struct check *c)
{
    const struct timetable *table = c->table;
    if (table->device_count != c->in->device_count || table->task_count != c->in->task_count ||
        table->device_first[0] != 0 || table->device_first[table->device_count] != table->task_count)
        return error_set(c->err, STATUS_CHECK, "a timetable of %u tasks on %u devices (expected %u on %u)",
                         table->task_count, table->device_count, c->in->task_count,
                         c->in->device_count);
    for (uint32_t g = 0; g < table->device_count; g++) {
        if (table->device_first[g] > table->device_first[g + 1])
            return error_set(c->err, STATUS_CHECK, "device %u: its tasks end before they begin", g);
        for (uint32_t t = table->device_first[g]; t < table->device_first[g + 1]; t++)
            if (place(c, g, t)) return c->err->status;
    }
    return STATUS_OK; /* the count is right and no task occurs twice, so every task occurs */
}

/* Checks that a task starts after the previous task on its device allows it. */
static enum status check_device(struct check *c, uint32_t job, uint32_t position)
{
    const struct timetable_check_placed *k = &c->placed[c->first[job] + position];
    int64_t compute, least;
    c->looked_at = k->index;
    const struct instance_unit *unit = unit_of(c, job, position, k->device, &compute);
    uint64_t in_bytes = unit->in_bytes;
    if (k->before == TIMETABLE_NONE) {
        least = unit->in;
    } else {
        const struct timetable_task *j = &c->table->tasks[k->before];
        int64_t p;
        const struct instance_unit *last = unit_of(c, j->job, j->position, k->device, &p);
        uint64_t memory = c->in->classes[c->in->device_class[k->device]].memory;
        uint32_t slots = c->in->classes[c->in->device_class[k->device]].slots;
        if (last->job == unit->job && last->shard == unit->shard) {
            least = j->start + p;
            in_bytes = 0;
        } else if (slots >= 2 && last->memory + unit->memory <= memory) {
            least = j->start + (p > unit->in ? p : unit->in);
        } else {
            least = j->start + p + last->out + unit->in;
        }
    }
    if (k->start < least)
        return error_set(c->err, STATUS_CHECK,
                         "job '%.80s', task %u: starts at %" PRId64 " on device %u, which cannot before %" PRId64,
                         c->in->jobs[job].name, position, k->start, k->device, least);
    c->bytes += in_bytes + (unit->writes ? unit->out_bytes : 0);
    return STATUS_OK;
}

static enum status check_chain(struct check *c, uint32_t job, uint32_t position)
{
    const struct timetable_check_placed *k = &c->placed[c->first[job] + position], *j = k - 1;
    int64_t compute, p, wait = 0;
    const struct instance_unit *unit = unit_of(c, job, position, k->device, &compute);
    int64_t end = k->start + compute + unit->out;
    if (end > c->ends[job]) c->ends[job] = end;
    if (position == 0) return STATUS_OK;
    const struct instance_unit *last = unit_of(c, job, position - 1, j->device, &p);
    bool direct = false;
    if (k->before != TIMETABLE_NONE) {
        const struct timetable_task *before = &c->table->tasks[k->before];
        direct = before->job == job && before->position + 1 == position;
    }
    if (last->writes && last->shard == unit->shard && !direct) wait = last->out + unit->in;
    if (k->start < j->start + p + wait)
        return error_set(c->err, STATUS_CHECK,
                         "job '%.80s', task %u: starts at %" PRId64 ", the previous task lets it start at %" PRId64,
                         c->in->jobs[job].name, position, k->start, j->start + p + wait);
    return STATUS_OK;
}

static enum status check_value(struct check *c)
{
    const struct instance *in = c->in;
    int64_t makespan = 0, late = 0, sum = 0, weighted = 0, value = 0;
    for (uint32_t i = 0; i < in->job_count; i++) {
        if (c->ends[i] > makespan) makespan = c->ends[i];
        if (c->ends[i] - in->jobs[i].deadline > late) late = c->ends[i] - in->jobs[i].deadline;
        sum += c->ends[i];
        if (in->objective == OBJECTIVE_WEIGHTED) weighted += c->ends[i] * in->jobs[i].weight;
    }
    if (in->bridge_bytes_per_tick > 0) {
        int64_t bridge = (int64_t)((c->bytes + in->bridge_bytes_per_tick - 1) / in->bridge_bytes_per_tick);
        if (bridge > makespan) makespan = bridge;
    }
    switch (in->objective) {
    case OBJECTIVE_MAKESPAN: value = makespan; break;
    case OBJECTIVE_MEAN: value = sum; break;
    case OBJECTIVE_WEIGHTED: value = weighted; break;
    case OBJECTIVE_TARDINESS: value = late; break;
    case OBJECTIVE_COUNT: break;
    }
    if (value != c->table->value)
        return error_set(c->err, STATUS_CHECK, "claims a %s of %" PRId64 ", and it is %" PRId64,
                         instance_objective_names[in->objective], c->table->value, value);
    return STATUS_OK;
}

enum status timetable_check_task(const struct instance *in, const struct timetable *timetable,
                                 uint32_t *task, struct error *err)
{
    struct check c = {.in = in, .table = timetable, .looked_at = TIMETABLE_NONE, .err = err};
    c.placed = alloc_zeroed(in->task_count, sizeof *c.placed);
    c.first = alloc_zeroed(in->job_count, sizeof *c.first);
    c.ends = alloc_zeroed(in->job_count, sizeof *c.ends);
    if (!c.placed || !c.first || !c.ends) {
        error_memory(err, "checking a timetable", in->task_count * sizeof *c.placed);
        goto out;
    }
    for (uint32_t i = 1; i < in->job_count; i++)
        c.first[i] = c.first[i - 1] + in->jobs[i - 1].unit_count * in->jobs[i - 1].repeat;
    if (place_all(&c)) goto out;
    if (in->streams && timetable_check_streams(in, timetable, c.ends, &c.looked_at, err)) goto out;
    for (uint32_t i = 0; i < in->job_count && !in->streams; i++)
        for (uint32_t t = 0; t < in->jobs[i].unit_count * in->jobs[i].repeat; t++)
            if (check_device(&c, i, t) || check_chain(&c, i, t)) goto out;
    c.looked_at = TIMETABLE_NONE;
    check_value(&c);
out:
    *task = c.looked_at;
    free(c.placed);
    free(c.first);
    free(c.ends);
    return err->status;
}

enum status timetable_check(const struct instance *in, const struct timetable *timetable,
                            struct error *err)
{
    uint32_t task;
    return timetable_check_task(in, timetable, &task, err);
}
