/*
 * Shard schedules as mixed-integer programs; see formulation.h. Three ways to write rows; a table of tasks with their windows for all.
 *
 * Task k can start in [head, tail window]: head_k is what stands in front of it in its chain, tail_k
 * what must still pass from its start to the makespan. With every schedule wanted by `limit`,
 * head_k <= s_k <= limit - tail_k, and any M is the difference of two ends of windows.
 */
#include "planner/formulation.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/extreme.h"
#include "base/progress.h"
#include "planner/assignment.h"
#include "planner/timetable_check.h"

const char *const formulation_names[FORMULATION_COUNT] = {"disjunctive", "adjacency", "time-indexed"};

enum { NO_COLUMN = UINT32_MAX };

struct task {
    uint32_t job, position, unit;
    int64_t compute, in, out;
    int64_t head, tail, first, last; /* first: start as the first of a device; last: E of a last one */
    uint32_t start;                  /* column of s_k */
};

struct formulation {
    const struct instance *in;
    const struct instance_bounds *bounds;
    enum formulation_kind kind;
    int64_t limit;
    struct milp *milp;
    struct task *tasks; /* (n), job by job */
    uint32_t n;
    uint32_t makespan;  /* column */
    uint32_t *pairs;    /* (n, n): columns of z or y; NO_COLUMN */
    uint32_t *begins, *ends;  /* adjacency: (n) */
    uint32_t *devices;  /* disjunctive: (n, device_count) */
    uint32_t *steps;    /* time-indexed: (n), column of the first tick of the window */
};

enum formulation_kind formulation_suitable(const struct instance *in, int64_t limit)
{
    for (uint32_t u = 0; u < in->unit_count; u++)
        if (in->units[u].in > 0 || in->units[u].out > 0) return FORMULATION_ADJACENCY;
    return limit <= FORMULATION_CELLS_MAX / 10 / in->task_count ? FORMULATION_TIME_INDEXED
                                                                : FORMULATION_DISJUNCTIVE;
}

/* --- tasks ----------------------------------------------------------------------------------- */

static void make_tasks(struct formulation *f)
{
    const struct instance *in = f->in;
    struct task *task = f->tasks;
    for (uint32_t i = 0; i < in->job_count; i++) {
        const struct instance_job *job = &in->jobs[i];
        uint32_t length = instance_length(job);
        int64_t head = in->units[job->first_unit].in, tail = 0;
        for (uint32_t t = 0; t < length; t++, task++) {
            uint32_t unit = instance_unit_at(job, t);
            *task = (struct task){.job = i, .position = t, .unit = unit, .head = head,
                                  .compute = instance_compute(in, unit, 0),
                                  .in = in->units[unit].in, .out = in->units[unit].out};
            task->first = max_i64(task->in, head);
            head += task->compute;
        }
        for (struct task *k = task - 1; k >= task - length; k--) {
            tail = max_i64(tail + k->compute, k->compute + k->out);
            k->tail = k->last = tail;
        }
    }
}

