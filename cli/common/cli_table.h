/*
 * Aligned columns of text.
 *
 *     struct cli_table table;
 *     cli_table_begin(&table, (const char *[]){"JOB", ">SHARDS", NULL});   ">": to the right
 *     cli_table_cell(&table, "%s", name);
 *     cli_table_cell(&table, "%u", count);
 *     status = cli_table_end(&table, out, err);
 *
 * Cells fill rows. A failed allocation is reported at the end.
 */
#ifndef SPILLWAY_CLI_COMMON_CLI_TABLE_H
#define SPILLWAY_CLI_COMMON_CLI_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/error.h"

enum { CLI_COLUMNS_MAX = 12, CLI_CELL_BYTES = 512 };

struct cli_table {
    const char *const *headings; /* borrowed until the end */
    size_t column_count;
    const char **cells;
    size_t cell_count, cell_capacity;
    struct arena arena;
    struct error failed; /* first failure; callers may set it too */
};

void cli_table_begin(struct cli_table *table, const char *const *headings);
void cli_table_cell(struct cli_table *table, const char *format, ...) PRINTF_LIKE(2, 3);
void cli_table_bytes(struct cli_table *table, uint64_t bytes); /* 0: "-" */

/* Prints and releases the table; without rows prints nothing. */
MUST_CHECK enum status cli_table_end(struct cli_table *table, FILE *out, struct error *err);

/* Calls `seen` for each table that ends on `out`, before its release, with its bytes [from, to) on `out`. NULL ends
 * the watch; there is one at a time (cli/document/cli_document.h). */
typedef void (*cli_table_seen)(void *context, const struct cli_table *table, long from, long to);
void cli_table_watch(FILE *out, cli_table_seen seen, void *context);

/* Returns a preset's name, or the last folder and file of a path, borrowed from `name`. */
const char *cli_network_label(const char *name);

#endif
