/*
 * Checkmate's full program for a chain without a link: any value may be computed again in any stage from existing
 * values, also over several layers in a row. It is an oracle for planner/chain/chain.h, which drops the saved bytes of
 * a layer but not its boundary, and recomputes one layer at a time. Its schedules are not schedules of chain.h, and
 * chains of a dozen layers already keep GLPK busy, so only tests use it.
 *
 * The nodes of a chain of L layers, in their order:
 *
 *     inner_0, bound_1, inner_1, bound_2, .. bound_{L-1}, inner_{L-1}, back_{L-1}, .. back_0
 *
 * inner_l is layer l's forward pass: it takes `forward` ticks and needs bound_l; its value is the saved bytes of the
 * layer except its boundary. bound_l is the boundary of layer l: it is made whenever inner_{l-1} is computed and takes
 * no time of its own. back_l needs both of its layer and has no bytes. bound_0 is the batch: no node makes it, and it
 * stays. While a boundary is made, the saved bytes of the previous layer exist too. chain.h does not require that;
 * chain_keep.h can (struct chain_need, `runs`).
 *
 * Source: Jain et al., Checkmate, arXiv 1910.02653, sec. 4 (frontier-advancing stages, R, S, U, FREE).
 */
#ifndef SPILLWAY_TESTS_SUPPORT_SOLVE_SUPPORT_CHECKMATE_H
#define SPILLWAY_TESTS_SUPPORT_SOLVE_SUPPORT_CHECKMATE_H

#include <stdbool.h>

#include "planner/chain/chain.h"
#include "planner/solve/milp/milp.h"

/* Returns 3 L - 1. */
uint32_t checkmate_node_count(const struct chain *chain);

/* Makes the program, whose value is the ticks of all forward passes, recomputed ones included. The caller frees it
 * with milp_destroy(). NULL if memory runs out. */
struct milp *checkmate_program(const struct chain *chain);

/*
 * Plays a solution's R and S through, freeing every value after its last use; FREE and U of the program are ignored.
 * Fails the test if a node lacks one of its needs, a value is kept that did not exist, or memory is exceeded. Returns
 * the ticks.
 */
int64_t checkmate_play(const struct chain *chain, const double *x);

#endif
