/* State that is newer on devices, or on its way to storage, than in its home. */
#ifndef SPILLWAY_EXEC_STATE_RUN_WRITE_BACK_H
#define SPILLWAY_EXEC_STATE_RUN_WRITE_BACK_H

#include "exec/state/run_loop.h"

/* Called after an operation was enqueued. */
void run_follow_state(struct run_loop *loop, const struct plan_walk_op *op);

/* Returns the minibatch that decides whether a stop skips a copy. */
uint64_t run_copied_minibatch(const struct run_loop *loop, const struct plan_walk_op *op);

/* Returns true if the copy brings back newer state, or is a part of its way to storage. */
bool run_saves_state(const struct run_loop *loop, const struct plan_walk_op *op);

/* Brings back newer state after a stop. */
MUST_CHECK enum status run_save_states(struct run_loop *loop, struct error *err);

#endif
