/* See chain_random.h. A backward pass takes 1.7 to 2.3 times the forward pass; a boundary is 5 to 15 % of the saved
 * bytes. */
#include "planner/chain/chain_random.h"

#include "base/random.h"
#include "base/try.h"

const char *const chain_family_names[CHAIN_FAMILIES] = {"cnn", "random", "identical"};

static double between(const struct chain_random *options, uint64_t *counter, double low, double high)
{
    uint64_t key = options->seed * CHAIN_FAMILIES + options->family;
    return low + (high - low) * random_unit(key, (*counter)++);
}

static struct chain_layer draw_layer(const struct chain_random *options, uint64_t *counter, double scale)
{
    double forward = between(options, counter, 200, 1000), saved = between(options, counter, 300, 1000);
    return (struct chain_layer){
        .forward = (int64_t)forward,
        .backward = (int64_t)(forward * between(options, counter, 1.7, 2.3)),
        .saved = (uint64_t)(1000 * scale * saved),
        .boundary = (uint64_t)(1000 * scale * saved * between(options, counter, 0.05, 0.15))};
}

enum status chain_random(const struct chain_random *options, struct chain *out, struct error *err)
{
    struct chain chain = {.name = chain_family_names[options->family]};
    struct chain_layer layer = {0};
    uint64_t counter = 0, kept = 0, boundaries = 0, least = 0;
    uint32_t stage = options->layers < 8 ? 2 : options->layers / 4;
    int64_t compute = 0;
    double scale = 1;
    TRY(chain_init(&chain, options->layers, err));
    for (uint32_t l = 0; l < options->layers; l++) {
        bool next = options->family == CHAIN_CNN && l > 0 && l % stage == 0;
        if (next) scale /= 2;
        if (l == 0 || next || options->family == CHAIN_RANDOM) layer = draw_layer(options, &counter, scale);
        chain.layers[l] = layer;
        if (boundaries + layer.saved > least) least = boundaries + layer.saved;
        kept += layer.saved;
        boundaries += layer.boundary;
        compute += layer.forward;
    }
    chain.memory = least + (uint64_t)(options->memory * (double)(kept - least));
    chain.out_bytes_per_tick = chain.in_bytes_per_tick =
        (uint64_t)(options->link * (double)kept / (double)compute);
    if (chain_finish(&chain, err)) {
        chain_release(&chain);
        return err->status;
    }
    *out = chain;
    return STATUS_OK;
}
