/*
 * Columns and rows of the three kinds of formulation.h, over one table of tasks with their windows.
 */
#include <math.h>

#include "base/extreme.h"
#include "planner/solve/bounds/assignment.h"
#include "planner/solve/exact/formulation_state.h"

/* --- tasks ----------------------------------------------------------------------------------- */

static void make_tasks(struct formulation *f)
{
    const struct instance *in = f->in;
    struct formulation_task *task = f->tasks;
    for (uint32_t i = 0; i < in->job_count; i++) {
        const struct instance_job *job = &in->jobs[i];
        uint32_t length = instance_length(job);
        int64_t head = in->units[job->first_unit].in, tail = 0;
        for (uint32_t t = 0; t < length; t++, task++) {
            uint32_t unit = instance_unit_at(job, t);
            *task = (struct formulation_task){.job = i, .position = t, .unit = unit, .head = head,
                                  .compute = instance_compute(in, unit, 0),
                                  .in = in->units[unit].in, .out = in->units[unit].out};
            task->first = max_i64(task->in, head);
            head += task->compute;
        }
        for (struct formulation_task *k = task - 1; k >= task - length; k--) {
            tail = max_i64(tail + k->compute, k->compute + k->out);
            k->tail = k->last = tail;
        }
    }
}

/* Returns the least time between the starts of neighbours on a device; ASSIGNMENT_FORBIDDEN: they cannot be
 * neighbours. */
static int64_t distance(const struct formulation *f, uint32_t j, uint32_t k)
{
    const struct formulation_task *a = &f->tasks[j], *b = &f->tasks[k];
    int64_t setup = instance_setup(f->in, a->unit, b->unit, 0);
    if (a->job == b->job) {
        if (k <= j) return ASSIGNMENT_FORBIDDEN;
        int64_t chain = 0;
        for (uint32_t t = j; t < k; t++) chain += f->tasks[t].compute;
        if (k > j + 1)
            chain += instance_through_host(f->in, a->unit, f->tasks[j + 1].unit) +
                     instance_through_host(f->in, f->tasks[k - 1].unit, b->unit);
        setup = max_i64(setup, chain);
    }
    return a->head + setup + b->tail > f->limit ? ASSIGNMENT_FORBIDDEN : setup;
}

static bool has_next(const struct formulation *f, uint32_t k)
{
    return k + 1 < f->n && f->tasks[k + 1].job == f->tasks[k].job;
}

static void add_starts(struct formulation *f)
{
    for (uint32_t k = 0; k < f->n; k++) {
        struct formulation_task *t = &f->tasks[k];
        t->start = milp_column(f->milp, (double)t->head, (double)(f->limit - t->tail), 0, false, "s_%u_%u",
                               t->job, t->position);
    }
}

static void add_makespan(struct formulation *f)
{
    double least = (double)instance_bounds_best(f->bounds);
    f->makespan = milp_column(f->milp, least, (double)f->limit, 1, true, "C");
}

/* Adds C >= s_k + tail_k for tasks whose tail no later task implies. */
static void add_ends(struct formulation *f)
{
    for (uint32_t k = 0; k < f->n; k++) {
        const struct formulation_task *t = &f->tasks[k];
        if (has_next(f, k) && t->out == 0) continue;
        milp_term(f->milp, f->makespan, 1);
        milp_term(f->milp, t->start, -1);
        milp_row(f->milp, (double)(t->compute + t->out), HUGE_VAL, "end_%u_%u", t->job, t->position);
    }
}

/* --- adjacency ------------------------------------------------------------------------------- */

