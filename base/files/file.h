/*
 * Files that are written whole or not at all.
 *
 * file_out writes "NAME.tmp-PID" in the folder of the target and renames it at commit. Every write,
 * flush and close is checked. A file that is not committed leaves nothing on disk. Target "-" is
 * standard output. Standard output and targets that exist but are not regular files (/dev/null, a
 * pipe) are written only at commit. A target that ends in .gz is compressed.
 */
#ifndef SPILLWAY_BASE_FILES_FILE_H
#define SPILLWAY_BASE_FILES_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/files/file_place.h"

struct file_out; /* opaque */

/* Creates an output; the caller ends it with file_out_commit() or file_out_discard(). */
MUST_CHECK enum status file_out_create(const char *path, struct file_out **out, struct error *err);

/* Writes data. A failed write is remembered and reported at commit, so callers do not check each
 * write. */
void file_out_write(struct file_out *file, const void *data, size_t length);
void file_out_printf(struct file_out *file, const char *format, ...) PRINTF_LIKE(2, 3);

/* Marks a place from which the file can be read (file_in_go()): gzip data begins a new member. Returns the offsets of
 * the place; its line and column are 0. */
struct file_place file_out_place(struct file_out *file);

/* Flushes, syncs and renames the file. The file_out is freed, also on failure. Errors: STATUS_IO. */
MUST_CHECK enum status file_out_commit(struct file_out *file, struct error *err);
void file_out_discard(struct file_out *file); /* NULL does nothing */

/* Removes every temporary file that is being written. Meant for signal handlers, and safe in them:
 * the program must end afterwards. */
void file_remove_pending(void);

/* Reads the whole file into memory ("-" is standard input) and inflates gzip data. The text ends in NUL. The caller
 * frees *text with free(). Errors: STATUS_IO; STATUS_LIMIT beyond `limit` bytes; STATUS_BAD_INPUT when gzip data is
 * damaged or a name that ends in .gz holds no gzip data. */
MUST_CHECK enum status file_read(const char *path, size_t limit, char **text, size_t *length,
                                 struct error *err);

/* Reads the first bytes of a regular file, as they are. Returns their number; 0 for other files, and where it cannot be
 * read. */
size_t file_read_head(const char *path, void *head, size_t size);

#endif
