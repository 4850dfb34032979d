/*
 * Each value with a spread is moved to 5 % and to 95 % of its error distribution (sim/uncertainty/machine_draw.h), in
 * all its places, and the jobs' plans are simulated again. Errors are independent factors, so squared logarithms are
 * added. The result covers 90 % if times depend smoothly on values. Long jobs are simulated by two minibatches.
 */
#include <math.h>

#include "base/extreme.h"
#include "base/try.h"
#include "cli/capacity/cli_what_if.h"
#include "sim/sim.h"
#include "sim/uncertainty/machine_draw.h"

enum { MINIBATCHES = 2 };

static const double low_share = 0.05, high_share = 0.95;

/* --- values with spreads --------------------------------------------------------------------------- */

static void note_spread(void *context, const struct machine_place *place)
{
    struct what_if_answer *a = context;
    bool link = place->what == MACHINE_LINK || place->what == MACHINE_LINK_LATENCY;
    if (link && a->hardware.links[place->index].paced) return;
    struct what_if_effect *effect = &a->effects[place->what];
    if (!(place->spread > effect->spread)) return;
    effect->spread = place->spread;
    effect->kind = place->kind;
}

void what_if_effects_begin(struct what_if_answer *a)
{
    for (uint32_t f = 0; f < MACHINE_VALUES; f++) a->effects[f] = (struct what_if_effect){0};
    machine_values_visit(&a->hardware, note_spread, a);
}

/* --- simulations -------------------------------------------------------------------------------- */

struct what_if_effects_change {
    uint32_t what; /* enum machine_value; MACHINE_VALUES: no change */
    double share;    /* quantile of its error */
};

static double factor_of(void *context, const struct machine_place *place)
{
    const struct what_if_effects_change *change = context;
    return place->what == change->what ? machine_draw_factor(place->spread, change->share) : 1;
}

static enum status simulate(const struct plan *plan, struct what_if_effects_change change, double *seconds,
                            struct error *err)
{
    struct hardware moved = {0};
    struct sim_result result = {0};
    struct trace trace = {0};
    enum status status = STATUS_OK;
    if (change.what < MACHINE_VALUES) status = machine_values_move(&plan->hardware, factor_of, &change, &moved, err);
    const struct sim_options options = {.hardware = change.what < MACHINE_VALUES ? &moved : NULL};
    if (!status) status = sim_run(plan, &options, &result, &trace, err);
    *seconds = result.makespan_s;
    sim_result_release(&result);
    trace_release(&trace);
    hardware_release(&moved);
    return status;
}

enum status what_if_effects_add(const struct plan *plan, double run_s, struct what_if_answer *a, struct error *err)
{
    double before_s;
    TRY(simulate(plan, (struct what_if_effects_change){.what = MACHINE_VALUES}, &before_s, err));
    for (uint32_t f = 0; f < MACHINE_VALUES; f++) {
        struct what_if_effect *effect = &a->effects[f];
        bool cost = machine_value_is_cost(f);
        double better_s, worse_s;
        if (!(effect->spread > 0)) continue;
        TRY(simulate(plan, (struct what_if_effects_change){f, cost ? low_share : high_share}, &better_s, err));
        TRY(simulate(plan, (struct what_if_effects_change){f, cost ? high_share : low_share}, &worse_s, err));
        effect->better_s += run_s * better_s / before_s;
        effect->worse_s += run_s * worse_s / before_s;
    }
    return STATUS_OK;
}

enum status what_if_effects_of_job(const struct job *job, const struct what_if_way *way, double run_s,
                                   struct what_if_answer *a, struct error *err)
{
    struct plan plan = {0};
    enum status status = what_if_plan(&a->hardware, job, way, min_u64(job->minibatches, MINIBATCHES), &plan, err);
    if (!status) status = what_if_effects_add(&plan, run_s, a, err);
    plan_release(&plan);
    return status;
}

void what_if_effects_end(struct what_if_answer *a)
{
    double gain = 0, loss = 0; /* squares of logarithms */
    for (uint32_t f = 0; f < MACHINE_VALUES; f++) {
        const struct what_if_effect *effect = &a->effects[f];
        if (!(effect->spread > 0)) continue;
        double better = fmin(0, log(effect->better_s / a->run_s)), worse = fmax(0, log(effect->worse_s / a->run_s));
        gain += better * better;
        loss += worse * worse;
    }
    a->low_s = a->run_s * exp(-sqrt(gain));
    a->high_s = a->run_s * exp(sqrt(loss));
}
