/*
 * "phi3" is one letter away from "phi" but another network: a name is suggested only if case or separators differ.
 * Well-known unsupported types are listed with the nearest family and the difference in work or memory, by
 * transformers' modelling code.
 */
#include "models/network/config/network_foreign.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "base/text/suggest.h"
#include "models/network/network.h"

static const struct {
    const char *model_type;
    enum network_family nearest;
    const char *difference;
} foreign[] = {
    {"albert", NETWORK_BERT, "all blocks share one set of weights, and the embedding is a product of two matrices"},
    {"bart", NETWORK_T5, "positions are a table, and blocks have biases and layer norms"},
    {"bloom", NETWORK_GPT2, "positions are slopes of ALiBi, and the embedding has a norm"},
    {"camembert", NETWORK_BERT, "there are no segments, and positions start after the padding token"},
    {"codegen", NETWORK_GPTJ, "queries, keys and values are one matrix"},
    {"cohere", NETWORK_LLAMA, "attention and feed-forward are parallel, and logits are scaled"},
    {"cohere2", NETWORK_LLAMA,
     "attention and feed-forward are parallel, logits are scaled, and three of four blocks see a window"},
    {"dbrx", NETWORK_MIXTRAL, "queries, keys and values are one matrix, clipped, and norms are layer norms"},
    {"deberta", NETWORK_BERT, "scores have terms of relative positions"},
    {"deberta-v2", NETWORK_BERT, "scores have terms of relative positions"},
    {"deepseek_v2", NETWORK_MIXTRAL, "attention is latent (MLA), some experts are shared, "
                                     "and the first block is dense"},
    {"deepseek_v3", NETWORK_MIXTRAL, "attention is latent (MLA), one expert is shared, and the first blocks are dense"},
    {"deit", NETWORK_VIT, "images have a second token, of distillation"},
    {"distilbert", NETWORK_BERT, "there are no segments"},
    {"electra", NETWORK_BERT, "a generator and a discriminator are trained together"},
    {"falcon", NETWORK_GPT_NEOX, "heads share keys and values"},
    {"gemma3", NETWORK_GEMMA3_TEXT, "images pass through a vision transformer; "
                                    "its 'text_config' is a network of its own"},
    {"glm", NETWORK_LLAMA, "half of each head has rotary positions, and gate and up are one matrix"},
    {"glm4", NETWORK_LLAMA, "half of each head has rotary positions, blocks have two more norms, "
                            "and gate and up are one matrix"},
    {"gpt_bigcode", NETWORK_GPT2, "all heads share one key and one value"},
    {"gpt_neo", NETWORK_GPT2, "every other block sees 256 tokens, and scores are not scaled"},
    {"gpt_oss", NETWORK_MIXTRAL, "attention has sinks, every other block sees a window, and experts have biases"},
    {"granite", NETWORK_LLAMA, "embeddings, residuals, scores and logits have factors"},
    {"jamba", NETWORK_MIXTRAL, "most blocks are state spaces (Mamba)"},
    {"llama4", NETWORK_MIXTRAL, "there are images, one expert is shared, "
                                "and every fourth block has no rotary positions"},
    {"llama4_text", NETWORK_MIXTRAL, "one expert is shared, and every fourth block has no rotary positions"},
    {"llava", NETWORK_LLAMA,
     "images pass through a vision transformer and a projection; its 'text_config' is a network of its own"},
    {"mbart", NETWORK_T5, "positions are a table, and blocks have biases and layer norms"},
    {"mistral3", NETWORK_MISTRAL, "images pass through a vision transformer; "
                                  "its 'text_config' is a network of its own"},
    {"mpt", NETWORK_GPT2, "positions are slopes of ALiBi, and there are no biases"},
    {"nemotron", NETWORK_LLAMA, "the feed-forward has squared ReLUs and no gate, and norms are layer norms"},
    {"olmo", NETWORK_LLAMA, "norms have no weights"},
    {"olmo2", NETWORK_LLAMA, "norms come after attention and feed-forward, and on queries and keys"},
    {"phi3", NETWORK_LLAMA, "queries, keys and values are one matrix, and so are gate and up"},
    {"qwen2_5_vl", NETWORK_QWEN2, "images pass through a vision transformer, and rotary positions have three parts"},
    {"qwen2_vl", NETWORK_QWEN2, "images pass through a vision transformer, and rotary positions have three parts"},
    {"qwen3_next", NETWORK_QWEN3_MOE, "three of four blocks have linear attention"},
    {"roberta", NETWORK_BERT, "there are no segments, and positions start after the padding token"},
    {"smollm3", NETWORK_LLAMA, "every fourth block has no rotary positions"},
    {"stablelm", NETWORK_LLAMA, "norms are layer norms, and a part of each head has rotary positions"},
    {"starcoder2", NETWORK_MISTRAL, "norms are layer norms, and the feed-forward has biases and no gate"},
    {"swin", NETWORK_VIT, "attention sees shifted windows, and patches merge between stages"},
    {"xlm-roberta", NETWORK_BERT, "there are no segments, and positions start after the padding token"},
};

/* Types that no family here is near to. */
static const struct {
    const char *model_type, *reason;
} far[] = {
    {"clip", "it trains two encoders against each other"},
    {"falcon_mamba", "its blocks are state spaces, not attention"},
    {"mamba", "its blocks are state spaces, not attention"},
    {"mamba2", "its blocks are state spaces, not attention"},
    {"rwkv", "its blocks are recurrent, not attention"},
    {"whisper", "its encoder reads sound"},
};

/* Compares "GPT-NeoX" and "gpt_neox" as equal. */
static bool spelt_alike(const char *a, const char *b)
{
    for (;; a++, b++) {
        while (*a && !isalnum((unsigned char)*a)) a++;
        while (*b && !isalnum((unsigned char)*b)) b++;
        if (tolower((unsigned char)*a) != tolower((unsigned char)*b)) return false;
        if (!*a) return true;
    }
}

const char *network_foreign_ending(const char *model_type, char text[NETWORK_FOREIGN_BYTES])
{
    char list[NETWORK_FOREIGN_BYTES - 32];
    for (size_t i = 0; i < ARRAY_COUNT(foreign); i++) {
        if (!spelt_alike(model_type, foreign[i].model_type)) continue;
        snprintf(text, NETWORK_FOREIGN_BYTES, ": nearest is '%s', but %s", network_family_names[foreign[i].nearest],
                 foreign[i].difference);
        return text;
    }
    for (size_t i = 0; i < NETWORK_FAMILY_COUNT; i++) {
        if (!spelt_alike(model_type, network_family_names[i])) continue;
        snprintf(text, NETWORK_FOREIGN_BYTES, " (did you mean '%s'?)", network_family_names[i]);
        return text;
    }
    for (size_t i = 0; i < ARRAY_COUNT(far); i++) {
        if (!spelt_alike(model_type, far[i].model_type)) continue;
        snprintf(text, NETWORK_FOREIGN_BYTES, ": none of the supported types is near, because %s", far[i].reason);
        return text;
    }
    snprintf(text, NETWORK_FOREIGN_BYTES, " (expected %s)",
             suggest_list(network_family_names, NETWORK_FAMILY_COUNT, list, sizeof list));
    return text;
}
