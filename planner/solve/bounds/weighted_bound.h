/*
 * A lower bound on the makespan by weights for the time of each class of devices and for the shared bridge.
 *
 * With a weight for each device and one for the bridge, the makespan times the sum of the weights is at least the
 * weighted time that they are busy. So it is at least the sum over all tasks of the least that a task may cost. Fast
 * devices weigh more: then a task is not counted at the speed of a device that has no time for it. With the bridge, a
 * schedule can save bytes by waiting, or time by moving more, but not both.
 */
#ifndef SPILLWAY_PLANNER_WEIGHTED_BOUND_H
#define SPILLWAY_PLANNER_WEIGHTED_BOUND_H

#include "planner/solve/instance/instance.h"

/* Weights of classes, for which the bound by computation only is about the largest; their mean over all devices is 1.
 * weights: (class_count). */
void weighted_bound_classes(const struct instance *in, double *weights);

/*
 * The bound, for weights near these. `least`: a makespan proven by another bound. *out is 0 where devices are alike
 * and share no bridge: there the assignment bound is the same. It takes at most about 0.1 s. Errors: STATUS_NO_MEMORY.
 */
MUST_CHECK enum status weighted_bound(const struct instance *in, const double *weights, int64_t least, int64_t *out,
                                      struct error *err);

#endif
