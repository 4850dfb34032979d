/* A file's bytes in memory without reading it: pages come as they are touched. */
#ifndef SPILLWAY_EXEC_MAPPED_FILE_H
#define SPILLWAY_EXEC_MAPPED_FILE_H

#include <stdint.h>

#include "base/error.h"

struct mapped_file {
    const unsigned char *data; /* NULL when the file is empty */
    uint64_t bytes;
};

/* Errors: STATUS_IO, also for what is no regular file. A file that someone shortens while it is
 * mapped ends the program with SIGBUS. Release with mapped_file_close(). */
MUST_CHECK enum status mapped_file_open(const char *path, struct mapped_file *out,
                                        struct error *err);
void mapped_file_close(struct mapped_file *file);

#endif
