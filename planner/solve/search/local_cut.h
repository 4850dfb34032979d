/*
 * A cut through a schedule: what is in front of it is final, what is behind it has tails; for
 * local_search.c.
 *
 * In front of the cut everything is known by when each job and device is ready (the *front*). The steps
 * behind it belong to sequences; which device goes on with which sequence can still be changed at the cut.
 * A step's tail is the longest path from its start to the end of the schedule. The *ways* through the cut
 * are those on which a device goes on to its next task and those on which a job does, start plus tail; the
 * longest of them is the makespan. A shared bridge is one way more, as long as the bytes of the whole order take.
 */
#ifndef SPILLWAY_PLANNER_LOCAL_CUT_H
#define SPILLWAY_PLANNER_LOCAL_CUT_H

#include "planner/solve/instance/setup_table.h"
#include "planner/solve/instance/timetable.h"

/* Ways count e to the power of what they are longer than the makespan by the sharpness, up to so much. */
enum { LOCAL_EXPONENT_MAX = 12, LOCAL_EXPONENT_STEPS = 64 };

struct local_job {
    int64_t ready, ended, end; /* as struct dispatch_job */
    uint32_t unit, left;       /* of the next task; how many */
    uint32_t device;
    uint32_t next; /* step of the next task; TIMETABLE_NONE */
    float way;     /* what its way counts at the front */
};

struct local_device {
    int64_t start; /* of its last task */
    uint32_t job, unit;
    uint32_t next; /* step with which it goes on */
    float way;
};

/* Behind the front: in a sequence of tasks that some device goes on with. */
struct local_step {
    int64_t tail;
    uint32_t job, sequence, unit;
    uint32_t next_of_job, next_in_sequence;
};

/* What a task of a unit means to its job, in one place. */
struct local_unit {
    int64_t in, out;
    int64_t through; /* instance_through_host() to the next unit */
    uint32_t next;   /* of the chain */
};

struct local_cut {
    const struct instance *in;
    struct local_unit *units;
    struct setup_table setups;
    struct local_step *steps;
    struct local_job *jobs;
    struct local_device *devices;
    uint32_t *device_of, *sequence_of; /* sequence to device and back */
    bool through;     /* some parameters go through the host */
    int64_t makespan; /* against which ways are weighed */
    double scale;     /* entries of the table per tick */
    uint64_t bytes;   /* of the whole order, over the bridge; 0 where there is none */
    double bridge_scale; /* as `scale`, for the bridge's way: every copy is a part of it, few are of another one */
    float exponential[2 * LOCAL_EXPONENT_MAX * LOCAL_EXPONENT_STEPS];
};

/* Errors: STATUS_NO_MEMORY. Release it with local_cut_release(), also on failure. */
MUST_CHECK enum status local_cut_init(const struct instance *in, struct local_cut *cut, struct error *err);
void local_cut_release(struct local_cut *cut);

/* Nothing is in front; steps are to be given tails. */
void local_cut_clear(struct local_cut *cut);

/* Unit, successors and tail of steps `last` down to `first`, where the next steps of jobs and devices are
 * those behind `last`; leaves them at `first`. */
void local_cut_set_tails(struct local_cut *cut, uint32_t first, uint32_t last);

/* Set `bytes` for the steps as they stand; no step is before the cut. */
void local_cut_count_bytes(struct local_cut *cut);

/* When a task of this unit could start there, for all that the device in this state has to say. */
static inline int64_t local_cut_ready_of(const struct local_cut *c, const struct local_device *d, uint32_t device,
                                         uint32_t unit)
{
    if (d->job == TIMETABLE_NONE) return c->units[unit].in;
    return d->start + setup_table_at(&c->setups, d->unit, unit, c->in->device_class[device]);
}

static inline int64_t local_cut_device_ready(const struct local_cut *c, uint32_t device, uint32_t unit)
{
    return local_cut_ready_of(c, &c->devices[device], device, unit);
}

