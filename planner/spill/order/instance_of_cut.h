/*
 * Jobs cut for spilling as a shard-scheduling instance (instance.h), for exact methods.
 *
 * Ticks are microseconds, rounded up; copies take the time of device 0's link. A job is its minibatches' units on
 * devices; an embedding's passes on the host's processor and evaluations are left out. Every unit needs one unit of
 * memory and a device has one per weight buffer, so that copies run ahead as in a plan. Left out: boundaries, the
 * host's processor, storage, states that stay (their units have no copies), more than one copy ahead, and contention.
 */
#ifndef SPILLWAY_PLANNER_SPILL_ORDER_INSTANCE_OF_CUT_H
#define SPILLWAY_PLANNER_SPILL_ORDER_INSTANCE_OF_CUT_H

#include "planner/solve/instance/instance.h"
#include "planner/spill/order/cost_table.h"

/* Makes the instance. The partition must be a spilled one. Errors: as instance_init() and instance_finish(). */
MUST_CHECK enum status instance_of_cut(const struct cost_table *times, struct instance *out,
                                       struct error *err);

#endif
