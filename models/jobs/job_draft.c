/*
 * The same function reads "defaults", then the job's own object. Every key is optional; required ones are checked
 * afterwards.
 */
#include "models/jobs/job_draft.h"

#include <assert.h>
#include <string.h>

#include "base/size.h"
#include "base/try.h"

const struct job_draft job_draft_empty = {
    .job = {.microbatch = 1,
            .microbatches = 1,
            .seed = 1,
            .data_format = DATA_NONE,
            .optimizer = {.kind = OPTIMIZER_ADAMW,
                          .learning_rate = 3e-4,
                          .beta1 = 0.9,
                          .beta2 = 0.999,
                          .epsilon = 1e-8},
            .evaluation = {.minibatches = 8, .data_format = DATA_NONE, .share = 0.1, .split_seed = 1}},
};

const json_t *job_draft_giver(const struct job_draft *draft, const char *key)
{
    if (json_object_get(draft->object, key) || !draft->defaults) return draft->object;
    return json_object_get(draft->defaults, key) ? draft->defaults : draft->object;
}

/* In files sgd with momentum is no kind of its own. */
enum { FILE_KINDS = OPTIMIZER_MOMENTUM };
static_assert(FILE_KINDS + 1 == OPTIMIZER_COUNT, "momentum comes after the kinds of files");

/* Resets inherited values: momentum belongs to sgd, and sgd without it has no moments. */
static void set_kind(struct job_optimizer *out, size_t named)
{
    out->kind = named == OPTIMIZER_SGD && out->momentum > 0 ? OPTIMIZER_MOMENTUM : (uint32_t)named;
    if (optimizer_moments(out->kind) == 0) out->moments = PRECISION_FP32;
    if (out->kind == OPTIMIZER_MOMENTUM) return;
    out->momentum = 0;
    out->nesterov = false;
}

static enum status read_schedule(struct json_object *o, struct rate_schedule *out,
                                 struct error *err)
{
    size_t kind = out->kind;
    if (json_is_string(json_object_get(o->value, "schedule"))) {
        TRY(json_take_choice(o, "schedule", JSON_REQUIRED, rate_schedule_names, RATE_SCHEDULE_COUNT,
                             &kind, err));
        out->kind = (uint32_t)kind;
        return STATUS_OK;
    }
    const json_t *value = NULL;
    TRY(json_take_object(o, "schedule", JSON_OPTIONAL, &value, err));
    if (!value) return STATUS_OK;

    struct json_object inner;
    TRY(json_object_open(&inner, o->input, value, "a schedule object", err));
    TRY(json_take_choice(&inner, "kind", JSON_OPTIONAL, rate_schedule_names, RATE_SCHEDULE_COUNT,
                         &kind, err));
    TRY(json_take_u64(&inner, "warmup", JSON_OPTIONAL, 0, JOB_MINIBATCHES_MAX, &out->warmup, err));
    TRY(json_take_double(&inner, "floor", JSON_OPTIONAL, 0, 1, &out->floor, err));
    TRY(json_take_u64(&inner, "steps", JSON_OPTIONAL, 1, 2 * (uint64_t)JOB_MINIBATCHES_MAX, &out->steps, err));
    out->kind = (uint32_t)kind;
    return json_object_close(&inner, err);
}

static enum status read_optimizer(struct json_object *o, struct job_optimizer *out, struct error *err)
{
    size_t kind = optimizer_file_kind(out), decay = out->decay;
    uint32_t moments = out->moments;
    if (json_is_string(json_object_get(o->value, "optimizer"))) {
        TRY(json_take_choice(o, "optimizer", JSON_REQUIRED, optimizer_names, FILE_KINDS, &kind, err));
        set_kind(out, kind);
        return STATUS_OK;
    }
    const json_t *value = NULL;
    TRY(json_take_object(o, "optimizer", JSON_OPTIONAL, &value, err));
    if (!value) return STATUS_OK;

