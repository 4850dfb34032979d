/*
 * Checkmate's full program for a chain without a link: any value may be computed again in any stage, from
 * whatever is there, several layers in a row too. An oracle for the choices of planner/chain/chain.h, which
 * drop what a layer saved but not its boundary, and compute one layer again at a time. Its schedules are
 * none by the rules of chain.h, and chains of a dozen layers already keep GLPK busy; so it judges here,
 * and `spillway solve` has no use for it.
 *
 * The nodes of a chain of L layers, in their order:
 *
 *     inner_0, bound_1, inner_1, bound_2, .. bound_{L-1}, inner_{L-1}, back_{L-1}, .. back_0
 *
 * inner_l is layer l's forward pass: it takes `forward` ticks, needs bound_l, and its value is what the
 * layer saves but for its boundary. bound_l is the boundary of layer l: it is made while inner_{l-1} is
 * computed, for the first time or again, and takes no time of its own. back_l needs both of its layer and
 * has no bytes. bound_0 is the batch: nothing makes it, it stays. While a boundary is made, the saved bytes
 * of the layer in front of it are there too: that is what chain.h does not ask for, and chain_keep.h can
 * (struct chain_need, `runs`).
 *
 * Source: Jain et al., Checkmate, arXiv 1910.02653, sec. 4 (frontier-advancing stages, R, S, U, FREE).
 */
#ifndef SPILLWAY_TESTS_SUPPORT_PLANNER_SUPPORT_CHECKMATE_H
#define SPILLWAY_TESTS_SUPPORT_PLANNER_SUPPORT_CHECKMATE_H

#include <stdbool.h>

#include "planner/chain/chain.h"
#include "planner/solve/milp/milp.h"

/* 3 L - 1. */
uint32_t checkmate_node_count(const struct chain *chain);

/* Its value is the ticks of all forward passes, those computed again among them. The caller frees it with
 * milp_destroy(). NULL when memory ends. */
struct milp *checkmate_program(const struct chain *chain);

/*
 * Plays a solution's R and S through, freeing every value as soon as nothing asks for it any more: the FREE
 * and U of the program are not looked at. Fails the test where a node lacks what it needs, where a value is
 * said to stay that was not there, or memory is exceeded. Returns the ticks.
 */
int64_t checkmate_play(const struct chain *chain, const double *x);

#endif
