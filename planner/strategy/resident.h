/*
 * Jobs that stay: where no policy is asked for, and nothing about spilling, states need not move for longer than
 * they must.
 *
 * On one device several policies are possible ways to run the same jobs: one streams them, interleaved; one has
 * them one behind the other, with what fits staying for a job's whole run; others keep all of a job's state on the
 * device, one job at a time or several. A subproblem of one device (planner/strategy/subproblem.h) takes the way that ends
 * first, or one that ends near the lower bound.
 *
 * On several devices jobs are placed *resident*: each has one device from its first minibatch to its last, those of a
 * device share it in one of these ways; or some are resident, and the others are spilled and run on the devices that are
 * left. That is what a file says whose jobs name "devices" (planner/strategy/reservation.h), and the plan is that of such a
 * file. Spilling all jobs over all devices balances better, resident placement copies less: with no more jobs than devices it
 * wins nearly always, with twelve equal jobs on eight it would leave four of them idle half of the time.
 *
 * Divisions are found by the longest job first to the device that is free first (LPT: Graham, SIAM J. Appl. Math.
 * 17, 1969), by the times of each job alone; with fewer resident devices they are filled up to an even share. The
 * most promising are planned. All that is compared is the planner's own clock, with copies of spilled states as slow as
 * they are when all devices that work copy at once; what stays is copied once each way, undisturbed.
 */
#ifndef SPILLWAY_PLANNER_RESIDENT_H
#define SPILLWAY_PLANNER_RESIDENT_H

#include "planner/strategy/subproblem.h"

/* Does no job say where or how it runs: named devices, parallelism? */
bool resident_all_free(const struct job_set *jobs);

/* True for free jobs whose options leave it open how states stay. */
bool resident_applies(const struct hardware *hardware, const struct job_set *jobs, const struct planner_options *options);

/*
 * As planner_plan(): what it makes without `resident`, or a plan that ends earlier by the planner's clock. The lower
 * bound holds for every plan of these jobs, however they are divided.
 */
MUST_CHECK enum status resident_plan(struct hardware *hardware, struct job_set *jobs,
                                     const struct planner_options *options, struct plan *out, struct error *err);

#endif
