/* Trees are walked by descriptors of folders: names may be of any length and change under the walk. */
#include "base/files/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *folder_for_temporary(void)
{
    const char *folder = getenv("TMPDIR");
    return folder && folder[0] == '/' ? folder : "/tmp";
}

enum status folder_make_temporary(const char *what, char *path, size_t size, struct error *err)
{
    int length = snprintf(path, size, "%s/spillway-%s-XXXXXX", folder_for_temporary(), what);
    if (length < 0 || (size_t)length >= size)
        return error_set(err, STATUS_LIMIT, "TMPDIR is too long (limit is %zu bytes)", size);
    if (!mkdtemp(path)) return error_io(err, "cannot make a folder '%s'", path);
    return STATUS_OK;
}

/* Opens a folder below `parent` and lists it; NULL: it is none, or cannot be read. */
static DIR *open_list(int parent, const char *name)
{
    const int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *list = folder >= 0 ? fdopendir(folder) : NULL;
    if (!list && folder >= 0) close(folder);
    return list;
}

/* Returns the next name in the folder except "." and ".."; NULL at the end. */
static const char *next_name(DIR *list)
{
    const struct dirent *entry;
    do entry = readdir(list);
    while (entry && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0));
    return entry ? entry->d_name : NULL;
}

/* --- removing -------------------------------------------------------------------------------- */

static void remove_below(int parent, const char *name)
{
    if (unlinkat(parent, name, 0) == 0) return;
    DIR *list = open_list(parent, name);
    if (!list) return;
    for (const char *inner; (inner = next_name(list));) remove_below(dirfd(list), inner);
    closedir(list);
    unlinkat(parent, name, AT_REMOVEDIR);
}

void folder_remove(const char *path)
{
    remove_below(AT_FDCWD, path);
}

/* --- moving ---------------------------------------------------------------------------------- */

static bool copy_bytes(int from, int to)
{
    char block[1 << 16];
    for (;;) {
        ssize_t got = read(from, block, sizeof block);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return got == 0;
        for (ssize_t done = 0; done < got;) {
            ssize_t written = write(to, block + done, (size_t)(got - done));
            if (written < 0 && errno != EINTR) return false;
            if (written > 0) done += written;
        }
    }
}

static bool copy_file(int from_parent, const char *from, int to_parent, const char *to, mode_t mode)
{
    const int in = openat(from_parent, from, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (in < 0) return false;
    const int out = openat(to_parent, to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool copied = out >= 0 && copy_bytes(in, out) && fchmod(out, mode & 07777) == 0;
    if (out >= 0 && close(out) != 0) copied = false;
    close(in);
    return copied;
}

static bool copy_link(int from_parent, const char *from, int to_parent, const char *to)
{
    char target[PATH_MAX];
    const ssize_t length = readlinkat(from_parent, from, target, sizeof target - 1);
    if (length < 0) return false;
    target[length] = '\0';
    return symlinkat(target, to_parent, to) == 0;
}

/* Copies a file, a symbolic link, or a folder with everything in it. */
static bool copy_below(int from_parent, const char *from, int to_parent, const char *to)
{
    struct stat info;
    if (fstatat(from_parent, from, &info, AT_SYMLINK_NOFOLLOW) != 0) return false;
    if (S_ISREG(info.st_mode)) return copy_file(from_parent, from, to_parent, to, info.st_mode);
    if (S_ISLNK(info.st_mode)) return copy_link(from_parent, from, to_parent, to);
    if (!S_ISDIR(info.st_mode)) {
        errno = EINVAL;
        return false;
    }
    if (mkdirat(to_parent, to, 0700) != 0) return false;
    const int folder = openat(to_parent, to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = folder >= 0 ? open_list(from_parent, from) : NULL;
    bool copied = list != NULL;
    for (const char *inner; copied && (inner = next_name(list));)
        copied = copy_below(dirfd(list), inner, folder, inner);
    if (copied) copied = fchmod(folder, info.st_mode & 07777) == 0;
    if (list) closedir(list);
    if (folder >= 0) close(folder);
    return copied;
}

enum status folder_move(const char *from, const char *to, struct error *err)
{
    if (rename(from, to) == 0) return STATUS_OK;
    if (errno == EXDEV && copy_below(AT_FDCWD, from, AT_FDCWD, to)) {
        folder_remove(from);
        return STATUS_OK;
    }
    error_io(err, "cannot move '%s' to '%s'", from, to);
    return err->status;
}
