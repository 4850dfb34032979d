/*
 * Networks consist of an embedding, ranges of equal blocks and a head: questions about a layer take constant time. One
 * function per family and kind of layer lists the tensors, in the order of transformers' classes; counting runs it
 * without names, so that counts, memory tables and names in files agree.
 *
 * Worked example, gpt2 (C 768, F 3072, V 50257, P 1024):
 *     embedding  V C + P C                                          = 39 383 808
 *     block      ln 2 * 2C, qkv 3C(C+1), proj C(C+1), fc F(C+1), fc2 C(F+1)
 *                                                                   =  7 087 872  x 12
 *     head       ln_f 2C (the table is tied)                        =      1 536
 *     sum                                                           = 124 439 808
 *
 * Names are as on the hub: gpt2's have no prefix "transformer.".
 * Source: transformers, modeling_gpt2.py, modeling_llama.py, modeling_bert.py, modeling_vit.py and
 * modeling_rope_utils.py (4.57 and 5.0).
 */
#include "models/network/network.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/extreme.h"
#include "base/size.h"
#include "models/network/network_graph.h"
#include "models/network/network_t5.h"
#include "models/network/network_trained.h"
#include "models/network/network_traits.h"

const char *const network_family_names[] = {
    [NETWORK_GPT2] = "gpt2",
    [NETWORK_LLAMA] = "llama",
    [NETWORK_BERT] = "bert",
    [NETWORK_VIT] = "vit",
    [NETWORK_OPT] = "opt",
    [NETWORK_GPT_NEOX] = "gpt_neox",
    [NETWORK_GPTJ] = "gptj",
    [NETWORK_PHI] = "phi",
    [NETWORK_MISTRAL] = "mistral",
    [NETWORK_GEMMA] = "gemma",
    [NETWORK_QWEN2] = "qwen2",
    [NETWORK_QWEN3] = "qwen3",
    [NETWORK_GEMMA2] = "gemma2",
    [NETWORK_MIXTRAL] = "mixtral",
    [NETWORK_QWEN3_MOE] = "qwen3_moe",
    [NETWORK_QWEN2_MOE] = "qwen2_moe",
    [NETWORK_GEMMA3_TEXT] = "gemma3_text",
    [NETWORK_T5] = "t5",
    [NETWORK_MT5] = "mt5",
    [NETWORK_UMT5] = "umt5",
    [NETWORK_CNN] = "cnn",
    [NETWORK_RESNET] = "resnet",
    [NETWORK_PROFILE] = "profile",
};
static_assert(ARRAY_COUNT(network_family_names) == NETWORK_FAMILY_COUNT, "a name per family");

enum layer_kind network_layer_kind(const struct network *network, uint64_t layer)
{
    assert(layer < network->layer_count);
    if (network_is_listed(network)) return LAYER_OPAQUE;
    if (layer == 0) return LAYER_EMBEDDING;
    return layer + 1 == network->layer_count ? LAYER_HEAD : LAYER_BLOCK;
}

static bool is_dense(const struct network *network, uint64_t layer)
{
    if (network->dense_width == 0 || network_layer_kind(network, layer) != LAYER_BLOCK) return false;
    if (network->sparse_step > 0 && layer % network->sparse_step != 0) return true;
    for (uint32_t i = 0; i < network->dense_count; i++)
        if (network->dense_blocks[i] + 1 == layer) return true;
    return false;
}

const struct network *network_of_layer(const struct network *network, uint64_t layer, struct network *room)
{
    if (!is_dense(network, layer)) return network;
    *room = *network;
    room->ff_width = network->dense_width;
    room->experts = room->experts_chosen = room->shared_width = 0;
    return room;
}

/* Return the range of blocks around one that have experts like it, or have none. */
static uint64_t same_begin(const struct network *network, uint64_t layer)
{
    const bool dense = is_dense(network, layer);
    if (network->dense_width == 0) return 1;
    while (layer > 1 && is_dense(network, layer - 1) == dense) layer--;
    return layer;
}

static uint64_t same_end(const struct network *network, uint64_t layer)
{
    const uint64_t end = network->layer_count - 1;
    const bool dense = is_dense(network, layer);
    if (network->dense_width == 0) return end;
    while (layer < end && is_dense(network, layer) == dense) layer++;
    return layer;
}

/* The first block of each stack has the table of positions. */
static uint64_t alike_begin(const struct network *network, uint64_t layer)
{
    uint64_t encoder = network->encoder_blocks;
    if (network_layer_kind(network, layer) != LAYER_BLOCK) return layer;
    if (encoder == 0) return same_begin(network, layer);
    uint64_t first = layer <= encoder ? 1 : encoder + 1;
    return layer == first ? first : first + 1;
}

