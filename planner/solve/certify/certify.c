/* A schedule and its certificate: each method in turn, until the gap is closed; see certify.h. */
#include "planner/solve/certify/certify.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/process/clock.h"
#include "base/try.h"
#include "planner/solve/bounds/priced_bound.h"
#include "planner/solve/certify/search_portfolio.h"
#include "planner/solve/exact/branch_bound.h"
#include "planner/solve/exact/formulation.h"
#include "planner/solve/exact/label_setting.h"
#include "planner/solve/exact/stream_branch.h"
#include "planner/solve/exact/stream_solve.h"
#include "planner/solve/instance/timetable_check.h"

enum { ROUND_ITERATIONS = 400, EARLY_ITERATIONS = 60, EARLY_NODES = 100000 };
static const double early_fit_share = 0.1; /* fitting prices would take all the time of a short search */

/* Limits of tasks for label setting, and of nodes of branch and bound before it, which is faster for the smallest
 * instances. Beyond, fitting prices takes long and proves nothing. */
enum { LABELS_TASKS = 64, DEPTH_NODES = 2000 };

/* The share of the proofs' time for the priced bound. */
static const double price_share = 0.3;

/* --- time ------------------------------------------------------------------------------------ */

/* Branch and bound proves in seconds or never. A solver is the last resort. */
void certify_divide(const struct instance *in, double limit_s, struct certify_options *options)
{
    bool exact = branch_bound_takes(in) || stream_branch_takes(in), solver = options->solver != NULL;
    options->early = exact && limit_s > 0;
    options->search_limit_s = limit_s * (exact && solver ? 0.3 : exact || solver ? 0.4 : 1);
    options->exact_limit_s = exact ? limit_s * (solver ? 0.3 : 0.6) : 0;
    options->solver_limit_s = solver ? limit_s * (exact ? 0.4 : 0.6) : 0;
}

double certify_step_end_s(double before_s, double limit_s)
{
    return (before_s < HUGE_VAL ? before_s : clock_s()) + limit_s;
}

/* --- the steps ------------------------------------------------------------------------------- */

static enum status search(const struct instance *in, const struct instance_bounds *bounds,
                          const struct schedule_search_options *options, uint32_t searches,
                          struct dispatch_step *steps, struct certificate *made, struct error *err)
{
    double started = clock_s();
    TRY(search_portfolio(in, bounds, options, searches ? searches : 1, steps, &made->value, &made->iterations, err));
    made->searched_value = made->value;
    made->search_s += clock_s() - started;
    return STATUS_OK;
}

static enum status prove_streams(const struct instance *in, uint64_t nodes_max, double until_s,
                                 struct dispatch_step *steps, struct certificate *made, bool *proven, struct error *err)
{
    const struct stream_branch_options limits = {.nodes_max = nodes_max, .until_s = until_s};
    uint64_t nodes;
    TRY(stream_branch(in, made->bound, &limits, steps, &made->value, proven, &nodes, err));
    made->nodes += nodes;
    return STATUS_OK;
}

/* Returns true if branch and bound takes the instance. */
static bool is_provable(const struct instance *in) { return branch_bound_takes(in) || stream_branch_takes(in); }

static enum status prove(const struct instance *in, const struct instance_bounds *bounds,
                         bool labels, double fit_share, uint64_t nodes_max, double until_s, struct dispatch_step *steps,
                         struct certificate *made, struct error *err)
{
    double started = clock_s();
    bool proven = false;
    if (in->streams) TRY(prove_streams(in, nodes_max, until_s, steps, made, &proven, err));
    struct branch_bound_options depth = {.nodes_max = labels ? DEPTH_NODES : nodes_max, .until_s = until_s};
    struct branch_bound_result branched = {.proven = proven};
    if (!in->streams) TRY(branch_bound_run(in, bounds, &depth, steps, &made->value, &branched, err));
    made->nodes += branched.nodes;
    proven = branched.proven;
    if (labels && !proven && made->value > made->bound) {
        struct label_setting_options breadth = {.nodes_max = nodes_max, .until_s = until_s, .fit_share = fit_share};
        struct label_setting_result result;
        TRY(label_setting_run(in, bounds, &breadth, steps, &made->value, &result, err));
        made->nodes += result.nodes;
        proven = result.proven;
    }
    made->exact_s += clock_s() - started;
    if (proven) {
        made->status = CERTIFICATE_SEARCHED;
        made->bound = made->value;
    }
    return STATUS_OK;
}

/* Raises the bound if a gap is left. */
static enum status price(const struct instance *in, struct instance_bounds *bounds, double until_s,
                         struct certificate *made, struct error *err)
{
    double started = clock_s();
    int64_t bound;
    if (!priced_bound_takes(in)) return STATUS_OK;
    TRY(priced_bound(in, bounds, made->value, until_s, &bound, err));
    made->exact_s += clock_s() - started;
    if (bound <= made->bound) return STATUS_OK;
    bounds->value[INSTANCE_BOUND_PRICED] = made->bound = bound;
    bounds->best = made->proved_by = INSTANCE_BOUND_PRICED;
    return STATUS_OK;
}

