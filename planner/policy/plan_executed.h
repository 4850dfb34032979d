/* A plan of an open order as it was carried out: with the order that was taken in place of the plan's own. */
#ifndef SPILLWAY_PLANNER_POLICY_PLAN_EXECUTED_H
#define SPILLWAY_PLANNER_POLICY_PLAN_EXECUTED_H

#include "planner/plan.h"

struct plan_executed {
    struct plan plan; /* borrows everything except the order: do not release it */
    struct plan_task *tasks;
    struct plan_segment *segments;
};

/*
 * Makes the plan. `order`: tasks of `plan`, all that its jobs need, as they were taken. The result has one order and
 * no claim about it; plan_check() decides whether it is valid. Borrows from `plan`; release it with
 * plan_executed_release().
 */
MUST_CHECK enum status plan_executed_make(const struct plan *plan, const struct plan_task *order,
                                          uint32_t count, struct plan_executed *out, struct error *err);
void plan_executed_release(struct plan_executed *executed); /* zeroed is allowed */

#endif
