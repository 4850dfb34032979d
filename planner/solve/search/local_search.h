/*
 * Improving a schedule from its middle: passes of small changes, each judged by what it does to the end.
 *
 * Everything behind a place in a schedule is known by how long it still takes from each of its tasks on
 * (the *tail*: the longest path to the end). A change of a few neighbouring tasks can therefore be judged
 * right behind the last of them, whatever the length of the schedule: where each device and each job goes
 * on, start plus tail is the makespan along that way. A pass goes through a schedule from front to back
 * and tries such changes at each task.
 *
 * For the makespan alone. Deterministic for a seed and a number of passes.
 */
#ifndef SPILLWAY_PLANNER_LOCAL_SEARCH_H
#define SPILLWAY_PLANNER_LOCAL_SEARCH_H

#include "planner/solve/instance/timetable.h"

struct local_search; /* opaque: a schedule with its tails, and room for trying changes */

struct local_rule {
    uint32_t reach;     /* tasks that a change may span, by order of start */
    double sharpness;   /* ticks below the makespan at which a way to the end counts 1/e as much */
    double temperature; /* worsenings of about that much, of the sum over all ways, are taken as well */
    uint64_t seed;
};

/* `in` is borrowed. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status local_search_create(const struct instance *in, struct local_search **out,
                                           struct error *err);
void local_search_destroy(struct local_search *search); /* NULL is fine */

/* Begin from this complete order (in->task_count steps). */
void local_search_begin(struct local_search *search, const struct dispatch_step *steps);

/* One pass, until the clock reads `until_s` (base/process/progress.h): then it goes through unchanged. Returns
 * the makespan of the order that is then current. */
int64_t local_search_run(struct local_search *search, const struct local_rule *rule, double until_s);

/* The current order: borrowed until the next call. */
const struct dispatch_step *local_search_order(const struct local_search *search);

#endif
