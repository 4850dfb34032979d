/*
 * The seed of a property test: from the environment variable SPILLWAY_SEED, or from the clock, and
 * printed at once, so that a failing run can be repeated.
 */
#ifndef SPILLWAY_TESTS_SUPPORT_SUPPORT_SEED_H
#define SPILLWAY_TESTS_SUPPORT_SUPPORT_SEED_H

#include <stdbool.h>
#include <stdint.h>

uint64_t support_seed(const char *test_name);

/* Under the sanitizers a round takes three times as long. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SUPPORT_SANITIZED true
#else
#define SUPPORT_SANITIZED false
#endif

/* Rounds of a long property test: a quarter of them under the sanitizers. */
#define SUPPORT_ROUNDS(all) (SUPPORT_SANITIZED ? ((all) + 3) / 4 : (all))

/* Returns SUPPORT_ROUNDS(few), or in the slow set, whose environment has SPILLWAY_ROUNDS, SUPPORT_ROUNDS(all). A test
 * with "all rounds: slow" in its first line is in both sets. */
uint32_t support_rounds(uint32_t few, uint32_t all);

#endif
