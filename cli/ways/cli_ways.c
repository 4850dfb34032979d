/*
 * The spilled plan comes first: its bound holds for all ways, and its operations are the size of the input. Its error
 * is an error of cli_ways(); other refusals are outcomes.
 */
#include "cli/ways/cli_ways.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/extreme.h"
#include "base/process/clock.h"
#include "base/try.h"
#include "cli/ways/cli_milp.h"
#include "cli/ways/cli_optimal.h"
#include "cli/ways/cli_proven.h"
#include "cli/ways/cli_runnable.h"
#include "cli/ways/cli_saturn.h"
#include "models/jobs/job_base.h"
#include "planner/capacity/feasibility_ways.h"
#include "planner/policy/policies.h"
#include "planner/spill/order/schedule_steady.h"
#include "planner/strategy/resident.h"
#include "planner/strategy/resident_subproblem.h"

/*
 * Limits without `thorough`: operations of all plans (500 000 are planned and simulated in a second), where repetitions
 * that plans leave out do not count; units of the search (500 000 a second), and SHORT_SLACK times as many before it is
 * left out; jobs and devices for Saturn; devices of parallel jobs.
 */
enum { SATURN_JOBS_MOST = 64, SATURN_DEVICES_MOST = 16, PARALLEL_DEVICES_MOST = 64 };
static const uint64_t operations_most = 800000, placed_most = 1000000;
/* Plans that end later than CLOCK_SLACK times the best, by the planner's clock, are not simulated. */
enum { CLOCK_SLACK = 2 };

enum { REPEATS_COUNTED = 64 }; /* repetitions of a segment that are planned, checked and simulated one by one */

/* In eighths of the spilled plan's cost: repetitions of resident jobs and of gangs are simulated once. COST_PLANNED: a
 * spilled plan that is seldom simulated. */
enum { COST_SPILLED = 8, COST_RESIDENT = 4, COST_PLANNED = 2, COST_PARALLEL = 1, COST_WHOLE = 8 };

struct ways {
    const struct cli_source *source;
    const struct cli_ways_options *how;
    struct cli_field *field;
    struct hardware hardware;
    struct job_set jobs;
    struct planner_options fixed; /* without a policy */
    uint64_t operations, all_operations; /* of up to REPEATS_COUNTED repetitions, and of all; 0: none */
    uint64_t units, fingerprint;
    uint64_t spent;               /* operations of other plans so far */
    double until_s;               /* 0: no limit */
};

/* --- limits ---------------------------------------------------------------------------------- */

/* Returns true if there is time for a way, else adds an outcome. `cost`: operations; 0: the way has its own limits. */
static bool may_try(struct ways *w, const char *label, uint64_t cost)
{
    if (!cli_field_lacks(w->field, label)) return false;
    if (w->until_s > 0 && w->field->any && clock_s() >= w->until_s) {
        w->field->search.cut_short = true;
        cli_field_note(w->field, label, STATUS_OK, "the time limit was reached before");
        return false;
    }
    if (w->how->thorough || cost == 0 || w->spent + cost <= operations_most) {
        w->spent += cost;
        return true;
    }
    cli_field_note(w->field, label, STATUS_OK,
                   "the jobs are too long to try all ways by default ('--policy all' does)");
    return false;
}

/* Returns the operations of a way of this kind (COST_SPILLED ...). */
static uint64_t cost_of(const struct ways *w, uint64_t kind)
{
    return max_u64(1, w->operations / COST_WHOLE * kind);
}

/* Returns the operations that are planned and simulated one by one. */
static uint64_t count_operations(const struct plan *plan)
{
    struct plan shorter = *plan;
    uint64_t operations = 0;
    shorter.segment_count = 1;
    for (uint32_t s = 0; s < plan->segment_count; s++) {
        struct plan_segment segment = plan->segments[s];
        segment.repeat_count = min_u32(segment.repeat_count, REPEATS_COUNTED);
        shorter.segments = &segment;
        operations += plan_operations(&shorter);
    }
    return operations;
}