static uint64_t alike_end(const struct network *network, uint64_t layer)
{
    uint64_t encoder = network->encoder_blocks;
    if (network_layer_kind(network, layer) != LAYER_BLOCK) return layer + 1;
    if (encoder == 0) return same_end(network, layer);
    if (layer == 1 || layer == encoder + 1) return layer + 1;
    return layer <= encoder ? encoder + 1 : network->layer_count - 1;
}

uint64_t network_alike_begin(const struct network *network, uint64_t layer)
{
    const uint64_t begin = alike_begin(network, layer);
    return network->trained ? max_u64(begin, network->trained->layers[layer].alike_begin) : begin;
}

uint64_t network_alike_end(const struct network *network, uint64_t layer)
{
    const uint64_t end = alike_end(network, layer);
    return network->trained ? min_u64(end, network->trained->layers[layer].alike_end) : end;
}

uint64_t network_block_window(const struct network *network, uint64_t layer)
{
    assert(network_layer_kind(network, layer) == LAYER_BLOCK);
    const uint64_t block = layer - 1, every = network->window_every;
    return block < network->window_from || (every > 0 && (block + 1) % every == 0) ? 0 : network->window;
}

struct network_rope network_block_rope(const struct network *network, uint64_t layer)
{
    if (network->window_theta > 0 && network_block_window(network, layer) > 0)
        return (struct network_rope){.kind = ROPE_DEFAULT, .theta = network->window_theta};
    return network->rope;
}

uint64_t network_kv_heads(const struct network *network)
{
    return network->kv_heads > 0 ? network->kv_heads : network->heads;
}

uint64_t network_table_rows(const struct network *network)
{
    const struct network_traits *traits = network_traits(network);
    if (network->family == NETWORK_BERT) return network->vocabulary + network->positions + network->token_types;
    if (!traits->decoder) return 0;
    bool table = traits->more_positions != NETWORK_NO_POSITION_TABLE;
    return network->vocabulary + (table ? network->positions + traits->more_positions : 0);
}

uint64_t network_profile_share(const struct network *network, uint64_t number, uint64_t microbatch)
{
    if (network->profile_samples == 0 || network->profile_samples == microbatch) return number;
    return (uint64_t)llround((double)number * (double)microbatch / (double)network->profile_samples);
}

double rope_frequency(const struct network_rope *rope, uint64_t pair, uint64_t head_width)
{
    const double circle_rad = 6.283185307179586;
    double frequency = pow(rope->theta, -2.0 * (double)pair / (double)head_width);
    if (rope->kind == ROPE_DEFAULT) return frequency;
    if (rope->kind == ROPE_LINEAR) return frequency / rope->factor;
    /* rotations within the original context */
    double rotations = (double)rope->original_positions * frequency / circle_rad;
    if (rotations > rope->high_factor) return frequency;
    if (rotations < rope->low_factor) return frequency / rope->factor;
    double kept = (rotations - rope->low_factor) / (rope->high_factor - rope->low_factor);
    return (1 - kept) * frequency / rope->factor + kept * frequency;
}

/* --- lists of tensors ----------------------------------------------------------------------- */

struct network_list {
    struct tensor_spec *items;
    uint32_t count;
    bool named; /* else without names */
    char prefix[64];
};

enum shape { MATRIX, OTHER };

static void prefix(struct network_list *list, const char *format, ...) PRINTF_LIKE(2, 3);
static void prefix(struct network_list *list, const char *format, ...)
{
    if (!list->named) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(list->prefix, sizeof list->prefix, format, arguments);
    va_end(arguments);
}

static struct tensor_spec *tensor(struct network_list *list, const char *name, enum tensor_init init,
                                  enum shape shape)
{
    assert(list->count < LAYER_TENSORS_MAX);
    struct tensor_spec *spec = &list->items[list->count++];
    spec->name[0] = '\0'; /* setting all to zero took longer than all the rest */
    spec->rank = 0;
    spec->elements = 1;
    spec->init = init;
    spec->joined = 1;
    spec->matrix = shape == MATRIX;
    spec->less_one = spec->frozen = spec->adapter = spec->running = false;
    spec->fan = 0;
    spec->by_heads = 0;
    spec->of_expert[0] = spec->of_expert[1] = NULL;
    if (list->named) snprintf(spec->name, sizeof spec->name, "%s%s", list->prefix, name);
    return spec;
}

static void dimension(struct tensor_spec *spec, uint64_t size)
{
    assert(spec->rank < ARRAY_COUNT(spec->shape));
    spec->shape[spec->rank++] = size;
    spec->elements *= size;
}

static void vector(struct network_list *list, const char *name, enum tensor_init init, uint64_t size)
{
    dimension(tensor(list, name, init, OTHER), size);
}

