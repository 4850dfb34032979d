/*
 * Differences between families: sizes and work are written once, for a block with a few switches.
 *
 *               q, k, v  norms    feed-forward  positions      biases of       more
 *   gpt2        one      mean     fc, fc2       a table        all
 *   opt         three    mean     fc, fc2       a table, + 2   all             ReLU; 350m: narrower table, post-norm
 *   gpt_neox    one      mean     fc, fc2       rotary, a part all             parallel, unless it says so; two norms
 *   gptj        three    mean     fc, fc2       rotary, a part ff part, head   parallel; one norm
 *   phi         three    mean     fc, fc2       rotary, a part all, head       parallel; one norm
 *   llama       three    no mean  gate, up      rotary         none
 *   mistral     three    no mean  gate, up      rotary         none
 *   gemma       three    no mean  gate, up      rotary         none            norms less 1, GELU, scaled embedding
 *   qwen2       three    no mean  gate, up      rotary         q, k and v
 *   qwen3       three    no mean  gate, up      rotary         none            norms of q and k
 *   mixtral     three    no mean  experts' gate, up   rotary   none
 *   qwen3_moe   three    no mean  experts' gate, up   rotary   none            norms of q and k
 *   qwen2_moe   three    no mean  experts' gate, up   rotary   q, k and v      a shared expert
 *   gemma2      three    no mean  gate, up      rotary         none            as gemma, norms after both parts, caps
 *   gemma3_text three    no mean  gate, up      rotary         none            as gemma2, norms of q and k, no caps
 *   t5, mt5     three    no mean  fc, fc2 or gate, up   relative  none         a decoder's block: cross
 *                                                                               attention and its norm
 *   bert, vit   three    mean     fc, fc2       a table        all (vit: q, k, v if it says so)
 *
 * A parallel block is x + attention(norm1(x)) + ff(norm2(x)). A block with experts sends each token through
 * `experts_chosen` of `experts` feed-forward parts, picked by a router.
 *
 * Source: modeling_*.py of transformers 4.57; Wang and Komatsuzaki, GPT-J-6B; Jiang et al., arXiv 2401.04088.
 */
#ifndef SPILLWAY_MODELS_NETWORK_NETWORK_TRAITS_H
#define SPILLWAY_MODELS_NETWORK_NETWORK_TRAITS_H

#include "models/network/network.h"

struct network_traits {
    bool decoder;      /* causal text decoder; except for opt-350m its embedding has only tables of rows */
    bool fused_qkv;
    bool no_mean;      /* root-mean-square norms, without biases */
    bool gated;
    bool relu;         /* in place of GELU */
    bool rotary;
    bool parallel, one_norm;
    bool qk_norm;
    bool outer_norms;  /* before each part of a block is added */
    bool less_one;     /* gemma, gemma2, gemma3: files have the weights of norms less 1, the feed-forward part has GELU
                          instead of SiLU, and an embedding is multiplied by the root of its width */
    bool out_bias, ff_bias, head_bias;
    uint32_t more_positions; /* unused rows of the table; or NETWORK_NO_POSITION_TABLE */
};
enum { NETWORK_NO_POSITION_TABLE = UINT32_MAX };

const struct network_traits *network_traits(const struct network *network);

/* Returns true if norms come before their sublayers. */
static inline bool network_norms_first(const struct network *network)
{
    return network->family != NETWORK_BERT && !network->post_norm;
}

/* Returns true if the head classifies samples by their first tokens. */
static inline bool network_classifies(const struct network *network)
{
    return network->classes > 0;
}

static inline uint64_t network_word_width(const struct network *network)
{
    return network->word_width > 0 ? network->word_width : network->width;
}

/* Returns true if its embedding only has tables of rows as wide as the network. */
static inline bool network_has_plain_tables(const struct network *network)
{
    return network_traits(network)->decoder && network->word_width == 0;
}

/* Counts norms of a block's stream. */
static inline uint32_t network_block_norms(const struct network *network)
{
    const struct network_traits *traits = network_traits(network);
    return traits->one_norm ? 1 : traits->outer_norms ? 4 : 2;
}

/* Returns 1, or the chosen experts. */
static inline uint64_t network_chosen(const struct network *network)
{
    return network->experts > 0 ? network->experts_chosen : 1;
}

#endif
