/* See path.h. */
#include "base/path.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

enum status path_beside(const char *file, const char *path, struct arena *arena, const char **out,
                        struct error *err)
{
    char folder[PATH_MAX];
    const char *end = strrchr(file, '/');
    size_t length = end ? (size_t)(end - file) + (end == file) : 0;
    if (length >= sizeof folder)
        return error_set(err, STATUS_BAD_INPUT, "the path '%.100s...' is too long", file);
    memcpy(folder, file, length);
    folder[length] = '\0';
    return path_absolute(folder, path, arena, out, err);
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
            return error_io(err, "cannot make the folder '%s'", folder);
        *slash = '/';
    }
    return STATUS_OK;
}
