/*
 * The work that each device of a partial schedule can still hold: a lower bound on the rest.
 *
 * Each mode has a value, which each device of its gang earns by it. A device that is free for some ticks earns at most
 * its *capacity*: the best stack of modes, of different jobs, one after the other within these ticks. When even the
 * cheapest modes of the jobs earn more than all devices can, the jobs do not fit. With run times as values this is the
 * area, less the ticks that no stack can fill. Other values express that two jobs which take more than half of the time
 * never share a device.
 *
 * The bound ignores that gangs start together; it is valid for any values.
 */
#ifndef SPILLWAY_PLANNER_SATURN_SPASE_SPASE_STACK_H
#define SPILLWAY_PLANNER_SATURN_SPASE_SPASE_STACK_H

#include "planner/saturn/spase/spase.h"

/* Run times; and run times scaled by the functions of spase_bound.h under which the cheapest modes are worth most. */
enum spase_stack_values { SPASE_STACK_TICKS, SPASE_STACK_SCALED, SPASE_STACK_VALUES };

struct spase_stacks {
    int64_t *value;      /* (mode_count): for each device of the gang; modes longer than the limit: 0 */
    int64_t *capacity;   /* (class_count, step_count): by the number of steps for which a device is free */
    int64_t step;        /* ticks */
    uint32_t step_count;
};

/*
 * Makes the stacks for schedules of at most `limit` ticks, at least 1. With at most 64 jobs and devices, sums of values
 * and of capacities stay below 2^52. The caller frees it with spase_stacks_release().
 */
MUST_CHECK enum status spase_stacks_make(const struct spase *in, int64_t limit, enum spase_stack_values values,
                                         struct spase_stacks *out, struct error *err);
void spase_stacks_release(struct spase_stacks *stacks);

/* Returns the capacity of a device of this class that is free for `ticks`, at most the limit. */
static inline int64_t spase_stacks_capacity(const struct spase_stacks *stacks, uint32_t class, int64_t ticks)
{
    return stacks->capacity[(size_t)class * stacks->step_count + (size_t)(ticks / stacks->step)];
}

#endif
