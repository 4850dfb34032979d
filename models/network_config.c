/*
 * config.json in and out.
 *
 * A key that is missing has the default of its class in transformers, so each family starts from
 * those defaults and overwrites what the file says. Keys that change neither shapes nor arithmetic
 * are accepted and ignored ("torch_dtype" in version 4, "dtype" in 5, dropout rates, token ids); a
 * key that would make another network of it (a relu, a cross attention, scores scaled by layer) is
 * refused, since a plan for the wrong network is worse than none.
 *
 * Products of shapes are bounded here once (NETWORK_*_MAX), so that no code behind has to check
 * them: limits on each dimension keep every product below 2^62, then the parameter count is
 * compared with its own limit.
 *
 * network_write() uses the same keys, so that what it writes is a config.json too. "name", bert's
 * "mask_token_id", and "head_dim" where heads are not the width's equal parts, are our own. A
 * profile is written with equal neighbours folded into "repeat".
 *
 * Source: configuration_gpt2.py, configuration_llama.py, configuration_bert.py, configuration_vit.py
 * and modeling_rope_utils.py of transformers 4.57 and 5.0.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json_out.h"
#include "base/size.h"
#include "models/network.h"
#include "models/try.h"

static const double ratio_max = 1e6; /* epsilons, ranges: anything finite and sane */

/* --- pieces shared by the families ---------------------------------------------------------- */

/* GELU's spellings; the first `tanh_count` are its tanh form. */
enum { GELU_TANH_COUNT = 3 };
static const char *const activations[] = {"gelu_new", "gelu_pytorch_tanh", "gelu_fast", "gelu"};

static enum status take_activation(struct json_object *object, const char *key, bool *tanh_form,
                                   struct error *err)
{
    size_t index = *tanh_form ? 0 : GELU_TANH_COUNT;
    TRY(json_take_choice(object, key, JSON_OPTIONAL, activations, ARRAY_COUNT(activations), &index,
                         err));
    *tanh_form = index < GELU_TANH_COUNT;
    return STATUS_OK;
}

/* A switch that must have this value, or be absent. */
static enum status take_fixed(struct json_object *object, const char *key, bool expected,
                              struct error *err)
{
    bool found = expected;
    TRY(json_take_bool(object, key, JSON_OPTIONAL, &found, err));
    if (found == expected) return STATUS_OK;
    return json_fail_key(object->input, object->value, key, err,
                         "'%s' is %s (only %s is supported)", key, found ? "true" : "false",
                         expected ? "true" : "false");
}

/* "architectures": the first of names[] if absent; *out is the index of the first listed one. */
static enum status take_architecture(struct json_object *object, const char *const *names,
                                     size_t count, size_t *out, struct error *err)
{
    const json_t *array = NULL;
    const char *found;
    TRY(json_take_array(object, "architectures", JSON_OPTIONAL, &array, err));
    *out = 0;
    if (!array || json_array_size(array) == 0) return STATUS_OK;
    TRY(json_item_string(object->input, array, 0, &found, err));
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], found) != 0) continue;
        *out = i;
        return STATUS_OK;
    }
    char list[256];
    size_t used = 0;
    for (size_t i = 0; i < count && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", names[i]);
    return json_fail_index(object->input, array, 0, err,
                           "unsupported architecture '%.100s' (expected one of %s)", found, list);
}

/* The heads' width: given, or an equal part of the network's. */
static enum status take_head_width(struct json_object *object, const char *heads_key,
                                   const char *width_key, bool may_differ, struct network *n,
                                   struct error *err)
{
    if (may_differ && json_has(object, "head_dim")) {
        TRY(json_take_u64(object, "head_dim", JSON_REQUIRED, 1, NETWORK_WIDTH_MAX, &n->head_width,
                          err));
        if (n->head_width * n->heads <= NETWORK_WIDTH_MAX) return STATUS_OK;
        return json_fail_key(object->input, object->value, "head_dim", err,
                             "%" PRIu64 " heads of %" PRIu64
                             " are too wide together (limit is %d)",
                             n->heads, n->head_width, NETWORK_WIDTH_MAX);
    }
    if (n->width % n->heads != 0)
        return json_fail_key(object->input, object->value, heads_key, err,
                             "'%s' %" PRIu64 " is not a multiple of '%s' %" PRIu64, width_key,
                             n->width, heads_key, n->heads);
    n->head_width = n->width / n->heads;
    return STATUS_OK;
}

