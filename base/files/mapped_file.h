/* Maps a file's bytes into memory. */
#ifndef SPILLWAY_BASE_FILES_MAPPED_FILE_H
#define SPILLWAY_BASE_FILES_MAPPED_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct mapped_file {
    const unsigned char *data; /* NULL when the file is empty */
    uint64_t bytes;
    int descriptor; /* valid if `opened` */
    bool opened;
};

/* Maps a file. Errors: STATUS_IO, also when it is not a regular file. SIGBUS ends the program if
 * the file is truncated while it is mapped. Release with mapped_file_close(). */
MUST_CHECK enum status mapped_file_open(const char *path, struct mapped_file *out,
                                        struct error *err);
/* Checks that these bytes can be read now, for callers that must survive a failing disk or a
 * truncated file. They then stay readable unless the file is truncated at that moment. `name` is
 * for the message. Always succeeds without a file. Errors: STATUS_IO. */
MUST_CHECK enum status mapped_file_probe(const struct mapped_file *file, const char *name,
                                         uint64_t offset, uint64_t length, struct error *err);
void mapped_file_close(struct mapped_file *file);

#endif
