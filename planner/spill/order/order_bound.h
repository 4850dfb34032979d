/*
 * Lower bounds on the makespan, by the planner's clock (schedule_builder.h), of any order of one partition's units: the
 * possible gain of reordering.
 *
 *     compute         all computation, recomputation included, evenly over the devices; before its first unit a
 *                     device waits for a copy in
 *     in, out         all copies to (from) the devices, evenly over their streams
 *     weight buffers  each unit of spilled state has a weight buffer while it is copied in, computes and is copied out
 *     processor       all work of the host's processor
 *     chain           one job, as if all streams were free for it: its units follow each other, and a shard's next
 *                     minibatch waits for its state, updated
 *
 * If states stay, the sums are over each device's own shards.
 */
#ifndef SPILLWAY_PLANNER_SPILL_ORDER_ORDER_BOUND_H
#define SPILLWAY_PLANNER_SPILL_ORDER_ORDER_BOUND_H

#include "planner/spill/order/cost_table.h"

struct order_bound {
    double seconds;
    uint32_t kind; /* enum plan_order_kind */
};

/* Computes the bound, exact but for rounding. `one_device`: only device 0 is used. */
MUST_CHECK enum status order_bound_make(const struct cost_table *times, bool one_device, struct order_bound *out,
                                        struct error *err);

#endif
