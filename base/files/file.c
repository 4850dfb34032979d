/*
 * A half-written plan looks like a plan. No file is therefore written under its final name: the bytes go to
 * NAME.tmp-PID in the same folder. After every write, the sync and the close have succeeded, one rename() replaces
 * the file.
 *
 *     file_out_write -> [ deflate ] -> buffer -> write() to the temporary -> fsync, close, rename
 *                                        |
 *                                        +-> standard output or a device: kept until commit
 *
 * Two kinds of target cannot be renamed over: standard output, and existing targets that are not regular files
 * (/dev/null, a pipe, the terminal). Their bytes stay in memory until commit. A symbolic link stays a link: the file
 * it points to is replaced.
 *
 * Callers write without checking. The first failure is remembered with its errno and reported at commit. The header
 * of compressed data has no name and no time, so that equal input gives equal bytes.
 *
 * Reading can start at a place (base/files/file_place.h). Compressed data then has several members:
 *
 *     [ member ][ member ][ member ][ mark ]
 *     place:   ^         ^          says where the last member begins
 */
#include "base/files/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/files/outputs.h"
#include "base/files/path.h"
#include "base/files/zlib_memory.h"
#include "base/text.h"
#include "base/try.h"

enum { BUFFER_BYTES = 64 << 10, PENDING_MAX = 32, NAME_TRIES = 100, GZIP_WINDOW = 15 + 16 };

struct file_out {
    char *path;      /* as the caller said it, for messages */
    char *target;    /* target of the rename: `path` with symbolic links followed */
    char *temporary; /* NULL when `direct` */
    int fd;          /* -1 when `direct` */
    bool direct;     /* the bytes are kept in `buffer` until commit */
    bool gzip;
    z_stream deflater;
    gz_header header;
    uint64_t text_bytes, raw_bytes; /* written so far */
    uint64_t member_text, member_raw; /* where the member begins */
    bool has_places;
    char *buffer;
    size_t used, capacity;
    int failed; /* errno of the first failure, 0: none */
};

/* --- temporaries that a signal must remove -------------------------------------------------- */

static _Atomic(char *) pending[PENDING_MAX];

static void pending_add(char *name)
{
    for (int i = 0; i < PENDING_MAX; i++) {
        char *empty = NULL;
        if (atomic_compare_exchange_strong(&pending[i], &empty, name)) return;
    }
    /* The table is full: a signal that ends the program leaves this temporary on disk, and no other harm is done. */
}

static void pending_drop(char *name)
{
    for (int i = 0; i < PENDING_MAX; i++) {
        char *expected = name;
        if (atomic_compare_exchange_strong(&pending[i], &expected, NULL)) return;
    }
}

void file_remove_pending(void)
{
    for (int i = 0; i < PENDING_MAX; i++) {
        char *name = atomic_load(&pending[i]);
        if (name) unlink(name);
    }
}

/* --- bytes out ------------------------------------------------------------------------------ */

static void fail(struct file_out *file, int error_number)
{
    if (!file->failed) file->failed = error_number ? error_number : EIO;
}

static bool write_all(int fd, const char *data, size_t length, int *error_number)
{
    while (length > 0) {
        ssize_t written = write(fd, data, length);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) {
            *error_number = errno;
            return false;
        }
        data += written;
        length -= (size_t)written;
    }
    return true;
}

static void flush_buffer(struct file_out *file)
{
    int error_number;
    if (!file->failed && !write_all(file->fd, file->buffer, file->used, &error_number))
        fail(file, error_number);
    file->used = 0;
}

static bool grow_buffer(struct file_out *file, size_t wanted)
{
    size_t capacity = file->capacity;
    while (capacity < wanted) {
        if (capacity > SIZE_MAX / 4) return false;
        capacity *= 2;
    }
    char *larger = alloc_resize(file->buffer, capacity);
    if (!larger) return false;
    file->buffer = larger;
    file->capacity = capacity;
    return true;
}

static void put(struct file_out *file, const char *data, size_t length)
{
    if (file->failed) return;
    file->raw_bytes += length;
    if (length > file->capacity - file->used) {
        if (file->direct) {
            if (length > SIZE_MAX / 4 || !grow_buffer(file, file->used + length)) {
                fail(file, ENOMEM);
                return;
            }
        } else {
            flush_buffer(file);
            int error_number;
            if (length >= file->capacity) {
                if (!write_all(file->fd, data, length, &error_number)) fail(file, error_number);
                return;
            }
        }
    }
    if (length > 0) memcpy(file->buffer + file->used, data, length);
    file->used += length;
}

