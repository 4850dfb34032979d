/* Checks that a machine can run a parallel job that offloads. */
#ifndef SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_OFFLOAD_H
#define SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_OFFLOAD_H

#include "models/hardware/hardware.h"
#include "models/job/parallel_offload.h"

/*
 * Errors: STATUS_BAD_INPUT, with the names of job and machine, if the speed of the host's processor is unknown or the
 * machine lacks the storage that the job offloads to.
 */
MUST_CHECK enum status parallel_job_offload_check(const struct hardware *hardware, const struct job *job, struct error *err);

#endif
