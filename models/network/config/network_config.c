/*
 * A missing key has its class's default in transformers. Keys that change neither shapes nor arithmetic are ignored;
 * dropout rates are kept for a message (models/network/network_ignored.h). A key that would change the network (a
 * relu, a cross attention, scores scaled by layer) is refused: a plan for the wrong network is worse than none.
 *
 * Products of shapes are bounded only here (NETWORK_*_MAX): limits keep every product below 2^62, then the parameter
 * count is compared with its own.
 *
 * network_write()'s output is a config.json too, with our own keys "name", bert's "mask_token_id", and "head_dim" for
 * unequal heads.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json/json_rows.h"
#include "base/size.h"
#include "base/try.h"
#include "models/network/config/network_config_parts.h"
#include "models/network/config/network_foreign.h"

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

/* Families with listed layers also need memory. */
static const struct {
    enum status (*parse)(struct json_object *o, struct network *n, struct error *err);
    enum status (*parse_listed)(struct json_object *o, struct arena *arena, struct network *n, struct error *err);
    void (*write)(const struct network *n, struct json_out *out);
} families[NETWORK_FAMILY_COUNT] = {
    [NETWORK_GPT2] = {config_parse_gpt2, NULL, config_write_gpt2},
    [NETWORK_LLAMA] = {config_parse_llama, NULL, config_write_llama},
    [NETWORK_BERT] = {config_parse_bert, NULL, config_write_bert},
    [NETWORK_VIT] = {config_parse_vit, NULL, config_write_vit},
    [NETWORK_OPT] = {config_parse_opt, NULL, config_write_decoder},
    [NETWORK_GPT_NEOX] = {config_parse_gpt_neox, NULL, config_write_decoder},
    [NETWORK_GPTJ] = {config_parse_gptj, NULL, config_write_decoder},
    [NETWORK_PHI] = {config_parse_phi, NULL, config_write_decoder},
    [NETWORK_MISTRAL] = {config_parse_llama, NULL, config_write_llama},
    [NETWORK_GEMMA] = {config_parse_llama, NULL, config_write_llama},
    [NETWORK_QWEN2] = {config_parse_llama, NULL, config_write_llama},
    [NETWORK_QWEN3] = {config_parse_llama, NULL, config_write_llama},
    [NETWORK_MIXTRAL] = {config_parse_llama, NULL, config_write_llama},
    [NETWORK_QWEN3_MOE] = {config_parse_llama, NULL, config_write_llama},
    [NETWORK_QWEN2_MOE] = {config_parse_llama, NULL, config_write_llama},
    [NETWORK_GEMMA2] = {config_parse_llama, NULL, config_write_llama},
    [NETWORK_GEMMA3_TEXT] = {config_parse_llama, NULL, config_write_llama},
    [NETWORK_T5] = {config_parse_t5, NULL, config_write_t5},
    [NETWORK_MT5] = {config_parse_t5, NULL, config_write_t5},
    [NETWORK_UMT5] = {config_parse_t5, NULL, config_write_t5},
    [NETWORK_CNN] = {.parse_listed = config_parse_cnn, .write = config_write_cnn},
    [NETWORK_RESNET] = {.parse_listed = config_parse_resnet},
    [NETWORK_PROFILE] = {.parse_listed = config_parse_profile, .write = config_write_profile},
};

static enum status parse_family(struct json_object *o, struct arena *arena, struct network *n,
                                struct error *err)
{
    if (families[n->family].parse_listed) {
        TRY(families[n->family].parse_listed(o, arena, n, err));
    } else {
        TRY(families[n->family].parse(o, n, err));
        TRY(network_ignored_parse(o, n, err));
        n->layer_count = n->blocks + 2;
    }
    return check_size(o, n, err);
}

