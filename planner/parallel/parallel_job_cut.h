/*
 * Runs of layers of unequal length: what a parallel job leaves to the planner (models/job/parallel.h). With partition
 * "balanced" the slowest of them is as fast as can be; with "pipedream" stages and their replicas are chosen, too, unless
 * the job says how many replicas each of several stages has. Part of planner/parallel/parallel_job.c; nobody else includes
 * this.
 */
#ifndef SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_CUT_H
#define SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_CUT_H

#include "models/hardware/hardware.h"
#include "models/job/job.h"
#include "planner/parallel/pipeline/stage_chain.h"

/* Lengths for all runs of the job. Errors: STATUS_INFEASIBLE where no cut fits the devices; STATUS_BAD_INPUT where the
 * machine has too few devices, or minibatches that the replicas do not divide; STATUS_LIMIT; STATUS_NO_MEMORY. */
MUST_CHECK enum status parallel_job_cut_choose(const struct hardware *hardware, struct job *job, struct error *err);

/* What runs are made of, on that device: blocks, the ends of the network with the first and the last of them, or layers of a
 * profile. Lives as long as `arena`. Errors: STATUS_LIMIT; STATUS_NO_MEMORY. */
MUST_CHECK enum status parallel_job_cut_chain(struct arena *arena, const struct job *job, const struct hardware *hardware,
                                              uint32_t device, struct stage_chain *out, struct error *err);

#endif
