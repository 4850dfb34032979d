/*
 * A file is identified by device, inode, time of change and path together. A path by itself would miss links. An
 * inode by itself would mistake a new file for a deleted file that had the same inode. When rename() has replaced an
 * output, the old identity is gone, and reading the new file is no conflict.
 */
#include "base/files/outputs.h"

#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/files/path.h"
#include "base/hash.h"
#include "base/try.h"

enum { HELD_MAX = 32 };

struct identity {
    uint64_t hash; /* of the path, with links and ".." resolved */
    bool exists, special; /* special: no regular file */
    dev_t device;
    ino_t inode;
    struct timespec changed;
};

struct outputs_place {
    struct identity id;
    char resolved[PATH_MAX];
};

struct outputs_entry {
    struct outputs_entry *next;
    struct identity id;
    char *resolved, *path, *what; /* path: as the caller said it; what: NULL of inputs */
};

static struct {
    pthread_mutex_t lock;
    bool active, force;
    struct outputs_entry *inputs, *outputs, *folders;
    int held[HELD_MAX], held_count; /* open files; what exceeds the room is closed at the process's end only */
} known = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* --- identities ------------------------------------------------------------------------------- */

/* Resolves the path; for a file that does not exist, its folder. */
static void resolve(const char *path, char out[PATH_MAX])
{
    if (realpath(path, out)) return;
    char followed[PATH_MAX], folder[PATH_MAX], resolved[PATH_MAX];
    path_follow(path, followed);
    const char *const slash = strrchr(followed, '/');
    path_join(folder, followed, slash ? (size_t)(slash - followed + 1) : 0, slash ? "" : "./");
    if (!realpath(folder, resolved)) memcpy(resolved, folder, sizeof resolved);
    const size_t length = strlen(resolved);
    if (length > 0 && resolved[length - 1] != '/') path_join(folder, resolved, length, "/");
    else memcpy(folder, resolved, sizeof folder);
    path_join(out, folder, strlen(folder), slash ? slash + 1 : followed);
}

static void locate(const char *path, struct outputs_place *place)
{
    struct stat info;
    const bool exists = stat(path, &info) == 0;
    resolve(path, place->resolved);
    place->id = (struct identity){.hash = hash_bytes(HASH_BEGIN, place->resolved, strlen(place->resolved)),
                                  .exists = exists};
    if (!exists) return;
    place->id.special = !S_ISREG(info.st_mode);
    place->id.device = info.st_dev;
    place->id.inode = info.st_ino;
    place->id.changed = info.st_mtim;
}

static bool same(const struct outputs_entry *entry, const struct outputs_place *place, bool by_path)
{
    const struct identity *const a = &entry->id, *const b = &place->id;
    if (by_path && a->hash == b->hash && strcmp(entry->resolved, place->resolved) == 0) return true;
    return a->exists && b->exists && a->device == b->device && a->inode == b->inode &&
           a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

/* --- the register ----------------------------------------------------------------------------- */

static const struct outputs_entry *find(const struct outputs_entry *entry, const struct outputs_place *place,
                                        bool by_path)
{
    while (entry && !same(entry, place, by_path)) entry = entry->next;
    return entry;
}

static void drop(struct outputs_entry **list)
{
    while (*list) {
        struct outputs_entry *const entry = *list;
        *list = entry->next;
        free(entry->path);
        free(entry->what);
        free(entry->resolved);
        free(entry);
    }
}

static char *copy(const char *text)
{
    char *const out = alloc_zeroed(1, strlen(text) + 1);
    return out ? strcpy(out, text) : NULL;
}

static enum status add(struct outputs_entry **list, const char *path, const char *what,
                       const struct outputs_place *place, struct error *err)
{
    struct outputs_entry *const entry = alloc_zeroed(1, sizeof *entry);
    if (!entry) return error_memory(err, "the name of a file", sizeof *entry);
    *entry = (struct outputs_entry){.id = place->id, .resolved = copy(place->resolved), .path = copy(path),
                                    .what = what ? copy(what) : NULL};
    if (!entry->path || !entry->resolved || (what && !entry->what)) {
        struct outputs_entry *alone = entry;
        drop(&alone);
        return error_memory(err, "the name of a file", strlen(path));
    }
    entry->next = *list;
    *list = entry;
    return STATUS_OK;
}

static enum status refuse_input(const char *what, const char *path, struct error *err)
{
    return error_set(err, STATUS_BAD_INPUT,
                     "%s would replace '%s', which this command reads (expected another name, or "
                     "--force)",
                     what, path);
}

/* --- checks ----------------------------------------------------------------------------------- */

static enum status check_pair(const struct outputs_place *place, const char *path, const char *what, struct error *err)
{
    const struct outputs_entry *const other = find(known.outputs, place, true);
    if (!other) return STATUS_OK;
    if (strcmp(other->path, path) == 0)
        return error_set(err, STATUS_BAD_INPUT, "%s and %s would both write '%s' (expected different files)",
                         other->what, what, path);
    return error_set(err, STATUS_BAD_INPUT,
                     "%s and %s would both write one file: '%s' is '%s' (expected different files)", other->what, what,
                     path, other->path);
}

static bool is_in(const char *resolved, const char *folder)
{
    const size_t length = strlen(folder);
    return strncmp(resolved, folder, length) == 0 && (resolved[length] == '/' || resolved[length] == '\0');
}

static enum status refuse_in(const char *what, const char *path, const struct outputs_entry *folder, struct error *err)
{
    return error_set(err, STATUS_BAD_INPUT,
                     "%s would write '%s' into the folder of %s, '%s' (expected a path outside of it)", what, path,
                     folder->what, folder->path);
}

static enum status check_folders(const struct outputs_place *place, const char *path, const char *what,
                                 struct error *err)
{
    for (const struct outputs_entry *folder = known.folders; folder; folder = folder->next)
        if (is_in(place->resolved, folder->resolved)) return refuse_in(what, path, folder, err);
    return STATUS_OK;
}

static enum status check_kind(const char *path, enum file_kind kind, const char *what, struct error *err)
{
    char found[FILE_KIND_FOUND_BYTES];
    if (known.force || file_kind_matches(path, kind, found)) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT, "%s would replace '%s', which is %s and not %s (expected another name, or "
                     "--force)", what, path, found, file_kind_noun(kind));
}

