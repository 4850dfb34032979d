/* Execution traces in a folder of their own: written, and made from a plan and read back. */
#ifndef SPILLWAY_TESTS_SUPPORT_SIM_SUPPORT_CHAKRA_H
#define SPILLWAY_TESTS_SUPPORT_SIM_SUPPORT_CHAKRA_H

#include "planner/plan.h"
#include "sim/chakra/chakra_import.h"

/* Make a new folder (support_path() of support_traces.h), and remove it with its files. */
void test_chakra_begin(void);
void test_chakra_end(void);

/* Returns the prefix of traces in the folder. */
const char *test_chakra_prefix(void);

/* Writes rank `rank`; nodes without a name get one. */
void test_chakra_write(uint32_t rank, const struct chakra_node *nodes, uint32_t count);
void test_chakra_write_bytes(const char *suffix, const void *bytes, size_t length);

/* Returns the makespan of the traces on a machine, in seconds; the spans pass trace_check(). Fails the test with the
 * error's message. */
double test_chakra_makespan(const struct hardware *hardware);
/* Returns the message of the traces' refusal. */
const char *test_chakra_complaint(const struct hardware *hardware);

/* Exports the plan to a folder of its own, reads it back and simulates it on its own machine. */
double test_chakra_there_and_back(const struct plan *plan);

#endif
