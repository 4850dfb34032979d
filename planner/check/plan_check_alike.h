/* Units of parallel jobs of which one that was looked at is like another: part of plan_check_unit.c. */
#ifndef SPILLWAY_PLANNER_PLAN_CHECK_ALIKE_H
#define SPILLWAY_PLANNER_PLAN_CHECK_ALIKE_H

#include "planner/check/plan_checker.h"

/*
 * Is the unit, whose operations are those of the plan from first_op on, like `known`, which was found right? True: all
 * that plan_check_unit.c finds of a unit is the same of both, claims included, one operation as the other.
 * Nothing of `unit` need have been checked but that its operations exist.
 */
bool check_is_alike(const struct plan *plan, const struct plan_unit *unit, const struct plan_unit *known);

#endif
