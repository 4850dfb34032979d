/*
 * Jobs that a policy orders: states are spilled to host memory, or stay on the devices where the policy keeps them
 * there.
 *
 * The steps: cut each job into shards that fit (partition.h), let a policy decide which shard unit goes to which device
 * in which order (policy.h, driven by schedule.c with estimated durations), write the units with their copies and slots
 * (emit.c), prove a lower bound (bound.h), check.
 */
#ifndef SPILLWAY_PLANNER_STRATEGY_SPILLED_H
#define SPILLWAY_PLANNER_STRATEGY_SPILLED_H

#include "planner/planner_options.h"

/*
 * Plans jobs that name neither devices nor parallelism. All are in host memory at the same time if they fit; else they
 * take turns. Takes ownership of hardware and jobs, also after an error. Errors: as planner_plan().
 */
MUST_CHECK enum status spilled_plan(struct hardware *hardware, struct job_set *jobs, const struct planner_options *options,
                                    struct plan *out, struct error *err);

#endif
