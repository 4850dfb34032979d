/*
 * Stages, replicas and microbatches of a job that is spread, chosen together: partition "rannc" (models/parallel.h).
 *
 * The job says how many tensor groups it has in all, `pipeline` times `data`, and how many samples a minibatch has,
 * `microbatch` times `microbatches`. For each number of stages that divides the one, and of microbatches of a replica
 * (1, 2, 4, ... as long as they divide its samples), layers are cut so that the slowest stage is as fast as can be within
 * the devices' memory (planner/spread_cut.h); what ends a minibatch first by the planner's clock is taken, of equals the
 * fewest stages and microbatches. Networks that are known by a profile keep their microbatches, which nobody timed at
 * other sizes.
 *
 * RaNNC itself has a graph, not a chain: what it does first, joining operators into blocks of equal computation, gives it
 * the chain that networks have here, and the dynamic programme runs over the layers themselves. It lets stages have
 * unequal numbers of devices; synchronous pipelines here have as many replicas of each.
 *
 * Part of planner/spread.c; nobody else includes this.
 *
 * Source: Tanaka et al., RaNNC, IPDPS 2021, arXiv 2103.16063.
 */
#ifndef SPILLWAY_PLANNER_SPREAD_RANNC_H
#define SPILLWAY_PLANNER_SPREAD_RANNC_H

#include "models/hardware.h"
#include "models/job.h"

/* Errors: STATUS_INFEASIBLE where no choice fits the devices; STATUS_BAD_INPUT where the machine has too few of them, or
 * no direct links between those that need them; STATUS_LIMIT; STATUS_NO_MEMORY. */
MUST_CHECK enum status spread_rannc_choose(const struct hardware *hardware, struct job *job, struct error *err);

#endif
