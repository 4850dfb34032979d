/*
 * Jobs that have devices for themselves while they run, as a plan with reservations (planner/plan.h).
 *
 *     "jobs": [{"name": "a", "parallel": {"pipeline": 2}, "devices": [0, 1], ...},
 *              {"name": "b", "parallel": {"data": 2}, "devices": [2, 3], ...},
 *              {"name": "c", "parallel": {"data": 2}, "devices": [1, 2], ...},
 *              {"name": "d", ...}, {"name": "e", ...}]
 *
 * A parallel job has the devices that it names, or as many as it needs from the first named one on. It begins after the
 * file's earlier jobs on its devices: a and b at the same time, c after both. All its devices begin together (gang
 * start).
 *
 * Consecutive jobs without parallelism that have the same devices share them: their shards are spilled in a policy's
 * order, or stay where there is only one device (planner/strategy/resident.h). Jobs that name none have the devices
 * that no job names, or all after the other jobs: d and e have device 4 of a machine of five.
 *
 * A file is read like this when a job names devices, when only some jobs are parallel, or when some are parallel on a
 * single device (parallel_is_alone()), on which they stay. When all are parallel on several devices and none names any,
 * jobs on the same devices take turns by minibatches (planner/parallel/parallel_job.h), if these hold all at once; else
 * they follow each other.
 */
#ifndef SPILLWAY_PLANNER_STRATEGY_RESERVATION_H
#define SPILLWAY_PLANNER_STRATEGY_RESERVATION_H

#include "planner/planner_options.h"

/* Returns true when a job names devices, or only some jobs are parallel, or a parallel job needs only one device. */
bool reservation_applies(const struct hardware *hardware, const struct job_set *jobs,
                         const struct planner_options *options);

/* The policy name of such plans. */
extern const char reservation_policy[]; /* "resident placement" */

/*
 * Takes ownership of hardware and jobs, also after an error. The options are for jobs that are not parallel. Errors: as
 * planner_plan(); STATUS_BAD_INPUT for devices that the machine lacks, and for options that exclude reservations:
 * instances, timetables, swapped activations.
 */
MUST_CHECK enum status reservation_plan(struct hardware *hardware, struct job_set *jobs,
                                        const struct planner_options *options, struct plan *out, struct error *err);

#endif
