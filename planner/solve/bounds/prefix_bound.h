/*
 * The prefix bound: the devices' losses at the start of a schedule, as a bound on their slack until jobs have spread.
 *
 * Forward passes come first, and few of their copies find a long computation to hide behind. At that time it is still
 * known which task can follow which, because only the first tasks of each job can have started. The assignment bound
 * (instance_bound.h) does not know that: it hides a first copy behind any backward pass.
 */
#ifndef SPILLWAY_PLANNER_SOLVE_BOUNDS_PREFIX_BOUND_H
#define SPILLWAY_PLANNER_SOLVE_BOUNDS_PREFIX_BOUND_H

#include "planner/solve/bounds/head_tail_bound.h"

/*
 * Computes the bound. `duals`: the assignment's; `ends`: found for these duals; `proven`: a lower bound on the
 * makespan. The makespan times the number of devices is at least the sum of the duals plus *out. *out is ends->both
 * when the bound finds nothing better. Takes at most about 0.1 s; deterministic.
 */
MUST_CHECK enum status prefix_bound(const struct instance *in, const struct instance_bounds *duals,
                                    const struct head_tail_bound *ends, int64_t proven, int64_t *out,
                                    struct error *err);

#endif
