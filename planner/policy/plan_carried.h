/* A plan with choices as it was carried out: with the order that was taken in place of the plan's own. */
#ifndef SPILLWAY_PLANNER_PLAN_CARRIED_H
#define SPILLWAY_PLANNER_PLAN_CARRIED_H

#include "planner/plan.h"

struct plan_carried {
    struct plan plan; /* borrows everything except the order: do not release it */
    struct plan_instance *instances;
    struct plan_segment *segments;
};

/*
 * Makes the plan. `order`: choices of `plan`, all that its jobs need, in the order in which they were taken. The result
 * has no choices and no claim about its order; plan_check() decides whether it is a valid plan. Borrows from `plan`;
 * release it with plan_carried_release(). Errors: STATUS_NO_MEMORY.
 */
MUST_CHECK enum status plan_carried_make(const struct plan *plan, const struct plan_instance *order,
                                         uint32_t count, struct plan_carried *out, struct error *err);
void plan_carried_release(struct plan_carried *carried); /* zeroed is allowed */

#endif
