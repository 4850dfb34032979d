/* Every rule fills in choices; the makespan is computed at the end. */
#include "planner/chain/chain_rules.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/try.h"
#include "planner/chain/chain_keep.h"

const char *const chain_rule_names[CHAIN_RULES] = {"recompute", "swap-all", "karma", "sqrt", "checkmate",
                                                   "superneurons", "capacity"};

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

/* *out: number of swapped layers, from the first one on. */
static bool capacity(struct ruling *r, uint32_t *out, int64_t *makespan)
{
    uint32_t layers = r->chain->layer_count, swapped;
    if (!chain_swaps(r->chain)) return false;
    fill(r, CHAIN_KEEP);
    uint64_t kept = r->chain->layers[layers - 1].saved;
    for (swapped = layers - 1; swapped > 0; swapped--) {
        kept += r->chain->layers[swapped - 1].saved;
        if (kept > r->chain->memory) break;
    }
    memset(r->choices, CHAIN_SWAP, swapped);
    while (!chain_makespan(r->chain, r->choices, &r->pass, makespan)) { /* a wide early layer */
        if (swapped == layers) return false;
        r->choices[swapped++] = CHAIN_SWAP;
    }
    *out = swapped;
    return true;
}

static bool karma(struct ruling *r)
{
    int64_t best, now;
    uint32_t swapped;
    if (!capacity(r, &swapped, &best)) return false;
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

/* --- SuperNeurons ----------------------------------------------------------------------------- */

/* Returns true if recomputing a layer takes less than half the ticks per byte of all layers together. */
static bool cheap(const struct chain_layer *layer, const struct chain_layer *sum)
{
    return 2 * (double)layer->again * (double)sum->saved < (double)sum->again * (double)layer->saved;
}

/* Evicts the oldest checkpoints, as the tensor cache does if a forward pass finds no room. */
static bool evict(struct ruling *r)
{
    const struct chain_layer *layers = r->chain->layers;
    uint64_t left = 0;
    uint32_t oldest = 0;
    for (uint32_t l = 0; l < r->chain->layer_count; l++) {
        while (left + layers[l].saved > r->chain->memory) {
            while (oldest < l && r->choices[oldest] != CHAIN_KEEP) oldest++;
            if (oldest == l || !chain_swaps(r->chain)) return false;
            left -= layers[oldest].saved;
            r->choices[oldest] = CHAIN_SWAP;
        }
        left += chain_left(&layers[l], (enum chain_choice)r->choices[l]);
    }
    return true;
}

static bool superneurons(struct ruling *r)
{
    struct chain_layer sum = {0};
    int64_t all_kept;
    uint32_t last = r->chain->layer_count - 1;
    fill(r, CHAIN_KEEP);
    if (chain_makespan(r->chain, r->choices, &r->pass, &all_kept)) return true;
    for (uint32_t l = 0; l < last; l++) {
        sum.again += r->chain->layers[l].again;
        sum.saved += r->chain->layers[l].saved;
    }
    for (uint32_t l = 0; l < last; l++)
        if (cheap(&r->chain->layers[l], &sum)) r->choices[l] = CHAIN_RECOMPUTE;
    return evict(r);
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

static enum status keep_or_recompute(struct ruling *r, bool *fits, struct error *err)
{
    const struct chain *chain = r->chain;
    struct chain_need *needs = alloc_zeroed(chain->layer_count, sizeof *needs);
    if (!needs) return error_memory(err, "needs of layers", chain->layer_count * sizeof *needs);
    for (uint32_t l = 0; l < chain->layer_count; l++) {
        const struct chain_layer *layer = &chain->layers[l];
        needs[l] = (struct chain_need){layer->saved, layer->boundary, layer->saved, layer->again};
    }
    enum status status = chain_keep_best(needs, chain->layer_count, chain->memory, r->choices, fits, err);
    free(needs);
    return status;
}

enum status chain_rule_run(const struct chain *chain, enum chain_rule rule, uint8_t *choices,
                           int64_t *makespan, bool *fits, struct error *err)
{
    struct ruling r = {.chain = chain};
    int64_t found;
    bool made = true;
    TRY(chain_pass_create(chain->layer_count, &r.pass, err));
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
    case CHAIN_RULE_CAPACITY: made = capacity(&r, &(uint32_t){0}, &found); break;
    case CHAIN_RULE_SQRT: made = square_root(&r); break;
    case CHAIN_RULE_CHECKMATE:
        if (keep_or_recompute(&r, &made, err)) goto out;
        break;
    case CHAIN_RULE_SUPERNEURONS: made = superneurons(&r); break;
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
