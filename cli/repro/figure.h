/*
 * A figure or a table of a paper, as one file: what was published, what to run, what to compare.
 *
 * Rows are the points of the figure. A row's columns hold parameters and published values; for each row the
 * files and runs are made from templates, and each series has one simulated value, an expression over what the
 * runs answered. plots/papers/README.md is the format's manual, with an example of every key.
 *
 * A figure may have a *real* set-up as well: rows, files, runs and series of a workload so small that the executor of
 * this machine carries it out. Its series have a measured value beside the simulated one, and it is that which the
 * simulated value is held against.
 */
#ifndef SPILLWAY_REPRO_FIGURE_H
#define SPILLWAY_REPRO_FIGURE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/json/json_in.h"
#include "cli/repro/expression.h"

/* More make no figure; files of other people are read too. */
enum { FIGURE_ROWS_MAX = 2000, FIGURE_COLUMNS_MAX = 64, FIGURE_SERIES_MAX = 32, FIGURE_RUNS_MAX = 64,
       FIGURE_FILES_MAX = 64, FIGURE_TEXTS_MAX = 64, FIGURE_NONE = UINT32_MAX };

enum figure_kind { FIGURE_BARS, FIGURE_LINES, FIGURE_TABLE };

struct figure_texts {
    const char *items[FIGURE_TEXTS_MAX];
    uint32_t count;
};

struct figure_column {
    const char *name;
    const char *source, *reading; /* of published values; NULL: parameters */
    bool named;                   /* rows are called by it, in tables and pictures */
};

struct figure_file {
    const char *name;
    const json_t *content; /* an object: a template of its text; a string: a template of a path */
};

struct figure_run {
    const char *name;
    const json_t *commands; /* an array of arguments, or an array of such arrays */
    bool chained;           /* the latter */
};

struct figure_series {
    const char *name, *label;
    uint32_t published; /* column; FIGURE_NONE: ours alone */
    const struct expression *simulated;
    const struct expression *measured; /* of real set-ups; NULL: nothing is */
    const json_t *object; /* for messages */
    bool counted;         /* its points count for accuracy */
    bool shown;           /* in table and picture */
    bool absolute;        /* errors are differences, in the quantity's unit */
};

struct figure_claim {
    const char *text;
    const struct expression *holds;
    const json_t *object;
};

struct figure_accuracy {
    bool known;
    double within; /* how many points are within this is told; default 0.1 */
    double mean, worst; /* marks; 0: none */
};

/* What a real set-up asks of the machine. */
struct figure_real {
    bool offered;      /* the file has one */
    bool read;         /* and this is it: */
    uint32_t steps;    /* minibatches, unless somebody says otherwise */
    double host_bytes; /* memory that must be free */
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
    struct figure_texts changes; /* made since it was read: cli/repro/figure_change.h */
    struct figure_column columns[FIGURE_COLUMNS_MAX];
    uint32_t column_count;
    struct value *cells; /* row_count rows of column_count values: numbers, texts, missing */
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
    const json_t *body; /* the object with columns, rows, files, runs, series: the root, or its "real" */
};

/*
 * Read a figure and check all that can be without running: names in templates and expressions, lengths of
 * rows, published values that are numbers. The caller frees it with figure_destroy().
 * Errors: STATUS_BAD_INPUT with the place, STATUS_IO, STATUS_LIMIT, STATUS_NO_MEMORY.
 */
MUST_CHECK enum status figure_read(const char *path, struct figure **out, struct error *err);

/* The same from memory; files that it names are looked for beside `name`. */
MUST_CHECK enum status figure_parse(const char *name, const char *text, size_t length, struct figure **out,
                                    struct error *err);

/*
 * The same of its real set-up, which has a parameter "steps" in every row beside its own columns. Errors: also
 * STATUS_INFEASIBLE for a figure without one.
 */
MUST_CHECK enum status figure_read_real(const char *path, struct figure **out, struct error *err);
MUST_CHECK enum status figure_parse_real(const char *name, const char *text, size_t length, struct figure **out,
                                         struct error *err);

void figure_destroy(struct figure *figure); /* NULL is fine */

static inline const struct value *figure_cell(const struct figure *figure, uint32_t row, uint32_t column)
{
    return &figure->cells[(size_t)row * figure->column_count + column];
}

/* Names that templates know are its columns; series' expressions also runs and the series before them; claims
 * columns and series. */
enum { FIGURE_NAMES_MAX = FIGURE_COLUMNS_MAX + FIGURE_RUNS_MAX + FIGURE_SERIES_MAX };
uint32_t figure_names(const struct figure *figure, bool runs, uint32_t series_count,
                      const char *names[FIGURE_NAMES_MAX]);

#endif
