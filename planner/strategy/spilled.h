/*
 * Jobs that a policy orders: states are spilled to host memory, or stay where the policy keeps them.
 *
 * The steps: cut each job into shards that fit (partition.h), let a policy order units and choose devices (policy.h, by
 * schedule.c with estimated durations), write units with copies and slots (emit.c), prove a lower bound (bound.h),
 * check.
 */
#ifndef SPILLWAY_PLANNER_STRATEGY_SPILLED_H
#define SPILLWAY_PLANNER_STRATEGY_SPILLED_H

#include "planner/planner_options.h"

/*
 * Plans jobs without devices or parallelism. They take turns in host memory if they do not fit together. Takes
 * ownership of hardware and jobs, also after an error. Errors: as planner_plan().
 */
MUST_CHECK enum status spilled_plan(struct hardware *hardware, struct job_set *jobs,
                                    const struct planner_options *options, struct plan *out, struct error *err);

#endif
