/* A linear program that maximises, solved repeatedly with more rows. Any prices of its rows give an upper bound. */
#ifndef SPILLWAY_SIM_PLACEMENT_PLACEMENT_PROGRAM_H
#define SPILLWAY_SIM_PLACEMENT_PLACEMENT_PROGRAM_H

#include "planner/solve/milp/milp.h"

struct placement_program_entry {
    uint32_t row, column;
    double value;
};

struct placement_program {
    struct milp *milp;
    struct placement_program_entry *entries;
    size_t entry_count, entry_capacity;
    double *limits; /* (row_count): upper limits of the rows */
    size_t row_count, limit_capacity;
    double *gains, *tops; /* (column_count): objective coefficients; columns are in [0, top] */
    size_t column_count, gain_capacity, top_capacity;
    struct error *err;
};

/* The caller releases it with placement_program_release(), also after an error. `err` also receives later errors. */
MUST_CHECK enum status placement_program_init(struct placement_program *program, struct error *err);
void placement_program_release(struct placement_program *program);

/* Adds a column and returns its number. */
uint32_t placement_program_column(struct placement_program *program, double top, double gain);

/* Add a term of the next row; finish it: the sum of its columns times these values is at most `limit`. */
void placement_program_term(struct placement_program *program, uint32_t column, double value);
void placement_program_row(struct placement_program *program, double limit);

/* Writes the best values to x (column_count); *found: false if the solver stopped. Errors: STATUS_DEVICE,
 * STATUS_LIMIT. */
MUST_CHECK enum status placement_program_solve(struct placement_program *program, double *x, bool *found,
                                               struct error *err);

/* Computes a bound from the solver's non-negative prices: the sum of price x limit, plus each column's positive gain
 * minus its rows' prices, times its top. HUGE_VAL: no prices. Errors: as placement_program_solve(). */
MUST_CHECK enum status placement_program_bound(struct placement_program *program, double *bound, struct error *err);

#endif
