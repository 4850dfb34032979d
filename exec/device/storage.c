/*
 * Direct I/O requires whole blocks at aligned addresses. A transfer is cut into *pieces*: partial blocks at its ends,
 * and pieces of up to PIECE bytes in between:
 *
 *     offset                                              offset + bytes
 *       |                                                      |
 *   [ . aaaa ][ bbbbbbbb ... ][ bbbbbbbb ... ][ bbbb ... ][ aa . . ]     multiples of a block
 *
 *     a   through a block buffer; when writing, the rest of the block is read first
 *     b   directly from or to the caller's memory, if that is on a block boundary; else through a
 *         piece buffer and a copy
 *
 * Most states of shards begin on a block boundary in the file and in memory, so nearly all data is b.
 *
 * Several pieces are in flight, because no disk is fast with one: DEPTH entries of the queue's io_uring, submitted and
 * awaited by the calling thread. If the kernel refuses io_uring (containers, some distributions), WORKERS threads use
 * pread and pwrite.
 *
 * A short transfer continues after its last whole block. A piece without progress for RETRIES_MAX tries fails.
 *
 * Dropped: registered buffers and files (1 to 2 %, and pinned memory is limited); a polling kernel thread (it takes a
 * core).
 */
#include "exec/device/storage.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <liburing.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/extreme.h"
#include "base/size.h"
#include "base/text/quantity.h"
#include "base/try.h"

enum { PIECE = 1 << 20, DEPTH = 16, WORKERS = 4, RETRIES_MAX = 64, NOTE_BYTES = 512 };
static_assert(PIECE % STORAGE_BLOCK == 0, "pieces are whole blocks");

struct transfer {
    bool write;
    char *memory;
    uint64_t offset, bytes;
    uint64_t first;        /* of the blocks that it touches ... */
    uint64_t end;          /* ... and where they end */
    uint64_t next;         /* first byte that is not yet taken */
    int failure;           /* of the first piece that failed; 0 */
    uint64_t failed_at;
};

struct storage_piece {
    uint64_t offset, length; /* in the file */
    uint64_t done;
    char *memory;            /* the caller's or ours */
    bool ours;
    uint32_t retries;
};

struct worker {
    struct storage_queue *queue;
    pthread_t thread;
    bool started;
    char *room;
};

struct storage_queue {
    struct storage *storage;
    struct io_uring ring;
    bool has_ring;
    struct storage_piece pieces[DEPTH];
    char *room;              /* DEPTH piece buffers */
    struct worker workers[WORKERS];
    pthread_mutex_t lock;    /* of what follows; with workers */
    pthread_cond_t changed;
    struct transfer *current; /* NULL: nothing to do */
    uint32_t busy;
    bool quit, made;
};

struct storage {
    struct storage_options options;
    struct storage_calls *calls;
    int file;
    uint64_t block;          /* 1: no direct I/O */
    struct storage_queue *queues;
    char text[64], note[NOTE_BYTES];
};

/* --- the real calls ----------------------------------------------------------------------------- */

static int real_open(struct storage_calls *calls, const char *path, int flags)
{
    (void)calls;
    return open(path, flags, 0600);
}

static int real_reserve(struct storage_calls *calls, int file, uint64_t bytes)
{
    (void)calls;
    int failed;
    do failed = posix_fallocate(file, 0, (off_t)bytes);
    while (failed == EINTR);
    return failed;
}

static int64_t real_outcome(struct storage_calls *calls, bool write, uint64_t offset,
                            uint64_t length, int64_t result)
{
    (void)calls;
    (void)write;
    (void)offset;
    (void)length;
    return result;
}

struct storage_calls storage_calls_real = {
    .open = real_open, .reserve = real_reserve, .outcome = real_outcome};

/* --- pieces ------------------------------------------------------------------------------------- */

static uint64_t round_down(uint64_t value, uint64_t unit) { return value - value % unit; }

static void transfer_begin(struct transfer *t, const struct storage *storage)
{
    t->first = t->next = round_down(t->offset, storage->block);
    t->end = size_align(t->offset + t->bytes, storage->block);
}

