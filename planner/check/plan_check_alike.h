/* Recognises units of parallel jobs that equal a checked unit but for variants. */
#ifndef SPILLWAY_PLANNER_CHECK_PLAN_CHECK_ALIKE_H
#define SPILLWAY_PLANNER_CHECK_PLAN_CHECK_ALIKE_H

#include "planner/check/plan_checker.h"

/*
 * Returns true if the unit, whose operations exist from first_op on, is alike to the correct unit `known`. Then
 * plan_check_unit.c's results, claims included, are the same for both.
 */
bool check_is_alike(const struct plan *plan, const struct plan_unit *unit, const struct plan_unit *known);

#endif
