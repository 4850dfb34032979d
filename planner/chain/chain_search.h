/*
 * A chain's best choices: a search layer by layer, through both passes at once.
 *
 * The backward pass is a mirrored forward pass (chain.h), so a layer's choice settles both. A state is the result of
 * layers 0 .. l-1: ticks beyond computing, bytes on the device, and each link's unfinished copies with their ends. It
 * is dropped when another is no worse in all of this (dominance; whole states are compared), or when its cost plus the
 * least cost of the rest (chain_bound.h) reaches the best known makespan. If none was dropped for lack of room, the
 * best known schedule is optimal; else the least bound of dropped states is a bound.
 */
#ifndef SPILLWAY_PLANNER_CHAIN_CHAIN_SEARCH_H
#define SPILLWAY_PLANNER_CHAIN_CHAIN_SEARCH_H

#include "planner/chain/chain_bound.h"
#include "planner/chain/chain_schedule.h"

struct chain_search_options {
    uint32_t width_min;    /* states kept per layer in the first search; 0: 64 */
    uint32_t width_max;    /* states kept per layer in the last search; 0: limited by memory_bytes only */
    double until_s;        /* on the clock of base/process/clock.h */
    size_t memory_bytes;   /* for states; 0: 256 MiB */
    struct chain_place *places; /* out, (places_max): some states of the last search; or NULL */
    uint32_t places_max;
};

struct chain_search_result {
    bool proven;      /* the makespan is optimal */
    int64_t bound;    /* lower bound on all makespans */
    uint64_t states;  /* looked at */
    uint32_t width;   /* width of the last complete search */
    uint32_t place_count; /* number of entries in `places` */
};

/*
 * Searches the choices that the bound covers. choices[] and *makespan hold the best known schedule, allowed or not, and
 * are improved in place: by searches of growing width, each result improved by local search (changing one layer or
 * exchanging two). Deterministic unless `until_s` ends it.
 */
MUST_CHECK enum status chain_search(const struct chain *chain, const struct chain_bound *bound,
                                    const struct chain_search_options *options, uint8_t *choices,
                                    int64_t *makespan, struct chain_search_result *result,
                                    struct error *err);

/* Runs the local search only: first better neighbour, until there is none or the clock reads until_s. */
MUST_CHECK enum status chain_improve(const struct chain *chain, double until_s, uint8_t *choices,
                                     int64_t *makespan, struct error *err);

#endif
