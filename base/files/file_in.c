/*
 * Bytes come from a descriptor through a small buffer, or from a text in memory, and pass through zlib
 * when they begin as gzip data does:
 *
 *     read() -> raw -> [ inflate ] -> the caller's memory
 *
 * A file of several gzip members is the text of all of them, one after the other, as zcat prints it.
 */
#include "base/files/file_in.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/files/file.h"
#include "base/files/file_kind.h"
#include "base/files/outputs.h"
#include "base/files/zlib_memory.h"
#include "base/text.h"
#include "base/try.h"

enum { RAW_BYTES = 64 << 10, GZIP_WINDOW = 15 + 16 };

struct file_in {
    char *name;
    int fd;             /* -1: `raw` is the caller's text */
    bool seeks, packed;
    bool ended;         /* `raw` holds the last raw bytes */
    bool inflated;      /* packed: the last member has ended */
    const char *raw;
    char *buffer;       /* NULL for a text */
    size_t first, last; /* of `raw`: bytes that were not taken yet */
    uint64_t at;        /* of the text: the next byte */
    uint64_t raw_size;
    uint64_t size;      /* of a regular file that is not compressed; else 0 */
    z_stream inflater;
};

/* --- raw bytes ------------------------------------------------------------------------------ */

/* Fills `raw` to at least `wanted` bytes, or to the end of the file. */
static enum status fill(struct file_in *file, size_t wanted, struct error *err)
{
    while (file->last - file->first < wanted && !file->ended) {
        if (file->first > 0) {
            memmove(file->buffer, file->buffer + file->first, file->last - file->first);
            file->last -= file->first;
            file->first = 0;
        }
        ssize_t got = read(file->fd, file->buffer + file->last, RAW_BYTES - file->last);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return error_input(err, "cannot read '%s'", file->name);
        file->last += (size_t)got;
        file->ended = got == 0;
    }
    return STATUS_OK;
}

static bool begins_as_gzip(const struct file_in *file)
{
    const unsigned char *raw = (const unsigned char *)file->raw + file->first;
    return file->last - file->first >= 2 && raw[0] == 0x1f && raw[1] == 0x8b;
}

/* --- text ----------------------------------------------------------------------------------- */

static enum status read_plain(struct file_in *file, char *data, size_t capacity, size_t *got, struct error *err)
{
    enum status status = fill(file, 1, err);
    size_t held = file->last - file->first;
    if (status != STATUS_OK) return status;
    *got = held < capacity ? held : capacity;
    memcpy(data, file->raw + file->first, *got);
    file->first += *got;
    return STATUS_OK;
}

/* Goes on after the end of a member: to the end of the file or the next member. */
static enum status next_member(struct file_in *file, struct error *err)
{
    TRY(fill(file, 2, err));
    file->inflated = file->first == file->last;
    if (!file->inflated && !begins_as_gzip(file))
        return error_set(err, STATUS_BAD_INPUT, "'%s' has text after its gzip data", file->name);
    inflateReset(&file->inflater);
    return STATUS_OK;
}

static enum status read_packed(struct file_in *file, char *data, size_t capacity, size_t *got, struct error *err)
{
    z_stream *z = &file->inflater;
    *got = 0;
    while (*got == 0 && !file->inflated) {
        enum status status = fill(file, 1, err);
        if (status != STATUS_OK) return status;
        size_t held = file->last - file->first;
        uInt in = held < UINT_MAX / 2 ? (uInt)held : UINT_MAX / 2,
             room = capacity < UINT_MAX / 2 ? (uInt)capacity : UINT_MAX / 2;
        z->next_in = (Bytef *)file->raw + file->first; /* zlib does not write there */
        z->avail_in = in;
        z->next_out = (Bytef *)data;
        z->avail_out = room;
        int code = inflate(z, Z_NO_FLUSH);
        file->first += in - z->avail_in;
        *got = room - z->avail_out;
        if (code == Z_STREAM_END) status = next_member(file, err);
        else if (code == Z_MEM_ERROR) status = error_memory(err, "inflating", 64 << 10);
        else if (code != Z_OK && code != Z_BUF_ERROR)
            status = error_set(err, STATUS_BAD_INPUT, "'%s' is damaged gzip data", file->name);
        else if (*got == 0 && file->ended && file->first == file->last)
            status = error_set(err, STATUS_BAD_INPUT, "'%s' is truncated gzip data", file->name);
        if (status != STATUS_OK) return status;
    }
    return STATUS_OK;
}

enum status file_in_read(struct file_in *file, char *data, size_t capacity, size_t *got, struct error *err)
{
    enum status status = file->packed ? read_packed(file, data, capacity, got, err)
                                      : read_plain(file, data, capacity, got, err);
    if (status == STATUS_OK) file->at += *got;
    return status;
}

