/*
 * Files of other formats (models/jobs/data_file.h) are refused: a network would be trained on their encoding. Bytes of
 * a text are tokens only for networks of at most DATA_BYTE_VOCABULARY_MAX tokens, unless the job says "tokens":
 * "bytes".
 */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "base/try.h"
#include "models/job/learning_rate.h"
#include "models/jobs/data_file.h"
#include "models/jobs/job_draft.h"
#include "models/jobs/job_rows.h"
#include "models/network/network_graph.h"
#include "models/network/network_traits.h"

enum status job_draft_check_name(const struct job_draft *draft, struct error *err)
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

/* Bounds the bytes of a minibatch's activations in floating point: each term exceeds models/job/memory.c's. */
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
    for (uint32_t i = 0; n->graph && i < n->graph->op_count; i++) /* with noted values */
        listed_bytes += 2 * sizeof(float) * rows *
                        (double)graph_elements(n->graph, i, 1);
    double scores = 2.0 * MEMORY_ATTENTION_LANES * MEMORY_ATTENTION_TILE * tokens;
    double copies = rows * (4 * inner + (double)n->heads); /* attention that rounds */
    return listed_bytes + MEMORY_LIBRARY_BYTES_MAX +
           ((double)n->layer_count * rows * row_words + scores + copies) * sizeof(float);
}