static void matrix(struct network_list *list, const char *name, enum tensor_init init, uint64_t rows,
                   uint64_t columns)
{
    struct tensor_spec *spec = tensor(list, name, init, MATRIX);
    dimension(spec, rows);
    dimension(spec, columns);
}

/* (out, in) as torch.nn.Linear, or (in, out) as GPT-2's Conv1D. */
enum storage { OUT_IN, IN_OUT };
struct network_linear {
    const char *weight, *bias; /* bias NULL: none */
    uint64_t out, in;
    enum storage storage;
    enum tensor_init init;
};

static void linear(struct network_list *list, struct network_linear l)
{
    bool out_in = l.storage == OUT_IN;
    matrix(list, l.weight, l.init, out_in ? l.out : l.in, out_in ? l.in : l.out);
    if (l.bias) vector(list, l.bias, INIT_ZERO, l.out);
}

/* Notes that the last weight and its bias are `count` joined tensors. */
static void join_last(struct network_list *list, uint32_t count)
{
    for (uint32_t i = 1; i <= 2; i++) list->items[list->count - i].joined = count;
}

static void norm(struct network_list *list, const char *weight, const char *bias, uint64_t width)
{
    vector(list, weight, INIT_ONE, width);
    vector(list, bias, INIT_ZERO, width);
}

/* --- gpt2 ----------------------------------------------------------------------------------- */

static void gpt2_embedding(const struct network *n, struct network_list *list)
{
    matrix(list, "wte.weight", INIT_NORMAL, n->vocabulary, n->width);
    matrix(list, "wpe.weight", INIT_NORMAL, n->positions, n->width);
}

static void gpt2_block(const struct network *n, uint64_t block, struct network_list *list)
{
    uint64_t width = n->width, inner = n->heads * n->head_width;
    prefix(list, "h.%" PRIu64 ".", block);
    norm(list, "ln_1.weight", "ln_1.bias", width);
    linear(list, (struct network_linear){"attn.c_attn.weight", "attn.c_attn.bias", 3 * inner, width,
                                         IN_OUT, INIT_NORMAL});
    join_last(list, 3);
    linear(list, (struct network_linear){"attn.c_proj.weight", "attn.c_proj.bias", width, inner, IN_OUT,
                                         INIT_NORMAL_RESIDUAL});
    norm(list, "ln_2.weight", "ln_2.bias", width);
    linear(list, (struct network_linear){"mlp.c_fc.weight", "mlp.c_fc.bias", n->ff_width, width, IN_OUT,
                                         INIT_NORMAL});
    linear(list, (struct network_linear){"mlp.c_proj.weight", "mlp.c_proj.bias", width, n->ff_width,
                                         IN_OUT, INIT_NORMAL_RESIDUAL});
}

static void gpt2_head(const struct network *n, struct network_list *list)
{
    norm(list, "ln_f.weight", "ln_f.bias", n->width);
    if (!n->tied_head) matrix(list, "lm_head.weight", INIT_NORMAL, n->vocabulary, n->width);
}

/* --- llama ---------------------------------------------------------------------------------- */

static void llama_embedding(const struct network *n, struct network_list *list)
{
    matrix(list, "model.embed_tokens.weight", INIT_NORMAL, n->vocabulary, n->width);
}

/* Lists one tensor of all experts' weights, as transformers 5 has in memory; files have them apart. */
static void experts(const struct network *n, struct network_list *list)
{
    const bool mixtral = n->family == NETWORK_MIXTRAL;
    matrix(list, mixtral ? "block_sparse_moe.gate.weight" : "mlp.gate.weight", INIT_NORMAL, n->experts, n->width);
    struct tensor_spec *in = tensor(list,
                                    mixtral ? "block_sparse_moe.experts.gate_up_proj" : "mlp.experts.gate_up_proj",
                                    INIT_NORMAL, MATRIX);
    in->of_expert[0] = mixtral ? "w1" : "gate_proj";
    in->of_expert[1] = mixtral ? "w3" : "up_proj";
    in->joined = 2;
    dimension(in, n->experts);
    dimension(in, 2 * n->ff_width);
    dimension(in, n->width);
    struct tensor_spec *out = tensor(list, mixtral ? "block_sparse_moe.experts.down_proj" : "mlp.experts.down_proj",
                                     INIT_NORMAL, MATRIX);
    out->of_expert[0] = mixtral ? "w2" : "down_proj";
    dimension(out, n->experts);
    dimension(out, n->width);
    dimension(out, n->ff_width);
    if (n->shared_width == 0) return;
    matrix(list, "mlp.shared_expert.gate_proj.weight", INIT_NORMAL, n->shared_width, n->width);
    matrix(list, "mlp.shared_expert.up_proj.weight", INIT_NORMAL, n->shared_width, n->width);
    matrix(list, "mlp.shared_expert.down_proj.weight", INIT_NORMAL, n->width, n->shared_width);
    matrix(list, "mlp.shared_expert_gate.weight", INIT_NORMAL, 1, n->width);
}

