/*
 * Jobs that are spread over devices (models/parallel.h) as a plan: the runs of layers are the shards, each
 * resident on the gang of its stage. For every run and microbatch, on every device of the gang:
 *
 *   FORWARD           [P2P boundary] forward pass [collectives of the tensor group]
 *   BACKWARD          [P2P gradient of the boundary] backward pass, with collectives that it hides:
 *                     BACKWARD_INPUT, those beside BACKWARD_WEIGHT, and a BACKWARD without work, behind
 *                     which the gradient is there
 *   BACKWARD_INPUT, BACKWARD_WEIGHT   the same in two units, in zero-bubble schedules
 * and for every run and minibatch
 *   UPDATE            [all-reduce of the gradient over the data-parallel ranks] the optimizer's step; with
 *                     `zero` 1 reduce-scatter, the step on a share, all-gather of the weights
 *
 * LOAD in front and STORE behind begin and end the life of states and gradients; they cost nothing: weights
 * are where they are used. Batches and losses are not in such plans.
 *
 *   access of          LOAD  FORWARD  BACKWARD  _INPUT  _WEIGHT  UPDATE  STORE
 *   state               aw      r        r        r                rw     rx
 *   gradient            aw               rw                rw      rw     rx
 *   boundary s                  r        rx       r        rx                 (s > 0)
 *   boundary s + 1              aw                                            (not behind the last run)
 *   activations                 aw       rx       r        rx
 *   gradient of s + 1                    rx       r        rx                 (likewise)
 *   gradient of s                        aw       aw                          (s > 0)
 *   workspace                   awx      awx      awx      awx
 *
 * Variants tell microbatches apart that are under way at the same time. plan_check() follows which
 * microbatch every buffer holds, with how many updates each pass finds its weights, and how many
 * microbatches are in a gradient when it is reduced and used: schedules are synchronous.
 */
#ifndef SPILLWAY_PLANNER_SPREAD_H
#define SPILLWAY_PLANNER_SPREAD_H

#include "planner/plan_build.h"

/*
 * Add all jobs, which are spread all of them, to the builder, with estimate and lower bound.
 * Errors: STATUS_INFEASIBLE, naming job, stage and bytes missing; STATUS_BAD_INPUT where the machine has too
 * few devices or no direct links between those that need them; STATUS_NO_MEMORY, STATUS_LIMIT.
 */
MUST_CHECK enum status spread_plan(struct plan_builder *builder, struct error *err);

#endif
