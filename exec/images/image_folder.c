#include "exec/images/image_folder.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/files/mapped_file.h"
#include "base/size.h"
#include "base/text.h"
#include "base/try.h"
#include "exec/images/image_file.h"
#include "exec/images/image_scale.h"

enum { IMAGES_MAX = 1 << 28, CLASSES_MAX = 1 << 20 };

struct folder_image {
    const char *path;
    uint32_t label;
};

struct image_folder {
    struct arena arena;
    struct folder_image *images;
    size_t count, capacity;
};

/* --- names ------------------------------------------------------------------------------------- */

/* Names in a folder, sorted; in the folder's arena. */
struct folder_names {
    const char **names;
    size_t count, capacity;
};

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static enum status list_names(const char *path, struct arena *arena, struct folder_names *out, struct error *err)
{
    DIR *const dir = opendir(path);
    enum status status = STATUS_OK;
    if (!dir) return error_io(err, "cannot read the folder '%s'", path);
    for (const struct dirent *entry; status == STATUS_OK && (entry = readdir(dir));) {
        if (entry->d_name[0] == '.') continue;
        status = array_reserve(&out->names, &out->capacity, out->count, sizeof *out->names, IMAGES_MAX, "names", err);
        if (status == STATUS_OK) status = arena_string(arena, entry->d_name, &out->names[out->count], err);
        out->count += status == STATUS_OK;
    }
    closedir(dir);
    if (status == STATUS_OK && out->count > 0) qsort(out->names, out->count, sizeof *out->names, by_bytes);
    return status;
}

static enum status join(const char *folder, const char *name, char out[PATH_MAX], struct error *err)
{
    if (snprintf(out, PATH_MAX, "%s/%s", folder, name) < PATH_MAX) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT, "%s: the path of '%s' is too long", folder, name);
}

static bool is_folder(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

static bool has_ending(const char *name)
{
    static const char *const endings[] = {".png", ".jpg", ".jpeg"};
    for (size_t i = 0; i < ARRAY_COUNT(endings); i++)
        if (text_ends_like(name, endings[i])) return true;
    return false;
}

/* --- opening ----------------------------------------------------------------------------------- */

static enum status with_bytes(const char *path,
                              enum status (*take)(const char *name, const unsigned char *bytes, uint64_t count,
                                                  struct image *out, struct error *err),
                              struct image *out, struct error *err)
{
    struct mapped_file file = {0};
    TRY(mapped_file_open(path, &file, err));
    enum status status = mapped_file_probe(&file, path, 0, file.bytes, err);
    if (status == STATUS_OK) status = take(path, file.data, file.bytes, out, err);
    mapped_file_close(&file);
    return status;
}

static enum status look_at(const char *path, struct error *err)
{
    struct image image;
    return with_bytes(path, image_look, &image, err);
}

static enum status add_class(struct image_folder *folder, const char *path, uint32_t label, bool known,
                             struct error *err)
{
    struct folder_names names = {0};
    char image[PATH_MAX];
    enum status status = list_names(path, &folder->arena, &names, err);
    if (status == STATUS_OK && names.count == 0)
        status = error_set(err, STATUS_BAD_INPUT, "%s: a class without images (expected .png, .jpg or .jpeg files)",
                           path);
    for (size_t i = 0; i < names.count && status == STATUS_OK; i++) {
        status = join(path, names.names[i], image, err);
        if (status == STATUS_OK && !has_ending(names.names[i]))
            status = error_set(err, STATUS_BAD_INPUT, "%s: not an image by its name (expected .png, .jpg or .jpeg)",
                               image);
        if (status == STATUS_OK && !known) status = look_at(image, err);
        if (status == STATUS_OK)
            status = array_reserve(&folder->images, &folder->capacity, folder->count, sizeof *folder->images,
                                   IMAGES_MAX, "images", err);
        if (status == STATUS_OK) {
            folder->images[folder->count].label = label;
            status = arena_string(&folder->arena, image, &folder->images[folder->count].path, err);
        }
        folder->count += status == STATUS_OK;
    }
    free(names.names);
    return status;
}

/* Lists the folders of classes among the names. */
static enum status add_classes(struct image_folder *folder, const char *path, const struct folder_names *names,
                               uint64_t classes, bool known, struct error *err)
{
    char class[PATH_MAX];
    uint64_t found = 0;
    for (int counts = 1; counts >= 0; counts--) { /* their number is checked before files are read */
        found = 0;
        for (size_t i = 0; i < names->count; i++) {
            TRY(join(path, names->names[i], class, err));
            if (!is_folder(class)) continue;
            if (!counts) TRY(add_class(folder, class, (uint32_t)found, known, err));
            found++;
        }
        if (found != classes)
            return error_set(err, STATUS_BAD_INPUT,
                             "%s: %" PRIu64 " folders of classes (expected %" PRIu64
                             ", one for each class of the network)", path, found, classes);
    }
    return STATUS_OK;
}

enum status image_folder_open(const char *path, uint64_t classes, bool known, struct image_folder **out,
                              struct error *err)
{
    struct folder_names names = {0};
    struct image_folder *const folder = alloc_zeroed(1, sizeof *folder);
    if (!folder) return error_memory(err, "a folder of images", sizeof *folder);
    enum status status = list_names(path, &folder->arena, &names, err);
    if (status == STATUS_OK) status = add_classes(folder, path, &names, classes, known, err);
    free(names.names);
    if (status == STATUS_OK) *out = folder;
    else image_folder_close(folder);
    return status;
}

void image_folder_close(struct image_folder *folder)
{
    if (!folder) return;
    arena_release(&folder->arena);
    free(folder->images);
    free(folder);
}

/* --- reading ----------------------------------------------------------------------------------- */

uint64_t image_folder_count(const struct image_folder *folder)
{
    return folder->count;
}

uint32_t image_folder_label(const struct image_folder *folder, uint64_t index)
{
    return folder->images[index].label;
}

enum status image_folder_read(const struct image_folder *folder, uint64_t index, uint64_t side, uint64_t channels,
                              double *out, struct error *err)
{
    struct image image = {0};
    TRY(with_bytes(folder->images[index].path, image_decode, &image, err));
    const enum status status = image_scale(&image, side, channels, out, err);
    image_release(&image);
    return status;
}
