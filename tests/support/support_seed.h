/*
 * The seed of a property test: from the environment variable SPILLWAY_SEED, or from the clock, and
 * printed at once, so that a failing run can be repeated.
 */
#ifndef SPILLWAY_TESTS_SUPPORT_SUPPORT_SEED_H
#define SPILLWAY_TESTS_SUPPORT_SUPPORT_SEED_H

#include <stdint.h>

uint64_t support_seed(const char *test_name);

/* Rounds of a long property test: a quarter of them under the sanitizers, where each takes three times as long. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SUPPORT_ROUNDS(all) (((all) + 3) / 4)
#else
#define SUPPORT_ROUNDS(all) (all)
#endif

#endif
