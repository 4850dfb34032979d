/* config.json of llama. Source: configuration_llama.py and modeling_rope_utils.py of transformers 4.57 and 5.0. */
#include "models/network_config_parts.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/json_out.h"
#include "base/size.h"
#include "models/try.h"

static const char *const rope_kinds[] = {
    [ROPE_DEFAULT] = "default", [ROPE_LINEAR] = "linear", [ROPE_LLAMA3] = "llama3"};
static_assert(ARRAY_COUNT(rope_kinds) == ROPE_KIND_COUNT, "a name per kind of rotary positions");

static const double theta_max = 1e15, rope_factor_max = 1e6;

/* "rope_scaling" of transformers 4 or "rope_parameters" of 5, which has rope_theta inside. */
static enum status parse_rope(const struct json_input *in, const json_t *value, struct rope *rope,
                              struct error *err)
{
    struct json_object o;
    size_t kind = ROPE_DEFAULT;
    double rotated = 1;
    TRY(json_object_open(&o, in, value, "an object about rotary positions", err));
    TRY(json_take_double(&o, "rope_theta", JSON_OPTIONAL, 1, theta_max, &rope->theta, err));
    /* before "rope_type" it was called "type" */
    TRY(json_take_choice(&o, json_has(&o, "rope_type") ? "rope_type" : "type", JSON_OPTIONAL,
                         rope_kinds, ROPE_KIND_COUNT, &kind, err));
    rope->kind = (uint32_t)kind;
    TRY(json_take_double(&o, "partial_rotary_factor", JSON_OPTIONAL, 0, 1, &rotated, err));
    if (rotated < 1)
        return json_fail_key(in, value, "partial_rotary_factor", err,
                             "'partial_rotary_factor' is %g (only 1 is supported)", rotated);
    if (kind == ROPE_DEFAULT) return STATUS_OK;
    TRY(json_take_double(&o, "factor", JSON_REQUIRED, 1, rope_factor_max, &rope->factor, err));
    if (kind == ROPE_LINEAR) return STATUS_OK;
    TRY(json_take_double(&o, "low_freq_factor", JSON_REQUIRED, 0, rope_factor_max,
                         &rope->low_factor, err));
    TRY(json_take_double(&o, "high_freq_factor", JSON_REQUIRED, 0, rope_factor_max,
                         &rope->high_factor, err));
    TRY(json_take_u64(&o, "original_max_position_embeddings", JSON_REQUIRED, 1,
                      NETWORK_POSITIONS_MAX, &rope->original_positions, err));
    if (rope->high_factor > rope->low_factor) return STATUS_OK;
    return json_fail_key(in, value, "high_freq_factor", err,
                         "'high_freq_factor' %g is not above 'low_freq_factor' %g",
                         rope->high_factor, rope->low_factor);
}

static enum status take_rope(struct json_object *o, struct rope *rope, struct error *err)
{
    static const char *const keys[] = {"rope_scaling", "rope_parameters"};
    *rope = (struct rope){.kind = ROPE_DEFAULT, .theta = 10000};
    TRY(json_take_double(o, "rope_theta", JSON_OPTIONAL, 1, theta_max, &rope->theta, err));
    for (size_t i = 0; i < ARRAY_COUNT(keys); i++) {
        const json_t *value = NULL;
        TRY(json_take_object(o, keys[i], JSON_OPTIONAL, &value, err));
        if (value) TRY(parse_rope(o->input, value, rope, err));
    }
    return STATUS_OK;
}

