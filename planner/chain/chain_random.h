/* Random chains: the families on which keep, swap and recompute are measured. Equal options give equal chains on every
 * machine. */
#ifndef SPILLWAY_PLANNER_CHAIN_CHAIN_RANDOM_H
#define SPILLWAY_PLANNER_CHAIN_CHAIN_RANDOM_H

#include "planner/chain/chain.h"

enum chain_family {
    CHAIN_CNN,       /* stages of equal layers: bytes halve, and durations vary, from stage to stage */
    CHAIN_RANDOM,    /* every layer different */
    CHAIN_IDENTICAL, /* a transformer's blocks */
    CHAIN_FAMILIES
};
extern const char *const chain_family_names[CHAIN_FAMILIES];

struct chain_random {
    enum chain_family family;
    uint64_t seed;
    uint32_t layers;    /* at least 1 */
    double memory;      /* position between the least memory with all layers recomputed (0) and the memory with all
                           layers kept (1); 0.3 by default */
    double link;        /* bandwidth relative to a link that swaps everything during computation; 0: no link */
};

/* Makes a chain. Release it with chain_release(). */
MUST_CHECK enum status chain_random(const struct chain_random *options, struct chain *out,
                                    struct error *err);

#endif
