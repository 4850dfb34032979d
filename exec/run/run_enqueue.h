#ifndef SPILLWAY_EXEC_RUN_RUN_ENQUEUE_H
#define SPILLWAY_EXEC_RUN_RUN_ENQUEUE_H

#include "exec/state/run_loop.h"

/* Enqueues an operation; with `skip` only its waits, which others rely on. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status run_enqueue(struct run_loop *loop, const struct plan_walk_op *op, bool skip, struct error *err);

#endif
