/* Plans of jobs that share frozen weights: policy shared-base. */
#ifndef SPILLWAY_PLANNER_STRATEGY_SHARED_H
#define SPILLWAY_PLANNER_STRATEGY_SHARED_H

#include "planner/strategy/strategy.h"

/* Returns true if the options name policy shared-base. */
bool shared_applies(const struct hardware *hardware, const struct job_set *jobs, const struct planner_options *options);

/*
 * Makes the plan; takes hardware and jobs over. All jobs must freeze weights ('adapter', 'freeze'); those with equal
 * ones go through the shards of their base in lockstep (planner/spill/shared/). The cut has the fastest
 * round of many by the planner's clock. Errors: STATUS_BAD_INPUT for other jobs and for options that contradict;
 * STATUS_INFEASIBLE with the missing bytes.
 */
MUST_CHECK enum status shared_plan(struct hardware *hardware, struct job_set *jobs,
                                   const struct planner_options *options, struct plan *out, struct error *err);

#endif
