/*
 * The transportation problem on a dense matrix, by shortest augmenting paths; with all supplies 1 the Hungarian method.
 *
 * It ships row_supply[i] units from each row and column_demand[k] to each column at least cost. Callers need the duals:
 * row[i] + column[k] <= cost[i][k] for all pairs, and the optimum is the sum of supply times row plus the sum of demand
 * times column. This certificate, verifiable without the algorithm, is a bound for any flow.
 */
#ifndef SPILLWAY_PLANNER_SOLVE_BOUNDS_ASSIGNMENT_H
#define SPILLWAY_PLANNER_SOLVE_BOUNDS_ASSIGNMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define ASSIGNMENT_FORBIDDEN (INT64_MAX / 4) /* cost of a forbidden pair */

/*
 * Solves the problem.
 *
 *     cost            (count, count), each in [0, 2^52] or ASSIGNMENT_FORBIDDEN
 *     supply, demand  (count), at least 0, equal sums below 2^31
 *     row, column     out: (count) the duals
 *
 * A path costs O(count^2), and there are about `count` paths (more with large supplies). Memory: 3 count^2 words.
 * Errors: STATUS_INFEASIBLE when forbidden pairs exclude every flow. Source: Jonker and Volgenant, "A shortest
 * augmenting path algorithm for dense and sparse linear assignment problems", Computing 38, 1987; with capacities as in
 * Ahuja, Magnanti and Orlin, "Network Flows", 1993, sec. 9.7.
 */
MUST_CHECK enum status assignment_solve(const int64_t *cost, uint32_t count, const uint32_t *supply,
                                        const uint32_t *demand, int64_t *row, int64_t *column,
                                        struct error *err);

#endif