static uint64_t count_units(const struct plan *plan)
{
    uint64_t units = 0;
    for (uint32_t s = 0; s < plan->segment_count; s++)
        units += (uint64_t)plan->segments[s].task_count * plan->segments[s].repeat_count;
    return units;
}

/* --- spilled and resident --------------------------------------------------------------------- */

/* Makes the spilled plan. Errors: all but STATUS_INFEASIBLE, which is an outcome. */
static enum status try_spilled(struct ways *w, struct error *err)
{
    struct cli_candidate candidate = {0};
    struct error why = {0};
    enum status status = cli_candidate_make(w->source, &w->fixed, &candidate, &why);
    if (status == STATUS_OK) {
        w->operations = count_operations(&candidate.plan);
        w->all_operations = plan_operations(&candidate.plan);
        w->units = count_units(&candidate.plan);
        w->fingerprint = plan_fingerprint(&candidate.plan);
        cli_field_add(w->field, &candidate, candidate.plan.policy);
    } else if (status == STATUS_INFEASIBLE) {
        cli_field_note(w->field, policy_sharded_lrtf.name, status, why.text);
    } else {
        error_set(err, status, "%s", why.text);
    }
    cli_candidate_release(&candidate);
    return err->status;
}

static bool any_spilled(const struct job_set *jobs)
{
    bool any = false;
    for (uint32_t j = 0; j < jobs->count; j++) any |= !parallel_is_set(&jobs->jobs[j].parallel);
    return any;
}

/* Takes the best by the planner's clock; often an existing outcome. */
static enum status try_resident_placement(struct ways *w, struct error *err)
{
    struct cli_candidate candidate = {0};
    struct error why = {0};
    struct planner_options options = w->fixed;
    options.resident = true;
    if (!resident_allowed(&options) || !any_spilled(&w->jobs)) return STATUS_OK;
    enum status status = cli_candidate_make(w->source, &options, &candidate, &why);
    const char *label = candidate.plan.reservation_count > 0 ? cli_resident_name : candidate.plan.policy;
    bool other = status == STATUS_OK && plan_fingerprint(&candidate.plan) != w->fingerprint;
    if (other && cli_field_lacks(w->field, label))
        cli_field_add(w->field, &candidate, label);
    else if (status == STATUS_INFEASIBLE)
        cli_field_note(w->field, cli_resident_name, status, why.text);
    cli_candidate_release(&candidate);
    return status == STATUS_OK || status == STATUS_INFEASIBLE ? STATUS_OK : error_set(err, status, "%s", why.text);
}

/* Leaves out sharded-lrtf and optimal. */
static enum status try_policies(struct ways *w, bool resident, struct error *err)
{
    for (uint32_t i = 0; policy_at(i); i++) {
        const struct policy *policy = policy_at(i);
        struct planner_options options = w->fixed;
        options.policy = policy->name;
        bool stays = policy->resident || policy->one_device;
        if (policy_is_searched(policy) || stays != resident) continue;
        uint64_t cost = schedule_policy_repeats(policy) ? cost_of(w, resident ? COST_RESIDENT : COST_SPILLED)
                                                        : w->all_operations;
        if (may_try(w, policy->name, cost))
            TRY(cli_field_try(w->field, w->source, &options, policy->name, err));
    }
    return STATUS_OK;
}

/* --- Saturn ---------------------------------------------------------------------------------- */

