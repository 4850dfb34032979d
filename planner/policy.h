/*
 * Scheduling policies: which job's next unit should a free device take?
 *
 * A job is a chain of units; one of them runs at a time. The scheduler (schedule.c) keeps the clock
 * and asks whenever a device's compute stream becomes free; a policy sees the jobs that are ready
 * and chooses. It keeps no state of its own: what it may need to remember is in the view.
 * One policy a file; the table is in policy.c.
 */
#ifndef SPILLWAY_PLANNER_POLICY_H
#define SPILLWAY_PLANNER_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "planner/plan.h"

struct policy_job {
    double ready_s;       /* when its last unit ended */
    double remaining_s;   /* computation of all its units not yet started */
    uint32_t last_device; /* PLAN_NONE before its first unit */
    uint32_t next_device; /* residence fixes it; PLAN_NONE: any */
    bool admitted;        /* resident: it has a seat */
    bool reserved;        /* chosen ahead by a device */
};

struct policy_view {
    double now_s;
    const struct policy_job *jobs;
    uint32_t job_count;
    uint32_t device_count;
    uint64_t seed;
    uint64_t decision; /* how many were made before this one */
};

/* Ready, with units left, and allowed on this device. */
bool policy_may_run(const struct policy_view *view, uint32_t job, uint32_t device);

/* The chosen job among those that may run, or PLAN_NONE when there is none. */
typedef uint32_t (*policy_choose)(const struct policy_view *view, uint32_t device);

struct policy {
    const char *name;
    const char *summary;
    policy_choose choose;
    bool resident;       /* state stays on its device */
    uint32_t seats_max;  /* resident: jobs at a time */
    bool one_device;     /* uses device 0 only */
    bool commit_ahead;   /* a device chooses its next unit when the current one starts */
    bool searched;       /* orders are searched for (order_search.h), nothing is asked */
};

/* NULL when there is none of that name. */
const struct policy *policy_find(const char *name);
const struct policy *policy_at(uint32_t index); /* NULL past the end */

extern const struct policy policy_sharded_lrtf, policy_sharded_lrtf_cached, policy_fifo,
    policy_random, policy_srtf, policy_spill_sequential, policy_model_parallel,
    policy_shard_parallel, policy_optimal;

/* Ready job with the most remaining time, ties to the lowest index: what several policies share. */
uint32_t policy_longest(const struct policy_view *view, uint32_t device);

#endif
