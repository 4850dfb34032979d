#include "planner/solve/search/local_window.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* A job or device during a trial. Unless changed, it has the state of the place of its next step. */
struct trial_job {
    uint64_t trial; /* the last trial that touched it */
    bool differs;
    struct local_job now;
};
struct trial_device {
    uint64_t trial;
    bool differs;
    struct local_device now;
};

struct local_window {
    struct local_split *split;
    uint32_t at, end; /* range of known places */
    struct local_place places[LOCAL_REACH_MAX]; /* of step t at t % LOCAL_REACH_MAX */
    struct local_job *rear_jobs; /* after `end` */
    struct local_device *rear_devices;
    struct trial_job *jobs;
    struct trial_device *devices;
    uint64_t trial;
    uint64_t moved, spared; /* bytes that the trial copies in, and bytes that it saves */
    uint32_t touched_jobs[2 * LOCAL_REACH_MAX + 2], touched_devices[LOCAL_REACH_MAX + 2];
    uint32_t touched_job_count, touched_device_count;
};

/* --- creation -------------------------------------------------------------------------------- */

enum status local_window_create(struct local_split *split, struct local_window **out, struct error *err)
{
    const struct instance *in = split->in;
    struct local_window *w = alloc_zeroed(1, sizeof *w);
    if (!w) return error_memory(err, "a search", sizeof *w);
    w->split = split;
    w->rear_jobs = alloc_zeroed(in->job_count, sizeof *w->rear_jobs);
    w->rear_devices = alloc_zeroed(in->device_count, sizeof *w->rear_devices);
    w->jobs = alloc_zeroed(in->job_count, sizeof *w->jobs);
    w->devices = alloc_zeroed(in->device_count, sizeof *w->devices);
    if (!w->rear_jobs || !w->rear_devices || !w->jobs || !w->devices) {
        local_window_destroy(w);
        return error_memory(err, "a search", in->job_count * sizeof *w->jobs);
    }
    *out = w;
    return STATUS_OK;
}

void local_window_destroy(struct local_window *w)
{
    if (!w) return;
    free(w->rear_jobs);
    free(w->rear_devices);
    free(w->jobs);
    free(w->devices);
    free(w);
}

/* --- places ---------------------------------------------------------------------------------- */

static inline struct local_place *place_at(struct local_window *w, uint32_t step)
{
    return &w->places[step % LOCAL_REACH_MAX];
}

const struct local_place *local_window_place(const struct local_window *w, uint32_t step)
{
    return &w->places[step % LOCAL_REACH_MAX];
}

void local_window_spoil(struct local_window *w)
{
    w->end = 0;
}

/* Returns the weight of the way of a job after its task on `device`, which goes on with step `device_next`. */
static inline float job_way(const struct local_split *c, const struct local_job *j, uint32_t next, bool direct)
{
    int64_t length = j->end;
    if (next != TIMETABLE_NONE) {
        int64_t tail = (direct ? j->ended : j->ready) + c->steps[next].tail;
        if (tail > length) length = tail;
    }
    return local_split_weigh(c, length);
}

static inline float device_way(const struct local_split *c, const struct local_device *d, uint32_t device,
                               uint32_t next)
{
    if (next == TIMETABLE_NONE) return 0;
    return local_split_weigh(c, local_split_ready_of(c, d, device, c->steps[next].unit) + c->steps[next].tail);
}

void local_window_set(struct local_window *w, uint32_t at, uint32_t end)
{
    const struct local_split *c = w->split;
    if (w->end <= at || w->at > at) { /* spoiled */
        memcpy(w->rear_jobs, c->jobs, c->in->job_count * sizeof *c->jobs);
        memcpy(w->rear_devices, c->devices, c->in->device_count * sizeof *c->devices);
        w->end = at;
    }
    w->at = at;
    for (uint32_t t = w->end; t < end; t++) {
        const struct local_step *step = &c->steps[t];
        uint32_t device = c->device_of[step->sequence];
        struct local_job *j = &w->rear_jobs[step->job];
        struct local_device *d = &w->rear_devices[device];
        struct local_place *place = place_at(w, t);
        place->job = *j;
        place->device = *d;
        place->start = local_split_run(c, j, step->job, d, device);
        place->end = j->end;
        place->job_way = job_way(c, j, step->next_of_job, step->next_of_job == step->next_in_sequence);
        place->device_way = device_way(c, d, device, step->next_in_sequence);
    }
    if (end > w->end) w->end = end;
}

