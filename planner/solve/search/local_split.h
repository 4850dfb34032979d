/*
 * A split of a schedule for local_search.c: earlier steps are final, later ones have tails.
 *
 * The *front* is the state at the split: when each job and device is ready. Later steps belong to sequences, which
 * devices can still exchange at the split. A step's tail is the longest path from its start to the schedule's end. The
 * *ways* across the split are the continuations of devices and jobs to their next tasks, of length start plus tail; the
 * longest is the makespan. A shared bridge is one more way, as long as the whole order's bytes take.
 */
#ifndef SPILLWAY_PLANNER_SOLVE_SEARCH_LOCAL_SPLIT_H
#define SPILLWAY_PLANNER_SOLVE_SEARCH_LOCAL_SPLIT_H

#include "planner/solve/instance/setup_table.h"
#include "planner/solve/instance/timetable.h"

/* A way counts e^(excess over the makespan / sharpness), with the exponent limited to LOCAL_EXPONENT_MAX. */
enum { LOCAL_EXPONENT_MAX = 12, LOCAL_EXPONENT_STEPS = 64 };

struct local_job {
    int64_t ready, ended, end; /* as struct dispatch_job */
    uint32_t unit, left;       /* unit of the next task; number of tasks left */
    uint32_t device;
    uint32_t next; /* step of the next task; TIMETABLE_NONE */
    float way;     /* weight of its way at the front */
};

struct local_device {
    int64_t start; /* start of its last task */
    uint32_t job, unit;
    uint32_t next; /* step with which it goes on */
    float way;
};

/* A step after the front, in a sequence of tasks of some device. */
struct local_step {
    int64_t tail;
    uint32_t job, sequence, unit;
    uint32_t next_of_job, next_in_sequence;
};

/* The times of a unit's task that concern its job, in one place. */
struct local_unit {
    int64_t in, out;
    int64_t through; /* instance_through_host() to the next unit */
    uint32_t next;   /* next unit of the chain */
};

struct local_split {
    const struct instance *in;
    struct local_unit *units;
    struct setup_table setups;
    struct local_step *steps;
    struct local_job *jobs;
    struct local_device *devices;
    uint32_t *device_of, *sequence_of; /* sequence to device and back */
    bool through;     /* some parameters go through the host */
    int64_t makespan; /* reference for the weights of ways */
    double scale;     /* entries of the table per tick */
    uint64_t bytes;   /* bytes of the whole order over the bridge; 0 without a bridge */
    double bridge_scale; /* as `scale`, for the bridge's way: all copies make up this way, few make up any other */
    float exponential[2 * LOCAL_EXPONENT_MAX * LOCAL_EXPONENT_STEPS];
};

/* Allocates a split. Release it with local_split_release(), also after an error. */
MUST_CHECK enum status local_split_init(const struct instance *in, struct local_split *split, struct error *err);
void local_split_release(struct local_split *split);

/* Moves the split before all steps. The steps still need tails. */
void local_split_clear(struct local_split *split);

/* Sets unit, successors and tail of steps `last` down to `first`. The next steps of jobs and devices are the first ones
 * after `last` before, and from `first` on afterwards. */
void local_split_set_tails(struct local_split *split, uint32_t first, uint32_t last);

/* Sets `bytes` for the current steps. The split is before all steps. */
void local_split_count_bytes(struct local_split *split);

/* Returns the tick at which a task of `unit` could start on a device in state `d`, as far as the device is
 * concerned. */
static inline int64_t local_split_ready_of(const struct local_split *c, const struct local_device *d, uint32_t device,
                                           uint32_t unit)
{
    if (d->job == TIMETABLE_NONE) return c->units[unit].in;
    return d->start + setup_table_at(&c->setups, d->unit, unit, c->in->device_class[device]);
}

static inline int64_t local_split_device_ready(const struct local_split *c, uint32_t device, uint32_t unit)
{
    return local_split_ready_of(c, &c->devices[device], device, unit);
}

