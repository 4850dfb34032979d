/*
 * Kept outputs (struct job_outputs), in host memory: a row for each sample of the training, then for each held-out one.
 *
 * A job that makes them passes over the samples in this order, so that a minibatch's outputs are a range of rows. A job
 * that takes them copies the rows of a minibatch's samples, in its own order, to the boundary.
 */
#ifndef SPILLWAY_EXEC_RUN_RUN_OUTPUTS_H
#define SPILLWAY_EXEC_RUN_RUN_OUTPUTS_H

#include "exec/state/run_loop.h"
#include "planner/walk/plan_walk.h"

/* Puts the samples of jobs that make outputs in order, once the data is open. Errors: STATUS_BAD_INPUT if a file has
 * other samples than the plan. */
MUST_CHECK enum status run_outputs_open(struct run *run, struct error *err);

/* Returns where, among all outputs, a minibatch's are that an operation copies. */
static inline uint64_t run_outputs_offset(const struct plan_walk_op *op)
{
    return op->minibatch * op->op->bytes;
}

/* Counts a minibatch whose outputs have come to the host, on the stream of their copy. */
void run_outputs_note(struct run *run, const struct plan_walk_op *op);

/* Enqueues the copying of the rows of a minibatch's samples. */
void run_outputs_recall(struct run *run, const struct plan_walk_op *op, const char *outputs, char *boundary,
                        struct run_flight *flight);

#endif
