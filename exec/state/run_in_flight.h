/* Operations in flight: enqueued and not yet known to have ended, in plan order. */
#ifndef SPILLWAY_EXEC_STATE_RUN_IN_FLIGHT_H
#define SPILLWAY_EXEC_STATE_RUN_IN_FLIGHT_H

#include "exec/state/run_loop.h"

/* Retires flights until the walk is close enough and there is room for the work of `op` and for its checkpoint. */
MUST_CHECK enum status run_make_room(struct run_loop *loop, const struct plan_walk_op *op, struct error *err);

/* Detects hangs while the run waits. */
struct run_watch {
    double changed_s;
    uint64_t passed;
};
struct run_watch run_watch_begin(const struct run_loop *loop);
/* Reports progress and checks devices; call it regularly. Errors: STATUS_DEVICE when the run hangs, with the
 * operations that wait. */
MUST_CHECK enum status run_watch_keep(struct run_loop *loop, struct run_watch *watch, struct error *err);

/* Wait until a flight has ended and report progress meanwhile; record and remove the oldest flight. Errors:
 * STATUS_DEVICE when the run hangs, with the operations that wait. */
MUST_CHECK enum status run_await_flight(struct run_loop *loop, const struct run_flight *flight,
                                        struct error *err);
MUST_CHECK enum status run_retire_flight(struct run_loop *loop, struct error *err);

/* Retires the oldest flights that have ended. */
MUST_CHECK enum status run_retire_ended(struct run_loop *loop, struct error *err);

/* Checks whether the run was told to stop. Work that has begun must then be finished; no other work is begun. */
void run_look_at_stop(struct run_loop *loop);

#endif
