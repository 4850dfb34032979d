/*
 * The file of a checkpoint: checkpoint_write.c writes it, whole or not at all, and checkpoint_read.c reads it.
 *
 *     length, header | values in full precision | moments | losses | evaluations | checksums
 *
 * Why safetensors: the reader here is strict and fuzzed, and common software can read a checkpoint's weights. Why one
 * file per job: jobs end minibatches, fail and resume separately. Why whole tensors: the cut into shards may change
 * between runs.
 *
 * Checksums are CRC-32: one of the head, one of each tensor, and one of these numbers. CRC-32 finds every single error
 * burst of 32 bits and misses one in four billion of other errors. It costs less than writing to any disk. The
 * checksums follow the data as the last tensor: a file is written in one pass.
 *
 * The checkpoint of the best evaluation is an ordinary checkpoint that is not removed when it gets old. Each newer
 * checkpoint identifies it, and is only written when the best one is on the disk: a kill at any moment leaves the best
 * checkpoint that the newest one names. The data of evaluations is not part of a training's identity: with other
 * held-out data, evaluations start again.
 */
#include "base/alloc.h"
#include "base/order.h"
#include "exec/checkpoint/checkpoint_format.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json_out.h"
#include "base/try.h"
#include "exec/files/weights.h"
#include "models/job/learning_rate.h"
#include "models/jobs/job_rows.h"
#include "models/jobs/jobs_file.h"

enum { STEP_DIGITS = 10 }; /* digits of JOB_MINIBATCHES_MAX */

const char checkpoint_version[] = "1", checkpoint_half_version[] = "2";
const char checkpoint_temporary_end[] = ".tmp", checkpoint_final_end[] = ".safetensors";
static const char losses_name[] = "spillway.losses";
const char checkpoint_evaluations_name[] = "spillway.evaluations", checkpoint_checksums_name[] = "spillway.crc32";

/* --- names ------------------------------------------------------------------------------------ */

enum status checkpoint_path(char out[PATH_MAX], const char *folder, const struct job *job,
                            uint64_t step, const char *ending, struct error *err)
{
    const int length =
        ending ? snprintf(out, PATH_MAX, "%s/%s/step-%0*" PRIu64 "%s", folder, job->name,
                          (int)STEP_DIGITS, step, ending)
               : snprintf(out, PATH_MAX, "%s/%s", folder, job->name);
    if (length > 0 && length < PATH_MAX) return STATUS_OK;
    return error_set(err, STATUS_IO, "the path of the checkpoints of job '%s' is too long", job->name);
}

/* Returns 0 when the name is not a checkpoint with this ending. */
static uint64_t step_of(const char *name, const char *ending)
{
    static const char begin[] = "step-";
    if (strncmp(name, begin, strlen(begin)) != 0) return 0;
    name += strlen(begin);
    uint64_t step = 0;
    for (int i = 0; i < STEP_DIGITS; i++, name++) {
        if (!isdigit((unsigned char)*name)) return 0;
        step = step * 10 + (uint64_t)(*name - '0');
    }
    return strcmp(name, ending) == 0 ? step : 0;
}

static void note_name(void *context, const char *name)
{
    struct checkpoint_listing *const listing = context;
    const uint64_t step = step_of(name, listing->ending);
    if (step == 0 || listing->error.status != STATUS_OK) return;
    if (array_reserve(&listing->steps, &listing->capacity, listing->count, sizeof *listing->steps,
                      SIZE_MAX / sizeof *listing->steps, "checkpoints", &listing->error) == STATUS_OK)
        listing->steps[listing->count++] = step;
}

enum status checkpoint_list(struct disk *disk, const char *folder, const struct job *job,
                            const char *ending, struct checkpoint_listing *out, struct error *err)
{
    char path[PATH_MAX];
    *out = (struct checkpoint_listing){.ending = ending};
    TRY(checkpoint_path(path, folder, job, 0, NULL, err));
    if (disk->calls->list(disk, path, note_name, out) != 0 && errno != ENOENT)
        return error_input(err, "cannot read the folder '%s'", path);
    if (out->error.status != STATUS_OK)
        return error_set(err, out->error.status, "%s", out->error.text);
    if (out->count > 0) qsort(out->steps, out->count, sizeof *out->steps, order_u64_descending);
    return STATUS_OK;
}

/* --- which training it is --------------------------------------------------------------------- */

const char *const checkpoint_keys[CHECKPOINT_KEY_COUNT] = {
    "job",       "network",   "sequence", "microbatch",  "microbatches",
    "precision", "optimizer", "seed",     "data_format", "data_tokens", "trained"};
const char checkpoint_frozen_key[] = "frozen", checkpoint_all_trained[] = "all";

static bool keep_text(struct json_out *json, char out[CHECKPOINT_VALUE_BYTES])
{
    size_t length;
    const char *const text = json_out_text(json, &length);
    while (length > 0 && text[length - 1] == '\n') length--;
    if (!json_out_complete(json) || length >= CHECKPOINT_VALUE_BYTES) return false;
    memcpy(out, text, length);
    out[length] = '\0';
    return true;
}

