/* The data that members of a plan's collective have of it. */
#ifndef SPILLWAY_EXEC_GROUP_RUN_MEMBERS_H
#define SPILLWAY_EXEC_GROUP_RUN_MEMBERS_H

#include "exec/group/run_collective.h"

/* Returns a member's data. `at`: addresses of the operation's accesses. `adds`: a reduced microbatch is not the
 * minibatch's first. */
struct run_collective_data run_members_data(const struct run *run, const struct plan_walk_op *op, char *const *at, bool adds);

#endif