enum { BLOCKS_MAX = LAYERS_MAX - 2 };

/* --- gpt2 ----------------------------------------------------------------------------------- */

static enum status parse_gpt2(struct json_object *o, struct network *n, struct error *err)
{
    static const char *const architectures[] = {"GPT2LMHeadModel", "GPT2Model"};
    size_t architecture;
    TRY(take_architecture(o, architectures, ARRAY_COUNT(architectures), &architecture, err));
    n->width = 768;
    n->blocks = n->heads = 12;
    n->vocabulary = 50257;
    n->positions = 1024;
    n->norm_epsilon = 1e-5;
    n->initializer_range = 0.02;
    n->tied_head = n->causal = n->biases = n->gelu_tanh = true;
    TRY(json_take_u64(o, "n_embd", JSON_OPTIONAL, 1, NETWORK_WIDTH_MAX, &n->width, err));
    TRY(json_take_u64(o, "n_layer", JSON_OPTIONAL, 1, BLOCKS_MAX, &n->blocks, err));
    TRY(json_take_u64(o, "n_head", JSON_OPTIONAL, 1, NETWORK_HEADS_MAX, &n->heads, err));
    TRY(take_head_width(o, "n_head", "n_embd", false, n, err));
    n->ff_width = 4 * n->width;
    TRY(json_take_u64(o, "n_inner", JSON_OPTIONAL, 1, NETWORK_FF_MAX, &n->ff_width, err));
    TRY(json_take_u64(o, "n_positions", JSON_OPTIONAL, 1, NETWORK_POSITIONS_MAX, &n->positions,
                      err));
    TRY(json_take_u64(o, "vocab_size", JSON_OPTIONAL, 1, NETWORK_VOCABULARY_MAX, &n->vocabulary,
                      err));
    TRY(json_take_double(o, "layer_norm_epsilon", JSON_OPTIONAL, 0, ratio_max, &n->norm_epsilon,
                         err));
    TRY(json_take_double(o, "initializer_range", JSON_OPTIONAL, 0, ratio_max,
                         &n->initializer_range, err));
    TRY(json_take_bool(o, "tie_word_embeddings", JSON_OPTIONAL, &n->tied_head, err));
    TRY(take_activation(o, "activation_function", &n->gelu_tanh, err));
    TRY(take_fixed(o, "scale_attn_weights", true, err));
    TRY(take_fixed(o, "scale_attn_by_inverse_layer_idx", false, err));
    return take_fixed(o, "add_cross_attention", false, err);
}

static void write_gpt2(const struct network *n, struct json_out *out)
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

/* --- llama ---------------------------------------------------------------------------------- */

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

static enum status parse_llama(struct json_object *o, struct network *n, struct error *err)
{
    static const char *const architectures[] = {"LlamaForCausalLM", "LlamaModel"};
    static const char *const gates[] = {"silu"};
    size_t architecture, gate;
    TRY(take_architecture(o, architectures, ARRAY_COUNT(architectures), &architecture, err));
    n->width = 4096;
    n->blocks = n->heads = 32;
    n->ff_width = 11008;
    n->vocabulary = 32000;
    n->positions = 2048;
    n->norm_epsilon = 1e-6;
    n->initializer_range = 0.02;
    n->causal = true;
    TRY(json_take_u64(o, "hidden_size", JSON_OPTIONAL, 1, NETWORK_WIDTH_MAX, &n->width, err));
    TRY(json_take_u64(o, "num_hidden_layers", JSON_OPTIONAL, 1, BLOCKS_MAX, &n->blocks, err));
    TRY(json_take_u64(o, "num_attention_heads", JSON_OPTIONAL, 1, NETWORK_HEADS_MAX, &n->heads,
                      err));
    TRY(take_head_width(o, "num_attention_heads", "hidden_size", true, n, err));
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
    TRY(json_take_double(o, "rms_norm_eps", JSON_OPTIONAL, 0, ratio_max, &n->norm_epsilon, err));
    TRY(json_take_double(o, "initializer_range", JSON_OPTIONAL, 0, ratio_max,
                         &n->initializer_range, err));
    TRY(json_take_bool(o, "tie_word_embeddings", JSON_OPTIONAL, &n->tied_head, err));
    TRY(json_take_choice(o, "hidden_act", JSON_OPTIONAL, gates, ARRAY_COUNT(gates), &gate, err));
    TRY(take_fixed(o, "attention_bias", false, err));
    TRY(take_fixed(o, "mlp_bias", false, err));
    return take_rope(o, &n->rope, err);
}

