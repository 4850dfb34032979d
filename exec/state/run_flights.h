/* Operations that were enqueued and are not known to have ended, in plan order. */
#ifndef SPILLWAY_EXEC_RUN_FLIGHTS_H
#define SPILLWAY_EXEC_RUN_FLIGHTS_H

#include "exec/state/run_loop.h"

/* Retire flights until the walk is not too far ahead and there is room for what `op` enqueues, and for its
 * checkpoint. */
MUST_CHECK enum status run_make_room(struct run_loop *loop, const struct plan_walk_op *op, struct error *err);

/* Does anything end, while something is waited for? */
struct run_watch {
    double changed_s;
    uint64_t passed;
};
struct run_watch run_watch_begin(const struct run_loop *loop);
/* Now and then: tells progress and looks at devices. Errors: STATUS_DEVICE when nothing ends any more, with
 * what waits for what. */
MUST_CHECK enum status run_watch_keep(struct run_loop *loop, struct run_watch *watch, struct error *err);

/* Wait until a flight has ended, telling progress meanwhile; record the oldest one then and remove it.
 * Errors: STATUS_DEVICE when nothing ends any more, with what waits for what. */
MUST_CHECK enum status run_await_flight(struct run_loop *loop, const struct flight *flight,
                                        struct error *err);
MUST_CHECK enum status run_retire_flight(struct run_loop *loop, struct error *err);

/* Those in front that have ended. */
MUST_CHECK enum status run_retire_ended(struct run_loop *loop, struct error *err);

/* Has the run been told to stop? What has begun must be ended then, nothing else is begun. */
void run_look_at_stop(struct run_loop *loop);

#endif
