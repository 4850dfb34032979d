/*
 * The file of a checkpoint, written so that it is there whole or not at all.
 *
 *     length, header | values in full | what the optimizer remembers | losses | evaluations | checksums
 *
 * Why safetensors. It is the container we read and write anyway, its reader here is strict and
 * fuzzed, every tensor has its name, and people can look into a checkpoint, or take its weights, with
 * software they have. Why one file per job: jobs come to their minibatches' ends at different times,
 * fail and are resumed by themselves. Why whole tensors and not shards: what cuts the network may
 * change between two runs.
 *
 * Checksums are CRC-32 (zlib's, which is linked anyway): one of the head, one of each tensor, and one
 * of these numbers themselves. It finds every single error burst of 32 bits and lets one in four
 * billion of the rest pass, which is for accidents, not for malice; it costs less than writing to
 * any disk. They stand behind the data, as the last tensor, so that a file is written in one
 * sweep without a second one over the state.
 *
 * The order of calls on the disk, each of which may fail, or be the last before the power goes:
 *
 *     make JOB/, sync FOLDER/        a name that is not synced may be lost with all that is in it
 *     create step-N.tmp, write ..., sync, close
 *     rename to step-N.safetensors, sync JOB/
 *     remove what is too old
 *
 * The sync before the rename puts the bytes down before the name; the one behind it says when the
 * older ones may go. A disk may reorder everything between two syncs, and tests/test_exec_checkpoint.c
 * lets it, for every call.
 *
 * What is read is checked from the back to the front: the checksums' own checksum, the head's, then
 * each tensor as it is read to its place. A file that is not whole is passed over for the one before it,
 * with a reason. One that is whole and of another training is an error, never passed over: someone
 * named the wrong folder, and going on would mix two trainings.
 *
 * The checkpoint of the best evaluation is one like the others that is not removed when it gets old.
 * Which one it is stands in each newer one, as metadata and as the history that it follows from, and a
 * newer one is only written when the best one is on the disk: no name has to be changed, and a kill at
 * any moment leaves the best one that the newest knows of. What evaluations were made on does not
 * decide which training it is: with other held-out data a job goes on, and its evaluations begin anew.
 */
#include "exec/checkpoint.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/json_out.h"
#include "base/size.h"
#include "exec/safetensors.h"
#include "exec/weights.h"

enum {
    FORMAT_VERSION = 1,
    CHUNK_BYTES = 1 << 20, /* a checksum is taken while the piece is in the cache */
    VALUE_BYTES = 8192,    /* of a metadata value; networks take the most, below 2 KiB */
    STEP_DIGITS = 10       /* JOB_MINIBATCHES_MAX has as many */
};

static const char losses_name[] = "spillway.losses", evaluations_name[] = "spillway.evaluations",
                  checksums_name[] = "spillway.crc32";
static const char temporary_end[] = ".tmp", final_end[] = ".safetensors";

/* --- names ------------------------------------------------------------------------------------ */

/* FOLDER/JOB/step-0000000120 and an ending, or, when the ending is NULL, FOLDER/JOB. */
static enum status make_path(char out[PATH_MAX], const char *folder, const struct job *job,
                             uint64_t step, const char *ending, struct error *err)
{
    const int length =
        ending ? snprintf(out, PATH_MAX, "%s/%s/step-%0*" PRIu64 "%s", folder, job->name,
                          (int)STEP_DIGITS, step, ending)
               : snprintf(out, PATH_MAX, "%s/%s", folder, job->name);
    if (length > 0 && length < PATH_MAX) return STATUS_OK;
    return error_set(err, STATUS_IO, "the path of the checkpoints of job '%s' is too long", job->name);
}

/* The step in a file's name; 0 when it is no checkpoint with this ending. */
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

struct listing {
    uint64_t *steps; /* malloc'ed, descending */
    size_t count, capacity;
    const char *ending;
    struct error error;
};

static void note_name(void *context, const char *name)
{
    struct listing *const listing = context;
    const uint64_t step = step_of(name, listing->ending);
    if (step == 0 || listing->error.status != STATUS_OK) return;
    if (array_reserve(&listing->steps, &listing->capacity, listing->count, sizeof *listing->steps,
                      SIZE_MAX / sizeof *listing->steps, "checkpoints", &listing->error) == STATUS_OK)
        listing->steps[listing->count++] = step;
}

