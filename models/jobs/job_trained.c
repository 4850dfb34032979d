/* Texts are copied: a job outlives its file. */
#include "models/jobs/job_trained.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/files/path.h"
#include "base/json/json_out.h"
#include "base/size.h"
#include "base/text.h"
#include "base/try.h"
#include "models/jobs/job_peft.h"

const char job_adapter_file[] = "adapter_model.safetensors", job_adapter_config[] = "adapter_config.json";

enum { RULES_MAX = 1000 }; /* ranges, patterns or targets */

/* --- freeze ----------------------------------------------------------------------------------- */

static enum status fail_long(const struct json_object *object, const char *key, struct error *err)
{
    return json_fail_key(object->input, object->value, key, err, "'%s' is too long (limit is %d)", key, (int)RULES_MAX);
}

/* Takes a number, or [first, last]. */
static enum status read_range(const struct json_input *in, const json_t *array, size_t i, uint64_t out[2],
                              struct error *err)
{
    const json_t *pair = NULL;
    if (!json_is_array(json_array_get(array, i))) {
        TRY(json_item_u64(in, array, i, 0, NETWORK_LAYERS_MAX, &out[0], err));
        out[1] = out[0];
        return STATUS_OK;
    }
    TRY(json_item_array(in, array, i, 2, &pair, err));
    TRY(json_item_u64(in, pair, 0, 0, NETWORK_LAYERS_MAX, &out[0], err));
    return json_item_u64(in, pair, 1, out[0], NETWORK_LAYERS_MAX, &out[1], err);
}

static enum status read_layers(struct json_object *object, struct arena *arena, struct network_freeze *out,
                               struct error *err)
{
    const json_t *array = NULL;
    uint64_t(*layers)[2];
    TRY(json_take_array(object, "layers", JSON_OPTIONAL, &array, err));
    const size_t count = array ? json_array_size(array) : 0;
    if (count == 0) return STATUS_OK;
    if (count > RULES_MAX) return fail_long(object, "layers", err);
    TRY(ARENA_NEW(arena, count, layers, err));
    for (size_t i = 0; i < count; i++) TRY(read_range(object->input, array, i, layers[i], err));
    out->layers = (const uint64_t(*)[2])layers;
    out->layer_count = (uint32_t)count;
    return STATUS_OK;
}

/* Takes an array of texts; *out stays NULL where there is none. */
static enum status read_texts(struct json_object *object, const char *key, struct arena *arena, const char *const **out,
                              uint32_t *count, struct error *err)
{
    const json_t *array = NULL;
    TRY(json_take_array(object, key, JSON_OPTIONAL, &array, err));
    const size_t size = array ? json_array_size(array) : 0;
    if (size == 0) return STATUS_OK;
    if (size > RULES_MAX) return fail_long(object, key, err);
    *count = (uint32_t)size;
    return json_item_strings(object->input, array, arena, out, err);
}

static enum status read_freeze(const struct job_draft *draft, struct arena *arena, struct network_freeze *out,
                               struct error *err)
{
    struct json_object object;
    TRY(json_object_open(&object, draft->in, draft->freeze, "an object with 'layers' and 'tensors'", err));
    TRY(read_layers(&object, arena, out, err));
    TRY(read_texts(&object, "tensors", arena, &out->tensors, &out->tensor_count, err));
    TRY(json_object_close(&object, err));
    if (out->layer_count > 0 || out->tensor_count > 0) return STATUS_OK;
    return json_fail_key(draft->in, draft->freeze, NULL, err, "nothing is frozen (expected 'layers' or 'tensors')");
}

/* --- adapter ---------------------------------------------------------------------------------- */

/* Takes a list, or "all-linear". */
static enum status read_targets(struct json_object *object, struct arena *arena, struct job_adapter *out,
                                struct error *err)
{
    static const char *const all[] = {"all-linear"};
    size_t which;
    if (json_is_string(json_object_get(object->value, "targets"))) {
        TRY(json_take_choice(object, "targets", JSON_REQUIRED, all, ARRAY_COUNT(all), &which, err));
        out->all_linear = true;
        return STATUS_OK;
    }
    return read_texts(object, "targets", arena, &out->targets, &out->target_count, err);
}