    const double below_one = 0x1.fffffffffffffp-1, rate_max = 1e6;
    struct json_object inner;
    TRY(json_object_open(&inner, o->input, value, "an optimizer object", err));
    TRY(json_take_choice(&inner, "kind", JSON_OPTIONAL, optimizer_names, FILE_KINDS, &kind, err));
    TRY(json_take_double(&inner, "lr", JSON_OPTIONAL, 0, rate_max, &out->learning_rate, err));
    TRY(json_take_double(&inner, "weight_decay", JSON_OPTIONAL, 0, rate_max, &out->weight_decay,
                         err));
    TRY(json_take_double(&inner, "beta1", JSON_OPTIONAL, 0, below_one, &out->beta1, err));
    TRY(json_take_double(&inner, "beta2", JSON_OPTIONAL, 0, below_one, &out->beta2, err));
    TRY(json_take_double(&inner, "epsilon", JSON_OPTIONAL, 0, rate_max, &out->epsilon, err));
    TRY(json_take_choice(&inner, "decay", JSON_OPTIONAL, decay_rule_names, DECAY_RULE_COUNT, &decay,
                         err));
    TRY(json_take_double(&inner, "momentum", JSON_OPTIONAL, 0, below_one, &out->momentum, err));
    TRY(json_take_bool(&inner, "nesterov", JSON_OPTIONAL, &out->nesterov, err));
    TRY(precision_read(&inner, "moments", PRECISION_NUMBERS, &moments, err));
    TRY(json_take_double(&inner, "clip", JSON_OPTIONAL, 0, 1e30, &out->clip, err));
    TRY(read_schedule(&inner, &out->schedule, err));
    TRY(json_object_close(&inner, err));
    out->decay = (uint32_t)decay;
    if (json_has(&inner, "momentum") && out->momentum > 0 && kind != OPTIMIZER_SGD)
        return json_fail_key(o->input, value, "momentum", err, "'momentum' needs sgd (found %s)",
                             optimizer_names[kind]);
    const bool nesterov = json_has(&inner, "nesterov") && out->nesterov;
    out->moments = moments;
    set_kind(out, kind);
    if (json_has(&inner, "moments") && moments != PRECISION_FP32 && optimizer_moments(out->kind) == 0)
        return json_fail_key(o->input, value, "moments", err,
                             "'moments' needs an optimizer that has some (found sgd without momentum)");
    if (nesterov && out->kind != OPTIMIZER_MOMENTUM)
        return json_fail_key(o->input, value, "nesterov", err,
                             "'nesterov' needs sgd with a 'momentum' above 0");
    if (out->learning_rate > 0) return STATUS_OK;
    return json_fail_key(o->input, value, "lr", err, "'lr' is 0 (expected more than 0)");
}

static enum status read_evaluation(struct json_object *o, struct job_draft *draft, struct error *err)
{
    struct job_evaluation *out = &draft->job.evaluation;
    const json_t *value = NULL;
    size_t format = out->data_format;
    TRY(json_take_object(o, "evaluate", JSON_OPTIONAL, &value, err));
    if (!value) return STATUS_OK;

    struct json_object inner;
    TRY(json_object_open(&inner, o->input, value, "an evaluation object", err));
    TRY(json_take_u64(&inner, "every", JSON_OPTIONAL, 1, JOB_MINIBATCHES_MAX, &out->every, err));
    TRY(json_take_u64(&inner, "minibatches", JSON_OPTIONAL, 1, JOB_EVALUATION_MINIBATCHES_MAX,
                      &out->minibatches, err));
    TRY(json_take_string(&inner, "data", JSON_OPTIONAL, &draft->held_out, err));
    draft->has_held_out_format = json_has(&inner, "data_format") || draft->has_held_out_format;
    TRY(json_take_choice(&inner, "data_format", JSON_OPTIONAL, data_format_names, DATA_FORMAT_COUNT,
                         &format, err));
    out->data_format = (uint32_t)format;
    const double least = 0x1p-40, most = 0x1.fffffffffffffp-1;
    draft->divides_rows = json_has(&inner, "share") || json_has(&inner, "split_seed") || draft->divides_rows;
    TRY(json_take_double(&inner, "share", JSON_OPTIONAL, least, most, &out->share, err));
    TRY(json_take_u64(&inner, "split_seed", JSON_OPTIONAL, 0, JOB_SEED_MAX, &out->split_seed, err));
    TRY(json_object_close(&inner, err));
    if (out->every > 0) return STATUS_OK;
    return json_fail_key(o->input, value, NULL, err, "missing key 'every'");
}

