/* What a machine must have for a parallel job that offloads. */
#ifndef SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_OFFLOAD_H
#define SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_OFFLOAD_H

#include "models/hardware/hardware.h"
#include "models/job/parallel_offload.h"

/*
 * Errors: STATUS_BAD_INPUT, naming job and machine, where it is not known how fast the host's processor is, or where
 * there is no storage for what is to live there.
 */
MUST_CHECK enum status parallel_job_offload_check(const struct hardware *hardware, const struct job *job, struct error *err);

#endif
