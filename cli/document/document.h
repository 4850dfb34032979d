/*
 * A document of headings, paragraphs, lists, tables and pictures, written as one file.
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
 * The ending of the file's name selects the format. NAME.html (or .htm) is one valid HTML5 file with its pictures
 * inside. It has no scripts and a policy that forbids them, and suits light screens, dark screens and paper. NAME.md is
 * Markdown in GitHub's dialect; its pictures are files beside it: NAME-1.svg, NAME-2.png and so on. Equal calls give
 * equal bytes: no time and no place is added.
 *
 * All text is plain text: characters that are markup in the output format are escaped. Line ends inside a text become
 * spaces (except in document_code()). Invalid UTF-8 and control characters become U+FFFD. A failed allocation is
 * remembered and reported by document_write(), so callers need no checks.
 */
#ifndef SPILLWAY_CLI_DOCUMENT_DOCUMENT_H
#define SPILLWAY_CLI_DOCUMENT_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct document; /* opaque */

enum { DOCUMENT_LEVEL_MAX = 4, DOCUMENT_COLUMNS_MAX = 64, DOCUMENT_PICTURE_BYTES_MAX = 64 << 20 };

/* Returns NULL when memory ends. The caller frees the document with document_destroy(). */
struct document *document_create(const char *title);
void document_destroy(struct document *document); /* NULL is fine */

/* Adds a heading. Level 1 is the title's; `level` is 2 to DOCUMENT_LEVEL_MAX. */
void document_heading(struct document *document, unsigned level, const char *format, ...) PRINTF_LIKE(3, 4);
void document_paragraph(struct document *document, const char *format, ...) PRINTF_LIKE(2, 3);

/* Adds an item of a list. Consecutive items form one list. */
void document_item(struct document *document, const char *format, ...) PRINTF_LIKE(2, 3);

/* Adds preformatted text, line by line, in a monospaced font. */
void document_code(struct document *document, const char *text);

/* Adds links to all headings of level 2. Markdown pages get none: its viewers make their own. */
void document_contents(struct document *document);

/* Begins a table. `headings` ends with NULL. Cells fill rows from left to right; the last row must be complete at the
 * end. A table without rows is left out. `caption` may be "". */
void document_table_begin(struct document *document, const char *caption, const char *const *headings);
void document_cell(struct document *document, const char *format, ...) PRINTF_LIKE(2, 3);
void document_table_end(struct document *document);

/*
 * Adds an SVG or PNG file; its bytes are copied. `caption` is also the text for readers who cannot see the picture. An
 * SVG is shown as an image: its scripts do not run, and its names cannot clash with names in other pictures. Errors:
 * STATUS_BAD_INPUT if the first bytes are neither SVG nor PNG, STATUS_LIMIT past DOCUMENT_PICTURE_BYTES_MAX,
 * STATUS_NO_MEMORY; document_picture_file() also STATUS_IO.
 */
MUST_CHECK enum status document_picture(struct document *document, const char *caption, const void *data, size_t length,
                                        struct error *err);
MUST_CHECK enum status document_picture_file(struct document *document, const char *caption, const char *path,
                                             struct error *err);

/* Checks, before long work, that `path` ends in a known format, and declares the files of up to `picture_max`
 * pictures of a page in Markdown as outputs (base/files/outputs.h). Errors: STATUS_BAD_INPUT. */
MUST_CHECK enum status document_check_path(const char *path, size_t picture_max, struct error *err);

/* Writes the page atomically. Separate picture files are written first, so that the page never names a missing file.
 * Errors: as document_check_path(), STATUS_LIMIT, also of earlier calls; STATUS_IO. */
MUST_CHECK enum status document_write(const struct document *document, const char *path, struct error *err);

#endif
