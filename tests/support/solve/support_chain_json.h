/* Chains as JSON, for tests that read them again or print them. */
#ifndef SPILLWAY_TESTS_SUPPORT_SOLVE_SUPPORT_CHAIN_JSON_H
#define SPILLWAY_TESTS_SUPPORT_SOLVE_SUPPORT_CHAIN_JSON_H

#include "base/json/json_out.h"
#include "planner/chain/chain.h"

static inline bool test_chain_alike(const struct chain_layer *a, const struct chain_layer *b)
{
    return a->forward == b->forward && a->backward == b->backward && a->again == b->again && a->saved == b->saved &&
           a->boundary == b->boundary;
}

/* Writes a chain that chain_parse() reads as the same chain. Equal layers in a row are written once and counted. */
static inline void test_chain_write(const struct chain *chain, struct json_out *out)
{
    json_out_object_begin(out, NULL, false);
    json_out_u64(out, "spillway_chain", 1);
    json_out_string(out, "name", chain->name ? chain->name : "chain");
    json_out_u64(out, "memory", chain->memory);
    if (chain->out_bytes_per_tick) json_out_u64(out, "out_bytes_per_tick", chain->out_bytes_per_tick);
    if (chain->in_bytes_per_tick) json_out_u64(out, "in_bytes_per_tick", chain->in_bytes_per_tick);
    json_out_array_begin(out, "layers", false);
    for (uint32_t l = 0, count; l < chain->layer_count; l += count) {
        const struct chain_layer *layer = &chain->layers[l];
        for (count = 1; l + count < chain->layer_count && test_chain_alike(layer, layer + count); count++) {}
        json_out_object_begin(out, NULL, true);
        json_out_u64(out, "forward", (uint64_t)layer->forward);
        json_out_u64(out, "backward", (uint64_t)layer->backward);
        if (layer->again != layer->forward) json_out_u64(out, "again", (uint64_t)layer->again);
        json_out_u64(out, "saved", layer->saved);
        if (layer->boundary) json_out_u64(out, "boundary", layer->boundary);
        if (count > 1) json_out_u64(out, "count", count);
        json_out_object_end(out);
    }
    json_out_array_end(out);
    json_out_object_end(out);
}

#endif
