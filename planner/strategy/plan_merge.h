/*
 * Merges plans of subproblems (some jobs on some devices, planner/strategy/subproblem.h) into one plan, their *subplans*.
 *
 * Each subplan was made by itself, as though its devices were all that there are: parallel jobs by
 * planner/parallel/parallel_job.h, spilled ones by a policy. Here its buffers, units and slots are taken over under the
 * numbers that its jobs and devices have in the whole, and its devices become a reservation (planner/plan.h). Subplans that
 * share devices follow each other; others run side by side.
 *
 * Plan order. The host's streams, batches and its processor, are everybody's and run in plan order, so instances
 * of subplans that use them stand in the order in which they are expected to begin. Of others that is not needed; a
 * few turns are taken, so that nobody who goes through the plan has to look far ahead.
 */
#ifndef SPILLWAY_PLANNER_PLAN_MERGE_H
#define SPILLWAY_PLANNER_PLAN_MERGE_H

#include "planner/plan.h"

struct merge_subplan {
    const struct plan *plan;   /* borrowed; none of its own subplans has reservations or orderings ("after") */
    const uint32_t *jobs;      /* (plan->jobs.count) theirs in the whole, ascending */
    const uint32_t *devices;   /* (plan->hardware.device_count) likewise */
    uint32_t follows;          /* an earlier subplan that it begins behind, or PLAN_NONE */
    double restart_s;          /* of this, moving states there (planner/plan.h) */
    double begin_s, end_s;     /* expected; not in front of the end of earlier subplans with some of its devices */
};

struct merge_options {
    const char *policy;
    uint64_t seed;
    struct plan_order order; /* what is proven of the subplans' order */
};

/*
 * Subplans in the order in which they have devices; each job of `jobs` in one of them. Takes hardware and jobs over
 * (moved into the plan, zeroed here), also on failure. What subplans chose for their jobs (runs, slices) is the
 * plan's. The lower bound is of these subplans: the device with most to compute, or the subplan that lasts longest.
 * Errors: STATUS_INFEASIBLE when host memory is too small for all; STATUS_LIMIT, STATUS_NO_MEMORY.
 */
MUST_CHECK enum status plan_merge(struct hardware *hardware, struct job_set *jobs,
                                    const struct merge_subplan *subplans, uint32_t subplan_count,
                                    const struct merge_options *options, struct plan *out, struct error *err);

#endif