/* Returns false when there is no piece or one has failed. `room` is the piece's buffer. */
static bool next_piece(struct transfer *t, const struct storage *storage, struct storage_piece *piece)
{
    const uint64_t block = storage->block;
    if (t->next >= t->end || t->failure) return false;
    uint64_t end = min_u64(t->next + PIECE, round_down(t->offset + t->bytes, block));
    if (t->next < t->offset || end <= t->next) end = t->next + block; /* ours in part */
    *piece = (struct storage_piece){.offset = t->next, .length = end - t->next};
    const bool whole = t->next >= t->offset && end <= t->offset + t->bytes;
    char *const place = whole ? t->memory + (t->next - t->offset) : NULL;
    piece->ours = !whole || (uintptr_t)place % block != 0;
    if (!piece->ours) piece->memory = place;
    t->next = end;
    return true;
}

static void copy_piece(const struct transfer *t, const struct storage_piece *piece)
{
    const uint64_t from = max_u64(piece->offset, t->offset);
    const uint64_t to = min_u64(piece->offset + piece->length, t->offset + t->bytes);
    char *const caller = t->memory + (from - t->offset);
    char *const ours = piece->memory + (from - piece->offset);
    if (t->write)
        memcpy(ours, caller, to - from);
    else
        memcpy(caller, ours, to - from);
}

static void fail(struct transfer *t, const struct storage_piece *piece, int reason)
{
    if (t->failure) return;
    t->failure = reason;
    t->failed_at = piece->offset + piece->done;
}

/* Evaluates a call's result. False: the piece must be tried again. */
static bool account(const struct storage *storage, struct transfer *t, struct storage_piece *piece,
                    bool write, int64_t result)
{
    const uint64_t left = piece->length - piece->done;
    result = storage->calls->outcome(storage->calls, write, piece->offset + piece->done, left, result);
    const uint64_t did = result > 0 ? round_down(min_u64((uint64_t)result, left), storage->block) : 0;
    piece->done += did;
    if (did > 0) piece->retries = 0;
    if (piece->done == piece->length) return true;
    if (result < 0 && result != -EINTR && result != -EAGAIN) {
        fail(t, piece, (int)-result);
        return true;
    }
    if (did > 0 || ++piece->retries < RETRIES_MAX) return false;
    fail(t, piece, result < 0 ? (int)-result : EIO); /* the file ends here, or nothing happens */
    return true;
}

/* Uses ordinary calls. */
static void move_piece(const struct storage *storage, struct transfer *t, struct storage_piece *piece,
                       bool write)
{
    bool ended = false;
    while (!ended) {
        char *const at = piece->memory + piece->done;
        const uint64_t left = piece->length - piece->done;
        const off_t offset = (off_t)(piece->offset + piece->done);
        const ssize_t result = write ? pwrite(storage->file, at, left, offset)
                                     : pread(storage->file, at, left, offset);
        ended = account(storage, t, piece, write, result < 0 ? -errno : result);
    }
}

static void fill_piece(const struct storage *storage, struct transfer *t, struct storage_piece *piece)
{
    if (!t->write || !piece->ours) return;
    const bool in_part = piece->offset < t->offset ||
                         piece->offset + piece->length > t->offset + t->bytes;
    if (in_part) { /* what others have in this block stays */
        move_piece(storage, t, piece, false);
        piece->done = 0;
        piece->retries = 0;
    }
    copy_piece(t, piece);
}

/* --- with a ring -------------------------------------------------------------------------------- */

static void submit(struct storage_queue *queue, const struct transfer *t, struct storage_piece *piece)
{
    struct io_uring_sqe *const entry = io_uring_get_sqe(&queue->ring);
    assert(entry); /* as many as pieces */
    char *const at = piece->memory + piece->done;
    const unsigned left = (unsigned)(piece->length - piece->done);
    const uint64_t offset = piece->offset + piece->done;
    if (t->write)
        io_uring_prep_write(entry, queue->storage->file, at, left, offset);
    else
        io_uring_prep_read(entry, queue->storage->file, at, left, offset);
    io_uring_sqe_set_data(entry, piece);
}