/* Takes what the folder says where the job says nothing. */
static enum status read_folder(const struct job_draft *draft, struct arena *arena, struct job_adapter *out,
                               bool dropout_given, struct error *err)
{
    struct job_adapter theirs = {.from = out->from};
    struct error own = {0};
    if (job_peft_read(out->from, dropout_given, arena, &theirs, &own) == STATUS_OK) {
        *out = theirs;
        return STATUS_OK;
    }
    if (own.status != STATUS_BAD_INPUT && own.status != STATUS_IO) *err = own;
    else json_fail_key(draft->in, draft->adapter, "from", err, "%s", own.text);
    return err->status;
}

static enum status check_alone(const struct job_draft *draft, struct json_object *object, struct error *err)
{
    static const char *const keys[] = {"alpha", "targets", "rslora"};
    for (size_t i = 0; i < ARRAY_COUNT(keys); i++)
        if (json_has(object, keys[i]))
            return json_fail_key(draft->in, draft->adapter, keys[i], err,
                                 "'%s' without 'rank' (expected 'rank', or only 'from', whose folder has all of them)",
                                 keys[i]);
    return STATUS_OK;
}

static enum status read_adapter(const struct job_draft *draft, const char *folder, struct arena *arena,
                                struct job_adapter *out, struct error *err)
{
    static const char *const kinds[] = {"lora"};
    struct json_object object;
    const char *from = NULL;
    double dropout = 0;
    size_t kind = 0;
    TRY(json_object_open(&object, draft->in, draft->adapter, "an adapter object", err));
    TRY(json_take_choice(&object, "kind", JSON_OPTIONAL, kinds, ARRAY_COUNT(kinds), &kind, err));
    TRY(json_take_u64(&object, "rank", JSON_OPTIONAL, 1, NETWORK_RANK_MAX, &out->rank, err));
    out->alpha = (double)out->rank;
    TRY(json_take_double(&object, "alpha", JSON_OPTIONAL, 0x1p-20, 0x1p20, &out->alpha, err));
    TRY(read_targets(&object, arena, out, err));
    TRY(json_take_bool(&object, "rslora", JSON_OPTIONAL, &out->rslora, err));
    TRY(json_take_double(&object, "dropout", JSON_OPTIONAL, 0, 1, &dropout, err));
    TRY(json_take_string(&object, "from", JSON_OPTIONAL, &from, err));
    const bool dropout_given = json_has(&object, "dropout");
    TRY(json_object_close(&object, err));
    if (dropout > 0)
        return json_fail_key(draft->in, draft->adapter, "dropout", err,
                             "'dropout' of adapters is not supported (expected 0)");
    if (from) TRY(path_absolute(folder, from, arena, &out->from, err));
    if (out->rank > 0) return STATUS_OK;
    if (!from)
        return json_fail_key(draft->in, draft->adapter, NULL, err,
                             "missing key 'rank' (or 'from', the folder of an adapter)");
    TRY(check_alone(draft, &object, err));
    return read_folder(draft, arena, out, dropout_given, err);
}

/* Takes the default targets of the family where none are named. */
static enum status settle_targets(const struct job_draft *draft, struct job_adapter *adapter, struct error *err)
{
    if (adapter->rank == 0 || adapter->targets || adapter->all_linear) return STATUS_OK;
    adapter->targets = network_default_targets(&draft->job.network, &adapter->target_count);
    if (adapter->targets) return STATUS_OK;
    return json_fail_key(draft->in, draft->adapter, NULL, err,
                         "missing key 'targets': there is no default for family '%s'",
                         network_family_names[draft->job.network.family]);
}