static int descending(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* The steps of a job of which there are files with this ending; none when there is no folder. The
 * caller frees out->steps, also after an error. */
static enum status list_steps(struct disk *disk, const char *folder, const struct job *job,
                              const char *ending, struct listing *out, struct error *err)
{
    char path[PATH_MAX];
    *out = (struct listing){.ending = ending};
    const enum status status = make_path(path, folder, job, 0, NULL, err);
    if (status != STATUS_OK) return status;
    if (disk->calls->list(disk, path, note_name, out) != 0 && errno != ENOENT)
        return error_io(err, "cannot read the folder '%s'", path);
    if (out->error.status != STATUS_OK)
        return error_set(err, out->error.status, "%s", out->error.text);
    if (out->count > 0) qsort(out->steps, out->count, sizeof *out->steps, descending);
    return STATUS_OK;
}

/* --- which training it is --------------------------------------------------------------------- */

/* Metadata that must be equal in a checkpoint and in the job that continues it. */
enum { KEY_JOB, KEY_NETWORK, KEY_SEQUENCE, KEY_MICROBATCH, KEY_MICROBATCHES, KEY_PRECISION,
       KEY_OPTIMIZER, KEY_SEED, KEY_DATA, KEY_DATA_TOKENS, KEY_COUNT };
static const char *const keys[KEY_COUNT] = {"job", "network", "sequence", "microbatch", "microbatches",
                                            "precision", "optimizer", "seed", "data_format",
                                            "data_tokens"};

struct identity {
    char values[KEY_COUNT][VALUE_BYTES];
};

static bool keep_text(struct json_out *json, char out[VALUE_BYTES])
{
    size_t length;
    const char *const text = json_out_text(json, &length);
    while (length > 0 && text[length - 1] == '\n') length--;
    if (!json_out_complete(json) || length >= VALUE_BYTES) return false;
    memcpy(out, text, length);
    out[length] = '\0';
    return true;
}

/* Its shape decides, not the name or path it was found by. */
static bool network_text(const struct network *network, char out[VALUE_BYTES])
{
    struct network nameless = *network;
    strcpy(nameless.name, "network");
    struct json_out *const json = json_out_create(NULL);
    if (json) network_write(&nameless, json, NULL);
    const bool whole = json && keep_text(json, out);
    json_out_destroy(json);
    return whole;
}

/* All that decides a step: of a rate that falls also until when. What a kind does not have is left
 * out or zero, and so makes no difference. */
static bool optimizer_text(const struct job *job, char out[VALUE_BYTES])
{
    struct optimizer used = job->optimizer;
    if (used.kind != OPTIMIZER_ADAMW) used.beta1 = used.beta2 = used.epsilon = 0;
    struct json_out *const json = json_out_create(NULL);
    if (!json) return false;
    json_out_object_begin(json, NULL, true);
    optimizer_write_keys(&used, json);
    if (used.schedule.kind != RATE_CONSTANT)
        json_out_u64(json, "steps", job->first_minibatch + job->minibatches);
    json_out_object_end(json);
    const bool whole = keep_text(json, out);
    json_out_destroy(json);
    return whole;
}

/* The caller frees *out with free(). */
static enum status identify(const struct checkpoint_subject *subject, struct identity **out,
                            struct error *err)
{
    const struct job *const job = subject->job;
    struct identity *const identity = calloc(1, sizeof *identity);
    if (!identity || !network_text(&job->network, identity->values[KEY_NETWORK]) ||
        !optimizer_text(job, identity->values[KEY_OPTIMIZER])) {
        free(identity);
        return error_memory(err, "the description of a checkpoint", sizeof *identity);
    }
    char (*const values)[VALUE_BYTES] = identity->values;
    snprintf(values[KEY_JOB], VALUE_BYTES, "%s", job->name);
    snprintf(values[KEY_SEQUENCE], VALUE_BYTES, "%" PRIu64, job->sequence);
    snprintf(values[KEY_MICROBATCH], VALUE_BYTES, "%" PRIu64, job->microbatch);
    snprintf(values[KEY_MICROBATCHES], VALUE_BYTES, "%" PRIu64, job->microbatches);
    snprintf(values[KEY_PRECISION], VALUE_BYTES, "%s", precision_names[job->precision]);
    snprintf(values[KEY_SEED], VALUE_BYTES, "%" PRIu64, job->seed);
    snprintf(values[KEY_DATA], VALUE_BYTES, "%s", data_format_names[job->data_format]);
    snprintf(values[KEY_DATA_TOKENS], VALUE_BYTES, "%" PRIu64, subject->data_tokens);
    *out = identity;
    return STATUS_OK;
}

/* What evaluations are made on, at most VALUE_BYTES; "" of a job that has none. Without the tokens, the
 * beginning of the same. */
static void evaluation_text(const struct checkpoint_subject *subject, char out[VALUE_BYTES])
{
    const struct job *const job = subject->job;
    const struct evaluation *const e = &job->evaluation;
    out[0] = '\0';
    if (e->every == 0) return;
    const int length = snprintf(out, VALUE_BYTES, "%" PRIu64 " minibatches, %s, tokens ", e->minibatches,
                                data_format_names[e->data ? e->data_format : job->data_format]);
    if (subject->held_out_tokens != CHECKPOINT_ANY_TOKENS)
        snprintf(out + length, VALUE_BYTES - (size_t)length, "%" PRIu64, subject->held_out_tokens);
}

/* --- the tensors ------------------------------------------------------------------------------ */

/* What stands in front of a tensor's name in each part of the state: PyTorch's words. */
enum { PARTS_MAX = 3 };
static const char *const part_prefixes[OPTIMIZER_COUNT][PARTS_MAX] = {
    [OPTIMIZER_SGD] = {""},
    [OPTIMIZER_ADAMW] = {"", "exp_avg.", "exp_avg_sq."},
    [OPTIMIZER_MOMENTUM] = {"", "momentum_buffer."},
};

/* Every tensor of a file in its order, checksums last. */
struct contents {
    struct safetensors_tensor *tensors;
    void **values; /* per tensor of the state; NULL entries where it has no place */
    char (*names)[sizeof((struct tensor_spec *)0)->name + 16];
    size_t state_count, count; /* without losses, evaluations and checksums; with them */
    uint64_t step, evaluation_count;
};

static void contents_release(struct contents *contents)
{
    free(contents->tensors);
    free(contents->values);
    free(contents->names);
    *contents = (struct contents){0};
}

static void fill_contents(struct contents *contents, const struct checkpoint_subject *subject,
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
        for (; weights_walk_next(&walk, &tensor); i++) {
            struct safetensors_tensor *const out = &contents->tensors[i];
            assert(i < contents->state_count);
            snprintf(contents->names[i], sizeof *contents->names, "%s%s",
                     part_prefixes[subject->job->optimizer.kind][part], tensor.spec->name);
            *out = (struct safetensors_tensor){
                .name = contents->names[i],
                .type_name = stored == PRECISION_BF16 ? "BF16" : "F32",
                .rank = tensor.spec->rank};
            memcpy(out->shape, tensor.spec->shape, sizeof tensor.spec->shape);
            contents->values[i] = part == 0 ? tensor.values : tensor.moments[part - 1];
        }
    }
    contents->tensors[i++] = (struct safetensors_tensor){
        .name = losses_name, .type_name = "F64", .rank = 1, .shape = {contents->step}};
    if (contents->evaluation_count > 0)
        contents->tensors[i++] = (struct safetensors_tensor){.name = evaluations_name,
                                                             .type_name = "F64",
                                                             .rank = 2,
                                                             .shape = {contents->evaluation_count, 2}};
    contents->tensors[i++] = (struct safetensors_tensor){
        .name = checksums_name, .type_name = "U32", .rank = 1, .shape = {contents->count + 1}};
    assert(i == contents->count);
}

