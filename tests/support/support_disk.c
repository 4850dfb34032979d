/*
 * The disk has two layers. `now` is the running program's view: names and their files. `safe` is the part that survives
 * for sure. Between them is a list of changes of names, in order, and for each file a list of written ranges, which a
 * sync moves to `safe`. A power cut applies a random choice of them to `safe` and makes that the disk.
 *
 * A rename carries its file with it, so it can survive even if the creation before it did not: only a sync of the
 * folder in between orders the two.
 */
#include "tests/support/support_disk.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

enum { FILES_MAX = 256, NAMES_MAX = 256, CHANGES_MAX = 512, RANGES_MAX = 1024, PATH_BYTES = 192,
       BLOCK_BYTES = 64, FOLDER = -2, NOTHING = -1 };

struct range {
    size_t begin, end;
};

struct file {
    unsigned char *now, *safe;
    size_t now_bytes, safe_bytes;
    struct range ranges[RANGES_MAX];
    uint32_t range_count;
};

struct name {
    char path[PATH_BYTES];
    int file; /* FOLDER; NOTHING: a free entry */
};

struct names {
    struct name entries[NAMES_MAX];
};

enum change_kind { CHANGE_MAKE, CHANGE_RENAME, CHANGE_REMOVE };
struct change {
    enum change_kind kind;
    char path[PATH_BYTES], to[PATH_BYTES];
    int file;
};

struct support_disk_state {
    struct file files[FILES_MAX];
    int file_count;
    struct names now, safe;
    struct change changes[CHANGES_MAX];
    uint32_t change_count;
};

/* --- names ------------------------------------------------------------------------------------ */

static struct name *find(struct names *names, const char *path)
{
    for (int i = 0; i < NAMES_MAX; i++)
        if (names->entries[i].file != NOTHING && strcmp(names->entries[i].path, path) == 0)
            return &names->entries[i];
    return NULL;
}

static void put(struct names *names, const char *path, int file)
{
    struct name *entry = find(names, path);
    for (int i = 0; i < NAMES_MAX && !entry; i++)
        if (names->entries[i].file == NOTHING) entry = &names->entries[i];
    assert(entry);
    snprintf(entry->path, sizeof entry->path, "%s", path);
    entry->file = file;
}

static void drop(struct names *names, const char *path)
{
    struct name *const entry = find(names, path);
    if (entry) entry->file = NOTHING;
}

static bool lies_in(const char *path, const char *folder)
{
    const size_t length = strlen(folder);
    return strncmp(path, folder, length) == 0 && path[length] == '/' && !strchr(path + length + 1, '/');
}

static void apply(struct names *names, const struct change *change)
{
    if (change->kind == CHANGE_MAKE) put(names, change->path, change->file);
    if (change->kind == CHANGE_REMOVE) drop(names, change->path);
    if (change->kind != CHANGE_RENAME) return;
    drop(names, change->path);
    put(names, change->to, change->file);
}

static void change_names(struct support_disk_state *state, struct change change)
{
    assert(state->change_count < CHANGES_MAX);
    apply(&state->now, &change);
    state->changes[state->change_count++] = change;
}

static struct change change_of(enum change_kind kind, const char *path, const char *to, int file)
{
    struct change change = {.kind = kind, .file = file};
    snprintf(change.path, sizeof change.path, "%s", path);
    snprintf(change.to, sizeof change.to, "%s", to);
    return change;
}

/* --- faults ----------------------------------------------------------------------------------- */

static struct support_disk *disk_of(struct disk *disk)
{
    return (struct support_disk *)(void *)disk;
}

static bool is_gone(const struct support_disk *d)
{
    return (d->fault == FAULT_KILL || d->fault == FAULT_POWER) && d->calls >= d->at;
}

/* Counts a call. Returns false, with errno, if the call must fail. */
static bool may_call(struct support_disk *d)
{
    d->calls++;
    errno = is_gone(d) ? EIO : d->error;
    return !is_gone(d) && !(d->fault == FAULT_ONCE && d->calls == d->at);
}

/* --- calls ------------------------------------------------------------------------------------ */

static int call_make_folder(struct disk *disk, const char *path)
{
    struct support_disk *const d = disk_of(disk);
    if (!may_call(d)) return -1;
    if (find(&d->state->now, path)) {
        errno = EEXIST;
        return -1;
    }
    change_names(d->state, change_of(CHANGE_MAKE, path, "", FOLDER));
    return 0;
}

static int call_lock_folder(struct disk *disk, const char *path)
{
    (void)path;
    return is_gone(disk_of(disk)) ? -1 : FILES_MAX;
}

static int call_create(struct disk *disk, const char *path)
{
    struct support_disk *const d = disk_of(disk);
    struct support_disk_state *const state = d->state;
    if (!may_call(d)) return -1;
    struct name *const old = find(&state->now, path);
    if (old) { /* the same file, emptied; its old contents may come back */
        state->files[old->file].now_bytes = 0;
        return old->file;
    }
    assert(state->file_count < FILES_MAX);
    change_names(state, change_of(CHANGE_MAKE, path, "", state->file_count));
    return state->file_count++;
}

