/*
 * How little can the rest of a chain cost, from what its first layers left behind?
 *
 * With m bytes left on the device by layers 0 .. l-1, o bytes still waiting for the link out and i for
 * the link in (of the mirrored backward pass), the layers from l on cost at least
 *
 *     constant_l + device_l m + out_l o + in_l i      ticks beyond chain->compute
 *
 * Any prices at which memory and links are sold to the layers one by one give such a bound, if a byte
 * on a link costs no more than waiting for it and no more than the memory that it may stand in and the
 * link after this layer together; the best ones are the duals of the fluid program. They only guide:
 * whatever is put in is brought within those conditions, and the constants are computed from them.
 *
 * What the rest costs is no plane over (m, o, i), though: one set of prices is good only near what the
 * program itself would leave. So there are several, each from the duals of the program that starts at
 * one place, and the bound is the greatest of theirs.
 *
 * Source: Lagrangian relaxation of the fluid program (chain_formulation.h) of all rows but r + w <= 1;
 * planes at visited states, Pereira and Pinto, Mathematical Programming 52 (1991).
 */
#ifndef SPILLWAY_PLANNER_CHAIN_BOUND_H
#define SPILLWAY_PLANNER_CHAIN_BOUND_H

#include "planner/chain/chain.h"

/* Sets of prices: each makes the bound of every state dearer to work out. */
enum { CHAIN_PRICES_MAX = 48 };

struct chain_price {
    double constant, device, link[2]; /* link: out, in */
};

/* What layers 0 .. layer-1 may leave: bytes on the device for good, and bytes that wait for a link. */
struct chain_place {
    uint32_t layer;
    double device, link[2];
};

/* Zeroed it is empty. Release it with chain_bound_release(). */
struct chain_bound {
    struct chain_price *prices; /* (layer_count + 1, count): those of a layer lie side by side */
    double *duals;              /* of the fluid program; NULL: not solved, all prices are 0 but at the end */
    const uint8_t *allowed;     /* the choices that it is a bound of (chain.h); borrowed, NULL: all */
    uint32_t count;             /* 1 .. CHAIN_PRICES_MAX */
};

/* Prices from the duals of the fluid program, found in at most limit_s (at most 0: no time). A
 * solver that fails costs quality alone. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status chain_bound_make(const struct chain *chain, const uint8_t *allowed, double limit_s,
                                        struct chain_bound *out, struct error *err);

/*
 * Further sets, from the fluid program at `places`, those that raise the bound there by a tick: as many
 * as limit_s and CHAIN_PRICES_MAX allow. Does nothing where the program was not solved.
 * Errors: STATUS_NO_MEMORY.
 */
MUST_CHECK enum status chain_bound_sharpen(const struct chain *chain, const struct chain_place *places,
                                           uint32_t place_count, double limit_s, struct chain_bound *bound,
                                           struct error *err);
void chain_bound_release(struct chain_bound *bound);

/* Ticks beyond chain->compute that layers from place->layer on cost at least. */
double chain_bound_at(const struct chain_bound *bound, const struct chain_place *place);

/* A bound in ticks on every makespan with those choices. */
int64_t chain_bound_ticks(const struct chain *chain, const struct chain_bound *bound);

/* Whole ticks that are certainly needed where `excess` are by floating-point arithmetic. */
int64_t chain_bound_round(const struct chain *chain, double excess);

#endif