/* The caller releases it. Its tensors have offsets and bytes after safetensors_head(). */
static enum status list_contents(const struct checkpoint_subject *subject, uint64_t step,
                                 uint64_t evaluation_count, struct contents *out, struct error *err)
{
    const uint32_t part_count = 1 + optimizer_moments(subject->job->optimizer.kind);
    assert(part_count <= PARTS_MAX && part_prefixes[subject->job->optimizer.kind][part_count - 1]);
    struct contents contents = {.step = step, .evaluation_count = evaluation_count};
    for (uint32_t s = 0; s < subject->shard_count; s++)
        contents.state_count += (size_t)subject->tables[s].parts[STATE_WEIGHTS].count * part_count;
    contents.count = contents.state_count + 2 + (evaluation_count > 0);
    contents.tensors = calloc(contents.count, sizeof *contents.tensors);
    contents.values = calloc(contents.count, sizeof *contents.values);
    contents.names = calloc(contents.count, sizeof *contents.names);
    if (!contents.tensors || !contents.values || !contents.names) {
        contents_release(&contents);
        return error_memory(err, "a list of tensors", contents.count * sizeof *contents.tensors);
    }
    fill_contents(&contents, subject, part_count);
    *out = contents;
    return STATUS_OK;
}

/* --- writing ---------------------------------------------------------------------------------- */

struct checkpoint_folder {
    struct disk *disk;
    const char *path;
    uint64_t keep;
    int lock;
};

/* The folder in which `path` lies. */
static enum status parent_of(const char *path, char out[PATH_MAX], struct error *err)
{
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/') length--;
    while (length > 0 && path[length - 1] != '/') length--;
    while (length > 1 && path[length - 1] == '/') length--;
    if (length >= PATH_MAX) return error_set(err, STATUS_IO, "the path '%.100s...' is too long", path);
    memcpy(out, length > 0 ? path : ".", length > 0 ? length : 1);
    out[length > 0 ? length : 1] = '\0';
    return STATUS_OK;
}

