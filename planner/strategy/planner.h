/*
 * From jobs and a machine to a plan.
 *
 * The steps: cut each job into shards that fit (partition.h), let a policy decide which shard unit
 * goes to which device in which order (policy.h, driven by schedule.c with estimated durations),
 * write the units down with their copies and slots (emit.c), prove a lower bound (bound.h), check.
 */
#ifndef SPILLWAY_PLANNER_PLANNER_H
#define SPILLWAY_PLANNER_PLANNER_H

#include "planner/planner_options.h"

/*
 * Takes hardware and jobs over (moved into the plan, zeroed here), also on failure. *out is zeroed
 * before; release it with plan_release().
 * Errors: STATUS_INFEASIBLE, naming the job, the layer and the bytes missing, when a job fits at no
 * sharding or host memory is too small; STATUS_BAD_INPUT for an unknown policy, a shared object that
 * is none, and a policy that breaks a rule (policy_ask.h).
 */
MUST_CHECK enum status planner_plan(struct hardware *hardware, struct job_set *jobs,
                                    const struct planner_options *options, struct plan *out,
                                    struct error *err);

#endif