/* Asks about all tasks where they are few, else about windows (stream_solve.h). */
static void ask_solver_streams(const struct instance *in, const struct certify_options *options, double until_s,
                               struct dispatch_step *steps, struct certificate *made)
{
    const struct stream_solve_options how = {.solver = options->solver, .until_s = until_s, .windows = UINT32_MAX};
    struct stream_solve_result result;
    if (stream_solve(in, made->bound, &how, steps, &made->value, &result, &made->solver_error)) {}
    snprintf(made->formulation, sizeof made->formulation, "%s", result.whole ? "streams" : "windows of streams");
    made->solver_s = result.seconds;
    made->nodes += result.nodes;
    if (!result.proven) return;
    made->status = CERTIFICATE_SOLVED;
    made->bound = made->value;
}

/* A missing, failing or wrong solver costs its proof, not the schedule. */
static void ask_solver(const struct instance *in, const struct instance_bounds *bounds,
                       const struct certify_options *options, double until_s,
                       struct dispatch_step *steps, struct certificate *made)
{
    made->solver = options->solver;
    if (in->streams) {
        ask_solver_streams(in, options, until_s, steps, made);
        return;
    }
    enum formulation_kind kind = formulation_suitable(in, made->value);
    struct formulation_result result;
    snprintf(made->formulation, sizeof made->formulation, "%s", formulation_names[kind]);
    if (formulation_solve(in, bounds, kind, options->solver, until_s - clock_s(), steps,
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
    double started = clock_s(), until_s = started + options->search_limit_s;
    bool labels = label_setting_takes(in) && in->task_count <= LABELS_TASKS;
    struct dispatch_step *steps = alloc_zeroed(in->task_count, sizeof *steps);
    if (!steps) return error_memory(err, "a schedule", in->task_count * sizeof *steps);
    if (instance_bounds_make(in, &bounds, err)) goto out;
    made.bound_s = clock_s() - started;
    made.bound = instance_bounds_best(&bounds);
    made.proved_by = bounds.best;
    struct schedule_search_options searching = {.seed = options->seed, .until_s = until_s};
    uint32_t iterations = options->iterations ? options->iterations : ROUND_ITERATIONS;
    searching.iterations = options->early && iterations > EARLY_ITERATIONS ? EARLY_ITERATIONS : iterations;
    if (search(in, &bounds, &searching, options->searches, steps, &made, err)) goto out;
    if (options->early && made.value > made.bound && is_provable(in) &&
        prove(in, &bounds, labels, early_fit_share, EARLY_NODES, until_s, steps, &made, err))
        goto out;
    do { /* without a number of iterations, in rounds until the time is over */
        searching.made = made.iterations;
        searching.iterations = iterations;
        if (made.value > made.bound && made.iterations < iterations &&
            search(in, &bounds, &searching, options->searches, steps, &made, err))
            goto out;
        iterations += ROUND_ITERATIONS;
    } while (options->iterations == 0 && until_s < HUGE_VAL && made.value > made.bound && clock_s() < until_s);
    if (options->exact_limit_s > 0 && is_provable(in)) {
        double now = clock_s();
        until_s = certify_step_end_s(until_s, options->exact_limit_s);
        if (price(in, &bounds, now + price_share * (until_s - now), &made, err)) goto out;
        if (made.value > made.bound && prove(in, &bounds, labels, 1, options->nodes_max, until_s, steps, &made, err))
            goto out;
    }
    if (made.value > made.bound && options->solver && options->solver_limit_s > 0)
        ask_solver(in, &bounds, options, certify_step_end_s(until_s, options->solver_limit_s), steps, &made);
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

double certificate_claim_gap(int64_t value, int64_t bound)
{
    if (value == bound) return 0;
    return (double)(value - bound) / (bound > 0 ? (double)bound : 1);
}

const char *certificate_claim_text(const struct certificate_claim *c, char text[CERTIFICATE_TEXT_BYTES])
{
    size_t length = (size_t)snprintf(text, CERTIFICATE_TEXT_BYTES, "%s %" PRId64 " is ", c->objective, c->value);
    size_t room = CERTIFICATE_TEXT_BYTES - length;
    switch (c->status) {
    case CERTIFICATE_BOUND:
        snprintf(text + length, room, "optimal: it equals the %s", c->bound_name);
        break;
    case CERTIFICATE_SEARCHED:
        snprintf(text + length, room, "optimal: %s left nothing out (%" PRIu64 " %s)", c->search, c->work, c->unit);
        break;
    case CERTIFICATE_SOLVED:
        snprintf(text + length, room, "optimal: '%.60s' finds nothing below in the %s, within its tolerances",
                 c->solver, c->program);
        break;
    case CERTIFICATE_GAP:
        snprintf(text + length, room, "within %.2f %% of the optimum (%s %" PRId64 ")",
                 100 * certificate_claim_gap(c->value, c->bound), c->bound_name, c->bound);
        break;
    }
    return text;
}

double certificate_gap(const struct certificate *c)
{
    return certificate_claim_gap(c->value, c->bound);
}

const char *certificate_text(const struct instance *in, const struct certificate *c,
                             char text[CERTIFICATE_TEXT_BYTES])
{
    char bound[40], program[40];
    snprintf(bound, sizeof bound, "%s bound", instance_bound_names[c->proved_by]);
    snprintf(program, sizeof program, "%s formulation", c->formulation);
    const struct certificate_claim claim = {.status = c->status, .objective = instance_objective_names[in->objective],
                                            .value = c->value, .bound = c->bound, .bound_name = bound,
                                            .search = "branch and bound", .unit = "nodes", .work = c->nodes,
                                            .solver = c->solver, .program = program};
    return certificate_claim_text(&claim, text);
}
