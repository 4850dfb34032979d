/*
 * Chooses stages, replicas and microbatches of a parallel job together: partition "rannc" (models/job/parallel.h).
 *
 * The job gives the number of tensor groups, `pipeline` times `data`, and the samples of a minibatch, `microbatch`
 * times `microbatches`. A choice is a number of microbatches (1, 2, 4, ... while they divide the samples), a number of
 * stages, and their replicas:
 *
 *   equal     `data` replicas of each stage, if the stages divide the groups; each replica has its share of the
 *             microbatches
 *   unequal   `replicas` (models/job/parallel.h), which take the microbatches in turn: for each number of stages the
 *             result of planner/parallel/parallel_job_replicas.h. With few groups, replicas then move one at a time to
 *             another stage while the minibatch gets shorter
 *
 * Layers are cut so that the slowest stage is as fast as possible within the devices' memory
 * (planner/parallel/parallel_job_cut.h). The choice whose minibatch ends first by the planner's clock wins; among equal
 * ones, a choice with equal replicas, then the fewest stages. Networks given by a profile keep their microbatches,
 * because the profile has no times of other sizes.
 *
 * Semantics: synchronous 1F1B with a flush. The gradients of a minibatch are the gradients of one device with the sums
 * in another order.
 *
 * RaNNC starts from a graph of operators, which it joins into blocks; networks here are chains already. Blocks are used
 * only to choose replicas; boundaries of stages move layer by layer. Unequal replicas need whole states on every rank
 * (`zero` 0, no offloading).
 *
 * Source: Tanaka et al., RaNNC, IPDPS 2021, arXiv 2103.16063.
 */
#ifndef SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_RANNC_H
#define SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_RANNC_H

#include "models/hardware/hardware.h"
#include "models/job/job.h"

/* Sets the choice in `job`. Errors: STATUS_INFEASIBLE if no choice fits the devices; STATUS_BAD_INPUT if the machine
 * has too few devices, or no path between devices that exchange data; STATUS_LIMIT. */
MUST_CHECK enum status parallel_job_rannc_choose(const struct hardware *hardware, struct job *job, struct error *err);

#endif
