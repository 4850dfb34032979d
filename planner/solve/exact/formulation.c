/*
 * Shard schedules as mixed-integer programs: the instances that are accepted, and solving; see formulation.h.
 */
#include "planner/solve/exact/formulation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/process/clock.h"
#include "base/try.h"
#include "planner/solve/exact/formulation_state.h"
#include "planner/solve/instance/timetable_check.h"

const char *const formulation_names[FORMULATION_COUNT] = {"disjunctive", "adjacency", "time-indexed"};

enum formulation_kind formulation_suitable(const struct instance *in, int64_t limit)
{
    for (uint32_t u = 0; u < in->unit_count; u++)
        if (in->units[u].in > 0 || in->units[u].out > 0) return FORMULATION_ADJACENCY;
    return limit <= FORMULATION_CELLS_MAX / 10 / in->task_count ? FORMULATION_TIME_INDEXED
                                                                : FORMULATION_DISJUNCTIVE;
}

/* --- creation -------------------------------------------------------------------------------- */

static enum status check_instance(const struct instance *in, enum formulation_kind kind, int64_t limit,
                                  struct error *err)
{
    if (in->streams)
        return error_set(err, STATUS_LIMIT, "formulations know no streams (planner/solve/exact/stream_program.h does)");
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
    TRY(check_instance(in, kind, limit, err));
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
    formulation_write_rows(f);
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

/* --- solving --------------------------------------------------------------------------------- */

/* Adopts the solver's schedule if it is as good as the solver says. */
static enum status read_solution(const struct formulation *f, const double *x, struct dispatch_step *steps,
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
        if (solved.found && !read_solution(f, solved.x, steps, value, err)) {
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
