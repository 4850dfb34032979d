/*
 * Reads jobs.json; job_write.c writes it.
 *
 * The same function reads a job twice: first from "defaults", then from the job's own object. Both times every key is
 * optional; required keys are checked afterwards, and an error about a value gives the position in the object that
 * has it.
 *
 * With "count", one object makes several jobs that differ in name and seed. They would all write the same file at the
 * end, so weights_out must then contain "{name}". Two jobs with the same output are an error, since the second would
 * destroy the result of the first.
 *
 * Paths are made absolute here, because a plan may be carried out from another folder. Existing data files are opened
 * for their first bytes only: llm.c's .bin begins with a magic number while nanoGPT's holds bare tokens. Files of
 * other formats are refused (models/jobs/data_file.h), because a network would be trained on the bytes of their
 * encoding. Bytes of a text are tokens only for networks of at most DATA_BYTE_VOCABULARY_MAX tokens, unless the job
 * says "tokens": "bytes".
 */
#include "models/job/job.h"

#include <assert.h>
#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/files/path.h"
#include "base/json/json_rename.h"
#include "base/json/json_stream.h"
#include "base/size.h"
#include "base/text.h"
#include "base/try.h"
#include "models/jobs/data_file.h"
#include "models/jobs/job_devices.h"
#include "models/jobs/job_keys.h"
#include "models/jobs/job_names.h"
#include "models/job/learning_rate.h"
#include "models/job/memory.h"
#include "models/network/network_graph.h"
#include "models/network/network_t5.h"
#include "models/network/network_traits.h"

const char *const data_format_names[] = {
    [DATA_TEXT] = "text",
    [DATA_LLMC] = "llmc",
    [DATA_NANOGPT] = "nanogpt",
    [DATA_NONE] = "none",
    [DATA_CIFAR10] = "cifar10",
    [DATA_IMAGES] = "images",
};
static_assert(ARRAY_COUNT(data_format_names) == DATA_FORMAT_COUNT, "a name per format");

const char *const decay_rule_names[] = {[DECAY_MATRICES] = "matrices", [DECAY_ALL] = "all"};
static_assert(ARRAY_COUNT(decay_rule_names) == DECAY_RULE_COUNT, "a name per rule");

const char *const rate_schedule_names[] = {
    [RATE_CONSTANT] = "constant", [RATE_LINEAR] = "linear", [RATE_COSINE] = "cosine"};
static_assert(ARRAY_COUNT(rate_schedule_names) == RATE_SCHEDULE_COUNT, "a name per schedule");

/* --- paths ---------------------------------------------------------------------------------- */

