/*
 * The transportation problem on a dense matrix, by shortest augmenting paths; with all supplies 1 it
 * is the assignment problem and this is the Hungarian method.
 *
 * Ship row_supply[i] units from each row and column_demand[k] to each column at least cost. What is
 * wanted here are the duals: row[i] + column[k] <= cost[i][k] for all pairs, and the sum of supply
 * times row plus demand times column is the optimum. That certificate can be verified without
 * knowing how it was found, and stays a bound whatever the flow was.
 */
#ifndef SPILLWAY_PLANNER_ASSIGNMENT_H
#define SPILLWAY_PLANNER_ASSIGNMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define ASSIGNMENT_FORBIDDEN (INT64_MAX / 4) /* the cost of a pair that may not be */

/*
 * cost            (count, count), each in [0, 2^52] or ASSIGNMENT_FORBIDDEN
 * supply, demand  (count), at least 0, equal sums below 2^31
 * row, column     out: (count) the duals
 *
 * Cost: O(count^2) a path, about `count` paths (more with large supplies); 3 count^2 words.
 * Errors: STATUS_INFEASIBLE when forbidden pairs leave no way; STATUS_NO_MEMORY.
 * Source: Jonker and Volgenant, "A shortest augmenting path algorithm for dense and sparse linear
 * assignment problems", Computing 38, 1987; with capacities as in Ahuja, Magnanti and Orlin,
 * "Network Flows", 1993, sec. 9.7.
 */
MUST_CHECK enum status assignment_solve(const int64_t *cost, uint32_t count, const uint32_t *supply,
                                        const uint32_t *demand, int64_t *row, int64_t *column,
                                        struct error *err);

/* row[i] + column[k] <= cost[i][k] everywhere? */
bool assignment_duals_hold(const int64_t *cost, uint32_t count, const int64_t *row,
                           const int64_t *column);

#endif
