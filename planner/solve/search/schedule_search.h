/*
 * Good schedules, anytime: baselines, list schedules, beams of growing width, and a large-neighbourhood search that
 * makes the best schedule's end again, by a beam or, for few tasks, by branch and bound. For many tasks whose set-ups
 * matter: local search by small changes (local_search.h). Stops when it meets the lower bound.
 *
 * Deterministic for a seed and a number of iterations without a time limit. Local search cools down within a time
 * limit.
 */
#ifndef SPILLWAY_PLANNER_SOLVE_SEARCH_SCHEDULE_SEARCH_H
#define SPILLWAY_PLANNER_SOLVE_SEARCH_SCHEDULE_SEARCH_H

#include <stdatomic.h>

#include "planner/solve/bounds/instance_bound.h"
#include "planner/solve/instance/timetable.h"

struct schedule_search_options {
    uint64_t seed;
    uint32_t made;       /* iterations made before; steps and *value are their result */
    uint32_t iterations; /* iterations in all; 0: the baselines only */
    double until_s;      /* on the clock of base/process/clock.h; HUGE_VAL: none */
    const atomic_bool *stop; /* set by another thread to end the search as at the time limit; NULL: never */
};

/* Returns true when local search takes part while a gap is left: for makespans of 16 to 160 tasks, which are annealed,
 * and of more tasks with copies, where the search ends in it. */
bool schedule_search_is_local(const struct instance *in);

/* Searches. steps: out, (in->task_count). *value: objective of steps. *iterations: iterations made, in all. */
MUST_CHECK enum status schedule_search(const struct instance *in, const struct instance_bounds *bounds,
                                       const struct schedule_search_options *options,
                                       struct dispatch_step *steps, int64_t *value,
                                       uint32_t *iterations, struct error *err);

#endif
