/*
 * With a memory price a_l >= 0 on row "memory" of layer l and f_l >= 0 on row "flow", in ticks a byte:
 *
 *     link_l = a_l + f_l <= 1 / B         waiting one tick frees B bytes
 *     f_l <= link_{l+1}                   rows "flow" and "entry" share what a byte costs behind l
 *     device_l = device_{l+1} + a_l       of both passes
 *     constant_l = constant_{l+1} + sum over passes (a_l (saved - M) - f_l B d)
 *                + min(keep:      device_{l+1} saved,
 *                      recompute: device_{l+1} boundary + forward (1 - f_l B of the backward pass),
 *                      swap:      (link_{l+1} out + in) saved)
 *
 * from link_L = 1 / B: what waits at the end is waited for.
 */
#include "planner/chain_bound.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "planner/chain_formulation.h"

static double clamp(double value, double high)
{
    return !(value > 0) || !isfinite(value) ? 0 : value < high ? value : high; /* NaN: 0 */
}

/* Fill prices[] from the duals, or from nothing. */
static void price(const struct chain *chain, const double *duals, struct chain_price *prices)
{
    const double rates[] = {(double)chain->out_bytes_per_tick, (double)chain->in_bytes_per_tick};
    double memory = (double)chain->memory, unit = memory > 0 ? memory : 1;
    bool swaps = chain_swaps(chain);
    struct chain_price *end = &prices[chain->layer_count];
    *end = (struct chain_price){0};
    for (uint32_t p = 0; p < 2 && swaps; p++) end->link[p] = 1 / rates[p];
    for (uint32_t l = chain->layer_count; l-- > 0;) {
        const struct chain_layer *layer = &chain->layers[l];
        const struct chain_price *next = &prices[l + 1];
        struct chain_price *now = &prices[l];
        double saved = (double)layer->saved, again = (double)layer->forward;
        *now = (struct chain_price){.constant = next->constant, .device = next->device};
        for (uint32_t p = 0; p < 2; p++) {
            double d = (double)(p ? layer->backward : layer->forward), a = 0, f = 0;
            if (duals) {
                f = duals[chain_fluid_row(l, p, CHAIN_ROW_FLOW)] / unit;
                a = -duals[chain_fluid_row(l, p, CHAIN_ROW_MEMORY)] / unit;
            }
            f = swaps ? clamp(f, next->link[p]) : 0;
            a = clamp(a, swaps ? 1 / rates[p] - f : HUGE_VAL);
            now->link[p] = a + f;
            now->device += a;
            now->constant += a * (saved - memory) - (swaps ? f * rates[p] * d : 0);
            if (p == 1 && swaps) again -= f * rates[p] * (double)layer->forward;
        }
        double least = next->device * saved;
        double recomputed = next->device * (double)layer->boundary + again;
        double swapped = (next->link[0] + next->link[1]) * saved;
        if (recomputed < least) least = recomputed;
        if (swaps && swapped < least) least = swapped;
        now->constant += least;
    }
}

enum status chain_bound_make(const struct chain *chain, double limit_s, struct chain_bound *out,
                             struct error *err)
{
    struct chain_price *prices = alloc_zeroed(chain->layer_count + 1u, sizeof *prices);
    if (!prices) return error_memory(err, "prices", (chain->layer_count + 1u) * sizeof *prices);
    struct milp *milp = limit_s > 0 ? chain_fluid(chain) : NULL;
    struct milp_result result = {0};
    if (milp) {
        struct milp_options options = {.limit_s = limit_s, .relaxed = true};
        struct error unsolved = {0};
        if (milp_solve(milp, &options, &result, &unsolved)) {} /* the prices are 0 then */
    }
    price(chain, result.duals, prices);
    *out = (struct chain_bound){prices, result.duals != NULL};
    free(result.duals);
    free(result.x);
    milp_destroy(milp);
    return STATUS_OK;
}

void chain_bound_release(struct chain_bound *bound)
{
    free(bound->prices);
    *bound = (struct chain_bound){0};
}

int64_t chain_bound_round(const struct chain *chain, double excess)
{
    /* sums of some thousand terms, none far above the makespan: errors stay below 1e-9 of it */
    double whole = ceil(excess - 1e-6 - 1e-9 * (double)chain->compute);
    return chain->compute + (whole > 0 ? (int64_t)whole : 0);
}

int64_t chain_bound_ticks(const struct chain *chain, const struct chain_bound *bound)
{
    return chain_bound_round(chain, bound->prices[0].constant);
}
