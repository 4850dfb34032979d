/* See outputs.h. Apart from outputs.c, which base/files/file.h asks. */
#include "base/files/outputs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"

/* Opens a pipe, which stays open: if it were closed here, its reader would see the end of its input. */
static enum status probe_pipe(const char *path, const char *what, struct error *err)
{
    const int file = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (file >= 0) {
        outputs_hold(file);
        return STATUS_OK;
    }
    if (errno == ENXIO)
        return error_set(err, STATUS_BAD_INPUT,
                         "%s is '%s', a pipe that no process reads (expected a reader, or a file)", what, path);
    error_io(err, "cannot write '%s'", path);
    return error_add(err, "%s", what);
}

/* A file that is changed in place needs no temporary in its folder. */
enum status outputs_probe(const char *path, enum file_kind kind, const char *what, struct error *err)
{
    struct file_out *file = NULL;
    struct stat info;
    const bool exists = stat(path, &info) == 0;
    if (strcmp(path, "-") == 0) return STATUS_OK;
    if (exists && kind == FILE_KIND_WEIGHTS && (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode)))
        return error_set(err, STATUS_BAD_INPUT, "%s cannot go into '%s', which is a pipe (expected a file)", what,
                         path);
    if (exists && S_ISFIFO(info.st_mode)) return probe_pipe(path, what, err);
    if (exists && S_ISREG(info.st_mode) && file_kind_in_place(kind)) {
        if (access(path, W_OK) == 0) return STATUS_OK;
        error_io(err, "cannot write '%s'", path);
    } else if (file_out_create(path, &file, err) == STATUS_OK) {
        file_out_discard(file);
        return STATUS_OK;
    }
    return error_add(err, "%s", what);
}