static void write_llama(const struct network *n, struct json_out *out)
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

/* --- what bert and vit have in common ------------------------------------------------------- */

static enum status parse_encoder(struct json_object *o, struct network *n, struct error *err)
{
    n->width = 768;
    n->blocks = n->heads = 12;
    n->ff_width = 3072;
    n->norm_epsilon = 1e-12;
    n->initializer_range = 0.02;
    n->biases = true;
    TRY(json_take_u64(o, "hidden_size", JSON_OPTIONAL, 1, NETWORK_WIDTH_MAX, &n->width, err));
    TRY(json_take_u64(o, "num_hidden_layers", JSON_OPTIONAL, 1, BLOCKS_MAX, &n->blocks, err));
    TRY(json_take_u64(o, "num_attention_heads", JSON_OPTIONAL, 1, NETWORK_HEADS_MAX, &n->heads,
                      err));
    TRY(take_head_width(o, "num_attention_heads", "hidden_size", true, n, err));
    TRY(json_take_u64(o, "intermediate_size", JSON_OPTIONAL, 1, NETWORK_FF_MAX, &n->ff_width,
                      err));
    TRY(json_take_double(o, "layer_norm_eps", JSON_OPTIONAL, 0, ratio_max, &n->norm_epsilon,
                         err));
    TRY(json_take_double(o, "initializer_range", JSON_OPTIONAL, 0, ratio_max,
                         &n->initializer_range, err));
    return take_activation(o, "hidden_act", &n->gelu_tanh, err);
}

static void write_encoder(const struct network *n, struct json_out *out)
{
    json_out_u64(out, "hidden_size", n->width);
    json_out_u64(out, "num_hidden_layers", n->blocks);
    json_out_u64(out, "num_attention_heads", n->heads);
    if (n->head_width * n->heads != n->width) json_out_u64(out, "head_dim", n->head_width);
    json_out_u64(out, "intermediate_size", n->ff_width);
    json_out_string(out, "hidden_act", n->gelu_tanh ? "gelu_new" : "gelu");
    json_out_double(out, "layer_norm_eps", n->norm_epsilon);
    json_out_double(out, "initializer_range", n->initializer_range);
}

/* --- bert ----------------------------------------------------------------------------------- */

static const char *const bert_architectures[] = {"BertForMaskedLM", "BertForPreTraining",
                                                 "BertModel"};

static enum status parse_bert(struct json_object *o, struct network *n, struct error *err)
{
    size_t architecture;
    TRY(take_architecture(o, bert_architectures, ARRAY_COUNT(bert_architectures), &architecture,
                          err));
    n->pooler = architecture > 0;
    n->vocabulary = 30522;
    n->positions = 512;
    n->token_types = 2;
    n->tied_head = true;
    TRY(parse_encoder(o, n, err));
    TRY(json_take_u64(o, "vocab_size", JSON_OPTIONAL, 1, NETWORK_VOCABULARY_MAX, &n->vocabulary,
                      err));
    TRY(json_take_u64(o, "max_position_embeddings", JSON_OPTIONAL, 1, NETWORK_POSITIONS_MAX,
                      &n->positions, err));
    TRY(json_take_u64(o, "type_vocab_size", JSON_OPTIONAL, 0, NETWORK_VOCABULARY_MAX,
                      &n->token_types, err));
    n->mask_token = n->vocabulary > NETWORK_BERT_MASK ? NETWORK_BERT_MASK : n->vocabulary - 1;
    TRY(json_take_u64(o, "mask_token_id", JSON_OPTIONAL, 0, n->vocabulary - 1, &n->mask_token,
                      err));
    TRY(json_take_bool(o, "tie_word_embeddings", JSON_OPTIONAL, &n->tied_head, err));
    static const char *const positions[] = {"absolute"};
    size_t position;
    TRY(json_take_choice(o, "position_embedding_type", JSON_OPTIONAL, positions, 1, &position,
                         err));
    TRY(take_fixed(o, "is_decoder", false, err));
    return take_fixed(o, "add_cross_attention", false, err);
}

