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
 * The name of the file says its form. NAME.html (or .htm): valid HTML5, complete in itself (its pictures are in
 * it), without scripts and with a policy that forbids them, for light and dark screens and for paper. NAME.md:
 * Markdown as GitHub reads it; its pictures stand beside it as NAME-1.svg, NAME-2.png and so on. Equal calls give
 * equal bytes: nothing of time or place is added.
 *
 * All text is plain text: whatever is markup in the form that is written comes out as the letters that it is. Line
 * ends inside a text become spaces (except in document_code()); what is no UTF-8, and control characters, become
 * U+FFFD. A failed allocation is remembered and reported by document_write(): callers add without asking.
 */
#ifndef SPILLWAY_REPORT_DOCUMENT_H
#define SPILLWAY_REPORT_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct document; /* opaque */

enum { DOCUMENT_LEVEL_MAX = 4, DOCUMENT_COLUMNS_MAX = 64, DOCUMENT_PICTURE_BYTES_MAX = 64 << 20 };

/* NULL when memory ends. The caller frees it with document_destroy(). */
struct document *document_create(const char *title);
void document_destroy(struct document *document); /* NULL is fine */

/* Level 1 is the title's; 2 to DOCUMENT_LEVEL_MAX. */
void document_heading(struct document *document, unsigned level, const char *format, ...) PRINTF_LIKE(3, 4);
void document_paragraph(struct document *document, const char *format, ...) PRINTF_LIKE(2, 3);

/* Items that follow one another are one list. */
void document_item(struct document *document, const char *format, ...) PRINTF_LIKE(2, 3);

/* As it stands, line by line, in letters of one width. */
void document_code(struct document *document, const char *text);

/* Links to all headings of level 2, here. Markdown has none: those who show it make their own. */
void document_contents(struct document *document);

/* Headings end with NULL. Cells fill rows from left to right; the last row must be complete at the end. A table without
 * rows is left out. `caption` may be "". */
void document_table_begin(struct document *document, const char *caption, const char *const *headings);
void document_cell(struct document *document, const char *format, ...) PRINTF_LIKE(2, 3);
void document_table_end(struct document *document);

/*
 * The bytes of an SVG or PNG file, copied; `caption` is also what stands in its place for who cannot see it.
 * An SVG is shown as an image: no script in it runs, no names in it meet those of another.
 * Errors: STATUS_BAD_INPUT where it is neither (by its first bytes), STATUS_LIMIT past DOCUMENT_PICTURE_BYTES_MAX,
 * STATUS_NO_MEMORY; of a file also STATUS_IO.
 */
MUST_CHECK enum status document_picture(struct document *document, const char *caption, const void *data, size_t length,
                                        struct error *err);
MUST_CHECK enum status document_picture_file(struct document *document, const char *caption, const char *path,
                                             struct error *err);

/* Is `path` a name for a document? STATUS_BAD_INPUT when its ending says no form. To ask before long work. */
MUST_CHECK enum status document_check_path(const char *path, struct error *err);

/* Atomically; pictures that stand beside it come first, so that it never names one that is not there.
 * Errors: those of document_check_path(); STATUS_NO_MEMORY, STATUS_LIMIT, remembered from before; STATUS_IO. */
MUST_CHECK enum status document_write(const struct document *document, const char *path, struct error *err);

#endif
