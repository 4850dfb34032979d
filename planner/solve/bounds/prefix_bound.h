/*
 * What devices lose at the start of a schedule: a bound on their slack until jobs have spread.
 *
 * Forward passes come first, and few of their copies find something long enough to hide behind; but which task
 * can follow which is then still known, as only the first ones of each job can be there. The assignment bound
 * (instance_bound.h) knows nothing of that: to it, a first copy hides behind any backward pass.
 */
#ifndef SPILLWAY_PLANNER_PREFIX_BOUND_H
#define SPILLWAY_PLANNER_PREFIX_BOUND_H

#include "planner/solve/bounds/head_tail_bound.h"

/*
 * `duals` are those of the assignment, `ends` found for them, `proven` a lower bound on the makespan. The
 * makespan by the number of devices is at least the sum of the duals and *out; that is ends->both where
 * nothing better is found. At most some 0.1 s; deterministic. Errors: STATUS_NO_MEMORY.
 */
MUST_CHECK enum status prefix_bound(const struct instance *in, const struct instance_bounds *duals,
                                     const struct head_tail_bound *ends, int64_t proven, int64_t *out,
                                     struct error *err);

#endif
