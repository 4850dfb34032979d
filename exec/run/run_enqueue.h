/* Hand one operation of the plan to its stream. */
#ifndef SPILLWAY_EXEC_RUN_ENQUEUE_H
#define SPILLWAY_EXEC_RUN_ENQUEUE_H

#include "exec/state/run_loop.h"

/* With `skip`, its waits alone: others that wait for it rely on what it waits for. */
void run_enqueue(struct run_loop *loop, const struct plan_walk_op *op, bool skip);

#endif
