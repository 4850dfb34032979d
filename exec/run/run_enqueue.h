#ifndef SPILLWAY_EXEC_RUN_RUN_ENQUEUE_H
#define SPILLWAY_EXEC_RUN_RUN_ENQUEUE_H

#include "exec/state/run_loop.h"

/* Lets an operation of a tensor group's pass join the others', and waits for room for it, before run_enqueue(). */
MUST_CHECK enum status run_await_room(struct run_loop *loop, struct plan_walk_op *op, struct error *err);

/* Enqueues an operation; with `skip` only its waits, which others rely on. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status run_enqueue(struct run_loop *loop, const struct plan_walk_op *op, bool skip, struct error *err);

/* Returns the minibatch that an operation is about, before it is enqueued. The stages of an asynchronous schedule are
 * in different ones, and each counts its own units. Replicas with their own pace take the minibatches in turn; their
 * update is about the last one. */
uint64_t run_minibatch_of(const struct run_loop *loop, const struct plan_walk_op *op);

#endif
