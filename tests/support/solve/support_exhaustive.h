/* The optimum of tiny shard-scheduling instances by exhaustive search, which uses only structs of planner/. */
#ifndef SPILLWAY_TESTS_SUPPORT_SOLVE_SUPPORT_EXHAUSTIVE_H
#define SPILLWAY_TESTS_SUPPORT_SOLVE_SUPPORT_EXHAUSTIVE_H

#include "planner/solve/instance/instance.h"

enum { EXHAUSTIVE_TASKS_MAX = 8 };

/* Returns the least makespan of at most EXHAUSTIVE_TASKS_MAX tasks, with the bytes over the bridge. */
int64_t test_exhaustive(const struct instance *in);

#endif
