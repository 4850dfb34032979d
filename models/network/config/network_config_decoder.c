/*
 * config.json of opt, gpt_neox, gptj and phi.
 * Source: configuration_opt.py, configuration_gpt_neox.py, configuration_gptj.py and configuration_phi.py of
 * transformers 4.57.
 */
#include <inttypes.h>
#include <math.h>

#include "base/size.h"
#include "base/try.h"
#include "models/network/config/network_config_parts.h"

/* A family's names of keys. */
struct keys {
    const char *width, *blocks, *heads, *ff, *positions, *deviation, *epsilon, *activation;
};
static const struct keys std = {"hidden_size",       "num_hidden_layers",       "num_attention_heads",
                                "intermediate_size", "max_position_embeddings", "initializer_range",
                                "layer_norm_eps",    "hidden_act"},
                         opt = {"hidden_size", "num_hidden_layers",       "num_attention_heads",
                                "ffn_dim",     "max_position_embeddings", "init_std", NULL, NULL},
                         gptj = {"n_embd",      "n_layer",           "n_head",             "n_inner",
                                 "n_positions", "initializer_range", "layer_norm_epsilon", "activation_function"};

static const struct keys *keys_of(uint32_t family)
{
    return family == NETWORK_OPT ? &opt : family == NETWORK_GPTJ ? &gptj : &std;
}

/* Parses the shape; *n has the defaults; `ff_width` 0: four times the width. */
static enum status parse_shape(struct json_object *o, struct network *n, struct error *err)
{
    const struct keys *keys = keys_of(n->family);
    n->causal = true;
    n->initializer_range = 0.02;
    TRY(json_take_u64(o, keys->width, JSON_OPTIONAL, 1, NETWORK_WIDTH_MAX, &n->width, err));
    TRY(json_take_u64(o, keys->blocks, JSON_OPTIONAL, 1, CONFIG_BLOCKS_MAX, &n->blocks, err));
    TRY(json_take_u64(o, keys->heads, JSON_OPTIONAL, 1, NETWORK_HEADS_MAX, &n->heads, err));
    TRY(config_head_width(o, keys->heads, keys->width, false, n, err));
    if (n->ff_width == 0) n->ff_width = 4 * n->width;
    TRY(json_take_u64(o, keys->ff, JSON_OPTIONAL, 1, NETWORK_FF_MAX, &n->ff_width, err));
    TRY(json_take_u64(o, keys->positions, JSON_OPTIONAL, 1, NETWORK_POSITIONS_MAX, &n->positions, err));
    TRY(json_take_u64(o, "vocab_size", JSON_OPTIONAL, 1, NETWORK_VOCABULARY_MAX, &n->vocabulary, err));
    TRY(json_take_bool(o, "tie_word_embeddings", JSON_OPTIONAL, &n->tied_head, err));
    TRY(json_take_double(o, keys->deviation, JSON_OPTIONAL, 0, CONFIG_RATIO_MAX, &n->initializer_range, err));
    if (keys->epsilon)
        TRY(json_take_double(o, keys->epsilon, JSON_OPTIONAL, 0, CONFIG_RATIO_MAX, &n->norm_epsilon, err));
    if (!keys->activation) return STATUS_OK;
    return config_activation(o, keys->activation, &n->gelu_tanh, err);
}

static const double theta_max = 1e15;

/* Takes a head's rotated share, and the base of the angles, in "rope_parameters" since transformers 5. */
static enum status read_rotated_share(struct json_object *o, const char *key, double share, struct network *n,
                                      struct error *err)
{
    static const char *const kinds[] = {"default"};
    const json_t *rope = NULL;
    struct json_object inside;
    size_t kind = 0;
    n->rope = (struct network_rope){.kind = ROPE_DEFAULT, .theta = 10000};
    TRY(json_take_double(o, key, JSON_OPTIONAL, 0, 1, &share, err));
    TRY(json_take_double(o, json_has(o, "rotary_emb_base") ? "rotary_emb_base" : "rope_theta", JSON_OPTIONAL, 1,
                         theta_max, &n->rope.theta, err));
    TRY(json_take_object(o, "rope_parameters", JSON_OPTIONAL, &rope, err));
    if (rope) {
        TRY(json_object_open(&inside, o->input, rope, "an object about rotary positions", err));
        json_object_ignore_others(&inside);
        TRY(json_take_double(&inside, "partial_rotary_factor", JSON_OPTIONAL, 0, 1, &share, err));
        TRY(json_take_double(&inside, "rope_theta", JSON_OPTIONAL, 1, theta_max, &n->rope.theta, err));
        TRY(json_take_choice(&inside, "rope_type", JSON_OPTIONAL, kinds, 1, &kind, err));
    }
    n->rotary_width = (uint64_t)floor(share * (double)n->head_width + 1e-9); /* 0.4 of 80 are 32 */
    return STATUS_OK;
}

enum status config_parse_opt(struct json_object *o, struct network *n, struct error *err)
{
    static const char *const architectures[] = {"OPTForCausalLM", "OPTModel"}, *const activations[] = {"relu"};
    size_t architecture, activation;
    n->width = 768;
    n->blocks = n->heads = 12;
    n->ff_width = 3072;
    n->vocabulary = 50272;
    n->positions = 2048;
    n->norm_epsilon = 1e-5;
    n->tied_head = n->biases = true;
    TRY(config_architecture(o, architectures, ARRAY_COUNT(architectures), &architecture, err));
    TRY(parse_shape(o, n, err));
    uint64_t words = n->width;
    TRY(json_take_u64(o, "word_embed_proj_dim", JSON_OPTIONAL, 1, NETWORK_WIDTH_MAX, &words, err));
    if (words != n->width) n->word_width = words;
    TRY(json_take_choice(o, "activation_function", JSON_OPTIONAL, activations, 1, &activation, err));
    bool before = true;
    TRY(json_take_bool(o, "do_layer_norm_before", JSON_OPTIONAL, &before, err));
    n->post_norm = !before;
    n->has_padding = true;
    n->padding_token = 1;
    TRY(config_padding(o, n, err));
    TRY(config_fixed(o, "_remove_final_layer_norm", false, err));
    TRY(config_fixed(o, "layer_norm_elementwise_affine", true, err));
    return config_fixed(o, "enable_bias", true, err);
}

