/*
 * Good schedules, anytime: baselines, list schedules, beams of growing width, and a
 * large-neighbourhood search in which the end of the best schedule is made anew, by a beam or, where
 * few tasks are left, by branch and bound; or, for many tasks whose set-ups matter, local search by small
 * changes (local_search.h). Stops where it meets the lower bound.
 *
 * Deterministic for a seed and a number of iterations without a limit of time. With one, it is cut short,
 * and local search cools down within it.
 */
#ifndef SPILLWAY_PLANNER_SCHEDULE_SEARCH_H
#define SPILLWAY_PLANNER_SCHEDULE_SEARCH_H

#include <stdatomic.h>

#include "planner/solve/bounds/instance_bound.h"
#include "planner/solve/instance/timetable.h"

struct schedule_search_options {
    uint64_t seed;
    uint32_t made;       /* iterations that were made before: steps and *value are what they found */
    uint32_t iterations; /* in all; 0: the baselines alone */
    double until_s;      /* on the clock of base/process/progress.h; HUGE_VAL: none */
    const atomic_bool *stop; /* when set by another thread it is as if the time had ended; NULL: never */
};

/* Makespans of many tasks with copies: does the search end in local search where they leave a gap? */
bool schedule_search_is_local(const struct instance *in);

/*
 * steps: out, (in->task_count); *value its objective; *iterations: those that were made, in all.
 * Errors: STATUS_NO_MEMORY.
 */
MUST_CHECK enum status schedule_search(const struct instance *in, const struct instance_bounds *bounds,
                                       const struct schedule_search_options *options,
                                       struct dispatch_step *steps, int64_t *value,
                                       uint32_t *iterations, struct error *err);

#endif
