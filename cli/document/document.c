/*
 * Texts are cleaned when they are added: both writers get UTF-8 without control characters, and only escape markup.
 * Formatted texts are measured first.
 *
 * Nodes are one array, a table's cells another, headings first. Texts and pictures live in one arena.
 */
#include "cli/document/document.h"

#include <assert.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/files/outputs.h"
#include "base/size.h"
#include "base/try.h"
#include "cli/document/document_nodes.h"

enum { NODES_MAX = 1 << 20, CELLS_MAX = 1 << 22 };

/* --- text that is safe to write -------------------------------------------------------------- */

static const char replacement[] = "\xEF\xBF\xBD"; /* U+FFFD */

/* Returns 0 for invalid UTF-8 (RFC 3629: no overlong forms, no surrogates, at most U+10FFFF). */
static size_t sequence_length(const unsigned char *text)
{
    if (text[0] < 0x80) return 1;
    size_t length = text[0] >= 0xC2 && text[0] <= 0xDF   ? 2
                    : (text[0] & 0xF0) == 0xE0           ? 3
                    : text[0] >= 0xF0 && text[0] <= 0xF4 ? 4
                                                         : 0;
    for (size_t i = 1; i < length; i++)
        if ((text[i] & 0xC0) != 0x80) return 0; /* also at the final NUL */
    if ((text[0] == 0xE0 && text[1] < 0xA0) || (text[0] == 0xED && text[1] > 0x9F) ||
        (text[0] == 0xF0 && text[1] < 0x90) || (text[0] == 0xF4 && text[1] > 0x8F))
        return 0;
    return length;
}

/* Returns true for U+0000 to U+001F and U+007F to U+009F, which HTML forbids and terminals interpret. */
static bool is_control(const unsigned char *text)
{
    return text[0] < 0x20 || text[0] == 0x7F || (text[0] == 0xC2 && text[1] < 0xA0);
}

/* Cleans a text. Line ends become spaces, or stay with `lines`. `out` has room for three bytes per byte. */
static void clean(const char *text, bool lines, char *out)
{
    const unsigned char *at = (const unsigned char *)text;
    while (*at) {
        size_t length = sequence_length(at);
        if (*at == '\n' || *at == '\t') {
            *out++ = *at == '\n' && lines ? '\n' : ' ';
            at++;
        } else if (length == 0 || is_control(at)) {
            memcpy(out, replacement, 3);
            out += 3;
            at += length > 0 ? length : 1;
        } else {
            memcpy(out, at, length);
            out += length;
            at += length;
        }
    }
    *out = '\0';
}

/* Returns a clean copy of the document's; "" after a failure. */
static const char *keep(struct document *document, const char *text, bool lines)
{
    char *copy = alloc_resize(NULL, 3 * strlen(text) + 1);
    const char *kept = "";
    if (copy) {
        clean(text, lines, copy);
        (void)!arena_string(&document->arena, copy, &kept, &document->failed);
    } else {
        error_memory(&document->failed, "a document", strlen(text));
    }
    free(copy);
    return kept;
}

static const char *keep_printed(struct document *document, const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    assert(length >= 0);
    const char *kept = "";
    char *text = alloc_resize(NULL, (size_t)length + 1);
    if (text) {
        vsnprintf(text, (size_t)length + 1, format, again);
        kept = keep(document, text, false);
    } else {
        error_memory(&document->failed, "a document", (unsigned long long)length);
    }
    va_end(again);
    free(text);
    return kept;
}

/* --- adding nodes ---------------------------------------------------------------------------- */

struct document *document_create(const char *title)
{
    struct document *document = alloc_zeroed(1, sizeof *document);
    if (document) document->title = keep(document, title, false);
    return document;
}

void document_destroy(struct document *document)
{
    if (!document) return;
    for (size_t i = 0; i < document->node_count; i++) free(document->nodes[i].cells);
    free(document->nodes);
    arena_release(&document->arena);
    free(document);
}

