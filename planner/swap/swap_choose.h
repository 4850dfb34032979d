/* Chooses the layers of a job to keep, swap and recompute, and the places of all buffers. */
#ifndef SPILLWAY_PLANNER_SWAP_SWAP_CHOOSE_H
#define SPILLWAY_PLANNER_SWAP_SWAP_CHOOSE_H

#include "planner/swap/swap.h"
#include "planner/swap/swap_places.h"

/* Zeroed: empty. */
struct swap_choice {
    struct chain chain;
    struct chain_schedule schedule;
    struct chain_certificate certificate; /* with the bound of this chain, for choices of any origin */
    struct swap_places places;
    int64_t length; /* of a minibatch, by swap_timing.h; ticks, at most the schedule's makespan */
    uint32_t way;
    bool cut_short; /* a time limit ended the search for these choices */
};

/* Chooses by the ways in options. Notes each way's promise in outcome->way_s and way_fits. Errors: STATUS_INFEASIBLE,
 * naming the missing bytes. */
MUST_CHECK enum status swap_choose(const struct swap_job *job, const struct swap_options *options,
                                   struct swap_choice *out, struct swap_outcome *outcome, struct error *err);
void swap_choice_release(struct swap_choice *choice);

#endif
