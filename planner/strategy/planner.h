/*
 * From jobs and a machine to a plan: a table of strategies (planner.c), of which the first one that applies plans. Jobs
 * with devices of their own are planned group by group (reservation.h), free jobs may stay on a device each
 * (resident.h), all others are planned together (direct.h): with swapped activations, in parallel, or spilled
 * (spilled.h).
 */
#ifndef SPILLWAY_PLANNER_STRATEGY_PLANNER_H
#define SPILLWAY_PLANNER_STRATEGY_PLANNER_H

#include "planner/planner_options.h"

/* Makes a plan. Takes ownership of hardware and jobs, which are moved into the plan, also after an error. Errors:
 * STATUS_INFEASIBLE, naming the job, the layer and the missing bytes, when a job fits at no sharding or host memory is
 * too small; STATUS_BAD_INPUT for an unknown policy, a file that is no shared object of a policy, and a policy that
 * breaks a rule (policy_ask.h). */
MUST_CHECK enum status planner_plan(struct hardware *hardware, struct job_set *jobs,
                                    const struct planner_options *options, struct plan *out,
                                    struct error *err);

#endif
