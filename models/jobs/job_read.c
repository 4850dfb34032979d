/*
 * Reads jobs.json by drafts (models/jobs/job_draft.h).
 *
 * With "count", weights_out must contain "{name}", else all would write one file. Two jobs with the same output are an
 * error.
 */
#include "models/jobs/jobs_file.h"

#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json/json_rename.h"
#include "base/json/json_stream.h"
#include "base/size.h"
#include "base/text.h"
#include "base/try.h"
#include "models/jobs/job_base.h"
#include "models/jobs/job_devices.h"
#include "models/jobs/job_draft.h"
#include "models/jobs/job_keys.h"
#include "models/jobs/job_names.h"
#include "models/jobs/job_trained.h"

/* --- from draft to jobs --------------------------------------------------------------------- */

/* Replaces each "{name}". */
static enum status name_output(const char *pattern, const char *name, struct arena *arena,
                               const char **out, struct error *err)
{
    static const char mark[] = "{name}";
    char path[4 * PATH_MAX];
    size_t used = 0;
    for (const char *c = pattern; *c;) {
        bool marked = strncmp(c, mark, strlen(mark)) == 0;
        size_t length = marked ? strlen(name) : 1;
        if (length >= sizeof path - used)
            return error_set(err, STATUS_BAD_INPUT, "the path '%.100s...' is too long", pattern);
        memcpy(path + used, marked ? name : c, length);
        used += length;
        c += marked ? strlen(mark) : 1;
    }
    path[used] = '\0';
    return arena_string(arena, path, out, err);
}

/* Makes "a.best.safetensors" of "a.safetensors", else appends ".best"; to an adapter's folder. */
static enum status name_best(const char *path, struct arena *arena, const char **out,
                             struct error *err)
{
    static const char ending[] = ".safetensors";
    char text[4 * PATH_MAX + sizeof ".best/"];
    size_t stem = strlen(path);
    bool usual = text_ends_in(path, ending), adapter = text_ends_in(path, job_adapter_file);
    if (usual) stem -= strlen(ending);
    if (adapter && stem + strlen(ending) > strlen(job_adapter_file) + 1) {
        snprintf(text, sizeof text, "%.*s.best/%s", (int)(strlen(path) - strlen(job_adapter_file) - 1), path,
                 job_adapter_file);
        return arena_string(arena, text, out, err);
    }
    snprintf(text, sizeof text, "%.*s.best%s", (int)stem, path, usual ? ending : "");
    return arena_string(arena, text, out, err);
}

struct growing {
    struct job *jobs; /* malloc'ed; strings are in the arena */
    size_t count, capacity;
    struct job_names names, outputs; /* theirs */
};

static enum status check_unique(const struct growing *set, const struct job_draft *draft,
                                const struct job *job, struct error *err)
{
    const char *outputs[] = {job->weights_out, job->weights_best};
    if (job_names_find(&set->names, job->name) != UINT32_MAX)
        return json_fail_key(draft->in, draft->object, "name", err,
                             "there are two jobs '%s' (names must differ)", job->name);
    for (size_t i = 0; i < ARRAY_COUNT(outputs); i++) {
        uint32_t other = outputs[i] ? job_names_find(&set->outputs, outputs[i]) : UINT32_MAX;
        if (other == UINT32_MAX) continue;
        return json_fail_key(draft->in, job_draft_giver(draft, "weights_out"), "weights_out", err,
                             "jobs '%s' and '%s' would both write '%s' (use {name} in it)",
                             set->jobs[other].name, job->name, outputs[i]);
    }
    return STATUS_OK;
}

static enum status note_names(struct growing *set, const struct job *job, struct error *err)
{
    uint32_t index = (uint32_t)set->count;
    TRY(job_names_add(&set->names, job->name, index, err));
    if (job->weights_out) TRY(job_names_add(&set->outputs, job->weights_out, index, err));
    if (job->weights_best && job_names_find(&set->outputs, job->weights_best) == UINT32_MAX)
        TRY(job_names_add(&set->outputs, job->weights_best, index, err));
    return STATUS_OK;
}

