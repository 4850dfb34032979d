/*
 * Checks go from the end to the beginning: the checksums' own checksum, the head's, then each tensor as it is read to
 * its place. A damaged file is skipped in favour of the previous one, with a reason. An undamaged file of another
 * training is an error: the user named the wrong folder, and continuing would mix two trainings.
 */
#include "base/alloc.h"
#include "base/try.h"
#include "exec/checkpoint/checkpoint_format.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "exec/files/weights.h"

/* --- pieces ----------------------------------------------------------------------------------- */

struct checkpoint_reader {
    struct disk *disk;
    int file;
    uint64_t bytes;
    const char *path;
    char *head;
    uint64_t head_bytes;
    uint32_t *checksums;
    struct safetensors *parsed;
};

static enum status not_whole(const struct checkpoint_reader *reader, struct error *err, const char *format, ...)
    PRINTF_LIKE(3, 4);
static enum status not_whole(const struct checkpoint_reader *reader, struct error *err, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return error_set(err, STATUS_CHECK, "'%s' is damaged: %s", reader->path, text);
}

static enum status read_exactly(const struct checkpoint_reader *reader, void *to, uint64_t length,
                                uint64_t offset, struct error *err)
{
    char *at = to;
    while (length > 0) {
        const size_t piece = length < SSIZE_MAX ? (size_t)length : SSIZE_MAX;
        const ssize_t got = reader->disk->calls->read(reader->disk, reader->file, at, piece, offset);
        if (got < 0) return error_io(err, "cannot read '%s'", reader->path);
        if (got == 0) return not_whole(reader, err, "it ends at byte %" PRIu64, offset);
        at += got;
        offset += (uint64_t)got;
        length -= (uint64_t)got;
    }
    return STATUS_OK;
}

/* Reads a range to `to` (NULL: discards it) and compares its checksum. */
static enum status read_checked(const struct checkpoint_reader *reader, void *to, uint64_t length,
                                uint64_t offset, uint32_t expected, const char *what, char *scratch,
                                struct error *err)
{
    uLong checksum = crc32_z(0, NULL, 0);
    for (uint64_t done = 0; done < length;) {
        const uint64_t rest = length - done, piece = rest < CHECKPOINT_CHUNK_BYTES ? rest : CHECKPOINT_CHUNK_BYTES;
        char *const at = to ? (char *)to + done : scratch;
        TRY(read_exactly(reader, at, piece, offset + done, err));
        checksum = crc32_z(checksum, (const Bytef *)at, (size_t)piece);
        done += piece;
    }
    if ((uint32_t)checksum == expected) return STATUS_OK;
    return not_whole(reader, err, "the checksum of '%s' is %08" PRIx32 " (expected %08" PRIx32 ")",
                     what, (uint32_t)checksum, expected);
}

static enum status reader_open(struct checkpoint_reader *reader, struct disk *disk, const char *path,
                               struct error *err)
{
    *reader = (struct checkpoint_reader){.disk = disk, .path = path};
    reader->file = disk->calls->open(disk, path);
    if (reader->file < 0) return error_io(err, "cannot open '%s'", path);
    const int64_t size = disk->calls->size(disk, reader->file);
    if (size < 0) return error_io(err, "cannot read '%s'", path);
    reader->bytes = (uint64_t)size;
    return STATUS_OK;
}

static void reader_close(struct checkpoint_reader *reader)
{
    safetensors_close(reader->parsed);
    free(reader->head);
    free(reader->checksums);
    if (reader->file >= 0) reader->disk->calls->close(reader->disk, reader->file);
    *reader = (struct checkpoint_reader){.file = -1};
}

static enum status read_head(struct checkpoint_reader *reader, struct error *err)
{
    char first[SAFETENSORS_LENGTH_BYTES];
    if (reader->bytes < sizeof first)
        return not_whole(reader, err, "it has %" PRIu64 " bytes", reader->bytes);
    TRY(read_exactly(reader, first, sizeof first, 0, err));
    if (!safetensors_head_bytes(first, reader->bytes, &reader->head_bytes))
        return not_whole(reader, err, "its head is longer than the file or than is allowed");
    reader->head = alloc_resize(NULL, reader->head_bytes);
    if (!reader->head) return error_memory(err, "the head of a checkpoint", reader->head_bytes);
    TRY(read_exactly(reader, reader->head, reader->head_bytes, 0, err));
    struct error why = {0};
    enum status status = safetensors_parse_head("head", reader->head, reader->head_bytes, reader->bytes,
                                                &reader->parsed, &why);
    if (status == STATUS_NO_MEMORY) return error_set(err, status, "%s", why.text);
    return status == STATUS_OK ? status : not_whole(reader, err, "%.200s", why.text);
}