/* Refuses quantized weights: they match no precision here in bytes or arithmetic. */
static enum status refuse_quantized(const struct json_input *in, const json_t *value, struct error *err)
{
    const json_t *quantized = json_object_get(value, "quantization_config");
    if (!quantized || json_is_null(quantized)) return STATUS_OK;
    const char *method = json_string_value(json_object_get(quantized, "quant_method"));
    return json_fail_key(in, value, "quantization_config", err,
                         "'quantization_config' says that weights are quantized%s%.40s, "
                         "which is neither trained nor modelled here "
                         "(expected the config.json of the network before quantization)",
                         method ? " by " : "", method ? method : "");
}

/* Returns the text model of a network of text and images. */
static const json_t *text_model(const json_t *value)
{
    const json_t *text = json_object_get(value, "text_config");
    return json_is_object(text) ? text : NULL;
}

static enum status read_family(struct json_object *object, uint32_t *out, struct error *err)
{
    const char *name = NULL;
    char ending[NETWORK_FOREIGN_BYTES];
    TRY(json_take_string(object, "model_type", JSON_REQUIRED, &name, err));
    for (uint32_t i = 0; i < NETWORK_FAMILY_COUNT; i++) {
        if (strcmp(network_family_names[i], name) != 0) continue;
        *out = i;
        return STATUS_OK;
    }
    return json_fail_key(object->input, object->value, "model_type", err, "unknown model_type '%.100s'%s", name,
                         network_foreign_ending(name, ending));
}

/* Both spellings of the weights' type. */
static bool is_in_bf16(const json_t *config)
{
    static const char *const keys[] = {"dtype", "torch_dtype"};
    for (size_t i = 0; i < ARRAY_COUNT(keys); i++) {
        const char *const type = json_string_value(json_object_get(config, keys[i]));
        if (type) return strcmp(type, "bfloat16") == 0;
    }
    return false;
}

enum status network_parse(const struct json_input *in, const json_t *value, const char *name,
                          struct arena *arena, struct network *out, struct error *err)
{
    struct json_object object;
    char named[sizeof out->name + 32];
    TRY(refuse_quantized(in, value, err));
    if (text_model(value)) {
        size_t length = strlen(name), most = sizeof out->name - sizeof ", its text model";
        snprintf(named, sizeof named, "%s, its text model", length > most ? name + (length - most) : name);
        return network_parse(in, text_model(value), named, arena, out, err);
    }
    TRY(json_object_open(&object, in, value, "a network object, as config.json has it", err));
    json_object_ignore_others(&object); /* unless a family knows all of its keys and closes the object */
    struct network n = {0};
    TRY(read_family(&object, &n.family, err));
    TRY(json_take_string(&object, "name", JSON_OPTIONAL, &name, err));
    if (strlen(name) >= sizeof n.name) { /* the end of a path says more */
        name += strlen(name) - (sizeof n.name - 1);
        while (((unsigned char)*name & 0xc0) == 0x80) name++; /* not within a character */
    }
    snprintf(n.name, sizeof n.name, "%s", name);
    TRY(parse_family(&object, arena, &n, err));
    n.in_bf16 = is_in_bf16(value);
    *out = n;
    return STATUS_OK;
}

struct config_reader {
    const char *path;
    struct arena *arena;
    struct network *out;
};

static enum status read_root(const struct json_input *in, void *context, struct error *err)
{
    const struct config_reader *reader = context;
    TRY(network_parse(in, json_input_root(in), reader->path, reader->arena, reader->out, err));
    network_ignored_defaults(json_input_root(in), reader->out);
    return STATUS_OK;
}

enum status network_read_config(const char *path, struct arena *arena, struct network *out,
                                struct error *err)
{
    static const char *const arrays[] = {"layers", NULL}; /* of profiles; other families read the whole tree */
    struct config_reader reader = {.path = path, .arena = arena, .out = out};
    return json_rows_read_file(path, arrays, read_root, &reader, err);
}

void network_write(const struct network *network, struct json_out *out, const char *key)
{
    json_out_object_begin(out, key, false);
    json_out_string(out, "model_type", network_family_names[network->family]);
    json_out_string(out, "name", network->name);
    families[network->family].write(network, out);
    network_ignored_write(network, out);
    json_out_object_end(out);
}