static enum status try_saturn(struct ways *w, bool single, struct error *err)
{
    const char *label = single ? "saturn, one device each" : saturn_rule_names[SATURN_RULE_SPASE];
    struct cli_candidate candidate = {0};
    struct error why = {0};
    struct planner_options spilled = w->fixed;
    const struct saturn_options options = {.spilled = &spilled, .rule = SATURN_RULE_SPASE, .single = single,
                                           .interval_s = -1, .threshold_s = -1, .restart_s = -1};
    spilled.search = &w->field->search;
    bool many = w->jobs.count > SATURN_JOBS_MOST || w->hardware.device_count > SATURN_DEVICES_MOST;
    if (!w->how->thorough && many) {
        cli_field_note(w->field, label, STATUS_OK,
                       "there are too many jobs or devices to try it by default ('--policy saturn')");
        return STATUS_OK;
    }
    if (!may_try(w, label, 0)) return STATUS_OK;
    enum status status = cli_saturn(w->source, &options, &candidate, &candidate.saturn, &why);
    candidate.by_saturn = true;
    if (status == STATUS_OK) cli_field_add(w->field, &candidate, label);
    else (void)!cli_field_fail(w->field, label, &why, err);
    cli_candidate_release(&candidate);
    return err->status;
}

static bool is_run(const struct cli_field *field, const char *label)
{
    for (size_t i = 0; i < field->count; i++)
        if (strcmp(field->outcomes[i].policy, label) == 0)
            return field->outcomes[i].kind == CLI_OUTCOME_PLAN && field->outcomes[i].runnable;
    return false;
}

/* Tries Saturn, and if that plan cannot be run, one device per job. */
static enum status try_saturns(struct ways *w, struct error *err)
{
    bool several = w->hardware.device_count > 1;
    if (w->jobs.count == 1 && !several) return STATUS_OK;
    if (several && !w->how->runnable) TRY(try_saturn(w, false, err));
    return is_run(w->field, saturn_rule_names[SATURN_RULE_SPASE]) ? STATUS_OK : try_saturn(w, true, err);
}

/* --- the ways of `mem` ------------------------------------------------------------------------ */

/* Returns true for recomputation, if the way without fits. */
static bool keeps_needlessly_little(const struct cli_field *field, const struct feasibility_way *way)
{
    const char *plus = strstr(way->name, "+recompute");
    for (size_t i = 0; plus && i < field->count; i++) {
        const struct cli_policy_outcome *outcome = &field->outcomes[i];
        size_t length = (size_t)(plus - way->name);
        bool same = strlen(outcome->policy) == length && strncmp(outcome->policy, way->name, length) == 0;
        if (same && outcome->kind == CLI_OUTCOME_PLAN) return true;
    }
    return false;
}

static enum status try_parallel(struct ways *w, const struct feasibility_way *way, double limit_s, struct error *err)
{
    struct cli_source source = *w->source;
    struct planner_options options = {.seed = w->fixed.seed, .activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO};
    source.way = &way->parallel;
    if (w->how->runnable || keeps_needlessly_little(w->field, way)) return STATUS_OK;
    if (way->parallel.offload && w->fixed.optimizer == PLANNER_PLACE_DEVICE) {
        cli_field_note(w->field, way->name, STATUS_OK, "its optimizer is on the host ('--optimizer device')");
        return STATUS_OK;
    }
    if (!w->how->thorough && w->hardware.device_count > PARALLEL_DEVICES_MOST) {
        cli_field_note(w->field, way->name, STATUS_OK,
                       "there are too many devices to try it by default ('--parallel')");
        return STATUS_OK;
    }
    if (!may_try(w, way->name, cost_of(w, COST_PARALLEL))) return STATUS_OK;
    return cli_field_try_within(w->field, &source, &options, limit_s, way->name, err);
}

/* Returns true if the user asked for something else. */
static bool differs(uint32_t asked, uint32_t of_way)
{
    return asked != PLANNER_AUTO && of_way != PLANNER_AUTO && asked != of_way;
}

