/*
 * Networks by name.
 *
 * A preset is a shape and where it was published. Only shapes that a source states are here: the
 * 100 M to 900 M networks of Hydra's sensitivity study (figures 9 and 10) are not, since their
 * widths and depths were never given.
 *
 * Hydra's ViTs have heads of 64 whatever the width (16 of them on a width of 1280), no biases on q,
 * k and v, and 32-pixel images in patches of 8: 17 tokens. Its BERT has a feed-forward part no wider
 * than the network, 5000 positions, and an output table of its own. Its "800 M" ViT of 38 blocks has
 * 698 million parameters when counted; the names are the authors'.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/size.h"
#include "base/suggest.h"
#include "models/network.h"

struct preset {
    const char *name, *source;
    struct network shape; /* without name, layer count and what all of a family have in common */
};

#define GPT2_SOURCE "openai-community config.json; Radford et al., 2019"
#define LLAMA2_SOURCE "meta-llama config.json; Touvron et al., arXiv 2307.09288"
#define LLAMA3_SOURCE "meta-llama config.json; arXiv 2407.21783"
#define BERT_SOURCE "google-bert config.json; Devlin et al., arXiv 1810.04805"
#define VIT_SOURCE "google config.json; Dosovitskiy et al., arXiv 2010.11929, table 1"
#define HYDRA_SOURCE "Hydra technical report of 2022, table 2; shapes from its released code"

#define GPT2(c, h, l, p) \
    {.family = NETWORK_GPT2, .width = c, .heads = h, .blocks = l, .positions = p, \
     .vocabulary = 50257, .tied_head = true}
#define LLAMA(c, h, kv, l, f, v, p) \
    .family = NETWORK_LLAMA, .width = c, .heads = h, .kv_heads = kv, .blocks = l, .ff_width = f, \
    .vocabulary = v, .positions = p
#define LLAMA3_ROPE(f) \
    .rope = {.kind = ROPE_LLAMA3, .theta = 500000, .factor = f, .low_factor = 1, \
             .high_factor = 4, .original_positions = 8192}
#define BERT(c, h, l, f) \
    {.family = NETWORK_BERT, .width = c, .heads = h, .blocks = l, .ff_width = f, \
     .positions = 512, .vocabulary = 30522, .token_types = 2, .tied_head = true}
#define VIT(c, h, l, f, p) \
    {.family = NETWORK_VIT, .width = c, .heads = h, .blocks = l, .ff_width = f, .image = 224, \
     .patch = p, .classes = 1000, .biases = true}
#define HYDRA_VIT(c, l, f) \
    {.family = NETWORK_VIT, .width = c, .heads = 16, .head_width = 64, .blocks = l, \
     .ff_width = f, .image = 32, .patch = 8, .classes = 10}

static const struct preset presets[] = {
    {"gpt2", GPT2_SOURCE, GPT2(768, 12, 12, 1024)},
    {"gpt2-medium", GPT2_SOURCE, GPT2(1024, 16, 24, 1024)},
    {"gpt2-large", GPT2_SOURCE, GPT2(1280, 20, 36, 1024)},
    {"gpt2-xl", GPT2_SOURCE, GPT2(1600, 25, 48, 1024)},
    {"distilgpt2", "distilbert config.json; six of gpt2's blocks", GPT2(768, 12, 6, 1024)},
    {"gpt2-tiny-bytes", "Spillway's own, for demonstrations: text as bytes",
     {.family = NETWORK_GPT2, .width = 128, .heads = 4, .blocks = 4, .positions = 256,
      .vocabulary = 256, .tied_head = true}},
    {"tinyllama-1.1b", "TinyLlama config.json; Zhang et al., arXiv 2401.02385",
     {LLAMA(2048, 32, 4, 22, 5632, 32000, 2048)}},
    {"llama-2-7b", LLAMA2_SOURCE, {LLAMA(4096, 32, 32, 32, 11008, 32000, 4096)}},
    {"llama-3.2-1b", LLAMA3_SOURCE,
     {LLAMA(2048, 32, 8, 16, 8192, 128256, 131072), LLAMA3_ROPE(32), .tied_head = true}},
    {"llama-3.1-8b", LLAMA3_SOURCE,
     {LLAMA(4096, 32, 8, 32, 14336, 128256, 131072), LLAMA3_ROPE(8)}},
    {"llama-tiny-bytes", "Spillway's own, for demonstrations: text as bytes",
     {LLAMA(128, 4, 2, 4, 384, 256, 256), .tied_head = true}},
    {"bert-base", BERT_SOURCE, BERT(768, 12, 12, 3072)},
    {"bert-large", BERT_SOURCE, BERT(1024, 16, 24, 4096)},
    {"vit-base", VIT_SOURCE, VIT(768, 12, 12, 3072, 16)},
    {"vit-large", VIT_SOURCE, VIT(1024, 16, 24, 4096, 16)},
    {"vit-huge", VIT_SOURCE, VIT(1280, 16, 32, 5120, 14)},
    {"hydra-bert-1b", HYDRA_SOURCE,
     {.family = NETWORK_BERT, .width = 1024, .heads = 16, .blocks = 136, .ff_width = 1024,
      .positions = 5000, .vocabulary = 28783, .token_types = 2}},
    {"hydra-vit-300m", HYDRA_SOURCE, HYDRA_VIT(1024, 24, 4096)},
    {"hydra-vit-600m", HYDRA_SOURCE, HYDRA_VIT(1280, 32, 5120)},
    {"hydra-vit-800m", HYDRA_SOURCE, HYDRA_VIT(1280, 38, 5120)},
    {"hydra-vit-1b", HYDRA_SOURCE, HYDRA_VIT(1280, 54, 5120)},
    {"hydra-vit-1.5b", HYDRA_SOURCE, HYDRA_VIT(1280, 80, 5120)},
    {"hydra-vit-2b", HYDRA_SOURCE, HYDRA_VIT(1280, 110, 5120)},
    {"hydra-gpt2-xl", "Hydra's scripts of 2022: GPT-2 XL fine-tuned at context 512",
     GPT2(1600, 25, 48, 512)},
};