/* Checks what the job says by its base's name: that its frozen weights are those of others. */
static enum status check_base(const struct growing *set, const struct job_draft *draft, const struct job *job,
                              struct error *err)
{
    char text[JOB_BASE_TEXT];
    const json_t *const giver = job_draft_giver(draft, "base");
    if (!job_has_base(job))
        return json_fail_key(draft->in, giver, "base", err,
                             "job '%s' has a base and freezes nothing (expected 'adapter' or 'freeze')", job->name);
    for (size_t i = 0; i < set->count; i++) {
        const struct job *const other = &set->jobs[i];
        const char *const what = other->base && strcmp(other->base, job->base) == 0
                                 ? job_base_differs(other, job, text) : NULL;
        if (what)
            return json_fail_key(draft->in, giver, "base", err, "jobs '%s' and '%s' do not have one base: %s",
                                 other->name, job->name, what);
        if (other->base && strcmp(other->base, job->base) == 0) return STATUS_OK; /* equal to all before it */
    }
    return STATUS_OK;
}

static enum status append(struct growing *set, const struct job_draft *draft, const char *name,
                          uint64_t seed, struct arena *arena, struct error *err)
{
    struct job job = draft->job;
    if (strlen(name) > JOB_NAME_MAX) /* with its number */
        return json_fail_key(draft->in, draft->object, "name", err,
                             "the job name '%s' is too long (limit is %d)", name, JOB_NAME_MAX);
    job.seed = seed;
    TRY(arena_string(arena, name, &job.name, err));
    TRY(job_devices_read(draft->in, job_draft_giver(draft, "devices"), draft->devices, arena, &job, err));
    if (job.weights_out) TRY(name_output(job.weights_out, name, arena, &job.weights_out, err));
    if (job.keep_best && job.weights_out) TRY(name_best(job.weights_out, arena, &job.weights_best, err));
    if (job.base) TRY(arena_string(arena, job.base, &job.base, err));
    if (job.base) TRY(check_base(set, draft, &job, err));
    TRY(check_unique(set, draft, &job, err));
    if (set->count == JOB_COUNT_MAX)
        return json_fail_key(draft->in, draft->object, NULL, err, "too many jobs (limit is %d)", JOB_COUNT_MAX);
    TRY(array_reserve(&set->jobs, &set->capacity, set->count, sizeof job, JOB_COUNT_MAX, "jobs", err));
    TRY(note_names(set, &job, err));
    set->jobs[set->count++] = job;
    return STATUS_OK;
}

static enum status append_all(struct growing *set, const struct job_draft *draft, struct arena *arena,
                              struct error *err)
{
    uint64_t seed = draft->job.seed;
    if (draft->count == 0) return append(set, draft, draft->name, seed, arena, err);
    for (uint64_t i = 0; i < draft->count; i++) {
        char name[JOB_NAME_MAX + 32];
        snprintf(name, sizeof name, "%s-%" PRIu64, draft->name, i + 1);
        TRY(append(set, draft, name, seed + i, arena, err));
    }
    return STATUS_OK;
}

/* --- the file ------------------------------------------------------------------------------- */

/* Our keys in transformers, DeepSpeed, Megatron-LM, EleutherAI's calculators, llm-analysis and Calculon, with
 * values of the same form. */
static const struct json_synonym synonyms[] = {
    {"seq_len", "sequence"},
    {"seq_length", "sequence"},
    {"sequence_length", "sequence"},
    {"max_seq_length", "sequence"},
    {"max_length", "sequence"},
    {"seq_size", "sequence"},
    {"micro_batch", "microbatch"},
    {"micro_batch_size", "microbatch"},
    {"microbatch_size", "microbatch"},
    {"batch_size_per_gpu", "microbatch"},
    {"per_device_train_batch_size", "microbatch"},
    {"train_micro_batch_size_per_gpu", "microbatch"},
    {"grad_accum", "gradient_accumulation_steps"},
    {"global_batch", "train_batch_size"},
    {"global_batch_size", "train_batch_size"},
    {"steps", "minibatches"},
    {"max_steps", "minibatches"},
    {"train_iters", "minibatches"},
    {"dtype", "precision"},
    {"optim", "optimizer"},
    {"block_size", "sequence"},
    {"max_seq_len", "sequence"},
    {"train_steps", "minibatches"},
    {"num_steps", "minibatches"},
    {"total_steps", "minibatches"},
    {"num_train_steps", "minibatches"},
    {"num_train_epochs", "epochs"},
};