static enum status declare(const char *path, enum file_kind kind, const char *what, const struct outputs_place *place,
                           struct error *err)
{
    if (place->id.special) return STATUS_OK; /* a device or a pipe holds nothing that could be lost */
    TRY(check_pair(place, path, what, err));
    TRY(check_folders(place, path, what, err));
    if (!known.force && find(known.inputs, place, true)) return refuse_input(what, path, err);
    TRY(check_kind(path, kind, what, err));
    return add(&known.outputs, path, what, place, err);
}

/* --- public ----------------------------------------------------------------------------------- */

void outputs_begin(void)
{
    outputs_end();
    known.active = true;
}

void outputs_end(void)
{
    pthread_mutex_lock(&known.lock);
    drop(&known.inputs);
    drop(&known.outputs);
    drop(&known.folders);
    while (known.held_count > 0) close(known.held[--known.held_count]);
    known.active = known.force = false;
    pthread_mutex_unlock(&known.lock);
}

void outputs_hold(int file)
{
    pthread_mutex_lock(&known.lock);
    if (!known.active) close(file);
    else if (known.held_count < HELD_MAX) known.held[known.held_count++] = file;
    pthread_mutex_unlock(&known.lock);
}

void outputs_allow(bool force)
{
    known.force = force;
}

enum status outputs_declare(const char *path, enum file_kind kind, const char *what, struct error *err)
{
    struct outputs_place place = {.id = {.hash = 0}, .resolved = "-"};
    if (!known.active) return STATUS_OK;
    if (strcmp(path, "-") != 0) locate(path, &place);
    pthread_mutex_lock(&known.lock);
    const enum status status = declare(path, kind, what, &place, err);
    pthread_mutex_unlock(&known.lock);
    return status;
}

static enum status declare_folder(const char *path, const char *what, const struct outputs_place *place,
                                  struct error *err)
{
    struct stat info;
    if (place->id.exists && stat(path, &info) == 0 && !S_ISDIR(info.st_mode))
        return error_set(err, STATUS_BAD_INPUT, "%s is '%s', which is not a folder (expected a folder, or a new name)",
                         what, path);
    TRY(add(&known.folders, path, what, place, err));
    for (const struct outputs_entry *output = known.outputs; output; output = output->next)
        if (is_in(output->resolved, place->resolved)) return refuse_in(output->what, output->path, known.folders, err);
    return STATUS_OK;
}

enum status outputs_declare_folder(const char *path, const char *what, struct error *err)
{
    struct outputs_place place;
    char plain[PATH_MAX];
    if (!known.active) return STATUS_OK;
    path_join(plain, path, strlen(path), "");
    for (size_t length = strlen(plain); length > 1 && plain[length - 1] == '/'; length--) plain[length - 1] = '\0';
    locate(plain, &place);
    pthread_mutex_lock(&known.lock);
    const enum status status = declare_folder(path, what, &place, err);
    pthread_mutex_unlock(&known.lock);
    return status;
}

enum status outputs_read(const char *path, struct error *err)
{
    struct outputs_place place;
    if (!known.active || strcmp(path, "-") == 0) return STATUS_OK;
    locate(path, &place);
    if (!place.id.exists || place.id.special) return STATUS_OK;
    pthread_mutex_lock(&known.lock);
    enum status status = STATUS_OK;
    const struct outputs_entry *const output = find(known.outputs, &place, false);
    if (output && !known.force) status = refuse_input(output->what, output->path, err);
    else if (!find(known.inputs, &place, false)) status = add(&known.inputs, path, NULL, &place, err);
    pthread_mutex_unlock(&known.lock);
    return status;
}

enum status outputs_check(const char *path, struct error *err)
{
    struct outputs_place place;
    if (!known.active || known.force) return STATUS_OK;
    locate(path, &place);
    if (!place.id.exists || place.id.special) return STATUS_OK;
    pthread_mutex_lock(&known.lock);
    const struct outputs_entry *const input = find(known.inputs, &place, false);
    const enum status status = input
                                 ? error_set(err, STATUS_BAD_INPUT,
                                             "'%s' would be replaced, which this command reads (expected another name, "
                                             "or --force)",
                                             path)
                                 : STATUS_OK;
    pthread_mutex_unlock(&known.lock);
    return status;
}
