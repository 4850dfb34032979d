/*
 * A table is kept until its end, because column widths depend on all cells. Two spaces separate columns; lines have no
 * trailing spaces. Widths count characters of UTF-8; a wide character shifts its row. Exact widths would need a
 * locale.
 */
#include "cli/common/cli_table.h"

#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/quantity.h"

enum { CELLS_MAX = 1 << 20 };

static struct {
    FILE *out;
    cli_table_seen seen;
    void *context;
} watched;

void cli_table_watch(FILE *out, cli_table_seen seen, void *context)
{
    watched.out = out;
    watched.seen = seen;
    watched.context = context;
}

void cli_table_begin(struct cli_table *table, const char *const *headings)
{
    *table = (struct cli_table){.headings = headings};
    while (headings[table->column_count]) table->column_count++;
    assert(table->column_count > 0);
    assert(table->column_count <= CLI_COLUMNS_MAX);
}

void cli_table_cell(struct cli_table *table, const char *format, ...)
{
    if (table->failed.status != STATUS_OK) return;
    char text[CLI_CELL_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (array_reserve(&table->cells, &table->cell_capacity, table->cell_count,
                      sizeof *table->cells, CELLS_MAX, "table cells", &table->failed) != STATUS_OK)
        return;
    const char *copy = NULL;
    if (arena_string(&table->arena, text, &copy, &table->failed) != STATUS_OK) return;
    table->cells[table->cell_count++] = copy;
}

void cli_table_bytes(struct cli_table *table, uint64_t bytes)
{
    char text[QUANTITY_TEXT_BYTES];
    cli_table_cell(table, "%s", bytes == 0 ? "-" : quantity_text((double)bytes, DIMENSION_BYTES, text));
}

/* Counts UTF-8 characters. */
static size_t width_of(const char *text)
{
    size_t width = 0;
    for (; *text; text++) width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

/* Prints spaces only before further text. */
static void print_row(FILE *out, const struct cli_table *table, const char *const *cells,
                      const size_t *widths)
{
    size_t owed = 0;
    for (size_t i = 0; i < table->column_count; i++) {
        size_t length = width_of(cells[i]), rest = widths[i] - length;
        bool right = table->headings[i][0] == '>';
        if (right) owed += rest;
        if (length > 0) {
            fprintf(out, "%*s%s", (int)owed, "", cells[i]);
            owed = 0;
        }
        if (!right) owed += rest;
        owed += 2;
    }
    fputc('\n', out);
}

static void print_table(FILE *out, const struct cli_table *table)
{
    const char *titles[CLI_COLUMNS_MAX];
    size_t widths[CLI_COLUMNS_MAX], columns = table->column_count;
    for (size_t i = 0; i < columns; i++) {
        titles[i] = table->headings[i] + (table->headings[i][0] == '>');
        widths[i] = width_of(titles[i]);
    }
    for (size_t i = 0; i < table->cell_count; i++) {
        size_t width = width_of(table->cells[i]);
        if (width > widths[i % columns]) widths[i % columns] = width;
    }
    print_row(out, table, titles, widths);
    for (size_t i = 0; i < table->cell_count; i += columns) print_row(out, table, table->cells + i, widths);
}

enum status cli_table_end(struct cli_table *table, FILE *out, struct error *err)
{
    enum status status = table->failed.status;
    if (status != STATUS_OK) {
        error_set(err, status, "%s", table->failed.text);
    } else if (table->cell_count > 0) {
        assert(table->cell_count % table->column_count == 0);
        bool seen = out == watched.out;
        long from = seen ? ftell(out) : 0;
        print_table(out, table);
        if (seen) watched.seen(watched.context, table, from, ftell(out));
    }
    free(table->cells);
    arena_release(&table->arena);
    *table = (struct cli_table){0};
    return status;
}

const char *cli_network_label(const char *name)
{
    const char *cut = strrchr(name, '/');
    while (cut && cut > name && cut[-1] != '/') cut--;
    return cut ? cut : name;
}