enum status config_parse_gpt_neox(struct json_object *o, struct network *n, struct error *err)
{
    static const char *const architectures[] = {"GPTNeoXForCausalLM", "GPTNeoXModel"};
    size_t architecture;
    n->width = 6144;
    n->blocks = 44;
    n->heads = 64;
    n->ff_width = 24576;
    n->vocabulary = 50432;
    n->positions = 2048;
    n->norm_epsilon = 1e-5;
    n->biases = true;
    TRY(config_architecture(o, architectures, ARRAY_COUNT(architectures), &architecture, err));
    TRY(parse_shape(o, n, err));
    TRY(read_rotated_share(o, "rotary_pct", 0.25, n, err));
    bool parallel = true;
    TRY(json_take_bool(o, "use_parallel_residual", JSON_OPTIONAL, &parallel, err));
    n->serial_residual = !parallel;
    return config_fixed(o, "attention_bias", true, err);
}

enum status config_parse_gptj(struct json_object *o, struct network *n, struct error *err)
{
    static const char *const architectures[] = {"GPTJForCausalLM", "GPTJModel"};
    size_t architecture;
    n->width = 4096;
    n->blocks = 28;
    n->heads = 16;
    n->vocabulary = 50400;
    n->positions = 2048;
    n->norm_epsilon = 1e-5;
    n->gelu_tanh = true;
    n->rotary_width = 64;
    n->rope = (struct network_rope){.kind = ROPE_DEFAULT, .theta = 10000};
    TRY(config_architecture(o, architectures, ARRAY_COUNT(architectures), &architecture, err));
    TRY(parse_shape(o, n, err));
    return json_take_u64(o, "rotary_dim", JSON_OPTIONAL, 0, n->head_width, &n->rotary_width, err);
}

enum status config_parse_phi(struct json_object *o, struct network *n, struct error *err)
{
    static const char *const architectures[] = {"PhiForCausalLM", "PhiModel"};
    size_t architecture;
    n->width = 2048;
    n->blocks = 24;
    n->heads = 32;
    n->ff_width = 8192;
    n->vocabulary = 51200;
    n->positions = 2048;
    n->norm_epsilon = 1e-5;
    n->gelu_tanh = n->biases = true;
    TRY(config_architecture(o, architectures, ARRAY_COUNT(architectures), &architecture, err));
    TRY(parse_shape(o, n, err));
    n->kv_heads = n->heads;
    TRY(json_take_u64(o, "num_key_value_heads", JSON_OPTIONAL, 1, n->heads, &n->kv_heads, err));
    if (n->heads % n->kv_heads != 0)
        return json_fail_key(o->input, o->value, "num_key_value_heads", err,
                             "'num_attention_heads' %" PRIu64 " is not a multiple of 'num_key_value_heads' %" PRIu64,
                             n->heads, n->kv_heads);
    TRY(read_rotated_share(o, "partial_rotary_factor", 0.5, n, err));
    return config_fixed(o, "qk_layernorm", false, err);
}

void config_write_decoder(const struct network *n, struct json_out *out)
{
    const struct keys *keys = keys_of(n->family);
    json_out_u64(out, keys->width, n->width);
    json_out_u64(out, keys->blocks, n->blocks);
    json_out_u64(out, keys->heads, n->heads);
    json_out_u64(out, keys->ff, n->ff_width);
    json_out_u64(out, keys->positions, n->positions);
    json_out_u64(out, "vocab_size", n->vocabulary);
    if (n->word_width > 0) json_out_u64(out, "word_embed_proj_dim", n->word_width);
    if (n->post_norm) json_out_bool(out, "do_layer_norm_before", false);
    if (n->serial_residual) json_out_bool(out, "use_parallel_residual", false);
    if (n->family == NETWORK_OPT && n->has_padding) json_out_u64(out, "pad_token_id", n->padding_token);
    else if (n->family == NETWORK_OPT) json_out_null(out, "pad_token_id");
    if (n->family == NETWORK_PHI) json_out_u64(out, "num_key_value_heads", n->kv_heads);
    if (n->family == NETWORK_GPTJ) json_out_u64(out, "rotary_dim", n->rotary_width);
    if (n->family == NETWORK_GPT_NEOX || n->family == NETWORK_PHI)
        json_out_double(out, n->family == NETWORK_PHI ? "partial_rotary_factor" : "rotary_pct",
                        (double)n->rotary_width / (double)n->head_width);
    if (n->family == NETWORK_GPT_NEOX || n->family == NETWORK_PHI) json_out_double(out, "rope_theta", n->rope.theta);
    if (keys->activation) json_out_string(out, keys->activation, n->gelu_tanh ? "gelu_new" : "gelu");
    if (keys->epsilon) json_out_double(out, keys->epsilon, n->norm_epsilon);
    json_out_double(out, keys->deviation, n->initializer_range);
    json_out_bool(out, "tie_word_embeddings", n->tied_head);
}
