/*
 * A Content-Security-Policy allows only the page's own images and style sheet. Pictures are data URIs in <img> with a
 * white background; on a dark screen they keep their colours. A wide table scrolls; on paper its head is repeated.
 *
 * Only put_text() writes text, with escapes, also in attributes.
 */
#include <stdint.h>
#include <string.h>

#include "cli/document/document_nodes.h"

static const char style[] =
    ":root{color-scheme:light dark;--ink:#1c1e21;--paper:#fff;--faint:#6a7076;--line:#d5d9dd;--shade:#f4f6f8}\n"
    "@media(prefers-color-scheme:dark){"
    ":root{--ink:#e4e6e9;--paper:#16181b;--faint:#9aa1a8;--line:#3a3f45;--shade:#202327}}\n"
    "body{margin:0 auto;max-width:76rem;padding:1.5rem;color:var(--ink);background:var(--paper);"
    "font:16px/1.5 system-ui,sans-serif}\n"
    "h1,h2,h3,h4{line-height:1.25;margin:1.6em 0 .5em}h1{margin-top:0}\n"
    "h2{border-bottom:1px solid var(--line);padding-bottom:.2em}\n"
    ".wide{overflow-x:auto;margin:1em 0}\n"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums}\n"
    "caption{text-align:left;color:var(--faint);padding-bottom:.3em}\n"
    "th,td{padding:.25em .8em;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}\n"
    "th{background:var(--shade);font-weight:600}.n{text-align:right;white-space:nowrap}\n"
    "pre{background:var(--shade);padding:.8em;overflow-x:auto;font:13px/1.45 ui-monospace,monospace}\n"
    "figure{margin:1.2em 0}figcaption{color:var(--faint)}\n"
    "img{max-width:100%;height:auto;background:#fff;border:1px solid var(--line)}\n"
    "a{color:inherit}\n"
    "@media print{body{max-width:none;padding:0;font-size:10pt}.wide{overflow:visible}thead{display:table-header-group}"
    "tr,figure{break-inside:avoid}h2,h3,h4{break-after:avoid}}\n";

static void put(struct file_out *file, const char *text)
{
    file_out_write(file, text, strlen(text));
}

static void put_text(struct file_out *file, const char *text)
{
    static const char special[] = "&<>\"'";
    static const char *const escaped[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    while (*text) {
        size_t plain = strcspn(text, special);
        file_out_write(file, text, plain);
        text += plain;
        if (*text) put(file, escaped[strchr(special, *text++) - special]);
    }
}

/* Writes base64 (RFC 4648, section 4). */
static void put_base64(struct file_out *file, const unsigned char *data, size_t length)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < length; i += 3) {
        size_t left = length - i;
        uint32_t group = (uint32_t)data[i] << 16;
        if (left > 1) group |= (uint32_t)data[i + 1] << 8;
        if (left > 2) group |= data[i + 2];
        char four[4] = {digits[group >> 18], digits[group >> 12 & 63], left > 1 ? digits[group >> 6 & 63] : '=',
                        left > 2 ? digits[group & 63] : '='};
        file_out_write(file, four, sizeof four);
    }
}

static void put_cells(struct file_out *file, const struct document_node *table, const char *const *cells,
                      const char *tag)
{
    put(file, "<tr>");
    for (size_t c = 0; c < table->column_count; c++) {
        file_out_printf(file, "<%s%s>", tag, table->numbers[c] ? " class=\"n\"" : "");
        put_text(file, cells[c]);
        file_out_printf(file, "</%s>", tag);
    }
    put(file, "</tr>\n");
}

static void put_table(struct file_out *file, const struct document_node *table)
{
    put(file, "<div class=\"wide\"><table>\n");
    if (table->text[0]) {
        put(file, "<caption>");
        put_text(file, table->text);
        put(file, "</caption>\n");
    }
    put(file, "<thead>");
    put_cells(file, table, table->cells, "th");
    put(file, "</thead>\n<tbody>\n");
    for (size_t i = table->column_count; i < table->cell_count; i += table->column_count)
        put_cells(file, table, table->cells + i, "td");
    put(file, "</tbody>\n</table></div>\n");
}

static void put_picture(struct file_out *file, const struct document_node *picture)
{
    static const char *const types[] = {"svg+xml", "png"};
    put(file, "<figure><img alt=\"");
    put_text(file, picture->text);
    file_out_printf(file, "\" src=\"data:image/%s;base64,", types[picture->form]);
    put_base64(file, picture->data, picture->length);
    put(file, "\">\n<figcaption>");
    put_text(file, picture->text);
    put(file, "</figcaption></figure>\n");
}

static void put_contents(struct file_out *file, const struct document *document)
{
    put(file, "<nav><ul>\n");
    for (size_t i = 0; i < document->node_count; i++) {
        if (document->nodes[i].kind != DOCUMENT_NODE_HEADING || document->nodes[i].level != 2) continue;
        file_out_printf(file, "<li><a href=\"#s%zu\">", i);
        put_text(file, document->nodes[i].text);
        put(file, "</a></li>\n");
    }
    put(file, "</ul></nav>\n");
}

static void put_element(struct file_out *file, const char *tag, const char *text)
{
    file_out_printf(file, "<%s>", tag);
    put_text(file, text);
    file_out_printf(file, "</%s>\n", tag);
}

static void put_node(struct file_out *file, const struct document *document, size_t index)
{
    const struct document_node *node = &document->nodes[index];
    bool first = index == 0 || node[-1].kind != DOCUMENT_NODE_ITEM;
    bool last = index + 1 == document->node_count || node[1].kind != DOCUMENT_NODE_ITEM;
    switch (node->kind) {
    case DOCUMENT_NODE_HEADING:
        file_out_printf(file, "<h%u id=\"s%zu\">", node->level, index);
        put_text(file, node->text);
        file_out_printf(file, "</h%u>\n", node->level);
        break;
    case DOCUMENT_NODE_PARAGRAPH: put_element(file, "p", node->text); break;
    case DOCUMENT_NODE_ITEM:
        if (first) put(file, "<ul>\n");
        put_element(file, "li", node->text);
        if (last) put(file, "</ul>\n");
        break;
    case DOCUMENT_NODE_CODE:
        /* HTML ignores a line end after <pre> */
        put(file, "<pre>\n");
        put_text(file, node->text);
        put(file, "</pre>\n");
        break;
    case DOCUMENT_NODE_CONTENTS: put_contents(file, document); break;
    case DOCUMENT_NODE_TABLE: put_table(file, node); break;
    case DOCUMENT_NODE_PICTURE: put_picture(file, node); break;
    }
}

void document_write_html(const struct document *document, struct file_out *file)
{
    put(file, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
              "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; "
              "style-src 'unsafe-inline'\">\n"
              "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
              "<meta name=\"generator\" content=\"spillway " SPILLWAY_VERSION "\">\n");
    put_element(file, "title", document->title);
    put(file, "<style>\n");
    put(file, style);
    put(file, "</style>\n</head>\n<body>\n");
    put_element(file, "h1", document->title);
    for (size_t i = 0; i < document->node_count; i++) put_node(file, document, i);
    put(file, "</body>\n</html>\n");
}
