/* Hands operations of the plan to their streams. */
#ifndef SPILLWAY_EXEC_RUN_RUN_ENQUEUE_H
#define SPILLWAY_EXEC_RUN_RUN_ENQUEUE_H

#include "exec/state/run_loop.h"

/* Enqueues an operation. With `skip`, enqueues only its waits, because other operations that wait
 * for it rely on them. */
void run_enqueue(struct run_loop *loop, const struct plan_walk_op *op, bool skip);

#endif