/* Lists a norm without a mean. */
static void rms_norm(const struct network *n, struct network_list *list, const char *name, uint64_t width)
{
    vector(list, name, INIT_ONE, width);
    list->items[list->count - 1].less_one = network_traits(n)->less_one;
}

static void llama_block(const struct network *n, uint64_t block, struct network_list *list)
{
    uint64_t width = n->width, inner = n->heads * n->head_width;
    uint64_t shared = network_kv_heads(n) * n->head_width;
    prefix(list, "model.layers.%" PRIu64 ".", block);
    bool biases = n->biases;
    linear(list, (struct network_linear){"self_attn.q_proj.weight", biases ? "self_attn.q_proj.bias" : NULL, inner,
                                         width, OUT_IN, INIT_NORMAL});
    linear(list, (struct network_linear){"self_attn.k_proj.weight", biases ? "self_attn.k_proj.bias" : NULL, shared,
                                         width, OUT_IN, INIT_NORMAL});
    linear(list, (struct network_linear){"self_attn.v_proj.weight", biases ? "self_attn.v_proj.bias" : NULL, shared,
                                         width, OUT_IN, INIT_NORMAL});
    matrix(list, "self_attn.o_proj.weight", INIT_NORMAL, width, inner);
    if (network_traits(n)->qk_norm) {
        rms_norm(n, list, "self_attn.q_norm.weight", n->head_width);
        rms_norm(n, list, "self_attn.k_norm.weight", n->head_width);
    }
    if (n->experts > 0) {
        experts(n, list);
    } else {
        matrix(list, "mlp.gate_proj.weight", INIT_NORMAL, n->ff_width, width);
        matrix(list, "mlp.up_proj.weight", INIT_NORMAL, n->ff_width, width);
        matrix(list, "mlp.down_proj.weight", INIT_NORMAL, width, n->ff_width);
    }
    rms_norm(n, list, "input_layernorm.weight", width);
    rms_norm(n, list, "post_attention_layernorm.weight", width);
    if (!network_traits(n)->outer_norms) return;
    rms_norm(n, list, "pre_feedforward_layernorm.weight", width);
    rms_norm(n, list, "post_feedforward_layernorm.weight", width);
}

static void llama_head(const struct network *n, struct network_list *list)
{
    rms_norm(n, list, "model.norm.weight", n->width);
    if (!n->tied_head) matrix(list, "lm_head.weight", INIT_NORMAL, n->vocabulary, n->width);
}

/* --- opt, gpt_neox, gptj, phi --------------------------------------------------------------- */

/* Names without ".weight" and ".bias". `norm2` NULL: one norm per block. */
struct decoder_names {
    const char *words, *positions;
    const char *blocks; /* before a block's number */
    const char *norm1, *norm2;
    const char *qkv[3]; /* only the first: one tensor */
    const char *proj, *fc, *fc2;
    const char *norm, *head;
    const char *project_in, *project_out; /* from and to words of another width; may be NULL */
};

static const struct decoder_names decoder_names[NETWORK_FAMILY_COUNT] = {
    [NETWORK_OPT] = {"model.decoder.embed_tokens", "model.decoder.embed_positions", "model.decoder.layers.",
                     "self_attn_layer_norm", "final_layer_norm",
                     {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}, "self_attn.out_proj", "fc1", "fc2",
                     "model.decoder.final_layer_norm", "lm_head", "model.decoder.project_in",
                     "model.decoder.project_out"},
    [NETWORK_GPT_NEOX] = {"gpt_neox.embed_in", NULL, "gpt_neox.layers.", "input_layernorm",
                          "post_attention_layernorm", {"attention.query_key_value", NULL, NULL}, "attention.dense",
                          "mlp.dense_h_to_4h", "mlp.dense_4h_to_h", "gpt_neox.final_layer_norm", "embed_out", NULL,
                          NULL},
    [NETWORK_GPTJ] = {"transformer.wte", NULL, "transformer.h.", "ln_1", NULL,
                      {"attn.q_proj", "attn.k_proj", "attn.v_proj"}, "attn.out_proj", "mlp.fc_in", "mlp.fc_out",
                      "transformer.ln_f", "lm_head", NULL, NULL},
    [NETWORK_PHI] = {"model.embed_tokens", NULL, "model.layers.", "input_layernorm", NULL,
                     {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}, "self_attn.dense", "mlp.fc1",
                     "mlp.fc2", "model.final_layernorm", "lm_head", NULL, NULL},
};