/* Keys of other tools that have no key of the same meaning here, and what to write instead. */
static const struct {
    const char *theirs, *instead;
} hints[] = {
    {"learning_rate", "'lr' in 'optimizer'"},
    {"lr", "'lr' in 'optimizer'"},
    {"max_lr", "'lr' in 'optimizer'"},
    {"weight_decay", "'weight_decay' in 'optimizer'"},
    {"adam_beta1", "'beta1' in 'optimizer'"},
    {"adam_beta2", "'beta2' in 'optimizer'"},
    {"adam_epsilon", "'epsilon' in 'optimizer'"},
    {"max_grad_norm", "'clip' in 'optimizer'"},
    {"gradient_clipping", "'clip' in 'optimizer'"},
    {"clip_grad", "'clip' in 'optimizer'"},
    {"lr_scheduler_type", "'schedule' in 'optimizer'"},
    {"warmup_steps", "'warmup' in the 'schedule' of 'optimizer'"},
    {"fp16", "'precision': 'bf16' or 'bf16-weights'; fp16 is not supported"},
    {"bf16", "'precision': 'bf16' or 'bf16-weights'"},
    {"mixed_precision", "'precision': 'bf16' or 'bf16-weights'"},
    {"gradient_checkpointing", "the option '--activations recompute' of 'spillway plan', or 'recompute' in 'parallel'"},
    {"activation_checkpointing",
     "the option '--activations recompute' of 'spillway plan', or 'recompute' in 'parallel'"},
    {"model", "'network'"},
    {"model_name", "'network'"},
    {"model_name_or_path", "'network'"},
    {"train_file", "'data'"},
    {"dataset", "'data'"},
    {"output_dir", "'weights_out'"},
    {"tensor_model_parallel_size", "'tensor' in 'parallel'"},
    {"tensor_parallel_size", "'tensor' in 'parallel'"},
    {"pipeline_model_parallel_size", "'pipeline' in 'parallel'"},
    {"pipeline_parallel_size", "'pipeline' in 'parallel'"},
    {"zero_optimization", "'zero' in 'parallel'"},
};

/* Adds what to write instead of other tools' keys to an error about unknown keys. */
static enum status add_hints(const json_t *object, struct error *err)
{
    for (size_t i = 0; i < ARRAY_COUNT(hints); i++) {
        char quoted[64];
        size_t used = strlen(err->text);
        snprintf(quoted, sizeof quoted, "'%s'", hints[i].theirs);
        if (json_object_get(object, hints[i].theirs) && strstr(err->text, "unknown key") && strstr(err->text, quoted))
            snprintf(err->text + used, sizeof err->text - used, "; instead of %s write %s", quoted, hints[i].instead);
    }
    return err->status;
}

struct parsing {
    struct job_draft defaults;
    const char *folder;
    struct arena *arena;
    struct growing set;
};

/* Reports required keys that are missing. */
static enum status close_job(struct json_object *object, const struct job_draft *draft, struct error *err)
{
    struct json_missing missing[2];
    size_t count = 0;
    if (!draft->network)
        missing[count++] = (struct json_missing){"network", "a name of 'spillway models list', or a config.json"};
    if (draft->job.minibatches == 0 && !(draft->epochs > 0))
        missing[count++] = (struct json_missing){"minibatches", "optimizer steps, Hugging Face's max_steps"};
    return json_object_close_missing(object, missing, count, err);
}

#define JOB_KEY_ROW(key, name, in_fingerprint, in_identity) [JOB_KEY_##key] = {name, in_fingerprint, in_identity},
const struct job_key_row job_key_rows[JOB_KEY_COUNT] = {JOB_KEYS(JOB_KEY_ROW)};
#undef JOB_KEY_ROW

static bool has_row(const char *name)
{
    for (size_t i = 0; i < JOB_KEY_COUNT; i++)
        if (strcmp(job_key_rows[i].name, name) == 0) return true;
    return false;
}

static enum status parse_job(struct parsing *p, struct json_object *object, size_t index, struct error *err)
{
    struct job_draft draft = p->defaults;
    char name[32];
    draft.in = object->input;
    TRY(json_rename_keys(draft.in, object->value, synonyms, ARRAY_COUNT(synonyms), err));
    draft.object = object->value;
    snprintf(name, sizeof name, "job-%zu", index + 1);
    draft.name = name;
    TRY(json_take_string(object, "name", JSON_OPTIONAL, &draft.name, err));
    TRY(job_draft_read(object, &draft, err));
    for (size_t i = 0; i < object->asked_count; i++) assert(has_row(object->asked[i])); /* job_keys.h needs a row */
    if (close_job(object, &draft, err)) return add_hints(object->value, err);
    TRY(job_draft_check_name(&draft, err));
    TRY(job_draft_resolve(&draft, p->folder, p->arena, err));
    TRY(job_draft_check(&draft, err));
    return append_all(&p->set, &draft, p->arena, err);
}

