/* Calls the system directly and repeats calls that a signal interrupts. */
#include "base/files/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static int real_make_folder(struct disk *disk, const char *path)
{
    (void)disk;
    return mkdir(path, 0777);
}

static int open_folder(const char *path)
{
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int real_lock_folder(struct disk *disk, const char *path)
{
    (void)disk;
    const int folder = open_folder(path);
    if (folder < 0 || flock(folder, LOCK_EX | LOCK_NB) == 0) return folder;
    const int reason = errno;
    close(folder);
    errno = reason;
    return -1;
}

static int real_create(struct disk *disk, const char *path)
{
    (void)disk;
    return open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
}

static int real_open(struct disk *disk, const char *path)
{
    (void)disk;
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not hold us up */
}

static int64_t real_size(struct disk *disk, int file)
{
    (void)disk;
    struct stat about;
    if (fstat(file, &about) != 0) return -1;
    if (S_ISREG(about.st_mode)) return about.st_size;
    errno = S_ISDIR(about.st_mode) ? EISDIR : EINVAL;
    return -1;
}

static ssize_t real_write(struct disk *disk, int file, const void *data, size_t length)
{
    (void)disk;
    ssize_t written;
    do written = write(file, data, length);
    while (written < 0 && errno == EINTR);
    return written;
}

static ssize_t real_read(struct disk *disk, int file, void *data, size_t length, uint64_t offset)
{
    (void)disk;
    ssize_t got;
    do got = pread(file, data, length, (off_t)offset);
    while (got < 0 && errno == EINTR);
    return got;
}

static int real_sync(struct disk *disk, int file)
{
    (void)disk;
    int result;
    do result = fsync(file);
    while (result < 0 && errno == EINTR);
    return result;
}

static int real_close(struct disk *disk, int file)
{
    (void)disk;
    return close(file);
}

static int real_rename(struct disk *disk, const char *from, const char *to)
{
    (void)disk;
    return rename(from, to);
}

static int real_sync_folder(struct disk *disk, const char *path)
{
    const int folder = open_folder(path);
    if (folder < 0) return -1;
    const int result = real_sync(disk, folder), reason = errno;
    close(folder);
    if (result == 0 || reason == EINVAL) return 0; /* EINVAL: a file system that cannot and need not */
    errno = reason;
    return -1;
}

static int real_remove(struct disk *disk, const char *path)
{
    (void)disk;
    return unlink(path);
}

static int real_list(struct disk *disk, const char *path,
                     void (*each)(void *context, const char *name), void *context)
{
    (void)disk;
    DIR *const folder = opendir(path);
    if (!folder) return -1;
    errno = 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL; errno = 0)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            each(context, entry->d_name);
    const int reason = errno;
    closedir(folder);
    errno = reason;
    return reason == 0 ? 0 : -1;
}

static const struct disk_calls real_calls = {
    .make_folder = real_make_folder,
    .lock_folder = real_lock_folder,
    .create = real_create,
    .open = real_open,
    .size = real_size,
    .write = real_write,
    .read = real_read,
    .sync = real_sync,
    .close = real_close,
    .rename = real_rename,
    .sync_folder = real_sync_folder,
    .remove = real_remove,
    .list = real_list,
};

struct disk disk_real = {&real_calls};
