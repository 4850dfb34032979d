/*
 * Schedules made front to back: list scheduling that knows of set-ups, and a beam search over it.
 *
 * One pass puts task after task on the device that is free first. A candidate is judged by the slack
 * that it spends (see instance_bound.h: idle time and set-ups beyond what the bound says must be) and
 * by a priority of its job: most remaining computation first for the makespan, least by weight for
 * sums of ends, least time to spare for deadlines. With a width above one the best partial schedules
 * are carried on side by side (beam search), those that cannot beat the best known value left out.
 */
#ifndef SPILLWAY_PLANNER_LIST_SEARCH_H
#define SPILLWAY_PLANNER_LIST_SEARCH_H

#include "planner/instance_bound.h"
#include "planner/timetable.h"

struct list_rule {
    uint32_t width;       /* partial schedules side by side; 1: one pass */
    double priority;      /* ticks of slack that the whole range of priorities is worth */
    double noise;         /* priorities are perturbed by up to this share */
    bool every_device;    /* consider each job's best device too, not only the one free first */
    uint64_t seed;        /* of the noise */
};

struct list_search; /* opaque: bounds, chains' remaining times, room for beams */

/* `in` and `bounds` are borrowed. `width_max`: the widest beam that will be asked for.
 * Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status list_search_create(const struct instance *in,
                                          const struct instance_bounds *bounds, uint32_t width_max,
                                          struct list_search **out, struct error *err);
void list_search_destroy(struct list_search *search); /* NULL is fine */

/*
 * Complete the order steps[0 .. fixed) in steps[] (in->task_count entries). Only schedules of a value
 * below `below` are looked for (INT64_MAX: any). Until the clock reads `until_s` (base/progress.h);
 * a pass of width 1 with `below` INT64_MAX is always carried through.
 * Returns whether one was found; *value is then its objective. Deterministic but for `until_s`.
 */
bool list_search_run(struct list_search *search, const struct list_rule *rule, uint32_t fixed,
                     int64_t below, double until_s, struct dispatch_step *steps, int64_t *value);

/* Computation and last copy out from task `position` of a job to its end, each task where it is
 * fastest. Borrowed by row: (length + 1) entries. */
const int64_t *list_search_remaining(const struct list_search *search, uint32_t job);

/*
 * Hydra's Sharded-LRTF, blind to copies: when a device starts a task it picks its next job, the idle
 * one with the most remaining computation (its own on ties). The baseline. *value is INT64_MAX when the
 * clock reads `until_s` before it is done; O(tasks * jobs).
 * Source: Hydra, arXiv 2110.08633, Algorithm 2, with the look-ahead of its published code.
 */
MUST_CHECK enum status list_search_hydra(const struct instance *in, double until_s,
                                         struct dispatch_step *steps, int64_t *value,
                                         struct error *err);

/* LRTF that chooses when a device becomes free, without looking ahead: of a makespan of at most
 * max(longest chain, work / G + (1 - 1/G) longest task) where nothing is copied. */
MUST_CHECK enum status list_search_lrtf(const struct instance *in, double until_s,
                                        struct dispatch_step *steps, int64_t *value,
                                        struct error *err);

/* Job after job, the longest first, each on the device that is free first (and holds the task): for
 * instances so large that nothing else is done in time. O(tasks * devices). */
MUST_CHECK enum status list_search_whole(const struct instance *in, struct dispatch_step *steps,
                                         int64_t *value, struct error *err);

#endif
