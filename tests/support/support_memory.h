/* Compares the device memory of a run with its plan. */
#ifndef SPILLWAY_TESTS_SUPPORT_SUPPORT_MEMORY_H
#define SPILLWAY_TESTS_SUPPORT_SUPPORT_MEMORY_H

#include "exec/run/run.h"

/* Checks, for a complete run, that each device's arena has the planned size and each use its planned bytes. */
void assert_memory_as_planned(const struct plan *plan, const struct run_result *result);

#endif
