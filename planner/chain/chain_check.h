/* Checks chain.h's rules from a schedule's times, sharing no code with the makers of schedules. */
#ifndef SPILLWAY_PLANNER_CHAIN_CHAIN_CHECK_H
#define SPILLWAY_PLANNER_CHAIN_CHAIN_CHECK_H

#include "planner/chain/chain_schedule.h"

/* Checks a schedule. Errors: STATUS_CHECK naming the first broken rule and its layer. */
MUST_CHECK enum status chain_check(const struct chain *chain, const struct chain_schedule *schedule,
                                   struct error *err);

#endif
