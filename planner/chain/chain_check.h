/* The judge of a chain's schedule: chain.h's rules read from the times alone, sharing no code with
 * what made them. */
#ifndef SPILLWAY_PLANNER_CHAIN_CHECK_H
#define SPILLWAY_PLANNER_CHAIN_CHECK_H

#include "planner/chain/chain_schedule.h"

/* Errors: STATUS_CHECK naming the first broken rule and its layer; STATUS_NO_MEMORY. */
MUST_CHECK enum status chain_check(const struct chain *chain, const struct chain_schedule *schedule,
                                   struct error *err);

#endif
