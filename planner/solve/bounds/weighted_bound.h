/*
 * A lower bound on the makespan with a weight for the time of each class of devices and one for the shared bridge.
 *
 * The makespan times the sum of all weights is at least the weighted busy time of devices and bridge. So it is at least
 * the sum over all tasks of a task's least cost. Fast devices weigh more, so that a task is not counted at the speed of
 * a device that has no time for it. With the bridge, a schedule can save bytes by waiting, or time by moving more, but
 * not both.
 */
#ifndef SPILLWAY_PLANNER_SOLVE_BOUNDS_WEIGHTED_BOUND_H
#define SPILLWAY_PLANNER_SOLVE_BOUNDS_WEIGHTED_BOUND_H

#include "planner/solve/instance/instance.h"

/* Finds weights of classes for which the bound by computation is close to its largest value. weights: (class_count);
 * their mean over all devices is 1. */
void weighted_bound_classes(const struct instance *in, double *weights);

/*
 * Computes the bound for weights near these. `least`: a makespan proven by another bound. *out is 0 where devices are
 * equal and share no bridge, because the assignment bound is the same there. Takes at most about 0.1 s.
 */
MUST_CHECK enum status weighted_bound(const struct instance *in, const double *weights, int64_t least, int64_t *out,
                                      struct error *err);

#endif
