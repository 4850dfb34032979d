/*
 * Files that are read piece by piece.
 *
 * A file_in returns the text of a file and inflates gzip data with any number of members. Its use of memory does not
 * grow with the file. file_read() in base/files/file.h reads a whole file with it.
 */
#ifndef SPILLWAY_BASE_FILES_FILE_IN_H
#define SPILLWAY_BASE_FILES_FILE_IN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/files/file_place.h"

struct file_in; /* opaque */

/* Opens `path` ("-" is standard input). The caller closes it with file_in_close().
 * Errors: STATUS_IO; STATUS_BAD_INPUT when a name that ends in .gz holds no gzip data. */
MUST_CHECK enum status file_in_open(const char *path, struct file_in **out, struct error *err);

/* Reads from `text`, which is borrowed, as from a file. `name` stands for the file name in messages. */
MUST_CHECK enum status file_in_of_text(const char *name, const char *text, size_t length, struct file_in **out,
                                       struct error *err);

/* Reads at most `capacity` bytes; *got is 0 at the end only. STATUS_BAD_INPUT when gzip data is damaged. */
MUST_CHECK enum status file_in_read(struct file_in *file, char *data, size_t capacity, size_t *got, struct error *err);

/* Reads everything that is left; the caller frees *text with free(). A NUL follows it.
 * Errors: also STATUS_LIMIT past `limit` bytes. */
MUST_CHECK enum status file_in_rest(struct file_in *file, size_t limit, char **text, size_t *length, struct error *err);

/* Continues at byte `offset` of the text, which is not past its end. Only for text and regular files. Gzip data is
 * inflated again from the start of the file when reading has passed that byte. */
MUST_CHECK enum status file_in_seek(struct file_in *file, uint64_t offset, struct error *err);

/* Continues at a place that file_out_place() returned when the file was written. Only for text and regular files. */
MUST_CHECK enum status file_in_go(struct file_in *file, const struct file_place *place, struct error *err);

/* Reads the end of the text without the rest: its last bytes, at most `capacity`; of gzip data the last member, when
 * the file has a mark (base/files/file_place.h) and the member fits. *got is 0 where the end is not known. *begin is
 * the offset of data[0] in the text, of gzip data UINT64_MAX: not known. Only for text and regular files.
 * file_in_seek() or file_in_go() must follow. */
MUST_CHECK enum status file_in_end(struct file_in *file, char *data, size_t capacity, uint64_t *begin, size_t *got,
                                   struct error *err);

/* Returns true for text and regular files, where file_in_seek() works. */
bool file_in_seeks(const struct file_in *file);

/* Returns the file name, or "standard input" for "-". Borrowed. */
const char *file_in_name(const struct file_in *file);

void file_in_close(struct file_in *file); /* NULL does nothing */

#endif
