/*
 * Keep, swap and recompute as a mixed-integer program, the fluid program. A copy frees, and takes, memory byte by byte,
 * and a link carries waiting bytes up to its rate. There is no big M: a pass's state is the bytes left on the device
 * (m) and the bytes that wait for the link (o out, i in, the latter from the backward pass's end). Each copy takes its
 * whole ticks (chain.h, fluid and fluid_rate). A part of a layer may be swapped: whole swaps did not raise the optimum
 * of any of ten random chains of 48 and 96 layers, and took GLPK two to twelve times the nodes. The program relaxes
 * chain.h's rules, so its optimum is a lower bound.
 *
 * Names have the layer: r_3 recomputes layer 3, w_3 swaps it, g_3 and h_3 are the ticks waited before it in the forward
 * and the backward pass.
 */
#ifndef SPILLWAY_PLANNER_CHAIN_CHAIN_FORMULATION_H
#define SPILLWAY_PLANNER_CHAIN_CHAIN_FORMULATION_H

#include "planner/chain/chain.h"
#include "planner/solve/milp/milp.h"

/* Rows with a dual, three of a layer in each pass: its memory, the flow through it, the flow into the link. */
enum chain_row { CHAIN_ROW_MEMORY, CHAIN_ROW_FLOW, CHAIN_ROW_ENTRY, CHAIN_ROWS };

/* Returns the number of such a row; pass 0 is forward, 1 backward. */
uint32_t chain_fluid_row(uint32_t layer, uint32_t pass, enum chain_row row);

/* Returns the column that recomputes a layer. */
uint32_t chain_fluid_recomputes(uint32_t layer);

/* Returns the columns of the state after layers 0 .. layer-1: bytes on the device (m), and bytes that wait for a pass's
 * link (o, i). */
uint32_t chain_fluid_left(const struct chain *chain, uint32_t layer);
uint32_t chain_fluid_waits(const struct chain *chain, uint32_t layer, uint32_t pass);

/* Its value is the ticks beyond chain->compute; schedules have only choices in `allowed` (chain.h). The caller frees it
 * with milp_destroy(). Returns NULL without memory. */
struct milp *chain_fluid(const struct chain *chain, const uint8_t *allowed);

/* Reads the choices of a solution. */
void chain_fluid_choices(const struct chain *chain, const double *x, uint8_t *choices);

#endif
