/*
 * A buffer that is written to the file when it is full. O_TMPFILE makes a file without a name; file systems that do not
 * know it get a name that is removed at once.
 */
#include "base/files/spool.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/files/folder.h"

enum { BUFFER_BYTES = 1 << 18 };

struct spool {
    char *folder; /* NULL: the temporary one */
    int fd; /* -1: all is in the buffer */
    char *buffer;
    size_t used;
    uint64_t filed; /* bytes in the file, which come before the buffer */
    int failed;     /* errno of the first failure, 0: none */
};

/* Returns the folder of `path`, "." if it has none. The caller frees it; NULL if memory ends. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t length = !slash ? 1 : slash == path ? 1 : (size_t)(slash - path);
    char *folder = alloc_zeroed(1, length + 1);
    if (folder) memcpy(folder, slash ? path : ".", length);
    return folder;
}

enum status spool_create(const char *path, struct spool **out, struct error *err)
{
    struct spool *spool = alloc_zeroed(1, sizeof *spool);
    if (!spool) return error_memory(err, "a temporary file", sizeof *spool);
    spool->fd = -1;
    spool->buffer = alloc_zeroed(1, BUFFER_BYTES);
    spool->folder = path ? folder_of(path) : NULL;
    if (!spool->buffer || (path && !spool->folder)) {
        spool_destroy(spool);
        return error_memory(err, "a temporary file", BUFFER_BYTES);
    }
    *out = spool;
    return STATUS_OK;
}

void spool_destroy(struct spool *spool)
{
    if (!spool) return;
    if (spool->fd >= 0) close(spool->fd);
    free(spool->folder);
    free(spool->buffer);
    free(spool);
}

/* Returns a descriptor, or -1. */
static int open_nameless(const char *folder)
{
    char name[4096];
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0) return fd;
    int length = snprintf(name, sizeof name, "%s/spillway-XXXXXX", folder);
    if (length < 0 || (size_t)length >= sizeof name) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = mkstemp(name);
    if (fd >= 0) unlink(name);
    return fd;
}

static void fail(struct spool *spool)
{
    if (!spool->failed) spool->failed = errno ? errno : EIO;
}

static void write_buffer(struct spool *spool)
{
    if (spool->fd < 0 && spool->folder) spool->fd = open_nameless(spool->folder);
    if (spool->fd < 0) spool->fd = open_nameless(folder_for_temporary());
    if (spool->fd < 0) fail(spool);
    for (size_t done = 0; done < spool->used && !spool->failed;) {
        ssize_t written = write(spool->fd, spool->buffer + done, spool->used - done);
        if (written > 0) done += (size_t)written;
        else if (written == 0 || errno != EINTR) fail(spool);
    }
    spool->filed += spool->used;
    spool->used = 0;
}

void spool_write(struct spool *spool, const void *data, size_t length)
{
    const char *from = data;
    while (length > 0) {
        size_t room = BUFFER_BYTES - spool->used, part = length < room ? length : room;
        memcpy(spool->buffer + spool->used, from, part);
        spool->used += part;
        from += part;
        length -= part;
        if (spool->used == BUFFER_BYTES) write_buffer(spool);
    }
}

uint64_t spool_length(const struct spool *spool)
{
    return spool->filed + spool->used;
}

static enum status read_filed(struct spool *spool, uint64_t offset, char *data, size_t length, struct error *err)
{
    while (length > 0) {
        ssize_t got = pread(spool->fd, data, length, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return error_io(err, "cannot read a temporary file");
        if (got == 0) return error_set(err, STATUS_IO, "a temporary file became shorter");
        data += got;
        offset += (uint64_t)got;
        length -= (size_t)got;
    }
    return STATUS_OK;
}

enum status spool_read(struct spool *spool, uint64_t offset, void *data, size_t length, struct error *err)
{
    assert(offset <= spool_length(spool) && length <= spool_length(spool) - offset);
    if (spool->failed) {
        errno = spool->failed;
        return error_io(err, "cannot write a temporary file");
    }
    size_t filed = 0;
    if (offset < spool->filed) filed = spool->filed - offset < length ? (size_t)(spool->filed - offset) : length;
    enum status status = filed > 0 ? read_filed(spool, offset, data, filed, err) : STATUS_OK;
    if (status != STATUS_OK || filed == length) return status;
    memcpy((char *)data + filed, spool->buffer + (offset + filed - spool->filed), length - filed);
    return STATUS_OK;
}