/* As dispatch_put(), of a job and a device in these states. The unit must fit. */
static inline int64_t local_cut_run(const struct local_cut *c, struct local_job *j, uint32_t job,
                                    struct local_device *d, uint32_t device)
{
    uint32_t unit = j->unit;
    const struct local_unit *u = &c->units[unit];
    int64_t start = local_cut_ready_of(c, d, device, unit);
    int64_t ready = d->job == job && j->device == device ? j->ended : j->ready;
    if (ready > start) start = ready;
    int64_t ended = start + instance_compute(c->in, unit, c->in->device_class[device]);
    j->unit = u->next;
    j->device = device;
    j->ended = ended;
    j->ready = --j->left > 0 ? ended + u->through : ended;
    if (ended + u->out > j->end) j->end = ended + u->out;
    d->start = start;
    d->job = job;
    d->unit = unit;
    return start;
}

static inline int64_t local_cut_put(struct local_cut *c, uint32_t job, uint32_t device)
{
    return local_cut_run(c, &c->jobs[job], job, &c->devices[device], device);
}

/* `by`: what a way is longer than the makespan, in entries of the table. */
static inline float local_cut_exponential(const struct local_cut *c, double by)
{
    enum { LAST = 2 * LOCAL_EXPONENT_MAX * LOCAL_EXPONENT_STEPS - 1 };
    double at = by + LOCAL_EXPONENT_MAX * LOCAL_EXPONENT_STEPS;
    if (at <= 0) return 0;
    return at >= LAST ? c->exponential[LAST] * (float)(at - LAST + 1) : c->exponential[(int)at];
}

static inline float local_cut_weigh(const struct local_cut *c, int64_t length)
{
    return local_cut_exponential(c, (double)(length - c->makespan) * c->scale);
}

/* The length of the bridge's way when the order moves this number of bytes. */
static inline float local_cut_bridge_way(const struct local_cut *c, uint64_t bytes)
{
    if (c->in->bridge_bytes_per_tick == 0) return 0;
    double ticks = (double)bytes / (double)c->in->bridge_bytes_per_tick;
    return local_cut_exponential(c, (ticks - (double)c->makespan) * c->bridge_scale);
}

/* Bytes that a task of `unit` copies in on a device in this state. */
static inline uint64_t local_cut_copy(const struct local_cut *c, const struct local_device *d, uint32_t unit)
{
    const struct instance_unit *units = c->in->units;
    bool there = d->job != TIMETABLE_NONE && instance_resident(&units[d->unit], &units[unit]);
    return there ? 0 : units[unit].in_bytes;
}

/* What the way of a device counts that goes on with step `next`. */
static inline float local_cut_device_way_to(const struct local_cut *c, uint32_t device, uint32_t next)
{
    if (next == TIMETABLE_NONE) return 0;
    return local_cut_weigh(c, local_cut_device_ready(c, device, c->steps[next].unit) + c->steps[next].tail);
}

static inline float local_cut_device_way(const struct local_cut *c, uint32_t device)
{
    return local_cut_device_way_to(c, device, c->devices[device].next);
}

static inline float local_cut_job_way(const struct local_cut *c, uint32_t job)
{
    const struct local_job *j = &c->jobs[job];
    int64_t length = j->end;
    if (j->next != TIMETABLE_NONE) {
        int64_t ready = j->ready;
        if (ready != j->ended && c->devices[j->device].job == job && c->devices[j->device].next == j->next)
            ready = j->ended;
        if (ready + c->steps[j->next].tail > length) length = ready + c->steps[j->next].tail;
    }
    return local_cut_weigh(c, length);
}

/* Of the device, and of the job whose task was its last. */
static inline void local_cut_set_ways(struct local_cut *c, uint32_t device)
{
    struct local_device *d = &c->devices[device];
    d->way = local_cut_device_way(c, device);
    if (d->job != TIMETABLE_NONE) c->jobs[d->job].way = local_cut_job_way(c, d->job);
}

/* The first step behind `last` in a chain of them. */
static inline uint32_t local_cut_job_behind(const struct local_cut *c, uint32_t step, uint32_t last)
{
    while (step <= last) step = c->steps[step].next_of_job; /* TIMETABLE_NONE is behind all */
    return step;
}

static inline uint32_t local_cut_sequence_behind(const struct local_cut *c, uint32_t step, uint32_t last)
{
    while (step <= last) step = c->steps[step].next_in_sequence;
    return step;
}

#endif
