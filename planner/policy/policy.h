/*
 * Scheduling policies: which ready job's next unit goes to which free device, or whether they wait.
 *
 * This header suffices for a policy of your own. It is installed as <spillway/policy.h> and includes no other header of
 * Spillway. The built-in policies use the same interface. A policy is a shared object that defines
 *
 *     const struct policy spillway_policy = {.version = SPILLWAY_POLICY_VERSION, .name = "mine", ...};
 *
 * Many policies are a rank: the ready job of the highest rank runs. It gives `rank` in place of `choose`, and
 * schedulers need not look at all jobs for each decision.
 *
 * A job is a chain of units (a shard's forward, loss or backward pass), one at a time, on any device whose memory holds
 * it. The scheduler asks whenever a device is free and a job ready; the policy looks at the view and chooses. It is
 * asked once per unit and per time that it prefers to wait.
 *
 * Times are seconds when jobs files are planned and ticks when instances are scheduled. Values about the future (ends
 * of running units, remaining times, costs) are estimates; the past is exact. Equal views and seeds must give equal
 * choices: no clock, addresses or random numbers but from the seed, and no data outside the state.
 *
 * A change of this file that breaks old shared objects raises the version; they are then refused.
 */
#ifndef SPILLWAY_PLANNER_POLICY_POLICY_H
#define SPILLWAY_PLANNER_POLICY_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPILLWAY_POLICY_VERSION 2
#define POLICY_NONE UINT32_MAX

/* The times of a unit on a kind of device. */
struct policy_cost {
    double compute;
    double in;  /* copy of its shard's parameters to the device; skipped when they are there already */
    double out; /* copy back of the data that it writes */
};

struct policy_job {
    double ready;          /* when its last unit ended, or is estimated to end; 0: no unit yet */
    double remaining;      /* computation of its units that have not started; 0: none left */
    double deadline;       /* infinite: none */
    uint32_t weight;       /* weight of its end, for objectives with weights; else 1 */
    uint32_t shard;        /* shard of its next unit; numbered within the job */
    uint32_t last_device;  /* device of its last unit; POLICY_NONE: none so far */
    uint32_t next_device;  /* the only allowed device; POLICY_NONE: any */
    uint64_t memory;       /* memory of its next unit on a device */
    const struct policy_cost *next; /* (kind_count): costs of its next unit by kind of device */
    bool admitted;         /* resident: it has a seat; else true */
    bool taken;            /* a unit of it runs, or a device has chosen it ahead */
};

struct policy_device {
    double free;         /* when its computation ends, or is estimated to end */
    uint64_t memory;     /* for units: two fit at a time if it holds both; live dispatch: the memory that is free now */
    uint32_t slots;      /* units that it can take now; 1 except in live dispatch */
    uint32_t kind;       /* below kind_count; devices of a kind are equal */
    uint32_t job, shard; /* job and shard of its last unit, whose parameters are on the device; POLICY_NONE: none */
    bool asks;           /* it can take a unit now */
};

struct policy_view {
    double now;
    const struct policy_job *jobs;
    const struct policy_device *devices;
    uint32_t job_count, device_count, kind_count;
    uint32_t device;   /* the lowest device that asks */
    bool ahead;        /* `device` has just started a unit and asks for its next one (commit_ahead) */
    uint64_t seed;
    uint64_t decision; /* number of earlier decisions */
};

struct policy_choice {
    uint32_t job, device;
};

struct policy {
    uint32_t version;    /* SPILLWAY_POLICY_VERSION; the first field in every version */
    const char *name;    /* lower case letters, digits and dashes */
    const char *summary; /* one line */

    /* Creates a schedule's state from its first view; NULL: no memory. Without these functions the state is NULL. */
    void *(*create)(const struct policy_view *first);
    void (*destroy)(void *state);

    /* Fills *out with a job and a device for which policy_may_run() holds. Returns false to wait; it is asked again
     * when a unit has ended, or with view->ahead, when the device is free. */
    bool (*choose)(void *state, const struct policy_view *view, struct policy_choice *out);

    /* Alternative to choose(): the ready job with the highest rank that any device may run goes to the device of
     * policy_place(), or of policy_emptiest() with `emptiest`; ties to the lowest index. A rank is asked for when its
     * job becomes ready and holds until it runs. It may depend on the job's entry of the view and the seed, and must
     * not be NaN. */
    double (*rank)(void *state, const struct policy_view *view, uint32_t job);
    bool emptiest;

    bool resident;       /* in plans: state stays on its devices */
    uint32_t seats_max;  /* resident: jobs at a time */
    bool one_device;     /* uses device 0 only */
    bool commit_ahead;   /* a device chooses its next unit when the current one starts */
};

/* The one symbol of a shared object. */
extern const struct policy spillway_policy;

/* Returns true when the job has units left and the next one may start now. */
static inline bool policy_is_ready(const struct policy_view *view, uint32_t job)
{
    const struct policy_job *j = &view->jobs[job];
    return j->admitted && !j->taken && j->ready <= view->now && j->remaining > 0;
}

/* Returns true when the job is ready and allowed on this device, which asks and holds its unit. */
static inline bool policy_may_run(const struct policy_view *view, uint32_t job, uint32_t device)
{
    const struct policy_job *j = &view->jobs[job];
    const struct policy_device *d = &view->devices[device];
    return policy_is_ready(view, job) && d->asks && j->memory <= d->memory &&
           (j->next_device == POLICY_NONE || j->next_device == device);
}

/* Returns a job's preferred device: its last one, which saves moving boundaries, if that asks too; else the lowest that
 * may run it, or POLICY_NONE. */
static inline uint32_t policy_place(const struct policy_view *view, uint32_t job)
{
    uint32_t last = view->jobs[job].last_device;
    if (!policy_is_ready(view, job)) return POLICY_NONE;
    if (last < view->device_count && policy_may_run(view, job, last)) return last;
    for (uint32_t d = view->device; d < view->device_count; d++)
        if (policy_may_run(view, job, d)) return d;
    return POLICY_NONE;
}

/* Returns the device that can take the most units, the lowest of equal ones. */
static inline uint32_t policy_emptiest(const struct policy_view *view, uint32_t job)
{
    uint32_t best = POLICY_NONE;
    for (uint32_t d = view->device; d < view->device_count; d++)
        if (policy_may_run(view, job, d) &&
            (best == POLICY_NONE || view->devices[d].slots > view->devices[best].slots))
            best = d;
    return best;
}

#endif
