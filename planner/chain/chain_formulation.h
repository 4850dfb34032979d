/*
 * Keep, swap and recompute as a mixed-integer program: the fluid one. A copy frees, and takes, memory
 * byte by byte as it goes, and a link carries whatever waits, up to its rate. There is no big M: the
 * state of each pass is the bytes left on the device (m) and those that wait for the link (o out, i in,
 * the latter from the end of the backward pass). Bytes of copies are counted so that each takes its whole
 * ticks (chain.h, fluid and fluid_rate). Layers are recomputed or not, but a part of one may be
 * swapped and the rest kept: to have swaps whole as well did not raise the optimum of any of ten random
 * chains of 48 and 96 layers, and took GLPK two to twelve times the nodes. A relaxation of chain.h's rules, so that its optimum is a lower bound.
 *
 * Columns and rows are named by layer: r_3 recomputes layer 3, w_3 swaps it, g_3 and h_3 are the ticks
 * waited before it in the forward and the backward pass.
 */
#ifndef SPILLWAY_PLANNER_CHAIN_FORMULATION_H
#define SPILLWAY_PLANNER_CHAIN_FORMULATION_H

#include "planner/chain/chain.h"
#include "planner/solve/milp/milp.h"

/* Rows that a dual is asked of, three of a layer in each pass: what it needs, what flows through, what
 * flows in. */
enum chain_row { CHAIN_ROW_MEMORY, CHAIN_ROW_FLOW, CHAIN_ROW_ENTRY, CHAIN_ROWS };

/* The number of such a row; pass 0 is forward, 1 backward. */
uint32_t chain_fluid_row(uint32_t layer, uint32_t pass, enum chain_row row);

/* The column that recomputes a layer. */
uint32_t chain_fluid_recomputes(uint32_t layer);

/* The columns of what layers 0 .. layer-1 left: bytes on the device (m), and bytes that wait for the link
 * of a pass (o, i). */
uint32_t chain_fluid_left(const struct chain *chain, uint32_t layer);
uint32_t chain_fluid_waits(const struct chain *chain, uint32_t layer, uint32_t pass);

/* Its value is the ticks beyond chain->compute, of schedules whose choices are `allowed` (chain.h). The
 * caller frees it with milp_destroy(). NULL when memory ends. */
struct milp *chain_fluid(const struct chain *chain, const uint8_t *allowed);

/* The choices of a solution. */
void chain_fluid_choices(const struct chain *chain, const double *x, uint8_t *choices);

#endif
