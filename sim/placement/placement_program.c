/* The solver minimises in a child process; this file keeps the data to check its prices. */
#include "sim/placement/placement_program.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"

/* Time limit of the solver; programs of allowed sizes take a fraction of it. */
#define LIMIT_S 10.0

enum { COUNT_MAX = 1 << 24 };

enum status placement_program_init(struct placement_program *program, struct error *err)
{
    *program = (struct placement_program){.milp = milp_create("placements"), .err = err};
    return program->milp ? STATUS_OK : error_memory(err, "a program", 0);
}

void placement_program_release(struct placement_program *program)
{
    milp_destroy(program->milp);
    free(program->entries);
    free(program->limits);
    free(program->gains);
    free(program->tops);
}

uint32_t placement_program_column(struct placement_program *p, double top, double gain)
{
    if (array_reserve(&p->gains, &p->gain_capacity, p->column_count, sizeof *p->gains, COUNT_MAX, "columns", p->err) ||
        array_reserve(&p->tops, &p->top_capacity, p->column_count, sizeof *p->tops, COUNT_MAX, "columns", p->err))
        return 0; /* reported by placement_program_solve() */
    p->gains[p->column_count] = gain;
    p->tops[p->column_count++] = top;
    return milp_column(p->milp, 0, top, -gain, false, "x%zu", p->column_count);
}

void placement_program_term(struct placement_program *p, uint32_t column, double value)
{
    if (value == 0 || array_reserve(&p->entries, &p->entry_capacity, p->entry_count, sizeof *p->entries,
                                    MILP_ENTRIES_MAX, "terms", p->err))
        return;
    p->entries[p->entry_count++] = (struct placement_program_entry){(uint32_t)p->row_count, column, value};
    milp_term(p->milp, column, value);
}

void placement_program_row(struct placement_program *p, double limit)
{
    if (array_reserve(&p->limits, &p->limit_capacity, p->row_count, sizeof *p->limits, COUNT_MAX, "rows", p->err))
        return;
    p->limits[p->row_count++] = limit;
    milp_row(p->milp, -HUGE_VAL, limit, "r%zu", p->row_count);
}

enum status placement_program_solve(struct placement_program *p, double *x, bool *found, struct error *err)
{
    const struct milp_options options = {.limit_s = LIMIT_S};
    struct milp_result result;
    *found = false;
    if (p->err->status) return p->err->status;
    enum status status = milp_solve(p->milp, &options, &result, err);
    for (size_t c = 0; !status && result.found && c < p->column_count; c++) x[c] = result.x[c];
    *found = !status && result.found;
    free(result.x);
    return status;
}

enum status placement_program_bound(struct placement_program *p, double *bound, struct error *err)
{
    const struct milp_options options = {.limit_s = LIMIT_S, .relaxed = true};
    struct milp_result result;
    *bound = HUGE_VAL;
    if (p->err->status) return p->err->status;
    enum status status = milp_solve(p->milp, &options, &result, err);
    double *left = status || !result.duals ? NULL : alloc_zeroed(p->column_count + 1, sizeof *left);
    if (!status && result.duals && !left)
        status = error_memory(err, "the prices of a program", p->column_count * sizeof *left);
    if (left) {
        *bound = 0;
        for (size_t c = 0; c < p->column_count; c++) left[c] = p->gains[c];
        /* in a minimisation, a row with an upper limit has no price above 0 */
        for (size_t i = 0; i < p->entry_count; i++)
            left[p->entries[i].column] -= fmax(-result.duals[p->entries[i].row], 0) * p->entries[i].value;
        for (size_t r = 0; r < p->row_count; r++) *bound += fmax(-result.duals[r], 0) * p->limits[r];
        for (size_t c = 0; c < p->column_count; c++) *bound += fmax(left[c], 0) * p->tops[c];
    }
    free(left);
    free(result.x);
    free(result.duals);
    return status;
}