static void write_bert(const struct network *n, struct json_out *out)
{
    json_out_array_begin(out, "architectures", true);
    json_out_string(out, NULL, bert_architectures[n->pooler ? 1 : 0]);
    json_out_array_end(out);
    write_encoder(n, out);
    json_out_u64(out, "vocab_size", n->vocabulary);
    json_out_u64(out, "max_position_embeddings", n->positions);
    json_out_u64(out, "type_vocab_size", n->token_types);
    json_out_u64(out, "mask_token_id", n->mask_token);
    json_out_bool(out, "tie_word_embeddings", n->tied_head);
}

/* --- vit ------------------------------------------------------------------------------------ */

/* "num_labels", or as many as "id2label" names; transformers writes only the latter. */
static enum status take_classes(struct json_object *o, uint64_t *out, struct error *err)
{
    const json_t *labels = NULL;
    TRY(json_take_object(o, "id2label", JSON_OPTIONAL, &labels, err));
    if (labels) {
        *out = json_object_size(labels);
        if (*out == 0 || *out > NETWORK_VOCABULARY_MAX)
            return json_fail_key(o->input, o->value, "id2label", err,
                                 "'id2label' has %" PRIu64 " labels (expected 1 to %d)", *out,
                                 NETWORK_VOCABULARY_MAX);
    }
    return json_take_u64(o, "num_labels", JSON_OPTIONAL, 1, NETWORK_VOCABULARY_MAX, out, err);
}

static enum status parse_vit(struct json_object *o, struct network *n, struct error *err)
{
    static const char *const architectures[] = {"ViTForImageClassification", "ViTModel"};
    size_t architecture;
    TRY(take_architecture(o, architectures, ARRAY_COUNT(architectures), &architecture, err));
    n->image = 224;
    n->patch = 16;
    n->channels = 3;
    n->classes = 2;
    TRY(parse_encoder(o, n, err));
    TRY(json_take_u64(o, "image_size", JSON_OPTIONAL, 1, NETWORK_IMAGE_MAX, &n->image, err));
    TRY(json_take_u64(o, "patch_size", JSON_OPTIONAL, 1, NETWORK_IMAGE_MAX, &n->patch, err));
    TRY(json_take_u64(o, "num_channels", JSON_OPTIONAL, 1, NETWORK_CHANNELS_MAX, &n->channels,
                      err));
    TRY(json_take_bool(o, "qkv_bias", JSON_OPTIONAL, &n->biases, err));
    TRY(take_classes(o, &n->classes, err));
    if (n->image % n->patch != 0)
        return json_fail_key(o->input, o->value, "patch_size", err,
                             "'image_size' %" PRIu64 " is not a multiple of 'patch_size' %" PRIu64,
                             n->image, n->patch);
    return STATUS_OK;
}

static void write_vit(const struct network *n, struct json_out *out)
{
    write_encoder(n, out);
    json_out_u64(out, "image_size", n->image);
    json_out_u64(out, "patch_size", n->patch);
    json_out_u64(out, "num_channels", n->channels);
    json_out_bool(out, "qkv_bias", n->biases);
    json_out_u64(out, "num_labels", n->classes);
}

/* --- profiles ------------------------------------------------------------------------------- */

