/* Events: a device becomes free, or starts its chosen task. */
#include "planner/solve/search/list_baseline.h"

#include <assert.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/process/clock.h"

/* --- longest remaining time first ------------------------------------------------------------ */

struct baseline {
    const struct instance *in;
    struct dispatch *d;
    int64_t *remaining; /* (job_count): computation not yet started */
    bool *taken;        /* (job_count): a device has chosen it, and not started it */
    uint32_t *picked;   /* (device_count): TIMETABLE_NONE: nothing */
    int64_t *event;     /* (device_count): tick at which it is free, or starts its chosen task */
    bool *waiting;      /* (device_count): found no job; asked again when a task ends */
    struct dispatch_step *steps;
    uint32_t made;
    double until_s;
};

/* Returns the longest remaining job that `device` may choose at `now`; `own`: its job, even if it runs, preferred in
 * ties, then the lowest index. */
static uint32_t longest(const struct baseline *b, uint32_t device, uint32_t own, int64_t now)
{
    uint32_t best = TIMETABLE_NONE;
    for (uint32_t i = 0; i < b->in->job_count; i++) {
        const struct dispatch_job *job = &b->d->jobs[i];
        const struct instance_job *chain = &b->in->jobs[i];
        if (job->next == instance_length(chain)) continue;
        if (b->taken[i] || (i != own && job->ended > now)) continue;
        if (!instance_fits(b->in, instance_unit_at(chain, job->next), b->in->device_class[device])) continue;
        if (best == TIMETABLE_NONE || b->remaining[i] > b->remaining[best] ||
            (b->remaining[i] == b->remaining[best] && i == own))
            best = i;
    }
    return best;
}

static void pick(struct baseline *b, uint32_t device, uint32_t own, int64_t now)
{
    b->picked[device] = longest(b, device, own, now);
    if (b->picked[device] != TIMETABLE_NONE) b->taken[b->picked[device]] = true;
}

static void start_picked(struct baseline *b, uint32_t device)
{
    uint32_t job = b->picked[device];
    uint32_t unit = instance_unit_at(&b->in->jobs[job], b->d->jobs[job].next);
    dispatch_put(b->d, job, device);
    b->steps[b->made++] = (struct dispatch_step){job, device};
    b->remaining[job] -= instance_compute_min(b->in, unit);
    b->taken[job] = false;
    b->picked[device] = TIMETABLE_NONE;
    b->event[device] = b->d->jobs[job].ended;
}

static uint32_t next_event(const struct baseline *b)
{
    uint32_t best = 0;
    for (uint32_t g = 1; g < b->in->device_count; g++)
        if (b->event[g] < b->event[best]) best = g;
    return best;
}

/* `ahead`: choose the next job when a task starts; else when the device is free. Returns false if the time is over. */
static bool run_baseline(struct baseline *b, bool ahead)
{
    while (b->made < b->in->task_count) {
        if (b->made % 1024 == 1023 && clock_s() >= b->until_s) return false;
        uint32_t g = next_event(b);
        int64_t now = b->event[g];
        assert(now < INT64_MAX);
        for (uint32_t o = 0; o < b->in->device_count && !b->waiting[g]; o++)
            if (b->waiting[o] && b->event[o] == INT64_MAX) b->event[o] = now;
        if (b->picked[g] == TIMETABLE_NONE) pick(b, g, TIMETABLE_NONE, now);
        b->waiting[g] = b->picked[g] == TIMETABLE_NONE;
        if (b->waiting[g]) {
            b->event[g] = INT64_MAX;
            continue;
        }
        uint32_t job = b->picked[g];
        b->event[g] = dispatch_start(b->d, job, g);
        if (b->event[g] > now) continue;
        start_picked(b, g);
        if (ahead) pick(b, g, job, now);
    }
    return true;
}

