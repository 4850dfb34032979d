/* Execution traces in a folder of their own: writing them, and a plan there and back. */
#ifndef SPILLWAY_TESTS_SUPPORT_SIM_SUPPORT_CHAKRA_H
#define SPILLWAY_TESTS_SUPPORT_SIM_SUPPORT_CHAKRA_H

#include "planner/plan.h"
#include "sim/chakra/chakra_import.h"

/* A new folder (support_path() of support_traces.h); what is in it goes with it. */
void test_chakra_begin(void);
void test_chakra_end(void);

/* The prefix of traces in it. */
const char *test_chakra_prefix(void);

/* Write rank `rank`; nodes without a name get one. */
void test_chakra_write(uint32_t rank, const struct chakra_node *nodes, uint32_t count);
void test_chakra_write_bytes(const char *suffix, const void *bytes, size_t length);

/* Seconds of the traces on a machine; with spans, which pass trace_check(). Fails the test with the message. */
double test_chakra_makespan(const struct hardware *hardware);
/* The message that they are refused with. */
const char *test_chakra_complaint(const struct hardware *hardware);

/* The plan exported, read and simulated on its own machine, in a folder for that alone. */
double test_chakra_there_and_back(const struct plan *plan);

#endif
