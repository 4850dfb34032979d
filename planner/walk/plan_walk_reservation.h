/*
 * The ends of reservations, for later ones.
 *
 * A reservation begins with its first operation in plan order, and waits for the last reservations on its devices,
 * which waited for all earlier users, and for the reservation that it follows. These have no operation left
 * (plan_check() makes sure), so their streams' last operations are known. The first operation on each stream of the
 * reservation's devices waits for them, and later ones with it.
 */
#ifndef SPILLWAY_PLANNER_WALK_PLAN_WALK_RESERVATION_H
#define SPILLWAY_PLANNER_WALK_PLAN_WALK_RESERVATION_H

#include "planner/plan.h"

struct reservation_ends; /* opaque */

struct reservation_end {
    uint32_t stream; /* as plan_stream() numbers them */
    uint64_t time;   /* number of its last operation + 1 */
};

/* Creates the table of a plan with reservations. Returns NULL without memory. The caller frees it with
 * reservation_ends_destroy(). */
struct reservation_ends *reservation_ends_create(const struct plan *plan);
void reservation_ends_destroy(struct reservation_ends *ends);

/* Returns to the beginning of the plan. */
void reservation_ends_clear(struct reservation_ends *ends);

/*
 * Notes an operation of a reservation on a device's stream, at number + 1. Returns the number of ends that it waits
 * for: 0 unless it is the first on that stream. *out is borrowed, valid until the next call.
 */
uint32_t reservation_ends_note(struct reservation_ends *ends, uint32_t reservation, uint32_t device, uint32_t kind,
                               uint64_t time, const struct reservation_end **out);

#endif
