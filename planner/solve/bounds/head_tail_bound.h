/*
 * The time of devices before their first and after the start of their last task, beyond the assignment bound's duals
 * (instance_bound.h).
 *
 * Devices differ in both tasks. Each task of a unit is a whole pass through the network later, or further from the end,
 * than the one before it. So i devices pay the i-th least start and end each, not all the least ones.
 */
#ifndef SPILLWAY_PLANNER_SOLVE_BOUNDS_HEAD_TAIL_BOUND_H
#define SPILLWAY_PLANNER_SOLVE_BOUNDS_HEAD_TAIL_BOUND_H

#include "planner/solve/bounds/instance_bound.h"

struct head_tail_bound {
    __int128 both; /* sum over devices; a device without tasks pays `least` instead */
    __int128 ends; /* sum of the least ends, for all devices or, if there are fewer, all tasks */
    int64_t last;  /* the largest of these ends; no device has to be counted with more */
    bool full;     /* every device has a task */
};

/* Finds the heads and tails for the duals of a bound. `least`: a makespan proven by another bound. */
MUST_CHECK enum status head_tail_bound_find(const struct instance *in, int64_t least,
                                            const struct instance_bounds *duals,
                                            struct head_tail_bound *out, struct error *err);

/* Returns the earliest tick at which a device whose first task is of this unit starts it, after the copy in. */
int64_t head_tail_bound_first_start(const struct instance *in, uint32_t unit);

#endif
