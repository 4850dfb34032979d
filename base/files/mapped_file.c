#include "base/files/mapped_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/outputs.h"

enum status mapped_file_open(const char *path, struct mapped_file *out, struct error *err)
{
    /* a pipe, refused below, may have no writer */
    int descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0) return error_input(err, "cannot open '%s'", path);
    struct stat about;
    enum status status = outputs_read(path, err);
    void *data = NULL;
    if (status != STATUS_OK) {
        /* an output is opened as well */
    } else if (fstat(descriptor, &about) != 0) {
        status = error_io(err, "cannot read '%s'", path);
    } else if (!S_ISREG(about.st_mode)) {
        status = error_set(err, STATUS_BAD_INPUT, "'%s' is not a regular file", path);
    } else if (about.st_size > 0) {
        data = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
        if (data == MAP_FAILED) status = error_io(err, "cannot map '%s'", path);
    }
    if (status == STATUS_OK)
        *out = (struct mapped_file){data, (uint64_t)about.st_size, descriptor, true};
    else
        close(descriptor);
    return status;
}

enum status mapped_file_probe(const struct mapped_file *file, const char *name, uint64_t offset,
                              uint64_t length, struct error *err)
{
    char scratch[16 << 10];
    while (file->opened && length > 0) {
        const size_t piece = length < sizeof scratch ? (size_t)length : sizeof scratch;
        const ssize_t got = pread(file->descriptor, scratch, piece, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return error_io(err, "cannot read '%s'", name);
        if (got == 0)
            return error_set(err, STATUS_IO, "'%s' has become shorter: it ends before byte %" PRIu64,
                             name, offset + 1);
        offset += (uint64_t)got;
        length -= (uint64_t)got;
    }
    return STATUS_OK;
}

void mapped_file_close(struct mapped_file *file)
{
    if (file->opened) close(file->descriptor);
    if (file->data) munmap((void *)(uintptr_t)file->data, (size_t)file->bytes);
    *file = (struct mapped_file){0};
}