/* Continues at this raw byte. */
static enum status go_to(struct file_in *file, uint64_t raw_offset, struct error *err)
{
    if (file->fd < 0) {
        file->first = raw_offset < file->raw_size ? (size_t)raw_offset : file->last;
        return STATUS_OK;
    }
    if (lseek(file->fd, (off_t)raw_offset, SEEK_SET) < 0) return error_input(err, "cannot read '%s'", file->name);
    file->first = file->last = 0;
    file->ended = false;
    return STATUS_OK;
}

enum status file_in_seek(struct file_in *file, uint64_t offset, struct error *err)
{
    char passed[4096];
    enum status status = STATUS_OK;
    if (!file->packed) {
        status = go_to(file, offset, err);
        if (status == STATUS_OK) file->at = offset;
        return status;
    }
    if (offset < file->at) {
        status = go_to(file, 0, err);
        inflateReset(&file->inflater);
        file->inflated = false;
        file->at = 0;
    }
    while (status == STATUS_OK && file->at < offset) {
        size_t got, left = offset - file->at < sizeof passed ? (size_t)(offset - file->at) : sizeof passed;
        status = file_in_read(file, passed, left, &got, err);
        if (status == STATUS_OK && got == 0)
            return error_set(err, STATUS_BAD_INPUT, "'%s' became shorter while it was read", file->name);
    }
    return status;
}

enum status file_in_go(struct file_in *file, const struct file_place *place, struct error *err)
{
    if (!file->packed) return file_in_seek(file, place->text, err);
    if (inflateReset(&file->inflater) != Z_OK) return error_memory(err, "inflating", 64 << 10);
    file->inflated = false;
    file->at = place->text;
    return go_to(file, place->raw, err);
}

/* --- the end -------------------------------------------------------------------------------- */

/* Reads until the end, at most `capacity` bytes; *got is 0 when there are more. */
static enum status read_short(struct file_in *file, char *data, size_t capacity, size_t *got, struct error *err)
{
    size_t used = 0, part = 1;
    *got = 0;
    while (part > 0) {
        char more;
        TRY(used < capacity ? file_in_read(file, data + used, capacity - used, &part, err)
                            : file_in_read(file, &more, 1, &part, err));
        if (part > 0 && used == capacity) return STATUS_OK;
        used += part;
    }
    *got = used;
    return STATUS_OK;
}

/* Reads the offset in the mark of a gzip file. *found is false without a mark. */
static enum status read_mark(struct file_in *file, bool *found, uint64_t *offset, struct error *err)
{
    *found = false;
    if (file->raw_size < FILE_MARK_BYTES) return STATUS_OK;
    uint64_t mark_at = file->raw_size - FILE_MARK_BYTES;
    enum status status = go_to(file, mark_at, err);
    if (status == STATUS_OK) status = fill(file, FILE_MARK_BYTES, err);
    if (status != STATUS_OK || file->last - file->first != FILE_MARK_BYTES) return status;
    const unsigned char *mark = (const unsigned char *)file->raw + file->first;
    const size_t behind = FILE_MARK_OFFSET_AT + 8;
    if (memcmp(mark, file_mark, FILE_MARK_OFFSET_AT) != 0 ||
        memcmp(mark + behind, file_mark + behind, FILE_MARK_BYTES - behind) != 0)
        return STATUS_OK;
    *offset = 0;
    for (int i = 0; i < 8; i++) *offset |= (uint64_t)mark[FILE_MARK_OFFSET_AT + i] << 8 * i;
    *found = *offset < mark_at;
    return STATUS_OK;
}

enum status file_in_end(struct file_in *file, char *data, size_t capacity, uint64_t *begin, size_t *got,
                        struct error *err)
{
    struct file_place place = {0};
    bool found = true;
    enum status status = STATUS_OK;
    *got = 0;
    if (file->packed) status = read_mark(file, &found, &place.raw, err);
    else place.text = file->raw_size > capacity ? file->raw_size - capacity : 0;
    if (status == STATUS_OK && found) status = file_in_go(file, &place, err);
    if (status == STATUS_OK && found) status = read_short(file, data, capacity, got, err);
    *begin = file->packed ? UINT64_MAX : place.text;
    file->at = UINT64_MAX; /* no offset is after this one: file_in_seek() starts over */
    return status;
}

static enum status too_large(const struct file_in *file, size_t limit, struct error *err)
{
    return error_set(err, STATUS_LIMIT, "'%s' is too large (limit is %zu bytes)", file->name, limit);
}