/* Make a folder that may be there already, and have its name on the disk. */
static enum status make_folder(struct disk *disk, const char *path, const char *parent,
                               struct error *err)
{
    if ((disk->calls->make_folder(disk, path) != 0 && errno != EEXIST) ||
        disk->calls->sync_folder(disk, parent) != 0)
        return error_io(err, "cannot make the folder '%s'", path);
    return STATUS_OK;
}

enum status checkpoint_folder_open(struct disk *disk, const char *path, uint64_t keep,
                                   struct checkpoint_folder **out, struct error *err)
{
    assert(keep > 0);
    char parent[PATH_MAX];
    enum status status = parent_of(path, parent, err);
    if (status == STATUS_OK) status = make_folder(disk, path, parent, err);
    if (status != STATUS_OK) return status;
    const int lock = disk->calls->lock_folder(disk, path);
    if (lock < 0 && errno == EWOULDBLOCK)
        return error_set(err, STATUS_IO, "another run writes its checkpoints into '%s'", path);
    if (lock < 0) return error_io(err, "cannot use the folder '%s'", path);
    struct checkpoint_folder *const folder = malloc(sizeof *folder);
    if (!folder) {
        disk->calls->close(disk, lock);
        return error_memory(err, "a folder of checkpoints", sizeof *folder);
    }
    *folder = (struct checkpoint_folder){disk, path, keep, lock};
    *out = folder;
    return STATUS_OK;
}

void checkpoint_folder_close(struct checkpoint_folder *folder)
{
    if (!folder) return;
    folder->disk->calls->close(folder->disk, folder->lock);
    free(folder);
}

struct writer {
    struct disk *disk;
    int file;
    const char *path; /* the final one, for messages */
    uint32_t *checksums;
    size_t checksum_count;
};

/* All of it, and note its checksum. A disk that takes nothing and says nothing is full. */
static enum status write_piece(struct writer *writer, const void *data, uint64_t length,
                               struct error *err)
{
    const char *at = data;
    uLong checksum = crc32_z(0, NULL, 0);
    while (length > 0) {
        const size_t piece = length < CHUNK_BYTES ? (size_t)length : CHUNK_BYTES;
        checksum = crc32_z(checksum, (const Bytef *)at, piece);
        for (size_t done = 0; done < piece;) {
            errno = ENOSPC;
            const ssize_t written =
                writer->disk->calls->write(writer->disk, writer->file, at + done, piece - done);
            if (written <= 0) return error_io(err, "cannot write '%s'", writer->path);
            done += (size_t)written;
        }
        at += piece;
        length -= piece;
    }
    writer->checksums[writer->checksum_count++] = (uint32_t)checksum;
    return STATUS_OK;
}

/* As (n, 2): steps, which a double holds exactly, and losses. */
static enum status write_evaluations(struct writer *writer, const struct checkpoint_history *history,
                                     struct error *err)
{
    const size_t bytes = history->evaluation_count * 2 * sizeof(double);
    double *const pairs = malloc(bytes);
    if (!pairs) return error_memory(err, "evaluations", bytes);
    for (uint64_t i = 0; i < history->evaluation_count; i++) {
        pairs[2 * i] = (double)history->evaluations[i].step;
        pairs[2 * i + 1] = history->evaluations[i].loss;
    }
    const enum status status = write_piece(writer, pairs, bytes, err);
    free(pairs);
    return status;
}

static enum status write_all(struct writer *writer, const struct contents *contents,
                             const char *head, size_t head_bytes,
                             const struct checkpoint_history *history, struct error *err)
{
    enum status status = write_piece(writer, head, head_bytes, err);
    for (size_t i = 0; i < contents->state_count && status == STATUS_OK; i++)
        status = write_piece(writer, contents->values[i], contents->tensors[i].bytes, err);
    if (status == STATUS_OK)
        status = write_piece(writer, history->losses, contents->step * sizeof *history->losses, err);
    if (status == STATUS_OK && contents->evaluation_count > 0)
        status = write_evaluations(writer, history, err);
    if (status != STATUS_OK) return status;
    static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are written as they are");
    uint32_t *const own = &writer->checksums[writer->checksum_count];
    const size_t bytes = writer->checksum_count * sizeof *own;
    *own = (uint32_t)crc32_z(crc32_z(0, NULL, 0), (const Bytef *)writer->checksums, bytes);
    return write_piece(writer, writer->checksums, bytes + sizeof *own, err);
}

