/*
 * config.json of llama and of families with other sizes, biases, norms of queries and keys, or experts.
 * Windows of attention are read for training, but plans count attention over all tokens.
 *
 * Source: configuration_llama.py, _mistral.py, _gemma.py, _gemma2.py, _gemma3.py, _qwen2.py, _qwen2_moe.py, _qwen3.py,
 * _mixtral.py and _qwen3_moe.py, and modeling_rope_utils.py, of transformers 4.57 and 5.0.
 */
#include "models/network/config/network_config_parts.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/json/json_out.h"
#include "base/size.h"
#include "base/try.h"
#include "models/network/network_traits.h"

static const char *const rope_kinds[] = {
    [ROPE_DEFAULT] = "default", [ROPE_LINEAR] = "linear", [ROPE_LLAMA3] = "llama3"};
static_assert(ARRAY_COUNT(rope_kinds) == ROPE_KIND_COUNT, "a name per kind of rotary positions");

#define CONFIG_CAP_MIN 1e-6

static const double theta_max = 1e15, rope_factor_max = 1e6;

/* Parses "rope_scaling" of transformers 4 or "rope_parameters" of 5. */
static enum status parse_rope(const struct json_input *in, const json_t *value, struct network_rope *rope,
                              struct error *err)
{
    struct json_object o;
    size_t kind = ROPE_DEFAULT;
    double rotated = 1;
    TRY(json_object_open(&o, in, value, "an object about rotary positions", err));
    json_object_ignore_others(&o);
    TRY(json_take_double(&o, "rope_theta", JSON_OPTIONAL, 1, theta_max, &rope->theta, err));
    /* formerly "type" */
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

/* Parses rotary positions of gemma3's blocks with all tokens and with windows, which transformers 5 has apart. */
static enum status parse_two_ropes(const struct json_input *in, const json_t *value, struct network *n,
                                   struct error *err)
{
    struct json_object o;
    const json_t *full = NULL, *windows = NULL;
    struct network_rope of_windows = {.kind = ROPE_DEFAULT, .theta = n->window_theta};
    TRY(json_object_open(&o, in, value, "an object about rotary positions", err));
    json_object_ignore_others(&o);
    TRY(json_take_object(&o, "full_attention", JSON_OPTIONAL, &full, err));
    TRY(json_take_object(&o, "sliding_attention", JSON_OPTIONAL, &windows, err));
    if (full) TRY(parse_rope(in, full, &n->rope, err));
    if (windows) TRY(parse_rope(in, windows, &of_windows, err));
    n->window_theta = of_windows.theta;
    if (of_windows.kind == ROPE_DEFAULT) return STATUS_OK;
    return json_fail_key(in, windows, json_object_get(windows, "rope_type") ? "rope_type" : "type", err,
                         "rotary positions of blocks with windows are of type '%s' (only 'default' is supported)",
                         rope_kinds[of_windows.kind]);
}

static enum status read_rope(struct json_object *o, double theta, struct network *n, struct error *err)
{
    static const char *const keys[] = {"rope_scaling", "rope_parameters"};
    struct network_rope *const rope = &n->rope;
    double rotated = 1;
    *rope = (struct network_rope){.kind = ROPE_DEFAULT, .theta = theta};
    TRY(json_take_double(o, "partial_rotary_factor", JSON_OPTIONAL, 0, 1, &rotated, err));
    if (rotated < 1)
        return json_fail_key(o->input, o->value, "partial_rotary_factor", err,
                             "'partial_rotary_factor' is %g (only 1 is supported)", rotated);
    TRY(json_take_double(o, "rope_theta", JSON_OPTIONAL, 1, theta_max, &rope->theta, err));
    if (n->family == NETWORK_GEMMA3_TEXT) {
        n->window_theta = 10000;
        TRY(json_take_double(o, "rope_local_base_freq", JSON_OPTIONAL, 1, theta_max, &n->window_theta, err));
    }
    for (size_t i = 0; i < ARRAY_COUNT(keys); i++) {
        const json_t *value = NULL;
        TRY(json_take_object(o, keys[i], JSON_OPTIONAL, &value, err));
        if (value && n->family == NETWORK_GEMMA3_TEXT &&
            (json_object_get(value, "full_attention") || json_object_get(value, "sliding_attention")))
            TRY(parse_two_ropes(o->input, value, n, err));
        else if (value)
            TRY(parse_rope(o->input, value, rope, err));
    }
    if (n->window == 0) n->window_theta = 0;
    return STATUS_OK;
}

struct defaults {
    uint64_t width, blocks, heads, kv_heads, ff_width, vocabulary, positions;
    uint64_t head_width; /* 0: an equal part of the width */
    double epsilon, theta;
    bool tied_head, biases;
    uint64_t experts, experts_chosen;
    const char *architectures[2], *activations[2]; /* the second activation may be NULL */
};
#define SILU {"silu"}

static const struct defaults defaults[NETWORK_FAMILY_COUNT] = {
    [NETWORK_LLAMA] = {4096, 32, 32, 0, 11008, 32000, 2048, 0, 1e-6, 10000, false, false, 0, 0,
                       {"LlamaForCausalLM", "LlamaModel"}, SILU},
    [NETWORK_MISTRAL] = {4096, 32, 32, 8, 14336, 32000, 131072, 0, 1e-6, 10000, false, false, 0, 0,
                         {"MistralForCausalLM", "MistralModel"}, SILU},
    [NETWORK_GEMMA] = {3072, 28, 16, 16, 24576, 256000, 8192, 256, 1e-6, 10000, true, false, 0, 0,
                       {"GemmaForCausalLM", "GemmaModel"}, {"gelu_pytorch_tanh", "gelu"}},
    [NETWORK_QWEN2] = {4096, 32, 32, 32, 22016, 151936, 32768, 0, 1e-6, 10000, false, true, 0, 0,
                       {"Qwen2ForCausalLM", "Qwen2Model"}, SILU},
    [NETWORK_QWEN3] = {4096, 32, 32, 32, 22016, 151936, 32768, 128, 1e-6, 10000, false, false, 0, 0,
                       {"Qwen3ForCausalLM", "Qwen3Model"}, SILU},
    [NETWORK_MIXTRAL] = {4096, 32, 32, 8, 14336, 32000, 131072, 0, 1e-5, 1e6, false, false, 8, 2,
                         {"MixtralForCausalLM", "MixtralModel"}, SILU},
    [NETWORK_QWEN3_MOE] = {2048, 24, 32, 4, 768, 151936, 32768, 0, 1e-6, 10000, false, false, 128, 8,
                           {"Qwen3MoeForCausalLM", "Qwen3MoeModel"}, SILU},
    [NETWORK_QWEN2_MOE] = {2048, 24, 16, 16, 1408, 151936, 32768, 0, 1e-6, 10000, false, true, 60, 4,
                           {"Qwen2MoeForCausalLM", "Qwen2MoeModel"}, SILU},
    [NETWORK_GEMMA2] = {2304, 26, 8, 4, 9216, 256000, 8192, 256, 1e-6, 10000, true, false, 0, 0,
                        {"Gemma2ForCausalLM", "Gemma2Model"}, {"gelu_pytorch_tanh"}},
    [NETWORK_GEMMA3_TEXT] = {2304, 26, 8, 4, 9216, 262208, 131072, 256, 1e-6, 1e6, true, false, 0, 0,
                             {"Gemma3ForCausalLM", "Gemma3TextModel"}, {"gelu_pytorch_tanh"}},
};

static bool is_qwen_moe(const struct network *n)
{
    return n->family == NETWORK_QWEN3_MOE || n->family == NETWORK_QWEN2_MOE;
}

/* Returns "num_experts", qwen's key in transformers 4, or "num_local_experts" as in 5, like mixtral's. */
static const char *experts_key(struct json_object *o, const struct network *n)
{
    return is_qwen_moe(n) && !json_has(o, "num_local_experts") ? "num_experts" : "num_local_experts";
}

/* Takes which of qwen's blocks have no experts, and their width. */
static enum status read_dense_blocks(struct json_object *o, struct network *n, struct error *err)
{
    const json_t *dense = NULL;
    uint64_t step = 1, width = n->family == NETWORK_QWEN2_MOE ? 5632 : 6144;
    TRY(json_take_u64(o, "decoder_sparse_step", JSON_OPTIONAL, 1, NETWORK_LAYERS_MAX, &step, err));
    TRY(json_take_u64(o, "intermediate_size", JSON_OPTIONAL, 1, NETWORK_FF_MAX, &width, err));
    TRY(json_take_array(o, "mlp_only_layers", JSON_OPTIONAL, &dense, err));
    if (dense && json_array_size(dense) > NETWORK_DENSE_MAX)
        return json_fail_key(o->input, o->value, "mlp_only_layers", err,
                             "'mlp_only_layers' has %zu layers (limit is %d)", json_array_size(dense),
                             NETWORK_DENSE_MAX);
    for (size_t i = 0; dense && i < json_array_size(dense); i++) {
        uint64_t block;
        TRY(json_item_u64(o->input, dense, i, 0, NETWORK_LAYERS_MAX, &block, err));
        if (block < n->blocks) n->dense_blocks[n->dense_count++] = (uint32_t)block;
    }
    if (step > 1) n->sparse_step = step;
    if (step > 1 || n->dense_count > 0) n->dense_width = width;
    return STATUS_OK;
}

/* Takes experts. */
static enum status read_experts(struct json_object *o, struct network *n, struct error *err)
{
    const struct defaults *d = &defaults[n->family];
    double coefficient = 0.001;
    if (d->experts == 0) return STATUS_OK;
    n->experts = d->experts;
    n->experts_chosen = d->experts_chosen;
    n->experts_normalized = n->family == NETWORK_MIXTRAL;
    const char *key = experts_key(o, n);
    TRY(json_take_u64(o, key, JSON_OPTIONAL, 1, NETWORK_EXPERTS_MAX, &n->experts, err));
    if (n->experts * n->ff_width > NETWORK_FF_MAX)
        return json_fail_key(o->input, o->value, key, err,
                             "%" PRIu64 " experts of %" PRIu64 " columns are too wide together (limit is %d)",
                             n->experts, n->ff_width, NETWORK_FF_MAX);
    TRY(json_take_u64(o, "num_experts_per_tok", JSON_OPTIONAL, 1, n->experts, &n->experts_chosen, err));
    TRY(json_take_bool(o, "output_router_logits", JSON_OPTIONAL, &n->auxiliary_loss, err));
    TRY(json_take_double(o, "router_aux_loss_coef", JSON_OPTIONAL, 0, CONFIG_RATIO_MAX, &coefficient, err));
    if (!(coefficient > 0)) n->auxiliary_loss = false;
    if (!is_qwen_moe(n)) return STATUS_OK;
    TRY(json_take_bool(o, "norm_topk_prob", JSON_OPTIONAL, &n->experts_normalized, err));
    if (n->family == NETWORK_QWEN2_MOE) {
        n->shared_width = 5632;
        TRY(json_take_u64(o, "shared_expert_intermediate_size", JSON_OPTIONAL, 1, NETWORK_FF_MAX, &n->shared_width,
                          err));
        TRY(json_take_bool(o, "qkv_bias", JSON_OPTIONAL, &n->biases, err));
    }
    return read_dense_blocks(o, n, err);
}

static void write_experts(const struct network *n, struct json_out *out)
{
    if (n->experts == 0) return;
    json_out_u64(out, is_qwen_moe(n) ? "num_experts" : "num_local_experts", n->experts);
    json_out_u64(out, "num_experts_per_tok", n->experts_chosen);
    if (n->auxiliary_loss) json_out_bool(out, "output_router_logits", true);
    if (!is_qwen_moe(n)) return;
    if (n->experts_normalized) json_out_bool(out, "norm_topk_prob", true);
    if (n->family == NETWORK_QWEN2_MOE && !n->biases) json_out_bool(out, "qkv_bias", false);
    if (n->shared_width > 0) json_out_u64(out, "shared_expert_intermediate_size", n->shared_width);
    if (n->dense_width == 0) return;
    json_out_u64(out, "intermediate_size", n->dense_width);
    if (n->sparse_step > 0) json_out_u64(out, "decoder_sparse_step", n->sparse_step);
    if (n->dense_count == 0) return;
    json_out_array_begin(out, "mlp_only_layers", false);
    for (uint32_t i = 0; i < n->dense_count; i++) json_out_u64(out, NULL, n->dense_blocks[i]);
    json_out_array_end(out);
}

static enum status read_llama_head_width(struct json_object *o, struct network *n, struct error *err)
{
    n->head_width = defaults[n->family].head_width;
    if (n->head_width == 0 || json_has(o, "head_dim"))
        TRY(config_head_width(o, "num_attention_heads", "hidden_size", true, n, err));
    if (n->head_width % 2 == 0) return STATUS_OK;
    return json_fail_key(o->input, o->value, json_has(o, "head_dim") ? "head_dim" : "num_attention_heads", err,
                         "heads of %" PRIu64 " elements have no rotary positions (expected an even number)",
                         n->head_width);
}

/* --- attention ---------------------------------------------------------------------------------- */

/* Returns true if block i has a window, by the fields of *n. */
static bool has_window(const struct network *n, uint64_t i)
{
    return i >= n->window_from && (n->window_every == 0 || (i + 1) % n->window_every != 0);
}

/* Takes the list of blocks with and without windows, which must be one from some block on, or all but every n-th
 * one. */
static enum status read_layer_types(struct json_object *o, struct network *n, struct error *err)
{
    static const char *const kinds[] = {"full_attention", "sliding_attention"};
    const json_t *list = NULL;
    uint64_t first = n->blocks, full = n->blocks;
    TRY(json_take_array(o, "layer_types", JSON_OPTIONAL, &list, err));
    if (!list) return STATUS_OK;
    if (json_array_size(list) != n->blocks)
        return json_fail_key(o->input, o->value, "layer_types", err,
                             "'layer_types' has %zu layers (expected %" PRIu64 ")", json_array_size(list), n->blocks);
    for (uint64_t i = 0; i < n->blocks; i++) {
        const char *kind;
        TRY(json_item_string(o->input, list, i, &kind, err));
        if (strcmp(kind, kinds[0]) != 0 && strcmp(kind, kinds[1]) != 0)
            return json_fail_index(o->input, list, i, err, "attention of kind '%.100s' (expected '%s' or '%s')", kind,
                                   kinds[0], kinds[1]);
        const bool windowed = strcmp(kind, kinds[1]) == 0;
        if (windowed && first == n->blocks) first = i;
        if (!windowed && first < n->blocks && full == n->blocks) full = i;
    }
    if (first == n->blocks) n->window = 0;
    n->window_from = first;
    n->window_every = full < n->blocks ? full + 1 : 0;
    for (uint64_t i = 0; i < n->blocks; i++)
        if (has_window(n, i) != (strcmp(json_string_value(json_array_get(list, i)), kinds[1]) == 0))
            return json_fail_index(o->input, list, i, err,
                                   "blocks with windows follow no rule that is supported (expected all from one "
                                   "on, or all but every n-th one)");
    return STATUS_OK;
}

/* Takes the window of attention: of all blocks, of qwen's later ones, or of all but every n-th one of gemma2 and
 * gemma3. */
static enum status read_windows(struct json_object *o, struct network *n, struct error *err)
{
    const bool gemma = network_traits(n)->outer_norms,
               qwen = n->family == NETWORK_QWEN2 || n->family == NETWORK_QWEN3 || is_qwen_moe(n);
    const bool null = json_is_null(json_object_get(o->value, "sliding_window"));
    bool uses = !qwen;
    if (n->family == NETWORK_LLAMA || n->family == NETWORK_GEMMA) return STATUS_OK;
    n->window = n->family == NETWORK_MIXTRAL ? 0 : 4096;
    n->window_from = qwen ? 28 : 0;
    n->window_every = gemma ? (n->family == NETWORK_GEMMA2 ? 2 : 6) : 0;
    if (qwen) TRY(json_take_bool(o, "use_sliding_window", JSON_OPTIONAL, &uses, err));
    TRY(json_take_u64(o, "sliding_window", JSON_OPTIONAL, 0, NETWORK_POSITIONS_MAX, &n->window, err));
    if (qwen) TRY(json_take_u64(o, "max_window_layers", JSON_OPTIONAL, 0, NETWORK_LAYERS_MAX, &n->window_from, err));
    if (gemma)
        TRY(json_take_u64(o, "sliding_window_pattern", JSON_OPTIONAL, 1, NETWORK_LAYERS_MAX, &n->window_every, err));
    TRY(read_layer_types(o, n, err));
    if (n->window_every > n->blocks) n->window_every = 0;
    if (!uses || null || n->window_from >= n->blocks || n->window_every == 1) n->window = 0;
    if (n->window == 0) n->window_from = n->window_every = 0;
    return STATUS_OK;
}

static void write_windows(const struct network *n, struct json_out *out)
{
    const bool gemma = network_traits(n)->outer_norms;
    if ((n->family == NETWORK_MISTRAL || gemma) && n->window == 0) json_out_null(out, "sliding_window");
    if (n->window == 0) return;
    json_out_u64(out, "sliding_window", n->window);
    if (gemma) json_out_u64(out, "sliding_window_pattern", n->window_every > 0 ? n->window_every : n->blocks + 1);
    if (gemma || n->family == NETWORK_MISTRAL || n->family == NETWORK_MIXTRAL) return;
    json_out_bool(out, "use_sliding_window", true);
    json_out_u64(out, "max_window_layers", n->window_from);
}

/* Takes a cap; null: none. */
static enum status read_cap(struct json_object *o, const char *key, double otherwise, double *out, struct error *err)
{
    *out = json_is_null(json_object_get(o->value, key)) ? 0 : otherwise;
    return json_take_double(o, key, JSON_OPTIONAL, CONFIG_CAP_MIN, CONFIG_RATIO_MAX, out, err);
}

/* Takes how gemma2 and gemma3 scale and cap scores and logits. */
static enum status read_scores(struct json_object *o, struct network *n, struct error *err)
{
    const bool caps = n->family == NETWORK_GEMMA2;
    double scalar = 256;
    if (!network_traits(n)->outer_norms) return STATUS_OK;
    TRY(json_take_double(o, "query_pre_attn_scalar", JSON_OPTIONAL, CONFIG_CAP_MIN, CONFIG_RATIO_MAX, &scalar, err));
    if (scalar < (double)n->head_width || scalar > (double)n->head_width) n->score_scalar = scalar;
    TRY(read_cap(o, "attn_logit_softcapping", caps ? 50 : 0, &n->score_cap, err));
    TRY(read_cap(o, "final_logit_softcapping", caps ? 30 : 0, &n->logit_cap, err));
    return config_fixed(o, "use_bidirectional_attention", false, err);
}

static void write_cap(struct json_out *out, const char *key, double cap)
{
    if (cap > 0) json_out_double(out, key, cap);
    else json_out_null(out, key);
}

static void write_scores(const struct network *n, struct json_out *out)
{
    if (!network_traits(n)->outer_norms) return;
    json_out_double(out, "query_pre_attn_scalar", n->score_scalar > 0 ? n->score_scalar : (double)n->head_width);
    write_cap(out, "attn_logit_softcapping", n->score_cap);
    write_cap(out, "final_logit_softcapping", n->logit_cap);
    if (n->window_theta > 0) json_out_double(out, "rope_local_base_freq", n->window_theta);
}

/* --- all -------------------------------------------------------------------------------------------- */

static const char *activation_key(const struct network *n)
{
    return network_traits(n)->outer_norms ? "hidden_activation" : "hidden_act";
}

enum status config_parse_llama(struct json_object *o, struct network *n, struct error *err)
{
    const struct defaults *d = &defaults[n->family];
    size_t architecture, activation;
    TRY(config_architecture(o, d->architectures, ARRAY_COUNT(d->architectures), &architecture, err));
    n->width = d->width;
    n->blocks = d->blocks;
    n->heads = d->heads;
    n->ff_width = d->ff_width;
    n->vocabulary = d->vocabulary;
    n->positions = d->positions;
    n->norm_epsilon = d->epsilon;
    n->initializer_range = 0.02;
    n->causal = true;
    n->tied_head = d->tied_head;
    n->biases = d->biases;
    TRY(json_take_u64(o, "hidden_size", JSON_OPTIONAL, 1, NETWORK_WIDTH_MAX, &n->width, err));
    TRY(json_take_u64(o, "num_hidden_layers", JSON_OPTIONAL, 1, CONFIG_BLOCKS_MAX, &n->blocks, err));
    TRY(json_take_u64(o, "num_attention_heads", JSON_OPTIONAL, 1, NETWORK_HEADS_MAX, &n->heads,
                      err));
    TRY(read_llama_head_width(o, n, err));
    /* null means the number of heads, not the default */
    bool null = json_is_null(json_object_get(o->value, "num_key_value_heads"));
    n->kv_heads = !null && d->kv_heads > 0 && n->heads % d->kv_heads == 0 ? d->kv_heads : n->heads;
    TRY(json_take_u64(o, "num_key_value_heads", JSON_OPTIONAL, 1, NETWORK_HEADS_MAX, &n->kv_heads,
                      err));
    if (n->heads % n->kv_heads != 0)
        return json_fail_key(o->input, o->value, "num_key_value_heads", err,
                             "'num_attention_heads' %" PRIu64
                             " is not a multiple of 'num_key_value_heads' %" PRIu64,
                             n->heads, n->kv_heads);
    TRY(json_take_u64(o, is_qwen_moe(n) ? "moe_intermediate_size" : "intermediate_size", JSON_OPTIONAL, 1,
                      NETWORK_FF_MAX, &n->ff_width, err));
    TRY(json_take_u64(o, "vocab_size", JSON_OPTIONAL, 1, NETWORK_VOCABULARY_MAX, &n->vocabulary,
                      err));
    TRY(json_take_u64(o, "max_position_embeddings", JSON_OPTIONAL, 1, NETWORK_POSITIONS_MAX,
                      &n->positions, err));
    TRY(json_take_double(o, "rms_norm_eps", JSON_OPTIONAL, 0, CONFIG_RATIO_MAX, &n->norm_epsilon, err));
    TRY(json_take_double(o, "initializer_range", JSON_OPTIONAL, 0, CONFIG_RATIO_MAX,
                         &n->initializer_range, err));
    TRY(json_take_bool(o, "tie_word_embeddings", JSON_OPTIONAL, &n->tied_head, err));
    TRY(json_take_choice(o, activation_key(n), JSON_OPTIONAL, d->activations, d->activations[1] ? 2 : 1, &activation,
                         err));
    n->has_padding = network_traits(n)->less_one; /* token 0 */
    TRY(config_padding(o, n, err));
    TRY(read_windows(o, n, err));
    TRY(read_scores(o, n, err));
    TRY(read_experts(o, n, err));
    TRY(config_fixed(o, "attention_bias", false, err));
    TRY(config_fixed(o, "mlp_bias", false, err));
    return read_rope(o, d->theta, n, err);
}

void config_write_llama(const struct network *n, struct json_out *out)
{
    const struct network_rope *rope = &n->rope;
    json_out_u64(out, "hidden_size", n->width);
    json_out_u64(out, "num_hidden_layers", n->blocks);
    json_out_u64(out, "num_attention_heads", n->heads);
    json_out_u64(out, "num_key_value_heads", n->kv_heads);
    json_out_u64(out, "head_dim", n->head_width);
    json_out_u64(out, is_qwen_moe(n) ? "moe_intermediate_size" : "intermediate_size", n->ff_width);
    write_experts(n, out);
    json_out_u64(out, "vocab_size", n->vocabulary);
    json_out_u64(out, "max_position_embeddings", n->positions);
    json_out_string(out, activation_key(n), defaults[n->family].activations[0]);
    json_out_double(out, "rms_norm_eps", n->norm_epsilon);
    json_out_double(out, "initializer_range", n->initializer_range);
    json_out_bool(out, "tie_word_embeddings", n->tied_head);
    if (n->has_padding) json_out_u64(out, "pad_token_id", n->padding_token);
    else if (network_traits(n)->less_one) json_out_null(out, "pad_token_id");
    write_windows(n, out);
    write_scores(n, out);
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
