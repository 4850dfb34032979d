/* Each method in turn, until the gap is closed. */
#include "planner/saturn/spase/spase_certify.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/process/clock.h"
#include "base/try.h"
#include "planner/saturn/spase/spase_bound.h"
#include "planner/saturn/spase/spase_branch.h"
#include "planner/saturn/spase/spase_formulation.h"
#include "planner/saturn/spase/spase_search.h"

const char *const spase_proof_names[SPASE_PROOF_COUNT] = {"longest", "area", "scaled", "refutation", "allotment",
                                                          "flow"};

static const double bound_share = 0.25; /* of the search's time, for bounds */
static const double early_s = 0.5;      /* with less time, an early proof would cost the search too much */

static const double settled = 0.01;     /* a gap that may stay if the rest is too hard */

enum { EARLY_ITERATIONS = 20000, EARLY_NODES = 30000, HARDER = 6, MUCH_HARDER = 30 };

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

/* Computes bounds after a first list, within a share of the search's time; then searches. */
static enum status find(struct proof *p, uint64_t iterations, double until_s, struct error *err)
{
    struct spase_certificate *made = &p->made;
    struct spase_search_options search = {.seed = p->options->seed, .until_s = until_s};
    double started = clock_s();
    uint64_t done = 0;
    if (made->bound == 0) {
        struct spase_bounds bounds;
        double bounds_until_s = isinf(until_s) ? until_s : started + bound_share * (until_s - started);
        TRY(spase_search(p->in, &search, false, p->steps, &made->value, &done, err));
        TRY(spase_bounds_make(p->in, made->value, bounds_until_s, &bounds, err));
        static_assert((int)SPASE_PROOF_SCALED == (int)SPASE_BOUND_SCALED, "bounds are proofs of the same number");
        raise_bound(p, spase_bounds_best(&bounds), (enum spase_proof)bounds.best);
        made->bound_s = clock_s() - started;
        started = clock_s();
    }
    search.iterations = iterations;
    search.bound = made->bound;
    TRY(spase_search(p->in, &search, true, p->steps, &made->value, &done, err));
    made->iterations += done;
    made->searched_value = made->value;
    made->search_s += clock_s() - started;
    return STATUS_OK;
}

/* Tries halfway between bound and value; then the whole rest if there is time for harder values, which take much longer
 * if the gap is open (of 12 jobs, the last percent took 15 to 30 times the time of everything below); else halfway
 * again. */
static enum status refute(struct proof *p, uint64_t nodes_max, double until_s, struct error *err)
{
    struct spase_certificate *made = &p->made;
    double started = clock_s();
    struct spase_branch_options limits = {.nodes_max = nodes_max, .until_s = until_s};
    for (bool all = false; made->bound < made->value;) {
        int64_t below = all ? 1 : (made->value - made->bound) / 2;
        int64_t limit = made->value - (below > 0 ? below : 1);
        double asked = clock_s();
        enum spase_answer answer;
        struct spase_schedule schedule = {0};
        if (spase_branch(p->in, limit, &limits, &answer, p->steps, &made->nodes, err)) break;
        if (answer == SPASE_UNKNOWN) break;
        if (answer == SPASE_NO) {
            raise_bound(p, limit + 1, SPASE_PROOF_REFUTED);
            bool small = (double)(made->value - made->bound) <= settled * (double)made->bound;
            all = (small ? HARDER : MUCH_HARDER) * (clock_s() - asked) <= until_s - clock_s();
            continue;
        }
        if (spase_schedule_make(p->in, p->steps, NULL, &schedule, err)) break;
        assert(schedule.makespan <= limit);
        made->value = schedule.makespan;
        spase_schedule_release(&schedule);
    }
    if (!err->status && made->bound == made->value) made->status = CERTIFICATE_SEARCHED;
    made->exact_s += clock_s() - started;
    return err->status;
}

/* A missing, failing or wrong solver costs its proof, not the schedule. */
static void ask_solver(struct proof *p, double until_s)
{
    struct spase_certificate *made = &p->made;
    struct spase_formulation_result result;
    double started = clock_s();
    made->solver = p->options->solver;
    for (enum spase_formulation_kind kind = SPASE_ALLOTMENT;; kind = SPASE_FLOW) {
        double left = until_s - clock_s();
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

void spase_certify_divide(const struct spase *in, double limit_s, struct spase_certify_options *options)
{
    /* beyond some twenty jobs the depth-first search proves little, and briefly gains less than the search */
    double exact = !spase_branch_takes(in, in->horizon) ? 0 : in->job_count > 20 ? 0.1 : limit_s < early_s ? 0.2 : 0.93;
    double solver = options->solver ? 0.3 : 0;
    options->early = limit_s >= early_s;
    options->exact_limit_s = limit_s * exact * (1 - solver);
    options->solver_limit_s = limit_s * solver;
    options->search_limit_s = limit_s * (1 - exact) * (1 - solver);
}

enum status spase_certify(const struct spase *in, const struct spase_certify_options *options,
                          struct spase_schedule *schedule, struct spase_certificate *out, struct error *err)
{
    struct proof p = {.in = in, .options = options, .made = {.status = CERTIFICATE_GAP}};
    struct spase_certificate *made = &p.made;
    p.steps = alloc_zeroed(in->job_count, sizeof *p.steps);
    if (!p.steps) return error_memory(err, "a schedule", in->job_count * sizeof *p.steps);
    double until_s = clock_s() + options->search_limit_s;
    uint64_t iterations = options->iterations ? options->iterations : 200000;
    bool exact = spase_branch_takes(in, in->horizon);
    if (options->early && exact) {
        if (find(&p, iterations < EARLY_ITERATIONS ? iterations : EARLY_ITERATIONS, until_s, err) ||
            (made->value > made->bound && refute(&p, EARLY_NODES, until_s, err)))
            goto out;
    }
    if ((made->bound == 0 || made->value > made->bound) && find(&p, iterations, until_s, err)) goto out;
    if (options->exact_limit_s > 0 && exact) {
        until_s = certify_step_end_s(until_s, options->exact_limit_s);
        if (made->value > made->bound && refute(&p, options->nodes_max, until_s, err)) goto out;
    }
    if (made->value > made->bound && options->solver && options->solver_limit_s > 0)
        ask_solver(&p, certify_step_end_s(until_s, options->solver_limit_s));
    if (made->value == made->bound && made->proved_by <= SPASE_PROOF_SCALED) made->status = CERTIFICATE_BOUND;
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
    return certificate_claim_gap(c->value, c->bound);
}

const char *spase_certificate_text(const struct spase_certificate *c, char text[CERTIFICATE_TEXT_BYTES])
{
    char bound[40], program[40];
    snprintf(bound, sizeof bound, "%s bound", spase_proof_names[c->proved_by]);
    snprintf(program, sizeof program, "%s formulation", spase_proof_names[c->proved_by]);
    const struct certificate_claim claim = {.status = c->status, .objective = "makespan", .value = c->value,
                                            .bound = c->bound, .bound_name = bound, .search = "depth-first search",
                                            .unit = "nodes", .work = c->nodes, .solver = c->solver, .program = program};
    return certificate_claim_text(&claim, text);
}