static void add_arcs(struct formulation *f)
{
    const struct instance_bounds *b = f->bounds;
    int64_t each = f->limit - b->row_start - b->column_end;
    int64_t slack = f->in->device_count * (each > 0 ? each : 0) - b->sum;
    for (uint32_t j = 0; j < f->n; j++) {
        const struct formulation_task *a = &f->tasks[j];
        f->begins[j] = milp_column(f->milp, 0, 1, 0, true, "begin_%u_%u", a->job, a->position);
        f->ends[j] = milp_column(f->milp, 0, 1, 0, true, "last_%u_%u", a->job, a->position);
        for (uint32_t k = 0; k < f->n; k++) {
            const struct formulation_task *t = &f->tasks[k];
            int64_t d = j == k ? ASSIGNMENT_FORBIDDEN : distance(f, j, k);
            bool out = d >= ASSIGNMENT_FORBIDDEN || d - b->row[a->unit] - b->column[t->unit] > slack;
            f->pairs[(size_t)j * f->n + k] =
                out ? FORMULATION_NO_COLUMN : milp_column(f->milp, 0, 1, 0, true, "z_%u_%u_%u_%u", a->job,
                                                          a->position, t->job, t->position);
        }
    }
}

static void add_degrees(struct formulation *f)
{
    for (uint32_t k = 0; k < f->n; k++) {
        const struct formulation_task *t = &f->tasks[k];
        milp_term(f->milp, f->begins[k], 1);
        for (uint32_t j = 0; j < f->n; j++)
            if (f->pairs[(size_t)j * f->n + k] != FORMULATION_NO_COLUMN)
                milp_term(f->milp, f->pairs[(size_t)j * f->n + k], 1);
        milp_row(f->milp, 1, 1, "in_%u_%u", t->job, t->position);
        milp_term(f->milp, f->ends[k], 1);
        for (uint32_t j = 0; j < f->n; j++)
            if (f->pairs[(size_t)k * f->n + j] != FORMULATION_NO_COLUMN)
                milp_term(f->milp, f->pairs[(size_t)k * f->n + j], 1);
        milp_row(f->milp, 1, 1, "out_%u_%u", t->job, t->position);
    }
    for (uint32_t k = 0; k < f->n; k++) milp_term(f->milp, f->begins[k], 1);
    milp_row(f->milp, -HUGE_VAL, f->in->device_count, "devices");
}

static void add_arc_times(struct formulation *f)
{
    struct milp *m = f->milp;
    for (uint32_t j = 0; j < f->n; j++)
        for (uint32_t k = 0; k < f->n; k++) {
            uint32_t z = f->pairs[(size_t)j * f->n + k], back = f->pairs[(size_t)k * f->n + j];
            const struct formulation_task *a = &f->tasks[j], *b = &f->tasks[k];
            if (z == FORMULATION_NO_COLUMN) continue;
            int64_t d = distance(f, j, k), big = d + f->limit - a->tail - b->head;
            if (big > 0) {
                milp_term(m, b->start, 1);
                milp_term(m, a->start, -1);
                milp_term(m, z, (double)-big);
                milp_row(m, (double)(d - big), HUGE_VAL, "follow_%u_%u_%u_%u", a->job, a->position,
                         b->job, b->position);
            }
            if (j < k && back != FORMULATION_NO_COLUMN) {
                milp_term(m, z, 1);
                milp_term(m, back, 1);
                milp_row(m, -HUGE_VAL, 1, "cycle_%u_%u_%u_%u", a->job, a->position, b->job, b->position);
            }
        }
}

static void add_adjacency(struct formulation *f)
{
    struct milp *m = f->milp;
    add_makespan(f);
    add_starts(f);
    add_arcs(f);
    add_degrees(f);
    add_arc_times(f);
    for (uint32_t k = 0; k < f->n; k++) {
        const struct formulation_task *t = &f->tasks[k];
        if (t->first > t->head) {
            milp_term(m, t->start, 1);
            milp_term(m, f->begins[k], (double)(t->head - t->first));
            milp_row(m, (double)t->head, HUGE_VAL, "first_%u_%u", t->job, t->position);
        }
        if (!has_next(f, k)) continue;
        uint32_t z = f->pairs[(size_t)k * f->n + k + 1];
        int64_t host = instance_through_host(f->in, t->unit, f->tasks[k + 1].unit);
        milp_term(m, f->tasks[k + 1].start, 1);
        milp_term(m, t->start, -1);
        if (z != FORMULATION_NO_COLUMN)
                milp_term(m, z, (double)host);
        milp_row(m, (double)(t->compute + host), HUGE_VAL, "chain_%u_%u", t->job, t->position);
    }
    add_ends(f);
    for (uint32_t j = 0; j < f->n; j++) { /* the assignment bound's sum */
        milp_term(m, f->begins[j], (double)f->tasks[j].first);
        milp_term(m, f->ends[j], (double)f->tasks[j].last);
        for (uint32_t k = 0; k < f->n; k++)
            if (f->pairs[(size_t)j * f->n + k] != FORMULATION_NO_COLUMN)
                milp_term(m, f->pairs[(size_t)j * f->n + k], (double)distance(f, j, k));
    }
    milp_term(m, f->makespan, -(double)f->in->device_count);
    milp_row(m, -HUGE_VAL, 0, "area");
}

