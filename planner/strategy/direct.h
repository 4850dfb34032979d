/* Plans of all jobs together, without dividing jobs or devices into subproblems. */
#ifndef SPILLWAY_PLANNER_DIRECT_H
#define SPILLWAY_PLANNER_DIRECT_H

#include "planner/strategy/strategy.h"

/*
 * Plans jobs that say nothing of devices, or all of them how they are parallel, or each that it has the only device for
 * itself. Takes hardware and jobs over, also on failure. Errors as planner_plan().
 */
MUST_CHECK enum status direct_plan(struct hardware *hardware, struct job_set *jobs, const struct planner_options *options,
                                   struct plan *out, struct error *err);

#endif