/* What must pass between the starts of neighbours on a device; ASSIGNMENT_FORBIDDEN: they cannot be. */
static int64_t distance(const struct formulation *f, uint32_t j, uint32_t k)
{
    const struct task *a = &f->tasks[j], *b = &f->tasks[k];
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

/* The task behind this one in its chain? */
static bool has_next(const struct formulation *f, uint32_t k)
{
    return k + 1 < f->n && f->tasks[k + 1].job == f->tasks[k].job;
}

static void add_starts(struct formulation *f)
{
    for (uint32_t k = 0; k < f->n; k++) {
        struct task *t = &f->tasks[k];
        t->start = milp_column(f->milp, (double)t->head, (double)(f->limit - t->tail), 0, false, "s_%u_%u",
                               t->job, t->position);
    }
}

static void add_makespan(struct formulation *f)
{
    double least = (double)instance_bounds_best(f->bounds);
    f->makespan = milp_column(f->milp, least, (double)f->limit, 1, true, "C");
}

/* C >= s_k + what is left, where that is not another task's to say. */
static void add_ends(struct formulation *f)
{
    for (uint32_t k = 0; k < f->n; k++) {
        const struct task *t = &f->tasks[k];
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
        const struct task *a = &f->tasks[j];
        f->begins[j] = milp_column(f->milp, 0, 1, 0, true, "begin_%u_%u", a->job, a->position);
        f->ends[j] = milp_column(f->milp, 0, 1, 0, true, "last_%u_%u", a->job, a->position);
        for (uint32_t k = 0; k < f->n; k++) {
            const struct task *t = &f->tasks[k];
            int64_t d = j == k ? ASSIGNMENT_FORBIDDEN : distance(f, j, k);
            bool out = d >= ASSIGNMENT_FORBIDDEN || d - b->row[a->unit] - b->column[t->unit] > slack;
            f->pairs[(size_t)j * f->n + k] =
                out ? NO_COLUMN : milp_column(f->milp, 0, 1, 0, true, "z_%u_%u_%u_%u", a->job,
                                              a->position, t->job, t->position);
        }
    }
}

static void add_degrees(struct formulation *f)
{
    for (uint32_t k = 0; k < f->n; k++) {
        const struct task *t = &f->tasks[k];
        milp_term(f->milp, f->begins[k], 1);
        for (uint32_t j = 0; j < f->n; j++)
            if (f->pairs[(size_t)j * f->n + k] != NO_COLUMN) milp_term(f->milp, f->pairs[(size_t)j * f->n + k], 1);
        milp_row(f->milp, 1, 1, "in_%u_%u", t->job, t->position);
        milp_term(f->milp, f->ends[k], 1);
        for (uint32_t j = 0; j < f->n; j++)
            if (f->pairs[(size_t)k * f->n + j] != NO_COLUMN) milp_term(f->milp, f->pairs[(size_t)k * f->n + j], 1);
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
            const struct task *a = &f->tasks[j], *b = &f->tasks[k];
            if (z == NO_COLUMN) continue;
            int64_t d = distance(f, j, k), big = d + f->limit - a->tail - b->head;
            if (big > 0) {
                milp_term(m, b->start, 1);
                milp_term(m, a->start, -1);
                milp_term(m, z, (double)-big);
                milp_row(m, (double)(d - big), HUGE_VAL, "follow_%u_%u_%u_%u", a->job, a->position,
                         b->job, b->position);
            }
            if (j < k && back != NO_COLUMN) {
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
        const struct task *t = &f->tasks[k];
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
        if (z != NO_COLUMN) milp_term(m, z, (double)host);
        milp_row(m, (double)(t->compute + host), HUGE_VAL, "chain_%u_%u", t->job, t->position);
    }
    add_ends(f);
    for (uint32_t j = 0; j < f->n; j++) { /* the assignment bound's sum */
        milp_term(m, f->begins[j], (double)f->tasks[j].first);
        milp_term(m, f->ends[j], (double)f->tasks[j].last);
        for (uint32_t k = 0; k < f->n; k++)
            if (f->pairs[(size_t)j * f->n + k] != NO_COLUMN)
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
            const struct task *a = &f->tasks[j], *b = &f->tasks[k];
            uint32_t *y = &f->pairs[(size_t)j * f->n + k];
            *y = NO_COLUMN;
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
            const struct task *a = &f->tasks[j], *b = &f->tasks[k];
            uint32_t y = f->pairs[(size_t)j * f->n + k];
            if (y == NO_COLUMN) continue;
            if (has_next(f, k)) { /* before k: before the one behind k */
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
        const struct task *t = &f->tasks[k];
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

/* "Task k has started by t": a column within its window, 0 before it and 1 from its end on. */
static uint32_t started_by(const struct formulation *f, uint32_t k, int64_t t, double *constant)
{
    const struct task *task = &f->tasks[k];
    *constant = t >= f->limit - task->tail ? 1 : 0;
    if (t < task->head || t >= f->limit - task->tail) return NO_COLUMN;
    return f->steps[k] + (uint32_t)(t - task->head);
}

/* Add factor * started_by(k, t) to the row that comes next; what is constant is returned. */
static double add_started(struct formulation *f, uint32_t k, int64_t t, double factor)
{
    double constant;
    uint32_t column = started_by(f, k, t, &constant);
    if (column != NO_COLUMN) milp_term(f->milp, column, factor);
    return factor * constant;
}

static void add_time_indexed(struct formulation *f)
{
    struct milp *m = f->milp;
    for (uint32_t k = 0; k < f->n; k++) {
        const struct task *t = &f->tasks[k];
        f->steps[k] = milp_column_count(m);
        for (int64_t at = t->head; at < f->limit - t->tail; at++)
            milp_column(m, 0, 1, 0, true, "y_%u_%u_%lld", t->job, t->position, (long long)at);
    }
    for (uint32_t k = 0; k < f->n; k++) {
        const struct task *t = &f->tasks[k];
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

/* --- creation -------------------------------------------------------------------------------- */

static enum status takes(const struct instance *in, enum formulation_kind kind, int64_t limit,
                         struct error *err)
{
    if (in->class_count > 1 || in->objective != OBJECTIVE_MAKESPAN || in->bridge_bytes_per_tick > 0)
        return error_set(err, STATUS_LIMIT,
                         "formulations are of one class of devices, the makespan and no host bridge");
    if (in->task_count > FORMULATION_TASKS_MAX)
        return error_set(err, STATUS_LIMIT, "too many tasks for a formulation (limit is %d)",
                         FORMULATION_TASKS_MAX);
    if (limit > 10000000)
        return error_set(err, STATUS_LIMIT, "times of %lld ticks drown in a solver's tolerances (limit is 10000000)",
                         (long long)limit);
    if (kind == FORMULATION_ADJACENCY) return STATUS_OK;
    for (uint32_t u = 0; u < in->unit_count; u++)
        if (in->units[u].in > 0 || in->units[u].out > 0)
            return error_set(err, STATUS_LIMIT, "the %s formulation knows no copies",
                             formulation_names[kind]);
    if (kind == FORMULATION_TIME_INDEXED && limit * in->task_count > FORMULATION_CELLS_MAX)
        return error_set(err, STATUS_LIMIT, "too many tasks by ticks for the time-indexed formulation (limit is %d)",
                         FORMULATION_CELLS_MAX);
    return STATUS_OK;
}

enum status formulation_create(const struct instance *in, const struct instance_bounds *bounds,
                               enum formulation_kind kind, int64_t limit, struct formulation **out,
                               struct error *err)
{
    if (takes(in, kind, limit, err)) return err->status;
    if (limit < instance_bounds_best(bounds))
        return error_set(err, STATUS_INFEASIBLE, "no schedule ends by %lld: the %s bound is %lld",
                         (long long)limit, instance_bound_names[bounds->best],
                         (long long)instance_bounds_best(bounds));
    struct formulation *f = alloc_zeroed(1, sizeof *f);
    if (!f) return error_memory(err, "a formulation", sizeof *f);
    size_t n = in->task_count;
    *f = (struct formulation){.in = in, .bounds = bounds, .kind = kind, .limit = limit,
                              .n = in->task_count, .milp = milp_create(formulation_names[kind])};
    f->tasks = alloc_zeroed(n, sizeof *f->tasks);
    f->pairs = alloc_zeroed(n * n, sizeof *f->pairs);
    f->begins = alloc_zeroed(n, sizeof *f->begins);
    f->ends = alloc_zeroed(n, sizeof *f->ends);
    f->steps = alloc_zeroed(n, sizeof *f->steps);
    f->devices = alloc_zeroed(n * in->device_count, sizeof *f->devices);
    if (!f->milp || !f->tasks || !f->pairs || !f->begins || !f->ends || !f->steps || !f->devices) {
        formulation_destroy(f);
        return error_memory(err, "a formulation", n * n * sizeof *f->pairs);
    }
    make_tasks(f);
    if (kind == FORMULATION_ADJACENCY) add_adjacency(f);
    else if (kind == FORMULATION_DISJUNCTIVE) add_disjunctive(f);
    else add_time_indexed(f);
    *out = f;
    return STATUS_OK;
}

void formulation_destroy(struct formulation *f)
{
    if (!f) return;
    milp_destroy(f->milp);
    free(f->tasks);
    free(f->pairs);
    free(f->begins);
    free(f->ends);
    free(f->steps);
    free(f->devices);
    free(f);
}

const struct milp *formulation_milp(const struct formulation *f)
{
    return f->milp;
}

/* --- a schedule as values -------------------------------------------------------------------- */

static uint32_t task_of(const struct formulation *f, const struct timetable_task *task)
{
    uint32_t first = 0;
    for (uint32_t i = 0; i < task->job; i++) first += instance_length(&f->in->jobs[i]);
    return first + task->position;
}

/* Equal devices are told apart by the first tasks: number them in the order of the jobs. */
static void renumber_devices(const struct formulation *f, uint32_t *where)
{
    for (uint32_t k = 0, begun = 0; k < f->n; k++) {
        if (f->tasks[k].position > 0 || where[k] < begun) continue;
        uint32_t old = where[k], number = begun++;
        for (uint32_t o = 0; o < f->n; o++) /* a swap: all others keep a number of their own */
            where[o] = where[o] == old ? number : where[o] == number ? old : where[o];
    }
}

enum status formulation_values(const struct formulation *f, const struct timetable *table, double *x,
                               struct error *err)
{
    if (timetable_check(f->in, table, err)) return err->status;
    if (table->value > f->limit)
        return error_set(err, STATUS_CHECK, "a schedule of %lld where at most %lld is asked for",
                         (long long)table->value, (long long)f->limit);
    int64_t *starts = alloc_zeroed(f->n, sizeof *starts);
    uint32_t *where = alloc_zeroed(f->n, sizeof *where);
    if (!starts || !where) {
        error_memory(err, "a schedule", f->n * sizeof *starts);
        goto out;
    }
    memset(x, 0, milp_column_count(f->milp) * sizeof *x);
    for (uint32_t g = 0; g < table->device_count; g++)
        for (uint32_t t = table->device_first[g]; t < table->device_first[g + 1]; t++) {
            uint32_t k = task_of(f, &table->tasks[t]);
            bool first = t == table->device_first[g], last = t + 1 == table->device_first[g + 1];
            starts[k] = table->tasks[t].start;
            where[k] = g;
            if (f->kind != FORMULATION_ADJACENCY) continue;
            if (first) x[f->begins[k]] = 1;
            if (last) x[f->ends[k]] = 1;
            uint32_t next = last ? 0 : task_of(f, &table->tasks[t + 1]);
            uint32_t z = last ? NO_COLUMN : f->pairs[(size_t)k * f->n + next];
            if (z != NO_COLUMN) x[z] = 1;
        }
    if (f->kind != FORMULATION_TIME_INDEXED) x[f->makespan] = (double)table->value;
    if (f->kind == FORMULATION_DISJUNCTIVE) renumber_devices(f, where);
    for (uint32_t k = 0; k < f->n; k++) {
        const struct task *t = &f->tasks[k];
        if (f->kind != FORMULATION_TIME_INDEXED) {
            x[t->start] = (double)starts[k];
        } else {
            for (int64_t at = starts[k]; at < f->limit - t->tail; at++)
                x[f->steps[k] + (uint32_t)(at - t->head)] = 1;
        }
        if (f->kind != FORMULATION_DISJUNCTIVE) continue;
        x[f->devices[(size_t)k * f->in->device_count + where[k]]] = 1;
        for (uint32_t j = 0; j < f->n; j++)
            if (f->pairs[(size_t)j * f->n + k] != NO_COLUMN)
                x[f->pairs[(size_t)j * f->n + k]] = starts[j] + f->tasks[j].compute <= starts[k];
    }
out:
    free(starts);
    free(where);
    return err->status;
}

/* --- values as a schedule -------------------------------------------------------------------- */

struct ordered {
    int64_t start;
    uint32_t task;
};

static int compare_ordered(const void *a, const void *b)
{
    const struct ordered *x = a, *y = b;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    return (x->task > y->task) - (x->task < y->task);
}

static int64_t start_in(const struct formulation *f, const double *x, uint32_t k)
{
    const struct task *t = &f->tasks[k];
    if (f->kind != FORMULATION_TIME_INDEXED) return (int64_t)llround(x[t->start]);
    int64_t at = t->head;
    while (at < f->limit - t->tail && x[f->steps[k] + (uint32_t)(at - t->head)] < 0.5) at++;
    return at;
}

/* The device of each task: by paths, by x, or whichever is free. */
static void find_devices(const struct formulation *f, const double *x, const struct ordered *order,
                         uint32_t *where)
{
    uint32_t devices = f->in->device_count, begun = 0;
    int64_t *free_at = alloc_zeroed(devices, sizeof *free_at);
    for (uint32_t k = 0; k < f->n; k++) where[k] = 0;
    for (uint32_t o = 0; o < f->n && free_at; o++) {
        uint32_t k = order[o].task, g = 0;
        if (f->kind == FORMULATION_ADJACENCY) {
            if (x[f->begins[k]] > 0.5 && begun < devices) where[k] = begun++;
            for (uint32_t j = 0; j < f->n; j++) /* starts are in order, so its place is known by then */
                if (f->pairs[(size_t)j * f->n + k] != NO_COLUMN && x[f->pairs[(size_t)j * f->n + k]] > 0.5)
                    where[k] = where[j];
            continue;
        }
        for (uint32_t d = 1; d < devices; d++) {
            if (f->kind == FORMULATION_DISJUNCTIVE && x[f->devices[(size_t)k * devices + d]] > 0.5) g = d;
            if (f->kind == FORMULATION_TIME_INDEXED && free_at[d] < free_at[g]) g = d;
        }
        where[k] = g;
        free_at[g] = order[o].start + f->tasks[k].compute;
    }
    free(free_at);
}

enum status formulation_steps(const struct formulation *f, const double *x, struct dispatch_step *steps,
                              struct error *err)
{
    struct ordered *order = alloc_zeroed(f->n, sizeof *order);
    uint32_t *where = alloc_zeroed(f->n, sizeof *where), *next = alloc_zeroed(f->in->job_count, sizeof *next);
    if (!order || !where || !next) {
        error_memory(err, "a schedule", f->n * sizeof *order);
        goto out;
    }
    for (uint32_t k = 0; k < f->n; k++) order[k] = (struct ordered){start_in(f, x, k), k};
    qsort(order, f->n, sizeof *order, compare_ordered);
    find_devices(f, x, order, where);
    for (uint32_t o = 0; o < f->n; o++) {
        const struct task *task = &f->tasks[order[o].task];
        if (task->position != next[task->job]++) {
            error_set(err, STATUS_CHECK, "the solver's starts are not in the order of job %u", task->job);
            goto out;
        }
    }
    for (uint32_t o = 0; o < f->n; o++)
        steps[o] = (struct dispatch_step){f->tasks[order[o].task].job, where[order[o].task]};
out:
    free(order);
    free(where);
    free(next);
    return err->status;
}

/* --- solving --------------------------------------------------------------------------------- */

/* Take what the solver found, when it is as good as it says. */
static enum status take(const struct formulation *f, const double *x, struct dispatch_step *steps,
                        int64_t *value, struct error *err)
{
    struct timetable table = {0};
    struct dispatch_step *found = alloc_zeroed(f->n, sizeof *found);
    if (!found) return error_memory(err, "a schedule", f->n * sizeof *found);
    if (!formulation_steps(f, x, found, err) && !timetable_make(f->in, found, &table, err) &&
        !timetable_check(f->in, &table, err)) {
        if (table.value > f->limit) {
            error_set(err, STATUS_CHECK, "the solver's schedule ends at %lld, past %lld",
                      (long long)table.value, (long long)f->limit);
        } else {
            memcpy(steps, found, f->n * sizeof *found);
            *value = table.value;
        }
    }
    timetable_release(&table);
    free(found);
    return err->status;
}

enum status formulation_solve(const struct instance *in, const struct instance_bounds *bounds,
                              enum formulation_kind kind, const char *solver, double limit_s,
                              struct dispatch_step *steps, int64_t *value,
                              struct formulation_result *result, struct error *err)
{
    double until_s = clock_s() + limit_s;
    *result = (struct formulation_result){.status = MILP_STOPPED};
    for (bool again = true; again && !result->proven;) {
        struct formulation *f = NULL;
        struct milp_result solved = {0};
        struct milp_options options = {.solver = solver, .limit_s = until_s - clock_s()};
        struct error none = {0};
        int64_t limit = *value - 1;
        if (formulation_create(in, bounds, kind, limit, &f, &none)) {
            result->proven = none.status == STATUS_INFEASIBLE;
            if (!result->proven) *err = none;
            else result->status = MILP_INFEASIBLE;
            break;
        }
        again = false;
        if (!milp_solve(formulation_milp(f), &options, &solved, err)) {
            result->status = solved.status;
            result->proven = solved.status == MILP_INFEASIBLE;
            if (solved.bounded && kind != FORMULATION_TIME_INDEXED)
                result->bound = (int64_t)fmin(ceil(solved.bound - 1e-6), (double)limit + 1);
        }
        result->seconds += solved.seconds;
        if (solved.found && !take(f, solved.x, steps, value, err)) {
            bool optimal = solved.status == MILP_OPTIMAL && kind != FORMULATION_TIME_INDEXED;
            result->proven |= optimal && *value <= result->bound;
            again = !err->status && kind == FORMULATION_TIME_INDEXED && clock_s() < until_s;
        }
        free(solved.x);
        formulation_destroy(f);
        if (err->status) break;
    }
    return err->status;
}
