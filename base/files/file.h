/*
 * Files that are there whole or not at all.
 *
 * file_out writes "NAME.tmp-PID" beside the target and renames it at commit; every write, flush and
 * close is checked. A file that is not committed leaves nothing behind. Target "-" is standard
 * output, written only at commit, and so is what exists and is no regular file (/dev/null, a pipe).
 * A target that ends in .gz is compressed.
 */
#ifndef SPILLWAY_BASE_FILE_H
#define SPILLWAY_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct file_out; /* opaque */

/* The caller ends it with file_out_commit() or file_out_discard(). */
MUST_CHECK enum status file_out_create(const char *path, struct file_out **out, struct error *err);

/* A failed write is remembered and reported at commit: callers may write without asking. */
void file_out_write(struct file_out *file, const void *data, size_t length);
void file_out_printf(struct file_out *file, const char *format, ...) PRINTF_LIKE(2, 3);

/* Flush, sync, rename. The file_out is gone afterwards, also on failure. STATUS_IO. */
MUST_CHECK enum status file_out_commit(struct file_out *file, struct error *err);
void file_out_discard(struct file_out *file); /* NULL is fine */

/* Unlink every temporary that is being written. Safe in a signal handler, and meant for one: the
 * program must end afterwards. */
void file_remove_pending(void);

/* The whole file in memory ("-" is standard input), inflated when it is gzip data; the caller frees
 * *text with free(). A NUL follows it.
 * Errors: STATUS_IO; STATUS_LIMIT past `limit` bytes; STATUS_BAD_INPUT when gzip data is damaged
 * or a name that ends in .gz holds none; STATUS_NO_MEMORY. */
MUST_CHECK enum status file_read(const char *path, size_t limit, char **text, size_t *length,
                                 struct error *err);

#endif
