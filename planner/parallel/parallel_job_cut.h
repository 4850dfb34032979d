/*
 * Chooses the lengths of a parallel job's chunks, if the job leaves them to the planner (models/job/parallel.h).
 * Partition "balanced" makes the slowest chunk as fast as possible. Partition "pipedream" also chooses stages and
 * replicas, unless the job gives the replicas of several stages.
 */
#ifndef SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_CUT_H
#define SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_CUT_H

#include "models/hardware/hardware.h"
#include "models/job/job.h"
#include "planner/parallel/pipeline/stage_chain.h"

/* Sets the lengths of all chunks. Errors: STATUS_INFEASIBLE if no cut fits; STATUS_BAD_INPUT for too few devices or
 * replicas that do not divide the minibatches; STATUS_LIMIT. */
MUST_CHECK enum status parallel_job_cut_choose(const struct hardware *hardware, struct job *job, struct error *err);

/* Makes the chain of layers, timed on that device: blocks, the first and last with the network's ends, or a profile's
 * layers. It lives as long as `arena`. Errors: STATUS_LIMIT. */
MUST_CHECK enum status parallel_job_cut_chain(struct arena *arena, const struct job *job,
                                              const struct hardware *hardware,
                                              uint32_t device, struct stage_chain *out, struct error *err);

#endif
