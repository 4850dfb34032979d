/* Chains made from a seed: the families that keep, swap and recompute are measured on. Same options,
 * same chain, on every machine. */
#ifndef SPILLWAY_PLANNER_CHAIN_RANDOM_H
#define SPILLWAY_PLANNER_CHAIN_RANDOM_H

#include "planner/chain/chain.h"

enum chain_family {
    CHAIN_CNN,       /* stages of equal layers: bytes halve, and durations vary, from stage to stage */
    CHAIN_RANDOM,    /* every layer of its own */
    CHAIN_IDENTICAL, /* a transformer's blocks */
    CHAIN_FAMILIES
};
extern const char *const chain_family_names[CHAIN_FAMILIES];

struct chain_random {
    enum chain_family family;
    uint64_t seed;
    uint32_t layers;    /* at least 1 */
    double memory;      /* share of the way from the least memory that all layers recomputed need to
                           what all kept need; 0.3 where not given otherwise */
    double link;        /* share of what would swap everything beside computation that is swapped;
                           0: no link */
};

/* Release it with chain_release(). */
MUST_CHECK enum status chain_random(const struct chain_random *options, struct chain *out,
                                    struct error *err);

#endif