/* Returns NULL after a failure. */
static struct document_node *add(struct document *document, enum document_node_kind kind, const char *text)
{
    assert(!document->in_table);
    if (document->failed.status != STATUS_OK ||
        array_reserve(&document->nodes, &document->node_capacity, document->node_count, sizeof *document->nodes,
                      NODES_MAX, "parts of a document", &document->failed) != STATUS_OK)
        return NULL;
    struct document_node *node = &document->nodes[document->node_count++];
    *node = (struct document_node){.kind = kind, .text = text};
    return node;
}

void document_heading(struct document *document, unsigned level, const char *format, ...)
{
    assert(level >= 2);
    assert(level <= DOCUMENT_LEVEL_MAX);
    va_list arguments;
    va_start(arguments, format);
    struct document_node *node = add(document, DOCUMENT_NODE_HEADING, keep_printed(document, format, arguments));
    va_end(arguments);
    if (node) node->level = level;
}

void document_paragraph(struct document *document, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add(document, DOCUMENT_NODE_PARAGRAPH, keep_printed(document, format, arguments));
    va_end(arguments);
}

void document_item(struct document *document, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add(document, DOCUMENT_NODE_ITEM, keep_printed(document, format, arguments));
    va_end(arguments);
}

void document_code(struct document *document, const char *text)
{
    add(document, DOCUMENT_NODE_CODE, keep(document, text, true));
}

void document_contents(struct document *document)
{
    add(document, DOCUMENT_NODE_CONTENTS, "");
}

/* --- tables ---------------------------------------------------------------------------------- */

static void add_cell(struct document *document, const char *text)
{
    if (document->failed.status != STATUS_OK) return;
    struct document_node *table = &document->nodes[document->node_count - 1];
    if (array_reserve(&table->cells, &table->cell_capacity, table->cell_count, sizeof *table->cells, CELLS_MAX,
                      "table cells", &document->failed) == STATUS_OK)
        table->cells[table->cell_count++] = text;
}

void document_table_begin(struct document *document, const char *caption, const char *const *headings)
{
    size_t columns = 0;
    while (headings[columns]) columns++;
    assert(columns > 0);
    assert(columns <= DOCUMENT_COLUMNS_MAX);
    struct document_node *table = add(document, DOCUMENT_NODE_TABLE, keep(document, caption, false));
    document->in_table = true;
    if (!table) return;
    if (ARENA_NEW(&document->arena, columns, table->numbers, &document->failed) != STATUS_OK) return;
    table->column_count = columns;
    for (size_t c = 0; c < columns; c++) {
        table->numbers[c] = headings[c][0] == '>';
        add_cell(document, keep(document, headings[c] + table->numbers[c], false));
    }
}

void document_cell(struct document *document, const char *format, ...)
{
    assert(document->in_table);
    va_list arguments;
    va_start(arguments, format);
    add_cell(document, keep_printed(document, format, arguments));
    va_end(arguments);
}

void document_table_end(struct document *document)
{
    assert(document->in_table);
    document->in_table = false;
    if (document->failed.status != STATUS_OK) return;
    struct document_node *table = &document->nodes[document->node_count - 1];
    assert(table->cell_count % table->column_count == 0);
    if (table->cell_count > table->column_count) return;
    free(table->cells);
    document->node_count--;
}

/* --- pictures -------------------------------------------------------------------------------- */

