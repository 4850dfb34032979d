/* config.json of gpt2. Source: configuration_gpt2.py of transformers 4.57 and 5.0. */
#include "models/network/config/network_config_parts.h"


#include "base/json/json_out.h"
#include "base/size.h"
#include "base/try.h"

enum status config_parse_gpt2(struct json_object *o, struct network *n, struct error *err)
{
    static const char *const architectures[] = {"GPT2LMHeadModel", "GPT2Model"};
    size_t architecture;
    TRY(config_architecture(o, architectures, ARRAY_COUNT(architectures), &architecture, err));
    n->width = 768;
    n->blocks = n->heads = 12;
    n->vocabulary = 50257;
    n->positions = 1024;
    n->norm_epsilon = 1e-5;
    n->initializer_range = 0.02;
    n->tied_head = n->causal = n->biases = n->gelu_tanh = true;
    TRY(json_take_u64(o, "n_embd", JSON_OPTIONAL, 1, NETWORK_WIDTH_MAX, &n->width, err));
    TRY(json_take_u64(o, "n_layer", JSON_OPTIONAL, 1, CONFIG_BLOCKS_MAX, &n->blocks, err));
    TRY(json_take_u64(o, "n_head", JSON_OPTIONAL, 1, NETWORK_HEADS_MAX, &n->heads, err));
    TRY(config_head_width(o, "n_head", "n_embd", false, n, err));
    n->ff_width = 4 * n->width;
    TRY(json_take_u64(o, "n_inner", JSON_OPTIONAL, 1, NETWORK_FF_MAX, &n->ff_width, err));
    TRY(json_take_u64(o, "n_positions", JSON_OPTIONAL, 1, NETWORK_POSITIONS_MAX, &n->positions,
                      err));
    TRY(json_take_u64(o, "vocab_size", JSON_OPTIONAL, 1, NETWORK_VOCABULARY_MAX, &n->vocabulary,
                      err));
    TRY(json_take_double(o, "layer_norm_epsilon", JSON_OPTIONAL, 0, CONFIG_RATIO_MAX, &n->norm_epsilon,
                         err));
    TRY(json_take_double(o, "initializer_range", JSON_OPTIONAL, 0, CONFIG_RATIO_MAX,
                         &n->initializer_range, err));
    TRY(json_take_bool(o, "tie_word_embeddings", JSON_OPTIONAL, &n->tied_head, err));
    TRY(config_activation(o, "activation_function", &n->gelu_tanh, err));
    TRY(config_fixed(o, "scale_attn_weights", true, err));
    TRY(config_fixed(o, "scale_attn_by_inverse_layer_idx", false, err));
    return config_fixed(o, "add_cross_attention", false, err);
}

void config_write_gpt2(const struct network *n, struct json_out *out)
{
    json_out_u64(out, "n_embd", n->width);
    json_out_u64(out, "n_layer", n->blocks);
    json_out_u64(out, "n_head", n->heads);
    json_out_u64(out, "n_inner", n->ff_width);
    json_out_u64(out, "n_positions", n->positions);
    json_out_u64(out, "vocab_size", n->vocabulary);
    json_out_string(out, "activation_function", n->gelu_tanh ? "gelu_new" : "gelu");
    json_out_double(out, "layer_norm_epsilon", n->norm_epsilon);
    json_out_double(out, "initializer_range", n->initializer_range);
    json_out_bool(out, "tie_word_embeddings", n->tied_head);
}
