#include "models/jobs/job_peft.h"

#include <string.h>

#include "base/files/path.h"
#include "base/json/json_in.h"
#include "base/json/json_out.h"
#include "base/size.h"
#include "base/try.h"
#include "models/jobs/job_trained.h"

enum { TARGETS_MAX = 100000 }; /* "all-linear" is saved as the full names of all modules */

/* --- reading ---------------------------------------------------------------------------------- */

/* Returns true for null, false, 0, "" and empty lists and objects. */
static bool is_nothing(const json_t *value)
{
    return !value || json_is_null(value) || json_is_false(value) ||
           (json_is_array(value) && json_array_size(value) == 0) ||
           (json_is_object(value) && json_object_size(value) == 0) ||
           (json_is_integer(value) && json_integer_value(value) == 0) ||
           (json_is_string(value) && *json_string_value(value) == '\0');
}

/* Refuses what is not a plain LoRA of linear layers. */
static enum status refuse_others(struct json_object *object, struct error *err)
{
    static const char *const keys[] = {"use_dora", "use_qalora", "use_bdlora", "rank_pattern", "alpha_pattern",
                                       "modules_to_save",
                                       "layers_to_transform", "layers_pattern", "layer_replication", "exclude_modules",
                                       "target_parameters", "trainable_token_indices", "alora_invocation_tokens",
                                       "lora_bias",
                                       "megatron_config", "arrow_config"};
    static const char *const starts[] = {"pissa", "olora", "loftq", "eva", "corda", "orthogonal", "lora_ga"};
    for (size_t i = 0; i < ARRAY_COUNT(keys); i++)
        if (!is_nothing(json_object_get(object->value, keys[i])))
            return json_fail_key(object->input, object->value, keys[i], err, "'%s' is not supported (expected none)",
                                 keys[i]);
    const char *bias = json_string_value(json_object_get(object->value, "bias"));
    if (bias && strcmp(bias, "none") != 0)
        return json_fail_key(object->input, object->value, "bias", err, "'bias' is '%.40s' (expected none)", bias);
    const char *start = json_string_value(json_object_get(object->value, "init_lora_weights"));
    for (size_t i = 0; start && i < ARRAY_COUNT(starts); i++)
        if (strncmp(start, starts[i], strlen(starts[i])) == 0)
            return json_fail_key(object->input, object->value, "init_lora_weights", err,
                                 "'init_lora_weights' is '%.40s', "
                                 "which changes the network's own weights (expected true, false "
                                 "or gaussian)", start);
    return STATUS_OK;
}

static enum status read_modules(struct json_object *object, struct arena *arena, struct job_adapter *out,
                                struct error *err)
{
    const json_t *value = json_object_get(object->value, "target_modules");
    if (json_is_string(value)) {
        out->all_linear = strcmp(json_string_value(value), "all-linear") == 0;
        if (out->all_linear) return STATUS_OK;
        return json_fail_key(object->input, object->value, "target_modules", err,
                             "'target_modules' is a pattern (expected a list of names, or all-linear)");
    }
    TRY(json_take_array(object, "target_modules", JSON_REQUIRED, &value, err));
    const size_t count = json_array_size(value);
    if (count == 0 || count > TARGETS_MAX)
        return json_fail_key(object->input, object->value, "target_modules", err,
                             "'target_modules' has %zu names (expected 1 to %d)", count, (int)TARGETS_MAX);
    out->target_count = (uint32_t)count;
    return json_item_strings(object->input, value, arena, &out->targets, err);
}

static enum status read_config(const struct json_input *in, bool any_dropout, struct arena *arena,
                               struct job_adapter *out, struct error *err)
{
    static const char *const types[] = {"LORA"};
    struct json_object object;
    size_t type;
    double dropout = 0;
    TRY(json_object_open(&object, in, json_input_root(in), "the configuration of an adapter", err));
    json_object_ignore_others(&object);
    TRY(json_take_choice(&object, "peft_type", JSON_REQUIRED, types, ARRAY_COUNT(types), &type, err));
    TRY(json_take_u64(&object, "r", JSON_REQUIRED, 1, NETWORK_RANK_MAX, &out->rank, err));
    out->alpha = 8; /* PEFT's default */
    TRY(json_take_double(&object, "lora_alpha", JSON_OPTIONAL, 0x1p-20, 0x1p20, &out->alpha, err));
    TRY(json_take_double(&object, "lora_dropout", JSON_OPTIONAL, 0, 1, &dropout, err));
    TRY(json_take_bool(&object, "use_rslora", JSON_OPTIONAL, &out->rslora, err));
    if (dropout > 0 && !any_dropout)
        return json_fail_key(in, object.value, "lora_dropout", err,
                             "'lora_dropout' is not supported (expected 0, or \"dropout\": "
                             "0 in the job to train on without)");
    TRY(read_modules(&object, arena, out, err));
    return refuse_others(&object, err);
}

enum status job_peft_read(const char *folder, bool any_dropout, struct arena *arena, struct job_adapter *out,
                          struct error *err)
{
    struct json_input *in = NULL;
    const char *path;
    TRY(path_absolute(folder, job_adapter_config, arena, &path, err));
    TRY(json_input_read(path, &in, err));
    const enum status status = read_config(in, any_dropout, arena, out, err);
    json_input_destroy(in);
    return status;
}

/* --- writing ---------------------------------------------------------------------------------- */

static void write_number(struct json_out *out, const char *key, double value)
{
    if (value == (double)(uint64_t)value) json_out_u64(out, key, (uint64_t)value);
    else json_out_double(out, key, value);
}

enum status job_peft_write(const struct job *job, const char *path, struct error *err)
{
    struct json_file file;
    const struct job_adapter *a = &job->adapter;
    TRY(json_file_begin(&file, path, "the configuration of an adapter", err));
    json_out_object_begin(file.out, NULL, false);
    json_out_string(file.out, "base_model_name_or_path", job->weights_in ? job->weights_in : job->network.name);
    json_out_string(file.out, "bias", "none");
    json_out_bool(file.out, "fan_in_fan_out", job->network.family == NETWORK_GPT2);
    json_out_bool(file.out, "inference_mode", true);
    json_out_bool(file.out, "init_lora_weights", true);
    write_number(file.out, "lora_alpha", a->alpha);
    json_out_double(file.out, "lora_dropout", 0);
    json_out_string(file.out, "peft_type", "LORA");
    json_out_u64(file.out, "r", a->rank);
    if (a->all_linear) json_out_string(file.out, "target_modules", "all-linear");
    if (!a->all_linear) json_out_array_begin(file.out, "target_modules", true);
    for (uint32_t i = 0; i < a->target_count; i++) json_out_string(file.out, NULL, a->targets[i]);
    if (!a->all_linear) json_out_array_end(file.out);
    json_out_string(file.out, "task_type", "CAUSAL_LM");
    json_out_bool(file.out, "use_rslora", a->rslora);
    json_out_object_end(file.out);
    return json_file_end(&file, err);
}
