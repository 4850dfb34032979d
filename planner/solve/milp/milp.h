/*
 * Mixed-integer programs: built row by row, written as files, solved by GLPK or another program.
 *
 * Every solver runs in a child process of its own. It may then run past its limit, abort on misuse
 * or end the memory: this process keeps the clock, kills it, and has every incumbent that it had
 * reported by then. Nothing that a solver prints reaches standard output. (GLPK looks at its own
 * limit between nodes only; one large LP has been seen to run 13 s past a limit of 30.)
 *
 * No answer is believed: a solution is checked against all rows, bounds and integrality here, and
 * the caller is to rebuild and check what it stands for. "Infeasible" and "optimal" are what the
 * solver said, within its floating-point tolerances.
 */
#ifndef SPILLWAY_PLANNER_MILP_H
#define SPILLWAY_PLANNER_MILP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct milp; /* opaque; minimises */

enum { MILP_ENTRIES_MAX = 1 << 24, MILP_NAME_BYTES = 64 };

struct milp_term {
    uint32_t column;
    double value;
};

/* The caller frees it with milp_destroy(). NULL when memory ends. */
struct milp *milp_create(const char *name);
void milp_destroy(struct milp *milp); /* NULL is fine */

/*
 * Add a column / a row; bounds may be -HUGE_VAL and HUGE_VAL. Names are formatted, unique, and of
 * letters, digits and '_'. Terms of one row name different columns. A failure (memory, more than
 * MILP_ENTRIES_MAX terms) is remembered and told by milp_solve() and the writers.
 */
uint32_t milp_column(struct milp *milp, double low, double high, double cost, bool whole,
                     const char *format, ...) PRINTF_LIKE(6, 7);
void milp_term(struct milp *milp, uint32_t column, double value); /* of the row that comes next */
void milp_row(struct milp *milp, double low, double high, const char *format, ...) PRINTF_LIKE(4, 5);

uint32_t milp_column_count(const struct milp *milp);
uint32_t milp_row_count(const struct milp *milp);

/* Within bounds and rows, whole where it must be, all to 1e-6 of the magnitudes added up? */
bool milp_feasible(const struct milp *milp, const double *x);
double milp_objective(const struct milp *milp, const double *x);

/* Atomically; STATUS_IO, STATUS_NO_MEMORY, STATUS_LIMIT. */
MUST_CHECK enum status milp_write_lp(const struct milp *milp, const char *path, struct error *err);
MUST_CHECK enum status milp_write_mps(const struct milp *milp, const char *path, struct error *err);

enum milp_status {
    MILP_OPTIMAL,    /* the solver says so; x is that solution */
    MILP_INFEASIBLE, /* it says that there is none */
    MILP_STOPPED     /* at the limit of time, or it gave up: x is the best it had, if any */
};

/* A column held at a value. */
struct milp_fixing {
    uint32_t column;
    double value;
};

struct milp_options {
    const char *solver;      /* NULL or "glpk"; "cbc", "highs"; else a program's file */
    double limit_s;          /* at most 0: nothing is started */
    const double *incumbent; /* (columns) or NULL. GLPK only: refused when it is not feasible here;
                                GLPK's presolver is off then, for it renumbers columns */
    bool cuts;               /* GLPK: Gomory, mixed-integer rounding, cover and clique cuts */
    bool relaxed;            /* GLPK: nothing need be whole; the rows' duals are told */
    const struct milp_fixing *fixings; /* (variant_count * fixed_count) of a relaxed program: it is solved
                                          so many times more, each with its columns held */
    uint32_t variant_count, fixed_count;
    /* GLPK: list instead of minimising: each setting of these columns, all of 0 or 1, that some solution
     * with an objective of at most `cutoff` has, other columns whole or not; NULL: minimise. */
    const uint32_t *listed;
    uint32_t listed_count, list_max; /* at most so many settings are told */
    double cutoff;
};

struct milp_result {
    enum milp_status status;
    bool found;         /* x and value */
    double *x;          /* (columns); free it with free() */
    double *duals;      /* (dual_count * rows) of the relaxed program and its variants, as GLPK has them;
                           0 where there is no optimum. NULL: not told. A caller makes what it needs of
                           them true itself; free it with free() */
    uint32_t dual_count; /* at most 1 + variant_count: fewer where time ran out */
    uint8_t *settings; /* (setting_count * listed_count) what was listed, 0 or 1; status MILP_INFEASIBLE:
                          there are no others. Free it with free() */
    double *setting_values; /* (setting_count) least objectives with them; free it with free() */
    uint32_t setting_count;
    double value;
    bool bounded;       /* a bound was reported */
    double bound;
    uint64_t nodes;     /* GLPK alone tells */
    double seconds;
    bool killed;        /* it had to be ended from outside */
};

/*
 * Errors: STATUS_DEVICE when the solver is missing, is ended by a signal, fails or writes what cannot
 * be read, or a solution that is not one - result->found still tells what was known before;
 * STATUS_NO_MEMORY, STATUS_IO, STATUS_LIMIT.
 */
MUST_CHECK enum status milp_solve(const struct milp *milp, const struct milp_options *options,
                                  struct milp_result *result, struct error *err);

#endif
