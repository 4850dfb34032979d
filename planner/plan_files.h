/* The cost of a plan's OPENs and CLOSEs. */
#ifndef SPILLWAY_PLANNER_PLAN_FILES_H
#define SPILLWAY_PLANNER_PLAN_FILES_H

#include "planner/plan.h"

static inline bool plan_op_of_files(const struct plan_op *op)
{
    return op->kind == OP_COMPUTE && (op->pass == PLAN_OPEN || op->pass == PLAN_CLOSE);
}

/* Returns the seconds of an operation for which plan_op_of_files() holds, on a machine like the plan's. */
double plan_file_s(const struct plan *plan, const struct hardware *hardware, const struct plan_op *op);

#endif
