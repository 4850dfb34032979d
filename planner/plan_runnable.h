/* Plans that can be simulated but not executed. */
#ifndef SPILLWAY_PLANNER_PLAN_RUNNABLE_H
#define SPILLWAY_PLANNER_PLAN_RUNNABLE_H

#include "planner/plan.h"

/* Returns STATUS_BAD_INPUT with the reason when no executor can carry out the plan, on any machine. */
MUST_CHECK enum status plan_runnable(const struct plan *plan, struct error *err);

#endif
