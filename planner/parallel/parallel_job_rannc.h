/*
 * Partition "rannc" (models/job/parallel.h): chooses stages, replicas and microbatches together.
 *
 * The job gives the tensor groups, `pipeline` times `data`, and a minibatch's samples, `microbatch` times
 * `microbatches`. A choice is a number of microbatches (powers of 2 that divide the samples), of stages, and their
 * replicas:
 *
 *   equal     `data` replicas of each stage, if the stages divide the groups; each replica has its share of the
 *             microbatches
 *   unequal   `replicas` (models/job/parallel.h), which take the microbatches in turn: for each number of stages the
 *             result of planner/parallel/parallel_job_replicas.h. With few groups, replicas then move one at a time to
 *             another stage while the minibatch gets shorter
 *
 * Layers are cut so that the slowest stage is as fast as memory allows (planner/parallel/parallel_job_cut.h). The
 * choice with the shortest minibatch by the planner's clock wins, then equal replicas, then the fewest stages. Networks
 * given by a profile keep their microbatches: it has no times of other sizes.
 *
 * Semantics: synchronous 1F1B with a flush: the gradients of one device with the sums in another order.
 *
 * RaNNC joins a graph of operators into blocks; networks here are chains already. Blocks only choose replicas; stage
 * boundaries move layer by layer. Unequal replicas need whole states on every rank (`zero` 0, no offloading).
 *
 * Source: Tanaka et al., RaNNC, IPDPS 2021, arXiv 2103.16063.
 */
#ifndef SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_RANNC_H
#define SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_RANNC_H

#include "models/hardware/hardware.h"
#include "models/job/job.h"

/* Sets the choice in `job`. Errors: STATUS_INFEASIBLE if none fits; STATUS_BAD_INPUT for too few devices, or no path
 * between devices that exchange data; STATUS_LIMIT. */
MUST_CHECK enum status parallel_job_rannc_choose(const struct hardware *hardware, struct job *job, struct error *err);

#endif
