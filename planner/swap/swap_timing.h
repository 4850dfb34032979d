/*
 * Computes a minibatch's time with choices and places, by plan.h's rules: a stream's operations in order, each as soon
 * as its data are there and its ranges are free. Links are not shared with other jobs.
 *
 * It is at most the chain's schedule of these choices, and shorter where the schedule makes copies out end before any
 * copy in begins (chain.h, the turn), which the plan does not need.
 */
#ifndef SPILLWAY_PLANNER_SWAP_SWAP_TIMING_H
#define SPILLWAY_PLANNER_SWAP_SWAP_TIMING_H

#include "planner/swap/swap_places.h"

/* Computes *length, in ticks. Cost: O(lives^2). */
MUST_CHECK enum status swap_timing(const struct swap_job *job, const struct chain *chain, const uint8_t *choices,
                                   const struct swap_places *places, int64_t *length, struct error *err);

#endif