/* Compress `length` bytes; `finish` also writes what the compressor still holds. */
static void put_deflated(struct file_out *file, const char *data, size_t length, bool finish)
{
    char packed[16384];
    z_stream *z = &file->deflater;
    do {
        uInt part = length < UINT_MAX / 2 ? (uInt)length : UINT_MAX / 2;
        z->next_in = (Bytef *)data; /* zlib does not write there */
        z->avail_in = part;
        data += part;
        length -= part;
        do {
            z->next_out = (Bytef *)packed;
            z->avail_out = sizeof packed;
            int code = deflate(z, finish && length == 0 ? Z_FINISH : Z_NO_FLUSH);
            assert(code != Z_STREAM_ERROR);
            put(file, packed, sizeof packed - z->avail_out);
        } while (z->avail_out == 0);
    } while (length > 0);
}

/* --- opening and closing -------------------------------------------------------------------- */

static char *copy_text(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = alloc_zeroed(1, bytes);
    if (copy) memcpy(copy, text, bytes);
    return copy;
}

static void file_out_free(struct file_out *file)
{
    if (file->fd >= 0) close(file->fd);
    if (file->temporary) {
        unlink(file->temporary);
        pending_drop(file->temporary);
    }
    if (file->gzip) deflateEnd(&file->deflater);
    free(file->temporary);
    free(file->target);
    free(file->path);
    free(file->buffer);
    free(file);
}

/* Creates NAME.tmp-PID. A number follows the PID when this process already writes the same target, or when a dead
 * process left a file of that name. */
static enum status open_temporary(struct file_out *file, struct error *err)
{
    size_t size = strlen(file->target) + 64;
    file->temporary = alloc_zeroed(1, size);
    if (!file->temporary) return error_memory(err, "a file name", size);
    for (int i = 0; i < NAME_TRIES && file->fd < 0; i++) {
        int length = snprintf(file->temporary, size, "%s.tmp-%ld", file->target, (long)getpid());
        if (i > 0) snprintf(file->temporary + length, size - (size_t)length, "-%d", i);
        file->fd = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file->fd < 0 && errno != EEXIST) break;
    }
    if (file->fd >= 0) {
        pending_add(file->temporary);
        return STATUS_OK;
    }
    enum status status = error_input(err, "cannot create '%s'", file->path);
    free(file->temporary); /* it is not ours, or not there: nothing to remove */
    file->temporary = NULL;
    return status;
}

static enum status open_target(struct file_out *file, struct error *err)
{
    struct stat old;
    errno = 0;
    bool exists = strcmp(file->path, "-") != 0 && stat(file->path, &old) == 0;
    if (exists && S_ISDIR(old.st_mode)) errno = EISDIR;
    if (errno == EISDIR || errno == ELOOP) return error_input(err, "cannot write '%s'", file->path);
    file->direct = strcmp(file->path, "-") == 0 || (exists && !S_ISREG(old.st_mode));
    if (file->direct) return STATUS_OK;

    if (exists && access(file->path, W_OK) != 0)
        return error_io(err, "cannot write '%s'", file->path);
    char followed[PATH_MAX]; /* of a dangling link the file that it names is made, and the link stays */
    path_follow(file->path, followed);
    char *resolved = exists ? realpath(file->path, NULL) : NULL;
    file->target = resolved ? resolved : copy_text(followed);
    if (!file->target) return error_memory(err, "a file name", strlen(file->path) + 1);
    TRY(open_temporary(file, err));
    /* Best effort: on a file system without modes the file is written anyway. */
    if (exists && fchmod(file->fd, old.st_mode & 07777) != 0) errno = 0;
    return STATUS_OK;
}

enum status file_out_create(const char *path, struct file_out **out, struct error *err)
{
    TRY(outputs_check(path, err));
    struct file_out *file = alloc_zeroed(1, sizeof *file);
    if (!file) return error_memory(err, "an output file", sizeof *file);
    file->fd = -1;
    file->capacity = BUFFER_BYTES;
    file->buffer = alloc_zeroed(1, BUFFER_BYTES);
    file->path = copy_text(path);
    enum status status;
    if (!file->buffer || !file->path) {
        status = error_memory(err, "an output file", BUFFER_BYTES);
        goto fail;
    }
    if (text_ends_in(path, ".gz")) {
        file->deflater.zalloc = zlib_allocate;
        file->deflater.zfree = zlib_free;
        if (deflateInit2(&file->deflater, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8,
                         Z_DEFAULT_STRATEGY) != Z_OK) {
            status = error_memory(err, "compression", 256 << 10);
            goto fail;
        }
        file->gzip = true;
        file->header.os = 255; /* unknown; everything else is zero: no name, no time */
        deflateSetHeader(&file->deflater, &file->header);
    }
    status = open_target(file, err);
    if (status != STATUS_OK) goto fail;
    *out = file;
    return STATUS_OK;
fail:
    file_out_free(file);
    return status;
}

