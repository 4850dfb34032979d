/* Chains for tests: tiny ones from a seed, and the optimum by trying every choice. */
#ifndef SPILLWAY_TESTS_SUPPORT_PLANNER_SUPPORT_CHAIN_H
#define SPILLWAY_TESTS_SUPPORT_PLANNER_SUPPORT_CHAIN_H

#include "planner/chain/chain_schedule.h"

/* From text with ' for "; fails the test when it cannot be read. */
void test_chain(const char *text, struct chain *out);
void test_chain_print(const struct chain *chain);

/* Up to `layers_max` layers of small numbers, some without a link, some that need every byte. */
void test_chain_tiny(uint64_t seed, uint32_t layers_max, struct chain *out);

/* The same a hundred times as large, so that copies take many ticks and rounding them up tells. */
void test_chain_rounded(uint64_t seed, uint32_t layers_max, struct chain *out);

/* All 3^L choices, or those `allowed` (chain.h; NULL: all); INT64_MAX when none of them fits. */
int64_t test_chain_brute_force(const struct chain *chain, const uint8_t *allowed);

#endif
