/* A file in memory with any bytes, for readers that take a path. Fuzz targets include this. */
#ifndef SPILLWAY_TESTS_SUPPORT_FUZZ_FILE_H
#define SPILLWAY_TESTS_SUPPORT_FUZZ_FILE_H

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

struct fuzz_file {
    int descriptor;
    char path[64];
};

/* Makes the file. The caller closes its `descriptor`. */
static inline struct fuzz_file fuzz_file_make(const uint8_t *data, size_t size)
{
    struct fuzz_file file = {.descriptor = memfd_create("fuzz", MFD_CLOEXEC)};
    assert(file.descriptor >= 0);
    for (size_t done = 0; done < size;) {
        ssize_t written = write(file.descriptor, data + done, size - done);
        assert(written > 0);
        done += (size_t)written;
    }
    snprintf(file.path, sizeof file.path, "/proc/self/fd/%d", file.descriptor);
    return file;
}

/* Writes a database's file. SQLite needs one with room for a journal next to it, which is removed. */
static inline void fuzz_file_write(const char *path, const uint8_t *data, size_t size)
{
    char journal[80];
    snprintf(journal, sizeof journal, "%s-journal", path);
    unlink(journal);
    FILE *file = fopen(path, "w");
    assert(file && fwrite(data, 1, size, file) == size);
    fclose(file);
}

#endif
