#include "tests/support/solve/support_chain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/try.h"
#include "planner/chain/chain_io.h"
#include "tests/support/solve/support_chain_json.h"
#include "tests/support/support_json.h"

void test_chain(const char *text, struct chain *out)
{
    struct error err = {0};
    struct json_input *in;
    *out = (struct chain){0};
    enum status status = test_json_parse(text, &in, &err);
    if (!status) status = chain_parse(in, out, &err);
    json_input_destroy(in);
    if (status) fail_msg("%s", err.text);
}

void test_chain_print(const struct chain *chain)
{
    struct json_out *out = json_out_create(NULL);
    if (out) test_chain_write(chain, out);
    test_json_print(out);
}

void test_chain_tiny(uint64_t seed, uint32_t layers_max, struct chain *out)
{
    struct error err = {0};
    uint64_t c = 0, kept = 0, most = 0, boundaries = 0;
    uint32_t layers = 1 + (uint32_t)random_below(seed, c++, layers_max);
    bool alike = random_below(seed, c++, 3) == 0;
    *out = (struct chain){0};
    assert_int_equal(chain_init(out, layers, &err), STATUS_OK);
    for (uint32_t l = 0; l < layers; l++) {
        struct chain_layer *layer = &out->layers[l];
        layer->forward = 1 + (int64_t)random_below(seed, c++, 9);
        layer->backward = 1 + (int64_t)random_below(seed, c++, 15);
        if (random_below(seed, c++, 2)) layer->again = 1 + (int64_t)random_below(seed, c++, 9);
        layer->saved = random_below(seed, c++, 20);
        layer->boundary = random_below(seed, c++, layer->saved / 2 + 1);
        if (alike) *layer = out->layers[0];
        kept += layer->saved;
        if (layer->saved > most) most = layer->saved;
        boundaries += layer->boundary;
    }
    if (random_below(seed, c++, 5) > 0) {
        out->out_bytes_per_tick = 1 + random_below(seed, c++, 4);
        out->in_bytes_per_tick = 1 + random_below(seed, c++, 4);
    } else {
        most += boundaries; /* boundaries that may all have to stay */
    }
    out->memory = most + random_below(seed, c++, (kept > most ? kept - most : 0) + 1);
    if (chain_finish(out, &err)) fail_msg("%s", err.text);
}

void test_chain_rounded(uint64_t seed, uint32_t layers_max, struct chain *out)
{
    enum { TICKS = 100, RATE = 7 };
    struct error err = {0};
    test_chain_tiny(seed, layers_max, out);
    for (uint32_t l = 0; l < out->layer_count; l++) {
        struct chain_layer *layer = &out->layers[l];
        layer->forward *= TICKS;
        layer->backward *= TICKS;
        layer->again *= TICKS;
        layer->saved = layer->saved * TICKS * RATE + random_below(seed, 1000 + l, RATE);
        layer->boundary *= TICKS * RATE;
    }
    out->memory = (out->memory + 1) * TICKS * RATE; /* with room for rounding remainders */
    out->out_bytes_per_tick *= RATE;
    out->in_bytes_per_tick *= RATE;
    if (chain_finish(out, &err)) fail_msg("%s", err.text);
}

int64_t test_chain_brute_force(const struct chain *chain, const uint8_t *allowed)
{
    struct chain_pass pass;
    struct error err = {0};
    uint8_t choices[16] = {0};
    int64_t best = INT64_MAX, now;
    uint32_t l = 0;
    assert_true(chain->layer_count <= sizeof choices);
    assert_int_equal(chain_pass_create(chain->layer_count, &pass, &err), STATUS_OK);
    while (l < chain->layer_count) {
        bool swaps = false, may = true;
        for (uint32_t k = 0; k < chain->layer_count; k++) {
            swaps |= choices[k] == CHAIN_SWAP;
            may &= !allowed || allowed[k] >> choices[k] & 1;
        }
        if (may && (!swaps || chain_swaps(chain)) && chain_makespan(chain, choices, &pass, &now) && now < best)
            best = now;
        for (l = 0; l < chain->layer_count && ++choices[l] == CHAIN_CHOICES; l++) choices[l] = 0;
    }
    chain_pass_destroy(&pass);
    return best;
}

/* --- families ------------------------------------------------------------------------------ */

/* A backward pass takes 1.7 to 2.3 times the forward pass; a boundary is 5 to 15 % of the saved
 * bytes. */
const char *const chain_family_names[CHAIN_FAMILIES] = {"cnn", "random", "identical"};

static double between(const struct test_chain_random *options, uint64_t *counter, double low, double high)
{
    uint64_t key = options->seed * CHAIN_FAMILIES + options->family;
    return low + (high - low) * random_unit(key, (*counter)++);
}

static struct chain_layer draw_layer(const struct test_chain_random *options, uint64_t *counter, double scale)
{
    double forward = between(options, counter, 200, 1000), saved = between(options, counter, 300, 1000);
    return (struct chain_layer){
        .forward = (int64_t)forward,
        .backward = (int64_t)(forward * between(options, counter, 1.7, 2.3)),
        .saved = (uint64_t)(1000 * scale * saved),
        .boundary = (uint64_t)(1000 * scale * saved * between(options, counter, 0.05, 0.15))};
}

enum status test_chain_random(const struct test_chain_random *options, struct chain *out, struct error *err)
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