enum status file_in_rest(struct file_in *file, size_t limit, char **text, size_t *length, struct error *err)
{
    assert(limit < SIZE_MAX / 4);
    if (file->size > limit) return too_large(file, limit, err);
    size_t used = 0, got = 1, capacity = file->size > RAW_BYTES ? (size_t)file->size + 2 : RAW_BYTES;
    char *data = NULL;
    enum status status = STATUS_OK;
    while (status == STATUS_OK && got > 0) {
        if (!data || capacity - used < 2) {
            capacity = data ? 2 * capacity : capacity;
            char *larger = alloc_resize(data, capacity);
            if (!larger) {
                status = error_memory(err, "the contents of a file", capacity);
                break;
            }
            data = larger;
        }
        status = file_in_read(file, data + used, capacity - used - 1, &got, err);
        if (status == STATUS_OK) used += got;
        if (used > limit) status = too_large(file, limit, err);
    }
    if (status != STATUS_OK) {
        free(data);
        return status;
    }
    data[used] = '\0';
    *text = data;
    *length = used;
    return STATUS_OK;
}

/* --- opening and closing -------------------------------------------------------------------- */

static enum status create(const char *name, struct file_in **out, struct error *err)
{
    struct file_in *file = alloc_zeroed(1, sizeof *file);
    size_t bytes = strlen(name) + 1;
    char *copy = alloc_zeroed(1, bytes);
    if (!file || !copy) {
        free(file);
        free(copy);
        return error_memory(err, "an input file", sizeof *file + bytes);
    }
    memcpy(copy, name, bytes);
    file->name = copy;
    file->fd = -1;
    *out = file;
    return STATUS_OK;
}

static enum status begin_inflating(struct file_in *file, struct error *err)
{
    file->inflater.zalloc = zlib_allocate;
    file->inflater.zfree = zlib_free;
    if (inflateInit2(&file->inflater, GZIP_WINDOW) != Z_OK) return error_memory(err, "inflating", 64 << 10);
    file->packed = true;
    file->size = 0;
    return STATUS_OK;
}

static enum status refuse_folder(const char *path, struct error *err)
{
    if (!file_kind_is_network_folder(path))
        return error_set(err, STATUS_BAD_INPUT, "'%s' is a folder (expected a file)", path);
    return error_set(err, STATUS_BAD_INPUT,
                     "'%s' is a folder with a network's config.json (expected a file): try 'spillway jobs "
                     "new %s -o jobs.json'",
                     path, path);
}

static enum status open_file(struct file_in *file, const char *path, struct error *err)
{
    struct stat info;
    bool standard = strcmp(path, "-") == 0;
    file->fd = standard ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    if (file->fd < 0) return error_input(err, "cannot open '%s'", file->name);
    TRY(outputs_read(path, err));
    const bool known = !standard && fstat(file->fd, &info) == 0;
    if (known && S_ISDIR(info.st_mode)) return refuse_folder(path, err);
    file->seeks = known && S_ISREG(info.st_mode);
    if (file->seeks) file->size = file->raw_size = (uint64_t)info.st_size;
    file->buffer = alloc_zeroed(1, RAW_BYTES);
    if (!file->buffer) return error_memory(err, "an input file", RAW_BYTES);
    file->raw = file->buffer;
    TRY(fill(file, 2, err));
    if (begins_as_gzip(file)) return begin_inflating(file, err);
    if (text_ends_in(path, ".gz")) return error_set(err, STATUS_BAD_INPUT, "'%s' is not gzip data", path);
    return STATUS_OK;
}

enum status file_in_open(const char *path, struct file_in **out, struct error *err)
{
    struct file_in *file = NULL;
    enum status status = create(strcmp(path, "-") == 0 ? "standard input" : path, &file, err);
    if (status == STATUS_OK) status = open_file(file, path, err);
    if (status == STATUS_OK) *out = file;
    else file_in_close(file);
    return status;
}

enum status file_in_of_text(const char *name, const char *text, size_t length, struct file_in **out, struct error *err)
{
    struct file_in *file = NULL;
    TRY(create(name, &file, err));
    file->raw = length > 0 ? text : "";
    file->last = length;
    file->raw_size = length;
    file->seeks = file->ended = true;
    *out = file;
    return STATUS_OK;
}

bool file_in_seeks(const struct file_in *file)
{
    return file->seeks;
}

const char *file_in_name(const struct file_in *file)
{
    return file->name;
}

void file_in_close(struct file_in *file)
{
    if (!file) return;
    if (file->fd >= 0) close(file->fd);
    if (file->packed) inflateEnd(&file->inflater);
    free(file->buffer);
    free(file->name);
    free(file);
}

size_t file_read_head(const char *path, void *head, size_t size)
{
    struct stat about;
    const int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* does not wait for a pipe's writer */
    if (file < 0) return 0;
    const bool regular = fstat(file, &about) == 0 && S_ISREG(about.st_mode);
    const ssize_t count = regular ? read(file, head, size) : 0;
    close(file);
    return count > 0 ? (size_t)count : 0;
}

enum status file_read(const char *path, size_t limit, char **text, size_t *length, struct error *err)
{
    struct file_in *file;
    TRY(file_in_open(path, &file, err));
    enum status status = file_in_rest(file, limit, text, length, err);
    file_in_close(file);
    return status;
}
