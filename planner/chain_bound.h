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
 * Source: Lagrangian relaxation of the fluid program (chain_formulation.h) of all rows but r + w <= 1.
 */
#ifndef SPILLWAY_PLANNER_CHAIN_BOUND_H
#define SPILLWAY_PLANNER_CHAIN_BOUND_H

#include "planner/chain.h"

struct chain_price {
    double constant, device, link[2]; /* link: out, in */
};

/* (layer_count + 1), zeroed or solved; the caller frees it with free(). */
struct chain_bound {
    struct chain_price *prices;
    bool solved; /* by the fluid program's duals; else all prices are 0 but those at the end */
};

/* Prices from the duals of the fluid program, found in at most limit_s (at most 0: no time). A
 * solver that fails costs quality alone. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status chain_bound_make(const struct chain *chain, double limit_s,
                                        struct chain_bound *out, struct error *err);
void chain_bound_release(struct chain_bound *bound);

/* A bound in ticks on every makespan. */
int64_t chain_bound_ticks(const struct chain *chain, const struct chain_bound *bound);

/* Whole ticks that are certainly needed where `excess` are by floating-point arithmetic. */
int64_t chain_bound_round(const struct chain *chain, double excess);

#endif
