/* chain_finish() checks here, once, the conditions that searches and bounds rely on. */
#include "planner/chain/chain.h"

#include <inttypes.h>

#include "base/try.h"

const char *const chain_choice_names[CHAIN_CHOICES] = {"keep", "swap", "recompute"};

enum status chain_init(struct chain *chain, uint32_t layer_count, struct error *err)
{
    if (layer_count == 0) return error_set(err, STATUS_BAD_INPUT, "an empty chain");
    if (layer_count > CHAIN_LAYERS_MAX)
        return error_set(err, STATUS_LIMIT, "too many layers (limit is %d)", CHAIN_LAYERS_MAX);
    TRY(ARENA_NEW(&chain->arena, layer_count, chain->layers, err));
    chain->layer_count = layer_count;
    return STATUS_OK;
}

static enum status finish_layer(struct chain *chain, uint32_t l, struct error *err)
{
    struct chain_layer *layer = &chain->layers[l];
    const struct {
        const char *name;
        int64_t ticks;
    } passes[] = {{"forward", layer->forward}, {"backward", layer->backward}};
    for (uint32_t p = 0; p < 2; p++)
        if (passes[p].ticks < 1 || passes[p].ticks > CHAIN_TICKS_MAX)
            return error_set(err, STATUS_BAD_INPUT,
                             "layer %u: a %s pass of %" PRId64 " ticks (expected 1 to %" PRId64 ")", l,
                             passes[p].name, passes[p].ticks, CHAIN_TICKS_MAX);
    if (layer->saved > CHAIN_BYTES_MAX || layer->boundary > layer->saved)
        return error_set(err, STATUS_BAD_INPUT,
                         "layer %u: saves %" PRIu64 " bytes and a boundary of %" PRIu64
                         " (expected at most %" PRIu64 ", the boundary no more than all)",
                         l, layer->saved, layer->boundary, CHAIN_BYTES_MAX);
    if (layer->again == 0) layer->again = layer->forward;
    if (layer->again < 1 || layer->again > CHAIN_TICKS_MAX)
        return error_set(err, STATUS_BAD_INPUT,
                         "layer %u: a second forward pass of %" PRId64 " ticks (expected 1 to %" PRId64 ")", l,
                         layer->again, CHAIN_TICKS_MAX);
    layer->out = layer->in = 0;
    if (!chain_swaps(chain)) return STATUS_OK;
    layer->out = (int64_t)((layer->saved + chain->out_bytes_per_tick - 1) / chain->out_bytes_per_tick);
    layer->in = (int64_t)((layer->saved + chain->in_bytes_per_tick - 1) / chain->in_bytes_per_tick);
    return STATUS_OK;
}

/* Copies of fewer ticks than this do not slow the fluid rate. */
enum { FLUID_TICKS = 64 };

/*
 * A copy takes whole ticks, so it moves a little less than the link could in each. With the link's rate, the fluid
 * program (chain_formulation.h) would lose every copy's rounding. So bytes are counted at the slowest copy's rate: each
 * copy fills its ticks, and none counts for more bytes than it has. Short copies, which would slow all others, count
 * for all their bytes.
 */
static void find_fluid_rates(struct chain *chain)
{
    const uint64_t links[] = {chain->out_bytes_per_tick, chain->in_bytes_per_tick};
    for (uint32_t p = 0; p < 2; p++) {
        double rate = chain->fluid_rate[p] = (double)links[p];
        for (uint32_t l = 0; l < chain->layer_count; l++) {
            const struct chain_layer *layer = &chain->layers[l];
            int64_t ticks = p ? layer->in : layer->out;
            double mean = ticks < FLUID_TICKS ? rate : (double)layer->saved / (double)ticks;
            if (mean < chain->fluid_rate[p]) chain->fluid_rate[p] = mean;
        }
        for (uint32_t l = 0; l < chain->layer_count; l++) {
            struct chain_layer *layer = &chain->layers[l];
            double filled = chain->fluid_rate[p] * (double)(p ? layer->in : layer->out);
            layer->fluid[p] = filled < (double)layer->saved ? (uint64_t)filled : layer->saved;
        }
    }
}

enum status chain_finish(struct chain *chain, struct error *err)
{
    int64_t longest = 0;
    uint64_t least = 0; /* minimum of earlier layers */
    chain->compute = 0;
    if (chain->memory > CHAIN_BYTES_MAX || chain->out_bytes_per_tick > CHAIN_BYTES_MAX ||
        chain->in_bytes_per_tick > CHAIN_BYTES_MAX)
        return error_set(err, STATUS_BAD_INPUT, "memory or a link of more than %" PRIu64 " bytes",
                         CHAIN_BYTES_MAX);
    for (uint32_t l = 0; l < chain->layer_count; l++) {
        TRY(finish_layer(chain, l, err));
        const struct chain_layer *layer = &chain->layers[l];
        chain->compute += layer->forward + layer->backward;
        longest += layer->forward + layer->again + layer->backward + layer->out + layer->in;
        if (longest > CHAIN_HORIZON_MAX)
            return error_set(err, STATUS_LIMIT, "the durations add up to more than %" PRId64 " ticks",
                             CHAIN_HORIZON_MAX);
        if (layer->saved > chain->memory || least > chain->memory - layer->saved)
            return error_set(err, STATUS_INFEASIBLE,
                             "layer %u: needs %" PRIu64 " bytes%s, and the device has %" PRIu64, l,
                             least + layer->saved, least > 0 ? " with the boundaries before it" : "",
                             chain->memory);
        if (!chain_swaps(chain)) least += layer->boundary;
    }
    find_fluid_rates(chain);
    return STATUS_OK;
}

void chain_release(struct chain *chain)
{
    arena_release(&chain->arena);
    *chain = (struct chain){0};
}
