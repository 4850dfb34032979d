/*
 * A lower bound on the makespan by prices of tasks over time (lagrangian_bound.h): the least makespan that they do not
 * prove impossible.
 *
 * It is stronger than the assignment bound, because tasks have times; by far where devices differ, because the paths
 * of each device take its own durations. It takes about a second, and is for gaps that search and proof leave.
 */
#ifndef SPILLWAY_PLANNER_PRICED_BOUND_H
#define SPILLWAY_PLANNER_PRICED_BOUND_H

#include "planner/solve/bounds/instance_bound.h"

/* Makespans of the sizes of task_net.h? */
bool priced_bound_takes(const struct instance *in);

/*
 * `value`: of a known schedule; *out: a bound of at most that and at least the best of `bounds`. Deterministic but
 * for `until_s` (base/process/progress.h). Errors: STATUS_NO_MEMORY.
 */
MUST_CHECK enum status priced_bound(const struct instance *in, const struct instance_bounds *bounds, int64_t value,
                                    double until_s, int64_t *out, struct error *err);

#endif