static enum status try_alone(struct ways *w, const struct feasibility_way *way, struct error *err)
{
    struct planner_options options = {.policy = way->policy, .seed = w->fixed.seed, .activations = way->activations,
                                      .optimizer = way->optimizer, .storage = way->storage, .last = way->last};
    const char *asked = differs(w->fixed.optimizer, way->optimizer)       ? "'--optimizer' asks for another place"
                        : differs(w->fixed.activations, way->activations) ? "'--activations' asks for something else"
                                                                           : NULL;
    if (asked) {
        cli_field_note(w->field, way->name, STATUS_OK, asked);
        return STATUS_OK;
    }
    if (way->activations == PLANNER_AUTO) options.activations = w->fixed.activations;
    return may_try(w, way->name, cost_of(w, COST_RESIDENT))
             ? cli_field_try(w->field, w->source, &options, way->name, err)
             : STATUS_OK;
}

static enum status try_fit_ways(struct ways *w, struct error *err)
{
    struct feasibility_way *ways = alloc_zeroed(FEASIBILITY_WAYS_MAX, sizeof *ways);
    if (!ways) return error_memory(err, "ways", FEASIBILITY_WAYS_MAX * sizeof *ways);
    uint32_t count = feasibility_ways(&w->hardware, &w->jobs.jobs[0], ways);
    for (uint32_t i = 0; i < count && !err->status; i++)
        if (parallel_is_set(&ways[i].parallel)) (void)!try_parallel(w, &ways[i], HUGE_VAL, err);
        else if (w->jobs.count == 1) (void)!try_alone(w, &ways[i], err); /* policies and the search have them */
    free(ways);
    return err->status;
}

/* Returns the longest time by the planner's clock of plans that may be the best. */
static double may_win_s(const struct ways *w)
{
    return w->field->any ? CLOCK_SLACK * w->field->kept.prediction.result.makespan_s : HUGE_VAL;
}

static enum status try_variants_of(struct ways *w, const struct feasibility_way *way, struct error *err)
{
    struct feasibility_way variants[FEASIBILITY_VARIANTS_MAX];
    uint32_t count = feasibility_variants(&w->jobs.jobs[0], way, variants);
    for (uint32_t i = 0; i < count; i++) TRY(try_parallel(w, &variants[i], may_win_s(w), err));
    return STATUS_OK;
}

/* Tries other schedules of pipelines and tensor groups without sequence parallelism; the best is known by then. */
static enum status try_variants(struct ways *w, struct error *err)
{
    struct feasibility_way *ways = alloc_zeroed(FEASIBILITY_WAYS_MAX, sizeof *ways);
    if (!ways) return error_memory(err, "ways", FEASIBILITY_WAYS_MAX * sizeof *ways);
    uint32_t count = feasibility_ways(&w->hardware, &w->jobs.jobs[0], ways);
    for (uint32_t i = 0; i < count && !err->status; i++)
        if (parallel_is_set(&ways[i].parallel)) (void)!try_variants_of(w, &ways[i], err);
    free(ways);
    return err->status;
}

/* --- the search ------------------------------------------------------------------------------- */

/* Every cut with n orders; if that is too much, every cut with shortened jobs, then the best with n orders, or by
 * sharded-lrtf if n is 0. */
struct extent {
    bool none;           /* there are too many jobs to search */
    uint32_t iterations; /* 0: as `--policy optimal` */
    double shortened;    /* 0: not shortened */
    uint32_t at_last;    /* of the best cut of shortened jobs */
};

enum { CUTS = 13, POLICIES = 6, ORDERS_LEAST = 20, ORDERS = 400, SHORT_SLACK = 8 };

/* Returns the steps of placing all units once: a placement looks at all jobs, of which the first JOBS_EACH are free. */
static uint64_t steps_of_order(const struct ways *w)
{
    enum { JOBS_EACH = 64 };
    return w->units * (1 + w->jobs.count / JOBS_EACH);
}

/* Returns true if even jobs of one minibatch are too many for the search. */
static bool too_many(const struct ways *w)
{
    uint64_t minibatches = 0;
    for (uint32_t j = 0; j < w->jobs.count; j++) minibatches += w->jobs.jobs[j].minibatches;
    double shortest = (double)w->jobs.count / (double)max_u64(minibatches, 1);
    return shortest * (double)steps_of_order(w) * CUTS * (POLICIES + ORDERS_LEAST) > SHORT_SLACK * (double)placed_most;
}