static bool find_form(const unsigned char *data, size_t length, enum document_picture_form *out)
{
    static const unsigned char png[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
    static const char svg[] = "<svg";
    if (length >= sizeof png && memcmp(data, png, sizeof png) == 0) {
        *out = DOCUMENT_PICTURE_PNG;
        return true;
    }
    /* skips a declaration and comments */
    size_t looked_at = length < 4096 ? length : 4096;
    *out = DOCUMENT_PICTURE_SVG;
    return looked_at > 0 && data[0] == '<' && memmem(data, looked_at, svg, strlen(svg)) != NULL;
}

enum status document_picture(struct document *document, const char *caption, const void *data, size_t length,
                             struct error *err)
{
    enum document_picture_form form;
    unsigned char *copy = NULL;
    if (length > DOCUMENT_PICTURE_BYTES_MAX)
        return error_set(err, STATUS_LIMIT, "a picture is too large (limit is %d bytes)", DOCUMENT_PICTURE_BYTES_MAX);
    if (!find_form(data, length, &form))
        return error_set(err, STATUS_BAD_INPUT, "a picture has an unknown format (expected SVG or PNG)");
    TRY(ARENA_NEW(&document->arena, length, copy, err));
    memcpy(copy, data, length);
    struct document_node *node = add(document, DOCUMENT_NODE_PICTURE, keep(document, caption, false));
    if (!node) return STATUS_OK; /* the failure is remembered */
    node->form = form;
    node->data = copy;
    node->length = length;
    return STATUS_OK;
}

enum status document_picture_file(struct document *document, const char *caption, const char *path, struct error *err)
{
    char *data = NULL;
    size_t length = 0;
    TRY(file_read(path, DOCUMENT_PICTURE_BYTES_MAX, &data, &length, err));
    enum status status = document_picture(document, caption, data, length, err);
    if (status != STATUS_OK) error_add(err, "'%s'", path);
    free(data);
    return status;
}

/* --- writing --------------------------------------------------------------------------------- */

/* Returns the ending with its dot, or NULL. */
static const char *path_ending(const char *path)
{
    const char *name = strrchr(path, '/');
    name = name ? name + 1 : path;
    const char *dot = strrchr(name, '.');
    return dot && dot > name ? dot : NULL;
}

static bool is_html(const char *ending)
{
    return strcmp(ending, ".html") == 0 || strcmp(ending, ".htm") == 0;
}

/* Writes "out/NAME-1.svg" for the first picture of "out/NAME.md". */
static enum status name_picture(const char *path, size_t number, uint32_t form, char beside[PATH_MAX],
                                struct error *err)
{
    int length = snprintf(beside, PATH_MAX, "%.*s-%zu.%s", (int)(path_ending(path) - path), path, number,
                          document_picture_endings[form]);
    if (length >= 0 && length < PATH_MAX) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT, "the name of a picture for '%s' is too long", path);
}

enum status document_check_path(const char *path, size_t picture_max, struct error *err)
{
    const char *ending = path_ending(path);
    char beside[PATH_MAX];
    if (!ending || (!is_html(ending) && strcmp(ending, ".md") != 0))
        return error_set(err, STATUS_BAD_INPUT,
                         "'%s' is not the name of a report (expected a name that ends in .html or .md)", path);
    if (is_html(ending)) return STATUS_OK;
    for (size_t number = 1; number <= picture_max; number++)
        for (uint32_t form = 0; form < ARRAY_COUNT(document_picture_endings); form++) {
            TRY(name_picture(path, number, form, beside, err));
            TRY(outputs_declare(beside, FILE_KIND_PICTURE, "the report's picture", err));
        }
    return STATUS_OK;
}

/* Writes the pictures of a page in Markdown. */
static enum status write_pictures(const struct document *document, const char *path, struct error *err)
{
    size_t number = 0;
    for (size_t i = 0; i < document->node_count; i++) {
        const struct document_node *node = &document->nodes[i];
        if (node->kind != DOCUMENT_NODE_PICTURE) continue;
        char beside[PATH_MAX];
        struct file_out *file;
        TRY(name_picture(path, ++number, node->form, beside, err));
        TRY(file_out_create(beside, &file, err));
        file_out_write(file, node->data, node->length);
        TRY(file_out_commit(file, err));
    }
    return STATUS_OK;
}

enum status document_write(const struct document *document, const char *path, struct error *err)
{
    assert(!document->in_table);
    if (document->failed.status != STATUS_OK)
        return error_set(err, document->failed.status, "%s", document->failed.text);
    TRY(document_check_path(path, 0, err));
    const char *ending = path_ending(path), *folder_end = strrchr(path, '/');
    const char *name = folder_end ? folder_end + 1 : path;
    char beside[PATH_MAX];
    snprintf(beside, sizeof beside, "%.*s", (int)(ending - name), name);
    bool html = is_html(ending);
    if (!html) TRY(write_pictures(document, path, err));
    struct file_out *file;
    TRY(file_out_create(path, &file, err));
    if (html) document_write_html(document, file);
    else document_write_markdown(document, beside, file);
    return file_out_commit(file, err);
}
