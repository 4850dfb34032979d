/*
 * Scheduling policies: which ready job's next unit goes to which free device, or shall they wait?
 *
 * This header is all that a policy of one's own needs; it is installed as <spillway/policy.h> and
 * includes nothing else of ours. The built-in policies use the same interface. A policy is a shared
 * object that defines
 *
 *     const struct policy spillway_policy = {.version = SPILLWAY_POLICY_VERSION, .name = "mine", ...};
 *
 * Many policies are a rank: the ready job of the highest one runs. Such a policy gives `rank` in place
 * of `choose`, and schedulers that keep jobs sorted need not look at all of them for each decision.
 *
 * A job is a chain of units (a shard's forward, loss or backward pass); one of them runs at a time,
 * on any device whose memory holds it. The scheduler keeps the clock and asks whenever some device
 * is free and some job is ready; a policy looks at the view and chooses. It is asked until everything
 * has its place, once for each unit and once more for each time it prefers to wait.
 *
 * Times are seconds where jobs files are planned and ticks where instances are scheduled; a policy
 * need not care. What lies ahead (ends of what runs, remaining times, costs) is estimated; what has
 * happened has happened. Equal views and equal seeds must give equal choices: no clock, no addresses,
 * no random numbers but from the seed, nothing kept outside of the state.
 *
 * A change of this file that old shared objects would not survive raises the version; they are then
 * refused instead of misread.
 */
#ifndef SPILLWAY_POLICY_H
#define SPILLWAY_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPILLWAY_POLICY_VERSION 2
#define POLICY_NONE UINT32_MAX

/* What a unit takes on a device of some kind. */
struct policy_cost {
    double compute;
    double in;  /* copying its shard's parameters there; nothing where they are there already */
    double out; /* copying back what it writes */
};

struct policy_job {
    double ready;          /* when its last unit ended or is estimated to end; 0: it has not begun */
    double remaining;      /* computation of its units that have not started; 0: none is left */
    double deadline;       /* infinite: none */
    uint32_t weight;       /* of its end, where ends are weighted; else 1 */
    uint32_t shard;        /* that its next unit computes on; numbered within the job */
    uint32_t last_device;  /* of its last unit; POLICY_NONE: none so far */
    uint32_t next_device;  /* the only one allowed; POLICY_NONE: any */
    uint64_t memory;       /* that its next unit takes on a device */
    const struct policy_cost *next; /* (kind_count): its next unit by kind of device */
    bool admitted;         /* resident: it has a seat; else true */
    bool taken;            /* a unit of it runs, or a device has chosen it ahead */
};

struct policy_device {
    double free;         /* when it has computed, or is estimated to have */
    uint64_t memory;     /* for units: two are there at a time if it holds both; dispatched live: of
                            that what is free now */
    uint32_t slots;      /* how many units it can take now; 1 but where it is dispatched live */
    uint32_t kind;       /* below kind_count; devices of a kind are alike */
    uint32_t job, shard; /* of its last unit: these parameters lie there; POLICY_NONE: none do */
    bool asks;           /* it can take a unit now */
};

struct policy_view {
    double now;
    const struct policy_job *jobs;
    const struct policy_device *devices;
    uint32_t job_count, device_count, kind_count;
    uint32_t device;   /* the lowest one that asks */
    bool ahead;        /* `device` has just begun a unit: what shall it run next? (commit_ahead) */
    uint64_t seed;
    uint64_t decision; /* how many were made before this one */
};

struct policy_choice {
    uint32_t job, device;
};

struct policy {
    uint32_t version;    /* SPILLWAY_POLICY_VERSION; stays in front in every version */
    const char *name;    /* lower case letters, digits and dashes */
    const char *summary; /* one line */

    /* The state of one schedule, from its first view; NULL when there is no memory. Both functions
     * may be left out: then the state is NULL. */
    void *(*create)(const struct policy_view *first);
    void (*destroy)(void *state);

    /* Fill *out with a job and a device for which policy_may_run() holds; or false: nothing now, ask
     * again when a unit has ended. With view->ahead, false is: ask when the device is free. */
    bool (*choose)(void *state, const struct policy_view *view, struct policy_choice *out);

    /* Instead: the ready job with the highest rank that any device may run goes to the place that
     * policy_place() says, or policy_emptiest() with `emptiest`; ties to the lowest index. A rank is
     * asked for when a job becomes ready and holds until it runs: it may depend on what the view says
     * of this job, and on the seed, and is no NaN. */
    double (*rank)(void *state, const struct policy_view *view, uint32_t job);
    bool emptiest;

    bool resident;       /* in plans: state stays on its devices */
    uint32_t seats_max;  /* resident: jobs at a time */
    bool one_device;     /* uses device 0 only */
    bool commit_ahead;   /* a device chooses its next unit when the current one starts */
};

/* The one symbol of a shared object. */
extern const struct policy spillway_policy;

/* Has units left, and the next one may start now. */
static inline bool policy_is_ready(const struct policy_view *view, uint32_t job)
{
    const struct policy_job *j = &view->jobs[job];
    return j->admitted && !j->taken && j->ready <= view->now && j->remaining > 0;
}

/* Is ready, and allowed on this device, which asks and holds it. */
static inline bool policy_may_run(const struct policy_view *view, uint32_t job, uint32_t device)
{
    const struct policy_job *j = &view->jobs[job];
    const struct policy_device *d = &view->devices[device];
    return policy_is_ready(view, job) && d->asks && j->memory <= d->memory &&
           (j->next_device == POLICY_NONE || j->next_device == device);
}

/* Where a job had better go: to its last device, which spares moving what it hands on, if that one
 * asks as well; else to the lowest that may run it. POLICY_NONE: no device may. */
static inline uint32_t policy_place(const struct policy_view *view, uint32_t job)
{
    uint32_t last = view->jobs[job].last_device;
    if (!policy_is_ready(view, job)) return POLICY_NONE;
    if (last < view->device_count && policy_may_run(view, job, last)) return last;
    for (uint32_t d = view->device; d < view->device_count; d++)
        if (policy_may_run(view, job, d)) return d;
    return POLICY_NONE;
}

/* Or: to the device that can take most units, the lowest of those. */
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