static struct extent extent_of(const struct ways *w)
{
    struct extent extent = {.iterations = w->fixed.iterations};
    uint64_t steps = steps_of_order(w), orders = steps > 0 ? placed_most / steps : CUTS * (POLICIES + ORDERS_LEAST);
    if (w->how->thorough || w->fixed.iterations > 0 || w->until_s > 0) return extent; /* the caller's limits */
    extent.none = too_many(w);
    if (orders >= CUTS * (POLICIES + ORDERS)) return extent;
    extent.iterations = ORDERS_LEAST;
    if (orders >= CUTS * (POLICIES + ORDERS_LEAST)) {
        extent.iterations = (uint32_t)(orders / CUTS - POLICIES);
        return extent;
    }
    extent.shortened = (double)placed_most / 2 / (CUTS * (POLICIES + ORDERS_LEAST)) / (double)steps;
    if (orders / 2 >= POLICIES + ORDERS_LEAST) extent.at_last = (uint32_t)min_u64(orders / 2 - POLICIES, ORDERS);
    return extent;
}

/* Plans all minibatches with that cut. */
static enum status search_short(struct ways *w, const struct extent *extent, const struct planner_options *options,
                                struct cli_field *searched, struct error *err)
{
    struct cli_source source = *w->source;
    struct planner_options best;
    char label[CLI_OUTCOME_NAME_BYTES];
    struct cli_field *cuts = alloc_zeroed(1, sizeof *cuts);
    if (!cuts) return error_memory(err, "plans", sizeof *cuts);
    source.shortened = extent->shortened;
    enum status status = cli_optimal_cuts(&source, options, cuts, &best, err);
    if (!status && cuts->any) {
        best.iterations = extent->at_last;
        if (extent->at_last == 0) best.policy = policy_sharded_lrtf.name;
        cli_optimal_label(options, &best, label);
        if (cli_field_lacks(w->field, label)) status = cli_field_try(searched, w->source, &best, label, err);
    } else if (!status) {
        cli_field_adopt(searched, cuts, policy_optimal.name);
    }
    cli_field_release(cuts);
    free(cuts);
    return status;
}

static enum status search_in(struct ways *w, const struct extent *extent, struct planner_options *options,
                             struct cli_field *searched, struct error *err)
{
    struct planner_options best;
    options->iterations = extent->iterations;
    if (w->how->every_policy) return cli_optimal(w->source, options, searched, err);
    if (extent->shortened > 0) return search_short(w, extent, options, searched, err);
    return cli_optimal_cuts(w->source, options, searched, &best, err);
}

static enum status try_search(struct ways *w, struct error *err)
{
    const char *label = policy_optimal.name;
    struct cli_field *searched = alloc_zeroed(1, sizeof *searched);
    struct planner_options options = w->fixed;
    struct error why = {0};
    if (!searched) return error_memory(err, "plans", sizeof *searched);
    options.policy = label;
    if (w->until_s > 0) options.time_limit_s = w->until_s > clock_s() ? w->until_s - clock_s() : 1e-9;
    searched->runnable_first = w->field->runnable_first;
    const struct extent extent = extent_of(w);
    if (extent.none) {
        cli_field_note(w->field, label, STATUS_OK, "there are too many jobs to search by default ('--policy optimal')");
    } else if (may_try(w, label, 0)) {
        enum status status = search_in(w, &extent, &options, searched, &why);
        bool one_row = w->how->every_policy || !searched->any;
        if (status == STATUS_OK)
            cli_field_adopt(w->field, searched, one_row ? label : searched->outcomes[searched->best].policy);
        else (void)!cli_field_fail(w->field, label, &why, err);
    }
    cli_field_release(searched);
    free(searched);
    return err->status;
}

