/*
 * config.json of t5 (also ByT5 and Flan-T5), mt5 and umt5.
 *
 * "n_positions" is no limit; without it 512, the length of pre-training. "feed_forward_proj" is "relu", or
 * "gated-gelu" from version 1.1 on.
 *
 * Source: configuration_t5.py, configuration_mt5.py and configuration_umt5.py of transformers 4.57.
 */
#include <inttypes.h>

#include "base/size.h"
#include "base/try.h"
#include "models/network/config/network_config_parts.h"

enum { T5_POSITIONS = 512 };
static const char *const projections[] = {"relu", "gated-gelu"};

static const struct {
    uint64_t blocks, heads, ff_width, vocabulary;
    bool gated, tied_head;
    const char *architectures[3];
} defaults[NETWORK_FAMILY_COUNT] = {
    [NETWORK_T5] = {6, 8, 2048, 32128, false, true,
                    {"T5ForConditionalGeneration", "T5WithLMHeadModel", "T5Model"}},
    [NETWORK_MT5] = {8, 6, 1024, 250112, true, false,
                     {"MT5ForConditionalGeneration", "T5ForConditionalGeneration", "MT5Model"}},
    [NETWORK_UMT5] = {8, 6, 1024, 250112, true, true,
                    {"UMT5ForConditionalGeneration", "T5ForConditionalGeneration", "UMT5Model"}},
};

static enum status read_blocks(struct json_object *o, struct network *n, struct error *err)
{
    n->encoder_blocks = defaults[n->family].blocks;
    TRY(json_take_u64(o, "num_layers", JSON_OPTIONAL, 1, CONFIG_BLOCKS_MAX - 1, &n->encoder_blocks, err));
    uint64_t decoder = n->encoder_blocks;
    TRY(json_take_u64(o, "num_decoder_layers", JSON_OPTIONAL, 1, CONFIG_BLOCKS_MAX - 1, &decoder, err));
    n->blocks = n->encoder_blocks + decoder;
    if (n->blocks <= CONFIG_BLOCKS_MAX) return STATUS_OK;
    return json_fail_key(o->input, o->value, json_has(o, "num_decoder_layers") ? "num_decoder_layers" : "num_layers",
                         err, "%" PRIu64 " layers of encoder and decoder (limit is %d)", n->blocks, CONFIG_BLOCKS_MAX);
}

static enum status read_heads(struct json_object *o, struct network *n, struct error *err)
{
    n->heads = defaults[n->family].heads;
    n->head_width = 64;
    TRY(json_take_u64(o, "num_heads", JSON_OPTIONAL, 1, NETWORK_HEADS_MAX, &n->heads, err));
    TRY(json_take_u64(o, "d_kv", JSON_OPTIONAL, 1, NETWORK_WIDTH_MAX, &n->head_width, err));
    if (n->heads * n->head_width <= NETWORK_WIDTH_MAX) return STATUS_OK;
    return json_fail_key(o->input, o->value, json_has(o, "d_kv") ? "d_kv" : "num_heads", err,
                         "%" PRIu64 " heads of %" PRIu64 " are too wide together (limit is %d)", n->heads,
                         n->head_width, NETWORK_WIDTH_MAX);
}

enum status config_parse_t5(struct json_object *o, struct network *n, struct error *err)
{
    size_t architecture, projection = defaults[n->family].gated;
    TRY(config_architecture(o, defaults[n->family].architectures, ARRAY_COUNT(defaults[n->family].architectures),
                            &architecture, err));
    n->width = 512;
    n->ff_width = defaults[n->family].ff_width;
    n->vocabulary = defaults[n->family].vocabulary;
    n->positions = T5_POSITIONS;
    n->relative_buckets = 32;
    n->norm_epsilon = 1e-6;
    n->causal = true;
    n->tied_head = defaults[n->family].tied_head;
    TRY(json_take_u64(o, "d_model", JSON_OPTIONAL, 1, NETWORK_WIDTH_MAX, &n->width, err));
    TRY(read_blocks(o, n, err));
    TRY(read_heads(o, n, err));
    TRY(json_take_u64(o, "d_ff", JSON_OPTIONAL, 1, NETWORK_FF_MAX, &n->ff_width, err));
    TRY(json_take_u64(o, "vocab_size", JSON_OPTIONAL, 1, NETWORK_VOCABULARY_MAX, &n->vocabulary, err));
    TRY(json_take_u64(o, "n_positions", JSON_OPTIONAL, 1, NETWORK_POSITIONS_MAX, &n->positions, err));
    TRY(json_take_u64(o, "relative_attention_num_buckets", JSON_OPTIONAL, 1, NETWORK_POSITIONS_MAX,
                      &n->relative_buckets, err));
    TRY(json_take_double(o, "layer_norm_epsilon", JSON_OPTIONAL, 0, CONFIG_RATIO_MAX, &n->norm_epsilon, err));
    TRY(json_take_choice(o, "feed_forward_proj", JSON_OPTIONAL, projections, ARRAY_COUNT(projections), &projection,
                         err));
    TRY(json_take_bool(o, "tie_word_embeddings", JSON_OPTIONAL, &n->tied_head, err));
    n->gated = n->gelu_tanh = projection == 1;
    return config_fixed(o, "is_encoder_decoder", true, err);
}

void config_write_t5(const struct network *n, struct json_out *out)
{
    json_out_u64(out, "d_model", n->width);
    json_out_u64(out, "d_kv", n->head_width);
    json_out_u64(out, "d_ff", n->ff_width);
    json_out_u64(out, "num_layers", n->encoder_blocks);
    json_out_u64(out, "num_decoder_layers", n->blocks - n->encoder_blocks);
    json_out_u64(out, "num_heads", n->heads);
    json_out_u64(out, "vocab_size", n->vocabulary);
    json_out_u64(out, "n_positions", n->positions);
    json_out_u64(out, "relative_attention_num_buckets", n->relative_buckets);
    json_out_double(out, "layer_norm_epsilon", n->norm_epsilon);
    json_out_string(out, "feed_forward_proj", projections[n->gated]);
    json_out_bool(out, "tie_word_embeddings", n->tied_head);
}
