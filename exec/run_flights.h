/* Operations that were enqueued and are not known to have ended, in plan order. */
#ifndef SPILLWAY_EXEC_RUN_FLIGHTS_H
#define SPILLWAY_EXEC_RUN_FLIGHTS_H

#include "exec/run_loop.h"

/* Is the walk far enough ahead, or is there no room for what `op` enqueues? */
bool run_is_ahead(const struct run_loop *loop, const struct plan_walk_op *op);

/* Wait until a flight has ended, telling progress meanwhile; record the oldest one then and remove it.
 * Errors: STATUS_DEVICE when nothing ends any more, with what waits for what. */
MUST_CHECK enum status run_await_flight(struct run_loop *loop, const struct flight *flight,
                                        struct error *err);
MUST_CHECK enum status run_retire_flight(struct run_loop *loop, struct error *err);

/* Has the run been told to stop? What has begun must be ended then, nothing else is begun. */
void run_look_at_stop(struct run_loop *loop);

#endif
