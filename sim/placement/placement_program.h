/* A linear program that is solved again and again with more rows: something is to be the most. Its optimum is
 * bounded by prices of its rows, whoever names them. */
#ifndef SPILLWAY_SERVING_PLACEMENT_PROGRAM_H
#define SPILLWAY_SERVING_PLACEMENT_PROGRAM_H

#include "planner/solve/milp/milp.h"

struct program_entry {
    uint32_t row, column;
    double value;
};

struct program {
    struct milp *milp;
    struct program_entry *entries;
    size_t entry_count, entry_capacity;
    double *limits; /* (row_count): of the rows' sums */
    size_t row_count, limit_capacity;
    double *gains, *tops; /* (column_count): what one is worth; columns are in [0, top] */
    size_t column_count, gain_capacity, top_capacity;
    struct error *err;
};

/* Release it with program_release(), also after an error. `err` takes what goes wrong later on. */
MUST_CHECK enum status program_init(struct program *program, struct error *err);
void program_release(struct program *program);

/* Its number. */
uint32_t program_column(struct program *program, double top, double gain);

/* Of the row that comes next: the sum of its columns times these is at most `limit`. */
void program_term(struct program *program, uint32_t column, double value);
void program_row(struct program *program, double limit);

/* The best values into x (column_count); *found false: the solver stopped. Errors: STATUS_NO_MEMORY,
 * STATUS_DEVICE, STATUS_LIMIT. */
MUST_CHECK enum status program_solve(struct program *program, double *x, bool *found, struct error *err);

/* By the solver's prices for the rows, none below 0: sum of price x limit, and of each column what it gains beyond
 * the prices of its rows, times its top. HUGE_VAL: it told none. Errors: as above. */
MUST_CHECK enum status program_bound(struct program *program, double *bound, struct error *err);

#endif
