/*
 * Where reservations end, for those that begin behind them: a part of planner/walk/plan_walk.c.
 *
 * A reservation begins with its first operation in plan order. Whoever had one of its devices last is in front of it,
 * and was behind everybody who had it before; so these, and the reservation that it follows, are all that it need wait
 * for. They have no operation left in plan order then (plan_check() sees to it), so the last ones on their
 * streams are known. The first operation on each stream of each of the reservation's devices waits for them, and what
 * comes behind it waits with it.
 */
#ifndef SPILLWAY_PLANNER_PLAN_WALK_RESERVATION_H
#define SPILLWAY_PLANNER_PLAN_WALK_RESERVATION_H

#include "planner/plan.h"

struct reservation_ends; /* opaque */

struct reservation_end {
    uint32_t stream; /* as plan_stream() numbers them */
    uint64_t time;   /* number of its last operation + 1 */
};

/* Of a plan with reservations. NULL: no memory. The caller frees it with reservation_ends_destroy(). */
struct reservation_ends *reservation_ends_create(const struct plan *plan);
void reservation_ends_destroy(struct reservation_ends *ends);

/* Back to the beginning of the plan. */
void reservation_ends_clear(struct reservation_ends *ends);

/*
 * An operation of a reservation's jobs on a device's stream, at number + 1. How many ends it waits for: none, unless
 * it is the reservation's first on that stream. *out is borrowed, valid until the next call.
 */
uint32_t reservation_ends_note(struct reservation_ends *ends, uint32_t reservation, uint32_t device, uint32_t kind,
                               uint64_t time, const struct reservation_end **out);

#endif