/* The file under its temporary name, synced; nothing of it is left behind when that fails. */
static enum status write_temporary(struct checkpoint_folder *folder, struct writer *writer,
                                   const char *temporary, const struct contents *contents,
                                   const char *head, size_t head_bytes,
                                   const struct checkpoint_history *history, struct error *err)
{
    struct disk *const disk = folder->disk;
    writer->file = disk->calls->create(disk, temporary);
    if (writer->file < 0) return error_io(err, "cannot create '%s'", temporary);
    enum status status = write_all(writer, contents, head, head_bytes, history, err);
    if (status == STATUS_OK && disk->calls->sync(disk, writer->file) != 0)
        status = error_io(err, "cannot write '%s'", writer->path);
    if (disk->calls->close(disk, writer->file) != 0 && status == STATUS_OK)
        status = error_io(err, "cannot write '%s'", writer->path);
    if (status != STATUS_OK) disk->calls->remove(disk, temporary);
    return status;
}

/* Remove what is too old or later than `step`, and what a killed run left half-written; the best one
 * (0: there is none) is never too old. That this fails does no harm but to the room on the disk; it is
 * tried again the next time. */
static void remove_old(struct checkpoint_folder *folder, const struct job *job, uint64_t step,
                       uint64_t best_step)
{
    struct disk *const disk = folder->disk;
    const char *const endings[] = {final_end, temporary_end};
    struct error ignored = {0};
    char path[PATH_MAX];
    for (size_t e = 0; e < ARRAY_COUNT(endings); e++) {
        struct listing listing;
        if (list_steps(disk, folder->path, job, endings[e], &listing, &ignored) != STATUS_OK)
            listing.count = 0;
        uint64_t kept = 0;
        for (size_t i = 0; i < listing.count; i++) {
            const bool keep = e == 0 && listing.steps[i] <= step &&
                              (kept < folder->keep || listing.steps[i] == best_step);
            kept += keep;
            if (!keep && make_path(path, folder->path, job, listing.steps[i], endings[e],
                                   &ignored) == STATUS_OK)
                disk->calls->remove(disk, path);
        }
        free(listing.steps);
    }
}

static enum status describe(const struct checkpoint_subject *subject,
                            const struct checkpoint_origin *origin, struct contents *contents,
                            const struct evaluated *best, char **head, size_t *head_bytes,
                            struct error *err)
{
    struct identity *identity = NULL;
    enum status status = identify(subject, &identity, err);
    if (status != STATUS_OK) return status;
    char version[16], step[32], threads[16], best_step[32], best_loss[32], evaluation[VALUE_BYTES];
    snprintf(version, sizeof version, "%d", (int)FORMAT_VERSION);
    snprintf(step, sizeof step, "%" PRIu64, contents->step);
    snprintf(threads, sizeof threads, "%" PRIu32, origin->threads);
    struct safetensors_pair pairs[KEY_COUNT + 10] = {
        {"format", "pt"},         {"spillway_checkpoint", version}, {"version", SPILLWAY_VERSION},
        {"step", step},           {"backend", origin->backend},     {"libraries", origin->libraries},
        {"threads", threads}};
    size_t count = 7;
    for (size_t i = 0; i < KEY_COUNT; i++)
        pairs[count++] = (struct safetensors_pair){keys[i], identity->values[i]};
    evaluation_text(subject, evaluation);
    if (evaluation[0]) pairs[count++] = (struct safetensors_pair){"evaluation", evaluation};
    if (best) {
        snprintf(best_step, sizeof best_step, "%" PRIu64, best->step);
        snprintf(best_loss, sizeof best_loss, "%.17g", best->loss);
        pairs[count++] = (struct safetensors_pair){"best_step", best_step};
        pairs[count++] = (struct safetensors_pair){"best_evaluation", best_loss};
    }
    assert(count <= ARRAY_COUNT(pairs));
    status = safetensors_head(contents->tensors, contents->count, pairs, count, head, head_bytes, err);
    free(identity);
    return status;
}

