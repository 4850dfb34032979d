#include "base/files/path.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/try.h"

static_assert(PATH_MOST_BYTES == PATH_MAX, "as long as the system's paths");
enum { LINKS_MAX = 40 }; /* as many as Linux follows */

enum status path_absolute(const char *folder, const char *path, struct arena *arena, const char **out,
                          struct error *err)
{
    char here[PATH_MAX] = "", joined[3 * PATH_MAX];
    bool absolute = path[0] == '/', folder_absolute = folder[0] == '/';
    bool folder_here = strcmp(folder, ".") == 0 || folder[0] == '\0';
    if (!absolute && !folder_absolute && !getcwd(here, sizeof here))
        return error_io(err, "cannot find the current folder");
    while (path[0] == '.' && path[1] == '/') path += 2;
    int length;
    if (absolute)
        length = snprintf(joined, sizeof joined, "%s", path);
    else if (folder_here)
        length = snprintf(joined, sizeof joined, "%s/%s", here, path);
    else
        length = snprintf(joined, sizeof joined, "%s%s%s/%s", here, folder_absolute ? "" : "/",
                          folder, path);
    if (length < 0 || (size_t)length >= sizeof joined)
        return error_set(err, STATUS_BAD_INPUT, "the path '%.100s...' is too long", path);
    return arena_string(arena, joined, out, err);
}

/* Copies the folder part of `file`; "" without a folder. */
static enum status copy_folder(const char *file, char folder[PATH_MAX], struct error *err)
{
    const char *end = strrchr(file, '/');
    size_t length = end ? (size_t)(end - file) + (end == file) : 0;
    if (length >= PATH_MAX)
        return error_set(err, STATUS_BAD_INPUT, "the path '%.100s...' is too long", file);
    memcpy(folder, file, length);
    folder[length] = '\0';
    return STATUS_OK;
}

enum status path_beside(const char *file, const char *path, struct arena *arena, const char **out,
                        struct error *err)
{
    char folder[PATH_MAX];
    TRY(copy_folder(file, folder, err));
    return path_absolute(folder, path, arena, out, err);
}

enum status path_folder(const char *file, struct arena *arena, const char **out, struct error *err)
{
    char folder[PATH_MAX], here[PATH_MAX];
    TRY(copy_folder(file, folder, err));
    if (folder[0] != '\0') return path_absolute("", folder, arena, out, err);
    if (!getcwd(here, sizeof here)) return error_io(err, "cannot find the current folder");
    return arena_string(arena, here, out, err);
}

/* Writes the real path of `path`, whose last parts need not exist. Returns false when these parts
 * include "..". */
static bool real_path(const char *path, char out[PATH_MAX])
{
    char known[PATH_MAX];
    size_t length = strlen(path);
    if (length >= sizeof known) return false;
    memcpy(known, path, length + 1);
    while (!realpath(length > 0 ? known : "/", out)) {
        if (errno != ENOENT || length == 0) return false;
        while (length > 0 && known[length] != '/') length--;
        known[length] = '\0';
    }
    const char *rest = path + length;
    if (strstr(rest, "/..")) return false;
    size_t used = strcmp(out, "/") == 0 ? 0 : strlen(out);
    int written = snprintf(out + used, PATH_MAX - used, "%s%s", *rest && *rest != '/' ? "/" : "", rest);
    return written >= 0 && (size_t)written < PATH_MAX - used;
}

const char *path_relative(const char *folder, const char *path, char out[PATH_RELATIVE_BYTES])
{
    char from[PATH_MAX], to[PATH_MAX];
    size_t length = strlen(folder), common = 0, used = 0;
    if (path[0] != '/') return path;
    if (length > 1 && strncmp(path, folder, length) == 0 && path[length] == '/')
        return path + length + strspn(path + length, "/");
    if (!real_path(folder, from) || !real_path(path, to)) return path;
    for (size_t i = 0; from[i] == to[i] || (from[i] == '\0' && to[i] == '/'); i++) {
        if (to[i] == '/') common = i;
        if (from[i] == '\0' || to[i] == '\0') break;
    }
    if (common == 0) return path;
    for (const char *c = from + common; *c; c++) {
        if (*c != '/') continue;
        if (used + 3 >= PATH_RELATIVE_BYTES) return path;
        memcpy(out + used, "../", 3);
        used += 3;
    }
    int written = snprintf(out + used, PATH_RELATIVE_BYTES - used, "%s", to + common + 1);
    return written >= 0 && (size_t)written < PATH_RELATIVE_BYTES - used ? out : path;
}

void path_join(char out[PATH_MOST_BYTES], const char *folder, size_t folder_length, const char *name)
{
    const size_t kept = folder_length < PATH_MAX - 1 ? folder_length : PATH_MAX - 1, room = PATH_MAX - 1 - kept;
    const size_t length = strnlen(name, room);
    memcpy(out, folder, kept);
    memcpy(out + kept, name, length);
    out[kept + length] = '\0';
}

void path_follow(const char *path, char out[PATH_MOST_BYTES])
{
    path_join(out, "", 0, path);
    for (int i = 0; i < LINKS_MAX; i++) {
        char target[PATH_MAX], link[PATH_MAX];
        const ssize_t length = readlink(out, target, sizeof target - 1);
        if (length < 0) return;
        target[length] = '\0';
        memcpy(link, out, sizeof link);
        const char *const slash = strrchr(link, '/');
        path_join(out, link, target[0] == '/' || !slash ? 0 : (size_t)(slash - link + 1), target);
    }
}

enum status path_from_program(const char *relative, char *path, size_t size, struct error *err)
{
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length <= 0) return error_io(err, "cannot find this program");
    self[length] = '\0';
    if (*relative) strrchr(self, '/')[1] = '\0'; /* an absolute path, says the kernel */
    int written = snprintf(path, size, "%s%s", self, relative);
    if (written < 0 || (size_t)written >= size)
        return error_set(err, STATUS_LIMIT, "the path '%.100s...' is too long", path);
    return STATUS_OK;
}

enum status path_make_folders(const char *path, struct error *err)
{
    char folder[PATH_MAX];
    int length = snprintf(folder, sizeof folder, "%s", path);
    if (length < 0 || (size_t)length >= sizeof folder)
        return error_set(err, STATUS_BAD_INPUT, "the path '%.100s...' is too long", path);
    for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(folder, 0777) != 0 && errno != EEXIST)
            return error_input(err, "cannot make the folder '%s'", folder);
        *slash = '/';
    }
    return STATUS_OK;
}