static enum status read_parallel(struct json_object *o, struct job_draft *draft, struct error *err)
{
    const json_t *value = NULL;
    TRY(json_take_object(o, "parallel", JSON_OPTIONAL, &value, err));
    return value ? parallel_parse(o->input, value, &draft->job.parallel, err) : STATUS_OK;
}

static enum status read_compression(struct json_object *o, struct job_draft *draft, struct error *err)
{
    const json_t *value = NULL;
    TRY(json_take_object(o, "compression", JSON_OPTIONAL, &value, err));
    return value ? compression_parse(o->input, value, draft->job.compression, err) : STATUS_OK;
}

/* Takes the length, in minibatches or in epochs: the job's replaces that of "defaults". */
static enum status read_length(struct json_object *o, struct job_draft *draft, struct error *err)
{
    const double least = 1e-6, most = 1e6;
    const bool epochs = json_has(o, "epochs"), minibatches = json_has(o, "minibatches");
    if (epochs) draft->job.minibatches = 0;
    if (minibatches) draft->epochs = 0;
    draft->has_two_lengths = (epochs && minibatches) || (draft->has_two_lengths && !epochs && !minibatches);
    TRY(json_take_double(o, "epochs", JSON_OPTIONAL, least, most, &draft->epochs, err));
    return json_take_u64(o, "minibatches", JSON_OPTIONAL, 1, JOB_MINIBATCHES_MAX, &draft->job.minibatches, err);
}

static enum status read_sum(struct json_object *o, struct job *job, struct error *err)
{
    size_t sum = job->tree ? SUM_TREE : SUM_IN_ORDER;
    TRY(json_take_choice(o, "sum", JSON_OPTIONAL, sum_order_names, SUM_ORDER_COUNT, &sum, err));
    job->tree = sum == SUM_TREE;
    return STATUS_OK;
}

static enum status read_rows(struct json_object *o, struct job *job, struct error *err)
{
    static const char *const ways[] = {"cut", "skip"};
    size_t way = job->skips_long;
    TRY(json_take_bool(o, "packing", JSON_OPTIONAL, &job->packs, err));
    TRY(json_take_choice(o, "long_rows", JSON_OPTIONAL, ways, ARRAY_COUNT(ways), &way, err));
    job->skips_long = way == 1;
    return STATUS_OK;
}

/* Takes values that are read later; those of "defaults" stay where the job has none. */
static enum status read_values(struct json_object *o, struct job_draft *draft, struct error *err)
{
    const json_t *devices = NULL, *freeze = NULL, *adapter = NULL, *normalize = NULL;
    TRY(json_take_array(o, "devices", JSON_OPTIONAL, &devices, err));
    TRY(json_take_object(o, "freeze", JSON_OPTIONAL, &freeze, err));
    TRY(json_take_object(o, "adapter", JSON_OPTIONAL, &adapter, err));
    TRY(json_take_object(o, "normalize", JSON_OPTIONAL, &normalize, err));
    if (devices) draft->devices = devices;
    if (freeze) draft->freeze = freeze;
    if (adapter) draft->adapter = adapter;
    if (normalize) draft->normalize = normalize;
    return STATUS_OK;
}

