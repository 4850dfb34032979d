/*
 * For the forward pass, with d the duration of layer l, s its saved bytes, c the bytes that its copy counts for, B the
 * link's rate in these bytes, g the ticks waited before the layer and o the bytes that wait for the link when the
 * previous layer has ended:
 *
 *     memory   m_l + s + o_l - B g_l <= M
 *     flow     o_{l+1} >= o_l - B g_l - B d + c w_l
 *     entry    o_{l+1} >= c w_l
 *     left     m_{l+1} >= m_l + s (1 - r_l - w_l) + boundary r_l
 *
 * and o_L / B ticks more at the end; the mirrored backward pass has d = backward + again r_l. All bytes are divided by
 * the memory, so that coefficients are near 1.
 */
#include "planner/chain/chain_formulation.h"

#include <math.h>

enum { ROWS_OF_LAYER = 1 + 2 * CHAIN_ROWS, COLUMNS_OF_LAYER = 2, STATE_COLUMNS_OF_LAYER = 5 };

uint32_t chain_fluid_row(uint32_t layer, uint32_t pass, enum chain_row row)
{
    return layer * ROWS_OF_LAYER + 1 + pass * CHAIN_ROWS + row;
}

uint32_t chain_fluid_recomputes(uint32_t layer)
{
    return layer * COLUMNS_OF_LAYER;
}

uint32_t chain_fluid_left(const struct chain *chain, uint32_t layer)
{
    uint32_t first = chain->layer_count * COLUMNS_OF_LAYER;
    return layer == 0 ? first : first + 1 + 2 + (layer - 1) * STATE_COLUMNS_OF_LAYER;
}

/* Returns a column: m_0, o_0, i_0; then m, g, o, h, i of each layer. */
uint32_t chain_fluid_waits(const struct chain *chain, uint32_t layer, uint32_t pass)
{
    return chain_fluid_left(chain, layer) + (layer == 0 ? 1 + pass : 2 + 2 * pass);
}

static void pass_rows(struct milp *milp, const struct chain *chain, uint32_t l, uint32_t pass,
                      uint32_t left, uint32_t waits, uint32_t wait_ticks, uint32_t next)
{
    const struct chain_layer *layer = &chain->layers[l];
    double scale = chain->memory > 0 ? (double)chain->memory : 1, saved = (double)layer->saved / scale;
    double rate = chain->fluid_rate[pass] / scale, copied = (double)layer->fluid[pass] / scale;
    uint32_t again = l * COLUMNS_OF_LAYER, swapped = again + 1;
    char name = pass ? 'b' : 'f';
    milp_term(milp, left, 1);
    milp_term(milp, waits, 1);
    milp_term(milp, wait_ticks, -rate);
    milp_row(milp, -HUGE_VAL, (double)chain->memory / scale - saved, "memory_%c_%u", name, l);
    milp_term(milp, next, 1);
    milp_term(milp, waits, -1);
    milp_term(milp, wait_ticks, rate);
    milp_term(milp, swapped, -copied);
    if (pass) milp_term(milp, again, rate * (double)layer->again);
    milp_row(milp, -rate * (double)(pass ? layer->backward : layer->forward), HUGE_VAL, "flow_%c_%u", name, l);
    milp_term(milp, next, 1);
    milp_term(milp, swapped, -copied);
    milp_row(milp, 0, HUGE_VAL, "entry_%c_%u", name, l);
}

struct milp *chain_fluid(const struct chain *chain, const uint8_t *allowed)
{
    struct milp *milp = milp_create("chain_fluid");
    if (!milp) return NULL;
    double scale = chain->memory > 0 ? (double)chain->memory : 1;
    const double *rates = chain->fluid_rate;
    for (uint32_t l = 0; l < chain->layer_count; l++) {
        uint8_t set = chain_allowed(chain, allowed, l);
        double r = set >> CHAIN_RECOMPUTE & 1, w = set >> CHAIN_SWAP & 1; /* 1: may be */
        milp_column(milp, set == 1 << CHAIN_RECOMPUTE ? 1 : 0, r, (double)chain->layers[l].again, true,
                    "r_%u", l);
        milp_column(milp, set == 1 << CHAIN_SWAP ? 1 : 0, w, 0, false, "w_%u", l);
    }
    uint32_t left = milp_column(milp, 0, 0, 0, false, "m_0"), waits[2];
    for (uint32_t pass = 0; pass < 2; pass++)
        waits[pass] = milp_column(milp, 0, 0, 0, false, "%c_0", pass ? 'i' : 'o');
    for (uint32_t l = 0; l < chain->layer_count; l++) {
        const struct chain_layer *layer = &chain->layers[l];
        bool last = l + 1 == chain->layer_count;
        uint32_t again = l * COLUMNS_OF_LAYER, swapped = again + 1, now = left;
        double saved = (double)layer->saved / scale, boundary = (double)layer->boundary / scale;
        left = milp_column(milp, 0, HUGE_VAL, 0, false, "m_%u", l + 1);
        milp_term(milp, left, 1);
        milp_term(milp, now, -1);
        milp_term(milp, again, saved - boundary);
        milp_term(milp, swapped, saved);
        milp_row(milp, saved, HUGE_VAL, "left_%u", l);
        for (uint32_t pass = 0; pass < 2; pass++) {
            double cost = last && rates[pass] > 0 ? scale / rates[pass] : 0;
            uint32_t ticks = milp_column(milp, 0, rates[pass] > 0 ? HUGE_VAL : 0, 1, false, "%c_%u",
                                         pass ? 'h' : 'g', l);
            uint32_t next = milp_column(milp, 0, HUGE_VAL, cost, false, "%c_%u", pass ? 'i' : 'o', l + 1);
            pass_rows(milp, chain, l, pass, now, waits[pass], ticks, next);
            waits[pass] = next;
        }
    }
    for (uint32_t l = 0; l < chain->layer_count; l++) {
        milp_term(milp, l * COLUMNS_OF_LAYER, 1);
        milp_term(milp, l * COLUMNS_OF_LAYER + 1, 1);
        double least = chain_allowed(chain, allowed, l) & 1 << CHAIN_KEEP ? -HUGE_VAL : 1;
        milp_row(milp, least, 1, "one_%u", l);
    }
    return milp;
}

void chain_fluid_choices(const struct chain *chain, const double *x, uint8_t *choices)
{
    for (uint32_t l = 0; l < chain->layer_count; l++)
        choices[l] = x[l * COLUMNS_OF_LAYER] > 0.5       ? CHAIN_RECOMPUTE
                     : x[l * COLUMNS_OF_LAYER + 1] > 0.5 ? CHAIN_SWAP
                                                         : CHAIN_KEEP;
}
