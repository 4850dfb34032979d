/* Seconds of collectives over emulated links. */
#ifndef SPILLWAY_EXEC_GROUP_RUN_COLLECTIVE_TIME_H
#define SPILLWAY_EXEC_GROUP_RUN_COLLECTIVE_TIME_H

#include "planner/walk/plan_walk.h"

/* Returns true if copies between devices are paced. */
bool run_collective_is_paced(const struct hardware *hardware, uint32_t device);

/*
 * *seconds is the time that the collective takes by models/cost/collective.h if its devices have paced links between
 * them, as a paced copy takes bytes over rate; else 0. `op` is any member's operation.
 */
MUST_CHECK enum status run_collective_time(const struct plan *plan, const struct plan_walk_op *op, double *seconds,
                                           struct error *err);

#endif
