/*
 * The starts of a chain's passes and copies for given choices: as early as chain.h allows.
 *
 * The orders are fixed, so every start is the latest of some ends, and no delay lets another be earlier. The backward
 * pass is made from its end, as the mirrored chain's forward pass; its copies in are as late as possible.
 */
#ifndef SPILLWAY_PLANNER_CHAIN_CHAIN_SCHEDULE_H
#define SPILLWAY_PLANNER_CHAIN_CHAIN_SCHEDULE_H

#include "planner/chain/chain.h"

/* Open structure; zeroed it is empty. Times that a layer's choice does not use are 0. */
struct chain_schedule {
    uint8_t *choices;      /* (layer_count) enum chain_choice */
    int64_t *forward, *out, *in, *backward; /* (layer_count) starts; `backward`: start of the second forward pass, if
                                               any */
    uint32_t layer_count;
    int64_t turnaround, makespan; /* as claimed; chain_check() recomputes them */
    struct arena arena;
};

/* Scratch: (layer_count) elements. */
struct chain_pass {
    uint32_t *queue;
    int64_t *ends;
};

MUST_CHECK enum status chain_pass_create(uint32_t layer_count, struct chain_pass *out, struct error *err);
void chain_pass_destroy(struct chain_pass *pass);

/* Computes the makespan. Returns false when memory cannot hold these choices (without swapping; with swapping, waiting
 * always helps). Allocates nothing. */
bool chain_makespan(const struct chain *chain, const uint8_t *choices, struct chain_pass *pass,
                    int64_t *makespan);

/* Makes a schedule. Errors: STATUS_INFEASIBLE when memory cannot hold the choices. */
MUST_CHECK enum status chain_schedule_make(const struct chain *chain, const uint8_t *choices,
                                           struct chain_schedule *out, struct error *err);
void chain_schedule_release(struct chain_schedule *schedule);

#endif
