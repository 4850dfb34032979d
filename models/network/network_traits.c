/* The table of network_traits.h. */
#include "models/network/network_traits.h"

#include <assert.h>

#define T5_LIKE .decoder = true, .no_mean = true, .more_positions = NETWORK_NO_POSITION_TABLE
#define LLAMA_LIKE \
    .decoder = true, .no_mean = true, .gated = true, .rotary = true, .more_positions = NETWORK_NO_POSITION_TABLE

static const struct network_traits traits[NETWORK_FAMILY_COUNT] = {
    [NETWORK_GPT2] = {.decoder = true, .fused_qkv = true, .out_bias = true, .ff_bias = true},
    [NETWORK_OPT] = {.decoder = true, .relu = true, .out_bias = true, .ff_bias = true, .more_positions = 2},
    [NETWORK_GPT_NEOX] = {.decoder = true, .fused_qkv = true, .rotary = true, .parallel = true, .out_bias = true,
                          .ff_bias = true, .more_positions = NETWORK_NO_POSITION_TABLE},
    [NETWORK_GPTJ] = {.decoder = true, .rotary = true, .parallel = true, .one_norm = true, .ff_bias = true,
                      .head_bias = true, .more_positions = NETWORK_NO_POSITION_TABLE},
    [NETWORK_PHI] = {.decoder = true, .rotary = true, .parallel = true, .one_norm = true, .out_bias = true,
                     .ff_bias = true, .head_bias = true, .more_positions = NETWORK_NO_POSITION_TABLE},
    [NETWORK_LLAMA] = {LLAMA_LIKE},
    [NETWORK_MISTRAL] = {LLAMA_LIKE},
    [NETWORK_GEMMA] = {LLAMA_LIKE, .less_one = true},
    [NETWORK_QWEN2] = {LLAMA_LIKE},
    [NETWORK_QWEN3] = {LLAMA_LIKE, .qk_norm = true},
    [NETWORK_MIXTRAL] = {LLAMA_LIKE},
    [NETWORK_QWEN3_MOE] = {LLAMA_LIKE, .qk_norm = true},
    [NETWORK_QWEN2_MOE] = {LLAMA_LIKE},
    [NETWORK_GEMMA2] = {LLAMA_LIKE, .outer_norms = true, .less_one = true},
    [NETWORK_GEMMA3_TEXT] = {LLAMA_LIKE, .qk_norm = true, .outer_norms = true, .less_one = true},
    [NETWORK_T5] = {T5_LIKE},
    [NETWORK_MT5] = {T5_LIKE},
    [NETWORK_UMT5] = {T5_LIKE},
    [NETWORK_BERT] = {.out_bias = true, .ff_bias = true, .head_bias = true},
    [NETWORK_VIT] = {.out_bias = true, .ff_bias = true},
};

static const struct network_traits serial_neox = {.decoder = true, .fused_qkv = true, .rotary = true, .out_bias = true,
                                                  .ff_bias = true, .more_positions = NETWORK_NO_POSITION_TABLE};

/* Networks with or without a gate. */
static const struct network_traits gated_t5 = {T5_LIKE, .gated = true};

const struct network_traits *network_traits(const struct network *network)
{
    assert(network->family < NETWORK_FAMILY_COUNT);
    if (network->serial_residual) return &serial_neox;
    return network->gated ? &gated_t5 : &traits[network->family];
}

uint64_t network_usual_sequence(const struct network *network)
{
    if (network->family == NETWORK_VIT || network->family == NETWORK_CNN || network->family == NETWORK_PROFILE)
        return 0;
    const bool fewer = network->positions > 0 && network->positions < NETWORK_SEQUENCE_USUAL;
    return fewer ? network->positions : NETWORK_SEQUENCE_USUAL;
}

uint64_t network_tokens(const struct network *network, uint64_t sequence)
{
    if (network->encoder_blocks > 0)
        return sequence + (network->decoder_tokens > 0 ? network->decoder_tokens : sequence);
    if (network->family != NETWORK_VIT) return sequence;
    uint64_t side = network->image / network->patch;
    return side * side + 1;
}
