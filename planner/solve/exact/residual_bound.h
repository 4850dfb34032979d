/*
 * A bound for partial schedules: what is left, assigned to devices anew.
 *
 * The assignment bound of instance_bound.h for the tasks that are not done yet: rows are these tasks and
 * the devices as they stand, columns these tasks and the ends of the devices' paths. A device's row has
 * the starts that its next task could really have, and neighbours between which a schedule of the wanted length
 * leaves no time are forbidden. From a node to its child, costs only rise: the parent's duals stay
 * feasible, and a few shortest paths repair the assignment.
 */
#ifndef SPILLWAY_PLANNER_REST_BOUND_H
#define SPILLWAY_PLANNER_REST_BOUND_H

#include "planner/solve/exact/branch_node.h"

enum { RESIDUAL_BOUND_TASKS_MAX = 128 };

struct residual_bound; /* opaque */

/* Makespans of at most so many tasks. */
bool residual_bound_takes(const struct instance *in);

/* `in` is borrowed. The caller frees it with residual_bound_destroy(). STATUS_NO_MEMORY. */
MUST_CHECK enum status residual_bound_create(const struct instance *in, struct residual_bound **out,
                                         struct error *err);
void residual_bound_destroy(struct residual_bound *bound); /* NULL is fine */

/*
 * Can this node not be completed by `limit`? `depth` is the number of its tasks; what was found for its
 * parent, at depth - 1, is built on if `inherit`. O(rows^2) a path, few paths.
 */
bool residual_bound_breaks(struct residual_bound *bound, const struct branch_node *node, uint32_t depth,
                       bool inherit, int64_t limit);

#endif
