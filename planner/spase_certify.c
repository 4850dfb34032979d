/* A schedule and its certificate: each method in turn, until the gap is closed; see spase_certify.h. */
#include "planner/spase_certify.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/progress.h"
#include "planner/spase_bound.h"
#include "planner/spase_branch.h"
#include "planner/spase_formulation.h"
#include "planner/spase_search.h"

const char *const spase_proof_names[SPASE_PROOF_COUNT] = {"longest", "area", "scaled", "refutation", "allotment",
                                                          "flow"};

static const double bound_share = 0.25; /* of the search's time, for bounds */

struct proof {
    const struct spase *in;
    const struct spase_certify_options *options;
    struct spase_certificate made;
    struct spase_step *steps;
};

static void raise_bound(struct proof *p, int64_t bound, enum spase_proof by)
{
    if (bound <= p->made.bound) return;
    p->made.bound = bound;
    p->made.proved_by = by;
}

static enum status find(struct proof *p, struct error *err)
{
    const struct spase_certify_options *options = p->options;
    struct spase_certificate *made = &p->made;
    double started = clock_s(), until_s = HUGE_VAL, bounds_until_s = HUGE_VAL;
    if (options->search_limit_s > 0) {
        until_s = started + options->search_limit_s;
        bounds_until_s = started + bound_share * options->search_limit_s;
    }
    struct spase_search_options search = {.seed = options->seed, .until_s = until_s};
    struct spase_bounds bounds;
    uint64_t iterations = options->iterations ? options->iterations : 200000;
    if (spase_search(p->in, &search, false, p->steps, &made->value, &made->iterations, err) ||
        spase_bounds_make(p->in, made->value, bounds_until_s, &bounds, err))
        return err->status;
    made->bound_s = clock_s() - started;
    static_assert((int)SPASE_PROOF_SCALED == (int)SPASE_BOUND_SCALED, "bounds are proofs of the same number");
    raise_bound(p, spase_bounds_best(&bounds), (enum spase_proof)bounds.best);
    search.iterations = iterations;
    search.bound = made->bound;
    if (spase_search(p->in, &search, true, p->steps, &made->value, &made->iterations, err)) return err->status;
    made->searched_value = made->value;
    made->search_s = clock_s() - started - made->bound_s;
    return STATUS_OK;
}

/* Halfway between bound and value, then seven eighths of what is left, then all of it. */
static enum status refute(struct proof *p, struct error *err)
{
    static const int64_t shares[] = {2, 8, INT64_MAX};
    struct spase_certificate *made = &p->made;
    double started = clock_s();
    struct spase_branch_options limits = {.nodes_max = p->options->nodes_max,
                                          .until_s = started + p->options->exact_limit_s};
    for (uint32_t step = 0; made->bound < made->value;) {
        int64_t gap = made->value - made->bound, below = gap / shares[step];
        int64_t limit = made->value - (below > 0 ? below : 1);
        enum spase_answer answer;
        struct spase_schedule schedule = {0};
        if (spase_branch(p->in, limit, &limits, &answer, p->steps, &made->nodes, err)) break;
        if (answer == SPASE_UNKNOWN) break;
        if (answer == SPASE_NO) {
            raise_bound(p, limit + 1, SPASE_PROOF_REFUTED);
            if (step < 2) step++;
            continue;
        }
        if (spase_schedule_make(p->in, p->steps, NULL, &schedule, err)) break;
        assert(schedule.makespan <= limit);
        made->value = schedule.makespan;
        spase_schedule_release(&schedule);
    }
    if (!err->status && made->bound == made->value) made->status = CERTIFICATE_SEARCHED;
    made->exact_s = clock_s() - started;
    return err->status;
}

/* A solver that is missing, fails or lies costs its proof, not the schedule. */
static void ask_solver(struct proof *p)
{
    struct spase_certificate *made = &p->made;
    struct spase_formulation_result result;
    double started = clock_s();
    made->solver = p->options->solver;
    for (enum spase_formulation_kind kind = SPASE_ALLOTMENT;; kind = SPASE_FLOW) {
        double left = p->options->solver_limit_s - (clock_s() - started);
        enum status status = spase_formulation_solve(p->in, kind, made->solver, left, made->bound, p->steps,
                                                     &made->value, &result, &made->solver_error);
        made->solver_nodes += result.nodes;
        if (!status) raise_bound(p, result.bound < made->value ? result.bound : made->value,
                                 kind == SPASE_FLOW ? SPASE_PROOF_FLOW : SPASE_PROOF_ALLOTMENT);
        if (!status && result.proven) raise_bound(p, made->value, SPASE_PROOF_FLOW);
        if (kind == SPASE_FLOW || status || made->bound == made->value) break;
    }
    if (made->bound == made->value) made->status = CERTIFICATE_SOLVED;
    made->solver_s = clock_s() - started;
}

enum status spase_certify(const struct spase *in, const struct spase_certify_options *options,
                          struct spase_schedule *schedule, struct spase_certificate *out, struct error *err)
{
    struct proof p = {.in = in, .options = options, .made = {.status = CERTIFICATE_GAP}};
    struct spase_certificate *made = &p.made;
    p.steps = alloc_zeroed(in->job_count, sizeof *p.steps);
    if (!p.steps) return error_memory(err, "a schedule", in->job_count * sizeof *p.steps);
    if (find(&p, err)) goto out;
    if (made->value == made->bound) made->status = CERTIFICATE_BOUND;
    if (made->value > made->bound && options->exact_limit_s > 0 && spase_branch_takes(in, made->value) &&
        refute(&p, err))
        goto out;
    if (made->value > made->bound && options->solver && options->solver_limit_s > 0) ask_solver(&p);
    if (spase_schedule_make(in, p.steps, NULL, schedule, err)) goto out;
    if (spase_check(in, schedule, err)) {
        spase_schedule_release(schedule);
        goto out;
    }
    assert(schedule->makespan == made->value && made->value >= made->bound);
    *out = *made;
out:
    free(p.steps);
    return err->status;
}

double spase_certificate_gap(const struct spase_certificate *c)
{
    return (double)(c->value - c->bound) / (double)c->bound;
}

const char *spase_certificate_text(const struct spase_certificate *c, char text[CERTIFICATE_TEXT_BYTES])
{
    switch (c->status) {
    case CERTIFICATE_BOUND:
        snprintf(text, CERTIFICATE_TEXT_BYTES, "makespan %" PRId64 " is optimal: it equals the %s bound", c->value,
                 spase_proof_names[c->proved_by]);
        break;
    case CERTIFICATE_SEARCHED:
        snprintf(text, CERTIFICATE_TEXT_BYTES,
                 "makespan %" PRId64 " is optimal: depth-first search left nothing out (%" PRIu64 " nodes)",
                 c->value, c->nodes);
        break;
    case CERTIFICATE_SOLVED:
        snprintf(text, CERTIFICATE_TEXT_BYTES,
                 "makespan %" PRId64 " is optimal: '%.60s' finds nothing below in the %s formulation, within its "
                 "tolerances", c->value, c->solver, spase_proof_names[c->proved_by]);
        break;
    case CERTIFICATE_GAP:
        snprintf(text, CERTIFICATE_TEXT_BYTES,
                 "makespan %" PRId64 " is within %.2f %% of the optimum (%s bound %" PRId64 ")", c->value,
                 100 * spase_certificate_gap(c), spase_proof_names[c->proved_by], c->bound);
        break;
    }
    return text;
}
