/* Writes files of rows (models/rows/rows_file.h), row after row, in little memory. */
#ifndef SPILLWAY_MODELS_ROWS_ROWS_WRITE_H
#define SPILLWAY_MODELS_ROWS_ROWS_WRITE_H

#include <stdint.h>

#include "base/error.h"
#include "models/rows/rows_file.h"

struct rows_write; /* opaque */

/* Begins a file, whose pieces are kept near `path` until rows_write_commit(). `tokenizer`: rows_file_hash(). The
 * caller ends it with rows_write_destroy(). */
MUST_CHECK enum status rows_write_create(const char *path, uint64_t vocabulary, uint64_t tokenizer,
                                         struct rows_write **out, struct error *err);

/* Appends a row: its tokens below the vocabulary, of which those from place `first` on, up to `last` (not included),
 * are learned for each of the spans, in rising order. Errors: STATUS_LIMIT for too many rows or tokens. */
struct rows_write_span {
    uint64_t first, last;
};
MUST_CHECK enum status rows_write_row(struct rows_write *rows, const uint32_t *tokens, uint64_t count,
                                      const struct rows_write_span *spans, uint64_t span_count, struct error *err);

/* Writes the file, whole or not at all. Errors: STATUS_IO. */
MUST_CHECK enum status rows_write_commit(struct rows_write *rows, struct error *err);
void rows_write_destroy(struct rows_write *rows); /* NULL does nothing */

#endif