/* Runs the next task of job state `j` on device state `d`, as dispatch_put(). The unit must fit. Returns the start. */
static inline int64_t local_split_run(const struct local_split *c, struct local_job *j, uint32_t job,
                                      struct local_device *d, uint32_t device)
{
    uint32_t unit = j->unit;
    const struct local_unit *u = &c->units[unit];
    int64_t start = local_split_ready_of(c, d, device, unit);
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

static inline int64_t local_split_put(struct local_split *c, uint32_t job, uint32_t device)
{
    return local_split_run(c, &c->jobs[job], job, &c->devices[device], device);
}

/* Returns the weight of a way; `by`: its excess over the makespan, in entries of the table. */
static inline float local_split_exponential(const struct local_split *c, double by)
{
    enum { LAST = 2 * LOCAL_EXPONENT_MAX * LOCAL_EXPONENT_STEPS - 1 };
    double at = by + LOCAL_EXPONENT_MAX * LOCAL_EXPONENT_STEPS;
    if (at <= 0) return 0;
    return at >= LAST ? c->exponential[LAST] * (float)(at - LAST + 1) : c->exponential[(int)at];
}

static inline float local_split_weigh(const struct local_split *c, int64_t length)
{
    return local_split_exponential(c, (double)(length - c->makespan) * c->scale);
}

/* Returns the weight of the bridge's way for an order that moves `bytes`. */
static inline float local_split_bridge_way(const struct local_split *c, uint64_t bytes)
{
    if (c->in->bridge_bytes_per_tick == 0) return 0;
    double ticks = (double)bytes / (double)c->in->bridge_bytes_per_tick;
    return local_split_exponential(c, (ticks - (double)c->makespan) * c->bridge_scale);
}

/* Returns the bytes that a task of `unit` copies in on a device in state `d`. */
static inline uint64_t local_split_copy(const struct local_split *c, const struct local_device *d, uint32_t unit)
{
    const struct instance_unit *units = c->in->units;
    bool there = d->job != TIMETABLE_NONE && instance_resident(&units[d->unit], &units[unit]);
    return there ? 0 : units[unit].in_bytes;
}

/* Returns the weight of the way of a device that goes on with step `next`. */
static inline float local_split_device_way_to(const struct local_split *c, uint32_t device, uint32_t next)
{
    if (next == TIMETABLE_NONE) return 0;
    return local_split_weigh(c, local_split_device_ready(c, device, c->steps[next].unit) + c->steps[next].tail);
}

static inline float local_split_device_way(const struct local_split *c, uint32_t device)
{
    return local_split_device_way_to(c, device, c->devices[device].next);
}

static inline float local_split_job_way(const struct local_split *c, uint32_t job)
{
    const struct local_job *j = &c->jobs[job];
    int64_t length = j->end;
    if (j->next != TIMETABLE_NONE) {
        int64_t ready = j->ready;
        if (ready != j->ended && c->devices[j->device].job == job && c->devices[j->device].next == j->next)
            ready = j->ended;
        if (ready + c->steps[j->next].tail > length) length = ready + c->steps[j->next].tail;
    }
    return local_split_weigh(c, length);
}

/* Updates the way of the device and of the job of its last task. */
static inline void local_split_set_ways(struct local_split *c, uint32_t device)
{
    struct local_device *d = &c->devices[device];
    d->way = local_split_device_way(c, device);
    if (d->job != TIMETABLE_NONE) c->jobs[d->job].way = local_split_job_way(c, d->job);
}

/* Returns the first step after `last` in a job's chain. */
static inline uint32_t local_split_job_after(const struct local_split *c, uint32_t step, uint32_t last)
{
    while (step <= last) step = c->steps[step].next_of_job; /* TIMETABLE_NONE is greater than all steps */
    return step;
}

static inline uint32_t local_split_sequence_after(const struct local_split *c, uint32_t step, uint32_t last)
{
    while (step <= last) step = c->steps[step].next_in_sequence;
    return step;
}

#endif
