/*
 * Plans of parts of the jobs on parts of the machine, made into one plan.
 *
 * Each part was planned for itself, as though its devices were all that there are: parallel jobs by
 * planner/parallel/parallel_job.h, streamed ones by a policy. Here its buffers, units and slots are taken over under the
 * numbers that its jobs and devices have in the whole, and its devices become a reservation (planner/plan.h). Parts that share
 * devices follow each other; others run side by side.
 *
 * Plan order. The host's streams, batches and its processor, are everybody's and run in plan order, so instances
 * of parts that use them stand in the order in which they are expected to begin. Of others that is not needed; a
 * few turns are taken, so that nobody who goes through the plan has to look far ahead.
 */
#ifndef SPILLWAY_PLANNER_COMPOSE_H
#define SPILLWAY_PLANNER_COMPOSE_H

#include "planner/plan.h"

struct compose_part {
    const struct plan *plan;   /* borrowed; none of its own parts has reservations or orderings ("after") */
    const uint32_t *jobs;      /* (plan->jobs.count) theirs in the whole, ascending */
    const uint32_t *devices;   /* (plan->hardware.device_count) likewise */
    uint32_t follows;          /* an earlier part that it begins behind, or PLAN_NONE */
    double restart_s;          /* of this, moving states there (planner/plan.h) */
    double begin_s, end_s;     /* expected; not in front of the end of earlier parts with some of its devices */
};

struct compose_options {
    const char *policy;
    uint64_t seed;
    struct plan_order order; /* what is proven of the parts' order */
};

/*
 * Parts in the order in which they have devices; each job of `jobs` in one of them. Takes hardware and jobs over
 * (moved into the plan, zeroed here), also on failure. What parts chose for their jobs (runs, slices) is the
 * plan's. The lower bound is of these parts: the device with most to compute, or the part that lasts longest.
 * Errors: STATUS_INFEASIBLE when host memory is too small for all; STATUS_LIMIT, STATUS_NO_MEMORY.
 */
MUST_CHECK enum status plan_compose(struct hardware *hardware, struct job_set *jobs,
                                    const struct compose_part *parts, uint32_t part_count,
                                    const struct compose_options *options, struct plan *out, struct error *err);

#endif
