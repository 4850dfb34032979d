/*
 * Resident placement: without a policy or options for spilling, states move no longer than they must.
 *
 * On one device several policies are possible ways to run the same jobs: one spills them, interleaved; one runs them
 * one after the other, with the states that fit staying for a job's whole run; others keep all of a job's state on the
 * device, one job at a time or several. A subproblem of one device (planner/strategy/subproblem.h) takes the way that
 * ends first, or one that ends near the lower bound.
 *
 * On several devices jobs are placed *resident*: each has one device from its first minibatch to its last, and the jobs
 * of a device share it in one of these ways. Or some jobs are resident, and the others are spilled and run on the
 * remaining devices. A file whose jobs name "devices" (planner/strategy/reservation.h) describes the same, and the plan
 * is the plan of such a file. Spilling all jobs over all devices balances better, resident placement copies less.
 *
 * Divisions are found by LPT (resident_divide.h); the most promising are planned. Comparisons use the planner's own
 * clock, with copies of spilled states as slow as when all busy devices copy at once; resident states are copied once
 * each way, undisturbed.
 */
#ifndef SPILLWAY_PLANNER_STRATEGY_RESIDENT_H
#define SPILLWAY_PLANNER_STRATEGY_RESIDENT_H

#include "planner/strategy/subproblem.h"

/* Returns true when no job names devices or parallelism. */
bool resident_all_free(const struct job_set *jobs);

/* Returns true for free jobs whose options leave open how states stay. */
bool resident_applies(const struct hardware *hardware, const struct job_set *jobs, const struct planner_options *options);

/*
 * Plans as planner_plan() without `resident`, or makes a plan that ends earlier by the planner's clock. The lower bound
 * holds for every plan of these jobs, for any division.
 */
MUST_CHECK enum status resident_plan(struct hardware *hardware, struct job_set *jobs,
                                     const struct planner_options *options, struct plan *out, struct error *err);

#endif
