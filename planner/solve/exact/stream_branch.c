#include "planner/solve/exact/stream_branch.h"

#include <assert.h>
#include <string.h>

#include "base/extreme.h"
#include "base/process/anytime.h"
#include "base/try.h"
#include "planner/solve/bounds/stream_bound.h"
#include "planner/solve/instance/dispatch_streams.h"

struct stream_branching {
    const struct instance *in;
    struct anytime limits;
    struct dispatch *states[STREAM_BRANCH_TASKS_MAX + 1];
    struct dispatch_step order[STREAM_BRANCH_TASKS_MAX], *best;
    int64_t value, bound;
    int64_t tails[STREAM_BRANCH_TASKS_MAX]; /* of each task, job by job */
    uint32_t first[STREAM_BRANCH_TASKS_MAX]; /* of a job in tails */
};

/* Returns true if nothing after this state ends before the best value. */
static bool excluded(const struct stream_branching *s, const struct dispatch *d)
{
    int64_t least = d->streams->host_works ? d->streams->last_start : 0; /* of a next task's start */
    int64_t most = s->value - 1, compute = 0, copies = 0, host = d->streams->host, devices = s->in->device_count;
    for (uint32_t j = 0; j < s->in->job_count; j++) {
        const struct dispatch_job *job = &d->jobs[j];
        uint32_t length = instance_length(&s->in->jobs[j]);
        if (job->end > most) return true;
        if (job->next == length) continue;
        int64_t start = max_i64(job->ended, least);
        if (start + s->tails[s->first[j] + job->next] > most) return true;
        for (uint32_t t = job->next; t < length; t++) {
            uint32_t unit = instance_unit_at(&s->in->jobs[j], t);
            const struct instance_unit *u = &s->in->units[unit];
            compute += instance_compute_min(s->in, unit);
            copies += u->memory > 0 ? u->in : 0;
            host += u->host_before + u->host_after + u->update;
        }
    }
    if (host > most) return true;
    for (uint32_t g = 0; g < s->in->device_count; g++) {
        compute += max_i64(d->streams->devices[g].compute, least);
        copies += d->streams->devices[g].in;
    }
    return compute > devices * most || copies > devices * most;
}

/* Returns true if an earlier device of the class has no task either. */
static bool is_copy(const struct stream_branching *s, const struct dispatch *d, uint32_t device)
{
    if (d->devices[device].job != TIMETABLE_NONE) return false;
    for (uint32_t g = 0; g < device; g++)
        if (d->devices[g].job == TIMETABLE_NONE && s->in->device_class[g] == s->in->device_class[device]) return true;
    return false;
}

static void branch(struct stream_branching *s, uint32_t depth)
{
    const struct dispatch *d = s->states[depth];
    if (s->value <= s->bound || s->limits.over || !anytime_step(&s->limits) || excluded(s, d)) return;
    if (depth == s->in->task_count) {
        s->value = dispatch_value(d);
        memcpy(s->best, s->order, depth * sizeof *s->best);
        return;
    }
    for (uint32_t j = 0; j < s->in->job_count; j++) {
        const struct dispatch_job *job = &d->jobs[j];
        if (job->next == instance_length(&s->in->jobs[j])) continue;
        for (uint32_t g = 0; g < s->in->device_count; g++) {
            if (!instance_fits(s->in, job->unit, s->in->device_class[g]) || is_copy(s, d, g)) continue;
            dispatch_copy(s->states[depth + 1], d);
            dispatch_put(s->states[depth + 1], j, g);
            s->order[depth] = (struct dispatch_step){j, g};
            branch(s, depth + 1);
        }
    }
}

enum status stream_branch(const struct instance *in, int64_t bound, const struct stream_branch_options *options,
                          struct dispatch_step *steps, int64_t *value, bool *proven, uint64_t *nodes,
                          struct error *err)
{
    struct stream_branching s = {.in = in, .best = steps, .value = *value, .bound = bound,
                                 .limits = {.until_s = options->until_s, .steps_max = options->nodes_max,
                                            .clock_every = 256}};
    assert(stream_branch_takes(in));
    for (uint32_t j = 0, task = 0; j < in->job_count; j++) {
        s.first[j] = task;
        for (uint32_t t = 0; t < instance_length(&in->jobs[j]); t++) s.tails[task++] = stream_bound_tail(in, j, t);
    }
    for (uint32_t i = 0; i <= in->task_count && !err->status; i++) (void)!dispatch_create(in, &s.states[i], err);
    if (!err->status) branch(&s, 0);
    *value = s.value;
    *proven = !s.limits.over;
    *nodes = s.limits.steps;
    for (uint32_t i = 0; i <= in->task_count; i++) dispatch_destroy(s.states[i]);
    return err->status;
}
