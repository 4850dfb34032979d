/*
 * Simulated annealing on the choices of a chain.
 *
 * A move gives one layer another choice, or exchanges two layers' choices. Missing memory costs waiting, so with a link
 * no choice is forbidden.
 *
 * Source: Kirkpatrick, Gelatt and Vecchi, Science 220 (1983). The threshold is drawn first, so that most moves are
 * judged only in part.
 */
#ifndef SPILLWAY_PLANNER_CHAIN_CHAIN_ANNEAL_H
#define SPILLWAY_PLANNER_CHAIN_CHAIN_ANNEAL_H

#include "planner/chain/chain.h"

struct chain_anneal_options {
    const uint8_t *allowed; /* (layer_count) sets of choices (chain.h) for moves; NULL: all */
    uint64_t seed;
    uint32_t moves;
    double hot, cold;  /* first and last temperature: ticks, above 0 */
    int64_t enough;    /* stop at this makespan, because none is below it */
    double until_s;    /* on the clock of base/process/clock.h */
};

/*
 * choices[] and *makespan: in: a feasible schedule; out: the best found. Deterministic unless `until_s` ends it. Cost:
 * O(moves * layer_count) at most.
 */
MUST_CHECK enum status chain_anneal(const struct chain *chain, const struct chain_anneal_options *options,
                                    uint8_t *choices, int64_t *makespan, struct error *err);

#endif