/* Names a tensor `name` followed by `ending`. */
static struct tensor_spec *named_tensor(struct network_list *list, const char *name, const char *ending,
                                        enum tensor_init init, enum shape shape)
{
    char text[96] = "";
    if (list->named) snprintf(text, sizeof text, "%s%s", name, ending);
    return tensor(list, text, init, shape);
}

static void named_linear(struct network_list *list, const char *name, uint64_t out, uint64_t in, bool bias)
{
    struct tensor_spec *weight = named_tensor(list, name, ".weight", INIT_NORMAL, MATRIX);
    dimension(weight, out);
    dimension(weight, in);
    if (bias) dimension(named_tensor(list, name, ".bias", INIT_ZERO, OTHER), out);
}

static void named_norm(struct network_list *list, const char *name, uint64_t width)
{
    dimension(named_tensor(list, name, ".weight", INIT_ONE, OTHER), width);
    dimension(named_tensor(list, name, ".bias", INIT_ZERO, OTHER), width);
}

static void decoder_embedding(const struct network *n, struct network_list *list)
{
    const struct decoder_names *names = &decoder_names[n->family];
    named_linear(list, names->words, n->vocabulary, network_word_width(n), false);
    if (names->positions) named_linear(list, names->positions, network_table_rows(n) - n->vocabulary, n->width, false);
    if (n->word_width > 0) named_linear(list, names->project_in, n->width, n->word_width, false);
}

static void decoder_block(const struct network *n, uint64_t block, struct network_list *list)
{
    const struct decoder_names *names = &decoder_names[n->family];
    const struct network_traits *traits = network_traits(n);
    uint64_t width = n->width, inner = n->heads * n->head_width, shared = network_kv_heads(n) * n->head_width;
    prefix(list, "%s%" PRIu64 ".", names->blocks, block);
    named_norm(list, names->norm1, width);
    if (!names->qkv[1]) {
        named_linear(list, names->qkv[0], 3 * inner, width, n->biases);
        for (uint32_t i = 1; i <= 1u + n->biases; i++) {
            list->items[list->count - i].by_heads = (uint32_t)n->heads;
            list->items[list->count - i].joined = 3;
        }
    }
    for (size_t i = 0; i < ARRAY_COUNT(names->qkv) && names->qkv[1]; i++)
        named_linear(list, names->qkv[i], i == 0 ? inner : shared, width, n->biases);
    named_linear(list, names->proj, width, inner, traits->out_bias);
    if (names->norm2) named_norm(list, names->norm2, width);
    named_linear(list, names->fc, n->ff_width, width, traits->ff_bias);
    named_linear(list, names->fc2, width, n->ff_width, traits->ff_bias);
}

static void decoder_head(const struct network *n, struct network_list *list)
{
    const struct decoder_names *names = &decoder_names[n->family];
    if (network_norms_first(n)) named_norm(list, names->norm, n->width);
    if (n->word_width > 0) named_linear(list, names->project_out, n->word_width, n->width, false);
    if (!n->tied_head)
        named_linear(list, names->head, n->vocabulary, network_word_width(n), network_traits(n)->head_bias);
}

/* --- bert ----------------------------------------------------------------------------------- */

static void bert_embedding(const struct network *n, struct network_list *list)
{
    prefix(list, "bert.embeddings.");
    matrix(list, "word_embeddings.weight", INIT_NORMAL, n->vocabulary, n->width);
    matrix(list, "position_embeddings.weight", INIT_NORMAL, n->positions, n->width);
    if (n->token_types > 0)
        matrix(list, "token_type_embeddings.weight", INIT_NORMAL, n->token_types, n->width);
    norm(list, "LayerNorm.weight", "LayerNorm.bias", n->width);
}

static void bert_block(const struct network *n, uint64_t block, struct network_list *list)
{
    uint64_t width = n->width, inner = n->heads * n->head_width;
    prefix(list, "bert.encoder.layer.%" PRIu64 ".", block);
    linear(list, (struct network_linear){"attention.self.query.weight", "attention.self.query.bias", inner,
                                         width, OUT_IN, INIT_NORMAL});
    linear(list, (struct network_linear){"attention.self.key.weight", "attention.self.key.bias", inner,
                                         width, OUT_IN, INIT_NORMAL});
    linear(list, (struct network_linear){"attention.self.value.weight", "attention.self.value.bias", inner,
                                         width, OUT_IN, INIT_NORMAL});
    linear(list, (struct network_linear){"attention.output.dense.weight", "attention.output.dense.bias",
                                         width, inner, OUT_IN, INIT_NORMAL});
    norm(list, "attention.output.LayerNorm.weight", "attention.output.LayerNorm.bias", width);
    linear(list, (struct network_linear){"intermediate.dense.weight", "intermediate.dense.bias",
                                         n->ff_width, width, OUT_IN, INIT_NORMAL});
    linear(list, (struct network_linear){"output.dense.weight", "output.dense.bias", width, n->ff_width,
                                         OUT_IN, INIT_NORMAL});
    norm(list, "output.LayerNorm.weight", "output.LayerNorm.bias", width);
}