/* An adapter is written as a folder. */
static enum status settle_output(struct job_draft *draft, struct arena *arena, struct error *err)
{
    char path[4 * PATH_MAX];
    struct job *job = &draft->job;
    if (job->adapter.rank == 0 || !job->weights_out || text_ends_in(job->weights_out, job_adapter_file))
        return STATUS_OK;
    if (text_ends_in(job->weights_out, ".safetensors"))
        return json_fail_key(draft->in, job_draft_giver(draft, "weights_out"), "weights_out", err,
                             "an adapter is written as a folder (expected one, or a path that ends in '%s')",
                             job_adapter_file);
    const int length = snprintf(path, sizeof path, "%s/%s", job->weights_out, job_adapter_file);
    if (length >= (int)sizeof path)
        return json_fail_key(draft->in, job_draft_giver(draft, "weights_out"), "weights_out", err,
                             "the path is too long");
    return arena_string(arena, path, &job->weights_out, err);
}

static enum status fail_trained(const struct job_draft *draft, const char *key, const struct error *own,
                                struct error *err)
{
    if (own->status != STATUS_BAD_INPUT) *err = *own;
    else json_fail_key(draft->in, job_draft_giver(draft, key), key, err, "%s", own->text);
    return err->status;
}

enum status job_trained_resolve(struct job_draft *draft, const char *folder, struct arena *arena, struct error *err)
{
    struct job *job = &draft->job;
    struct error own = {0};
    if (draft->freeze) TRY(read_freeze(draft, arena, &job->freeze, err));
    if (draft->adapter) TRY(read_adapter(draft, folder, arena, &job->adapter, err));
    if (draft->adapter && draft->freeze)
        return json_fail_key(draft->in, job_draft_giver(draft, "freeze"), "freeze", err,
                             "'freeze' beside 'adapter', which freezes all of the network (expected one of them)");
    TRY(settle_targets(draft, &job->adapter, err));
    TRY(settle_output(draft, arena, err));
    const struct network_adapters adapters = {.rank = job->adapter.rank,
                                              .scale = job_adapter_scale(&job->adapter),
                                              .targets = job->adapter.targets,
                                              .target_count = job->adapter.target_count};
    if (network_train_only(&job->network, &job->freeze, &adapters, arena, &job->network.trained, &own) == STATUS_OK)
        return STATUS_OK;
    return fail_trained(draft, draft->adapter ? "adapter" : "freeze", &own, err);
}

/* --- writing ---------------------------------------------------------------------------------- */

static void write_texts(const char *const *texts, uint32_t count, struct json_out *out, const char *key)
{
    if (count == 0) return;
    json_out_array_begin(out, key, true);
    for (uint32_t i = 0; i < count; i++) json_out_string(out, NULL, texts[i]);
    json_out_array_end(out);
}

static void write_freeze(const struct network_freeze *freeze, struct json_out *out)
{
    if (freeze->layer_count == 0 && freeze->tensor_count == 0) return;
    json_out_object_begin(out, "freeze", true);
    if (freeze->layer_count > 0) json_out_array_begin(out, "layers", true);
    for (uint32_t i = 0; i < freeze->layer_count; i++) {
        json_out_array_begin(out, NULL, true);
        for (size_t end = 0; end < 2; end++) json_out_u64(out, NULL, freeze->layers[i][end]);
        json_out_array_end(out);
    }
    if (freeze->layer_count > 0) json_out_array_end(out);
    write_texts(freeze->tensors, freeze->tensor_count, out, "tensors");
    json_out_object_end(out);
}

static void write_adapter(const struct job_adapter *adapter, const char *folder, struct json_out *out)
{
    char relative[PATH_RELATIVE_BYTES];
    if (adapter->rank == 0) return;
    json_out_object_begin(out, "adapter", true);
    json_out_string(out, "kind", "lora");
    json_out_u64(out, "rank", adapter->rank);
    json_out_double(out, "alpha", adapter->alpha);
    if (adapter->all_linear) json_out_string(out, "targets", "all-linear");
    else write_texts(adapter->targets, adapter->target_count, out, "targets");
    if (adapter->rslora) json_out_bool(out, "rslora", true);
    if (adapter->from)
        json_out_string(out, "from", folder ? path_relative(folder, adapter->from, relative) : adapter->from);
    json_out_object_end(out);
}

void job_trained_write(const struct job *job, const char *folder, struct json_out *out)
{
    write_freeze(&job->freeze, out);
    write_adapter(&job->adapter, folder, out);
}