/* --- trials ---------------------------------------------------------------------------------- */

/* Gives the job a state of its own: `otherwise` if it had none. */
static inline struct local_job *own_job(struct local_window *w, uint32_t job, const struct local_job *otherwise)
{
    struct trial_job *own = &w->jobs[job];
    if (own->trial != w->trial) {
        own->trial = w->trial;
        w->touched_jobs[w->touched_job_count++] = job;
        own->differs = false;
    }
    if (!own->differs) own->now = *otherwise;
    own->differs = true;
    return &own->now;
}

static inline struct local_device *own_device(struct local_window *w, uint32_t device,
                                              const struct local_device *otherwise)
{
    struct trial_device *own = &w->devices[device];
    if (own->trial != w->trial) {
        own->trial = w->trial;
        w->touched_devices[w->touched_device_count++] = device;
        own->differs = false;
    }
    if (!own->differs) own->now = *otherwise;
    own->differs = true;
    return &own->now;
}

static inline bool job_differs(const struct local_window *w, uint32_t job)
{
    return w->jobs[job].trial == w->trial && w->jobs[job].differs;
}

static inline bool device_differs(const struct local_window *w, uint32_t device)
{
    return w->devices[device].trial == w->trial && w->devices[device].differs;
}

/* Dispatches a job's next task to a device. Returns false if that does not hold it. */
static inline bool put(struct local_window *w, uint32_t job, struct local_job *j, uint32_t device,
                       struct local_device *d)
{
    const struct instance *in = w->split->in;
    if (in->class_count > 1 && !instance_fits(in, j->unit, in->device_class[device])) return false;
    if (in->bridge_bytes_per_tick > 0) w->moved += local_split_copy(w->split, d, j->unit);
    local_split_run(w->split, j, job, d, device);
    return true;
}

/* Notes that a step no longer copies its shard in. */
static inline void spare(struct local_window *w, uint32_t step)
{
    if (w->split->in->bridge_bytes_per_tick > 0)
        w->spared += local_split_copy(w->split, &place_at(w, step)->device, w->split->steps[step].unit);
}

/* Goes through unchanged steps [from, to), before which some state differs. */
static bool pass(struct local_window *w, uint32_t from, uint32_t to)
{
    for (uint32_t t = from; t < to; t++) {
        const struct local_step *step = &w->split->steps[t];
        uint32_t device = w->split->device_of[step->sequence];
        if (!job_differs(w, step->job) && !device_differs(w, device)) continue;
        const struct local_place *place = place_at(w, t);
        struct local_job *j = own_job(w, step->job, &place->job);
        struct local_device *d = own_device(w, device, &place->device);
        spare(w, t);
        if (!put(w, step->job, j, device, d)) return false;
        if (d->start != place->start || d->unit != step->unit) continue;
        w->devices[device].differs = false;
        w->jobs[step->job].differs = j->end != place->end || j->left + 1 != place->job.left;
    }
    return true;
}

/* Dispatches the part that a change makes different. */
static bool replay(struct local_window *w, const struct local_change *change)
{
    const struct local_split *c = w->split;
    uint32_t last = w->at + change->last;
    const struct local_step *first = &c->steps[w->at], *other = &c->steps[last];
    const struct local_place *here = place_at(w, w->at), *there = place_at(w, last);
    uint32_t device = c->device_of[first->sequence], other_device = c->device_of[other->sequence];
    struct local_job *j;
    struct local_device *d;
    spare(w, change->kind == LOCAL_SOONER ? last : w->at);
    switch (change->kind) {
    case LOCAL_SWAP:
        spare(w, last);
        own_job(w, first->job, &here->job);
        j = own_job(w, other->job, &c->jobs[other->job]);
        d = own_device(w, device, &here->device);
        if (!put(w, other->job, j, device, d) || !pass(w, w->at + 1, last)) return false;
        j = own_job(w, first->job, &here->job);
        d = own_device(w, other_device, &there->device);
        return put(w, first->job, j, other_device, d);
    case LOCAL_SOONER:
        j = own_job(w, other->job, &c->jobs[other->job]);
        d = own_device(w, device, &here->device);
        if (!put(w, other->job, j, device, d) || !pass(w, w->at, last)) return false;
        own_device(w, other_device, &there->device);
        return true;
    case LOCAL_LATER:
        own_job(w, first->job, &here->job);
        own_device(w, device, &here->device);
        if (!pass(w, w->at + 1, last + 1)) return false;
        j = own_job(w, first->job, &here->job);
        d = own_device(w, other_device, &(struct local_device){.start = there->start, .job = other->job,
                                                               .unit = other->unit});
        return put(w, first->job, j, other_device, d);
    case LOCAL_ELSEWHERE:
        own_device(w, device, &here->device);
        j = own_job(w, first->job, &here->job);
        d = own_device(w, change->to, &c->devices[change->to]);
        return put(w, first->job, j, change->to, d);
    }
    return false;
}