static void bert_head(const struct network *n, struct network_list *list)
{
    if (n->pooler) {
        prefix(list, "bert.pooler.");
        linear(list, (struct network_linear){"dense.weight", "dense.bias", n->width, n->width, OUT_IN,
                                             INIT_NORMAL});
    }
    if (network_classifies(n)) {
        prefix(list, "%s", "");
        linear(list, (struct network_linear){"classifier.weight", "classifier.bias", n->classes, n->width, OUT_IN,
                                             INIT_NORMAL});
        return;
    }
    prefix(list, "cls.predictions.");
    vector(list, "bias", INIT_ZERO, n->vocabulary);
    linear(list, (struct network_linear){"transform.dense.weight", "transform.dense.bias", n->width,
                                         n->width, OUT_IN, INIT_NORMAL});
    norm(list, "transform.LayerNorm.weight", "transform.LayerNorm.bias", n->width);
    if (!n->tied_head) matrix(list, "decoder.weight", INIT_NORMAL, n->vocabulary, n->width);
    if (n->pooler) {
        prefix(list, "cls.");
        linear(list, (struct network_linear){"seq_relationship.weight", "seq_relationship.bias", 2,
                                             n->width, OUT_IN, INIT_NORMAL});
    }
}

/* --- vit ------------------------------------------------------------------------------------ */

static void vit_embedding(const struct network *n, struct network_list *list)
{
    uint64_t tokens = network_tokens(n, 0);
    prefix(list, "vit.embeddings.");
    struct tensor_spec *token = tensor(list, "cls_token", INIT_NORMAL, OTHER);
    dimension(token, 1);
    dimension(token, 1);
    dimension(token, n->width);
    struct tensor_spec *positions = tensor(list, "position_embeddings", INIT_NORMAL, OTHER);
    dimension(positions, 1);
    dimension(positions, tokens);
    dimension(positions, n->width);
    struct tensor_spec *kernel =
        tensor(list, "patch_embeddings.projection.weight", INIT_NORMAL, MATRIX);
    dimension(kernel, n->width);
    dimension(kernel, n->channels);
    dimension(kernel, n->patch);
    dimension(kernel, n->patch);
    vector(list, "patch_embeddings.projection.bias", INIT_ZERO, n->width);
}

static void vit_block(const struct network *n, uint64_t block, struct network_list *list)
{
    uint64_t width = n->width, inner = n->heads * n->head_width;
    static const char *const qkv[][2] = {
        {"attention.attention.query.weight", "attention.attention.query.bias"},
        {"attention.attention.key.weight", "attention.attention.key.bias"},
        {"attention.attention.value.weight", "attention.attention.value.bias"},
    };
    prefix(list, "vit.encoder.layer.%" PRIu64 ".", block);
    norm(list, "layernorm_before.weight", "layernorm_before.bias", width);
    for (size_t i = 0; i < ARRAY_COUNT(qkv); i++)
        linear(list, (struct network_linear){qkv[i][0], n->biases ? qkv[i][1] : NULL, inner, width, OUT_IN,
                                             INIT_NORMAL});
    linear(list, (struct network_linear){"attention.output.dense.weight", "attention.output.dense.bias",
                                         width, inner, OUT_IN, INIT_NORMAL});
    norm(list, "layernorm_after.weight", "layernorm_after.bias", width);
    linear(list, (struct network_linear){"intermediate.dense.weight", "intermediate.dense.bias",
                                         n->ff_width, width, OUT_IN, INIT_NORMAL});
    linear(list, (struct network_linear){"output.dense.weight", "output.dense.bias", width, n->ff_width,
                                         OUT_IN, INIT_NORMAL});
}

static void vit_head(const struct network *n, struct network_list *list)
{
    norm(list, "vit.layernorm.weight", "vit.layernorm.bias", n->width);
    linear(list, (struct network_linear){"classifier.weight", "classifier.bias", n->classes, n->width,
                                         OUT_IN, INIT_NORMAL});
}

/* --- t5 --------------------------------------------------------------------------------------- */

static void t5_embedding(const struct network *n, struct network_list *list)
{
    matrix(list, "shared.weight", INIT_NORMAL, n->vocabulary, n->width);
}

/* Writes the prefix of a block's layer `at`. */
static void t5_prefix(struct network_list *list, const struct t5_place *place, uint32_t at)
{
    prefix(list, "%s.block.%" PRIu64 ".layer.%" PRIu32 ".", place->stack, place->block, at);
}

