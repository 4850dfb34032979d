/* A file's bytes in memory without reading it: pages come as they are touched. */
#ifndef SPILLWAY_EXEC_MAPPED_FILE_H
#define SPILLWAY_EXEC_MAPPED_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct mapped_file {
    const unsigned char *data; /* NULL when the file is empty */
    uint64_t bytes;
    int descriptor; /* when `opened`: else the bytes are nobody's file */
    bool opened;
};

/* Errors: STATUS_IO, also for what is no regular file. A file that someone shortens while it is
 * mapped ends the program with SIGBUS. Release with mapped_file_close(). */
MUST_CHECK enum status mapped_file_open(const char *path, struct mapped_file *out,
                                        struct error *err);
/* Can these bytes be read just now? To be asked before they are looked at, where a failing disk or
 * someone who shortens the file must not end the program. What was readable a moment ago is in the
 * kernel's cache, and stays unless the file is shortened in that moment. `name` is for the message.
 * Always true of bytes that are nobody's file. STATUS_IO. */
MUST_CHECK enum status mapped_file_probe(const struct mapped_file *file, const char *name,
                                         uint64_t offset, uint64_t length, struct error *err);
void mapped_file_close(struct mapped_file *file);

#endif
