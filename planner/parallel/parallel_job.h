/*
 * Plans of parallel jobs (models/job/parallel.h). The chunks of layers are the shards, each resident on its stage's
 * gang. For every chunk and microbatch:
 *
 *   FORWARD           [P2P boundary, or a part of it and all-gather; if stages block, after a computation without work
 *                     that acquires its place] forward pass [collectives of the tensor group]
 *   BACKWARD          [P2P gradient of the boundary] backward pass, with collectives that it hides:
 *                     BACKWARD_INPUT, the collectives during BACKWARD_WEIGHT, and a BACKWARD without
 *                     work, after which the gradient is complete
 *   BACKWARD_INPUT, BACKWARD_WEIGHT   the same in two units, in zero-bubble schedules
 * for every chunk and minibatch
 *   UPDATE            [all-reduce of tensors that every rank of a tensor group has whole] the optimizer's step,
 *                     on the rank's share if states are split [then the all-gather of the weights, if each rank
 *                     has them whole]. Offloaded states: on the host, [read] step [write]
 *   REFRESH           with offloaded states and resident weights: [read] up [all-gather]. Carried out: first a
 *                     computation without work, after which the gradient is the next minibatch's; with offloaded
 *                     weights only that
 * and between data-parallel ranks, during passes of other chunks, by the level `zero` (models/job/parallel.h):
 *   REDUCE            levels 0 and 1: all-reduce (reduce-scatter) of the gradient after the last microbatch's
 *                     backward pass; 2 and 3: reduce-scatter of each microbatch's gradient, added to the share.
 *                     Offloaded states (models/job/parallel_offload.h): for each microbatch, [reduce-scatter], down to
 *                     the host, [added to a sum].
 *                     Compressed gradients (models/cost/compression.h) are encoded first
 *   JOIN              gradient of a tied table that the first and the last stage share: all-reduce over these two, in
 *                     groups with ranks of both (models/job/parallel_memory.h), after REDUCE and before both UPDATEs.
 *                     Only in synchronous schedules without offloading; other schedules leave it out at no cost
 *   GATHER            level 3: all-gather of the weights for one pass that multiplies by them; offloaded weights:
 *                     [read] up [all-gather]
 *
 * A LOAD begins and a STORE ends the life of states and gradients. The first LOAD and STORE of each stage include the
 * copy of its states from host memory or back (planner/plan_charges.h).
 *
 * Jobs that are carried out (models/job/parallel.h) have more. LOADs and STOREs copy states, and begin and end the
 * lives of a minibatch's data, on the stages of the first and the last chunk, and of its loss. A BATCH for each of the
 * two stages, before the minibatch's passes, reads the data and brings them there. The first chunk's passes and the
 * last chunk's backward pass read them; the latter adds to the loss, which the last chunk's UPDATE copies to the host.
 * BACKWARD_INPUT adds the gradients of norms and of the head to the sum, and makes a workspace of a variant above 0
 * that it hands over to BACKWARD_WEIGHT. The latter reads the state, and with the embedding data, too. Where both ends
 * of a tied table are on one stage, the last backward pass reads the first chunk's state, and the first chunk's UPDATE
 * the last one's gradient; where weights are gathered, the last chunk's GATHERs also gather the first chunk's table.
 *
 *   access of          LOAD  FORWARD  BACKWARD  _INPUT  _WEIGHT  UPDATE  STORE   GATHER  REDUCE
 *   state               aw      r        r        r                rw     rx       r
 *   gradient            aw               rw                rw      rw     rx               rw
 *   boundary s                  r        rx       r        rx                 (s > 0)
 *   boundary s + 1              aw                                            (not after the last chunk)
 *   activations                 aw       rx       r        rx
 *   gradient of s + 1                    rx       r        rx                 (likewise)
 *   gradient of s                        aw       aw                          (s > 0)
 *   workspace                   awx      awx      awx      awx
 * and if ranks have shares of the state or the gradient, instead of it
 *   whole weights               rx       rx       rx                               aw
 *   whole gradient                       aw                aw                               rx
 *
 * Asynchronous schedules (planner/parallel/parallel_job_async.h) keep weights apart, in several versions, each in a
 * buffer of PARAMETERS. LOAD makes the first version. A pass reads its minibatch's version, the last pass with x.
 * UPDATE reads the newest version and makes the next one, or changes it in place if there is only one. Carried out, a
 * state has the newest weights, too, which LOAD and UPDATE copy; several minibatches' data have variants, which a BATCH
 * makes and the last backward pass releases.
 *
 * Variants distinguish microbatches in flight. plan_check() tracks the microbatch in every buffer, the updates in each
 * pass's weights, and the microbatches in each gradient: schedules are synchronous, or exactly as stale as
 * models/job/parallel.h says.
 */
#ifndef SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_H
#define SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_H

#include "planner/walk/plan_build.h"

/*
 * Adds all jobs, all parallel, with estimate and lower bound. `turns`: jobs that are carried out have ranges of host
 * memory, and are in their files before and after. Errors: STATUS_INFEASIBLE, with job, stage and missing bytes;
 * STATUS_BAD_INPUT for too few devices or no path between devices that exchange data; STATUS_LIMIT.
 */
MUST_CHECK enum status parallel_job_plan(struct plan_builder *builder, bool turns, struct error *err);

#endif