static enum status baseline(const struct instance *in, bool ahead, double until_s,
                            struct dispatch_step *steps, int64_t *value, struct error *err)
{
    struct baseline b = {.in = in, .steps = steps, .until_s = until_s};
    b.remaining = alloc_zeroed(in->job_count, sizeof *b.remaining);
    b.taken = alloc_zeroed(in->job_count, sizeof *b.taken);
    b.picked = alloc_zeroed(in->device_count, sizeof *b.picked);
    b.event = alloc_zeroed(in->device_count, sizeof *b.event);
    b.waiting = alloc_zeroed(in->device_count, sizeof *b.waiting);
    if (!b.remaining || !b.taken || !b.picked || !b.event || !b.waiting) {
        error_memory(err, "a schedule", in->job_count * sizeof *b.remaining);
    } else if (!dispatch_create(in, &b.d, err)) {
        for (uint32_t i = 0; i < in->job_count; i++) {
            const struct instance_job *job = &in->jobs[i];
            for (uint32_t u = 0; u < job->unit_count; u++)
                b.remaining[i] += job->repeat * instance_compute_min(in, job->first_unit + u);
        }
        for (uint32_t g = 0; g < in->device_count; g++) b.picked[g] = TIMETABLE_NONE;
        *value = run_baseline(&b, ahead) ? dispatch_value(b.d) : INT64_MAX;
    }
    dispatch_destroy(b.d);
    free(b.remaining);
    free(b.taken);
    free(b.picked);
    free(b.event);
    free(b.waiting);
    return err->status;
}

enum status list_baseline_hydra(const struct instance *in, double until_s, struct dispatch_step *steps,
                              int64_t *value, struct error *err)
{
    return baseline(in, true, until_s, steps, value, err);
}

enum status list_baseline_lrtf(const struct instance *in, double until_s, struct dispatch_step *steps,
                             int64_t *value, struct error *err)
{
    return baseline(in, false, until_s, steps, value, err);
}

/* --- whole jobs ------------------------------------------------------------------------------ */

struct sized {
    int64_t computes;
    uint32_t job;
};

static int compare_sized(const void *a, const void *b)
{
    const struct sized *x = a, *y = b;
    if (x->computes != y->computes) return x->computes > y->computes ? -1 : 1;
    return (x->job > y->job) - (x->job < y->job);
}

/* Returns the device for the job's next task: the previous task's, or the one where it starts first. */
static uint32_t device_for(const struct instance *in, const struct dispatch *d, uint32_t job)
{
    uint32_t unit = d->jobs[job].unit, best = d->jobs[job].device;
    if (best != TIMETABLE_NONE && instance_fits(in, unit, in->device_class[best])) return best;
    best = TIMETABLE_NONE;
    for (uint32_t g = 0; g < in->device_count; g++)
        if (instance_fits(in, unit, in->device_class[g]) &&
            (best == TIMETABLE_NONE || dispatch_start(d, job, g) < dispatch_start(d, job, best)))
            best = g;
    return best;
}

enum status list_baseline_whole(const struct instance *in, struct dispatch_step *steps, int64_t *value,
                              struct error *err)
{
    struct dispatch *d = NULL;
    struct sized *order = alloc_zeroed(in->job_count, sizeof *order);
    if (!order) return error_memory(err, "a schedule", in->job_count * sizeof *order);
    if (!dispatch_create(in, &d, err)) {
        for (uint32_t i = 0; i < in->job_count; i++) {
            const struct instance_job *job = &in->jobs[i];
            order[i].job = i;
            for (uint32_t u = 0; u < job->unit_count; u++)
                order[i].computes += job->repeat * instance_compute_min(in, job->first_unit + u);
        }
        qsort(order, in->job_count, sizeof *order, compare_sized);
        for (uint32_t i = 0, t = 0; i < in->job_count; i++)
            for (uint32_t k = 0; k < instance_length(&in->jobs[order[i].job]); k++, t++) {
                uint32_t job = order[i].job, device = device_for(in, d, job);
                steps[t] = (struct dispatch_step){job, device};
                dispatch_put(d, job, device);
            }
        *value = dispatch_value(d);
    }
    dispatch_destroy(d);
    free(order);
    return err->status;
}
