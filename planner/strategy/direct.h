/* Plans of all jobs together, without dividing jobs or devices into subproblems. */
#ifndef SPILLWAY_PLANNER_STRATEGY_DIRECT_H
#define SPILLWAY_PLANNER_STRATEGY_DIRECT_H

#include "planner/strategy/strategy.h"

/*
 * Plans jobs of which none names devices or parallelism, all are parallel, or each has the only device for itself.
 * Takes ownership of hardware and jobs, also after an error. Errors: as planner_plan().
 */
MUST_CHECK enum status direct_plan(struct hardware *hardware, struct job_set *jobs, const struct planner_options *options,
                                   struct plan *out, struct error *err);

/*
 * Plans parallel jobs that share devices by taking turns by minibatches; the devices hold all of them. Takes ownership
 * of hardware and jobs, but after STATUS_INFEASIBLE they are the caller's again, and *held says whether the devices
 * hold all jobs, so that host memory is short.
 */
MUST_CHECK enum status direct_plan_turns(struct hardware *hardware, struct job_set *jobs,
                                         const struct planner_options *options, bool *held, struct plan *out,
                                         struct error *err);

#endif