/* Returns true when the file begins with llm.c's magic; false also when it cannot be read. */
static bool begins_as_llmc(const char *path)
{
    enum { MAGIC_GPT2 = 20240520, MAGIC_LLAMA3 = 20240801 };
    struct stat info;
    unsigned char bytes[4] = {0};
    int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* a pipe must not hold us up */
    if (file < 0) return false;
    bool whole = fstat(file, &info) == 0 && S_ISREG(info.st_mode) &&
                 read(file, bytes, sizeof bytes) == (ssize_t)sizeof bytes;
    close(file);
    uint32_t magic = (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
                     (uint32_t)bytes[3] << 24;
    return whole && (magic == MAGIC_GPT2 || magic == MAGIC_LLAMA3);
}

static bool is_cifar10(const struct network *network)
{
    return network->channels == 3 && network->image == 32;
}

static bool reads_images(const struct network *network)
{
    return network->family == NETWORK_VIT || network->family == NETWORK_CNN;
}

static uint32_t guess_format(const struct job *job, const char *path)
{
    const struct network *network = &job->network;
    if (reads_images(network)) return is_cifar10(network) ? DATA_CIFAR10 : DATA_IMAGES;
    if (!text_ends_in(path, ".bin") || job->byte_tokens) return DATA_TEXT;
    return begins_as_llmc(path) ? DATA_LLMC : DATA_NANOGPT;
}

/* --- batches -------------------------------------------------------------------------------- */

uint64_t job_batch_bytes(const struct job *job)
{
    const struct network *n = &job->network;
    if (network_traits(n)->decoder) return job_samples(job) * (network_tokens(n, job->sequence) + 1) * sizeof(int32_t);
    if (n->family == NETWORK_BERT) return job_samples(job) * 3 * job->sequence * sizeof(int32_t);
    if (network_is_listed(n)) return 0;
    return job_samples(job) * (1 + n->channels * n->image * n->image) * sizeof(float);
}

/* --- one job, as typed ---------------------------------------------------------------------- */

/* A job as given in the file, before it is checked and its paths are resolved. */
struct job_draft {
    const struct json_input *in;
    const json_t *object, *defaults; /* the job's own and the shared one; the latter may be NULL */
    const char *name;                /* NULL: by number */
    const json_t *network;
    const char *data, *weights_in, *weights_out; /* NULL: not given */
    const char *held_out;            /* "data" of "evaluate", likewise */
    bool has_format, has_held_out_format;
    const json_t *devices;           /* likewise */
    uint64_t decoder_sequence;       /* 0: not given */
    uint64_t image;                  /* pixels of a side; 0: the network's */
    uint64_t count;                  /* 0: not given */
    struct job job;                  /* numbers; sequence 0: not given */
};

static const struct job_draft empty_draft = {
    .job = {.microbatch = 1,
            .microbatches = 1,
            .seed = 1,
            .data_format = DATA_NONE,
            .optimizer = {.kind = OPTIMIZER_ADAMW,
                          .learning_rate = 3e-4,
                          .beta1 = 0.9,
                          .beta2 = 0.999,
                          .epsilon = 1e-8},
            .evaluation = {.minibatches = 8, .data_format = DATA_NONE}},
};

/* Returns the object that has `key`, for the position in a message. */
static const json_t *giver(const struct job_draft *draft, const char *key)
{
    if (json_object_get(draft->object, key) || !draft->defaults) return draft->object;
    return json_object_get(draft->defaults, key) ? draft->defaults : draft->object;
}

/* The kinds named in files; sgd with momentum is a separate kind only internally. */
enum { FILE_KINDS = OPTIMIZER_MOMENTUM };
static_assert(FILE_KINDS + 1 == OPTIMIZER_COUNT, "momentum comes after the kinds of files");

size_t optimizer_file_kind(const struct job_optimizer *optimizer)
{
    return optimizer->kind == OPTIMIZER_MOMENTUM ? OPTIMIZER_SGD : optimizer->kind;
}

/* Resets inherited values that the kind does not use: momentum belongs only to sgd, and sgd without momentum has no
 * moments. */
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

/* Takes the keys that a job and "defaults" share. */
static enum status read_shared(struct json_object *o, struct job_draft *draft, struct error *err)
{
    struct job *job = &draft->job;
    size_t format = job->data_format, keep = job->keep_best, tokens = 0;
    static const char *const keeps[] = {"last", "best"}, *const token_kinds[] = {"bytes"};
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
    TRY(json_take_u64(o, "minibatches", JSON_OPTIONAL, 1, JOB_MINIBATCHES_MAX, &job->minibatches,
                      err));
    TRY(json_take_u64(o, "first_minibatch", JSON_OPTIONAL, 0, JOB_MINIBATCHES_MAX,
                      &job->first_minibatch, err));
    TRY(precision_read(o, "precision", PRECISION_COUNT, &job->precision, err));
    TRY(precision_read(o, "gradients", PRECISION_NUMBERS, &job->gradients, err));
    TRY(read_optimizer(o, &job->optimizer, err));
    TRY(json_take_u64(o, "seed", JSON_OPTIONAL, 0, JOB_SEED_MAX, &job->seed, err));
    TRY(json_take_string(o, "data", JSON_OPTIONAL, &draft->data, err));
    draft->has_format = json_has(o, "data_format") || draft->has_format;
    TRY(json_take_choice(o, "data_format", JSON_OPTIONAL, data_format_names, DATA_FORMAT_COUNT,
                         &format, err));
    job->data_format = (uint32_t)format;
    TRY(json_take_choice(o, "tokens", JSON_OPTIONAL, token_kinds, ARRAY_COUNT(token_kinds), &tokens, err));
    job->byte_tokens = json_has(o, "tokens") || job->byte_tokens;
    TRY(json_take_string(o, "weights_in", JSON_OPTIONAL, &draft->weights_in, err));
    TRY(json_take_string(o, "weights_out", JSON_OPTIONAL, &draft->weights_out, err));
    TRY(read_evaluation(o, draft, err));
    TRY(read_parallel(o, draft, err));
    TRY(json_take_array(o, "devices", JSON_OPTIONAL, &draft->devices, err));
    TRY(read_compression(o, draft, err));
    TRY(json_take_choice(o, "keep", JSON_OPTIONAL, keeps, ARRAY_COUNT(keeps), &keep, err));
    job->keep_best = keep == 1;
    return json_take_u64(o, "count", JSON_OPTIONAL, 1, JOBS_MAX, &draft->count, err);
}

static enum status check_name(const struct job_draft *draft, struct error *err)
{
    const char *name = draft->name;
    bool good = isalnum((unsigned char)name[0]) && strlen(name) <= JOB_NAME_MAX;
    for (const char *c = name; *c && good; c++)
        good = isalnum((unsigned char)*c) || strchr("-_.", *c);
    if (good) return STATUS_OK;
    return json_fail_key(draft->in, draft->object, "name", err,
                         "bad job name '%.120s' (expected at most %d letters, digits, '-', '_' "
                         "and '.', beginning with a letter or digit)",
                         name, JOB_NAME_MAX);
}

/* --- checks --------------------------------------------------------------------------------- */

/* Returns an upper bound, in floating point, of the bytes of all activations of a minibatch: each of its terms
 * exceeds the layout of models/job/memory.c. */
static double bytes_bound(const struct job *job)
{
    const struct network *n = &job->network;
    double tokens = (double)network_tokens(n, job->sequence), rows = (double)job_samples(job) * tokens;
    double inner = (double)n->heads * (double)n->head_width;
    double chosen = (double)network_chosen(n);
    double row_words = (6 + 2 * chosen) * (double)n->width + 10 * inner + 4 * chosen * (double)n->ff_width +
                       4 * (double)n->shared_width + 4 * (double)n->word_width +
                       3 * (double)n->heads + (double)n->experts + (double)n->vocabulary + (double)n->classes + 64 +
                       (double)n->channels * (double)n->patch * (double)n->patch;
    double listed_bytes = 0, share = n->profile_samples > 0 ? (double)job->microbatch / (double)n->profile_samples : 1;
    for (uint64_t i = 0; n->profile && i < n->layer_count; i++)
        listed_bytes += share * (double)n->profile[i].activation_bytes;
    for (uint32_t i = 0; n->graph && i < n->graph->op_count; i++) /* the result, and values noted with it */
        listed_bytes += 2 * sizeof(float) * rows *
                        (double)graph_elements(n->graph, i, 1);
    double scores = 2.0 * MEMORY_ATTENTION_LANES * MEMORY_ATTENTION_TILE * tokens;
    double copies = rows * (4 * inner + (double)n->heads); /* of an attention that rounds */
    return listed_bytes + MEMORY_LIBRARY_BYTES_MAX +
           ((double)n->layer_count * rows * row_words + scores + copies) * sizeof(float);
}

static enum status check_sizes(const struct job_draft *draft, struct error *err)
{
    const struct job *job = &draft->job;
    const struct network *n = &job->network;
    uint64_t tokens = network_tokens(n, job->sequence);
    if (network_is_limited(n) && job->sequence > n->positions)
        return json_fail_key(draft->in, giver(draft, "sequence"), "sequence", err,
                             "'sequence' %" PRIu64 " is longer than the %" PRIu64
                             " positions of network '%s'",
                             job->sequence, n->positions, n->name);
    uint64_t samples = job_samples(job);
    const char *key = job->microbatches > 1 ? "microbatches" : "microbatch";
    if (samples > JOB_ROWS_MAX || samples * tokens > JOB_ROWS_MAX)
        return json_fail_key(draft->in, giver(draft, key), key, err,
                             "%" PRIu64 " samples of %" PRIu64
                             " tokens are too many for one minibatch (limit is %" PRIu64 " tokens)",
                             samples, tokens, JOB_ROWS_MAX);
    if (bytes_bound(job) > (double)JOB_BYTES_MAX)
        return json_fail_key(draft->in, giver(draft, key), key, err,
                             "the activations of one minibatch are too large (limit is %" PRIu64
                             " bytes)",
                             JOB_BYTES_MAX);
    return STATUS_OK;
}

static enum status check_schedule(const struct job_draft *draft, struct error *err)
{
    const struct job *job = &draft->job;
    uint64_t warmup = job->optimizer.schedule.warmup, end = job->first_minibatch + job->minibatches;
    uint64_t steps = learning_rate_steps(job);
    if (steps < end)
        return json_fail_key(draft->in, giver(draft, "optimizer"), "optimizer", err,
                             "the learning rate's schedule has %" PRIu64 " steps (expected at least the %" PRIu64
                             " of the job)",
                             steps, end);
    if (warmup <= steps) return STATUS_OK;
    return json_fail_key(draft->in, giver(draft, "optimizer"), "optimizer", err,
                         "the learning rate warms up for %" PRIu64 " steps (expected at most the %"
                         PRIu64 " of the job)",
                         warmup, steps);
}

/* Checks the precision: a profile already has the precision of its measurement, and operations are fp32. */
static enum status check_precision(const struct job_draft *draft, struct error *err)
{
    const struct network *n = &draft->job.network;
    if (draft->job.precision == PRECISION_FP32 || !network_is_listed(n)) return STATUS_OK;
    return json_fail_key(draft->in, giver(draft, "precision"), "precision", err,
                         "'precision' is '%s' but network '%s' is known %s only (expected %s)",
                         precision_names[draft->job.precision], n->name, n->graph ? "in fp32" : "by measurement",
                         precision_names[PRECISION_FP32]);
}

/* Checks clipping. The gradient of an embedding that is more than tables of rows is made and applied at once. */
static enum status check_clip(const struct job_draft *draft, struct error *err)
{
    const struct network *n = &draft->job.network;
    if (!job_clips(&draft->job) || network_has_plain_tables(n)) return STATUS_OK;
    const json_t *own = json_object_get(draft->object, "optimizer");
    if (!json_object_get(own, "clip")) own = json_object_get(draft->defaults, "optimizer");
    return json_fail_key(draft->in, own, "clip", err,
                         "'clip' does not support networks of family '%s' yet (expected gpt2 or llama)",
                         network_family_names[n->family]);
}

/* Data of a job or of its evaluations, and the objects that named them, for the place in a message. */
struct named_data {
    const char *data, *path; /* as given, and absolute */
    uint32_t format;
    const json_t *data_giver, *format_giver;
};

static const char WANTED_DATA[] = "expected text, or tokens in a .bin file of llm.c or nanoGPT";

/* Checks that a text's bytes are meant to be the network's tokens. */
static enum status check_text(const struct job_draft *draft, const struct named_data *named, struct error *err)
{
    const struct network *n = &draft->job.network;
    bool masked = n->family == NETWORK_BERT;
    int needed = masked ? DATA_TEXT_MASK + 1 : DATA_TEXT_MASK;
    if (n->vocabulary < (uint64_t)needed)
        return json_fail_key(draft->in, named->data_giver, "data", err,
                             "text needs %d tokens, one for each byte%s, and network '%s' has %"
                             PRIu64,
                             needed, masked ? " and one for the mask" : "", n->name, n->vocabulary);
    if (draft->job.byte_tokens) return STATUS_OK;
    if (n->vocabulary > DATA_BYTE_VOCABULARY_MAX)
        return json_fail_key(draft->in, named->data_giver, "data", err,
                             "the bytes of '%s' would be tokens 0 to 255 of the %" PRIu64 " of network '%s' (expected "
                             "tokens in a .bin file of llm.c or nanoGPT, or \"tokens\": \"bytes\" if bytes are meant)",
                             named->data, n->vocabulary, n->name);
    const char *records = data_file_records(named->path);
    if (!records) return STATUS_OK;
    return json_fail_key(draft->in, named->data_giver, "data", err,
                         "'%s' holds %s by its name, and its bytes would be the tokens (%s, or \"tokens\": \"bytes\" "
                         "if bytes are meant)", named->data, records, WANTED_DATA);
}

/* Checks the first bytes of the file, if it is there. */
static enum status check_content(const struct job_draft *draft, const struct named_data *named, struct error *err)
{
    const char *foreign = data_file_foreign(named->path);
    if (!foreign) return STATUS_OK;
    bool images = reads_images(&draft->job.network);
    return json_fail_key(draft->in, named->data_giver, "data", err, "'%s' is %s (%s)", named->data, foreign,
                         images ? "expected records of labels and pixels, as CIFAR-10's binary batches" : WANTED_DATA);
}

/* Checks that the network can read data of this format. */
static enum status check_format(const struct job_draft *draft, const struct named_data *named,
                                struct error *err)
{
    const struct network *n = &draft->job.network;
    if (n->family == NETWORK_PROFILE || named->format == DATA_NONE) return STATUS_OK;
    bool images = named->format == DATA_CIFAR10 || named->format == DATA_IMAGES;
    if (images != reads_images(n))
        return json_fail_key(draft->in, named->format_giver, "data_format", err,
                             "'data_format' is '%s' but network '%s' reads %s",
                             data_format_names[named->format], n->name,
                             images ? "text (expected text, llmc, nanogpt or none)"
                                    : "images (expected cifar10, images or none)");
    if (named->format == DATA_CIFAR10 && !is_cifar10(n))
        return json_fail_key(draft->in, named->format_giver, "data_format", err,
                             "cifar10 has images of 3 x 32 x 32 pixels, and network '%s' takes %"
                             PRIu64 " x %" PRIu64 " x %" PRIu64 " (expected data_format images)",
                             n->name, n->channels, n->image, n->image);
    if (named->format == DATA_TEXT) TRY(check_text(draft, named, err));
    return check_content(draft, named, err);
}

static enum status check_data(const struct job_draft *draft, const struct named_data *named,
                              struct error *err)
{
    if (named->data && named->format == DATA_NONE)
        return json_fail_key(draft->in, named->format_giver, "data_format", err,
                             "'data_format' is 'none' but 'data' names a file");
    if (!named->data && named->format != DATA_NONE)
        return json_fail_key(draft->in, named->format_giver, "data_format", err,
                             "'data_format' is '%s' but there is no 'data'",
                             data_format_names[named->format]);
    if (named->data && draft->job.byte_tokens && named->format != DATA_TEXT)
        return json_fail_key(draft->in, giver(draft, "tokens"), "tokens", err,
                             "'tokens' is 'bytes' but the format of '%s' is '%s' (expected text)", named->data,
                             data_format_names[named->format]);
    return check_format(draft, named, err);
}

static enum status check_training_data(const struct job_draft *draft, struct error *err)
{
    const struct named_data named = {draft->data, draft->job.data, draft->job.data_format, giver(draft, "data"),
                                     giver(draft, "data_format")};
    return check_data(draft, &named, err);
}

static enum status check_parallel(const struct job_draft *draft, struct error *err)
{
    struct error own = {0};
    if (parallel_check(&draft->job, &own) == STATUS_OK) return STATUS_OK;
    return json_fail_key(draft->in, giver(draft, "parallel"), "parallel", err, "%s", own.text);
}

static enum status check_evaluation(const struct job_draft *draft, struct error *err)
{
    const struct job *job = &draft->job;
    const struct job_evaluation *e = &job->evaluation;
    if (job->keep_best && (e->every == 0 || !draft->weights_out))
        return json_fail_key(draft->in, giver(draft, "keep"), "keep", err,
                             "'keep' is 'best' but there is no '%s'",
                             e->every == 0 ? "evaluate" : "weights_out");
    if (e->every == 0) return STATUS_OK;
    if (job->network.family == NETWORK_PROFILE)
        return json_fail_key(draft->in, giver(draft, "evaluate"), "evaluate", err,
                             "network '%s' is known by measurement only and has no loss",
                             job->network.name);
    const json_t *own = json_object_get(giver(draft, "evaluate"), "evaluate");
    const struct named_data named = {draft->held_out, e->data, e->data_format, own, own};
    return check_data(draft, &named, err);
}

/* --- from draft to jobs --------------------------------------------------------------------- */

static enum status find_network(struct job_draft *draft, const char *folder, struct arena *arena,
                                struct error *err)
{
    struct network *out = &draft->job.network;
    if (json_is_object(draft->network))
        return network_parse(draft->in, draft->network, "network", arena, out, err);
    const json_t *from = giver(draft, "network");
    const char *text = json_string_value(draft->network), *path;
    if (!text)
        return json_fail_key(draft->in, from, "network", err,
                             "'network' is neither a name or path nor an object");
    TRY(path_absolute(folder, text, arena, &path, err));
    return network_read_text(draft->in, from, text, path, arena, out, err);
}

static enum status resize_image(struct job_draft *draft, struct arena *arena, struct error *err)
{
    struct network *n = &draft->job.network;
    struct error own = {0};
    if (draft->image == 0 || (n->image == draft->image && reads_images(n))) return STATUS_OK;
    enum status status = network_for_image(n, draft->image, arena, n, &own);
    if (status == STATUS_BAD_INPUT)
        return json_fail_key(draft->in, giver(draft, "image_size"), "image_size", err, "%s", own.text);
    if (status) *err = own;
    return status;
}

/* Takes "decoder_sequence". A value in "defaults" applies only to networks with an encoder. */
static enum status set_decoder(struct job_draft *draft, struct error *err)
{
    struct error own = {0};
    bool shared = !json_object_get(draft->object, "decoder_sequence");
    if (draft->decoder_sequence == 0) return STATUS_OK;
    if (network_set_decoder(&draft->job.network, draft->job.sequence, draft->decoder_sequence, &own) == STATUS_OK || shared)
        return STATUS_OK;
    return json_fail_key(draft->in, draft->object, "decoder_sequence", err, "%s", own.text);
}

static enum status settle_batch(struct job_draft *draft, struct error *err)
{
    struct error own = {0};
    const char *key = job_batch_key(&draft->job.batch);
    if (job_batch_settle(&draft->job, &own) == STATUS_OK) return STATUS_OK;
    return json_fail_key(draft->in, giver(draft, key), key, err, "%s", own.text);
}

static enum status resolve(struct job_draft *draft, const char *folder, struct arena *arena,
                           struct error *err)
{
    struct job *job = &draft->job;
    TRY(find_network(draft, folder, arena, err));
    TRY(resize_image(draft, arena, err));
    if (job->network.family == NETWORK_VIT)
        job->sequence = network_tokens(&job->network, 0);
    else if (job->sequence == 0 || job->network.family == NETWORK_CNN)
        job->sequence = network_is_listed(&job->network) ? 1 : job->network.positions;
    TRY(set_decoder(draft, err));
    if (draft->data) {
        TRY(path_absolute(folder, draft->data, arena, &job->data, err));
        if (!draft->has_format) job->data_format = guess_format(job, job->data);
    }
    if (draft->weights_in)
        TRY(path_absolute(folder, draft->weights_in, arena, &job->weights_in, err));
    if (draft->weights_out)
        TRY(path_absolute(folder, draft->weights_out, arena, &job->weights_out, err));
    if (draft->held_out) {
        TRY(path_absolute(folder, draft->held_out, arena, &job->evaluation.data, err));
        if (!draft->has_held_out_format)
            job->evaluation.data_format = draft->has_format && job->data_format != DATA_NONE
                                              ? job->data_format
                                              : guess_format(job, job->evaluation.data);
    }
    TRY(settle_batch(draft, err));
    TRY(check_schedule(draft, err));
    TRY(check_clip(draft, err));
    TRY(check_precision(draft, err));
    TRY(check_training_data(draft, err));
    TRY(check_evaluation(draft, err));
    TRY(check_sizes(draft, err));
    return check_parallel(draft, err);
}

/* weights_out with the job's name in place of each "{name}". */
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

/* Makes "a.best.safetensors" of "a.safetensors"; appends ".best" to any other name. */
static enum status name_best(const char *path, struct arena *arena, const char **out,
                             struct error *err)
{
    static const char ending[] = ".safetensors";
    char text[4 * PATH_MAX + sizeof ".best"];
    size_t stem = strlen(path);
    bool usual = text_ends_in(path, ending);
    if (usual) stem -= strlen(ending);
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
        return json_fail_key(draft->in, giver(draft, "weights_out"), "weights_out", err,
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

static enum status append(struct growing *set, const struct job_draft *draft, const char *name,
                          uint64_t seed, struct arena *arena, struct error *err)
{
    struct job job = draft->job;
    if (strlen(name) > JOB_NAME_MAX) /* with its number; check_name() saw it without */
        return json_fail_key(draft->in, draft->object, "name", err,
                             "the job name '%s' is too long (limit is %d)", name, JOB_NAME_MAX);
    job.seed = seed;
    TRY(arena_string(arena, name, &job.name, err));
    TRY(job_devices_read(draft->in, giver(draft, "devices"), draft->devices, arena, &job, err));
    if (job.weights_out) TRY(name_output(job.weights_out, name, arena, &job.weights_out, err));
    if (job.keep_best) TRY(name_best(job.weights_out, arena, &job.weights_best, err));
    TRY(check_unique(set, draft, &job, err));
    if (set->count == JOBS_MAX)
        return json_fail_key(draft->in, draft->object, NULL, err, "too many jobs (limit is %d)", JOBS_MAX);
    TRY(array_reserve(&set->jobs, &set->capacity, set->count, sizeof job, JOBS_MAX, "jobs", err));
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

/* Names of our keys in transformers, DeepSpeed, Megatron-LM, EleutherAI's calculators, llm-analysis and Calculon. The
 * values have the same form. */
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
};

/* The defaults of a file's jobs, and the set that they go to. */
struct parsing {
    struct job_draft defaults;
    const char *folder;
    struct arena *arena;
    struct growing set;
};

/* Reports required keys that neither the job nor the defaults have. */
static enum status close_job(struct json_object *object, const struct job_draft *draft, struct error *err)
{
    struct json_missing missing[2];
    size_t count = 0;
    if (!draft->network)
        missing[count++] = (struct json_missing){"network", "a name of 'spillway models list', or a config.json"};
    if (draft->job.minibatches == 0)
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
    TRY(read_shared(object, &draft, err));
    for (size_t i = 0; i < object->asked_count; i++) assert(has_row(object->asked[i])); /* a new key has its row:
                                                                                           job_keys.h */
    TRY(close_job(object, &draft, err));
    TRY(check_name(&draft, err));
    TRY(resolve(&draft, p->folder, p->arena, err));
    return append_all(&p->set, &draft, p->arena, err);
}

/* Everything but the jobs. */
static enum status parse_head(struct parsing *p, const struct json_input *in, const json_t *value, const json_t **array,
                              struct error *err)
{
    struct json_object object, shared;
    const json_t *defaults_value = NULL;
    uint64_t version;
    p->defaults = empty_draft;
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
    TRY(read_shared(&shared, &p->defaults, err));
    return json_object_close(&shared, err);
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

static enum status parse_element(struct parsing *p, const struct json_stream *stream, const struct json_element *element,
                                 struct error *err)
{
    struct json_object object;
    struct json_input *in = NULL;
    TRY(json_stream_parse(stream, element, &in, err));
    enum status status = json_object_open(&object, in, json_input_root(in), "a job object", err);
    if (status == STATUS_OK) status = parse_job(p, &object, element->index, err);
    json_input_destroy(in);
    return status;
}

/* One job at a time is parsed. */
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

void job_set_release(struct job_set *set)
{
    arena_release(&set->arena);
    *set = (struct job_set){0};
}