/* "forward_ns": 1500000 or "forward": "1.5ms": two keys, so that units are never guessed. */
static enum status take_time(struct json_object *o, const char *ns_key, const char *key,
                             uint64_t *out, struct error *err)
{
    if (!json_has(o, key))
        return json_take_u64(o, ns_key, JSON_REQUIRED, 0, NETWORK_PROFILE_NS_MAX, out, err);
    double seconds = 0;
    if (json_has(o, ns_key))
        return json_fail_key(o->input, o->value, key, err, "both '%s' and '%s' are given", ns_key,
                             key);
    TRY(json_take_quantity(o, key, JSON_REQUIRED, DIMENSION_SECONDS, 0,
                           (double)NETWORK_PROFILE_NS_MAX * 1e-9, &seconds, err));
    *out = (uint64_t)(seconds * 1e9 + 0.5);
    return STATUS_OK;
}

static enum status parse_layer(const struct json_input *in, const json_t *layers, size_t index,
                               struct layer_profile *out, uint64_t *repeat, struct error *err)
{
    struct json_object o;
    TRY(json_object_open_at(&o, in, layers, index, "a layer object", err));
    *out = (struct layer_profile){0};
    *repeat = 1;
    const uint64_t bytes_max = NETWORK_PROFILE_BYTES_MAX;
    TRY(json_take_u64(&o, "parameter_bytes", JSON_REQUIRED, 0, bytes_max, &out->parameter_bytes,
                      err));
    TRY(json_take_u64(&o, "activation_bytes", JSON_REQUIRED, 0, bytes_max, &out->activation_bytes,
                      err));
    TRY(json_take_u64(&o, "boundary_bytes", JSON_REQUIRED, 0, bytes_max, &out->boundary_bytes,
                      err));
    TRY(take_time(&o, "forward_ns", "forward", &out->forward_ns, err));
    TRY(take_time(&o, "backward_ns", "backward", &out->backward_ns, err));
    TRY(json_take_u64(&o, "repeat", JSON_OPTIONAL, 1, LAYERS_MAX, repeat, err));
    TRY(json_object_close(&o, err));
    if (out->parameter_bytes % sizeof(float) != 0)
        return json_fail_key(in, o.value, "parameter_bytes", err,
                             "'parameter_bytes' %" PRIu64
                             " is not a multiple of 4 (parameters are fp32)",
                             out->parameter_bytes);
    return STATUS_OK;
}

static enum status parse_profile(struct json_object *o, struct arena *arena, struct network *n,
                                 struct error *err)
{
    const json_t *layers;
    struct layer_profile layer;
    uint64_t repeat;
    json_take_any(o, "name");
    TRY(json_take_array(o, "layers", JSON_REQUIRED, &layers, err));
    TRY(json_object_close(o, err));
    for (size_t i = 0; i < json_array_size(layers); i++) {
        TRY(parse_layer(o->input, layers, i, &layer, &repeat, err));
        n->layer_count += repeat;
        if (n->layer_count > LAYERS_MAX)
            return error_set(err, STATUS_LIMIT, "%s: too many layers (limit is %d)",
                             json_input_name(o->input), LAYERS_MAX);
    }
    if (n->layer_count == 0)
        return json_fail_key(o->input, o->value, "layers", err,
                             "'layers' is empty (expected at least one layer)");

    void *memory;
    TRY(arena_array(arena, (size_t)n->layer_count, sizeof layer, &memory, err));
    struct layer_profile *profile = memory;
    n->profile = profile;
    for (size_t i = 0; i < json_array_size(layers); i++) {
        TRY(parse_layer(o->input, layers, i, &layer, &repeat, err));
        while (repeat-- > 0) *profile++ = layer;
    }
    return STATUS_OK;
}

static bool same_layer(const struct layer_profile *a, const struct layer_profile *b)
{
    return a->parameter_bytes == b->parameter_bytes && a->activation_bytes == b->activation_bytes &&
           a->boundary_bytes == b->boundary_bytes && a->forward_ns == b->forward_ns &&
           a->backward_ns == b->backward_ns;
}

