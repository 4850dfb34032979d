/* Plans of all jobs together, without dividing jobs or devices into subproblems. */
#ifndef SPILLWAY_PLANNER_STRATEGY_DIRECT_H
#define SPILLWAY_PLANNER_STRATEGY_DIRECT_H

#include "planner/strategy/strategy.h"

/*
 * Plans jobs without devices or parallelism, or all parallel, or each with the only device for itself. Takes ownership
 * of hardware and jobs, also after an error. Errors: as planner_plan().
 */
MUST_CHECK enum status direct_plan(struct hardware *hardware, struct job_set *jobs,
                                   const struct planner_options *options, struct plan *out, struct error *err);

/*
 * Plans parallel jobs that fit together and take turns by minibatches. Takes ownership of hardware and jobs, but after
 * STATUS_INFEASIBLE they are the caller's again.
 */
MUST_CHECK enum status direct_plan_turns(struct hardware *hardware, struct job_set *jobs,
                                         const struct planner_options *options, bool *held, struct plan *out,
                                         struct error *err);

#endif
