/*
 * Jobs that make kept outputs (struct job_outputs) come before all others, one after the other: their order is fixed.
 * They are the last of a set, so that policies and searches order a set without them. A job's minibatches go round the
 * devices.
 */
#ifndef SPILLWAY_PLANNER_SPILL_ORDER_OUTPUTS_ORDER_H
#define SPILLWAY_PLANNER_SPILL_ORDER_OUTPUTS_ORDER_H

#include "planner/spill/order/cost_table.h"

/* Returns the same set without the jobs that make outputs; borrowed. */
struct job_set outputs_takers(const struct job_set *jobs);

/* Puts the units of the jobs that make outputs before a schedule of all others, and adds their time. `times`: of all
 * jobs. `devices`: the first of these are used. Errors: STATUS_LIMIT, STATUS_NO_MEMORY. */
MUST_CHECK enum status outputs_order_first(const struct cost_table *times, uint32_t devices, struct schedule *schedule,
                                           struct error *err);

#endif
