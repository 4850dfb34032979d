/* The contents of a struct milp, for the files that implement planner/solve/milp/milp.h. */
#ifndef SPILLWAY_PLANNER_SOLVE_MILP_MILP_MODEL_H
#define SPILLWAY_PLANNER_SOLVE_MILP_MILP_MODEL_H

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
    size_t column_count, row_count, term_count; /* terms after the last row belong to the next row */
    size_t column_capacity, row_capacity, term_capacity;
    size_t rows_end; /* number of terms that belong to rows */
    struct error err;
};

/* Returns the end of the row's range of terms, [first, end). */
static inline size_t milp_row_end(const struct milp *m, size_t row)
{
    return row + 1 < m->row_count ? m->rows[row + 1].first_term : m->rows_end;
}

/* Solves in this process and writes results into `pipe`: see milp_solve.c. Never returns. */
_Noreturn void milp_glpk_child(const struct milp *milp, const struct milp_options *options, int pipe);

/* Writes the program as milp_write_lp() and milp_write_mps() do, with GLPK, in a child process. */
enum milp_file { MILP_LP, MILP_MPS };
MUST_CHECK enum status milp_glpk_write(const struct milp *milp, enum milp_file kind, const char *path,
                                       struct error *err);

/* The child's reports, one after the other. Values of x follow MILP_REPORT_SOLUTION, values of all rows
 * MILP_REPORT_DUALS, a byte for each listed column MILP_REPORT_SETTING. */
enum milp_report_kind {
    MILP_REPORT_BOUND,
    MILP_REPORT_SOLUTION,
    MILP_REPORT_DUALS,
    MILP_REPORT_SETTING,
    MILP_REPORT_END,
    MILP_REPORT_FAILED
};
struct milp_report {
    enum milp_report_kind kind;
    enum milp_status status;
    double bound; /* MILP_REPORT_SETTING: its least objective */
    uint64_t nodes;
    char text[120]; /* MILP_REPORT_FAILED: the reason */
};

/* Runs another program on the model: see milp_program.c. */
MUST_CHECK enum status milp_program_solve(const struct milp *milp, const struct milp_options *options,
                                          struct milp_result *result, struct error *err);

/* Takes x into the result when it is a solution and better than the one there. Returns false when it is no solution. */
bool milp_result_take(const struct milp *milp, const double *x, struct milp_result *result,
                      struct error *err);

#endif