void file_out_write(struct file_out *file, const void *data, size_t length)
{
    file->text_bytes += length;
    if (file->gzip)
        put_deflated(file, data, length, false);
    else
        put(file, data, length);
}

void file_out_printf(struct file_out *file, const char *format, ...)
{
    char small[1024];
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(small, sizeof small, format, arguments);
    if (length < 0) {
        fail(file, EINVAL);
    } else if ((size_t)length < sizeof small) {
        file_out_write(file, small, (size_t)length);
    } else {
        char *large = alloc_zeroed(1, (size_t)length + 1);
        if (large) {
            vsnprintf(large, (size_t)length + 1, format, again);
            file_out_write(file, large, (size_t)length);
        } else {
            fail(file, ENOMEM);
        }
        free(large);
    }
    va_end(again);
    va_end(arguments);
}

/* --- places --------------------------------------------------------------------------------- */

const unsigned char file_mark[FILE_MARK_BYTES] = {0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 0xff, 12, 0, 'S', 'W', 8, 0,
                                                  [FILE_MARK_BYTES - 10] = 3};

struct file_place file_out_place(struct file_out *file)
{
    if (file->gzip && !file->failed && file->text_bytes > file->member_text) {
        put_deflated(file, "", 0, true);
        deflateReset(&file->deflater);
        deflateSetHeader(&file->deflater, &file->header);
        file->member_text = file->text_bytes;
        file->member_raw = file->raw_bytes;
    }
    file->has_places = true;
    return (struct file_place){.text = file->text_bytes, .raw = file->gzip ? file->member_raw : file->text_bytes};
}

static void put_mark(struct file_out *file)
{
    char mark[FILE_MARK_BYTES];
    memcpy(mark, file_mark, sizeof mark);
    for (int i = 0; i < 8; i++) mark[FILE_MARK_OFFSET_AT + i] = (char)(file->member_raw >> 8 * i);
    put(file, mark, sizeof mark);
}

/* --- the end -------------------------------------------------------------------------------- */

/* Opens a device or a pipe. A pipe that no process reads is an error (ENXIO) and does not hold the program up. */
static int open_direct(const char *path)
{
    int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return -1;
    int flags = fcntl(fd, F_GETFL);
    if (flags >= 0 && fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) == 0) return fd;
    int reason = errno;
    close(fd);
    errno = reason;
    return -1;
}

/* Writes all bytes at once to standard output or a device; a closed pipe is an error, not a signal. */
static void commit_direct(struct file_out *file)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN}, old;
    sigaction(SIGPIPE, &ignore, &old);
    bool standard = strcmp(file->path, "-") == 0;
    int fd = standard ? STDOUT_FILENO : open_direct(file->path);
    int error_number;
    if (fd < 0)
        fail(file, errno);
    else if (!write_all(fd, file->buffer, file->used, &error_number))
        fail(file, error_number);
    if (fd >= 0 && !standard && close(fd) != 0) fail(file, errno);
    sigaction(SIGPIPE, &old, NULL);
}

static void commit_rename(struct file_out *file)
{
    flush_buffer(file);
    if (file->failed) return;
    /* Pipes and some network file systems cannot sync and say so with EINVAL. */
    if (fsync(file->fd) != 0 && errno != EINVAL && errno != ENOTSUP) fail(file, errno);
    int fd = file->fd;
    file->fd = -1;
    if (close(fd) != 0) fail(file, errno);
    if (file->failed) return;
    if (rename(file->temporary, file->target) != 0) {
        fail(file, errno);
        return;
    }
    pending_drop(file->temporary);
    free(file->temporary);
    file->temporary = NULL;
}

enum status file_out_commit(struct file_out *file, struct error *err)
{
    if (file->gzip && !file->failed) put_deflated(file, "", 0, true);
    if (file->gzip && file->has_places) put_mark(file);
    if (!file->failed) {
        if (file->direct)
            commit_direct(file);
        else
            commit_rename(file);
    }
    enum status status = STATUS_OK;
    if (file->failed) {
        errno = file->failed;
        bool standard = strcmp(file->path, "-") == 0;
        status = standard ? error_io(err, "cannot write to standard output")
               : file->failed == ENXIO
                   ? error_set(err, STATUS_IO, "cannot write '%s': no process reads from this pipe", file->path)
                   : error_io(err, "cannot write '%s'", file->path);
    }
    file_out_free(file);
    return status;
}

void file_out_discard(struct file_out *file)
{
    if (file) file_out_free(file);
}
