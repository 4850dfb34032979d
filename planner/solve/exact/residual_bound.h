/*
 * The residual bound of a partial schedule: instance_bound.h's assignment bound for its remaining tasks.
 *
 * Rows are these tasks and the devices in their present state, columns these tasks and the ends of paths. A device's
 * row has its next task's possible starts. Neighbours without time between them in a schedule of the wanted length are
 * forbidden. From a node to its child costs only rise: the parent's duals stay feasible, and a few shortest paths
 * repair the assignment.
 */
#ifndef SPILLWAY_PLANNER_SOLVE_EXACT_RESIDUAL_BOUND_H
#define SPILLWAY_PLANNER_SOLVE_EXACT_RESIDUAL_BOUND_H

#include "planner/solve/exact/branch_node.h"

enum { RESIDUAL_BOUND_TASKS_MAX = 128 };

struct residual_bound; /* opaque */

/* Returns true for makespans of at most RESIDUAL_BOUND_TASKS_MAX tasks. */
bool residual_bound_takes(const struct instance *in);

/* Creates the bound. `in` is borrowed. The caller frees it with residual_bound_destroy(). */
MUST_CHECK enum status residual_bound_create(const struct instance *in, struct residual_bound **out,
                                             struct error *err);
void residual_bound_destroy(struct residual_bound *bound); /* NULL is fine */

/*
 * Returns true when the node cannot be completed by `limit`. `depth`: its number of tasks. `inherit`: start from its
 * parent's duals, at depth - 1. A path costs O(rows^2), and there are few.
 */
bool residual_bound_breaks(struct residual_bound *bound, const struct branch_node *node, uint32_t depth,
                           bool inherit, int64_t limit);

#endif
