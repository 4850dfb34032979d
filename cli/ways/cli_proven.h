/* Bounds of a plan: of all plans of its jobs, and of plans like it; proofs that a plan is optimal. */
#ifndef SPILLWAY_CLI_WAYS_CLI_PROVEN_H
#define SPILLWAY_CLI_WAYS_CLI_PROVEN_H

#include "planner/plan.h"
#include "planner/spill/cut/bound.h"

/* Finds the lower bound of all plans of the plan's jobs on its machine: any_s of *out (planner/spill/cut/bound.h). */
MUST_CHECK enum status cli_bound_of_all(const struct plan *plan, struct bound *out, struct error *err);

/* Returns the plans of which the plan's own bound is the bound ("of this parallelism"), or NULL if that bound is not
 * above the bound of all plans. */
const char *cli_own_bound(const struct plan *plan, const struct bound *all);

/* Sets *proven if the simulated makespan equals the lower bound of all plans. */
MUST_CHECK enum status cli_proven(const struct plan *plan, double makespan_s, bool *proven, struct error *err);

#endif