/* Returns NULL while the piece continues. */
static struct storage_piece *reap(struct storage_queue *queue, struct transfer *t, struct io_uring_cqe *entry)
{
    struct storage_piece *const piece = io_uring_cqe_get_data(entry);
    const int result = entry->res;
    io_uring_cqe_seen(&queue->ring, entry);
    if (!account(queue->storage, t, piece, t->write, result)) {
        submit(queue, t, piece);
        return NULL;
    }
    if (!t->write && piece->ours && !t->failure) copy_piece(t, piece);
    return piece;
}

static void run_ring(struct storage_queue *queue, struct transfer *t)
{
    struct storage_piece *idle[DEPTH];
    uint32_t idle_count = 0;
    for (uint32_t i = 0; i < DEPTH; i++) idle[idle_count++] = &queue->pieces[i];
    for (;;) {
        while (idle_count > 0 && next_piece(t, queue->storage, idle[idle_count - 1])) {
            struct storage_piece *const piece = idle[--idle_count];
            if (piece->ours) piece->memory = queue->room + (size_t)(piece - queue->pieces) * PIECE;
            fill_piece(queue->storage, t, piece);
            submit(queue, t, piece);
        }
        if (idle_count == DEPTH) return;
        const int submitted = io_uring_submit_and_wait(&queue->ring, 1);
        struct io_uring_cqe *entry;
        /* EINTR and EBUSY: process completions, then submit again */
        assert(submitted >= 0 || submitted == -EINTR || submitted == -EBUSY || submitted == -EAGAIN);
        while (io_uring_peek_cqe(&queue->ring, &entry) == 0) {
            struct storage_piece *const ended = reap(queue, t, entry);
            if (ended) idle[idle_count++] = ended;
        }
    }
}

/* --- with workers ------------------------------------------------------------------------------- */

static void *worker_main(void *pointer)
{
    struct worker *const worker = pointer;
    struct storage_queue *const queue = worker->queue;
    pthread_mutex_lock(&queue->lock);
    while (!queue->quit) {
        struct transfer *const t = queue->current;
        struct storage_piece piece;
        if (!t || !next_piece(t, queue->storage, &piece)) {
            pthread_cond_wait(&queue->changed, &queue->lock);
            continue;
        }
        struct transfer own = *t; /* failures are told under the lock */
        queue->busy++;
        pthread_mutex_unlock(&queue->lock);
        if (piece.ours) piece.memory = worker->room;
        fill_piece(queue->storage, &own, &piece);
        if (!own.failure) move_piece(queue->storage, &own, &piece, own.write);
        if (!own.write && piece.ours && !own.failure) copy_piece(&own, &piece);
        pthread_mutex_lock(&queue->lock);
        if (own.failure && !t->failure) {
            t->failure = own.failure;
            t->failed_at = own.failed_at;
        }
        if (--queue->busy == 0) pthread_cond_broadcast(&queue->changed);
    }
    pthread_mutex_unlock(&queue->lock);
    return NULL;
}

static void run_workers(struct storage_queue *queue, struct transfer *t)
{
    pthread_mutex_lock(&queue->lock);
    assert(!queue->current);
    queue->current = t;
    pthread_cond_broadcast(&queue->changed);
    while (queue->busy > 0 || (t->next < t->end && !t->failure))
        pthread_cond_wait(&queue->changed, &queue->lock);
    queue->current = NULL;
    pthread_mutex_unlock(&queue->lock);
}

/* --- transfers ---------------------------------------------------------------------------------- */

static enum status make_room(char **room, size_t pieces, struct error *err)
{
    if (*room) return STATUS_OK;
    void *memory = NULL;
    if (posix_memalign(&memory, STORAGE_BLOCK, pieces * PIECE) != 0)
        return error_memory(err, "transfers to storage", pieces * PIECE);
    *room = memory;
    return STATUS_OK;
}

