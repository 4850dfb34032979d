/*
 * Simulated annealing on the choices of a chain: what the search over states is too narrow to find.
 *
 * A move gives one layer another choice, or exchanges the choices of two; it is taken when the makespan
 * falls, and otherwise with a chance that falls as the temperature does. Memory that is short costs
 * waiting, so that nothing has to be forbidden where a chain has a link.
 *
 * Source: Kirkpatrick, Gelatt and Vecchi, Science 220 (1983); the threshold is drawn before the move is
 * judged, so that most moves need be judged but for a part.
 */
#ifndef SPILLWAY_PLANNER_CHAIN_ANNEAL_H
#define SPILLWAY_PLANNER_CHAIN_ANNEAL_H

#include "planner/chain/chain.h"

struct chain_anneal_options {
    const uint8_t *allowed; /* (layer_count) sets of choices (chain.h), moves stay within; NULL: all */
    uint64_t seed;
    uint32_t moves;
    double hot, cold;  /* temperatures, first and last: ticks, above 0 */
    int64_t enough;    /* a makespan that no other is below: it ends there */
    double until_s;    /* on the clock of base/process/progress.h */
};

/*
 * choices[] and *makespan: in what fits, out the best that was met. Deterministic but for `until_s`.
 * Errors: STATUS_NO_MEMORY. Cost: O(moves * layer_count) at most.
 */
MUST_CHECK enum status chain_anneal(const struct chain *chain, const struct chain_anneal_options *options,
                                    uint8_t *choices, int64_t *makespan, struct error *err);

#endif
