/*
 * Jobs that have devices for themselves while they run, as a plan with reservations (planner/plan.h).
 *
 *     "jobs": [{"name": "a", "parallel": {"pipeline": 2}, "devices": [0, 1], ...},
 *              {"name": "b", "parallel": {"data": 2}, "devices": [2, 3], ...},
 *              {"name": "c", "parallel": {"data": 2}, "devices": [1, 2], ...},
 *              {"name": "d", ...}, {"name": "e", ...}]
 *
 * A parallel job has the devices that it names, or as many as it needs from its first one on. It begins when
 * the jobs in front of it in the file have ended that have one of them: a and b side by side, c behind both. All
 * its devices begin together (gang start).
 *
 * Jobs that are not parallel, and follow each other in having the same devices, share these: their shards are
 * spilled and run on them in the order of a policy, or stay on the device where it is one (planner/strategy/resident.h). Those
 * that name none have the devices that no job names, or all where there are none left, behind the others: d and e have device 4
 * of a machine of five.
 *
 * A file is read like this where some job names devices, some are parallel and some are not, or some are parallel on a
 * single device (parallel_is_alone()), on which they stay. Where all are parallel on more and none names any, jobs on the
 * same devices take turns by minibatches (planner/parallel/parallel_job.h).
 */
#ifndef SPILLWAY_PLANNER_RESERVATION_H
#define SPILLWAY_PLANNER_RESERVATION_H

#include "planner/planner_options.h"

/* True when a job names its devices, or only some jobs are parallel, or a parallel job needs only one device. */
bool reservation_applies(const struct hardware *hardware, const struct job_set *jobs, const struct planner_options *options);

/* The name of such plans' policy. */
extern const char reservation_policy[]; /* "settled" */

/*
 * Takes hardware and jobs over, also on failure. Options are those of the jobs that are not parallel.
 * Errors: those of planner_plan(); STATUS_BAD_INPUT for devices that the machine does not have, and for options
 * that reservations do not go with: instances, timetables, swapped activations.
 */
MUST_CHECK enum status reservation_plan(struct hardware *hardware, struct job_set *jobs,
                                        const struct planner_options *options, struct plan *out, struct error *err);

#endif
