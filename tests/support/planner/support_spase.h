/* SPASE instances for tests, and the optimum of tiny ones by exhaustive search. */
#ifndef SPILLWAY_TESTS_SUPPORT_PLANNER_SUPPORT_SPASE_H
#define SPILLWAY_TESTS_SUPPORT_PLANNER_SUPPORT_SPASE_H

#include "planner/saturn/spase/spase.h"

/* Reads an instance from JSON with ' for ". Fails the test if it is refused. Release it with spase_release(). */
void test_spase(const char *text, struct spase *out);

/* Returns the least makespan over all orders, modes and nodes; gangs must not span nodes. Only for about four jobs. */
int64_t test_spase_brute_force(const struct spase *in);

/* Makes a small random instance: up to `jobs` jobs, one or two classes, one to three nodes, gangs of one to three. */
void test_spase_tiny(uint64_t seed, uint32_t jobs, struct spase *out);

/* Prints the instance as JSON on standard output, for the report of a failure. */
void test_spase_print(const struct spase *in);

#endif