static enum status read_checksums(struct checkpoint_reader *reader, struct error *err)
{
    const size_t tensors = safetensors_count(reader->parsed);
    const struct safetensors_tensor *const last =
        tensors > 0 ? safetensors_at(reader->parsed, tensors - 1) : NULL;
    if (!last || strcmp(last->name, checkpoint_checksums_name) != 0 || strcmp(last->type_name, "U32") != 0 ||
        last->elements != tensors + 1)
        return not_whole(reader, err, "there are no checksums at its end");
    reader->checksums = alloc_resize(NULL, last->bytes);
    if (!reader->checksums) return error_memory(err, "checksums", last->bytes);
    TRY(read_exactly(reader, reader->checksums, last->bytes, last->offset, err));
    const uLong none = crc32_z(0, NULL, 0);
    const uLong own = crc32_z(none, (const Bytef *)reader->checksums, tensors * sizeof(uint32_t));
    if (own != reader->checksums[tensors])
        return not_whole(reader, err, "the checksums do not have their own checksum");
    const uLong head = crc32_z(none, (const Bytef *)reader->head, reader->head_bytes);
    if (head != reader->checksums[0])
        return not_whole(reader, err, "the head does not have its checksum");
    return STATUS_OK;
}

/* --- which training, which tensors ------------------------------------------------------------ */

/* Returns the position at which two descriptions begin to differ, starting from the comma before the difference. */
static size_t difference(const char *a, const char *b)
{
    size_t at = 0, from = 0;
    for (; a[at] && a[at] == b[at]; at++)
        if (a[at] == ',') from = at + 1;
    return from + (a[from] == ' ');
}

static enum status check_identity(const struct checkpoint_reader *reader, const struct checkpoint_subject *subject,
                                  struct error *err)
{
    const char *const version = safetensors_metadata(reader->parsed, "spillway_checkpoint");
    const bool first = version && strcmp(version, checkpoint_version) == 0;
    if (!first && (!version || strcmp(version, checkpoint_half_version) != 0))
        return error_set(err, STATUS_BAD_INPUT,
                         "'%s' is a checkpoint of version '%.40s' (expected %s or %s)", reader->path,
                         version ? version : "none", checkpoint_version, checkpoint_half_version);
    struct checkpoint_identity *identity = NULL;
    enum status status = checkpoint_identify(subject, &identity, err);
    for (size_t i = 0; i < CHECKPOINT_KEY_COUNT && status == STATUS_OK; i++) {
        const char *found = safetensors_metadata(reader->parsed, checkpoint_keys[i]);
        /* old checkpoints, from when fp32 was the only precision, lack the key */
        if (!found && i == CHECKPOINT_KEY_PRECISION) found = precision_names[PRECISION_FP32];
        if (!found && i == CHECKPOINT_KEY_TRAINED) found = checkpoint_all_trained; /* nor is this one */
        if (first && i == CHECKPOINT_KEY_PRECISION && strcmp(found, precision_names[PRECISION_BF16]) == 0)
            found = precision_names[PRECISION_BF16_WEIGHTS];
        const bool any = i == CHECKPOINT_KEY_DATA_TOKENS && subject->data_tokens == CHECKPOINT_ANY_TOKENS;
        if (any || (found && strcmp(found, identity->values[i]) == 0)) continue;
        if (i == CHECKPOINT_KEY_NETWORK) {
            status = error_set(err, STATUS_BAD_INPUT,
                               "'%s' is not a checkpoint of the network of job '%s'",
                               reader->path, subject->job->name);
        } else {
            const char *const wanted = identity->values[i];
            const size_t from = found ? difference(found, wanted) : 0;
            status = error_set(err, STATUS_BAD_INPUT,
                               "'%s' is a checkpoint of another training than job '%s': its %s is "
                               "%s%.100s (expected %s%.100s)",
                               reader->path, subject->job->name, checkpoint_keys[i], from > 0 ? "..., " : "",
                               found ? found + from : "not there", from > 0 ? "..., " : "",
                               wanted + from);
        }
    }
    free(identity);
    return status;
}

