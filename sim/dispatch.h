/* A plan of an open order, dispatched live in virtual time, by the rules of planner/policy/plan_dispatch.h and
 * exec/run/run_live.h. */
#ifndef SPILLWAY_SIM_DISPATCH_H
#define SPILLWAY_SIM_DISPATCH_H

#include "planner/policy/plan_dispatch.h"
#include "planner/walk/plan_walk.h"

struct sim_dispatch; /* opaque */

/* Creates a dispatcher. Errors: as plan_dispatch_create(). */
MUST_CHECK enum status sim_dispatch_create(const struct plan *plan, const struct plan_dispatch_options *options,
                                           struct sim_dispatch **out, struct error *err);
void sim_dispatch_destroy(struct sim_dispatch *dispatch); /* NULL is fine */

/* Pushes the next unit into the walk, whose next operation is `number`. *found: false if no unit can be chosen now.
 * Errors: as plan_dispatch_next(). */
MUST_CHECK enum status sim_dispatch_push(struct sim_dispatch *dispatch, struct plan_walk *walk, uint64_t number,
                                         double now_s, bool *found, struct error *err);

/* Reports that operation `number` of the unit or minibatch has ended on such a stream. */
void sim_dispatch_ended(struct sim_dispatch *dispatch, const struct plan_unit *unit, uint64_t number,
                        uint32_t stream_kind, double now_s);

#endif
