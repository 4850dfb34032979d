/*
 * The least makespan that prices of tasks over time (lagrangian_bound.h) do not prove impossible.
 *
 * It is stronger than the assignment bound because tasks have times, above all where devices differ, because paths take
 * each device's durations. It takes about a second, for gaps that search and proof leave.
 */
#ifndef SPILLWAY_PLANNER_SOLVE_BOUNDS_PRICED_BOUND_H
#define SPILLWAY_PLANNER_SOLVE_BOUNDS_PRICED_BOUND_H

#include "planner/solve/bounds/instance_bound.h"

/* Returns true for makespans within the limits of task_net.h. */
bool priced_bound_takes(const struct instance *in);

/*
 * `value`: of a known schedule. *out is at most `value` and at least the best of `bounds`. Deterministic unless
 * `until_s` (base/process/clock.h) ends it.
 */
MUST_CHECK enum status priced_bound(const struct instance *in, const struct instance_bounds *bounds, int64_t value,
                                    double until_s, int64_t *out, struct error *err);

#endif