static enum status check_frozen(const struct checkpoint_reader *reader, const struct checkpoint_subject *subject,
                                struct error *err)
{
    const char *const found = safetensors_metadata(reader->parsed, checkpoint_frozen_key);
    char wanted[17];
    snprintf(wanted, sizeof wanted, "%016" PRIx64, subject->frozen);
    if (found && strcmp(found, wanted) == 0) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT,
                     "'%s' is a checkpoint of another training than job '%s': "
                     "its frozen weights are %.40s (expected %s)",
                     reader->path, subject->job->name, found ? found : "not there", wanted);
}

/* Checks that the file has the same tensors in the same order as the writer would write. */
static enum status check_contents(const struct checkpoint_reader *reader, const struct checkpoint_contents *contents,
                                  struct error *err)
{
    const char *const step = safetensors_metadata(reader->parsed, "step");
    char expected[32];
    snprintf(expected, sizeof expected, "%" PRIu64, contents->step);
    if (!step || strcmp(step, expected) != 0)
        return not_whole(reader, err, "its step is %.40s (expected %s)", step ? step : "not there",
                         expected);
    if (safetensors_count(reader->parsed) != contents->count)
        return not_whole(reader, err, "it has %zu tensors (expected %zu)",
                         safetensors_count(reader->parsed), contents->count);
    for (size_t i = 0; i < contents->count; i++) {
        const struct safetensors_tensor *const found = safetensors_at(reader->parsed, i);
        const struct safetensors_tensor *const wanted = &contents->tensors[i];
        if (strcmp(found->name, wanted->name) != 0 ||
            strcmp(found->type_name, wanted->type_name) != 0 || found->rank != wanted->rank ||
            memcmp(found->shape, wanted->shape, wanted->rank * sizeof *wanted->shape) != 0)
            return not_whole(reader, err, "tensor %zu is not '%s', or has another shape", i,
                             wanted->name);
    }
    return STATUS_OK;
}

/* check_contents() verifies this number. */
static uint64_t stated_evaluations(const struct checkpoint_reader *reader)
{
    const struct safetensors_tensor *const tensor =
        safetensors_find(reader->parsed, checkpoint_evaluations_name);
    return tensor && tensor->rank == 2 ? tensor->shape[0] : 0;
}

/* Frozen weights stay. */
static void zero_states(const struct checkpoint_subject *subject)
{
    for (uint32_t s = 0; s < subject->shard_count; s++)
        if (state_trained_bytes(&subject->tables[s].layout) > 0)
            memset((char *)subject->states[s] + subject->tables[s].layout.parts[STATE_FROZEN].bytes, 0,
                   state_trained_bytes(&subject->tables[s].layout));
}

/* --- losses and evaluations ------------------------------------------------------------------- */

struct measured {
    double *losses;
    double *pairs;                 /* steps and losses */
    struct evaluation_progress *evaluations;
    uint64_t evaluation_count;
};

static void measured_release(struct measured *measured)
{
    free(measured->losses);
    free(measured->pairs);
    free(measured->evaluations);
    *measured = (struct measured){0};
}

/* check_contents() has seen that the file is large enough to hold them. */
static enum status measured_init(struct measured *measured, const struct checkpoint_contents *contents,
                                 struct error *err)
{
    const uint64_t n = contents->evaluation_count;
    measured->losses = alloc_resize(NULL, contents->step * sizeof *measured->losses);
    measured->pairs = alloc_resize(NULL, (n + 1) * 2 * sizeof *measured->pairs);
    measured->evaluations = alloc_resize(NULL, (n + 1) * sizeof *measured->evaluations);
    measured->evaluation_count = n;
    if (measured->losses && measured->pairs && measured->evaluations) return STATUS_OK;
    measured_release(measured);
    return error_memory(err, "losses", (contents->step + 4 * n) * sizeof(double));
}

