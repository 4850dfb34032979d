/* Which state on devices, or on its way to storage, is newer than where it lives. */
#ifndef SPILLWAY_EXEC_RUN_NEWER_H
#define SPILLWAY_EXEC_RUN_NEWER_H

#include "exec/state/run_loop.h"

/* The operation was enqueued. */
void run_follow_state(struct run_loop *loop, const struct plan_walk_op *op);

/* The minibatch that decides whether a copy is left out by a stop. */
uint64_t run_copied_minibatch(const struct run_loop *loop, const struct plan_walk_op *op);

/* Does this copy bring back state that is newer on the device, or a part of its way on to storage? */
bool run_saves_state(const struct run_loop *loop, const struct plan_walk_op *op);

/* After a stop: bring back what the plan would have brought back later. */
MUST_CHECK enum status run_save_states(struct run_loop *loop, struct error *err);

#endif
