/* Work of the streams' threads for a run: computations, batches, best weights, losses. */
#ifndef SPILLWAY_EXEC_RUN_RUN_CALLBACKS_H
#define SPILLWAY_EXEC_RUN_RUN_CALLBACKS_H

#include "exec/state/run_loop.h"
#include "planner/walk/plan_walk.h"

/* Returns the number of the minibatch that an operation is about, in the training's or the held-out data. */
uint64_t run_batch_index(const struct job *job, const struct plan_walk_op *op);

/* Returns true and counts the minibatch when its computation may start. From any thread. */
bool run_begin_minibatch(struct run *run, uint32_t job, uint64_t minibatch);

/* Enqueue work on the operation's stream, timed in *timing or *flight. It is skipped unless the minibatch is below its
 * job's limit when its turn comes; a skipped computation is omitted in *flight. */
void run_callback_compute(struct run *run, const struct plan_walk_op *op,
                          const struct unit_arguments *arguments, struct run_flight *flight);
void run_callback_chunk(struct run *run, const struct plan_walk_op *op, const struct chunk_arguments *arguments,
                        struct run_flight *flight);
void run_callback_batch(struct run *run, const struct plan_walk_op *op, int32_t *batch,
                        struct device_timing *timing);
void run_callback_keep(struct run *run, const struct plan_walk_op *op, struct device_timing *timing);

/* Takes a replica's part of a loss, or the loss of a minibatch: after all earlier ones of the job. From any thread. The
 * part of a replica with its own pace is the loss of its minibatch, `minibatch` the last one of all replicas'
 * update. */
void run_take_partial_loss(struct run *run, uint32_t job, uint32_t replica, uint64_t minibatch, double part);
void run_take_loss(struct run *run, uint32_t job, uint64_t minibatch, double loss);

/* Notes that a minibatch's loss is not finite, before the norm of its gradients is there. From any thread. */
void run_note_nonfinite(struct run *run, uint32_t job, uint64_t minibatch);

/* Takes the norm of a minibatch's gradients after its first step was made or skipped. From any thread. */
void run_take_norm(struct run *run, uint32_t job, uint64_t minibatch, double norm, bool skipped);

/* Takes a replica's loss of a held-out minibatch; the last one completes the evaluation. From any thread. */
void run_take_held_out(struct run *run, uint32_t job, uint32_t replica, uint64_t minibatch, uint64_t held_out,
                       double loss);

/* Logs a loss or adds it up, on the stream of its copy to the host. */
void run_callback_loss(struct run *run, const struct plan_walk_op *op, const double *loss);

#endif
