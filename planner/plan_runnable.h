/* Plans that can be simulated but not executed. */
#ifndef SPILLWAY_PLANNER_PLAN_RUNNABLE_H
#define SPILLWAY_PLANNER_PLAN_RUNNABLE_H

#include "planner/plan.h"

/* Returns STATUS_BAD_INPUT with the reason when no executor can carry out the plan, on any machine. */
MUST_CHECK enum status plan_runnable(const struct plan *plan, struct error *err);

/* Does the same for an executor of several processes, which can be on several nodes. */
MUST_CHECK enum status plan_runnable_by(const struct plan *plan, uint32_t processes, struct error *err);

#endif
