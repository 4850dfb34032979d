#include "models/network/network_t5.h"

#include <assert.h>

bool network_crosses(const struct network *network, uint64_t layer)
{
    return network->encoder_blocks > 0 && layer > network->encoder_blocks && layer + 1 < network->layer_count;
}

uint64_t network_layer_tokens(const struct network *network, uint64_t layer, uint64_t sequence)
{
    uint64_t both = network_tokens(network, sequence);
    if (network->encoder_blocks == 0 || layer == 0) return both;
    return layer <= network->encoder_blocks ? sequence : both - sequence;
}

uint64_t network_decoder_tokens(const struct network *network, uint64_t sequence)
{
    return network->encoder_blocks > 0 ? network_tokens(network, sequence) - sequence : 0;
}

enum status network_set_decoder(struct network *network, uint64_t sequence, uint64_t decoder_tokens, struct error *err)
{
    if (network->encoder_blocks == 0)
        return error_set(err, STATUS_BAD_INPUT,
                         "network '%s' has no encoder and therefore no separate decoder sequence", network->name);
    network->decoder_tokens = decoder_tokens == sequence ? 0 : decoder_tokens;
    return STATUS_OK;
}

struct t5_place network_t5_place(const struct network *network, uint64_t block)
{
    bool decoder = block >= network->encoder_blocks;
    uint64_t at = decoder ? block - network->encoder_blocks : block;
    return (struct t5_place){.stack = decoder ? "decoder" : "encoder", .block = at,
                             .tables = at == 0 || network->family == NETWORK_UMT5,
                             .crosses = network_crosses(network, block + 1),
                             .joins = network_joins(network, block + 1)};
}

uint32_t network_squares(uint64_t a, uint64_t b, struct network_square out[T5_SQUARES_MAX])
{
    uint32_t count = 0;
    assert(a > 0 && b > 0);
    while (a > 0 && b > 0) {
        uint64_t longer = a > b ? a : b, side = a > b ? b : a;
        bool last = count + 1 == T5_SQUARES_MAX;
        out[count++] = (struct network_square){side, longer / side + (last && longer % side > 0)};
        a = side;
        b = last ? 0 : longer % side;
    }
    return count;
}