/* Takes evaluations, whose steps ascend up to the checkpoint's step. */
static enum status read_evaluations(const struct checkpoint_reader *reader, const struct checkpoint_contents *contents,
                                    struct measured *measured, struct error *err)
{
    uint64_t before = 0;
    for (uint64_t i = 0; i < measured->evaluation_count; i++) {
        const double step = measured->pairs[2 * i];
        if (!(step > (double)before && step <= (double)contents->step) || step != trunc(step))
            return not_whole(reader, err, "evaluation %" PRIu64 " is after step %g (expected %" PRIu64
                             " to %" PRIu64 ")", i, step, before + 1, contents->step);
        before = (uint64_t)step;
        measured->evaluations[i] = (struct evaluation_progress){before, measured->pairs[2 * i + 1]};
    }
    return STATUS_OK;
}

static bool same_evaluation(const struct checkpoint_reader *reader, const struct checkpoint_subject *subject)
{
    const char *const found = safetensors_metadata(reader->parsed, "evaluation");
    char wanted[CHECKPOINT_VALUE_BYTES];
    checkpoint_evaluation_text(subject, wanted);
    if (!found || !wanted[0]) return false;
    return subject->held_out_tokens == CHECKPOINT_ANY_TOKENS
               ? strncmp(found, wanted, strlen(wanted)) == 0
               : strcmp(found, wanted) == 0;
}

/* Reads every byte; the state goes to its place if it has one. */
static enum status read_data(const struct checkpoint_reader *reader, const struct checkpoint_contents *contents,
                             struct measured *measured, struct error *err)
{
    char *const scratch = alloc_resize(NULL, CHECKPOINT_CHUNK_BYTES);
    if (!scratch) return error_memory(err, "reading a checkpoint", CHECKPOINT_CHUNK_BYTES);
    enum status status = STATUS_OK;
    for (size_t i = 0; i + 1 < contents->count && status == STATUS_OK; i++) {
        const struct safetensors_tensor *const tensor = safetensors_at(reader->parsed, i);
        void *const to = i < contents->state_count    ? contents->values[i]
                         : i == contents->state_count ? (void *)measured->losses
                                                      : (void *)measured->pairs;
        status = read_checked(reader, to, tensor->bytes, tensor->offset, reader->checksums[1 + i],
                              tensor->name, scratch, err);
    }
    free(scratch);
    return status;
}

static void keep_found(const struct checkpoint_reader *reader, uint64_t step, const struct measured *measured,
                       struct checkpoint_found *out)
{
    const double *const losses = measured->losses;
    const uint64_t count = measured->evaluation_count;
    const uint64_t best = evaluation_best(measured->evaluations, count);
    out->evaluation_count = count;
    if (count > 0) out->last_evaluation = measured->evaluations[count - 1].loss;
    if (best != EVALUATION_NONE) {
        out->best_step = measured->evaluations[best].step;
        out->best_evaluation = measured->evaluations[best].loss;
    }
    const char *const backend = safetensors_metadata(reader->parsed, "backend");
    const char *const libraries = safetensors_metadata(reader->parsed, "libraries");
    const char *const threads = safetensors_metadata(reader->parsed, "threads");
    out->step = step;
    out->first_loss = losses[0];
    out->final_loss = losses[step - 1];
    snprintf(out->backend, sizeof out->backend, "%s", backend ? backend : "");
    snprintf(out->libraries, sizeof out->libraries, "%s", libraries ? libraries : "");
    out->threads = threads ? strtoull(threads, NULL, 10) : 0;
}

static enum status keep_history(const struct checkpoint_reader *reader, const struct checkpoint_contents *contents,
                                const struct measured *measured, struct checkpoint_history *out,
                                struct error *err)
{
    memcpy(out->losses, measured->losses, contents->step * sizeof *out->losses);
    if (!out->evaluations) return STATUS_OK;
    if (measured->evaluation_count > out->evaluation_count)
        return not_whole(reader, err, "it has %" PRIu64 " evaluations (expected %" PRIu64 " at most)",
                         measured->evaluation_count, out->evaluation_count);
    out->evaluation_count = measured->evaluation_count;
    memcpy(out->evaluations, measured->evaluations,
           measured->evaluation_count * sizeof *out->evaluations);
    return STATUS_OK;
}