enum status job_draft_read(struct json_object *o, struct job_draft *draft, struct error *err)
{
    struct job *job = &draft->job;
    size_t format = job->data_format, keep = draft->hands_best_on ? 2 : job->keep_best, tokens = 0;
    static const char *const keeps[] = {"last", "best", "best-so-far"}, *const token_kinds[] = {"bytes"};
    if (json_has(o, "network")) draft->network = json_object_get(o->value, "network");
    TRY(json_take_u64(o, "sequence", JSON_OPTIONAL, 1, NETWORK_POSITIONS_MAX, &job->sequence,
                      err));
    TRY(json_take_u64(o, "decoder_sequence", JSON_OPTIONAL, 1, NETWORK_POSITIONS_MAX, &draft->decoder_sequence, err));
    TRY(json_take_u64(o, "image_size", JSON_OPTIONAL, 1, NETWORK_IMAGE_MAX, &draft->image, err));
    TRY(json_take_u64(o, "microbatch", JSON_OPTIONAL, 1, JOB_MICROBATCH_MAX, &job->microbatch,
                      err));
    TRY(json_take_u64(o, "microbatches", JSON_OPTIONAL, 1, JOB_MICROBATCH_MAX,
                      &job->microbatches, err));
    TRY(job_batch_read(o, &job->batch, err));
    TRY(read_length(o, draft, err));
    TRY(json_take_u64(o, "first_minibatch", JSON_OPTIONAL, 0, JOB_MINIBATCHES_MAX,
                      &job->first_minibatch, err));
    const char *precision = json_string_value(json_object_get(o->value, "precision"));
    if (precision) job->tf32 = precision_is_tf32(precision);
    TRY(precision_read(o, "precision", PRECISION_COUNT, &job->precision, err));
    TRY(precision_read(o, "gradients", PRECISION_NUMBERS, &job->gradients, err));
    TRY(read_sum(o, job, err));
    TRY(read_optimizer(o, &job->optimizer, err));
    bool drops = !draft->drops_nothing;
    TRY(json_take_bool(o, "dropout", JSON_OPTIONAL, &drops, err));
    draft->drops_nothing = !drops;
    TRY(json_take_u64(o, "seed", JSON_OPTIONAL, 0, JOB_SEED_MAX, &job->seed, err));
    TRY(json_take_string(o, "data", JSON_OPTIONAL, &draft->data, err));
    draft->has_format = json_has(o, "data_format") || draft->has_format;
    TRY(json_take_choice(o, "data_format", JSON_OPTIONAL, data_format_names, DATA_FORMAT_COUNT,
                         &format, err));
    job->data_format = (uint32_t)format;
    TRY(json_take_choice(o, "tokens", JSON_OPTIONAL, token_kinds, ARRAY_COUNT(token_kinds), &tokens, err));
    job->byte_tokens = json_has(o, "tokens") || job->byte_tokens;
    TRY(read_rows(o, job, err));
    TRY(json_take_string(o, "weights_in", JSON_OPTIONAL, &draft->weights_in, err));
    TRY(json_take_string(o, "weights_out", JSON_OPTIONAL, &draft->weights_out, err));
    TRY(read_evaluation(o, draft, err));
    TRY(read_parallel(o, draft, err));
    TRY(read_values(o, draft, err));
    TRY(json_take_string(o, "base", JSON_OPTIONAL, &job->base, err));
    TRY(read_compression(o, draft, err));
    const char *kept = json_string_value(json_object_get(o->value, "keep"));
    const size_t keep_count = kept && strcmp(kept, keeps[2]) == 0 ? 3 : 2; /* the last one is only in plans */
    TRY(json_take_choice(o, "keep", JSON_OPTIONAL, keeps, keep_count, &keep, err));
    job->keep_best = keep > 0;
    draft->hands_best_on = keep == 2;
    return json_take_u64(o, "count", JSON_OPTIONAL, 1, JOB_COUNT_MAX, &draft->count, err);
}