static void t5_attention(const struct network *n, const char *const names[4], struct network_list *list)
{
    uint64_t inner = n->heads * n->head_width;
    for (uint32_t i = 0; i < 3; i++) matrix(list, names[i], INIT_NORMAL, inner, n->width);
    matrix(list, names[3], INIT_NORMAL, n->width, inner);
}

static void t5_block(const struct network *n, uint64_t block, struct network_list *list)
{
    static const char *const own[] = {"SelfAttention.q.weight", "SelfAttention.k.weight", "SelfAttention.v.weight",
                                      "SelfAttention.o.weight"};
    static const char *const cross[] = {"EncDecAttention.q.weight", "EncDecAttention.k.weight",
                                        "EncDecAttention.v.weight", "EncDecAttention.o.weight"};
    const struct t5_place place = network_t5_place(n, block);
    uint32_t at = 0;
    prefix(list, "%s", "");
    if (place.joins) vector(list, "encoder.final_layer_norm.weight", INIT_ONE, n->width);
    t5_prefix(list, &place, at++);
    t5_attention(n, own, list);
    if (place.tables)
        matrix(list, "SelfAttention.relative_attention_bias.weight", INIT_NORMAL, n->relative_buckets, n->heads);
    vector(list, "layer_norm.weight", INIT_ONE, n->width);
    if (place.crosses) {
        t5_prefix(list, &place, at++);
        t5_attention(n, cross, list);
        vector(list, "layer_norm.weight", INIT_ONE, n->width);
    }
    t5_prefix(list, &place, at);
    matrix(list, n->gated ? "DenseReluDense.wi_0.weight" : "DenseReluDense.wi.weight", INIT_NORMAL, n->ff_width,
           n->width);
    if (n->gated) matrix(list, "DenseReluDense.wi_1.weight", INIT_NORMAL, n->ff_width, n->width);
    matrix(list, "DenseReluDense.wo.weight", INIT_NORMAL, n->width, n->ff_width);
    vector(list, "layer_norm.weight", INIT_ONE, n->width);
}

static void t5_head(const struct network *n, struct network_list *list)
{
    vector(list, "decoder.final_layer_norm.weight", INIT_ONE, n->width);
    if (!n->tied_head) matrix(list, "lm_head.weight", INIT_NORMAL, n->vocabulary, n->width);
}

/* --- any family ----------------------------------------------------------------------------- */

struct family {
    void (*embedding)(const struct network *network, struct network_list *list);
    void (*block)(const struct network *network, uint64_t block, struct network_list *list);
    void (*head)(const struct network *network, struct network_list *list);
};

static const struct family families[NETWORK_FAMILY_COUNT] = {
    [NETWORK_GPT2] = {gpt2_embedding, gpt2_block, gpt2_head},
    [NETWORK_LLAMA] = {llama_embedding, llama_block, llama_head},
    [NETWORK_BERT] = {bert_embedding, bert_block, bert_head},
    [NETWORK_VIT] = {vit_embedding, vit_block, vit_head},
    [NETWORK_OPT] = {decoder_embedding, decoder_block, decoder_head},
    [NETWORK_GPT_NEOX] = {decoder_embedding, decoder_block, decoder_head},
    [NETWORK_GPTJ] = {decoder_embedding, decoder_block, decoder_head},
    [NETWORK_PHI] = {decoder_embedding, decoder_block, decoder_head},
    [NETWORK_T5] = {t5_embedding, t5_block, t5_head},
    [NETWORK_MT5] = {t5_embedding, t5_block, t5_head},
    [NETWORK_UMT5] = {t5_embedding, t5_block, t5_head},
    [NETWORK_MISTRAL] = {llama_embedding, llama_block, llama_head},
    [NETWORK_GEMMA] = {llama_embedding, llama_block, llama_head},
    [NETWORK_QWEN2] = {llama_embedding, llama_block, llama_head},
    [NETWORK_QWEN3] = {llama_embedding, llama_block, llama_head},
    [NETWORK_MIXTRAL] = {llama_embedding, llama_block, llama_head},
    [NETWORK_QWEN3_MOE] = {llama_embedding, llama_block, llama_head},
    [NETWORK_QWEN2_MOE] = {llama_embedding, llama_block, llama_head},
    [NETWORK_GEMMA2] = {llama_embedding, llama_block, llama_head},
    [NETWORK_GEMMA3_TEXT] = {llama_embedding, llama_block, llama_head},
};

static void list_layer(const struct network *network, uint64_t layer, struct network_list *list)
{
    const struct family *family = &families[network->family];
    struct network room;
    switch (network_layer_kind(network, layer)) {
    case LAYER_EMBEDDING: family->embedding(network, list); break;
    case LAYER_BLOCK: family->block(network_of_layer(network, layer, &room), layer - 1, list); break;
    case LAYER_HEAD: family->head(network, list); break;
    case LAYER_OPAQUE: break;
    }
}

