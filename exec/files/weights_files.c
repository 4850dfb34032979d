#include "exec/files/weights_files.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/files/path.h"
#include "base/json/json_in.h"
#include "base/text.h"
#include "base/try.h"

static const char INDEX[] = "model.safetensors.index.json", SINGLE[] = "model.safetensors";

struct weights_file {
    const char *name; /* in the index; NULL: the only file */
    struct safetensors *tensors;
    bool *used;       /* by index of the tensor */
};

struct weights_files {
    struct arena arena;
    struct json_input *index; /* NULL: one file */
    const json_t *map;        /* tensor's name -> file's name */
    struct weights_file *files;
    size_t count;
};

/* --- opening ---------------------------------------------------------------------------------- */

static enum status open_file(struct weights_files *files, const char *path, const char *name, struct error *err)
{
    struct weights_file *const file = &files->files[files->count];
    TRY(safetensors_open(path, &file->tensors, err));
    file->name = name;
    files->count++;
    return ARENA_NEW(&files->arena, safetensors_count(file->tensors) + 1, file->used, err);
}

static struct weights_file *file_named(const struct weights_files *files, const char *name)
{
    for (size_t i = 0; i < files->count; i++)
        if (strcmp(files->files[i].name, name) == 0) return &files->files[i];
    return NULL;
}

/* Opens the file that an entry of the index names, unless it is open. Names are hostile: only a file beside the index
 * is opened. */
static enum status open_named(struct weights_files *files, const char *index, const char *tensor, const json_t *value,
                              struct error *err)
{
    const char *const name = json_string_value(value);
    const char *path;
    if (!name || !*name || strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return json_fail_key(files->index, files->map, tensor, err,
                             "expected the name of a file in the folder of the index");
    if (file_named(files, name)) return STATUS_OK;
    TRY(path_beside(index, name, &files->arena, &path, err));
    if (open_file(files, path, name, err) == STATUS_OK) return STATUS_OK;
    error_add(err, "%s, for tensor '%s'", index, tensor);
    return err->status;
}

/* Checks that the index and its files have the same tensors, each once. */
static enum status compare_index(const struct weights_files *files, struct error *err)
{
    const char *tensor;
    const json_t *value;
    json_object_foreach((json_t *)(uintptr_t)files->map, tensor, value) {
        const char *const name = json_string_value(value);
        if (!safetensors_find(file_named(files, name)->tensors, tensor))
            return json_fail_key(files->index, files->map, tensor, err, "tensor '%s' is not in '%s'", tensor, name);
    }
    for (size_t i = 0; i < files->count; i++)
        for (size_t t = 0; t < safetensors_count(files->files[i].tensors); t++) {
            const struct safetensors_tensor *const there = safetensors_at(files->files[i].tensors, t);
            const char *const name = json_string_value(json_object_get(files->map, there->name));
            if (name && strcmp(name, files->files[i].name) == 0) continue;
            return name ? json_fail_key(files->index, files->map, there->name, err,
                                        "tensor '%s' is in '%s', and in '%s', too", there->name, name,
                                        files->files[i].name)
                        : json_fail_key(files->index, files->map, NULL, err, "no entry for tensor '%s' of '%s'",
                                        there->name, files->files[i].name);
        }
    return STATUS_OK;
}

static enum status read_index(struct weights_files *files, const char *path, struct error *err)
{
    struct json_object root;
    const char *tensor;
    const json_t *value;
    TRY(json_input_read(path, &files->index, err));
    TRY(json_object_open(&root, files->index, json_input_root(files->index), "an index of weights", err));
    json_object_ignore_others(&root);
    TRY(json_take_object(&root, "weight_map", JSON_REQUIRED, &files->map, err));
    if (json_object_size(files->map) == 0)
        return json_fail_key(files->index, files->map, NULL, err, "no tensors (expected \"name\": \"file\")");
    TRY(ARENA_NEW(&files->arena, json_object_size(files->map), files->files, err));
    json_object_foreach((json_t *)(uintptr_t)files->map, tensor, value)
        TRY(open_named(files, path, tensor, value, err));
    return compare_index(files, err);
}

/* Finds the file of a folder: a single one before an index, as transformers does. */
static enum status find_in_folder(struct weights_files *files, const char *folder, const char **out, struct error *err)
{
    const char *const names[] = {SINGLE, INDEX};
    struct stat info;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        TRY(path_absolute(folder, names[i], &files->arena, out, err));
        if (stat(*out, &info) == 0) return STATUS_OK;
    }
    return error_set(err, STATUS_BAD_INPUT, "folder '%s' has neither '%s' nor '%s'", folder, SINGLE, INDEX);
}

static enum status open_all(struct weights_files *files, const char *path, struct error *err)
{
    struct stat info;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) TRY(find_in_folder(files, path, &path, err));
    if (text_ends_in(path, ".json")) return read_index(files, path, err);
    TRY(ARENA_NEW(&files->arena, 1, files->files, err));
    return open_file(files, path, NULL, err);
}

enum status weights_files_open(const char *path, struct weights_files **out, struct error *err)
{
    struct weights_files *const files = alloc_zeroed(1, sizeof *files);
    *out = NULL;
    if (!files) return error_memory(err, "files of weights", sizeof *files);
    const enum status status = open_all(files, path, err);
    if (status) weights_files_close(files);
    else *out = files;
    return status;
}

void weights_files_close(struct weights_files *files)
{
    if (!files) return;
    for (size_t i = 0; i < files->count; i++) safetensors_close(files->files[i].tensors);
    json_input_destroy(files->index);
    arena_release(&files->arena);
    free(files);
}

/* --- tensors ---------------------------------------------------------------------------------- */

size_t weights_files_count(const struct weights_files *files)
{
    size_t count = 0;
    for (size_t i = 0; i < files->count; i++) count += safetensors_count(files->files[i].tensors);
    return count;
}

const struct safetensors_tensor *weights_files_find(struct weights_files *files, const char *name)
{
    const char *const of = files->map ? json_string_value(json_object_get(files->map, name)) : NULL;
    if (files->map && !of) return NULL;
    struct weights_file *const file = of ? file_named(files, of) : &files->files[0];
    const struct safetensors_tensor *const found = safetensors_find(file->tensors, name);
    if (found) file->used[found - safetensors_at(file->tensors, 0)] = true;
    return found;
}

const struct safetensors_tensor *weights_files_unused(const struct weights_files *files, size_t *at)
{
    size_t first = 0;
    for (size_t i = 0; i < files->count; i++) {
        const size_t count = safetensors_count(files->files[i].tensors);
        for (; *at < first + count; ++*at)
            if (!files->files[i].used[*at - first]) return safetensors_at(files->files[i].tensors, (*at)++ - first);
        first += count;
    }
    return NULL;
}
