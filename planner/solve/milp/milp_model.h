/* What a struct milp is made of, for the files that implement planner/solve/milp/milp.h. */
#ifndef SPILLWAY_PLANNER_MILP_MODEL_H
#define SPILLWAY_PLANNER_MILP_MODEL_H

#include "planner/solve/milp/milp.h"

struct milp_column {
    double low, high, cost;
    bool whole;
    char name[MILP_NAME_BYTES];
};

struct milp_row {
    double low, high;
    size_t first_term;
    char name[MILP_NAME_BYTES];
};

struct milp {
    char name[MILP_NAME_BYTES];
    struct milp_column *columns;
    struct milp_row *rows;
    struct milp_term *terms;
    size_t column_count, row_count, term_count; /* terms past the last row's are the next row's */
    size_t column_capacity, row_capacity, term_capacity;
    size_t rows_end; /* terms that belong to rows */
    struct error err;
};

/* The terms of a row: [first, end). */
static inline size_t milp_row_end(const struct milp *m, size_t row)
{
    return row + 1 < m->row_count ? m->rows[row + 1].first_term : m->rows_end;
}

/* Solve in this process, writing what becomes known into `pipe`: see milp_solve.c. Never returns. */
_Noreturn void milp_glpk_child(const struct milp *milp, const struct milp_options *options, int pipe);

/* As milp_write_lp() and milp_write_mps(), with GLPK, in a child. */
enum milp_file { MILP_LP, MILP_MPS };
MUST_CHECK enum status milp_glpk_write(const struct milp *milp, enum milp_file kind, const char *path,
                                       struct error *err);

/* What the child reports, each behind the other; values of x follow REPORT_SOLUTION, those of all rows
 * REPORT_DUALS, a byte for each listed column REPORT_SETTING. */
enum milp_report_kind {
    REPORT_BOUND,
    REPORT_SOLUTION,
    REPORT_DUALS,
    REPORT_SETTING,
    REPORT_END,
    REPORT_FAILED
};
struct milp_report {
    enum milp_report_kind kind;
    enum milp_status status;
    double bound; /* of REPORT_SETTING: its least objective */
    uint64_t nodes;
    char text[120]; /* of REPORT_FAILED */
};

/* Run another program on the model: see milp_program.c. */
MUST_CHECK enum status milp_program_solve(const struct milp *milp, const struct milp_options *options,
                                          struct milp_result *result, struct error *err);

/* Take x for the result when it is a solution and better than what was there; false when it is none. */
bool milp_result_take(const struct milp *milp, const double *x, struct milp_result *result,
                      struct error *err);

#endif
