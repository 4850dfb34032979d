/*
 * Branch and bound over orders of tasks with streams (planner/solve/instance/dispatch_streams.h), depth first: the next
 * task of any job on any device, of devices without tasks only the first of their class. A state is left when the rest
 * of a job, of all computation, of the copies in or of the host's work already excludes a better makespan.
 */
#ifndef SPILLWAY_PLANNER_SOLVE_EXACT_STREAM_BRANCH_H
#define SPILLWAY_PLANNER_SOLVE_EXACT_STREAM_BRANCH_H

#include "planner/solve/instance/timetable.h"

enum { STREAM_BRANCH_TASKS_MAX = 32 };

static inline bool stream_branch_takes(const struct instance *in)
{
    return in->streams && in->task_count <= STREAM_BRANCH_TASKS_MAX;
}

struct stream_branch_options {
    uint64_t nodes_max; /* 0: no limit */
    double until_s;     /* on clock_s(); HUGE_VAL: none */
};

/* Improves steps[] and *value. *proven: no order is better. *nodes: states. */
MUST_CHECK enum status stream_branch(const struct instance *in, int64_t bound,
                                     const struct stream_branch_options *options, struct dispatch_step *steps,
                                     int64_t *value, bool *proven, uint64_t *nodes, struct error *err);

#endif
