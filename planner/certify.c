/* A schedule and its certificate: each method in turn, until the gap is closed; see certify.h. */
#include "planner/certify.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/progress.h"
#include "planner/branch_bound.h"
#include "planner/formulation.h"
#include "planner/schedule_search.h"
#include "planner/timetable_check.h"

static enum status prove(const struct instance *in, const struct instance_bounds *bounds,
                         const struct certify_options *options, struct dispatch_step *steps,
                         struct certificate *made, struct error *err)
{
    double started = clock_s();
    struct branch_bound_options limits = {.nodes_max = options->nodes_max,
                                          .until_s = started + options->exact_limit_s};
    struct branch_bound_result result;
    if (branch_bound_run(in, bounds, &limits, steps, &made->value, &result, err)) return err->status;
    made->nodes = result.nodes;
    made->exact_s = clock_s() - started;
    if (result.proven) {
        made->status = CERTIFICATE_SEARCHED;
        made->bound = made->value;
    }
    return STATUS_OK;
}

/* The one that suits: set-ups ask for arcs; without, few ticks for steps of time. */
static enum formulation_kind suitable(const struct instance *in, int64_t value)
{
    for (uint32_t u = 0; u < in->unit_count; u++)
        if (in->units[u].in > 0 || in->units[u].out > 0) return FORMULATION_ADJACENCY;
    return value * in->task_count <= FORMULATION_CELLS_MAX / 10 ? FORMULATION_TIME_INDEXED
                                                               : FORMULATION_DISJUNCTIVE;
}

/* A solver that is missing, fails or lies costs its proof, not the schedule. */
static void ask_solver(const struct instance *in, const struct instance_bounds *bounds,
                       const struct certify_options *options, struct dispatch_step *steps,
                       struct certificate *made)
{
    enum formulation_kind kind = suitable(in, made->value);
    struct formulation_result result;
    made->solver = options->solver;
    snprintf(made->formulation, sizeof made->formulation, "%s", formulation_names[kind]);
    if (formulation_solve(in, bounds, kind, options->solver, options->solver_limit_s, steps,
                          &made->value, &result, &made->solver_error)) {}
    made->solver_s = result.seconds;
    if (!result.proven) return;
    made->status = CERTIFICATE_SOLVED;
    made->bound = made->value;
}

enum status certify(const struct instance *in, const struct certify_options *options,
                    struct timetable *timetable, struct certificate *out, struct error *err)
{
    struct instance_bounds bounds = {0};
    struct certificate made = {.status = CERTIFICATE_GAP};
    double started = clock_s();
    struct dispatch_step *steps = alloc_zeroed(in->task_count, sizeof *steps);
    if (!steps) return error_memory(err, "a schedule", in->task_count * sizeof *steps);
    if (instance_bounds_make(in, &bounds, err)) goto out;
    made.bound_s = clock_s() - started;
    made.bound = instance_bounds_best(&bounds);
    made.proved_by = bounds.best;
    started = clock_s();
    struct schedule_search_options search = {
        .seed = options->seed,
        .iterations = options->iterations ? options->iterations : 400,
        .until_s = options->search_limit_s > 0 ? started + options->search_limit_s : HUGE_VAL};
    if (schedule_search(in, &bounds, &search, steps, &made.value, &made.iterations, err)) goto out;
    made.searched_value = made.value;
    made.search_s = clock_s() - started;
    if (made.value > made.bound && options->exact_limit_s > 0 && branch_bound_takes(in) &&
        prove(in, &bounds, options, steps, &made, err))
        goto out;
    if (made.value > made.bound && options->solver && options->solver_limit_s > 0)
        ask_solver(in, &bounds, options, steps, &made);
    if (made.value == instance_bounds_best(&bounds)) made.status = CERTIFICATE_BOUND;
    if (timetable_make(in, steps, timetable, err)) goto out;
    if (timetable->value < made.value) made.value = timetable->value; /* without needless waiting */
    if (timetable_check(in, timetable, err)) {
        timetable_release(timetable);
        goto out;
    }
    assert(made.value >= made.bound);
    *out = made;
out:
    free(steps);
    instance_bounds_release(&bounds);
    return err->status;
}

double certificate_gap(const struct certificate *c)
{
    if (c->value == c->bound) return 0;
    return (double)(c->value - c->bound) / (c->bound > 0 ? (double)c->bound : 1);
}

const char *certificate_text(const struct instance *in, const struct certificate *c,
                             char text[CERTIFICATE_TEXT_BYTES])
{
    const char *objective = instance_objective_names[in->objective];
    switch (c->status) {
    case CERTIFICATE_BOUND:
        snprintf(text, CERTIFICATE_TEXT_BYTES, "%s %" PRId64 " is optimal: it equals the %s bound",
                 objective, c->value, instance_bound_names[c->proved_by]);
        break;
    case CERTIFICATE_SEARCHED:
        snprintf(text, CERTIFICATE_TEXT_BYTES,
                 "%s %" PRId64 " is optimal: branch and bound left nothing out (%" PRIu64 " nodes)",
                 objective, c->value, c->nodes);
        break;
    case CERTIFICATE_SOLVED:
        snprintf(text, CERTIFICATE_TEXT_BYTES,
                 "%s %" PRId64 " is optimal: '%.60s' finds nothing below in the %s formulation, within its "
                 "tolerances", objective, c->value, c->solver, c->formulation);
        break;
    case CERTIFICATE_GAP:
        snprintf(text, CERTIFICATE_TEXT_BYTES,
                 "%s %" PRId64 " is within %.2f %% of the optimum (%s bound %" PRId64 ")", objective,
                 c->value, 100 * certificate_gap(c), instance_bound_names[c->proved_by], c->bound);
        break;
    }
    return text;
}