/* Returns the last step of a chain up to `last`; TIMETABLE_NONE: no such step. *next: the step after it. */
static inline uint32_t last_of_job(const struct local_split *c, uint32_t job, uint32_t last, uint32_t *next)
{
    uint32_t before = TIMETABLE_NONE, step = c->jobs[job].next;
    for (; step <= last; step = c->steps[step].next_of_job) before = step; /* TIMETABLE_NONE is greater than all
                                                                              steps */
    *next = step;
    return before;
}

static inline uint32_t last_of_device(const struct local_split *c, uint32_t device, uint32_t last, uint32_t *next)
{
    uint32_t before = TIMETABLE_NONE, step = c->devices[device].next;
    for (; step <= last; step = c->steps[step].next_in_sequence) before = step;
    *next = step;
    return before;
}

/*
 * Updates an unchanged job whose device may have changed: its parameters go through the host only if its next task does
 * not follow it there.
 */
static void touch_host(struct local_window *w, uint32_t job, uint32_t last)
{
    if (job == TIMETABLE_NONE || job_differs(w, job)) return;
    uint32_t next, before = last_of_job(w->split, job, last, &next);
    struct local_job now = w->split->jobs[job];
    if (before != TIMETABLE_NONE) {
        const struct local_step *step = &w->split->steps[before];
        struct local_place *place = place_at(w, before);
        struct local_device d = place->device;
        now = place->job;
        local_split_run(w->split, &now, job, &d, w->split->device_of[step->sequence]);
    }
    if (now.ready != now.ended) own_job(w, job, &now);
}

/* Counts the bytes of a device's next step after the changed ones; `before`: its last changed step without the
 * change. */
static void count_next(struct local_window *w, uint32_t device, uint32_t before, uint32_t next)
{
    const struct local_split *c = w->split;
    struct local_device was = c->devices[device];
    uint32_t unit = c->steps[next].unit;
    if (c->in->bridge_bytes_per_tick == 0) return;
    if (before != TIMETABLE_NONE) {
        was.job = c->steps[before].job;
        was.unit = c->steps[before].unit;
    }
    w->spared += local_split_copy(c, &was, unit);
    w->moved += local_split_copy(c, &w->devices[device].now, unit);
}

