/* Chains for tests: tiny ones from a seed, and the optimum by trying every choice. */
#ifndef SPILLWAY_TESTS_SUPPORT_SOLVE_SUPPORT_CHAIN_H
#define SPILLWAY_TESTS_SUPPORT_SOLVE_SUPPORT_CHAIN_H

#include "planner/chain/chain_schedule.h"

/* Reads a chain from text with ' for ". Fails the test if it is refused. */
void test_chain(const char *text, struct chain *out);
void test_chain_print(const struct chain *chain);

/* Makes up to `layers_max` layers of small numbers, some without a link, some that need every byte. */
void test_chain_tiny(uint64_t seed, uint32_t layers_max, struct chain *out);

/* The same with numbers a hundred times larger: copies take many ticks, so rounding them up matters. */
void test_chain_rounded(uint64_t seed, uint32_t layers_max, struct chain *out);

/* Returns the optimum over all 3^L choices, or over the `allowed` ones (chain.h; NULL: all); INT64_MAX if none fits. */
int64_t test_chain_brute_force(const struct chain *chain, const uint8_t *allowed);

/* --- families ------------------------------------------------------------------------------ */

/* Random chains: the families on which keep, swap and recompute are measured. Equal options give equal chains on every
 * machine. */
enum chain_family {
    CHAIN_CNN,       /* stages of equal layers: bytes halve, and durations vary, from stage to stage */
    CHAIN_RANDOM,    /* every layer different */
    CHAIN_IDENTICAL, /* a transformer's blocks */
    CHAIN_FAMILIES
};
extern const char *const chain_family_names[CHAIN_FAMILIES];

struct test_chain_random {
    enum chain_family family;
    uint64_t seed;
    uint32_t layers;    /* at least 1 */
    double memory;      /* position between the least memory with all layers recomputed (0) and the memory with all
                           layers kept (1); 0.3 by default */
    double link;        /* bandwidth relative to a link that swaps everything during computation; 0: no link */
};

/* Makes a chain. Release it with chain_release(). */
MUST_CHECK enum status test_chain_random(const struct test_chain_random *options, struct chain *out,
                                    struct error *err);

#endif
