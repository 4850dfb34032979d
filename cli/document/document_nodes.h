/* A document's contents, for document_html.c and document_markdown.c. */
#ifndef SPILLWAY_CLI_DOCUMENT_DOCUMENT_NODES_H
#define SPILLWAY_CLI_DOCUMENT_DOCUMENT_NODES_H

#include <stddef.h>

#include "base/arena.h"
#include "base/files/file.h"
#include "cli/document/document.h"

enum document_node_kind {
    DOCUMENT_NODE_HEADING,
    DOCUMENT_NODE_PARAGRAPH,
    DOCUMENT_NODE_ITEM,
    DOCUMENT_NODE_CODE,
    DOCUMENT_NODE_CONTENTS,
    DOCUMENT_NODE_TABLE,
    DOCUMENT_NODE_PICTURE
};
enum document_picture_form { DOCUMENT_PICTURE_SVG, DOCUMENT_PICTURE_PNG };

struct document_node {
    enum document_node_kind kind;
    unsigned level;          /* of a heading */
    const char *text;        /* or caption */
    /* tables: column_count headings, then cells */
    const char **cells;
    size_t cell_count, cell_capacity, column_count;
    bool *numbers;           /* by column: aligned to the right */
    /* pictures */
    enum document_picture_form form;
    const unsigned char *data;
    size_t length;
};

struct document {
    const char *title;
    struct document_node *nodes;
    size_t node_count, node_capacity;
    bool in_table;
    struct arena arena;
    struct error failed; /* the first failure */
};

extern const char *const document_picture_endings[2]; /* "svg", "png" */

void document_write_html(const struct document *document, struct file_out *file);

/* Names of pictures begin with `beside`, the file's name without folder and ending. */
void document_write_markdown(const struct document *document, const char *beside, struct file_out *file);

#endif
