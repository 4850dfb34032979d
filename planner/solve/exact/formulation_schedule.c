/*
 * A schedule as values of a formulation's columns, and values as a schedule.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/try.h"
#include "planner/solve/exact/formulation_state.h"
#include "planner/solve/instance/timetable_check.h"

/* --- a schedule as values -------------------------------------------------------------------- */

static uint32_t task_of(const struct formulation *f, const struct timetable_task *task)
{
    uint32_t first = 0;
    for (uint32_t i = 0; i < task->job; i++) first += instance_length(&f->in->jobs[i]);
    return first + task->position;
}

/* Numbers equal devices in the order of the jobs of their first tasks. */
static void renumber_devices(const struct formulation *f, uint32_t *where)
{
    for (uint32_t k = 0, begun = 0; k < f->n; k++) {
        if (f->tasks[k].position > 0 || where[k] < begun) continue;
        uint32_t old = where[k], number = begun++;
        for (uint32_t o = 0; o < f->n; o++) /* a swap, so that all others keep distinct numbers */
            where[o] = where[o] == old ? number : where[o] == number ? old : where[o];
    }
}

enum status formulation_values(const struct formulation *f, const struct timetable *table, double *x,
                               struct error *err)
{
    TRY(timetable_check(f->in, table, err));
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
            uint32_t z = last ? FORMULATION_NO_COLUMN : f->pairs[(size_t)k * f->n + next];
            if (z != FORMULATION_NO_COLUMN) x[z] = 1;
        }
    if (f->kind != FORMULATION_TIME_INDEXED) x[f->makespan] = (double)table->value;
    if (f->kind == FORMULATION_DISJUNCTIVE) renumber_devices(f, where);
    for (uint32_t k = 0; k < f->n; k++) {
        const struct formulation_task *t = &f->tasks[k];
        if (f->kind != FORMULATION_TIME_INDEXED) {
            x[t->start] = (double)starts[k];
        } else {
            for (int64_t at = starts[k]; at < f->limit - t->tail; at++)
                x[f->steps[k] + (uint32_t)(at - t->head)] = 1;
        }
        if (f->kind != FORMULATION_DISJUNCTIVE) continue;
        x[f->devices[(size_t)k * f->in->device_count + where[k]]] = 1;
        for (uint32_t j = 0; j < f->n; j++)
            if (f->pairs[(size_t)j * f->n + k] != FORMULATION_NO_COLUMN)
                x[f->pairs[(size_t)j * f->n + k]] = starts[j] + f->tasks[j].compute <= starts[k];
    }
out:
    free(starts);
    free(where);
    return err->status;
}

/* --- values as a schedule -------------------------------------------------------------------- */

struct formulation_schedule_ordered {
    int64_t start;
    uint32_t task;
};

static int compare_ordered(const void *a, const void *b)
{
    const struct formulation_schedule_ordered *x = a, *y = b;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    return (x->task > y->task) - (x->task < y->task);
}

static int64_t start_in(const struct formulation *f, const double *x, uint32_t k)
{
    const struct formulation_task *t = &f->tasks[k];
    if (f->kind != FORMULATION_TIME_INDEXED) return (int64_t)llround(x[t->start]);
    int64_t at = t->head;
    while (at < f->limit - t->tail && x[f->steps[k] + (uint32_t)(at - t->head)] < 0.5) at++;
    return at;
}

/* Finds the device of each task: by paths, by x, or any free one. */
static void find_devices(const struct formulation *f, const double *x, const struct formulation_schedule_ordered *order,
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
                if (f->pairs[(size_t)j * f->n + k] != FORMULATION_NO_COLUMN && x[f->pairs[(size_t)j * f->n + k]] > 0.5)
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
    struct formulation_schedule_ordered *order = alloc_zeroed(f->n, sizeof *order);
    uint32_t *where = alloc_zeroed(f->n, sizeof *where), *next = alloc_zeroed(f->in->job_count, sizeof *next);
    if (!order || !where || !next) {
        error_memory(err, "a schedule", f->n * sizeof *order);
        goto out;
    }
    for (uint32_t k = 0; k < f->n; k++) order[k] = (struct formulation_schedule_ordered){start_in(f, x, k), k};
    qsort(order, f->n, sizeof *order, compare_ordered);
    find_devices(f, x, order, where);
    for (uint32_t o = 0; o < f->n; o++) {
        const struct formulation_task *task = &f->tasks[order[o].task];
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
