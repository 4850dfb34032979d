/* See certify.h. */
#include "planner/certify.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/progress.h"
#include "planner/branch_bound.h"
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
    case CERTIFICATE_GAP:
        snprintf(text, CERTIFICATE_TEXT_BYTES,
                 "%s %" PRId64 " is within %.2f %% of the optimum (%s bound %" PRId64 ")", objective,
                 c->value, 100 * certificate_gap(c), instance_bound_names[c->proved_by], c->bound);
        break;
    }
    return text;
}
