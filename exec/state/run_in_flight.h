/* Operations in flight: enqueued and not yet known to have ended. */
#ifndef SPILLWAY_EXEC_STATE_RUN_IN_FLIGHT_H
#define SPILLWAY_EXEC_STATE_RUN_IN_FLIGHT_H

#include "exec/state/run_loop.h"

/* Retires flights until there is room for the work of `op` and for its checkpoint. */
MUST_CHECK enum status run_make_room(struct run_loop *loop, const struct plan_walk_op *op, struct error *err);

struct run_watch {
    double changed_s;
    uint64_t passed;
};
struct run_watch run_watch_begin(const struct run_loop *loop);
/* Reports progress and checks devices; called regularly. Errors: STATUS_DEVICE when the run hangs, with the
 * operations that wait. */
MUST_CHECK enum status run_watch_keep(struct run_loop *loop, struct run_watch *watch, struct error *err);

/* Waits until a flight has ended, reporting progress; records and removes the oldest flight. Errors: as
 * run_watch_keep(). */
MUST_CHECK enum status run_await_flight(struct run_loop *loop, const struct run_flight *flight,
                                        struct error *err);
MUST_CHECK enum status run_retire_flight(struct run_loop *loop, struct error *err);

MUST_CHECK enum status run_retire_ended(struct run_loop *loop, struct error *err);

/* Looks at the stop flag: then only work that has begun is finished. */
void run_look_at_stop(struct run_loop *loop);

#endif