static enum status parse_head(struct parsing *p, const struct json_input *in, const json_t *value, const json_t **array,
                              struct error *err)
{
    struct json_object object, shared;
    const json_t *defaults_value = NULL;
    uint64_t version;
    p->defaults = job_draft_empty;
    p->defaults.in = in;
    TRY(json_object_open(&object, in, value, "an object with 'spillway_jobs' and 'jobs'", err));
    TRY(json_take_u64(&object, "spillway_jobs", JSON_REQUIRED, 1, 1, &version, err));
    TRY(json_take_object(&object, "defaults", JSON_OPTIONAL, &defaults_value, err));
    TRY(json_take_array(&object, "jobs", JSON_REQUIRED, array, err));
    TRY(json_object_close(&object, err));
    if (!defaults_value) return STATUS_OK;
    p->defaults.defaults = p->defaults.object = defaults_value;
    TRY(json_object_open(&shared, in, defaults_value, "an object", err));
    TRY(json_rename_keys(in, defaults_value, synonyms, ARRAY_COUNT(synonyms), err));
    TRY(job_draft_read(&shared, &p->defaults, err));
    return json_object_close(&shared, err) ? add_hints(defaults_value, err) : STATUS_OK;
}

static enum status fail_empty(const struct json_input *in, const json_t *value, struct error *err)
{
    return json_fail_key(in, value, "jobs", err, "'jobs' is empty (expected at least one job)");
}

static enum status parse_set(struct parsing *p, const struct json_input *in, const json_t *value, struct error *err)
{
    const json_t *array = NULL;
    TRY(parse_head(p, in, value, &array, err));
    if (json_array_size(array) == 0) return fail_empty(in, value, err);
    for (size_t i = 0; i < json_array_size(array); i++) {
        struct json_object object;
        TRY(json_object_open_at(&object, in, array, i, "a job object", err));
        TRY(parse_job(p, &object, i, err));
    }
    return STATUS_OK;
}

static enum status keep(struct parsing *p, enum status status, struct job_set *out, struct error *err)
{
    struct job *jobs;
    if (status == STATUS_OK)
        status = ARENA_NEW(&out->arena, p->set.count, jobs, err);
    if (status == STATUS_OK) {
        memcpy(jobs, p->set.jobs, p->set.count * sizeof *p->set.jobs);
        out->jobs = jobs;
        out->count = (uint32_t)p->set.count;
    }
    free(p->set.jobs);
    free(p->set.names.cells);
    free(p->set.outputs.cells);
    return status;
}

enum status job_set_parse(const struct json_input *in, const json_t *value, const char *folder,
                          struct job_set *out, struct error *err)
{
    struct parsing p = {.folder = folder, .arena = &out->arena};
    return keep(&p, parse_set(&p, in, value, err), out, err);
}

/* --- a file of any length -------------------------------------------------------------------- */

static enum status parse_element(struct parsing *p, const struct json_stream *stream,
                                 const struct json_element *element, struct error *err)
{
    struct json_object object;
    struct json_input *in = NULL;
    TRY(json_stream_parse(stream, element, &in, err));
    enum status status = json_object_open(&object, in, json_input_root(in), "a job object", err);
    if (status == STATUS_OK) status = parse_job(p, &object, element->index, err);
    json_input_destroy(in);
    return status;
}

/* Parses one job at a time. */
static enum status parse_stream(struct parsing *p, struct json_stream *stream, struct error *err)
{
    const struct json_input *head = json_stream_head(stream);
    const json_t *array = NULL;
    struct json_element element;
    bool more = true;
    TRY(parse_head(p, head, json_input_root(head), &array, err));
    TRY(json_stream_begin(stream, 0, err));
    for (;;) {
        TRY(json_stream_next(stream, &element, &more, err));
        if (!more) break;
        TRY(parse_element(p, stream, &element, err));
    }
    return p->set.count > 0 ? STATUS_OK : fail_empty(head, json_input_root(head), err);
}

static enum status read_set(const char *path, const char *folder, struct job_set *out, struct error *err)
{
    static const char *const long_arrays[] = {"jobs", NULL};
    struct parsing p = {.folder = folder, .arena = &out->arena};
    struct json_stream *stream = NULL;
    TRY(json_stream_open(path, long_arrays, &stream, err));
    enum status status = keep(&p, parse_stream(&p, stream, err), out, err);
    json_stream_close(stream);
    return status;
}

enum status job_set_read(const char *path, struct job_set *out, struct error *err)
{
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 1;
    char *folder = alloc_zeroed(length + 2, 1);
    if (!folder) return error_memory(err, "a folder's name", length + 2);
    memcpy(folder, !slash ? "." : length > 0 ? path : "/", length > 0 ? length : 1);
    enum status status = read_set(path, folder, out, err);
    free(folder);
    return status;
}
