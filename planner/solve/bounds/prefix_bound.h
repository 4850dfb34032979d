/*
 * Devices' losses at a schedule's start, as a bound on their slack until jobs have spread.
 *
 * Forward passes come first, and few of their copies find a long computation to hide behind. At that time only each
 * job's first tasks can have started, which limits neighbours. The assignment bound (instance_bound.h) hides a first
 * copy behind any backward pass.
 */
#ifndef SPILLWAY_PLANNER_SOLVE_BOUNDS_PREFIX_BOUND_H
#define SPILLWAY_PLANNER_SOLVE_BOUNDS_PREFIX_BOUND_H

#include "planner/solve/bounds/head_tail_bound.h"

/*
 * `duals`: the assignment's; `ends`: found for them; `proven`: a lower bound on the makespan. The makespan times the
 * number of devices is at least the sum of the duals plus *out, which is ends->both when nothing better is found. Takes
 * at most about 0.1 s; deterministic.
 */
MUST_CHECK enum status prefix_bound(const struct instance *in, const struct instance_bounds *duals,
                                    const struct head_tail_bound *ends, int64_t proven, int64_t *out,
                                    struct error *err);

#endif
