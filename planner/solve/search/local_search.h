/*
 * Passes of small changes to a schedule, each judged by its effect on the end.
 *
 * Every task has a *tail*, the longest path from its start to the end. So a change of neighbouring tasks can be judged
 * directly after the last of them: for each device and job that goes on there, start plus tail is the makespan along
 * that way. A pass tries such changes at each task.
 *
 * For the makespan only. Deterministic for a seed and a number of passes.
 */
#ifndef SPILLWAY_PLANNER_SOLVE_SEARCH_LOCAL_SEARCH_H
#define SPILLWAY_PLANNER_SOLVE_SEARCH_LOCAL_SEARCH_H

#include "planner/solve/instance/timetable.h"

struct local_search; /* opaque: a schedule with its tails, and memory for trials */

struct local_rule {
    uint32_t reach;     /* most tasks that a change spans, in the order of starts */
    double sharpness;   /* ticks below the makespan at which a way to the end weighs 1/e */
    double temperature; /* accepted worsening of the sum over all ways, about */
    uint64_t seed;
};

/* Creates a search. `in` is borrowed. */
MUST_CHECK enum status local_search_create(const struct instance *in, struct local_search **out,
                                           struct error *err);
void local_search_destroy(struct local_search *search); /* NULL is fine */

/* Starts from this complete order (in->task_count steps). */
void local_search_begin(struct local_search *search, const struct dispatch_step *steps);

/* Runs one pass. From the time `until_s` (base/process/clock.h) on, the pass changes nothing. Returns the makespan
 * of the current order. */
int64_t local_search_run(struct local_search *search, const struct local_rule *rule, double until_s);

/* Returns the current order, borrowed until the next call. */
const struct dispatch_step *local_search_order(const struct local_search *search);

#endif
