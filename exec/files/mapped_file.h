/* Maps a file's bytes into memory; pages are read when they are touched. */
#ifndef SPILLWAY_EXEC_FILES_MAPPED_FILE_H
#define SPILLWAY_EXEC_FILES_MAPPED_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct mapped_file {
    const unsigned char *data; /* NULL when the file is empty */
    uint64_t bytes;
    int descriptor; /* valid if `opened`; else the bytes do not belong to a file */
    bool opened;
};

/* Maps a file. Errors: STATUS_IO, also for a path that is not a regular file. If the file is
 * truncated while it is mapped, SIGBUS ends the program. Release with mapped_file_close(). */
MUST_CHECK enum status mapped_file_open(const char *path, struct mapped_file *out,
                                        struct error *err);
/* Checks that these bytes can be read now. Callers that must survive a failing disk or a truncated
 * file call it before they access the bytes. Bytes that were just read are in the kernel's cache
 * and stay readable unless the file is truncated at that moment. `name` is for the message. Always
 * succeeds for bytes that do not belong to a file. Errors: STATUS_IO. */
MUST_CHECK enum status mapped_file_probe(const struct mapped_file *file, const char *name,
                                         uint64_t offset, uint64_t length, struct error *err);
void mapped_file_close(struct mapped_file *file);

#endif
