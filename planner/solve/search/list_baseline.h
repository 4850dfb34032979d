/*
 * Schedules made in one pass, blind to set-ups: what searches start from and are compared with.
 */
#ifndef SPILLWAY_PLANNER_LIST_BASELINE_H
#define SPILLWAY_PLANNER_LIST_BASELINE_H

#include "planner/solve/instance/timetable.h"

/*
 * Hydra's Sharded-LRTF, blind to copies: when a device starts a task it picks its next job, the idle
 * one with the most remaining computation (its own on ties). The baseline. *value is INT64_MAX when the
 * clock reads `until_s` before it is done; O(tasks * jobs).
 * Source: Hydra, arXiv 2110.08633, Algorithm 2, with the look-ahead of its published code.
 */
MUST_CHECK enum status list_baseline_hydra(const struct instance *in, double until_s,
                                         struct dispatch_step *steps, int64_t *value,
                                         struct error *err);

/* LRTF that chooses when a device becomes free, without looking ahead: of a makespan of at most
 * max(longest chain, work / G + (1 - 1/G) longest task) where nothing is copied. */
MUST_CHECK enum status list_baseline_lrtf(const struct instance *in, double until_s,
                                        struct dispatch_step *steps, int64_t *value,
                                        struct error *err);

/* Job after job, the longest first, each on the device that is free first (and holds the task): for
 * instances so large that nothing else is done in time. O(tasks * devices). */
MUST_CHECK enum status list_baseline_whole(const struct instance *in, struct dispatch_step *steps,
                                         int64_t *value, struct error *err);

#endif