enum status config_parse_llama(struct json_object *o, struct network *n, struct error *err)
{
    static const char *const architectures[] = {"LlamaForCausalLM", "LlamaModel"};
    static const char *const gates[] = {"silu"};
    size_t architecture, gate;
    TRY(config_architecture(o, architectures, ARRAY_COUNT(architectures), &architecture, err));
    n->width = 4096;
    n->blocks = n->heads = 32;
    n->ff_width = 11008;
    n->vocabulary = 32000;
    n->positions = 2048;
    n->norm_epsilon = 1e-6;
    n->initializer_range = 0.02;
    n->causal = true;
    TRY(json_take_u64(o, "hidden_size", JSON_OPTIONAL, 1, NETWORK_WIDTH_MAX, &n->width, err));
    TRY(json_take_u64(o, "num_hidden_layers", JSON_OPTIONAL, 1, CONFIG_BLOCKS_MAX, &n->blocks, err));
    TRY(json_take_u64(o, "num_attention_heads", JSON_OPTIONAL, 1, NETWORK_HEADS_MAX, &n->heads,
                      err));
    TRY(config_head_width(o, "num_attention_heads", "hidden_size", true, n, err));
    if (n->head_width % 2 != 0)
        return json_fail_key(o->input, o->value,
                             json_has(o, "head_dim") ? "head_dim" : "num_attention_heads", err,
                             "heads of %" PRIu64
                             " elements have no rotary positions (expected an even number)",
                             n->head_width);
    n->kv_heads = n->heads;
    TRY(json_take_u64(o, "num_key_value_heads", JSON_OPTIONAL, 1, NETWORK_HEADS_MAX, &n->kv_heads,
                      err));
    if (n->heads % n->kv_heads != 0)
        return json_fail_key(o->input, o->value, "num_key_value_heads", err,
                             "'num_attention_heads' %" PRIu64
                             " is not a multiple of 'num_key_value_heads' %" PRIu64,
                             n->heads, n->kv_heads);
    TRY(json_take_u64(o, "intermediate_size", JSON_OPTIONAL, 1, NETWORK_FF_MAX, &n->ff_width,
                      err));
    TRY(json_take_u64(o, "vocab_size", JSON_OPTIONAL, 1, NETWORK_VOCABULARY_MAX, &n->vocabulary,
                      err));
    TRY(json_take_u64(o, "max_position_embeddings", JSON_OPTIONAL, 1, NETWORK_POSITIONS_MAX,
                      &n->positions, err));
    TRY(json_take_double(o, "rms_norm_eps", JSON_OPTIONAL, 0, CONFIG_RATIO_MAX, &n->norm_epsilon, err));
    TRY(json_take_double(o, "initializer_range", JSON_OPTIONAL, 0, CONFIG_RATIO_MAX,
                         &n->initializer_range, err));
    TRY(json_take_bool(o, "tie_word_embeddings", JSON_OPTIONAL, &n->tied_head, err));
    TRY(json_take_choice(o, "hidden_act", JSON_OPTIONAL, gates, ARRAY_COUNT(gates), &gate, err));
    TRY(config_fixed(o, "attention_bias", false, err));
    TRY(config_fixed(o, "mlp_bias", false, err));
    return take_rope(o, &n->rope, err);
}

void config_write_llama(const struct network *n, struct json_out *out)
{
    const struct rope *rope = &n->rope;
    json_out_u64(out, "hidden_size", n->width);
    json_out_u64(out, "num_hidden_layers", n->blocks);
    json_out_u64(out, "num_attention_heads", n->heads);
    json_out_u64(out, "num_key_value_heads", n->kv_heads);
    json_out_u64(out, "head_dim", n->head_width);
    json_out_u64(out, "intermediate_size", n->ff_width);
    json_out_u64(out, "vocab_size", n->vocabulary);
    json_out_u64(out, "max_position_embeddings", n->positions);
    json_out_string(out, "hidden_act", "silu");
    json_out_double(out, "rms_norm_eps", n->norm_epsilon);
    json_out_double(out, "initializer_range", n->initializer_range);
    json_out_bool(out, "tie_word_embeddings", n->tied_head);
    json_out_double(out, "rope_theta", rope->theta);
    if (rope->kind == ROPE_DEFAULT) return;
    json_out_object_begin(out, "rope_scaling", true);
    json_out_string(out, "rope_type", rope_kinds[rope->kind]);
    json_out_double(out, "factor", rope->factor);
    if (rope->kind == ROPE_LLAMA3) {
        json_out_double(out, "low_freq_factor", rope->low_factor);
        json_out_double(out, "high_freq_factor", rope->high_factor);
        json_out_u64(out, "original_max_position_embeddings", rope->original_positions);
    }
    json_out_object_end(out);
}