/* Lists a profile's layer: only the size of its parameters is known. */
static void list_opaque(const struct network *network, uint64_t layer, struct network_list *list)
{
    uint64_t bytes = network->profile[layer].parameter_bytes;
    if (bytes == 0) return;
    prefix(list, "layer.%" PRIu64 ".", layer);
    struct tensor_spec *spec = tensor(list, "parameters", INIT_NORMAL, OTHER);
    dimension(spec, bytes / sizeof(float));
}

static void list_operations(const struct network *network, uint64_t layer, struct network_list *list)
{
    const struct network_graph *graph = network->graph;
    for (uint32_t op = graph->begins[layer]; op < graph->begins[layer + 1]; op++) {
        assert(list->count + GRAPH_TENSORS_MAX <= LAYER_TENSORS_MAX);
        list->count += graph_op_tensors(graph, op, list->named, list->items + list->count);
    }
}

/* Lists the adapter of a layer's weight, A and B. */
static void list_adapter(const struct network *network, uint32_t index, struct network_list *list)
{
    const struct tensor_spec weight = list->items[index];
    const bool in_out = network->family == NETWORK_GPT2;
    const uint64_t in = weight.shape[in_out ? 0 : 1], out = weight.shape[in_out ? 1 : 0];
    char module[NETWORK_MODULE_BYTES];
    if (list->named) network_module(network, weight.name, module);
    for (uint32_t b = 0; b < 2; b++) {
        prefix(list, "%s", "");
        matrix(list, "", b ? INIT_ZERO : INIT_UNIFORM, b ? out : network->trained->rank,
               b ? network->trained->rank : in);
        struct tensor_spec *spec = &list->items[list->count - 1];
        spec->adapter = true;
        if (b) spec->by_heads = weight.by_heads;
        if (b) spec->joined = weight.joined;
        if (list->named)
            snprintf(spec->name, sizeof spec->name, "base_model.model.%.60s.lora_%c.weight", module, b ? 'B' : 'A');
    }
}

static void list_trained(const struct network *network, uint64_t layer, struct network_list *list)
{
    const struct network_layer_trained *of = &network->trained->layers[layer];
    const uint32_t own = list->count;
    for (uint32_t i = 0; i < own; i++) list->items[i].frozen = of->frozen >> i & 1;
    for (uint32_t i = 0; i < own; i++)
        if (of->adapted >> i & 1) list_adapter(network, i, list);
}

static uint32_t list_tensors(const struct network *network, uint64_t layer, struct network_list *list)
{
    if (network->family == NETWORK_PROFILE)
        list_opaque(network, layer, list);
    else if (network->graph)
        list_operations(network, layer, list);
    else
        list_layer(network, layer, list);
    if (network->trained) list_trained(network, layer, list);
    return list->count;
}

uint32_t network_layer_tensors(const struct network *network, uint64_t layer,
                               struct tensor_spec out[LAYER_TENSORS_MAX])
{
    struct network_list list = {.items = out, .named = true};
    return list_tensors(network, layer, &list);
}

uint32_t network_layer_shapes(const struct network *network, uint64_t layer,
                              struct tensor_spec out[LAYER_TENSORS_MAX])
{
    struct network_list list = {.items = out};
    return list_tensors(network, layer, &list);
}

uint64_t network_layer_parameters(const struct network *network, uint64_t layer)
{
    assert(layer < network->layer_count);
    if (network->family == NETWORK_PROFILE)
        return network->profile[layer].parameter_bytes / sizeof(float);
    struct tensor_spec items[LAYER_TENSORS_MAX];
    struct network_list list = {.items = items};
    list_tensors(network, layer, &list);
    uint64_t elements = 0;
    for (uint32_t i = 0; i < list.count; i++)
        elements += items[i].adapter || items[i].running ? 0 : items[i].elements;
    return elements;
}

uint64_t network_sum(const struct network *network, uint64_t (*of_layer)(const struct network *network, uint64_t layer))
{
    uint64_t sum = 0;
    for (uint64_t layer = 0, next; layer < network->layer_count; layer = next) {
        next = network_alike_end(network, layer);
        sum += (next - layer) * of_layer(network, layer);
    }
    return sum;
}

uint64_t network_parameters(const struct network *network)
{
    return network_sum(network, network_layer_parameters);
}

uint64_t network_active_parameters(const struct network *network)
{
    uint64_t expert = 3 * network->width * network->ff_width, idle = network->experts - network->experts_chosen;
    uint64_t with = 0;
    for (uint64_t layer = 1; layer <= network->blocks && network->experts > 0; layer++)
        with += !is_dense(network, layer);
    return network_parameters(network) - with * idle * expert;
}