/* --- disjunctive ----------------------------------------------------------------------------- */

static void add_order(struct formulation *f)
{
    struct milp *m = f->milp;
    for (uint32_t j = 0; j < f->n; j++)
        for (uint32_t k = 0; k < f->n; k++) {
            const struct formulation_task *a = &f->tasks[j], *b = &f->tasks[k];
            uint32_t *y = &f->pairs[(size_t)j * f->n + k];
            *y = FORMULATION_NO_COLUMN;
            if (a->job == b->job) continue;
            int64_t big = f->limit - a->tail + a->compute - b->head;
            bool cannot = a->head + a->compute > f->limit - b->tail;
            *y = milp_column(m, big <= 0 ? 1 : 0, cannot ? 0 : 1, 0, true, "y_%u_%u_%u_%u", a->job,
                             a->position, b->job, b->position);
            if (big <= 0 || cannot) continue;
            milp_term(m, b->start, 1);
            milp_term(m, a->start, -1);
            milp_term(m, *y, (double)-big);
            milp_row(m, (double)(a->compute - big), HUGE_VAL, "before_%u_%u_%u_%u", a->job, a->position,
                     b->job, b->position);
        }
    for (uint32_t j = 0; j < f->n; j++)
        for (uint32_t k = 0; k < f->n; k++) {
            const struct formulation_task *a = &f->tasks[j], *b = &f->tasks[k];
            uint32_t y = f->pairs[(size_t)j * f->n + k];
            if (y == FORMULATION_NO_COLUMN) continue;
            if (has_next(f, k)) { /* before k: before the next task of k's chain */
                milp_term(m, y, 1);
                milp_term(m, f->pairs[(size_t)j * f->n + k + 1], -1);
                milp_row(m, -HUGE_VAL, 0, "after_%u_%u_%u_%u", a->job, a->position, b->job, b->position);
            }
            if (has_next(f, j)) {
                milp_term(m, f->pairs[(size_t)(j + 1) * f->n + k], 1);
                milp_term(m, y, -1);
                milp_row(m, -HUGE_VAL, 0, "ahead_%u_%u_%u_%u", a->job, a->position, b->job, b->position);
            }
        }
}

static void add_devices(struct formulation *f)
{
    struct milp *m = f->milp;
    uint32_t devices = f->in->device_count;
    for (uint32_t k = 0; k < f->n; k++) {
        const struct formulation_task *t = &f->tasks[k];
        for (uint32_t g = 0; g < devices; g++) { /* equal devices: job i begins on one of the first */
            bool may = t->position > 0 || g <= t->job;
            f->devices[(size_t)k * devices + g] =
                milp_column(m, 0, may ? 1 : 0, 0, true, "x_%u_%u_%u", t->job, t->position, g);
        }
        for (uint32_t g = 0; g < devices; g++) milp_term(m, f->devices[(size_t)k * devices + g], 1);
        milp_row(m, 1, 1, "once_%u_%u", t->job, t->position);
    }
    for (uint32_t j = 0; j < f->n; j++)
        for (uint32_t k = j + 1; k < f->n; k++)
            for (uint32_t g = 0; g < devices && f->tasks[j].job != f->tasks[k].job; g++) {
                milp_term(m, f->devices[(size_t)j * devices + g], 1);
                milp_term(m, f->devices[(size_t)k * devices + g], 1);
                milp_term(m, f->pairs[(size_t)j * f->n + k], -1);
                milp_term(m, f->pairs[(size_t)k * f->n + j], -1);
                milp_row(m, -HUGE_VAL, 1, "apart_%u_%u_%u", j, k, g);
            }
    for (uint32_t g = 0; g < devices; g++) {
        for (uint32_t k = 0; k < f->n; k++)
            milp_term(m, f->devices[(size_t)k * devices + g], (double)f->tasks[k].compute);
        milp_term(m, f->makespan, -1);
        milp_row(m, -HUGE_VAL, 0, "load_%u", g);
    }
}