/* --- whole files ------------------------------------------------------------------------------ */

/* Reads one checkpoint; `history` and `found` may be NULL. */
static enum status read_one(struct disk *disk, const char *folder,
                            const struct checkpoint_subject *subject, uint64_t step,
                            struct checkpoint_history *history, struct checkpoint_found *found,
                            struct error *err)
{
    char path[PATH_MAX];
    struct checkpoint_reader reader = {.file = -1};
    struct checkpoint_contents contents = {0};
    struct measured measured = {0};
    enum status status = checkpoint_path(path, folder, subject->job, step, checkpoint_final_end, err);
    if (status == STATUS_OK) status = reader_open(&reader, disk, path, err);
    if (status == STATUS_OK) status = read_head(&reader, err);
    if (status == STATUS_OK) status = read_checksums(&reader, err);
    if (status == STATUS_OK) status = check_identity(&reader, subject, err);
    if (status == STATUS_OK && subject->knows_frozen) status = check_frozen(&reader, subject, err);
    if (status == STATUS_OK)
        status = checkpoint_contents_list(subject, step, stated_evaluations(&reader), &contents, err);
    if (status == STATUS_OK) status = check_contents(&reader, &contents, err);
    if (status == STATUS_OK) status = measured_init(&measured, &contents, err);
    if (status == STATUS_OK && subject->states) zero_states(subject);
    if (status == STATUS_OK) status = read_data(&reader, &contents, &measured, err);
    if (status == STATUS_OK && subject->states)
        weights_round(subject->job, subject->tables, subject->shard_count, subject->states);
    if (status == STATUS_OK) status = read_evaluations(&reader, &contents, &measured, err);
    if (status == STATUS_OK && !same_evaluation(&reader, subject)) measured.evaluation_count = 0;
    if (status == STATUS_OK && history)
        status = keep_history(&reader, &contents, &measured, history, err);
    if (status == STATUS_OK && found) keep_found(&reader, step, &measured, found);
    measured_release(&measured);
    checkpoint_contents_release(&contents);
    reader_close(&reader);
    return status;
}

enum status checkpoint_find(struct disk *disk, const char *path,
                            const struct checkpoint_subject *subject, struct checkpoint_found *out,
                            struct error *err)
{
    struct checkpoint_subject looked_for = *subject;
    looked_for.states = NULL;
    struct checkpoint_found found = {0};
    struct checkpoint_listing listing;
    enum status status = checkpoint_list(disk, path, subject->job, checkpoint_final_end, &listing, err);
    for (size_t i = 0; i < listing.count && status == STATUS_OK && found.step == 0; i++) {
        struct error why = {0};
        const enum status one =
            read_one(disk, path, &looked_for, listing.steps[i], NULL, &found, &why);
        if (one == STATUS_OK) break;
        if (one != STATUS_CHECK && one != STATUS_IO) {
            status = error_set(err, one, "%s", why.text);
        } else if (found.passed_over++ == 0) {
            snprintf(found.reason, sizeof found.reason, "%.500s", why.text);
        }
    }
    if (status == STATUS_OK && found.step == 0 && found.passed_over > 0)
        status = error_set(err, STATUS_CHECK,
                           "all %" PRIu32 " checkpoints of job '%s' in '%s' are damaged; the "
                           "newest: %s (move them away to start over)",
                           found.passed_over, subject->job->name, path, found.reason);
    free(listing.steps);
    if (status == STATUS_OK) *out = found;
    return status;
}

enum status checkpoint_read(struct disk *disk, const char *path,
                            const struct checkpoint_subject *subject, uint64_t step,
                            struct checkpoint_history *history, struct checkpoint_found *found,
                            struct error *err)
{
    assert(step > 0);
    assert(subject->states);
    return read_one(disk, path, subject, step, history, found, err);
}

enum status checkpoint_last_name(struct disk *disk, const char *path, const struct job *job,
                                 uint64_t *out, struct error *err)
{
    struct checkpoint_listing listing;
    const enum status status = checkpoint_list(disk, path, job, checkpoint_final_end, &listing, err);
    if (status == STATUS_OK) *out = listing.count > 0 ? listing.steps[0] : 0;
    free(listing.steps);
    return status;
}
