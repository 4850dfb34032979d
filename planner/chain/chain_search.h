/*
 * The best choices for a chain: layer by layer through both passes at once, with the states that are
 * worth going on with.
 *
 * Because the backward pass is a mirrored forward pass (chain.h), choosing for layer l settles what
 * both passes do at it. A state is what layers 0 .. l-1 left: ticks spent beyond computing, bytes on
 * the device, and for each link which copies are still to end and when. It is given up when another
 * one has all of that no worse (dominance; whole states are compared), or when its cost and what the
 * rest costs at least (chain_bound.h) come to the best known makespan. If no state was left out for
 * want of room, the best known is optimal; otherwise the least bound of those left out is a bound.
 */
#ifndef SPILLWAY_PLANNER_CHAIN_SEARCH_H
#define SPILLWAY_PLANNER_CHAIN_SEARCH_H

#include "planner/chain/chain_bound.h"
#include "planner/chain/chain_schedule.h"

struct chain_search_options {
    uint32_t width_min;    /* states carried on from a layer, at first; 0: 64 */
    uint32_t width_max;    /* and at last; 0: as many as memory_bytes has room for */
    double until_s;        /* on the clock of base/process/progress.h */
    size_t memory_bytes;   /* for states; 0: 256 MiB */
    struct chain_place *places; /* out, (places_max): what some states of the last sweep left; or NULL */
    uint32_t places_max;
};

struct chain_search_result {
    bool proven;      /* the makespan is optimal */
    int64_t bound;    /* of all makespans */
    uint64_t states;  /* looked at */
    uint32_t width;   /* of the last search that was carried through */
    uint32_t place_count; /* told in `places` */
};

/*
 * Of the choices that the bound is of. choices[] and *makespan hold the best known, allowed or not, and
 * are bettered in place, by what is allowed or by local search from there: searches of growing width,
 * each result improved by changing one layer or exchanging two. Deterministic but for `until_s`.
 * Errors: STATUS_NO_MEMORY.
 */
MUST_CHECK enum status chain_search(const struct chain *chain, const struct chain_bound *bound,
                                    const struct chain_search_options *options, uint8_t *choices,
                                    int64_t *makespan, struct chain_search_result *result,
                                    struct error *err);

/* The improvement alone: first better neighbour until there is none or the clock says stop. */
MUST_CHECK enum status chain_improve(const struct chain *chain, double until_s, uint8_t *choices,
                                     int64_t *makespan, struct error *err);

#endif