static void write_profile(const struct network *n, struct json_out *out)
{
    json_out_array_begin(out, "layers", false);
    for (uint64_t i = 0, next; i < n->layer_count; i = next) {
        const struct layer_profile *layer = &n->profile[i];
        for (next = i + 1; next < n->layer_count && same_layer(layer, &n->profile[next]);) next++;
        json_out_object_begin(out, NULL, true);
        json_out_u64(out, "parameter_bytes", layer->parameter_bytes);
        json_out_u64(out, "activation_bytes", layer->activation_bytes);
        json_out_u64(out, "boundary_bytes", layer->boundary_bytes);
        json_out_u64(out, "forward_ns", layer->forward_ns);
        json_out_u64(out, "backward_ns", layer->backward_ns);
        if (next - i > 1) json_out_u64(out, "repeat", next - i);
        json_out_object_end(out);
    }
    json_out_array_end(out);
}

/* --- any family ----------------------------------------------------------------------------- */

static enum status check_size(const struct json_object *o, const struct network *n,
                              struct error *err)
{
    if (network_parameters(n) <= NETWORK_PARAMETERS_MAX) return STATUS_OK;
    struct error limit = {0};
    json_fail_key(o->input, o->value, NULL, &limit,
                  "too many parameters: %" PRIu64 " (limit is %" PRIu64 ")", network_parameters(n),
                  NETWORK_PARAMETERS_MAX);
    return error_set(err, STATUS_LIMIT, "%s", limit.text);
}

static enum status parse_family(struct json_object *o, struct arena *arena, struct network *n,
                                struct error *err)
{
    switch ((enum network_family)n->family) {
    case NETWORK_GPT2: TRY(parse_gpt2(o, n, err)); break;
    case NETWORK_LLAMA: TRY(parse_llama(o, n, err)); break;
    case NETWORK_BERT: TRY(parse_bert(o, n, err)); break;
    case NETWORK_VIT: TRY(parse_vit(o, n, err)); break;
    case NETWORK_PROFILE:
    case NETWORK_FAMILY_COUNT: TRY(parse_profile(o, arena, n, err)); break;
    }
    if (n->family != NETWORK_PROFILE) n->layer_count = n->blocks + 2;
    return check_size(o, n, err);
}

enum status network_parse(const struct json_input *in, const json_t *value, const char *name,
                          struct arena *arena, struct network *out, struct error *err)
{
    struct json_object object;
    TRY(json_object_open(&object, in, value, "a network object, as config.json has it", err));
    size_t family;
    TRY(json_take_choice(&object, "model_type", JSON_REQUIRED, network_family_names,
                         NETWORK_FAMILY_COUNT, &family, err));
    TRY(json_take_string(&object, "name", JSON_OPTIONAL, &name, err));
    struct network n = {.family = (uint32_t)family};
    if (strlen(name) >= sizeof n.name) { /* the end of a path says more than its beginning */
        name += strlen(name) - (sizeof n.name - 1);
        while (((unsigned char)*name & 0xc0) == 0x80) name++; /* not from within a character */
    }
    snprintf(n.name, sizeof n.name, "%s", name);
    TRY(parse_family(&object, arena, &n, err));
    *out = n;
    return STATUS_OK;
}

enum status network_read_config(const char *path, struct arena *arena, struct network *out,
                                struct error *err)
{
    struct json_input *in;
    TRY(json_input_read(path, &in, err));
    enum status status = network_parse(in, json_input_root(in), path, arena, out, err);
    json_input_destroy(in);
    return status;
}

void network_write(const struct network *network, struct json_out *out, const char *key)
{
    typedef void (*write)(const struct network *, struct json_out *);
    static const write writers[NETWORK_FAMILY_COUNT] = {
        [NETWORK_GPT2] = write_gpt2,
        [NETWORK_LLAMA] = write_llama,
        [NETWORK_BERT] = write_bert,
        [NETWORK_VIT] = write_vit,
        [NETWORK_PROFILE] = write_profile,
    };
    json_out_object_begin(out, key, false);
    json_out_string(out, "model_type", network_family_names[network->family]);
    json_out_string(out, "name", network->name);
    writers[network->family](network, out);
    json_out_object_end(out);
}
