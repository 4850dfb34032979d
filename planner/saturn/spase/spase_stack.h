/*
 * What the devices of an unfinished schedule can still hold, each by itself: a lower bound on what is left.
 *
 * Each mode has a value, which each device of its gang earns by it. A device that is free for some ticks
 * earns at most its *capacity*: the best stack of modes, of different jobs, one behind the other within
 * these ticks. Jobs of which even the cheapest modes earn more than all devices can do not fit. With run
 * times as values that is the area, less what no stack can fill; other values know that of jobs which take more
 * than half of the time no two go onto one device.
 *
 * That gangs start together is left out; any values give a bound that holds.
 */
#ifndef SPILLWAY_PLANNER_SPASE_STACK_H
#define SPILLWAY_PLANNER_SPASE_STACK_H

#include "planner/saturn/spase/spase.h"

/* Run times; and run times scaled by the functions of spase_bound.h under which the cheapest modes are
 * worth most. */
enum spase_stack_values { SPASE_STACK_TICKS, SPASE_STACK_SCALED, SPASE_STACK_VALUES };

struct spase_stacks {
    int64_t *value;      /* (mode_count): of each device of the gang; modes longer than the limit: 0 */
    int64_t *capacity;   /* (class_count, step_count): by how many steps of time a device is free */
    int64_t step;        /* ticks */
    uint32_t step_count;
};

/*
 * For schedules of at most `limit` ticks, at least 1. With at most 64 jobs and devices, sums of values and of capacities stay
 * below 2^52.
 * The caller frees it with spase_stacks_release(). Errors: STATUS_NO_MEMORY.
 */
MUST_CHECK enum status spase_stacks_make(const struct spase *in, int64_t limit, enum spase_stack_values values,
                                         struct spase_stacks *out, struct error *err);
void spase_stacks_release(struct spase_stacks *stacks);

/* Of a device of this class that is free for so many ticks, at most the limit. */
static inline int64_t spase_stacks_capacity(const struct spase_stacks *stacks, uint32_t class, int64_t ticks)
{
    return stacks->capacity[(size_t)class * stacks->step_count + (size_t)(ticks / stacks->step)];
}

#endif
