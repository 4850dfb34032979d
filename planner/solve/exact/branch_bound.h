/*
 * Optimal schedules of small instances: depth-first branch and bound with a slack budget.
 *
 * Tasks start in the order of time. A partial schedule is dropped when a job's remaining chain no longer fits; when its
 * slack and the slack that its devices must still spend exceed the slack of a better schedule than the best known
 * (instance_bound.h); or when an earlier one had done the same tasks, with the same last task on each device, and was
 * nowhere later (dominance; whole keys are compared, not hashes). When none is left, the best known schedule is
 * optimal.
 */
#ifndef SPILLWAY_PLANNER_SOLVE_EXACT_BRANCH_BOUND_H
#define SPILLWAY_PLANNER_SOLVE_EXACT_BRANCH_BOUND_H

#include "planner/solve/bounds/instance_bound.h"
#include "planner/solve/instance/timetable.h"

enum {
    BRANCH_BOUND_JOBS_MAX = 32, /* larger instances are refused: STATUS_LIMIT */
    BRANCH_BOUND_DEVICES_MAX = 16,
    BRANCH_BOUND_TASKS_MAX = 512
};

struct branch_bound_options {
    uint32_t fixed;        /* keep steps[0 .. fixed); "optimal" then means among schedules with this beginning */
    uint64_t nodes_max;    /* 0: no limit */
    double until_s;        /* on the clock of base/process/clock.h */
    size_t memory_bytes;   /* for partial schedules to compare with; 0: 256 MiB. When it is full the search goes on,
                              slower */
};

struct branch_bound_result {
    bool proven; /* steps[] is optimal */
    uint64_t nodes;
};

/*
 * Improves the best known schedule, *value and steps[] (in->task_count), in place. Deterministic unless `until_s` ends
 * it. Errors: STATUS_LIMIT for sizes above the limits or more than 2^31 ticks.
 */
MUST_CHECK enum status branch_bound_run(const struct instance *in,
                                        const struct instance_bounds *bounds,
                                        const struct branch_bound_options *options,
                                        struct dispatch_step *steps, int64_t *value,
                                        struct branch_bound_result *result, struct error *err);

/* Returns true when the instance is within the limits. */
static inline bool branch_bound_takes(const struct instance *in)
{
    return !in->streams && in->job_count <= BRANCH_BOUND_JOBS_MAX && in->device_count <= BRANCH_BOUND_DEVICES_MAX &&
           in->task_count <= BRANCH_BOUND_TASKS_MAX && in->horizon <= INT32_MAX / 2;
}

#endif