bool local_window_judge(struct local_window *w, const struct local_change *change, double worst, double *delta)
{
    const struct local_split *c = w->split;
    uint32_t last = w->at + change->last, next, before;
    w->trial++;
    w->touched_job_count = w->touched_device_count = 0;
    w->moved = w->spared = 0;
    if (!replay(w, change)) return false;
    if (c->through) {
        for (uint32_t i = 0; i < w->touched_device_count; i++) {
            uint32_t device = w->touched_devices[i];
            if (!device_differs(w, device)) continue;
            before = last_of_device(c, device, last, &next);
            touch_host(w, before == TIMETABLE_NONE ? c->devices[device].job : c->steps[before].job, last);
            touch_host(w, w->devices[device].now.job, last);
        }
    }
    double sum = 0;
    uint32_t job_next[2 * LOCAL_REACH_MAX + 2], device_next[LOCAL_REACH_MAX + 2];
    for (uint32_t i = 0; i < w->touched_device_count; i++) {
        uint32_t device = w->touched_devices[i];
        if (!w->devices[device].differs) continue;
        before = last_of_device(c, device, last, &device_next[i]);
        sum -= before == TIMETABLE_NONE ? c->devices[device].way : place_at(w, before)->device_way;
        if (device_next[i] != TIMETABLE_NONE) count_next(w, device, before, device_next[i]);
    }
    if (w->moved != w->spared)
        sum += local_split_bridge_way(c, c->bytes + w->moved - w->spared) - local_split_bridge_way(c, c->bytes);
    for (uint32_t i = 0; i < w->touched_job_count; i++) {
        uint32_t job = w->touched_jobs[i];
        if (!w->jobs[job].differs) continue;
        before = last_of_job(c, job, last, &job_next[i]);
        sum -= before == TIMETABLE_NONE ? c->jobs[job].way : place_at(w, before)->job_way;
    }
    for (uint32_t i = 0; i < w->touched_device_count && sum <= worst; i++) { /* ways are at least 0 */
        uint32_t device = w->touched_devices[i];
        if (w->devices[device].differs) sum += device_way(c, &w->devices[device].now, device, device_next[i]);
    }
    for (uint32_t i = 0; i < w->touched_job_count && sum <= worst; i++) {
        uint32_t job = w->touched_jobs[i];
        if (!w->jobs[job].differs) continue;
        const struct local_job *j = &w->jobs[job].now;
        bool direct = false;
        if (j->ready != j->ended) {
            const struct local_device *d = &c->devices[j->device];
            bool own = device_differs(w, j->device);
            before = last_of_device(c, j->device, last, &next);
            uint32_t latest = own ? w->devices[j->device].now.job
                              : before == TIMETABLE_NONE ? d->job : c->steps[before].job;
            direct = latest == job && next == job_next[i];
        }
        sum += job_way(c, j, job_next[i], direct);
    }
    *delta = sum;
    return sum <= worst;
}

/* --- carrying out ---------------------------------------------------------------------------- */

/* Lists steps `at` .. `at` + last with the change; they name devices. */
static void list_changed(const struct local_window *w, const struct local_change *change, struct dispatch_step *out)
{
    const struct local_step *steps = w->split->steps + w->at;
    uint32_t last = change->last;
    for (uint32_t t = 0; t <= last; t++)
        out[t] = (struct dispatch_step){steps[t].job, w->split->device_of[steps[t].sequence]};
    struct dispatch_step first = out[0], other = out[last];
    switch (change->kind) {
    case LOCAL_SWAP:
        out[0].job = other.job;
        out[last].job = first.job;
        break;
    case LOCAL_SOONER:
        memmove(out + 1, out, last * sizeof *out);
        out[0] = (struct dispatch_step){other.job, first.device};
        break;
    case LOCAL_LATER:
        memmove(out, out + 1, last * sizeof *out);
        out[last] = (struct dispatch_step){first.job, other.device};
        break;
    case LOCAL_ELSEWHERE: out[0].device = change->to; break;
    }
}

void local_window_apply(struct local_window *w, const struct local_change *change)
{
    struct local_split *c = w->split;
    struct dispatch_step changed[LOCAL_REACH_MAX];
    uint32_t at = w->at, last = at + change->last;
    uint32_t left[2] = {c->device_of[c->steps[at].sequence], c->device_of[c->steps[last].sequence]};
    list_changed(w, change, changed);
    c->bytes += w->moved - w->spared;
    for (uint32_t t = at; t <= last; t++) {
        const struct local_step *step = &c->steps[t];
        struct local_job *j = &c->jobs[step->job];
        struct local_device *d = &c->devices[c->device_of[step->sequence]];
        j->next = local_split_job_after(c, j->next, last);
        d->next = local_split_sequence_after(c, d->next, last);
    }
    for (uint32_t t = at; t <= last; t++) {
        c->steps[t].job = changed[t - at].job;
        c->steps[t].sequence = c->sequence_of[changed[t - at].device];
    }
    local_split_set_tails(c, at, last);
    for (uint32_t t = at; t <= last; t++) {
        c->jobs[c->steps[t].job].way = local_split_job_way(c, c->steps[t].job);
        local_split_set_ways(c, c->device_of[c->steps[t].sequence]);
    }
    local_split_set_ways(c, left[0]); /* these may have lost a step */
    local_split_set_ways(c, left[1]);
    local_window_spoil(w);
}
