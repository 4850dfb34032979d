/* Tracks state that is newer on devices, or on its way to storage, than in its home. */
#ifndef SPILLWAY_EXEC_STATE_RUN_WRITE_BACK_H
#define SPILLWAY_EXEC_STATE_RUN_WRITE_BACK_H

#include "exec/state/run_loop.h"

/* Updates the state after an operation was enqueued. */
void run_follow_state(struct run_loop *loop, const struct plan_walk_op *op);

/* Returns the minibatch that decides whether a stop skips a copy. */
uint64_t run_copied_minibatch(const struct run_loop *loop, const struct plan_walk_op *op);

/* Returns true when this copy brings back newer state from the device, or is a part of its way to
 * storage. */
bool run_saves_state(const struct run_loop *loop, const struct plan_walk_op *op);

/* After a stop: brings back the state that the plan would have brought back later. */
MUST_CHECK enum status run_save_states(struct run_loop *loop, struct error *err);

#endif
