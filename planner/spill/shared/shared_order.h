/*
 * The order of jobs that share bases: in lockstep.
 *
 *     round r:  shard 0 forward of jobs 1, 2, 3; shard 1 forward of jobs 1, 2, 3; ... loss of 1, 2, 3; ...
 *               shard 1 backward of jobs 1, 2, 3; then evaluations of those that have one, likewise
 *
 * A round is a minibatch of each job. Jobs that end leave at its end. Jobs with different bases follow each other.
 */
#ifndef SPILLWAY_PLANNER_SPILL_SHARED_SHARED_ORDER_H
#define SPILLWAY_PLANNER_SPILL_SHARED_SHARED_ORDER_H

#include "planner/spill/order/cost_table.h"

/* Makes the schedule of a partition by shared_cut_make(), with its makespan by the planner's clock. Errors:
 * STATUS_LIMIT, STATUS_NO_MEMORY. */
MUST_CHECK enum status shared_order_make(const struct cost_table *times, struct schedule *out, struct error *err);

/* Estimates the makespan, to compare cuts: from a few rounds of each base, of which the middle one repeats, without
 * later evaluations. */
MUST_CHECK enum status shared_order_estimate(const struct cost_table *times, double *seconds, struct error *err);

#endif