/* Asks GLPK too, with every policy; it can take minutes. */
static enum status try_milp(struct ways *w, struct error *err)
{
    const char *label = policy_milp.name;
    struct error why = {0};
    struct planner_options options = w->fixed;
    if (!w->how->every_policy) {
        cli_field_note(w->field, label, STATUS_OK, "GLPK is not asked by default ('--policy milp')");
        return STATUS_OK;
    }
    if (!may_try(w, label, 0)) return STATUS_OK;
    struct cli_field *tried = alloc_zeroed(1, sizeof *tried);
    if (!tried) return error_memory(err, "plans", sizeof *tried);
    tried->runnable_first = w->field->runnable_first;
    if (w->until_s > 0) options.time_limit_s = max_s(w->until_s - clock_s(), 1e-9);
    if (cli_milp(w->source, &options, tried, &why) == STATUS_OK) {
        w->field->milp = tried->milp;
        cli_field_adopt(w->field, tried, label);
    } else {
        (void)!cli_field_fail(w->field, label, &why, err);
    }
    cli_field_release(tried);
    free(tried);
    return err->status;
}

/* Lets jobs go through the base that they share together. */
static enum status try_shared_base(struct ways *w, struct error *err)
{
    struct planner_options options = w->fixed;
    for (uint32_t j = 0; j < w->jobs.count; j++)
        if (!job_has_base(&w->jobs.jobs[j]) || parallel_is_set(&w->jobs.jobs[j].parallel)) return STATUS_OK;
    options.policy = policy_shared_base.name;
    if (!may_try(w, options.policy, cost_of(w, COST_RESIDENT))) return STATUS_OK;
    return cli_field_try(w->field, w->source, &options, options.policy, err);
}

/* --- activations -------------------------------------------------------------------------------- */

static const char other_activations[] = "other activations";

/* Tries a policy with all ways of keeping activations. */
static enum status try_activations_of(struct ways *w, const struct policy *policy, struct cli_field *tried,
                                      struct error *err)
{
    bool stays = policy->resident || policy->one_device;
    for (uint32_t how = 0; how < ACTIVATIONS_COUNT; how++) {
        struct planner_options options = w->fixed;
        char label[CLI_OUTCOME_NAME_BYTES];
        options.policy = policy->name;
        options.activations = how;
        cli_optimal_label(&w->fixed, &options, label);
        if (stays && !plan_activations_stay(how)) continue;
        if (!may_try(w, other_activations, cost_of(w, COST_PLANNED))) return STATUS_OK;
        double limit_s = w->field->any ? w->field->kept.prediction.result.makespan_s : HUGE_VAL;
        TRY(cli_field_try_within(tried, w->source, &options, limit_s, label, err));
    }
    return STATUS_OK;
}

static enum status try_every_activation(struct ways *w, bool resident, struct cli_field *tried, struct error *err)
{
    for (uint32_t i = 0; policy_at(i); i++) {
        bool suits = resident || !(policy_at(i)->resident || policy_at(i)->one_device);
        if (suits && schedule_policy_repeats(policy_at(i))) TRY(try_activations_of(w, policy_at(i), tried, err));
    }
    return STATUS_OK;
}

/*
 * Tries each policy with each way of keeping activations, where the planner otherwise chooses for each job. Those that
 * are faster than the best by the planner's clock are simulated. The best of them is an outcome. `resident`: also
 * resident policies.
 */
static enum status try_activations(struct ways *w, bool resident, struct error *err)
{
    if (w->fixed.activations != PLANNER_AUTO || w->fixed.mixed) return STATUS_OK;
    struct cli_field *tried = alloc_zeroed(1, sizeof *tried);
    if (!tried) return error_memory(err, "plans", sizeof *tried);
    tried->runnable_first = w->field->runnable_first;
    enum status status = try_every_activation(w, resident, tried, err);
    if (!status && tried->any) {
        const char *label = tried->outcomes[tried->best].policy;
        if (cli_field_lacks(w->field, label)) cli_field_adopt(w->field, tried, label);
    } else if (!status && cli_field_lacks(w->field, other_activations)) {
        cli_field_note(w->field, other_activations, STATUS_OK, "no policy is faster with them, by the planner's clock");
    }
    cli_field_release(tried);
    free(tried);
    return status;
}

