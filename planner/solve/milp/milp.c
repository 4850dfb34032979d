/* This file has the model; milp_solve.c runs solvers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "planner/solve/milp/milp_model.h"

struct milp *milp_create(const char *name)
{
    struct milp *milp = alloc_zeroed(1, sizeof *milp);
    if (milp) snprintf(milp->name, sizeof milp->name, "%s", name);
    return milp;
}

void milp_destroy(struct milp *milp)
{
    if (!milp) return;
    free(milp->columns);
    free(milp->rows);
    free(milp->terms);
    free(milp);
}

uint32_t milp_column(struct milp *milp, double low, double high, double cost, bool whole,
                     const char *format, ...)
{
    if (array_reserve(&milp->columns, &milp->column_capacity, milp->column_count, sizeof *milp->columns,
                      MILP_ENTRIES_MAX, "columns", &milp->err))
        return 0;
    struct milp_column *column = &milp->columns[milp->column_count];
    *column = (struct milp_column){low, high, cost, whole, ""};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(column->name, sizeof column->name, format, arguments);
    va_end(arguments);
    return (uint32_t)milp->column_count++;
}

void milp_term(struct milp *milp, uint32_t column, double value)
{
    if (value == 0) return;
    if (array_reserve(&milp->terms, &milp->term_capacity, milp->term_count, sizeof *milp->terms,
                      MILP_ENTRIES_MAX, "terms", &milp->err))
        return;
    milp->terms[milp->term_count++] = (struct milp_term){column, value};
}

void milp_row(struct milp *milp, double low, double high, const char *format, ...)
{
    if (array_reserve(&milp->rows, &milp->row_capacity, milp->row_count, sizeof *milp->rows,
                      MILP_ENTRIES_MAX, "rows", &milp->err))
        return;
    struct milp_row *row = &milp->rows[milp->row_count++];
    *row = (struct milp_row){low, high, milp->rows_end, ""};
    milp->rows_end = milp->term_count;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(row->name, sizeof row->name, format, arguments);
    va_end(arguments);
}

uint32_t milp_column_count(const struct milp *milp)
{
    return (uint32_t)milp->column_count;
}

uint32_t milp_row_count(const struct milp *milp)
{
    return (uint32_t)milp->row_count;
}

/* --- checking -------------------------------------------------------------------------------- */

static const double tolerance = 1e-6;

bool milp_feasible(const struct milp *milp, const double *x)
{
    for (size_t c = 0; c < milp->column_count; c++) {
        const struct milp_column *column = &milp->columns[c];
        double slack = tolerance * (1 + fabs(x[c]));
        if (!(x[c] >= column->low - slack && x[c] <= column->high + slack)) return false; /* NaN too */
        if (column->whole && fabs(x[c] - round(x[c])) > 1e-5) return false; /* GLPK's tol_int */
    }
    for (size_t r = 0; r < milp->row_count; r++) {
        double sum = 0, magnitude = 1;
        for (size_t t = milp->rows[r].first_term; t < milp_row_end(milp, r); t++) {
            double part = milp->terms[t].value * x[milp->terms[t].column];
            sum += part;
            /* a binary may be off by 1e-5, which its coefficient magnifies */
            magnitude += fabs(part) + 10 * fabs(milp->terms[t].value);
        }
        double slack = tolerance * magnitude;
        if (sum < milp->rows[r].low - slack || sum > milp->rows[r].high + slack) return false;
    }
    return true;
}

double milp_objective(const struct milp *milp, const double *x)
{
    double sum = 0;
    for (size_t c = 0; c < milp->column_count; c++) sum += milp->columns[c].cost * x[c];
    return sum;
}

bool milp_result_take(const struct milp *milp, const double *x, struct milp_result *result,
                      struct error *err)
{
    if (!milp_feasible(milp, x)) return false;
    double value = milp_objective(milp, x);
    if (result->found && value >= result->value) return true;
    if (!result->x) result->x = alloc_zeroed(milp->column_count + 1, sizeof *result->x);
    if (!result->x) {
        error_memory(err, "a solution", milp->column_count * sizeof *result->x);
        return true;
    }
    memcpy(result->x, x, milp->column_count * sizeof *x);
    result->value = value;
    result->found = true;
    return true;
}

enum status milp_write_lp(const struct milp *milp, const char *path, struct error *err)
{
    return milp_glpk_write(milp, MILP_LP, path, err);
}

enum status milp_write_mps(const struct milp *milp, const char *path, struct error *err)
{
    return milp_glpk_write(milp, MILP_MPS, path, err);
}
