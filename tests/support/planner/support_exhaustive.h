/* The optimum of tiny shard-scheduling instances by trying everything, with nothing of planner/ but its structs. */
#ifndef SPILLWAY_TESTS_SUPPORT_PLANNER_SUPPORT_EXHAUSTIVE_H
#define SPILLWAY_TESTS_SUPPORT_PLANNER_SUPPORT_EXHAUSTIVE_H

#include "planner/solve/instance/instance.h"

enum { EXHAUSTIVE_TASKS_MAX = 8 };

/* The least makespan, with the bytes over the bridge, of at most EXHAUSTIVE_TASKS_MAX tasks. */
int64_t test_exhaustive(const struct instance *in);

#endif