static enum status check_sizes(const struct job_draft *draft, struct error *err)
{
    const struct job *job = &draft->job;
    const struct network *n = &job->network;
    uint64_t tokens = network_tokens(n, job->sequence);
    if (network_is_limited(n) && job->sequence > n->positions)
        return json_fail_key(draft->in, job_draft_giver(draft, "sequence"), "sequence", err,
                             "'sequence' %" PRIu64 " is longer than the %" PRIu64
                             " positions of network '%s'",
                             job->sequence, n->positions, n->name);
    uint64_t samples = job_samples(job);
    const char *key = job->microbatches > 1 ? "microbatches" : "microbatch";
    if (samples > JOB_ROWS_MAX || samples * tokens > JOB_ROWS_MAX)
        return json_fail_key(draft->in, job_draft_giver(draft, key), key, err,
                             "%" PRIu64 " samples of %" PRIu64
                             " tokens are too many for one minibatch (limit is %" PRIu64 " tokens)",
                             samples, tokens, JOB_ROWS_MAX);
    if (bytes_bound(job) > (double)JOB_BYTES_MAX)
        return json_fail_key(draft->in, job_draft_giver(draft, key), key, err,
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
        return json_fail_key(draft->in, job_draft_giver(draft, "optimizer"), "optimizer", err,
                             "the learning rate's schedule has %" PRIu64 " steps (expected at least the %" PRIu64
                             " of the job)",
                             steps, end);
    if (warmup <= steps) return STATUS_OK;
    return json_fail_key(draft->in, job_draft_giver(draft, "optimizer"), "optimizer", err,
                         "the learning rate warms up for %" PRIu64 " steps (expected at most the %"
                         PRIu64 " of the job)",
                         warmup, steps);
}

/* Refuses a precision for profiles, which have their measurement's, and for operations, which are fp32. */
static enum status check_precision(const struct job_draft *draft, struct error *err)
{
    const struct network *n = &draft->job.network;
    if (draft->job.precision == PRECISION_FP32 || !network_is_listed(n)) return STATUS_OK;
    return json_fail_key(draft->in, job_draft_giver(draft, "precision"), "precision", err,
                         "'precision' is '%s' but network '%s' is known %s only (expected %s)",
                         precision_names[draft->job.precision], n->name, n->graph ? "in fp32" : "by measurement",
                         precision_names[PRECISION_FP32]);
}

/* Refuses to clip embeddings that are more than tables: their gradient is made and applied at once, but for parallel
 * jobs. */
static enum status check_clip(const struct job_draft *draft, struct error *err)
{
    const struct network *n = &draft->job.network;
    if (!job_clips(&draft->job) || network_has_plain_tables(n) || parallel_is_set(&draft->job.parallel))
        return STATUS_OK;
    const json_t *own = json_object_get(draft->object, "optimizer");
    if (!json_object_get(own, "clip")) own = json_object_get(draft->defaults, "optimizer");
    return json_fail_key(draft->in, own, "clip", err,
                         "'clip' does not support networks of family '%s' yet (expected a decoder, or 'parallel')",
                         network_family_names[n->family]);
}

/* Data, and the objects that named them, for messages. */
struct named_data {
    const char *data, *path; /* as given; absolute */
    uint32_t format;
    const json_t *data_giver, *format_giver;
};

static const char WANTED_DATA[] =
    "expected text, tokens in a .bin file of llm.c or nanoGPT, or rows of 'spillway tokenize'";

enum status job_draft_refuse_json(const struct job_draft *draft, const char *data, const json_t *giver,
                                  struct error *err)
{
    char command[JOB_ROWS_COMMAND_BYTES];
    if (!job_rows_command(data, &draft->job.network, command)) return STATUS_OK;
    return json_fail_key(draft->in, giver, "data", err,
                         "'%s' holds %s by its name: make rows of it by %s (or \"tokens\": "
                         "\"bytes\" if bytes are meant)",
                         data, data_file_records(data), command);
}

/* Checks that a text's bytes are meant as tokens. */
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
    TRY(job_draft_refuse_json(draft, named->data, named->data_giver, err));
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

/* Reads the file's first bytes, if it is there. */
static enum status check_content(const struct job_draft *draft, const struct named_data *named, struct error *err)
{
    const char *foreign = data_file_foreign(named->path);
    if (!foreign) return STATUS_OK;
    bool images = job_draft_reads_images(&draft->job.network);
    return json_fail_key(draft->in, named->data_giver, "data", err, "'%s' is %s (%s)", named->data, foreign,
                         images ? "expected records of labels and pixels, as CIFAR-10's binary batches, or a folder of "
                                  "images"
                                : WANTED_DATA);
}

/* Checks that the network learns rows, and that they are of its tokenizer. */
static enum status check_rows(const struct job_draft *draft, const struct named_data *named, struct error *err)
{
    const struct network *n = &draft->job.network;
    char folder[JOB_ROWS_FOLDER_BYTES];
    if (!network_traits(n)->decoder || n->decoder_tokens > 0)
        return json_fail_key(draft->in, named->data_giver, "data", err,
                             "'%s' has rows, which are for decoders, and network '%s' is none", named->data, n->name);
    if (!job_rows_other_tokenizer(named->path, n, folder)) return STATUS_OK;
    return json_fail_key(draft->in, named->data_giver, "data", err,
                         "the rows of '%s' were made by another tokenizer than that in '%s' (make them again)",
                         named->data, folder);
}

/* Checks that files of colours become images of the network. The executor reports what is missing. */
static enum status check_folder(const struct job_draft *draft, const struct named_data *named, struct error *err)
{
    const struct network *n = &draft->job.network;
    if (n->channels == 1 || n->channels == 3) return STATUS_OK;
    return json_fail_key(draft->in, named->data_giver, "data", err,
                         "a folder of images has 1 or 3 channels, and network '%s' takes %" PRIu64, n->name,
                         n->channels);
}

/* Checks that the network can read this format. */
static enum status check_format(const struct job_draft *draft, const struct named_data *named,
                                struct error *err)
{
    const struct network *n = &draft->job.network;
    if (n->family == NETWORK_PROFILE || named->format == DATA_NONE) return STATUS_OK;
    const bool records = named->format == DATA_CIFAR10 || named->format == DATA_IMAGES;
    const bool images = records || named->format == DATA_FOLDER;
    if (images != job_draft_reads_images(n))
        return json_fail_key(draft->in, named->format_giver, "data_format", err,
                             "'data_format' is '%s' but network '%s' reads %s",
                             data_format_names[named->format], n->name,
                             images ? "text (expected text, llmc, nanogpt, rows or none)"
                                    : "images (expected cifar10, images, folder or none)");
    if (named->format == DATA_CIFAR10 && !job_draft_is_cifar10(n))
        return json_fail_key(draft->in, named->format_giver, "data_format", err,
                             "cifar10 has images of 3 x 32 x 32 pixels, and network '%s' takes %"
                             PRIu64 " x %" PRIu64 " x %" PRIu64 " (expected data_format images)",
                             n->name, n->channels, n->image, n->image);
    if (named->format == DATA_FOLDER) return check_folder(draft, named, err);
    if (named->format == DATA_ROWS) TRY(check_rows(draft, named, err));
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
        return json_fail_key(draft->in, job_draft_giver(draft, "tokens"), "tokens", err,
                             "'tokens' is 'bytes' but the format of '%s' is '%s' (expected text)", named->data,
                             data_format_names[named->format]);
    return check_format(draft, named, err);
}

static enum status check_training_data(const struct job_draft *draft, struct error *err)
{
    const struct job *const job = &draft->job;
    const struct named_data named = {draft->data, job->data, job->data_format, job_draft_giver(draft, "data"),
                                     job_draft_giver(draft, "data_format")};
    const char *const key = job->packs ? "packing" : "long_rows";
    TRY(check_data(draft, &named, err));
    if (job->data_format == DATA_ROWS || (!job->packs && !job->skips_long)) return STATUS_OK;
    return json_fail_key(draft->in, job_draft_giver(draft, key), key, err,
                         "'%s' is for rows (found data_format '%s'; "
                         "expected a file of 'spillway tokenize --rows' as 'data')", key,
                         data_format_names[job->data_format]);
}

/* Checks held-out rows: a share of the job's, or others. */
static enum status check_division(const struct job_draft *draft, const json_t *own, struct error *err)
{
    const struct job *const job = &draft->job;
    const bool rows = job->data_format == DATA_ROWS;
    if (job->evaluation.data && rows != (job->evaluation.data_format == DATA_ROWS))
        return json_fail_key(draft->in, own, "data", err,
                             "'%s' is '%s' but the job's data are '%s' (expected rows for both, or neither)",
                             draft->held_out, data_format_names[job->evaluation.data_format],
                             data_format_names[job->data_format]);
    if (!draft->divides_rows || (rows && !job->evaluation.data)) return STATUS_OK;
    return json_fail_key(draft->in, own, json_object_get(own, "share") ? "share" : "split_seed", err,
                         "'share' and 'split_seed' divide the rows of a job's data (found %s)",
                         rows ? "'data' of the evaluation's own" : "a job without rows");
}

static enum status check_parallel(const struct job_draft *draft, struct error *err)
{
    struct error own = {0};
    if (parallel_check(&draft->job, &own) == STATUS_OK) return STATUS_OK;
    return json_fail_key(draft->in, job_draft_giver(draft, "parallel"), "parallel", err, "%s", own.text);
}

static enum status check_evaluation(const struct job_draft *draft, struct error *err)
{
    const struct job *job = &draft->job;
    const struct job_evaluation *e = &job->evaluation;
    if (job->keep_best && (e->every == 0 || (!draft->weights_out && !draft->hands_best_on)))
        return json_fail_key(draft->in, job_draft_giver(draft, "keep"), "keep", err,
                             "'keep' is 'best' but there is no '%s'",
                             e->every == 0 ? "evaluate" : "weights_out");
    if (e->every == 0) return STATUS_OK;
    if (job->network.family == NETWORK_PROFILE)
        return json_fail_key(draft->in, job_draft_giver(draft, "evaluate"), "evaluate", err,
                             "network '%s' is known by measurement only and has no loss",
                             job->network.name);
    const json_t *own = json_object_get(job_draft_giver(draft, "evaluate"), "evaluate");
    const struct named_data named = {draft->held_out, e->data, e->data_format, own, own};
    TRY(check_data(draft, &named, err));
    return check_division(draft, own, err);
}

enum status job_draft_check(const struct job_draft *draft, struct error *err)
{
    TRY(check_schedule(draft, err));
    TRY(check_clip(draft, err));
    TRY(check_precision(draft, err));
    TRY(check_training_data(draft, err));
    TRY(check_evaluation(draft, err));
    TRY(check_sizes(draft, err));
    return check_parallel(draft, err);
}
