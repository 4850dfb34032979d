/* Recognises units of parallel jobs that are equal to a checked unit but for variants: part of plan_check_unit.c. */
#ifndef SPILLWAY_PLANNER_CHECK_PLAN_CHECK_ALIKE_H
#define SPILLWAY_PLANNER_CHECK_PLAN_CHECK_ALIKE_H

#include "planner/check/plan_checker.h"

/*
 * Returns true if the unit, whose operations begin at first_op, is alike to the correct unit `known`. Then every result
 * of plan_check_unit.c, claims included, is the same for both, operation by operation. The operations of `unit` must
 * exist.
 */
bool check_is_alike(const struct plan *plan, const struct plan_unit *unit, const struct plan_unit *known);

#endif
