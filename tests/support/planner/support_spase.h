/* SPASE instances for tests, and the optimum of tiny ones by trying everything. */
#ifndef SPILLWAY_TESTS_SUPPORT_PLANNER_SUPPORT_SPASE_H
#define SPILLWAY_TESTS_SUPPORT_PLANNER_SUPPORT_SPASE_H

#include "planner/saturn/spase/spase.h"

/* From JSON with ' for "; fails the test when it is refused. Release it with spase_release(). */
void test_spase(const char *text, struct spase *out);

/* The least makespan over all orders, modes and nodes; no gang may span. Only for some four jobs. */
int64_t test_spase_brute_force(const struct spase *in);

/* Random and small: up to `jobs` jobs, one or two classes, one to three nodes, gangs of one to three. */
void test_spase_tiny(uint64_t seed, uint32_t jobs, struct spase *out);

/* The instance as JSON on standard output, for the report of a failure. */
void test_spase_print(const struct spase *in);

#endif
