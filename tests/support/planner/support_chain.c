/* See support_chain.h. */
#include "tests/support/planner/support_chain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "planner/chain/chain_io.h"
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
    if (out) chain_write_json(chain, out);
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
