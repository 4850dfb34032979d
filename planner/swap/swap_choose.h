/* Which layers of a job are kept, swapped and recomputed, and where all of it lies. Part of planner/swap/swap.c;
 * nobody else includes this. */
#ifndef SPILLWAY_PLANNER_SWAP_CHOOSE_H
#define SPILLWAY_PLANNER_SWAP_CHOOSE_H

#include "planner/swap/swap.h"
#include "planner/swap/swap_places.h"

/* Zeroed it is empty. */
struct swap_choice {
    struct chain chain;
    struct chain_schedule schedule;
    struct chain_certificate certificate; /* its bound is of this chain, whoever made the choices */
    struct swap_places places;
    int64_t length; /* of a minibatch, by swap_timing.h; ticks, at most the schedule's makespan */
    uint32_t way;
    bool cut_short; /* the search for these choices, by its limit of time */
};

/*
 * By the ways that options ask for; *out is zeroed before, release it with swap_choice_release(). What each
 * promises is noted in outcome->way_s and way_fits. Errors: STATUS_INFEASIBLE, naming the bytes missing;
 * STATUS_NO_MEMORY.
 */
MUST_CHECK enum status swap_choose(const struct swap_job *job, const struct swap_options *options,
                                   struct swap_choice *out, struct swap_outcome *outcome, struct error *err);
void swap_choice_release(struct swap_choice *choice);

#endif
