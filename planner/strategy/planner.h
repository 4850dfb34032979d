/*
 * From jobs and a machine to a plan: the first strategy of a table (planner.c) that applies. Jobs with their own
 * devices are planned group by group (reservation.h), free jobs may stay on a device each (resident.h), all others are
 * planned together (direct.h): with swapped activations, in parallel, or spilled (spilled.h).
 */
#ifndef SPILLWAY_PLANNER_STRATEGY_PLANNER_H
#define SPILLWAY_PLANNER_STRATEGY_PLANNER_H

#include "planner/planner_options.h"

/* Makes a plan. Takes ownership of hardware and jobs, which move into the plan, also after an error. Errors:
 * STATUS_INFEASIBLE, naming the job, the layer and the missing bytes, when a job fits at no sharding or host memory is
 * too small; STATUS_BAD_INPUT for an unknown policy, a file that is no shared object of a policy, or a policy that
 * breaks a rule (policy_ask.h). */
MUST_CHECK enum status planner_plan(struct hardware *hardware, struct job_set *jobs,
                                    const struct planner_options *options, struct plan *out,
                                    struct error *err);

#endif