/* --- all ways ----------------------------------------------------------------------------------- */

static enum status try_all(struct ways *w, struct error *err)
{
    struct planner_options open = w->fixed;
    open.resident = true;
    TRY(try_spilled(w, err));
    if (w->fixed.live || w->fixed.swap) return STATUS_OK;
    TRY(try_resident_placement(w, err));
    TRY(try_shared_base(w, err));
    if (!resident_all_free(&w->jobs)) return STATUS_OK;
    bool all = resident_allowed(&open);
    if (all) TRY(try_saturns(w, err));
    if (all || w->how->every_policy) TRY(try_policies(w, true, err));
    if (all) TRY(try_fit_ways(w, err));
    TRY(try_search(w, err));
    TRY(try_milp(w, err));
    TRY(try_policies(w, false, err));
    if (all) TRY(try_variants(w, err));
    return try_activations(w, all || w->how->every_policy, err);
}

/* Returns spilling's reason if no way is possible. */
static enum status check_spilled(const struct cli_field *field, struct error *err)
{
    const struct cli_policy_outcome *first = &field->outcomes[0];
    return field->any ? STATUS_OK : error_set(err, STATUS_INFEASIBLE, "%s", first->reason);
}

/* Refuses plans that cannot be run, where plans are run and we choose. */
static enum status check_runnable(const struct ways *w, struct error *err)
{
    const struct cli_policy_outcome *best = &w->field->outcomes[w->field->best], *first = &w->field->outcomes[0];
    bool ours = w->how->runnable || resident_all_free(&w->jobs);
    if (!w->field->runnable_first || !ours || best->runnable) return STATUS_OK;
    if (first->kind == CLI_OUTCOME_PLAN && !w->how->runnable) return STATUS_OK; /* the jobs cannot be run */
    if (first->kind == CLI_OUTCOME_PLAN)
        return error_set(err, STATUS_INFEASIBLE, "no plan can be run: %s", best->reason);
    return error_set(err, STATUS_INFEASIBLE, "%s (%s fits, but cannot be run: see --parallel)", first->reason,
                     best->policy);
}

/* Sets the bound that holds for every way in all plans, as the report of the kept plan has it. */
static enum status set_bound(const struct ways *w, struct error *err)
{
    struct bound bound;
    if (!w->field->any) return STATUS_OK;
    TRY(cli_bound_of_all(&w->field->kept.plan, &bound, err));
    for (size_t i = 0; i < w->field->count; i++) w->field->outcomes[i].lower_bound_s = bound.any_s;
    return STATUS_OK;
}

enum status cli_ways(const struct cli_source *source, const struct cli_ways_options *how, struct cli_field *field,
                     struct error *err)
{
    struct ways w = {.source = source, .how = how, .field = field, .fixed = *how->fixed};
    w.fixed.policy = NULL;
    w.fixed.resident = false;
    w.fixed.search = &field->search;
    if (w.fixed.time_limit_s > 0) w.until_s = clock_s() + w.fixed.time_limit_s;
    enum status status = job_set_share(source->jobs, &w.jobs, err);
    if (!status) status = cli_machine_read(&source->machine, &w.hardware, err);
    if (!status) status = cli_parallel_apply(&source->parallel, &w.jobs, err);
    field->runnable_first = !status && (how->runnable || cli_runs_here(&w.hardware));
    if (!status) status = try_all(&w, err);
    if (!status) status = how->every_policy ? cli_field_check(field, err) : check_spilled(field, err);
    if (!status) status = check_runnable(&w, err);
    if (!status) status = set_bound(&w, err);
    cli_field_sort(field);
    hardware_release(&w.hardware);
    job_set_release(&w.jobs);
    return status;
}
