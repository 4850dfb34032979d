/*
 * A paper's figure or table as one file.
 *
 * Rows are points; their columns hold parameters and published values. Templates make each row's files and runs. Each
 * series has a simulated value: an expression over the runs' answers. plots/papers/README.md is the manual.
 *
 * A *real* set-up has rows, files, runs and series of a workload for the executor on this machine: simulated values
 * are compared with measured ones.
 */
#ifndef SPILLWAY_CLI_REPRO_FIGURE_H
#define SPILLWAY_CLI_REPRO_FIGURE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/json/json_in.h"
#include "cli/repro/expression.h"

/* Files may come from other people. */
enum { FIGURE_ROWS_MAX = 2000, FIGURE_COLUMNS_MAX = 64, FIGURE_SERIES_MAX = 32, FIGURE_RUNS_MAX = 64,
       FIGURE_FILES_MAX = 64, FIGURE_TEXTS_MAX = 64, FIGURE_NONE = UINT32_MAX };

enum figure_kind { FIGURE_BARS, FIGURE_LINES, FIGURE_TABLE };

struct figure_texts {
    const char *items[FIGURE_TEXTS_MAX];
    uint32_t count;
};

struct figure_column {
    const char *name;
    const char *source, *reading; /* of published values: source, and how they were read; NULL: parameters */
    bool named;                   /* in row names, tables and pictures */
};

struct figure_file {
    const char *name;
    const json_t *content; /* an object: template of the text; a string: of a path */
};

struct figure_run {
    const char *name;
    const json_t *commands; /* an array of arguments, or of such arrays */
    bool chained;           /* `commands` has arrays */
};

struct figure_series {
    const char *name, *label;
    uint32_t published; /* column; or FIGURE_NONE */
    const struct expression *simulated;
    const struct expression *measured; /* of real set-ups; may be NULL */
    const json_t *object; /* for messages */
    bool counted;         /* for accuracy */
    bool shown;           /* in table and picture */
    bool absolute;        /* errors are differences, in its unit */
};

struct figure_claim {
    const char *text;
    const struct expression *holds;
    const json_t *object;
};

struct figure_accuracy {
    bool known;
    double within; /* the report counts points with at most this error; default 0.1 */
    double mean, worst; /* limits of errors; 0: none */
};

/* For a real set-up. */
struct figure_real {
    bool offered;      /* in the file */
    bool read;         /* this figure is one; then valid: */
    uint32_t steps;    /* minibatches, unless given */
    double host_bytes; /* that must be free */
};

struct figure {
    struct arena arena;
    struct json_input *input;
    const char *path;
    const char *id, *title, *figure;
    struct {
        const char *title, *authors, *version, *id;
    } paper;
    struct {
        const char *name, *unit;
        bool log;
    } quantity;
    struct {
        uint32_t column;
        const char *name, *unit;
        bool log;
    } x;
    enum figure_kind kind;
    struct figure_texts set_up, assumptions, not_modelled, notes;
    struct figure_texts changes; /* cli/repro/figure_change.h */
    struct figure_column columns[FIGURE_COLUMNS_MAX];
    uint32_t column_count;
    struct expression_value *cells; /* row_count rows of column_count: numbers, texts, missing */
    uint32_t row_count;
    struct figure_file files[FIGURE_FILES_MAX];
    uint32_t file_count;
    struct figure_run runs[FIGURE_RUNS_MAX];
    uint32_t run_count;
    struct figure_series series[FIGURE_SERIES_MAX];
    uint32_t series_count;
    struct figure_claim claims[FIGURE_TEXTS_MAX];
    uint32_t claim_count;
    struct figure_accuracy accuracy;
    struct figure_real real;
    const json_t *body; /* the root, or its "real" */
};

/*
 * Checks everything that needs no run: names in templates and expressions, lengths of rows, published numbers. The
 * caller frees it with figure_destroy(). Errors: STATUS_BAD_INPUT with the place, STATUS_IO, STATUS_LIMIT.
 */
MUST_CHECK enum status figure_read(const char *path, struct figure **out, struct error *err);

/* Reads from memory; relative paths start at the folder of `name`. */
MUST_CHECK enum status figure_parse(const char *name, const char *text, size_t length, struct figure **out,
                                    struct error *err);

/*
 * Read the real set-up, whose rows also get a parameter "steps". Errors: also STATUS_INFEASIBLE for a figure without
 * one.
 */
MUST_CHECK enum status figure_read_real(const char *path, struct figure **out, struct error *err);
MUST_CHECK enum status figure_parse_real(const char *name, const char *text, size_t length, struct figure **out,
                                         struct error *err);

void figure_destroy(struct figure *figure); /* NULL is fine */

static inline const struct expression_value *figure_cell(const struct figure *figure, uint32_t row, uint32_t column)
{
    return &figure->cells[(size_t)row * figure->column_count + column];
}

/* Lists names for expressions. Templates: columns; series: also runs and earlier series; claims: columns and
 * series. */
enum { FIGURE_NAMES_MAX = FIGURE_COLUMNS_MAX + FIGURE_RUNS_MAX + FIGURE_SERIES_MAX };
uint32_t figure_names(const struct figure *figure, bool runs, uint32_t series_count,
                      const char *names[FIGURE_NAMES_MAX]);

#endif
