/*
 * A lower bound on the cost of a chain's rest, by the state after its first layers.
 *
 * With m bytes left on the device by layers 0 .. l-1, o waiting for the link out and i for the link in (of the mirrored
 * backward pass), layers from l on cost at least
 *
 *     constant_l + device_l m + out_l o + in_l i      ticks beyond chain->compute
 *
 * Any prices of memory and links give such a bound if a byte on a link costs no more than waiting for it, and no more
 * than its memory plus the link after this layer. The best prices are the fluid program's duals. This module brings any
 * prices within the conditions, and computes the constants from them.
 *
 * The rest's cost is not a plane over (m, o, i): a set of prices is good only near the state that the program itself
 * would leave. So several sets come from the program started in several states, and the greatest bound counts.
 *
 * Source: Lagrangian relaxation of the fluid program (chain_formulation.h) of all rows but r + w <= 1; planes at
 * visited states, Pereira and Pinto, Mathematical Programming 52 (1991).
 */
#ifndef SPILLWAY_PLANNER_CHAIN_CHAIN_BOUND_H
#define SPILLWAY_PLANNER_CHAIN_CHAIN_BOUND_H

#include "planner/chain/chain.h"

/* Most sets of prices: each makes the bound of every state slower. */
enum { CHAIN_PRICES_MAX = 48 };

struct chain_price {
    double constant, device, link[2]; /* link: out, in */
};

/* A state that layers 0 .. layer-1 may leave: bytes kept on the device, and bytes that wait for a link. */
struct chain_place {
    uint32_t layer;
    double device, link[2];
};

/* Zeroed: empty. Release it with chain_bound_release(). */
struct chain_bound {
    struct chain_price *prices; /* (layer_count + 1, count): the sets of a layer are adjacent */
    double *duals;              /* of the fluid program; NULL: not solved, all prices are 0 except at the end */
    const uint8_t *allowed;     /* choices that the bound covers (chain.h); borrowed, NULL: all */
    uint32_t count;             /* 1 .. CHAIN_PRICES_MAX */
};

/* Makes prices from the fluid program's duals, solved in at most limit_s (at most 0: not solved). A failing solver only
 * weakens the bound. */
MUST_CHECK enum status chain_bound_make(const struct chain *chain, const uint8_t *allowed, double limit_s,
                                        struct chain_bound *out, struct error *err);

/*
 * Adds prices from the fluid program at `places`, where they raise the bound by at least a tick, within limit_s and
 * CHAIN_PRICES_MAX. Does nothing when the program was not solved.
 */
MUST_CHECK enum status chain_bound_sharpen(const struct chain *chain, const struct chain_place *places,
                                           uint32_t place_count, double limit_s, struct chain_bound *bound,
                                           struct error *err);
void chain_bound_release(struct chain_bound *bound);

/* Returns the least ticks beyond chain->compute that the layers from place->layer on cost. */
double chain_bound_at(const struct chain_bound *bound, const struct chain_place *place);

/* Returns a bound in ticks on every makespan with these choices. */
int64_t chain_bound_ticks(const struct chain *chain, const struct chain_bound *bound);

/* Returns the whole ticks that are certainly needed when floating-point arithmetic gives `excess`. */
int64_t chain_bound_round(const struct chain *chain, double excess);

#endif
