/*
 * Merges *subplans*, plans of subproblems (some jobs on some devices, planner/strategy/subproblem.h), into one plan.
 *
 * Each was made as if there were no other devices: parallel jobs by planner/parallel/parallel_job.h, spilled ones by a
 * policy. Its buffers, units and slots get the numbers of its jobs and devices in the whole, and its devices become a
 * reservation (planner/plan.h). Subplans that share devices follow each other; others run at the same time.
 *
 * Plan order. All subplans share the host's streams (batches and its processor), which run in plan order, so tasks
 * that use them are in the order of expected starts. Others alternate a few turns at a time, so that a reader never has
 * to look far ahead.
 */
#ifndef SPILLWAY_PLANNER_STRATEGY_PLAN_MERGE_H
#define SPILLWAY_PLANNER_STRATEGY_PLAN_MERGE_H

#include "planner/plan.h"

struct merge_subplan {
    const struct plan *plan;   /* borrowed; none of its own subplans has reservations or orderings ("after") */
    const uint32_t *jobs;      /* (plan->jobs.count) the jobs' numbers in the whole, ascending */
    const uint32_t *devices;   /* (plan->hardware.device_count) likewise */
    uint32_t follows;          /* an earlier subplan that it follows, or PLAN_NONE */
    double restart_s;          /* seconds of these for moving states there (planner/plan.h) */
    double begin_s, end_s;     /* expected; not before the end of earlier subplans with some of its devices */
};

struct merge_options {
    const char *policy;
    uint64_t seed;
    struct plan_order order; /* certificate of the subplans' order */
};

/*
 * Merges subplans in the order in which they have devices; each job of `jobs` is in one. Takes ownership of hardware
 * and jobs, also after an error. The lower bound is for these subplans: the device with the most computation, or the
 * longest subplan. Errors: STATUS_INFEASIBLE when host memory is too small for all; STATUS_LIMIT.
 */
MUST_CHECK enum status plan_merge(struct hardware *hardware, struct job_set *jobs,
                                    const struct merge_subplan *subplans, uint32_t subplan_count,
                                    const struct merge_options *options, struct plan *out, struct error *err);

#endif
