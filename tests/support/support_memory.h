/* What a run did with the memory of its devices, held against its plan. */
#ifndef SPILLWAY_TESTS_SUPPORT_SUPPORT_MEMORY_H
#define SPILLWAY_TESTS_SUPPORT_SUPPORT_MEMORY_H

#include "exec/run/run.h"

/* Each device's arena is as large as planned and was handed out for what it was planned for, to the
 * byte. For complete runs. */
void assert_memory_as_planned(const struct plan *plan, const struct run_result *result);

#endif
