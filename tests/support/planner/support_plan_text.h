/* A plan as the text of its file. */
#ifndef SPILLWAY_TESTS_SUPPORT_PLANNER_SUPPORT_PLAN_TEXT_H
#define SPILLWAY_TESTS_SUPPORT_PLANNER_SUPPORT_PLAN_TEXT_H

#include "planner/plan.h"

/* Returns the text. The caller frees it. */
char *support_plan_text(const struct plan *plan);

#endif
