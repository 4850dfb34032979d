/*
 * Parallel jobs (models/job/parallel.h) as a plan: the runs of layers are the shards, each
 * resident on the gang of its stage. For every run and microbatch, on every device of the gang:
 *
 *   FORWARD           [P2P boundary, or a part of it and all-gather; where stages block, behind a computation without work
 *                     that acquires its place] forward pass [collectives of the tensor group]
 *   BACKWARD          [P2P gradient of the boundary] backward pass, with collectives that it hides:
 *                     BACKWARD_INPUT, those beside BACKWARD_WEIGHT, and a BACKWARD without work, behind
 *                     which the gradient is there
 *   BACKWARD_INPUT, BACKWARD_WEIGHT   the same in two units, in zero-bubble schedules
 * for every run and minibatch
 *   UPDATE            [all-reduce of what tensor groups have whole] the optimizer's step, on the rank's share if
 *                     states are split [then the all-gather of the weights, where each rank has them whole]
 *                     Of states that are offloaded on the host [read] step [write]
 *   REFRESH           likewise, of weights that stay: [read] up [all-gather]
 * and between data-parallel ranks, beside other runs' passes, by what `zero` splits (models/job/parallel.h):
 *   REDUCE            levels 0 and 1: all-reduce (reduce-scatter) of the gradient behind the last microbatch's
 *                     backward pass; 2 and 3: reduce-scatter of each microbatch's, added to the share
 *                     Where states are offloaded (models/job/parallel_offload.h) of each microbatch: [reduce-scatter],
 *                     down to the host, [added to a sum]
 *                     Compressed gradients (models/cost/compression.h) are encoded in front of it
 *   JOIN              of a tied table that the first and the last stage have both: all-reduce over these two, in groups
 *                     of ranks of both (models/job/parallel_memory.h), behind REDUCE and in front of both UPDATEs. In
 *                     synchronous schedules, with nothing offloaded; elsewhere it is left out, and costs nothing
 *   GATHER            level 3: all-gather of the weights for one pass that multiplies by them; of offloaded ones
 *                     [read] up [all-gather]
 *
 * A LOAD before and a STORE after begin and end the life of states and gradients; the first of each stage lasts as
 * long as its states take to come from host memory or to go back (planner/plan_charges.h). Batches and losses are
 * not in such plans.
 *
 *   access of          LOAD  FORWARD  BACKWARD  _INPUT  _WEIGHT  UPDATE  STORE   GATHER  REDUCE
 *   state               aw      r        r        r                rw     rx       r
 *   gradient            aw               rw                rw      rw     rx               rw
 *   boundary s                  r        rx       r        rx                 (s > 0)
 *   boundary s + 1              aw                                            (not behind the last run)
 *   activations                 aw       rx       r        rx
 *   gradient of s + 1                    rx       r        rx                 (likewise)
 *   gradient of s                        aw       aw                          (s > 0)
 *   workspace                   awx      awx      awx      awx
 * and in place of the state or the gradient that ranks have shares of
 *   whole weights               rx       rx       rx                               aw
 *   whole gradient                       aw                aw                               rx
 *
 * Asynchronous schedules (planner/parallel/parallel_job_async.h) have the weights apart from the state: as many versions as
 * there are at once, each in a buffer of PARAMETERS. LOAD makes the first; passes read the one of their minibatch, the last of
 * them with x; UPDATE reads the newest and makes the next, or changes it in place where there is one.
 *
 * Variants tell microbatches apart that are under way at the same time. plan_check() follows which
 * microbatch every buffer holds, with how many updates each pass finds its weights, and how many
 * microbatches are in a gradient when it is reduced and used: schedules are synchronous, or as stale as
 * models/job/parallel.h says.
 */
#ifndef SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_H
#define SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_H

#include "planner/walk/plan_build.h"

/*
 * Add all jobs, all of which are parallel, to the builder, with estimate and lower bound.
 * Errors: STATUS_INFEASIBLE, naming job, stage and bytes missing; STATUS_BAD_INPUT where the machine has too
 * few devices or no way between those that exchange something; STATUS_NO_MEMORY, STATUS_LIMIT.
 */
MUST_CHECK enum status parallel_job_plan(struct plan_builder *builder, struct error *err);

#endif
