/* The data that members of a plan's collective have of it. */
#ifndef SPILLWAY_EXEC_GROUP_RUN_MEMBERS_H
#define SPILLWAY_EXEC_GROUP_RUN_MEMBERS_H

#include "exec/group/run_collective.h"

/* Returns a member's data. `at`: addresses of the operation's accesses. `adds`: a reduced microbatch is not the
 * minibatch's first. */
struct run_collective_data run_members_data(const struct run *run, const struct plan_walk_op *op, char *const *at,
                                            bool adds);

/* A scattered boundary arrives as the part of each rank of a tensor group, in its place; then the ranks gather the
 * whole. */

/* Returns where the rank's part of a boundary begins, of `bytes`; 0 if boundaries are sent whole. */
uint64_t run_members_scattered(const struct run *run, const struct plan_walk_op *op, uint64_t bytes);

/* Returns a rank's data for the gathering. */
struct run_collective_data run_members_boundary(const struct run *run, const struct plan_walk_op *op, char *boundary);

#endif
