/*
 * Chooses the lengths of a parallel job's chunks of layers, if the job leaves them to the planner
 * (models/job/parallel.h). Partition "balanced" makes the slowest chunk as fast as possible. Partition "pipedream"
 * chooses the stages and their replicas as well, unless the job gives the number of replicas of each of several stages.
 */
#ifndef SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_CUT_H
#define SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_CUT_H

#include "models/hardware/hardware.h"
#include "models/job/job.h"
#include "planner/parallel/pipeline/stage_chain.h"

/* Sets the lengths of all chunks of the job. Errors: STATUS_INFEASIBLE if no cut fits the devices; STATUS_BAD_INPUT if
 * the machine has too few devices or the replicas do not divide the minibatches; STATUS_LIMIT. */
MUST_CHECK enum status parallel_job_cut_choose(const struct hardware *hardware, struct job *job, struct error *err);

/* Makes the chain of layers that chunks consist of, timed on that device: blocks, the first and the last one with the
 * ends of the network, or the layers of a profile. The chain lives as long as `arena`. Errors: STATUS_LIMIT. */
MUST_CHECK enum status parallel_job_cut_chain(struct arena *arena, const struct job *job, const struct hardware *hardware,
                                              uint32_t device, struct stage_chain *out, struct error *err);

#endif
