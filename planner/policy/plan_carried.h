/* A plan with choices as it was carried out: with the order that came about in place of its own. */
#ifndef SPILLWAY_PLANNER_PLAN_CARRIED_H
#define SPILLWAY_PLANNER_PLAN_CARRIED_H

#include "planner/plan.h"

struct plan_carried {
    struct plan plan; /* all but the order is borrowed: it is not to be released */
    struct plan_instance *instances;
    struct plan_segment *segments;
};

/*
 * `order`: choices of `plan`, all of them that its jobs need, in the order in which they were taken. The
 * result has no choices, nor a claim about its order. Whether it is a plan, plan_check() says. Borrows from
 * `plan`; release it with plan_carried_release(). Errors: STATUS_NO_MEMORY.
 */
MUST_CHECK enum status plan_carried_make(const struct plan *plan, const struct plan_instance *order,
                                         uint32_t count, struct plan_carried *out, struct error *err);
void plan_carried_release(struct plan_carried *carried); /* zeroed is fine */

#endif
