/* See chain_rules.h. Every rule fills choices; the makespan is taken at the end, once for all. */
#include "planner/chain_rules.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

const char *const chain_rule_names[CHAIN_RULES] = {"recompute", "swap-all", "karma", "sqrt", "checkmate"};

struct ruling {
    const struct chain *chain;
    uint8_t *choices;
    struct chain_pass pass;
};

static void fill(struct ruling *r, enum chain_choice choice)
{
    memset(r->choices, choice, r->chain->layer_count);
    r->choices[r->chain->layer_count - 1] = CHAIN_KEEP; /* it runs backward at once */
}

/* --- KARMA ------------------------------------------------------------------------------------ */

static bool karma(struct ruling *r)
{
    int64_t best, now;
    uint32_t layers = r->chain->layer_count, swapped = 0;
    if (!chain_swaps(r->chain)) return false;
    fill(r, CHAIN_KEEP);
    uint64_t kept = r->chain->layers[layers - 1].saved;
    for (swapped = layers - 1; swapped > 0; swapped--) {
        kept += r->chain->layers[swapped - 1].saved;
        if (kept > r->chain->memory) break;
    }
    memset(r->choices, CHAIN_SWAP, swapped);
    while (!chain_makespan(r->chain, r->choices, &r->pass, &best)) { /* a wide layer in front */
        if (swapped == layers) return false;
        r->choices[swapped++] = CHAIN_SWAP;
    }
    for (bool better = true; better;) {
        better = false;
        for (uint32_t l = swapped; l-- > 0;) {
            if (r->choices[l] == CHAIN_RECOMPUTE) continue;
            r->choices[l] = CHAIN_RECOMPUTE;
            if (chain_makespan(r->chain, r->choices, &r->pass, &now) && now < best) {
                best = now;
                better = true;
            } else {
                r->choices[l] = CHAIN_SWAP;
            }
        }
    }
    return true;
}

/* --- keep or recompute ------------------------------------------------------------------------ */

static bool square_root(struct ruling *r)
{
    int64_t best = INT64_MAX, now;
    uint32_t layers = r->chain->layer_count, best_step = 0;
    for (uint32_t step = 1; step <= layers; step++) {
        fill(r, CHAIN_RECOMPUTE);
        for (uint32_t l = step - 1; l < layers; l += step) r->choices[l] = CHAIN_KEEP;
        if (!chain_makespan(r->chain, r->choices, &r->pass, &now) || now >= best) continue;
        best = now;
        best_step = step;
    }
    if (best_step == 0) return false;
    fill(r, CHAIN_RECOMPUTE);
    for (uint32_t l = best_step - 1; l < layers; l += best_step) r->choices[l] = CHAIN_KEEP;
    return true;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/*
 * cost[c]: least ticks computed twice with at most c units of memory left taken by the layers so far.
 * Layer by layer c grows by what the layer leaves; it must leave room for the layer that runs.
 */
static enum status keep_or_recompute(struct ruling *r, bool *fits, struct error *err)
{
    const struct chain *chain = r->chain;
    uint32_t layers = chain->layer_count;
    uint64_t unit = chain->memory;
    for (uint32_t l = 0; l < layers; l++)
        unit = common_divisor(common_divisor(unit, chain->layers[l].saved), chain->layers[l].boundary);
    if (unit == 0) unit = 1;
    if (chain->memory / unit >= CHAIN_RULE_CELLS) unit = chain->memory / (CHAIN_RULE_CELLS - 1) + 1;
    size_t cells = (size_t)(chain->memory / unit) + 1;
    int64_t *cost = alloc_zeroed(cells, sizeof *cost), *next = alloc_zeroed(cells, sizeof *next);
    uint8_t *recomputed = alloc_zeroed(cells, layers);
    if (!cost || !next || !recomputed) {
        error_memory(err, "a table of memory", cells * layers);
        goto out;
    }
    for (uint32_t l = 0; l < layers; l++) {
        const struct chain_layer *layer = &chain->layers[l];
        size_t runs = (size_t)((layer->saved + unit - 1) / unit), kept = runs;
        size_t again = (size_t)((layer->boundary + unit - 1) / unit);
        for (size_t c = 0; c < cells; c++) {
            next[c] = INT64_MAX;
            if (c >= kept && c - kept + runs < cells) next[c] = cost[c - kept];
            if (c < again || c - again + runs >= cells || cost[c - again] == INT64_MAX ||
                cost[c - again] + layer->forward >= next[c])
                continue;
            next[c] = cost[c - again] + layer->forward;
            recomputed[l * cells + c] = 1;
        }
        int64_t *swap = cost;
        cost = next;
        next = swap;
    }
    size_t best = 0;
    for (size_t c = 1; c < cells; c++)
        if (cost[c] < cost[best]) best = c;
    *fits = cost[best] != INT64_MAX;
    for (uint32_t l = layers; *fits && l-- > 0;) {
        const struct chain_layer *layer = &chain->layers[l];
        bool again = recomputed[l * cells + best];
        r->choices[l] = again ? CHAIN_RECOMPUTE : CHAIN_KEEP;
        best -= (size_t)(((again ? layer->boundary : layer->saved) + unit - 1) / unit);
    }
out:
    free(cost);
    free(next);
    free(recomputed);
    return err->status;
}

enum status chain_rule_run(const struct chain *chain, enum chain_rule rule, uint8_t *choices,
                           int64_t *makespan, bool *fits, struct error *err)
{
    struct ruling r = {.chain = chain};
    int64_t found;
    bool made = true;
    if (chain_pass_create(chain->layer_count, &r.pass, err)) return err->status;
    r.choices = alloc_zeroed(chain->layer_count, sizeof *r.choices);
    if (!r.choices) {
        error_memory(err, "choices", chain->layer_count);
        goto out;
    }
    switch (rule) {
    case CHAIN_RULE_SWAP_ALL:
        fill(&r, CHAIN_SWAP);
        made = chain_swaps(chain);
        break;
    case CHAIN_RULE_KARMA: made = karma(&r); break;
    case CHAIN_RULE_SQRT: made = square_root(&r); break;
    case CHAIN_RULE_CHECKMATE:
        if (keep_or_recompute(&r, &made, err)) goto out;
        break;
    default: fill(&r, CHAIN_RECOMPUTE); break;
    }
    *fits = made && chain_makespan(chain, r.choices, &r.pass, &found);
    if (!*fits) goto out;
    *makespan = found;
    memcpy(choices, r.choices, chain->layer_count * sizeof *choices);
out:
    free(r.choices);
    chain_pass_destroy(&r.pass);
    return err->status;
}
