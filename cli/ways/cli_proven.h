/* When a plan may be called optimal. */
#ifndef SPILLWAY_CLI_PROVEN_H
#define SPILLWAY_CLI_PROVEN_H

#include "planner/plan.h"

/*
 * *proven: the simulated time is the lower bound of all plans of these jobs on this machine (planner/spill/cut/bound.h), whatever
 * their shards, policy, devices and parallelism. Plans with bounds of their own ("run like this, ...") are held against
 * that one, too. Errors: STATUS_NO_MEMORY.
 */
MUST_CHECK enum status cli_proven(const struct plan *plan, double makespan_s, bool *proven, struct error *err);

#endif