static int call_open(struct disk *disk, const char *path)
{
    struct name *const entry = find(&disk_of(disk)->state->now, path);
    if (entry) return entry->file;
    errno = ENOENT;
    return -1;
}

static int64_t call_size(struct disk *disk, int file)
{
    if (file != FOLDER) return (int64_t)disk_of(disk)->state->files[file].now_bytes;
    errno = EISDIR;
    return -1;
}

static ssize_t call_write(struct disk *disk, int handle, const void *data, size_t length)
{
    struct support_disk *const d = disk_of(disk);
    struct file *const file = &d->state->files[handle];
    const bool was_gone = is_gone(d), may = may_call(d);
    const bool full = d->fault == FAULT_FULL && d->calls >= d->at;
    const bool shorter = d->fault == FAULT_SHORT && d->calls >= d->at && length > 1;
    if (was_gone || (!may && d->fault == FAULT_ONCE)) return -1;
    const bool all = may && !full && !shorter;
    if (!all) length /= 2;
    if (full && length == 0) {
        errno = ENOSPC;
        return -1;
    }
    const size_t begin = file->now_bytes, end = begin + length;
    file->now = realloc(file->now, end + 1);
    assert(file->now);
    assert(file->range_count < RANGES_MAX);
    memcpy(file->now + begin, data, length);
    file->now_bytes = end;
    file->ranges[file->range_count++] = (struct range){begin, end};
    errno = EIO;
    return may ? (ssize_t)length : -1;
}

static ssize_t call_read(struct disk *disk, int handle, void *data, size_t length, uint64_t offset)
{
    struct support_disk *const d = disk_of(disk);
    const struct file *const file = &d->state->files[handle];
    if (++d->reads == d->read_at) {
        errno = EIO;
        return -1;
    }
    if (offset >= file->now_bytes) return 0;
    if (length > file->now_bytes - offset) length = file->now_bytes - offset;
    if (d->read_most > 0 && length > d->read_most) length = d->read_most;
    memcpy(data, file->now + offset, length);
    return (ssize_t)length;
}

static int call_sync(struct disk *disk, int handle)
{
    struct support_disk *const d = disk_of(disk);
    struct file *const file = &d->state->files[handle];
    if (!may_call(d)) return -1;
    if (d->lies) return 0;
    file->safe = realloc(file->safe, file->now_bytes + 1);
    assert(file->safe);
    if (file->now_bytes > 0) memcpy(file->safe, file->now, file->now_bytes);
    file->safe_bytes = file->now_bytes;
    file->range_count = 0;
    return 0;
}

static int call_close(struct disk *disk, int handle)
{
    if (handle == FILES_MAX || handle == FOLDER) return 0; /* the lock, or a file open for reading */
    struct support_disk *const d = disk_of(disk);
    return may_call(d) ? 0 : -1;
}

static int call_rename(struct disk *disk, const char *from, const char *to)
{
    struct support_disk *const d = disk_of(disk);
    if (!may_call(d)) return -1;
    struct name *const entry = find(&d->state->now, from);
    assert(entry);
    change_names(d->state, change_of(CHANGE_RENAME, from, to, entry->file));
    return 0;
}

static int call_sync_folder(struct disk *disk, const char *path)
{
    struct support_disk *const d = disk_of(disk);
    struct support_disk_state *const state = d->state;
    if (!may_call(d)) return -1;
    if (d->lies) return 0;
    uint32_t left = 0;
    for (uint32_t i = 0; i < state->change_count; i++)
        if (lies_in(state->changes[i].path, path))
            apply(&state->safe, &state->changes[i]);
        else
            state->changes[left++] = state->changes[i];
    state->change_count = left;
    return 0;
}

static int call_remove(struct disk *disk, const char *path)
{
    struct support_disk *const d = disk_of(disk);
    if (!may_call(d)) return -1;
    if (!find(&d->state->now, path)) {
        errno = ENOENT;
        return -1;
    }
    change_names(d->state, change_of(CHANGE_REMOVE, path, "", NOTHING));
    return 0;
}

static int call_list(struct disk *disk, const char *path,
                     void (*each)(void *context, const char *name), void *context)
{
    struct support_disk_state *const state = disk_of(disk)->state;
    if (!find(&state->now, path)) {
        errno = ENOENT;
        return -1;
    }
    for (int i = 0; i < NAMES_MAX; i++) {
        const struct name *const entry = &state->now.entries[i];
        if (entry->file != NOTHING && lies_in(entry->path, path))
            each(context, entry->path + strlen(path) + 1);
    }
    return 0;
}

