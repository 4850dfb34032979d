/*
 * A lower bound on the makespan with weights for the time of each class of devices and the shared bridge.
 *
 * The makespan times the sum of weights is at least the weighted busy time of devices and bridge, so at least the sum
 * of all tasks' least costs. Fast devices weigh more, so that a task does not count at the speed of a device without
 * time for it. With the bridge, a schedule saves bytes by waiting, or time by moving more, but not both.
 */
#ifndef SPILLWAY_PLANNER_SOLVE_BOUNDS_WEIGHTED_BOUND_H
#define SPILLWAY_PLANNER_SOLVE_BOUNDS_WEIGHTED_BOUND_H

#include "planner/solve/instance/instance.h"

/* Finds weights of classes with nearly the largest bound by computation. weights: (class_count); their mean over all
 * devices is 1. */
void weighted_bound_classes(const struct instance *in, double *weights);

/*
 * Computes the bound near these weights. `least`: a makespan proven by another bound. *out is 0 where devices are equal
 * and share no bridge: the assignment bound is the same there. Takes at most about 0.1 s.
 */
MUST_CHECK enum status weighted_bound(const struct instance *in, const double *weights, int64_t least, int64_t *out,
                                      struct error *err);

#endif
