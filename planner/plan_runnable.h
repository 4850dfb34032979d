/* Plans that can be simulated and that no executor here carries out. */
#ifndef SPILLWAY_PLANNER_PLAN_RUNNABLE_H
#define SPILLWAY_PLANNER_PLAN_RUNNABLE_H

#include "planner/plan.h"

/* STATUS_BAD_INPUT with the reason, whatever the machine. */
MUST_CHECK enum status plan_runnable(const struct plan *plan, struct error *err);

#endif