enum status checkpoint_write(struct checkpoint_folder *folder,
                             const struct checkpoint_subject *subject,
                             const struct checkpoint_origin *origin, uint64_t step,
                             const struct checkpoint_history *history, struct error *err)
{
    assert(step > 0);
    assert(subject->states);
    const uint64_t number = evaluation_best(history->evaluations, history->evaluation_count);
    const struct evaluated *const best =
        number == EVALUATION_NONE ? NULL : &history->evaluations[number];
    struct disk *const disk = folder->disk;
    char home[PATH_MAX], temporary[PATH_MAX], final[PATH_MAX];
    struct contents contents = {0};
    struct writer writer = {.disk = disk, .path = final};
    char *head = NULL;
    size_t head_bytes = 0;
    enum status status = make_path(home, folder->path, subject->job, 0, NULL, err);
    if (status == STATUS_OK)
        status = make_path(temporary, folder->path, subject->job, step, temporary_end, err);
    if (status == STATUS_OK)
        status = make_path(final, folder->path, subject->job, step, final_end, err);
    if (status == STATUS_OK)
        status = list_contents(subject, step, history->evaluation_count, &contents, err);
    if (status == STATUS_OK)
        status = describe(subject, origin, &contents, best, &head, &head_bytes, err);
    if (status == STATUS_OK) {
        writer.checksums = calloc(contents.count + 2, sizeof *writer.checksums);
        if (!writer.checksums) status = error_memory(err, "checksums", contents.count);
    }
    if (status == STATUS_OK) status = make_folder(disk, home, folder->path, err);
    if (status == STATUS_OK)
        status = write_temporary(folder, &writer, temporary, &contents, head, head_bytes, history, err);
    if (status == STATUS_OK && disk->calls->rename(disk, temporary, final) != 0) {
        status = error_io(err, "cannot write '%s'", final);
        disk->calls->remove(disk, temporary);
    }
    if (status == STATUS_OK && disk->calls->sync_folder(disk, home) != 0)
        status = error_io(err, "cannot write '%s'", final);
    if (status == STATUS_OK) remove_old(folder, subject->job, step, best ? best->step : 0);
    free(writer.checksums);
    free(head);
    contents_release(&contents);
    return status;
}

/* --- reading ---------------------------------------------------------------------------------- */

struct reader {
    struct disk *disk;
    int file;
    uint64_t bytes;
    const char *path;
    char *head;
    uint64_t head_bytes;
    uint32_t *checksums;
    struct safetensors *parsed;
};

static enum status not_whole(const struct reader *reader, struct error *err, const char *format, ...)
    PRINTF_LIKE(3, 4);
static enum status not_whole(const struct reader *reader, struct error *err, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return error_set(err, STATUS_CHECK, "'%s' is damaged: %s", reader->path, text);
}

