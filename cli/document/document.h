/*
 * A document written as one file.
 *
 *     struct document *document = document_create("Twelve runs on two cards");
 *     document_heading(document, 2, "Jobs");
 *     document_paragraph(document, "%u jobs on %s", count, machine);
 *     document_table_begin(document, "", (const char *[]){"JOB", ">TOKENS/S", NULL});   ">": a column of numbers
 *     document_cell(document, "%s", name);
 *     document_cell(document, "%.4g", tokens_per_s);
 *     document_table_end(document);
 *     status = document_picture_file(document, "Who ran what, when", "timeline.svg", err);
 *     status = document_write(document, "out.html", err);
 *     document_destroy(document);
 *
 * The file's ending selects the format. NAME.html (or .htm) is one valid HTML5 file with its pictures inside, without
 * scripts, for light and dark screens and paper. NAME.md is Markdown in GitHub's dialect with pictures beside it:
 * NAME-1.svg, NAME-2.png and so on. Equal calls give equal bytes.
 *
 * Markup characters in texts are escaped, line ends become spaces (except in document_code()), invalid UTF-8 and
 * control characters U+FFFD. A failed allocation is reported by document_write().
 */
#ifndef SPILLWAY_CLI_DOCUMENT_DOCUMENT_H
#define SPILLWAY_CLI_DOCUMENT_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct document; /* opaque */

enum { DOCUMENT_LEVEL_MAX = 4, DOCUMENT_COLUMNS_MAX = 64, DOCUMENT_PICTURE_BYTES_MAX = 64 << 20 };

/* Returns NULL when memory ends. The caller frees it with document_destroy(). */
struct document *document_create(const char *title);
void document_destroy(struct document *document); /* NULL is fine */

/* Adds a heading of `level` 2 to DOCUMENT_LEVEL_MAX; level 1 is the title's. */
void document_heading(struct document *document, unsigned level, const char *format, ...) PRINTF_LIKE(3, 4);
void document_paragraph(struct document *document, const char *format, ...) PRINTF_LIKE(2, 3);

/* Adds an item; consecutive items form one list. */
void document_item(struct document *document, const char *format, ...) PRINTF_LIKE(2, 3);

/* Adds monospaced text. */
void document_code(struct document *document, const char *text);

/* Adds links to headings of level 2, except in Markdown, whose viewers make them. */
void document_contents(struct document *document);

/* Begins a table. `headings` ends with NULL. Cells fill rows; the last must be complete. A table without rows is
 * left out. `caption` may be "". */
void document_table_begin(struct document *document, const char *caption, const char *const *headings);
void document_cell(struct document *document, const char *format, ...) PRINTF_LIKE(2, 3);
void document_table_end(struct document *document);

/*
 * Adds a copy of an SVG or PNG file. `caption` is also the alternative text. An SVG is shown as an image: its scripts
 * do not run, and its names cannot clash. Errors: STATUS_BAD_INPUT if the first bytes are neither SVG nor PNG,
 * STATUS_LIMIT past DOCUMENT_PICTURE_BYTES_MAX; document_picture_file() also STATUS_IO.
 */
MUST_CHECK enum status document_picture(struct document *document, const char *caption, const void *data, size_t length,
                                        struct error *err);
MUST_CHECK enum status document_picture_file(struct document *document, const char *caption, const char *path,
                                             struct error *err);

/* Checks, before long work, that `path` ends in a known format, and declares the files of up to `picture_max`
 * pictures of a page in Markdown as outputs (base/files/outputs.h). Errors: STATUS_BAD_INPUT. */
MUST_CHECK enum status document_check_path(const char *path, size_t picture_max, struct error *err);

/* Writes atomically, picture files first. Errors: as document_check_path(), STATUS_LIMIT, also of earlier calls;
 * STATUS_IO. */
MUST_CHECK enum status document_write(const struct document *document, const char *path, struct error *err);

#endif
