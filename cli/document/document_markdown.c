/*
 * Markdown in GitHub's dialect (CommonMark and tables).
 *
 * Markup is escaped everywhere if it can begin anywhere, else only at the beginning of a block, so that "3.5 GiB - 4
 * %" stays readable. Empty lines separate blocks.
 */
#include <string.h>

#include "base/files/file_kind.h"
#include "cli/document/document_nodes.h"

const char *const document_picture_endings[2] = {"svg", "png"};

static void put(struct file_out *file, const char *text)
{
    file_out_write(file, text, strlen(text));
}

static void put_text(struct file_out *file, const char *text)
{
    for (;;) {
        size_t plain = strcspn(text, "\\`*_[]<>|~$&");
        file_out_write(file, text, plain);
        text += plain;
        if (!*text) return;
        if (*text == '&') put(file, "&amp;");
        else if (*text == '<') put(file, "&lt;");
        else if (*text == '>') put(file, "&gt;");
        else file_out_printf(file, "\\%c", *text);
        text++;
    }
}

/* Escapes "- ", "+ ", "1. ", "1) ", "# " and "---" too; four spaces are code. */
static void put_block(struct file_out *file, const char *text)
{
    text += strspn(text, " ");
    size_t digits = strspn(text, "0123456789");
    const char *mark = text + digits;
    bool list = *mark && strchr(digits > 0 ? ".)" : "-+", *mark) && (mark[1] == ' ' || !mark[1]);
    bool line = digits == 0 && *mark && (*mark == '#' || (strchr("-=", *mark) && mark[1] == *mark));
    if (list || line) {
        file_out_write(file, text, digits);
        file_out_printf(file, "\\%c", *mark);
        text = mark + 1;
    }
    put_text(file, text);
}

/* Writes code between fences that are longer than any in the text. */
static void put_code(struct file_out *file, const char *text)
{
    size_t longest = 2;
    for (const char *at = text; (at = strchr(at, '`')) != NULL;) {
        size_t run = strspn(at, "`");
        if (run > longest) longest = run;
        at += run;
    }
    size_t length = strlen(text);
    for (size_t i = 0; i <= longest; i++) put(file, "`");
    file_out_printf(file, "\n%s%s", text, length > 0 && text[length - 1] != '\n' ? "\n" : "");
    for (size_t i = 0; i <= longest; i++) put(file, "`");
    put(file, "\n\n");
}

static void put_cells(struct file_out *file, const struct document_node *table, const char *const *cells)
{
    put(file, "|");
    for (size_t c = 0; c < table->column_count; c++) {
        put(file, " ");
        put_text(file, cells[c]);
        put(file, " |");
    }
    put(file, "\n");
}

static void put_table(struct file_out *file, const struct document_node *table)
{
    if (table->text[0]) {
        put_block(file, table->text);
        put(file, "\n\n");
    }
    put_cells(file, table, table->cells);
    put(file, "|");
    for (size_t c = 0; c < table->column_count; c++) put(file, table->numbers[c] ? " ---: |" : " --- |");
    put(file, "\n");
    for (size_t i = table->column_count; i < table->cell_count; i += table->column_count)
        put_cells(file, table, table->cells + i);
    put(file, "\n");
}

/* Writes a link; other characters become hexadecimal, byte by byte (RFC 3986, section 2.1). */
static void put_link(struct file_out *file, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";
    for (; *text; text++) {
        if (strchr(plain, *text)) file_out_write(file, text, 1);
        else file_out_printf(file, "%%%02X", (unsigned)(unsigned char)*text);
    }
}

static void put_picture(struct file_out *file, const struct document_node *picture, const char *beside, size_t number)
{
    put(file, "![");
    put_text(file, picture->text);
    put(file, "](");
    put_link(file, beside);
    file_out_printf(file, "-%zu.%s)\n\n", number, document_picture_endings[picture->form]);
}

void document_write_markdown(const struct document *document, const char *beside, struct file_out *file)
{
    static const char marks[] = "####";
    size_t pictures = 0;
    put(file, FILE_KIND_PAGE_MARK "\n\n# ");
    put_text(file, document->title);
    put(file, "\n\n");
    for (size_t i = 0; i < document->node_count; i++) {
        const struct document_node *node = &document->nodes[i];
        bool last_item = i + 1 == document->node_count || node[1].kind != DOCUMENT_NODE_ITEM;
        switch (node->kind) {
        case DOCUMENT_NODE_HEADING:
            file_out_printf(file, "%.*s ", (int)node->level, marks);
            put_text(file, node->text);
            put(file, "\n\n");
            break;
        case DOCUMENT_NODE_PARAGRAPH:
            put_block(file, node->text);
            put(file, "\n\n");
            break;
        case DOCUMENT_NODE_ITEM:
            put(file, "- ");
            put_block(file, node->text);
            put(file, last_item ? "\n\n" : "\n");
            break;
        case DOCUMENT_NODE_CODE: put_code(file, node->text); break;
        case DOCUMENT_NODE_CONTENTS: break;
        case DOCUMENT_NODE_TABLE: put_table(file, node); break;
        case DOCUMENT_NODE_PICTURE: put_picture(file, node, beside, ++pictures); break;
        }
    }
}