static enum status transfer(struct storage *storage, uint32_t queue_index, struct transfer *t,
                            struct error *err)
{
    assert(queue_index < storage->options.queues);
    struct storage_queue *const queue = &storage->queues[queue_index];
    assert(t->bytes <= storage->options.bytes);
    assert(t->offset <= storage->options.bytes - t->bytes);
    if (t->bytes == 0) return STATUS_OK;
    transfer_begin(t, storage);
    if (queue->has_ring) {
        TRY(make_room(&queue->room, DEPTH, err));
        run_ring(queue, t);
    } else {
        run_workers(queue, t);
    }
    if (!t->failure) return STATUS_OK;
    errno = t->failure;
    return error_io(err, "cannot %s the storage in '%s' at byte %" PRIu64, t->write ? "write" : "read",
                    storage->options.folder, t->failed_at);
}

enum status storage_read(struct storage *storage, uint32_t queue, void *to, uint64_t offset,
                         uint64_t bytes, struct error *err)
{
    struct transfer t = {.memory = to, .offset = offset, .bytes = bytes};
    return transfer(storage, queue, &t, err);
}

enum status storage_write(struct storage *storage, uint32_t queue, const void *from, uint64_t offset,
                          uint64_t bytes, struct error *err)
{
    struct transfer t = {
        .write = true, .memory = (char *)(uintptr_t)from, .offset = offset, .bytes = bytes};
    return transfer(storage, queue, &t, err);
}

/* --- opening and closing ------------------------------------------------------------------------ */

/* Without O_TMPFILE, opens a file and removes its name at once. */
static int open_file(struct storage *storage, int flags)
{
    struct storage_calls *const calls = storage->calls;
    const char *const folder = storage->options.folder;
    int file = calls->open(calls, folder, O_TMPFILE | O_RDWR | O_CLOEXEC | flags);
    if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT)) return file;
    if (errno == ENOENT && access(folder, F_OK) != 0) return -1;
    char path[4096];
    const int length = snprintf(path, sizeof path, "%s/spillway-%ld-storage", folder, (long)getpid());
    if (length < 0 || (size_t)length >= sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    file = calls->open(calls, path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | flags);
    if (file >= 0) unlink(path);
    return file;
}

static void add_note(struct storage *storage, const char *text)
{
    const size_t used = strlen(storage->note);
    snprintf(storage->note + used, sizeof storage->note - used, "%s%s", used > 0 ? "; " : "", text);
}

/* Reads a block: some file systems open for direct I/O and then refuse. */
static bool block_can_be_read(const struct storage *storage)
{
    void *block;
    if (posix_memalign(&block, STORAGE_BLOCK, STORAGE_BLOCK) != 0) return false;
    const bool can = pread(storage->file, block, STORAGE_BLOCK, 0) == STORAGE_BLOCK;
    free(block);
    return can;
}

static enum status reserve(struct storage *storage, struct error *err)
{
    char text[QUANTITY_TEXT_BYTES];
    const uint64_t bytes = size_align(max_u64(storage->options.bytes, 1), STORAGE_BLOCK);
    errno = storage->calls->reserve(storage->calls, storage->file, bytes);
    if (errno == EOPNOTSUPP || errno == EINVAL) { /* glibc's way around it is not for direct I/O */
        add_note(storage, "its space cannot be reserved beforehand");
        errno = ftruncate(storage->file, (off_t)bytes) == 0 ? 0 : errno;
    }
    if (errno == 0) return STATUS_OK;
    return error_io(err, "cannot reserve %s of storage in '%s'",
                    quantity_text((double)bytes, DIMENSION_BYTES, text), storage->options.folder);
}

