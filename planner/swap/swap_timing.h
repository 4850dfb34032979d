/*
 * How long a minibatch takes whose layers are kept, swapped and recomputed in given places, by the rules of
 * plan.h: operations of a stream in their order, each as soon as what it reads is there and its ranges are
 * free. Links are not shared with anybody.
 *
 * That is no longer than the chain's schedule of the same choices, and shorter where this makes copies out
 * end before any comes in (chain.h, the turn), for which the plan has no need.
 */
#ifndef SPILLWAY_PLANNER_SWAP_TIMING_H
#define SPILLWAY_PLANNER_SWAP_TIMING_H

#include "planner/swap/swap_places.h"

/* *length: out, ticks. Errors: STATUS_NO_MEMORY. Cost: O(lives^2). */
MUST_CHECK enum status swap_timing(const struct swap_job *job, const struct chain *chain, const uint8_t *choices,
                                   const struct swap_places *places, int64_t *length, struct error *err);

#endif