static bool network_text(const struct network *network, char out[CHECKPOINT_VALUE_BYTES])
{
    struct network nameless = *network;
    strcpy(nameless.name, "network");
    network_forget_ignored(&nameless);
    struct json_out *const json = json_out_create(NULL);
    if (json) network_write(&nameless, json, NULL);
    const bool whole = json && keep_text(json, out);
    json_out_destroy(json);
    return whole;
}

/* Describes everything that decides a step. Under a schedule other than constant the rate also depends on the
 * number of all steps. */
static bool optimizer_text(const struct job *job, char out[CHECKPOINT_VALUE_BYTES])
{
    struct job_optimizer used = job->optimizer;
    if (used.kind != OPTIMIZER_ADAMW) used.beta1 = used.beta2 = used.epsilon = 0;
    struct json_out *const json = json_out_create(NULL);
    if (!json) return false;
    used.schedule.steps = 0;
    json_out_object_begin(json, NULL, true);
    optimizer_write_keys(&used, json);
    if (used.schedule.kind != RATE_CONSTANT) json_out_u64(json, "steps", learning_rate_steps(job));
    json_out_object_end(json);
    const bool whole = keep_text(json, out);
    json_out_destroy(json);
    return whole;
}

static void trained_text(const struct job *job, char out[CHECKPOINT_VALUE_BYTES])
{
    const struct network *const n = &job->network;
    if (!n->trained) snprintf(out, CHECKPOINT_VALUE_BYTES, "%s", checkpoint_all_trained);
    else
        snprintf(out, CHECKPOINT_VALUE_BYTES, "%" PRIu64 " parameters, rank %" PRIu64 ", scale %.17g, %016" PRIx64,
                 network_trained_parameters(n), n->trained->rank, n->trained->scale, network_trained_fingerprint(n));
}

/* Describes the data, with all that decides which rows are a sample. */
static void describe_data(const struct job *job, char out[CHECKPOINT_VALUE_BYTES])
{
    const struct rows_choice choice = job_rows_choice(job);
    int length = snprintf(out, CHECKPOINT_VALUE_BYTES, "%s", data_format_names[job->data_format]);
    for (uint32_t i = 0; i < job->pixels.count; i++)
        length += snprintf(out + length, CHECKPOINT_VALUE_BYTES - (size_t)length, ", (x - %.17g) / %.17g",
                           job->pixels.mean[i], job->pixels.deviation[i]);
    if (job->data_format != DATA_ROWS) return;
    if (choice.packs) length += snprintf(out + length, CHECKPOINT_VALUE_BYTES - (size_t)length, ", packed");
    if (choice.skips_long)
        length += snprintf(out + length, CHECKPOINT_VALUE_BYTES - (size_t)length, ", long ones skipped");
    snprintf(out + length, CHECKPOINT_VALUE_BYTES - (size_t)length, ", %.17g held out by seed %" PRIu64,
             choice.held_out, choice.split_seed);
}

enum status checkpoint_identify(const struct checkpoint_subject *subject, struct checkpoint_identity **out,
                                struct error *err)
{
    const struct job *const job = subject->job;
    struct checkpoint_identity *const identity = alloc_zeroed(1, sizeof *identity);
    if (!identity || !network_text(&job->network, identity->values[CHECKPOINT_KEY_NETWORK]) ||
        !optimizer_text(job, identity->values[CHECKPOINT_KEY_OPTIMIZER])) {
        free(identity);
        return error_memory(err, "the description of a checkpoint", sizeof *identity);
    }
    char (*const values)[CHECKPOINT_VALUE_BYTES] = identity->values;
    snprintf(values[CHECKPOINT_KEY_JOB], CHECKPOINT_VALUE_BYTES, "%s", job->name);
    snprintf(values[CHECKPOINT_KEY_SEQUENCE], CHECKPOINT_VALUE_BYTES, "%" PRIu64, job->sequence);
    snprintf(values[CHECKPOINT_KEY_MICROBATCH], CHECKPOINT_VALUE_BYTES, "%" PRIu64, job->microbatch);
    snprintf(values[CHECKPOINT_KEY_MICROBATCHES], CHECKPOINT_VALUE_BYTES, "%" PRIu64, job->microbatches);
    snprintf(values[CHECKPOINT_KEY_PRECISION], CHECKPOINT_VALUE_BYTES, "%s", precision_names[job->precision]);
    snprintf(values[CHECKPOINT_KEY_SEED], CHECKPOINT_VALUE_BYTES, "%" PRIu64, job->seed);
    describe_data(job, values[CHECKPOINT_KEY_DATA]);
    snprintf(values[CHECKPOINT_KEY_DATA_TOKENS], CHECKPOINT_VALUE_BYTES, "%" PRIu64, subject->data_tokens);
    trained_text(job, values[CHECKPOINT_KEY_TRAINED]);
    *out = identity;
    return STATUS_OK;
}

