/* See chain_certify.h: each method in turn, until the gap is closed. */
#include "planner/chain_certify.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/progress.h"
#include "planner/chain_check.h"
#include "planner/chain_formulation.h"
#include "planner/chain_search.h"

enum { NARROW = 1024, WIDTH_FACTOR = 4 };
static const double solver_share = 0.5; /* of the time that is left when GLPK is asked */

struct certifying {
    const struct chain *chain;
    const struct chain_certify_options *options;
    struct chain_certificate made;
    uint8_t *choices, *scratch;
    double until_s;
};

/* One of the first two always fits a chain that chain_finish() accepts. */
static enum status try_rules(struct certifying *c, struct error *err)
{
    bool found = false;
    for (uint32_t rule = 0; rule < CHAIN_RULES; rule++) {
        struct chain_certificate *made = &c->made;
        if (found && clock_s() >= c->until_s) break;
        if (chain_rule_run(c->chain, (enum chain_rule)rule, c->scratch, &made->rule_values[rule],
                           &made->rule_fits[rule], err))
            return err->status;
        if (!made->rule_fits[rule] || (found && made->rule_values[rule] >= made->value)) continue;
        made->value = made->rule_values[rule];
        memcpy(c->choices, c->scratch, c->chain->layer_count);
        found = true;
    }
    assert(found);
    return STATUS_OK;
}

/* States, the widths from `width_min` on. */
static enum status search(struct certifying *c, const struct chain_bound *bound, uint32_t width_min,
                          uint32_t width_max, struct error *err)
{
    struct chain_search_options options = {.width_min = width_min,
                                           .width_max = width_max,
                                           .until_s = c->until_s,
                                           .memory_bytes = c->options->memory_bytes};
    struct chain_search_result result;
    double started = clock_s();
    if (chain_search(c->chain, bound, &options, c->choices, &c->made.value, &result, err)) return err->status;
    c->made.search_s += clock_s() - started;
    c->made.states += result.states;
    if (result.bound > c->made.bound) {
        c->made.bound = result.bound;
        c->made.proved_by = "search";
    }
    if (result.proven)
        c->made.status = c->made.value == c->made.price_bound ? CERTIFICATE_BOUND : CERTIFICATE_SEARCHED;
    return STATUS_OK;
}

/* A solver that fails costs its proof, not the schedule. */
static void solve_fluid(struct certifying *c, double limit_s)
{
    struct milp *milp = chain_fluid(c->chain);
    struct milp_result result = {0};
    if (!milp) return;
    struct milp_options options = {.limit_s = limit_s, .cuts = true, .solver = c->options->solver};
    c->made.solver = options.solver ? options.solver : "glpk";
    if (milp_solve(milp, &options, &result, &c->made.solver_error)) {}
    c->made.nodes = result.nodes;
    if (result.bounded) c->made.fluid_bound = chain_bound_round(c->chain, result.bound);
    c->made.fluid_proven = result.status == MILP_OPTIMAL;
    if (c->made.fluid_bound > c->made.value) c->made.fluid_bound = c->made.value; /* its tolerances */
    if (c->made.fluid_bound > c->made.bound) {
        c->made.bound = c->made.fluid_bound;
        c->made.proved_by = "fluid";
        if (c->made.bound == c->made.value) c->made.status = CERTIFICATE_SOLVED;
    }
    free(result.x);
    milp_destroy(milp);
}

/* Narrow searches, which close most chains of equal layers; GLPK, which closes more of those whose
 * layers differ; then wide ones. */
static enum status prove(struct certifying *c, struct error *err)
{
    struct chain_bound bound = {0};
    uint32_t widest = c->options->width_max, narrow = widest > 0 && widest < NARROW ? widest : NARROW;
    if (chain_bound_make(c->chain, c->until_s - clock_s(), &bound, err)) return err->status;
    c->made.bound = c->made.price_bound = chain_bound_ticks(c->chain, &bound);
    c->made.proved_by = "prices";
    if (search(c, &bound, 0, narrow, err)) goto out;
    double left_s = c->until_s - clock_s();
    if (c->made.status == CERTIFICATE_GAP && left_s > 0) solve_fluid(c, solver_share * left_s);
    if (c->made.status == CERTIFICATE_GAP && c->made.value > c->made.bound && widest != narrow &&
        clock_s() < c->until_s && search(c, &bound, WIDTH_FACTOR * NARROW, widest, err))
        goto out;
    if (c->made.status == CERTIFICATE_GAP && c->made.value == c->made.bound) /* found at last */
        c->made.status = CERTIFICATE_SOLVED;
out:
    chain_bound_release(&bound);
    return err->status;
}

enum status chain_certify(const struct chain *chain, const struct chain_certify_options *options,
                          struct chain_schedule *schedule, struct chain_certificate *out,
                          struct error *err)
{
    double started = clock_s();
    struct certifying c = {.chain = chain,
                           .options = options,
                           .made = {.status = CERTIFICATE_GAP, .bound = chain->compute,
                                    .proved_by = "computation"},
                           .choices = alloc_zeroed(chain->layer_count, 1),
                           .scratch = alloc_zeroed(chain->layer_count, 1),
                           .until_s = started + options->limit_s};
    if (!c.choices || !c.scratch) {
        error_memory(err, "choices", chain->layer_count);
        goto out;
    }
    if (try_rules(&c, err)) goto out;
    bool whole = c.made.value == chain->compute;
    if (whole) c.made.status = CERTIFICATE_BOUND;
    if (!whole && clock_s() < c.until_s) {
        if (chain_improve(chain, c.until_s, c.choices, &c.made.value, err) || prove(&c, err)) goto out;
    }
    if (chain_schedule_make(chain, c.choices, schedule, err)) goto out;
    if (chain_check(chain, schedule, err)) {
        chain_schedule_release(schedule);
        goto out;
    }
    assert(schedule->makespan == c.made.value);
    assert(c.made.value >= c.made.bound);
    c.made.seconds = clock_s() - started;
    *out = c.made;
out:
    free(c.choices);
    free(c.scratch);
    return err->status;
}

double chain_certificate_gap(const struct chain_certificate *c)
{
    return (double)(c->value - c->bound) / (double)c->bound; /* at least 2: passes take a tick */
}

const char *chain_certificate_text(const struct chain_certificate *c, char text[CERTIFICATE_TEXT_BYTES])
{
    switch (c->status) {
    case CERTIFICATE_BOUND:
        snprintf(text, CERTIFICATE_TEXT_BYTES, "makespan %" PRId64 " is optimal: it equals the bound of %s",
                 c->value, c->proved_by);
        break;
    case CERTIFICATE_SEARCHED:
        snprintf(text, CERTIFICATE_TEXT_BYTES,
                 "makespan %" PRId64 " is optimal: the search left nothing out (%" PRIu64 " states)",
                 c->value, c->states);
        break;
    case CERTIFICATE_SOLVED:
        snprintf(text, CERTIFICATE_TEXT_BYTES,
                 "makespan %" PRId64 " is optimal: '%.60s' finds nothing below in the fluid program, within "
                 "its tolerances", c->value, c->solver);
        break;
    case CERTIFICATE_GAP:
        snprintf(text, CERTIFICATE_TEXT_BYTES,
                 "makespan %" PRId64 " is within %.2f %% of the optimum (bound of %s %" PRId64 ")", c->value,
                 100 * chain_certificate_gap(c), c->proved_by, c->bound);
        break;
    }
    return text;
}