const char *network_preset_name(uint32_t index)
{
    return index < ARRAY_COUNT(presets) ? presets[index].name : NULL;
}

const char *network_preset_source(uint32_t index)
{
    assert(index < ARRAY_COUNT(presets));
    return presets[index].source;
}

/* What a preset's table row leaves out. */
static struct network complete(const struct preset *preset)
{
    struct network n = preset->shape;
    snprintf(n.name, sizeof n.name, "%s", preset->name);
    n.layer_count = n.blocks + 2;
    if (n.head_width == 0) n.head_width = n.width / n.heads;
    if (n.ff_width == 0) n.ff_width = 4 * n.width;
    n.initializer_range = 0.02;
    bool decoder = n.family == NETWORK_GPT2 || n.family == NETWORK_LLAMA;
    n.norm_epsilon = decoder ? 1e-5 : 1e-12;
    n.causal = decoder;
    n.gelu_tanh = n.family == NETWORK_GPT2;
    if (n.family == NETWORK_VIT) n.channels = 3;
    if (n.family == NETWORK_BERT) n.mask_token = NETWORK_BERT_MASK;
    if (n.family == NETWORK_GPT2 || n.family == NETWORK_BERT) n.biases = true;
    if (n.family == NETWORK_LLAMA && n.rope.theta == 0) n.rope.theta = 10000;
    return n;
}

bool network_is_path(const char *name_or_path)
{
    static const char *const endings[] = {".json", ".json.gz"};
    if (strchr(name_or_path, '/')) return true;
    for (size_t i = 0; i < ARRAY_COUNT(endings); i++) {
        size_t length = strlen(name_or_path), ending = strlen(endings[i]);
        if (length > ending && strcmp(name_or_path + length - ending, endings[i]) == 0) return true;
    }
    return false;
}

/* A folder, as a model's repository is one, means its config.json. */
static enum status read_path(const char *path, struct arena *arena, struct network *out,
                             struct error *err)
{
    char inside[4096];
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode))
        return network_read_config(path, arena, out, err);
    bool slash = path[0] && path[strlen(path) - 1] == '/';
    int length = snprintf(inside, sizeof inside, "%s%sconfig.json", path, slash ? "" : "/");
    if (length < 0 || (size_t)length >= sizeof inside)
        return error_set(err, STATUS_BAD_INPUT, "the path '%.200s...' is too long", path);
    return network_read_config(inside, arena, out, err);
}

static enum status fail_unknown(const char *name, struct error *err)
{
    const char *names[ARRAY_COUNT(presets)];
    for (size_t i = 0; i < ARRAY_COUNT(presets); i++) names[i] = presets[i].name;
    const char *near = suggest(name, names, ARRAY_COUNT(presets));
    if (near)
        return error_set(err, STATUS_BAD_INPUT, "unknown network '%.100s' (did you mean '%s'?)",
                         name, near);
    return error_set(err, STATUS_BAD_INPUT,
                     "unknown network '%.100s' (expected a preset such as gpt2-xl, or the path of "
                     "a config.json)",
                     name);
}

enum status network_find(const char *name_or_path, struct arena *arena, struct network *out,
                         struct error *err)
{
    if (network_is_path(name_or_path)) return read_path(name_or_path, arena, out, err);
    for (size_t i = 0; i < ARRAY_COUNT(presets); i++) {
        if (strcmp(presets[i].name, name_or_path) != 0) continue;
        *out = complete(&presets[i]);
        return STATUS_OK;
    }
    return fail_unknown(name_or_path, err);
}

enum status network_take(struct json_object *object, struct arena *arena, struct network *out, struct error *err)
{
    const struct json_input *in = object->input;
    struct error reason = {0};
    const char *path;
    json_take_any(object, "network");
    const json_t *value = json_object_get(object->value, "network");
    const char *text = json_string_value(value);
    if (json_is_object(value)) return network_parse(in, value, "network", arena, out, err);
    if (!text)
        return json_fail_key(in, object->value, "network", err, "'network' is neither a name or path nor an object");
    if (network_is_path(text)) {
        if (path_beside(json_input_name(in), text, arena, &path, err)) return err->status;
        return network_find(path, arena, out, err);
    }
    if (network_find(text, arena, out, &reason) == STATUS_OK) return STATUS_OK;
    return json_fail_key(in, object->value, "network", err, "%s", reason.text);
}
