/*
 * Without a policy or options for spilling, states move no longer than they must.
 *
 * On one device several policies can run the same jobs: spilled and interleaved; one job after the other, with fitting
 * states staying for a job's whole run; or with all of a job's state on the device, one job at a time or several. A
 * subproblem of one device (planner/strategy/subproblem.h) takes the way that ends first, or near the lower bound.
 *
 * On several devices jobs are placed *resident*: each has one device throughout, and a device's jobs share it in one of
 * these ways. Or some jobs are resident, and the others are spilled on the remaining devices. The plan is made as for a
 * file whose jobs name these "devices" (planner/strategy/reservation.h). Spilling all jobs over all devices balances
 * better, resident placement copies less.
 *
 * Divisions are found by LPT (resident_divide.h); the most promising are planned. The planner's clock compares them,
 * with copies of spilled states as slow as when all busy devices copy at once; resident states are copied once each
 * way, undisturbed.
 */
#ifndef SPILLWAY_PLANNER_STRATEGY_RESIDENT_H
#define SPILLWAY_PLANNER_STRATEGY_RESIDENT_H

#include "planner/strategy/subproblem.h"

/* Returns true when no job names devices or parallelism. */
bool resident_all_free(const struct job_set *jobs);

/* Returns true for free jobs whose options leave open how states stay. */
bool resident_applies(const struct hardware *hardware, const struct job_set *jobs,
                      const struct planner_options *options);

/*
 * Plans as planner_plan() without `resident`, or better by the planner's clock. The lower bound holds for any division.
 */
MUST_CHECK enum status resident_plan(struct hardware *hardware, struct job_set *jobs,
                                     const struct planner_options *options, struct plan *out, struct error *err);

#endif
