/*
 * Where leases end, for those that begin behind them: a part of planner/walk/plan_walk.c.
 *
 * A lease begins with its first operation in plan order. Whoever had one of its devices last is in front of it,
 * and was behind everybody who had it before; so these, and the lease that it follows, are all that it need wait
 * for. They have no operation left in plan order then (plan_check() sees to it), so the last ones on their
 * streams are known. The first operation on each stream of each of the lease's devices waits for them, and what
 * comes behind it waits with it.
 */
#ifndef SPILLWAY_PLANNER_PLAN_WALK_LEASE_H
#define SPILLWAY_PLANNER_PLAN_WALK_LEASE_H

#include "planner/plan.h"

struct lease_ends; /* opaque */

struct lease_end {
    uint32_t stream; /* as plan_stream() numbers them */
    uint64_t time;   /* number of its last operation + 1 */
};

/* Of a plan with leases. NULL: no memory. The caller frees it with lease_ends_destroy(). */
struct lease_ends *lease_ends_create(const struct plan *plan);
void lease_ends_destroy(struct lease_ends *ends);

/* Back to the beginning of the plan. */
void lease_ends_clear(struct lease_ends *ends);

/*
 * An operation of a lease's jobs on a device's stream, at number + 1. How many ends it waits for: none, unless
 * it is the lease's first on that stream. *out is borrowed, valid until the next call.
 */
uint32_t lease_ends_note(struct lease_ends *ends, uint32_t lease, uint32_t device, uint32_t kind, uint64_t time,
                         const struct lease_end **out);

#endif
