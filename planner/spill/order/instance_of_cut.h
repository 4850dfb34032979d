/*
 * Jobs cut for spilling as a shard-scheduling instance (instance.h), for exact methods.
 *
 * Times are in whole ticks, rounded up; copies take the time of device 0's link. A job is its minibatches' units on
 * devices; evaluations are left out. Every unit needs one unit of memory and a device has one per weight buffer, so
 * that copies run ahead as in a plan.
 *
 * There are three forms:
 *
 *     copies  without streams: boundaries, the host's processor and more than one copy ahead are left out, and states
 *             that stay have no copies. Searches of this form are the fastest
 *     clock   with streams (planner/solve/instance/dispatch_streams.h): the planner's clock (schedule_builder.h)
 *     plan    the same with what that clock leaves out and a plan has: the boundary that a backward pass fetches,
 *             places for boundaries and for a head's table, and copies home of states that stay. A schedule that ends
 *             earlier by it makes a plan that ends earlier
 *
 * All leave out storage, jobs that wait for host memory, copies from device to device, and contention beyond the
 * average over shared links. With streams the passes of an embedding on the host's processor are work of the host
 * before and after their job's units on devices.
 */
#ifndef SPILLWAY_PLANNER_SPILL_ORDER_INSTANCE_OF_CUT_H
#define SPILLWAY_PLANNER_SPILL_ORDER_INSTANCE_OF_CUT_H

#include "planner/solve/instance/instance.h"
#include "planner/spill/order/cost_table.h"

enum cut_form { CUT_COPIES, CUT_CLOCK, CUT_PLAN };

/* Makes the instance. tick_s: seconds of a tick; 0: microseconds, with streams less where units are short. The
 * partition must be a spilled one. Errors: as instance_init() and instance_finish(). */
MUST_CHECK enum status instance_of_cut(const struct cost_table *times, enum cut_form form, double tick_s,
                                       struct instance *out, struct error *err);

#endif