static void add_disjunctive(struct formulation *f)
{
    add_makespan(f);
    add_starts(f);
    add_order(f);
    add_devices(f);
    for (uint32_t k = 0; k < f->n; k++) {
        if (!has_next(f, k)) continue;
        milp_term(f->milp, f->tasks[k + 1].start, 1);
        milp_term(f->milp, f->tasks[k].start, -1);
        milp_row(f->milp, (double)f->tasks[k].compute, HUGE_VAL, "chain_%u_%u", f->tasks[k].job,
                 f->tasks[k].position);
    }
    add_ends(f);
}

/* --- time-indexed ---------------------------------------------------------------------------- */

/* Returns the column "task k has started by t", within its window; before the window 0, after it 1. */
static uint32_t started_by(const struct formulation *f, uint32_t k, int64_t t, double *constant)
{
    const struct formulation_task *task = &f->tasks[k];
    *constant = t >= f->limit - task->tail ? 1 : 0;
    if (t < task->head || t >= f->limit - task->tail) return FORMULATION_NO_COLUMN;
    return f->steps[k] + (uint32_t)(t - task->head);
}

/* Adds factor * started_by(k, t) to the next row. Returns the constant part. */
static double add_started(struct formulation *f, uint32_t k, int64_t t, double factor)
{
    double constant;
    uint32_t column = started_by(f, k, t, &constant);
    if (column != FORMULATION_NO_COLUMN)
                milp_term(f->milp, column, factor);
    return factor * constant;
}

static void add_time_indexed(struct formulation *f)
{
    struct milp *m = f->milp;
    for (uint32_t k = 0; k < f->n; k++) {
        const struct formulation_task *t = &f->tasks[k];
        f->steps[k] = milp_column_count(m);
        for (int64_t at = t->head; at < f->limit - t->tail; at++)
            milp_column(m, 0, 1, 0, true, "y_%u_%u_%lld", t->job, t->position, (long long)at);
    }
    for (uint32_t k = 0; k < f->n; k++) {
        const struct formulation_task *t = &f->tasks[k];
        for (int64_t at = t->head; at + 1 < f->limit - t->tail; at++) {
            milp_term(m, f->steps[k] + (uint32_t)(at - t->head), 1);
            milp_term(m, f->steps[k] + (uint32_t)(at - t->head) + 1, -1);
            milp_row(m, -HUGE_VAL, 0, "step_%u_%u_%lld", t->job, t->position, (long long)at);
        }
        if (!has_next(f, k)) continue;
        for (int64_t at = t->head; at < f->limit - t->tail; at++) {
            double constant = add_started(f, k + 1, at + t->compute, 1) + add_started(f, k, at, -1);
            milp_row(m, -HUGE_VAL, -constant, "chain_%u_%u_%lld", t->job, t->position, (long long)at);
        }
    }
    for (int64_t at = 0; at < f->limit; at++) {
        double constant = 0;
        for (uint32_t k = 0; k < f->n; k++)
            constant += add_started(f, k, at, 1) + add_started(f, k, at - f->tasks[k].compute, -1);
        milp_row(m, -HUGE_VAL, f->in->device_count - constant, "devices_%lld", (long long)at);
    }
}

void formulation_write_rows(struct formulation *f)
{
    make_tasks(f);
    if (f->kind == FORMULATION_ADJACENCY) add_adjacency(f);
    else if (f->kind == FORMULATION_DISJUNCTIVE) add_disjunctive(f);
    else add_time_indexed(f);
}
