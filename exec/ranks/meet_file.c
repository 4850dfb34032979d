#include "exec/ranks/meet_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/process/clock.h"

/* Only a file of this user is read: others could write one into a shared folder. */
enum status meet_file_write(const char *path, uint32_t port, struct error *err)
{
    char made[PATH_MAX], text[32];
    const int length = snprintf(text, sizeof text, "127.0.0.1:%" PRIu32 "\n", port);
    snprintf(made, sizeof made, "%s.%ld", path, (long)getpid());
    const int file = open(made, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    const bool written = file >= 0 && write(file, text, (size_t)length) == length;
    int why = errno;
    if (file >= 0) close(file);
    if (written && rename(made, path) == 0) return STATUS_OK;
    if (written) why = errno;
    if (file >= 0) unlink(made);
    return error_set(err, STATUS_IO, "cannot write '%s', where ranks meet: %s", path, strerror(why));
}

void meet_file_remove(const char *path)
{
    unlink(path);
}

static bool read_file(const char *path, char *address, size_t bytes)
{
    struct stat about;
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0) return false;
    ssize_t count = -1;
    if (fstat(file, &about) == 0 && about.st_uid == geteuid()) count = read(file, address, bytes - 1);
    close(file);
    if (count < 1 || address[count - 1] != '\n') return false;
    address[count - 1] = '\0';
    return true;
}

enum status meet_file_await(const char *path, double until_s, char *address, size_t bytes, struct error *err)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    while (!read_file(path, address, bytes)) {
        if (clock_s() >= until_s)
            return error_set(err, STATUS_DEVICE, "rank 0 has not come: there is no file '%s'", path);
        nanosleep(&pause, NULL);
    }
    return STATUS_OK;
}
