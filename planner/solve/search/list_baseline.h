/* Schedules made in one pass, blind to set-ups: starting points of searches, and baselines to compare with. */
#ifndef SPILLWAY_PLANNER_SOLVE_SEARCH_LIST_BASELINE_H
#define SPILLWAY_PLANNER_SOLVE_SEARCH_LIST_BASELINE_H

#include "planner/solve/instance/timetable.h"

/*
 * Makes the baseline, Hydra's Sharded-LRTF, blind to copies: a device that starts a task picks as its next job the idle
 * one with the most remaining computation (its own on ties). *value is INT64_MAX when the clock reads `until_s` before
 * the end; O(tasks * jobs). Source: Hydra, arXiv 2110.08633, Algorithm 2, with the look-ahead of its published code.
 */
MUST_CHECK enum status list_baseline_hydra(const struct instance *in, double until_s,
                                         struct dispatch_step *steps, int64_t *value,
                                         struct error *err);

/* Makes LRTF's schedule, which chooses when a device becomes free. Without copies its makespan is at most max(longest
 * chain, work / G + (1 - 1/G) longest task). */
MUST_CHECK enum status list_baseline_lrtf(const struct instance *in, double until_s,
                                        struct dispatch_step *steps, int64_t *value,
                                        struct error *err);

/* Schedules job after job, longest first, on the device that is free first and holds the task, for instances so large
 * that nothing else ends in time. O(tasks * devices). */
MUST_CHECK enum status list_baseline_whole(const struct instance *in, struct dispatch_step *steps,
                                         int64_t *value, struct error *err);

#endif
