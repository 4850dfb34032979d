/*
 * Mixed-integer programs: built row by row, written as files, solved by GLPK or another program.
 *
 * Every solver runs in a child process. It may run past its limit, abort or use up the memory; this process keeps the
 * clock, kills the child, and has every incumbent reported. No solver's output reaches standard output. (GLPK looks at
 * its limit between nodes only; one large LP ran 13 s past a limit of 30.)
 *
 * No answer is trusted: a solution is checked against all rows, bounds and integrality, and the caller rebuilds and
 * checks the schedule or plan. "Infeasible" and "optimal" are the solver's, within its tolerances.
 */
#ifndef SPILLWAY_PLANNER_SOLVE_MILP_MILP_H
#define SPILLWAY_PLANNER_SOLVE_MILP_MILP_H

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

/* Creates an empty program. The caller frees it with milp_destroy(). Returns NULL without memory. */
struct milp *milp_create(const char *name);
void milp_destroy(struct milp *milp); /* NULL is fine */

/*
 * Bounds may be -HUGE_VAL and HUGE_VAL. Names are formatted, unique, and of letters, digits and '_'. A row's terms name
 * different columns. A failure (memory, more than MILP_ENTRIES_MAX terms) is reported by milp_solve() and the writers.
 */
uint32_t milp_column(struct milp *milp, double low, double high, double cost, bool whole,
                     const char *format, ...) PRINTF_LIKE(6, 7);
void milp_term(struct milp *milp, uint32_t column, double value); /* adds a term to the next row */
void milp_row(struct milp *milp, double low, double high, const char *format, ...) PRINTF_LIKE(4, 5);

uint32_t milp_column_count(const struct milp *milp);
uint32_t milp_row_count(const struct milp *milp);

/* Returns true when x is within bounds and rows, and integer where required, to 1e-6 of the magnitudes in each sum. */
bool milp_feasible(const struct milp *milp, const double *x);
double milp_objective(const struct milp *milp, const double *x);

/* Writes a file atomically. Errors: STATUS_IO, STATUS_LIMIT. */
MUST_CHECK enum status milp_write_lp(const struct milp *milp, const char *path, struct error *err);
MUST_CHECK enum status milp_write_mps(const struct milp *milp, const char *path, struct error *err);

enum milp_status {
    MILP_OPTIMAL,    /* optimal by the solver; x is the solution */
    MILP_INFEASIBLE, /* infeasible by the solver */
    MILP_STOPPED     /* at the time limit, or the solver gave up: x is its best solution, if any */
};

/* A column held at a value. */
struct milp_fixing {
    uint32_t column;
    double value;
};

struct milp_options {
    const char *solver;      /* NULL or "glpk"; "cbc", "highs"; else a program's file */
    double limit_s;          /* at most 0: no solver is started */
    const double *incumbent; /* (columns) or NULL. GLPK only: refused when infeasible. GLPK's presolver is then off,
                                because it renumbers columns */
    uint64_t nodes_max;      /* GLPK: most nodes, so that equal programs have equal answers; 0: no limit */
    bool cuts;               /* GLPK: Gomory, mixed-integer rounding, cover and clique cuts */
    bool relaxed;            /* GLPK: integrality is dropped; the rows' duals are reported */
    const struct milp_fixing *fixings; /* (variant_count * fixed_count) of a relaxed program: it is solved once more for
                                          each variant, with the variant's columns held */
    uint32_t variant_count, fixed_count;
    /* GLPK: reports each setting of these 0-or-1 columns in solutions with an objective of at most `cutoff`; other
     * columns need not be integer. NULL: minimise. */
    const uint32_t *listed;
    uint32_t listed_count, list_max; /* list_max: most settings to report */
    double cutoff;
};

struct milp_result {
    enum milp_status status;
    bool found;         /* x and value */
    double *x;          /* (columns); free it with free() */
    double *duals;      /* (dual_count * rows) of the relaxed program and its variants, as GLPK reports them; 0 without
                         * an optimum. NULL: not reported. The caller must make them feasible and free() them */
    uint32_t dual_count; /* at most 1 + variant_count; fewer when time ran out */
    uint8_t *settings; /* (setting_count * listed_count) listed settings, 0 or 1; status MILP_INFEASIBLE: there are no
                          others. Free it with free() */
    double *setting_values; /* (setting_count) least objective with each setting; free it with free() */
    uint32_t setting_count;
    double value;
    bool bounded;       /* a bound was reported */
    double bound;
    uint64_t nodes;     /* GLPK only */
    double seconds;
    bool killed;        /* the solver was killed */
};

/* Names of the known solvers, the default first; NULL after the last. */
extern const char *const milp_solver_names[];

/*
 * Errors: STATUS_DEVICE if the solver is missing, fails, writes unreadable output or reports an invalid solution
 * (result->found still tells about earlier ones), STATUS_IO, STATUS_LIMIT.
 */
MUST_CHECK enum status milp_solve(const struct milp *milp, const struct milp_options *options,
                                  struct milp_result *result, struct error *err);

#endif
