/*
 * With a memory price a_l >= 0 on row "memory" of layer l and f_l >= 0 on row "flow", in ticks a byte:
 *
 *     link_l = a_l + f_l <= 1 / B         waiting one tick frees B bytes
 *     f_l <= link_{l+1}                   rows "flow" and "entry" share the cost of a byte after l
 *     device_l = device_{l+1} + a_l       of both passes
 *     constant_l = constant_{l+1} + sum over passes (a_l (saved - M) - f_l B d)
 *                + min(keep:      device_{l+1} saved,
 *                      recompute: device_{l+1} boundary + forward (1 - f_l B of the backward pass),
 *                      swap:      link_{l+1} out, in, each for the bytes that the copy counts for)
 *
 * from link_L = 1 / B: the end waits for all waiting bytes.
 */
#include "planner/chain/chain_bound.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "planner/chain/chain_formulation.h"

enum { COLUMNS_OF_PLACE = 3 };

static double clamp(double value, double high)
{
    return !(value > 0) || !isfinite(value) ? 0 : value < high ? value : high; /* NaN: 0 */
}

static struct chain_price *price_of(struct chain_price *prices, uint32_t layer, uint32_t set)
{
    return &prices[(size_t)layer * CHAIN_PRICES_MAX + set];
}

/* Fills a set of prices: from `duals` for layers from `first` on, from `before` (NULL: 0) for earlier layers. */
static void price(const struct chain *chain, const uint8_t *allowed, const double *before, uint32_t first,
                  const double *duals, uint32_t set, struct chain_price *prices)
{
    const double *rates = chain->fluid_rate;
    double memory = (double)chain->memory, scale = memory > 0 ? memory : 1;
    bool swaps = chain_swaps(chain);
    struct chain_price *end = price_of(prices, chain->layer_count, set);
    *end = (struct chain_price){0};
    for (uint32_t p = 0; p < 2 && swaps; p++) end->link[p] = 1 / rates[p];
    for (uint32_t l = chain->layer_count; l-- > 0;) {
        const struct chain_layer *layer = &chain->layers[l];
        const struct chain_price *next = price_of(prices, l + 1, set);
        const double *from = l < first ? before : duals;
        struct chain_price *now = price_of(prices, l, set);
        double saved = (double)layer->saved, again = (double)layer->again;
        *now = (struct chain_price){.constant = next->constant, .device = next->device};
        for (uint32_t p = 0; p < 2; p++) {
            double d = (double)(p ? layer->backward : layer->forward), a = 0, f = 0;
            if (from) {
                f = from[chain_fluid_row(l, p, CHAIN_ROW_FLOW)] / scale;
                a = -from[chain_fluid_row(l, p, CHAIN_ROW_MEMORY)] / scale;
            }
            f = swaps ? clamp(f, next->link[p]) : 0;
            a = clamp(a, swaps ? 1 / rates[p] - f : HUGE_VAL);
            now->link[p] = a + f;
            now->device += a;
            now->constant += a * (saved - memory) - (swaps ? f * rates[p] * d : 0);
            if (p == 1 && swaps) again -= f * rates[p] * (double)layer->again;
        }
        const double costs[CHAIN_CHOICES] = {
            [CHAIN_KEEP] = next->device * saved,
            [CHAIN_SWAP] = next->link[0] * (double)layer->fluid[0] + next->link[1] * (double)layer->fluid[1],
            [CHAIN_RECOMPUTE] = next->device * (double)layer->boundary + again,
        };
        double least = HUGE_VAL;
        for (uint32_t choice = 0; choice < CHAIN_CHOICES; choice++)
            if (chain_allowed(chain, allowed, l) & 1 << choice && costs[choice] < least) least = costs[choice];
        now->constant += least;
    }
}

/* Solves the program, its relaxation and, from `fixings`, programs that start at places. Returns NULL without memory or
 * answer; free() the result. */
