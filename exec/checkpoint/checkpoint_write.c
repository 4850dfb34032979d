/*
 * The order of calls on the disk, each of which may be the last before the power goes:
 *
 *     make JOB/, sync FOLDER/        a name that is not synced may be lost with all that is in it
 *     create step-N.tmp, write ..., sync, close
 *     rename to step-N.safetensors, sync JOB/
 *     remove files that are too old
 *
 * The sync before the rename writes the bytes before the name; the sync after the rename shows that older checkpoints
 * may be removed. A disk may reorder everything between two syncs; tests/exec/test_exec_checkpoint_faults.c does so.
 */
#include "base/alloc.h"
#include "base/try.h"
#include "exec/checkpoint/checkpoint_format.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/size.h"

/* --- the folder ------------------------------------------------------------------------------- */

struct checkpoint_folder {
    struct disk *disk;
    const char *path;
    uint64_t keep;
    int lock;
};

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

static enum status make_folder(struct disk *disk, const char *path, const char *parent,
                               struct error *err)
{
    if ((disk->calls->make_folder(disk, path) != 0 && errno != EEXIST) ||
        disk->calls->sync_folder(disk, parent) != 0)
        return error_input(err, "cannot make the folder '%s'", path);
    return STATUS_OK;
}

enum status checkpoint_folder_open(struct disk *disk, const char *path, uint64_t keep,
                                   struct checkpoint_folder **out, struct error *err)
{
    assert(keep > 0);
    char parent[PATH_MAX];
    TRY(parent_of(path, parent, err));
    TRY(make_folder(disk, path, parent, err));
    const int lock = disk->calls->lock_folder(disk, path);
    if (lock < 0 && errno == EWOULDBLOCK)
        return error_set(err, STATUS_IO, "another run writes its checkpoints into '%s'", path);
    if (lock < 0) return error_io(err, "cannot use the folder '%s'", path);
    struct checkpoint_folder *const folder = alloc_resize(NULL, sizeof *folder);
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

/* --- the file --------------------------------------------------------------------------------- */

struct checkpoint_writer {
    struct disk *disk;
    int file;
    const char *path; /* the final one, for messages */
    uint32_t *checksums;
    size_t checksum_count;
};

/* Writes all of a piece. A disk that accepts no bytes without an error is full. */
static enum status write_piece(struct checkpoint_writer *writer, const void *data, uint64_t length,
                               struct error *err)
{
    const char *at = data;
    uLong checksum = crc32_z(0, NULL, 0);
    while (length > 0) {
        const size_t piece = length < CHECKPOINT_CHUNK_BYTES ? (size_t)length : CHECKPOINT_CHUNK_BYTES;
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

/* Writes evaluations as (n, 2): steps, which a double holds exactly, and losses. */
static enum status write_evaluations(struct checkpoint_writer *writer, const struct checkpoint_history *history,
                                     struct error *err)
{
    const size_t bytes = history->evaluation_count * 2 * sizeof(double);
    double *const pairs = alloc_resize(NULL, bytes);
    if (!pairs) return error_memory(err, "evaluations", bytes);
    for (uint64_t i = 0; i < history->evaluation_count; i++) {
        pairs[2 * i] = (double)history->evaluations[i].step;
        pairs[2 * i + 1] = history->evaluations[i].loss;
    }
    const enum status status = write_piece(writer, pairs, bytes, err);
    free(pairs);
    return status;
}

static enum status write_all(struct checkpoint_writer *writer, const struct checkpoint_contents *contents,
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

/* Writes and syncs the temporary file; removes it on failure. */
static enum status write_temporary(struct checkpoint_folder *folder, struct checkpoint_writer *writer,
                                   const char *temporary, const struct checkpoint_contents *contents,
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

/* Removes checkpoints that are too old or later than `step`, and incomplete files; the best checkpoint (0: none) is
 * never too old. A failure only costs space on the disk; the next call tries again. */
static void remove_old(struct checkpoint_folder *folder, const struct job *job, uint64_t step,
                       uint64_t best_step)
{
    struct disk *const disk = folder->disk;
    const char *const endings[] = {checkpoint_final_end, checkpoint_temporary_end};
    struct error ignored = {0};
    char path[PATH_MAX];
    for (size_t e = 0; e < ARRAY_COUNT(endings); e++) {
        struct checkpoint_listing listing;
        if (checkpoint_list(disk, folder->path, job, endings[e], &listing, &ignored) != STATUS_OK)
            listing.count = 0;
        uint64_t kept = 0;
        for (size_t i = 0; i < listing.count; i++) {
            const bool keep = e == 0 && listing.steps[i] <= step &&
                              (kept < folder->keep || listing.steps[i] == best_step);
            kept += keep;
            if (!keep && checkpoint_path(path, folder->path, job, listing.steps[i], endings[e],
                                         &ignored) == STATUS_OK)
                disk->calls->remove(disk, path);
        }
        free(listing.steps);
    }
}

/* The keys that identify a checkpoint and at most 11 others. */
struct pair_list {
    struct safetensors_pair pairs[CHECKPOINT_KEY_COUNT + 11];
    size_t count;
};

static void add_pair(struct pair_list *list, const char *key, const char *value)
{
    assert(list->count < ARRAY_COUNT(list->pairs));
    list->pairs[list->count++] = (struct safetensors_pair){key, value};
}

static enum status describe(const struct checkpoint_subject *subject,
                            const struct checkpoint_origin *origin, struct checkpoint_contents *contents,
                            const struct evaluation_progress *best, char **head, size_t *head_bytes,
                            struct error *err)
{
    struct checkpoint_identity *identity = NULL;
    enum status status = checkpoint_identify(subject, &identity, err);
    if (status != STATUS_OK) return status;
    char step[32], threads[16], frozen[17], best_step[32], best_loss[32], evaluation[CHECKPOINT_VALUE_BYTES];
    snprintf(step, sizeof step, "%" PRIu64, contents->step);
    snprintf(threads, sizeof threads, "%" PRIu32, origin->threads);
    struct pair_list list = {0};
    add_pair(&list, "format", "pt");
    add_pair(&list, "spillway_checkpoint",
             subject->job->precision == PRECISION_BF16 ? checkpoint_half_version : checkpoint_version);
    add_pair(&list, "version", SPILLWAY_VERSION);
    add_pair(&list, "step", step);
    add_pair(&list, "backend", origin->backend);
    add_pair(&list, "libraries", origin->libraries);
    add_pair(&list, "threads", threads);
    for (size_t i = 0; i < CHECKPOINT_KEY_COUNT; i++) add_pair(&list, checkpoint_keys[i], identity->values[i]);
    snprintf(frozen, sizeof frozen, "%016" PRIx64, subject->frozen);
    if (subject->knows_frozen) add_pair(&list, checkpoint_frozen_key, frozen);
    checkpoint_evaluation_text(subject, evaluation);
    if (evaluation[0]) add_pair(&list, "evaluation", evaluation);
    if (best) {
        snprintf(best_step, sizeof best_step, "%" PRIu64, best->step);
        snprintf(best_loss, sizeof best_loss, "%.17g", best->loss);
        add_pair(&list, "best_step", best_step);
        add_pair(&list, "best_evaluation", best_loss);
    }
    status = safetensors_head(contents->tensors, contents->count, list.pairs, list.count, head, head_bytes, err);
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
    const struct evaluation_progress *const best =
        number == EVALUATION_NONE ? NULL : &history->evaluations[number];
    struct disk *const disk = folder->disk;
    char home[PATH_MAX], temporary[PATH_MAX], final[PATH_MAX];
    struct checkpoint_contents contents = {0};
    struct checkpoint_writer writer = {.disk = disk, .path = final};
    char *head = NULL;
    size_t head_bytes = 0;
    enum status status = checkpoint_path(home, folder->path, subject->job, 0, NULL, err);
    if (status == STATUS_OK)
        status = checkpoint_path(temporary, folder->path, subject->job, step, checkpoint_temporary_end, err);
    if (status == STATUS_OK)
        status = checkpoint_path(final, folder->path, subject->job, step, checkpoint_final_end, err);
    if (status == STATUS_OK)
        status = checkpoint_contents_list(subject, step, history->evaluation_count, &contents, err);
    if (status == STATUS_OK)
        status = describe(subject, origin, &contents, best, &head, &head_bytes, err);
    if (status == STATUS_OK) {
        writer.checksums = alloc_zeroed(contents.count + 2, sizeof *writer.checksums);
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
    checkpoint_contents_release(&contents);
    return status;
}
