/* Proofs that a plan is optimal. */
#ifndef SPILLWAY_CLI_WAYS_CLI_PROVEN_H
#define SPILLWAY_CLI_WAYS_CLI_PROVEN_H

#include "planner/plan.h"

/*
 * Sets *proven if the simulated makespan equals the lower bound of all plans of these jobs on this machine
 * (planner/spill/cut/bound.h), and a bound of the plan's own ("run like this, ...").
 */
MUST_CHECK enum status cli_proven(const struct plan *plan, double makespan_s, bool *proven, struct error *err);

#endif