static enum status open_and_reserve(struct storage *storage, struct error *err)
{
    const char *const folder = storage->options.folder;
    storage->block = STORAGE_BLOCK;
    if (!storage->options.buffered) {
        storage->file = open_file(storage, O_DIRECT);
        if (storage->file < 0 && errno != EINVAL)
            return error_input(err, "cannot open storage in '%s'", folder);
        if (storage->file >= 0) {
            const enum status status = reserve(storage, err);
            if (status != STATUS_OK || block_can_be_read(storage)) return status;
            close(storage->file);
            storage->note[0] = '\0';
        }
    }
    storage->block = 1;
    storage->file = open_file(storage, 0);
    if (storage->file < 0) return error_input(err, "cannot open storage in '%s'", folder);
    add_note(storage, "the file system has no direct I/O, so it goes through the page cache");
    return reserve(storage, err);
}

static enum status start_worker(struct storage_queue *queue, struct worker *worker, struct error *err)
{
    TRY(make_room(&worker->room, 1, err));
    sigset_t all, before;
    sigfillset(&all); /* signals are the main thread's */
    worker->queue = queue;
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = pthread_create(&worker->thread, NULL, worker_main, worker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed)
        return error_set(err, STATUS_DEVICE, "cannot start a thread for storage: %s",
                         strerror(failed));
    worker->started = true;
    pthread_setname_np(worker->thread, "storage");
    return STATUS_OK;
}

static enum status open_queue(struct storage *storage, struct storage_queue *queue, int *refused,
                             struct error *err)
{
    queue->storage = storage;
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->changed, NULL);
    queue->made = true;
    if (!storage->options.no_ring) *refused = -io_uring_queue_init(DEPTH, &queue->ring, 0);
    queue->has_ring = !storage->options.no_ring && *refused == 0;
    for (uint32_t w = 0; w < WORKERS && !queue->has_ring; w++) {
        TRY(start_worker(queue, &queue->workers[w], err));
    }
    return STATUS_OK;
}

static void close_queue(struct storage_queue *queue)
{
    if (!queue->made) return;
    pthread_mutex_lock(&queue->lock);
    queue->quit = true;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
    for (uint32_t w = 0; w < WORKERS; w++) {
        if (queue->workers[w].started) pthread_join(queue->workers[w].thread, NULL);
        free(queue->workers[w].room);
    }
    if (queue->has_ring) io_uring_queue_exit(&queue->ring);
    free(queue->room);
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->lock);
}

enum status storage_open(const struct storage_options *options, struct storage **out,
                         struct error *err)
{
    struct storage *const storage = alloc_zeroed(1, sizeof *storage);
    if (!storage) return error_memory(err, "storage", sizeof *storage);
    storage->options = *options;
    storage->calls = options->calls ? options->calls : &storage_calls_real;
    storage->file = -1;
    storage->queues = alloc_zeroed(options->queues, sizeof *storage->queues);
    int refused = 0;
    enum status status = STATUS_OK;
    if (!storage->queues)
        status = error_memory(err, "storage", options->queues * sizeof *storage->queues);
    if (status == STATUS_OK) status = open_and_reserve(storage, err);
    for (uint32_t i = 0; i < options->queues && status == STATUS_OK; i++)
        status = open_queue(storage, &storage->queues[i], &refused, err);
    if (status != STATUS_OK) {
        storage_close(storage);
        return status;
    }
    if (refused) {
        char text[128];
        snprintf(text, sizeof text, "the kernel refuses io_uring (%s), so threads read and write",
                 strerror(refused));
        add_note(storage, text);
    }
    snprintf(storage->text, sizeof storage->text, "%s, %s",
             storage->block > 1 ? "direct" : "through the page cache",
             storage->queues[0].has_ring ? "io_uring" : "threads");
    *out = storage;
    return STATUS_OK;
}

void storage_close(struct storage *storage)
{
    if (!storage) return;
    for (uint32_t i = 0; storage->queues && i < storage->options.queues; i++)
        close_queue(&storage->queues[i]);
    if (storage->file >= 0) close(storage->file);
    free(storage->queues);
    free(storage);
}

const char *storage_text(const struct storage *storage) { return storage->text; }

const char *storage_note(const struct storage *storage)
{
    return storage->note[0] ? storage->note : NULL;
}
