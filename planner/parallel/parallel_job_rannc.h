/*
 * Stages, replicas and microbatches of a parallel job, chosen together: partition "rannc" (models/job/parallel.h).
 *
 * The job says how many tensor groups it has in all, `pipeline` times `data`, and how many samples a minibatch has,
 * `microbatch` times `microbatches`. Each choice is a number of microbatches (1, 2, 4, ... as long as they divide the
 * samples), a number of stages, and replicas of these:
 *
 *   equal     `data` of each stage, where the stages divide the groups; each has its share of the microbatches
 *   unequal   `replicas` (models/job/parallel.h), which take the microbatches in turn: for each number of stages those of
 *             planner/parallel/parallel_job_replicas.h, and from there, with few groups, one replica at a time to another stage as long
 *             as that ends sooner
 *
 * Layers are cut so that the slowest stage is as fast as can be within the devices' memory (planner/parallel/parallel_job_cut.h); what
 * ends a minibatch first by the planner's clock is taken, of equals what has equal replicas, then the fewest stages.
 * Networks that are known by a profile keep their microbatches, which nobody timed at other sizes.
 *
 * Semantics: synchronous, 1F1B with a flush; gradients of a minibatch are those of one device, in another order of sums.
 * Memory of a rank: states of its stage's layers, whole or as `zero` leaves them; activations of as many microbatches as
 * are under way, ceil(groups from its stage on / replicas of it); the workspace of a pass; boundaries.
 *
 * RaNNC itself has a graph of operators, which it first joins into atomic components and these into blocks of equal
 * computation: that gives it the chain that networks have here. Blocks serve replicas alone, boundaries between stages are
 * moved layer by layer. Unequal replicas go with whole states on every rank (`zero` 0, no offloading).
 *
 * Part of planner/parallel/parallel_job.c; nobody else includes this.
 *
 * Source: Tanaka et al., RaNNC, IPDPS 2021, arXiv 2103.16063.
 */
#ifndef SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_RANNC_H
#define SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_RANNC_H

#include "models/hardware/hardware.h"
#include "models/job/job.h"

/* Errors: STATUS_INFEASIBLE where no choice fits the devices; STATUS_BAD_INPUT where the machine has too few of them, or
 * no way between those that exchange something; STATUS_LIMIT; STATUS_NO_MEMORY. */
MUST_CHECK enum status parallel_job_rannc_choose(const struct hardware *hardware, struct job *job, struct error *err);

#endif