static double *solve(const struct chain *chain, const uint8_t *allowed, const struct milp_fixing *fixings, 
                     uint32_t place_count, double limit_s, uint32_t *row_count, uint32_t *dual_count)
{
    struct milp *milp = chain_fluid(chain, allowed);
    struct milp_result result = {0};
    if (!milp) return NULL;
    struct milp_options options = {.limit_s = limit_s, .relaxed = true, .fixings = fixings,
                                   .variant_count = place_count, .fixed_count = COLUMNS_OF_PLACE};
    struct error unsolved = {0};
    if (milp_solve(milp, &options, &result, &unsolved)) {} /* earlier reports are valid */
    *row_count = milp_row_count(milp);
    *dual_count = result.dual_count;
    free(result.x);
    milp_destroy(milp);
    return result.duals;
}

enum status chain_bound_make(const struct chain *chain, const uint8_t *allowed, double limit_s,
                             struct chain_bound *out, struct error *err)
{
    size_t count = (chain->layer_count + 1u) * (size_t)CHAIN_PRICES_MAX;
    struct chain_price *prices = alloc_zeroed(count, sizeof *prices);
    uint32_t rows, told;
    if (!prices) return error_memory(err, "prices", count * sizeof *prices);
    double *duals = limit_s > 0 ? solve(chain, allowed, NULL, 0, limit_s, &rows, &told) : NULL;
    price(chain, allowed, duals, 0, duals, 0, prices);
    *out = (struct chain_bound){prices, duals, allowed, 1};
    return STATUS_OK;
}

double chain_bound_at(const struct chain_bound *bound, const struct chain_place *place)
{
    const struct chain_price *prices = price_of(bound->prices, place->layer, 0);
    double best = -HUGE_VAL;
    for (uint32_t set = 0; set < bound->count; set++) {
        const struct chain_price *p = &prices[set];
        double now = p->constant + p->device * place->device + p->link[0] * place->link[0] +
                     p->link[1] * place->link[1];
        if (now > best) best = now;
    }
    return best;
}

enum status chain_bound_sharpen(const struct chain *chain, const struct chain_place *places,
                                uint32_t place_count, double limit_s, struct chain_bound *bound,
                                struct error *err)
{
    double scale = chain->memory > 0 ? (double)chain->memory : 1;
    uint32_t rows = 0, told = 0;
    if (!bound->duals || place_count == 0 || !(limit_s > 0)) return STATUS_OK;
    struct milp_fixing *fixings = alloc_zeroed((size_t)place_count * COLUMNS_OF_PLACE, sizeof *fixings);
    if (!fixings) return error_memory(err, "places", place_count * sizeof *places);
    for (uint32_t i = 0; i < place_count; i++) {
        struct milp_fixing *held = &fixings[(size_t)i * COLUMNS_OF_PLACE];
        const struct chain_place *at = &places[i];
        held[0] = (struct milp_fixing){chain_fluid_left(chain, at->layer), at->device / scale};
        for (uint32_t p = 0; p < 2; p++)
            held[1 + p] = (struct milp_fixing){chain_fluid_waits(chain, at->layer, p), at->link[p] / scale};
    }
    double *duals = solve(chain, bound->allowed, fixings, place_count, limit_s, &rows, &told);
    free(fixings);
    for (uint32_t i = 0; i + 1 < told && bound->count < CHAIN_PRICES_MAX; i++) {
        double before = chain_bound_at(bound, &places[i]);
        price(chain, bound->allowed, bound->duals, places[i].layer, duals + (size_t)(i + 1) * rows,
              bound->count, bound->prices);
        bound->count++;
        if (chain_bound_at(bound, &places[i]) < before + 1) bound->count--;
    }
    free(duals);
    return STATUS_OK;
}

void chain_bound_release(struct chain_bound *bound)
{
    free(bound->prices);
    free(bound->duals);
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
    return chain_bound_round(chain, chain_bound_at(bound, &(struct chain_place){0}));
}
