/* What the streams' threads do for a run: computations, batches, best weights, losses. */
#ifndef SPILLWAY_EXEC_RUN_CALLS_H
#define SPILLWAY_EXEC_RUN_CALLS_H

#include "exec/state/run_state.h"
#include "planner/walk/plan_walk.h"

/* Enqueue on the operation's stream, timed in *timing. Each does its work only where the operation's
 * minibatch is below its job's limit at its turn; a computation says in *omitted that it did not. */
void run_call_compute(struct run *run, const struct plan_walk_op *op,
                      const struct unit_arguments *arguments, bool *omitted,
                      struct device_timing *timing);
void run_call_batch(struct run *run, const struct plan_walk_op *op, int32_t *batch,
                    struct device_timing *timing);
void run_call_keep(struct run *run, const struct plan_walk_op *op, struct device_timing *timing);

/* Behind the copy that brings a loss to the host, on the same stream: log it, or sum it up. */
void run_call_loss(struct run *run, const struct plan_walk_op *op, const double *loss);

#endif