void checkpoint_evaluation_text(const struct checkpoint_subject *subject, char out[CHECKPOINT_VALUE_BYTES])
{
    const struct job *const job = subject->job;
    const struct job_evaluation *const e = &job->evaluation;
    out[0] = '\0';
    if (e->every == 0) return;
    const int length = snprintf(out, CHECKPOINT_VALUE_BYTES, "%" PRIu64 " minibatches, %s, tokens ", e->minibatches,
                                data_format_names[e->data ? e->data_format : job->data_format]);
    if (subject->held_out_tokens != CHECKPOINT_ANY_TOKENS)
        snprintf(out + length, CHECKPOINT_VALUE_BYTES - (size_t)length, "%" PRIu64, subject->held_out_tokens);
}

/* --- the tensors ------------------------------------------------------------------------------ */

/* Prefixes of tensors' names: PyTorch's terms. */
enum { PARTS_MAX = 3 };
static const char *const part_prefixes[OPTIMIZER_COUNT][PARTS_MAX] = {
    [OPTIMIZER_SGD] = {""},
    [OPTIMIZER_ADAMW] = {"", "exp_avg.", "exp_avg_sq."},
    [OPTIMIZER_MOMENTUM] = {"", "momentum_buffer."},
};

void checkpoint_contents_release(struct checkpoint_contents *contents)
{
    free(contents->tensors);
    free(contents->values);
    free(contents->names);
    *contents = (struct checkpoint_contents){0};
}

/* Returns true if checkpoints have the part of the tensor: values, or moments, which running means lack. */
static bool has_part(const struct tensor_spec *spec, uint32_t part)
{
    return !spec->frozen && (part == 0 || !spec->running);
}

static size_t count_tensors(const struct job *job, uint32_t part_count)
{
    struct tensor_spec specs[LAYER_TENSORS_MAX];
    size_t sum = 0;
    for (uint64_t layer = 0; layer < job->network.layer_count; layer++) {
        const uint32_t count = network_layer_shapes(&job->network, layer, specs);
        for (uint32_t part = 0; part < part_count; part++)
            for (uint32_t i = 0; i < count; i++) sum += has_part(&specs[i], part);
    }
    return sum;
}

static void fill_contents(struct checkpoint_contents *contents, const struct checkpoint_subject *subject,
                          uint32_t part_count)
{
    size_t i = 0;
    for (uint32_t part = 0; part < part_count; part++) {
        const uint32_t stored = part == 0 ? PRECISION_FP32 : subject->job->optimizer.moments;
        struct weights_walk walk = {.job = subject->job,
                                    .tables = subject->tables,
                                    .shard_count = subject->shard_count,
                                    .states = subject->states};
        struct weights_tensor tensor;
        while (weights_walk_next(&walk, &tensor)) {
            if (!has_part(tensor.spec, part)) continue;
            struct safetensors_tensor *const out = &contents->tensors[i];
            assert(i < contents->state_count);
            snprintf(contents->names[i], sizeof *contents->names, "%s%s",
                     part_prefixes[subject->job->optimizer.kind][part], tensor.spec->name);
            *out = (struct safetensors_tensor){
                .name = contents->names[i],
                .type_name = stored == PRECISION_BF16 ? "BF16" : "F32",
                .rank = tensor.spec->rank};
            memcpy(out->shape, tensor.spec->shape, sizeof tensor.spec->shape);
            contents->values[i++] = part == 0 ? tensor.values : tensor.moments[part - 1];
        }
    }
    contents->tensors[i++] = (struct safetensors_tensor){
        .name = losses_name, .type_name = "F64", .rank = 1, .shape = {contents->step}};
    if (contents->evaluation_count > 0)
        contents->tensors[i++] = (struct safetensors_tensor){.name = checkpoint_evaluations_name,
                                                             .type_name = "F64",
                                                             .rank = 2,
                                                             .shape = {contents->evaluation_count, 2}};
    contents->tensors[i++] = (struct safetensors_tensor){.name = checkpoint_checksums_name,
                                                         .type_name = "U32",
                                                         .rank = 1,
                                                         .shape = {contents->count + 1}};
    assert(i == contents->count);
}

enum status checkpoint_contents_list(const struct checkpoint_subject *subject, uint64_t step,
                                     uint64_t evaluation_count, struct checkpoint_contents *out,
                                     struct error *err)
{
    const uint32_t part_count = 1 + optimizer_moments(subject->job->optimizer.kind);
    assert(part_count <= PARTS_MAX && part_prefixes[subject->job->optimizer.kind][part_count - 1]);
    struct checkpoint_contents contents = {.step = step, .evaluation_count = evaluation_count};
    contents.state_count = count_tensors(subject->job, part_count);
    contents.count = contents.state_count + 2 + (evaluation_count > 0);
    contents.tensors = alloc_zeroed(contents.count, sizeof *contents.tensors);
    contents.values = alloc_zeroed(contents.count, sizeof *contents.values);
    contents.names = alloc_zeroed(contents.count, sizeof *contents.names);
    if (!contents.tensors || !contents.values || !contents.names) {
        checkpoint_contents_release(&contents);
        return error_memory(err, "a list of tensors", contents.count * sizeof *contents.tensors);
    }
    fill_contents(&contents, subject, part_count);
    *out = contents;
    return STATUS_OK;
}
