/* Recognises units of parallel jobs that are equal to a checked unit but for variants: part of plan_check_unit.c. */
#ifndef SPILLWAY_PLANNER_CHECK_PLAN_CHECK_ALIKE_H
#define SPILLWAY_PLANNER_CHECK_PLAN_CHECK_ALIKE_H

#include "planner/check/plan_checker.h"

/*
 * Returns true when the unit, whose operations begin at the plan's operation first_op, is alike to `known`, which was
 * found right. Then every result of plan_check_unit.c, claims included, is the same for both units, operation by
 * operation. The operations of `unit` must exist; no other check of it is needed before.
 */
bool check_is_alike(const struct plan *plan, const struct plan_unit *unit, const struct plan_unit *known);

#endif