static enum status read_exactly(const struct reader *reader, void *to, uint64_t length,
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

/* Read a range to `to`, or, when that is NULL, nowhere, and compare its checksum. */
static enum status read_checked(const struct reader *reader, void *to, uint64_t length,
                                uint64_t offset, uint32_t expected, const char *what, char *scratch,
                                struct error *err)
{
    uLong checksum = crc32_z(0, NULL, 0);
    for (uint64_t done = 0; done < length;) {
        const uint64_t rest = length - done, piece = rest < CHUNK_BYTES ? rest : CHUNK_BYTES;
        char *const at = to ? (char *)to + done : scratch;
        const enum status status = read_exactly(reader, at, piece, offset + done, err);
        if (status != STATUS_OK) return status;
        checksum = crc32_z(checksum, (const Bytef *)at, (size_t)piece);
        done += piece;
    }
    if ((uint32_t)checksum == expected) return STATUS_OK;
    return not_whole(reader, err, "the checksum of '%s' is %08" PRIx32 " (expected %08" PRIx32 ")",
                     what, (uint32_t)checksum, expected);
}

static enum status reader_open(struct reader *reader, struct disk *disk, const char *path,
                               struct error *err)
{
    *reader = (struct reader){.disk = disk, .path = path};
    reader->file = disk->calls->open(disk, path);
    if (reader->file < 0) return error_io(err, "cannot open '%s'", path);
    const int64_t size = disk->calls->size(disk, reader->file);
    if (size < 0) return error_io(err, "cannot read '%s'", path);
    reader->bytes = (uint64_t)size;
    return STATUS_OK;
}

static void reader_close(struct reader *reader)
{
    safetensors_close(reader->parsed);
    free(reader->head);
    free(reader->checksums);
    if (reader->file >= 0) reader->disk->calls->close(reader->disk, reader->file);
    *reader = (struct reader){.file = -1};
}

static enum status read_head(struct reader *reader, struct error *err)
{
    char first[SAFETENSORS_LENGTH_BYTES];
    if (reader->bytes < sizeof first)
        return not_whole(reader, err, "it has %" PRIu64 " bytes", reader->bytes);
    enum status status = read_exactly(reader, first, sizeof first, 0, err);
    if (status != STATUS_OK) return status;
    if (!safetensors_head_bytes(first, reader->bytes, &reader->head_bytes))
        return not_whole(reader, err, "its head is longer than the file or than is allowed");
    reader->head = malloc(reader->head_bytes);
    if (!reader->head) return error_memory(err, "the head of a checkpoint", reader->head_bytes);
    status = read_exactly(reader, reader->head, reader->head_bytes, 0, err);
    if (status != STATUS_OK) return status;
    struct error why = {0};
    status = safetensors_parse_head("head", reader->head, reader->head_bytes, reader->bytes,
                                    &reader->parsed, &why);
    if (status == STATUS_NO_MEMORY) return error_set(err, status, "%s", why.text);
    return status == STATUS_OK ? status : not_whole(reader, err, "%.200s", why.text);
}

/* Checksums of the head and of each tensor in front of them, themselves checked. */
static enum status read_checksums(struct reader *reader, struct error *err)
{
    const size_t tensors = safetensors_count(reader->parsed);
    const struct safetensors_tensor *const last =
        tensors > 0 ? safetensors_at(reader->parsed, tensors - 1) : NULL;
    if (!last || strcmp(last->name, checksums_name) != 0 || strcmp(last->type_name, "U32") != 0 ||
        last->elements != tensors + 1)
        return not_whole(reader, err, "there are no checksums at its end");
    reader->checksums = malloc(last->bytes);
    if (!reader->checksums) return error_memory(err, "checksums", last->bytes);
    enum status status = read_exactly(reader, reader->checksums, last->bytes, last->offset, err);
    if (status != STATUS_OK) return status;
    const uLong none = crc32_z(0, NULL, 0);
    const uLong own = crc32_z(none, (const Bytef *)reader->checksums, tensors * sizeof(uint32_t));
    if (own != reader->checksums[tensors])
        return not_whole(reader, err, "the checksums do not have their own checksum");
    const uLong head = crc32_z(none, (const Bytef *)reader->head, reader->head_bytes);
    if (head != reader->checksums[0])
        return not_whole(reader, err, "the head does not have its checksum");
    return STATUS_OK;
}

/* Where two descriptions begin to differ, from the comma in front of that on. */
static size_t difference(const char *a, const char *b)
{
    size_t at = 0, from = 0;
    for (; a[at] && a[at] == b[at]; at++)
        if (a[at] == ',') from = at + 1;
    return from + (a[from] == ' ');
}

/* It is whole; is it of this training? */
static enum status check_identity(const struct reader *reader, const struct checkpoint_subject *subject,
                                  struct error *err)
{
    const char *const version = safetensors_metadata(reader->parsed, "spillway_checkpoint");
    if (!version || strcmp(version, "1") != 0)
        return error_set(err, STATUS_BAD_INPUT,
                         "'%s' is a checkpoint of version '%.40s' (expected %d)", reader->path,
                         version ? version : "none", (int)FORMAT_VERSION);
    struct identity *identity = NULL;
    enum status status = identify(subject, &identity, err);
    for (size_t i = 0; i < KEY_COUNT && status == STATUS_OK; i++) {
        const char *found = safetensors_metadata(reader->parsed, keys[i]);
        /* those of before there was another do not say it */
        if (!found && i == KEY_PRECISION) found = precision_names[PRECISION_FP32];
        const bool any = i == KEY_DATA_TOKENS && subject->data_tokens == CHECKPOINT_ANY_TOKENS;
        if (any || (found && strcmp(found, identity->values[i]) == 0)) continue;
        if (i == KEY_NETWORK) {
            status = error_set(err, STATUS_BAD_INPUT,
                               "'%s' is a checkpoint of another network than that of job '%s'",
                               reader->path, subject->job->name);
        } else {
            const char *const wanted = identity->values[i];
            const size_t from = found ? difference(found, wanted) : 0;
            status = error_set(err, STATUS_BAD_INPUT,
                               "'%s' is a checkpoint of another training than job '%s': its %s is "
                               "%s%.100s (expected %s%.100s)",
                               reader->path, subject->job->name, keys[i], from > 0 ? "..., " : "",
                               found ? found + from : "not there", from > 0 ? "..., " : "",
                               wanted + from);
        }
    }
    free(identity);
    return status;
}

/* The same tensors in the same order as would be written. */
static enum status check_contents(const struct reader *reader, const struct contents *contents,
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

/* How many evaluations a file says it has; check_contents() holds it to that. */
static uint64_t stated_evaluations(const struct reader *reader)
{
    const struct safetensors_tensor *const tensor = safetensors_find(reader->parsed, evaluations_name);
    return tensor && tensor->rank == 2 ? tensor->shape[0] : 0;
}

static void zero_states(const struct checkpoint_subject *subject)
{
    for (uint32_t s = 0; s < subject->shard_count; s++)
        memset(subject->states[s], 0, subject->tables[s].layout.bytes);
}

/* What a file says was measured. */
struct measured {
    double *losses;
    double *pairs;                 /* steps and losses of evaluations */
    struct evaluated *evaluations;
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
static enum status measured_init(struct measured *measured, const struct contents *contents,
                                 struct error *err)
{
    const uint64_t n = contents->evaluation_count;
    measured->losses = malloc(contents->step * sizeof *measured->losses);
    measured->pairs = malloc((n + 1) * 2 * sizeof *measured->pairs);
    measured->evaluations = malloc((n + 1) * sizeof *measured->evaluations);
    measured->evaluation_count = n;
    if (measured->losses && measured->pairs && measured->evaluations) return STATUS_OK;
    measured_release(measured);
    return error_memory(err, "losses", (contents->step + 4 * n) * sizeof(double));
}

/* Steps that rise to that of the checkpoint. */
static enum status take_evaluations(const struct reader *reader, const struct contents *contents,
                                    struct measured *measured, struct error *err)
{
    uint64_t before = 0;
    for (uint64_t i = 0; i < measured->evaluation_count; i++) {
        const double step = measured->pairs[2 * i];
        if (!(step > (double)before && step <= (double)contents->step) || step != trunc(step))
            return not_whole(reader, err, "evaluation %" PRIu64 " is after step %g (expected %" PRIu64
                             " to %" PRIu64 ")", i, step, before + 1, contents->step);
        before = (uint64_t)step;
        measured->evaluations[i] = (struct evaluated){before, measured->pairs[2 * i + 1]};
    }
    return STATUS_OK;
}

/* Were they made on the held-out data of the subject? */
static bool same_evaluation(const struct reader *reader, const struct checkpoint_subject *subject)
{
    const char *const found = safetensors_metadata(reader->parsed, "evaluation");
    char wanted[VALUE_BYTES];
    evaluation_text(subject, wanted);
    if (!found || !wanted[0]) return false;
    return subject->held_out_tokens == CHECKPOINT_ANY_TOKENS
               ? strncmp(found, wanted, strlen(wanted)) == 0
               : strcmp(found, wanted) == 0;
}

/* Every byte of the data, the state to its place if it has one. */
static enum status read_data(const struct reader *reader, const struct contents *contents,
                             struct measured *measured, struct error *err)
{
    char *const scratch = malloc(CHUNK_BYTES);
    if (!scratch) return error_memory(err, "reading a checkpoint", CHUNK_BYTES);
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

static void keep_found(const struct reader *reader, uint64_t step, const struct measured *measured,
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

static enum status keep_history(const struct reader *reader, const struct contents *contents,
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

/* One checkpoint. `history` and `found` may be NULL. */
static enum status read_one(struct disk *disk, const char *folder,
                            const struct checkpoint_subject *subject, uint64_t step,
                            struct checkpoint_history *history, struct checkpoint_found *found,
                            struct error *err)
{
    char path[PATH_MAX];
    struct reader reader = {.file = -1};
    struct contents contents = {0};
    struct measured measured = {0};
    enum status status = make_path(path, folder, subject->job, step, final_end, err);
    if (status == STATUS_OK) status = reader_open(&reader, disk, path, err);
    if (status == STATUS_OK) status = read_head(&reader, err);
    if (status == STATUS_OK) status = read_checksums(&reader, err);
    if (status == STATUS_OK) status = check_identity(&reader, subject, err);
    if (status == STATUS_OK)
        status = list_contents(subject, step, stated_evaluations(&reader), &contents, err);
    if (status == STATUS_OK) status = check_contents(&reader, &contents, err);
    if (status == STATUS_OK) status = measured_init(&measured, &contents, err);
    if (status == STATUS_OK && subject->states) zero_states(subject);
    if (status == STATUS_OK) status = read_data(&reader, &contents, &measured, err);
    if (status == STATUS_OK && subject->states)
        weights_round(subject->job, subject->tables, subject->shard_count, subject->states);
    if (status == STATUS_OK) status = take_evaluations(&reader, &contents, &measured, err);
    if (status == STATUS_OK && !same_evaluation(&reader, subject)) measured.evaluation_count = 0;
    if (status == STATUS_OK && history)
        status = keep_history(&reader, &contents, &measured, history, err);
    if (status == STATUS_OK && found) keep_found(&reader, step, &measured, found);
    measured_release(&measured);
    contents_release(&contents);
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
    struct listing listing;
    enum status status = list_steps(disk, path, subject->job, final_end, &listing, err);
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
                           "none of the %" PRIu32 " checkpoints of job '%s' in '%s' is whole; of the "
                           "newest: %s (move them away to begin anew)",
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
    struct listing listing;
    const enum status status = list_steps(disk, path, job, final_end, &listing, err);
    if (status == STATUS_OK) *out = listing.count > 0 ? listing.steps[0] : 0;
    free(listing.steps);
    return status;
}
