/* Proof that a plan is optimal. */
#ifndef SPILLWAY_CLI_WAYS_CLI_PROVEN_H
#define SPILLWAY_CLI_WAYS_CLI_PROVEN_H

#include "planner/plan.h"

/*
 * Sets *proven if the simulated makespan equals the lower bound of all plans of these jobs on this machine
 * (planner/spill/cut/bound.h), for any shards, policy, devices and parallelism. A plan with a bound of its own ("run
 * like this, ...") is compared with that bound too.
 */
MUST_CHECK enum status cli_proven(const struct plan *plan, double makespan_s, bool *proven, struct error *err);

#endif