static const struct disk_calls calls = {
    .make_folder = call_make_folder,
    .lock_folder = call_lock_folder,
    .create = call_create,
    .open = call_open,
    .size = call_size,
    .write = call_write,
    .read = call_read,
    .sync = call_sync,
    .close = call_close,
    .rename = call_rename,
    .sync_folder = call_sync_folder,
    .remove = call_remove,
    .list = call_list,
};

/* --- afterwards ------------------------------------------------------------------------------- */

void support_disk_init(struct support_disk *disk)
{
    *disk = (struct support_disk){.disk = {&calls}, .error = EIO};
    disk->state = calloc(1, sizeof *disk->state);
    assert(disk->state);
    for (int i = 0; i < NAMES_MAX; i++)
        disk->state->now.entries[i].file = disk->state->safe.entries[i].file = NOTHING;
    put(&disk->state->now, SUPPORT_DISK_TOP, FOLDER);
    put(&disk->state->safe, SUPPORT_DISK_TOP, FOLDER);
}

void support_disk_release(struct support_disk *disk)
{
    for (int i = 0; i < disk->state->file_count; i++) {
        free(disk->state->files[i].now);
        free(disk->state->files[i].safe);
    }
    free(disk->state);
    *disk = (struct support_disk){.state = NULL};
}

static void end_faults(struct support_disk *disk)
{
    disk->fault = FAULT_NONE;
    disk->calls = disk->reads = disk->read_at = 0;
}

void support_disk_after_kill(struct support_disk *disk)
{
    end_faults(disk);
}

/* Blocks that were not synced survive or not; a lost block leaves its old contents, or zeros past the file's old
 * end. */
static void settle_file(struct file *file, uint64_t seed)
{
    uint64_t drawn = 0;
    const uint64_t luck = random_below(seed, drawn++, 3); /* nothing survives, some blocks, or all */
    size_t bytes = file->safe_bytes;
    unsigned char *const left = calloc(1, (file->now_bytes > bytes ? file->now_bytes : bytes) + 1);
    assert(left);
    if (bytes > 0) memcpy(left, file->safe, bytes);
    for (uint32_t r = 0; r < file->range_count; r++)
        for (size_t at = file->ranges[r].begin; at < file->ranges[r].end; at += BLOCK_BYTES) {
            size_t end = at + BLOCK_BYTES < file->ranges[r].end ? at + BLOCK_BYTES : file->ranges[r].end;
            if (end > file->now_bytes) end = file->now_bytes;
            if (at >= end || luck == 0 || (luck == 1 && random_below(seed, drawn++, 2))) continue;
            memcpy(left + at, file->now + at, end - at);
            if (end > bytes) bytes = end;
        }
    free(file->now);
    file->now = left;
    file->now_bytes = bytes;
    file->safe = realloc(file->safe, bytes + 1);
    assert(file->safe);
    memcpy(file->safe, left, bytes);
    file->safe_bytes = bytes;
    file->range_count = 0;
}

void support_disk_after_power(struct support_disk *disk, uint64_t seed)
{
    struct support_disk_state *const state = disk->state;
    end_faults(disk);
    const uint64_t luck = random_below(seed, 0, 3);
    for (uint32_t i = 0; i < state->change_count; i++)
        if (luck == 2 || (luck == 1 && random_below(seed, 1 + i, 2)))
            apply(&state->safe, &state->changes[i]);
    state->change_count = 0;
    /* names in a folder that was lost are lost */
    for (int i = 0; i < NAMES_MAX; i++) {
        struct name *const entry = &state->safe.entries[i];
        char *const slash = entry->file != NOTHING ? strrchr(entry->path, '/') : NULL;
        if (!slash) continue;
        *slash = '\0';
        const bool there = *entry->path == '\0' || find(&state->safe, entry->path) != NULL;
        *slash = '/';
        if (!there) entry->file = NOTHING;
    }
    state->now = state->safe;
    for (int i = 0; i < state->file_count; i++)
        settle_file(&state->files[i], random_mix(seed + 77 * (uint64_t)i));
}

unsigned char *support_disk_file(struct support_disk *disk, const char *path, size_t *length)
{
    struct name *const entry = find(&disk->state->now, path);
    if (!entry || entry->file == FOLDER) return NULL;
    *length = disk->state->files[entry->file].now_bytes;
    return disk->state->files[entry->file].now;
}

void support_disk_truncate(struct support_disk *disk, const char *path, size_t length)
{
    struct name *const entry = find(&disk->state->now, path);
    assert(entry);
    disk->state->files[entry->file].now_bytes = length;
}

uint32_t support_disk_count(const struct support_disk *disk, const char *ending)
{
    uint32_t count = 0;
    for (int i = 0; i < NAMES_MAX; i++) {
        const struct name *const entry = &disk->state->now.entries[i];
        if (entry->file < 0) continue;
        const size_t length = strlen(entry->path), tail = strlen(ending);
        count += length > tail && strcmp(entry->path + length - tail, ending) == 0;
    }
    return count;
}
