/* See chain_certify.h: each method in turn, until the gap is closed. */
#include "planner/chain/chain_certify.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/process/clock.h"
#include "base/try.h"
#include "planner/chain/chain_anneal.h"
#include "planner/chain/chain_check.h"
#include "planner/chain/chain_formulation.h"
#include "planner/chain/chain_search.h"

/* Widths of searches; a chain of up to SHORT layers gets the widest. */
enum { NARROW = 64, WIDE = 1024, WIDEST = 16384, WIDTH_FACTOR = 4, SHORT = 24 };
enum { STATES_WORTH_PRICES = 150000, PLACES_MAX = 64, SETS_MAX = 256 };
/* Shares of the remaining time: for GLPK's program or its list, and for further prices. */
static const double solver_share = 0.5, sharpen_share = 0.2;
/* Annealing: number of runs, moves per layer; first temperature in forward passes, last temperature relative to it. */
enum { ANNEALS_OF_SET = 3, ANNEALS_OF_LASTS = 2, ANNEALS = 4, MOVES_OF_LAYER = 1000, MOVES_OF_LAST = 250 };
static const double hot_share = 0.25, cold_share = 0.02;
/* The first list of sets covers this share of the distance from the fluid program's optimum to the best known value. */
static const double near_share = 0.25;

struct certifying {
    const struct chain *chain;
    const struct chain_certify_options *options;
    struct chain_certificate made;
    uint8_t *choices, *scratch, *tried; /* (layer_count) each, as is */
    uint8_t *set;               /* the layers that the fluid program's optimum recomputes; zeroed: unknown */
    double until_s;
};

/* One of the first two always fits a chain that chain_finish() accepts. */
static enum status try_rules(struct certifying *c, struct error *err)
{
    bool found = false;
    for (uint32_t rule = 0; rule < CHAIN_RULES; rule++) {
        struct chain_certificate *made = &c->made;
        if (found && clock_s() >= c->until_s) break;
        TRY(chain_rule_run(c->chain, (enum chain_rule)rule, c->scratch, &made->rule_values[rule],
                           &made->rule_fits[rule], err));
        if (!made->rule_fits[rule] || (found && made->rule_values[rule] >= made->value)) continue;
        made->value = made->rule_values[rule];
        memcpy(c->choices, c->scratch, c->chain->layer_count);
        found = true;
    }
    assert(found);
    return STATUS_OK;
}

static bool is_open(const struct certifying *c)
{
    return c->made.status == CERTIFICATE_GAP && clock_s() < c->until_s;
}

/* Searches with the states of the options, except time and memory. */
static enum status search(struct certifying *c, const struct chain_bound *bound,
                          struct chain_search_options options, struct chain_search_result *result,
                          struct error *err)
{
    double started = clock_s();
    options.until_s = c->until_s;
    options.memory_bytes = c->options->memory_bytes;
    TRY(chain_search(c->chain, bound, &options, c->choices, &c->made.value, result, err));
    c->made.search_s += clock_s() - started;
    c->made.states += result->states;
    if (bound->allowed) return STATUS_OK; /* nothing is said of the chain */
    if (result->bound > c->made.bound) {
        c->made.bound = result->bound;
        c->made.proved_by = "search";
    }
    if (result->proven)
        c->made.status = c->made.value == c->made.price_bound ? CERTIFICATE_BOUND : CERTIFICATE_SEARCHED;
    return STATUS_OK;
}

/*
 * Searches with widths up to `width_max`, and improves prices at the states in between, unless the next search costs
 * less. *closed: the best known value is no worse than any schedule within the bound.
 */
static enum status search_sharpened(struct certifying *c, struct chain_bound *bound, uint32_t width_max,
                                    bool *closed, struct error *err)
{
    struct chain_place *places = alloc_zeroed(PLACES_MAX, sizeof *places);
    *closed = false;
    if (!places) return error_memory(err, "places", PLACES_MAX * sizeof *places);
    for (uint64_t width = NARROW; clock_s() < c->until_s; width *= WIDTH_FACTOR) {
        uint32_t now = width < width_max ? (uint32_t)width : width_max;
        struct chain_search_options options = {.width_min = now, .width_max = now,
                                               .places = places, .places_max = PLACES_MAX};
        struct chain_search_result result;
        if (search(c, bound, options, &result, err)) break;
        *closed = result.proven;
        if (*closed || now == width_max) break;
        if (WIDTH_FACTOR * result.states < STATES_WORTH_PRICES) continue;
        double limit_s = sharpen_share * (c->until_s - clock_s());
        if (chain_bound_sharpen(c->chain, places, result.place_count, limit_s, bound, err)) break;
    }
    free(places);
    return err->status;
}

/*
 * Searches schedules that recompute exactly `set`, one byte per layer; other layers are swapped or kept whole. *closed:
 * none is better than the best known value. Uses c->scratch.
 */
static enum status search_set(struct certifying *c, const uint8_t *set, uint32_t width, bool *closed,
                              struct error *err)
{
    struct chain_bound bound = {0};
    if (c->options->width_max > 0 && c->options->width_max < width) width = c->options->width_max;
    for (uint32_t l = 0; l < c->chain->layer_count; l++)
        c->scratch[l] = set[l] ? 1 << CHAIN_RECOMPUTE : 1 << CHAIN_KEEP | 1 << CHAIN_SWAP;
    TRY(chain_bound_make(c->chain, c->scratch, c->until_s - clock_s(), &bound, err));
    *closed = chain_bound_ticks(c->chain, &bound) >= c->made.value;
    if (!*closed && search_sharpened(c, &bound, width, closed, err)) {}
    chain_bound_release(&bound);
    return err->status;
}

/* --- annealing -------------------------------------------------------------------------------- */

/* Anneals from c->tried, within `allowed` (NULL: all), with `moves` for every layer. Keeps the best schedule; c->tried
 * gets the result. */
static enum status anneal(struct certifying *c, const uint8_t *allowed, uint32_t moves, uint64_t seed,
                          int64_t enough, int64_t *made, struct error *err)
{
    int64_t forward = 0;
    for (uint32_t l = 0; l < c->chain->layer_count; l++) forward += c->chain->layers[l].forward;
    double hot = hot_share * (double)forward / c->chain->layer_count;
    struct chain_anneal_options options = {.allowed = allowed,
                                           .seed = seed,
                                           .moves = moves * c->chain->layer_count,
                                           .hot = hot,
                                           .cold = cold_share * hot,
                                           .enough = enough,
                                           .until_s = c->until_s};
    TRY(chain_anneal(c->chain, &options, c->tried, made, err));
    if (*made >= c->made.value) return STATUS_OK;
    c->made.value = *made;
    memcpy(c->choices, c->tried, c->chain->layer_count);
    return STATUS_OK;
}

/*
 * Finds whole copies for choices that recompute exactly `set`, and swap layer `last` and none after it. Starts with all
 * other allowed layers swapped, which waits long enough if memory can hold the rest. `least`: lower bound on the ticks.
 */
static enum status anneal_behind(struct certifying *c, const uint8_t *set, uint32_t last, uint32_t moves,
                                 uint64_t seed, int64_t least, bool *fits, struct error *err)
{
    uint32_t layers = c->chain->layer_count;
    struct chain_pass pass;
    int64_t made;
    for (uint32_t l = 0; l < layers; l++) {
        uint8_t may = l < last ? 1 << CHAIN_KEEP | 1 << CHAIN_SWAP
                      : l == last ? 1 << CHAIN_SWAP
                                  : 1 << CHAIN_KEEP;
        c->scratch[l] = set[l] ? 1 << CHAIN_RECOMPUTE : may;
        c->tried[l] = set[l]                                                     ? CHAIN_RECOMPUTE
                      : chain_allowed(c->chain, c->scratch, l) >> CHAIN_SWAP & 1 ? CHAIN_SWAP
                                                                                 : CHAIN_KEEP;
    }
    TRY(chain_pass_create(layers, &pass, err));
    *fits = chain_makespan(c->chain, c->tried, &pass, &made);
    chain_pass_destroy(&pass);
    return *fits ? anneal(c, c->scratch, moves, seed, least, &made, err) : STATUS_OK;
}

/* Does the same for a set, wherever its last copy is. */
static enum status anneal_set(struct certifying *c, const uint8_t *set, uint64_t seed, int64_t least,
                              struct error *err)
{
    bool fits;
    return anneal_behind(c, set, c->chain->layer_count, MOVES_OF_LAYER, seed, least, &fits, err);
}

/*
 * A copy is in memory as a whole until it ends, so another last copy needs other choices for many layers before it,
 * which annealing seldom finds. So each is tried briefly, until memory cannot hold all later layers.
 */
static enum status anneal_lasts(struct certifying *c, const uint8_t *set, uint64_t seed, int64_t least,
                                struct error *err)
{
    bool fits = chain_swaps(c->chain);
    for (uint32_t last = c->chain->layer_count - 1; last-- > 0 && fits;) {
        if (c->made.value <= least || clock_s() >= c->until_s) break;
        if (!set[last]) TRY(anneal_behind(c, set, last, MOVES_OF_LAST, seed, least, &fits, err));
    }
    return STATUS_OK;
}

/* Anneals all choices, each time from the best known. */
static enum status anneal_all(struct certifying *c, struct error *err)
{
    for (uint64_t i = 0; i < ANNEALS && c->made.value > c->made.bound && clock_s() < c->until_s; i++) {
        int64_t made = c->made.value;
        memcpy(c->tried, c->choices, c->chain->layer_count);
        TRY(anneal(c, NULL, MOVES_OF_LAYER, ANNEALS_OF_SET + i, c->made.bound, &made, err));
    }
    return STATUS_OK;
}

/* --- the fluid program ------------------------------------------------------------------------ */

/* Solves the fluid program. A failing solver costs its proof, not the schedule. */
static enum status solve_fluid(struct certifying *c, double limit_s, struct error *err)
{
    struct milp *milp = chain_fluid(c->chain, NULL);
    struct milp_result result = {0};
    if (!milp) return STATUS_OK;
    struct milp_options options = {.limit_s = limit_s, .solver = c->options->solver};
    c->made.solver = options.solver ? options.solver : milp_solver_names[0];
    if (milp_solve(milp, &options, &result, &c->made.solver_error)) {}
    c->made.nodes += result.nodes;
    if (result.found) {
        chain_fluid_choices(c->chain, result.x, c->set);
        for (uint32_t l = 0; l < c->chain->layer_count; l++) c->set[l] = c->set[l] == CHAIN_RECOMPUTE;
        int64_t least = chain_bound_round(c->chain, result.value);
        for (uint64_t seed = 0; seed < ANNEALS_OF_SET && c->made.value > least; seed++)
            if (anneal_set(c, c->set, seed, least, err)) goto out;
        for (uint64_t seed = 0; seed < ANNEALS_OF_LASTS && c->made.value > least; seed++)
            if (anneal_lasts(c, c->set, seed, least, err)) goto out;
    }
    if (result.bounded) c->made.fluid_bound = chain_bound_round(c->chain, result.bound);
    c->made.fluid_proven = result.status == MILP_OPTIMAL;
    if (c->made.fluid_bound > c->made.value) c->made.fluid_bound = c->made.value; /* its tolerances */
    if (c->made.fluid_bound > c->made.bound) {
        c->made.bound = c->made.fluid_bound;
        c->made.proved_by = "fluid";
    }
    if (c->made.bound == c->made.value) c->made.status = CERTIFICATE_SOLVED;
out:
    free(result.x);
    milp_destroy(milp);
    return err->status;
}

/* A set of recomputed layers, with the least cost by the fluid program. Zeroed: none. */
struct set {
    const uint8_t *recomputed; /* (layers) 1: it is */
    double value;              /* ticks beyond chain->compute */
    bool closed;               /* no schedule with it is better than the best known */
};

struct sets {
    struct milp_result told;
    struct set *sets; /* (count) the cheapest first */
    uint32_t count;
    bool complete;  /* there are no other sets at or below the cutoff */
};

static void sets_release(struct sets *sets)
{
    free(sets->told.settings);
    free(sets->told.setting_values);
    free(sets->sets);
    *sets = (struct sets){0};
}

static int by_value(const void *left, const void *right)
{
    const struct set *a = left, *b = right;
    if (a->value < b->value || a->value > b->value) return a->value < b->value ? -1 : 1;
    return (a->recomputed > b->recomputed) - (a->recomputed < b->recomputed); /* of one array */
}

/* Lists the sets that cost at most `cutoff`. */
static enum status sets_list(struct certifying *c, double cutoff, struct sets *out, struct error *err)
{
    uint32_t layers = c->chain->layer_count;
    struct milp *milp = chain_fluid(c->chain, NULL);
    struct milp_result *told = &out->told;
    struct error unsolved = {0};
    uint32_t *listed = alloc_zeroed(layers, sizeof *listed);
    if (!milp || !listed) {
        error_memory(err, "a list", layers * sizeof *listed);
        goto out;
    }
    for (uint32_t l = 0; l < layers; l++) listed[l] = chain_fluid_recomputes(l);
    struct milp_options options = {.limit_s = solver_share * (c->until_s - clock_s()),
                                   .listed = listed,
                                   .listed_count = layers,
                                   .list_max = SETS_MAX,
                                   .cutoff = cutoff};
    if (milp_solve(milp, &options, told, &unsolved)) {} /* earlier reports are valid */
    c->made.nodes += told->nodes;
    out->complete = !unsolved.status && told->status == MILP_INFEASIBLE;
    out->sets = alloc_zeroed(told->setting_count + 1u, sizeof *out->sets);
    if (!out->sets) {
        error_memory(err, "a list", told->setting_count * sizeof *out->sets);
        goto out;
    }
    for (uint32_t i = 0; i < told->setting_count; i++)
        out->sets[i] = (struct set){told->settings + (size_t)i * layers, told->setting_values[i], false};
    out->count = told->setting_count;
    qsort(out->sets, out->count, sizeof *out->sets, by_value);
out:
    free(listed);
    milp_destroy(milp);
    return err->status;
}

/* Returns the fewest ticks of a set; half a tick is left to the solver's tolerances. */
static int64_t set_least(const struct certifying *c, const struct set *set)
{
    return chain_bound_round(c->chain, set->value - 0.5);
}

/* Each set is annealed with whole copies. */
static enum status anneal_sets(struct certifying *c, const struct sets *sets, struct error *err)
{
    for (uint64_t seed = 0; seed < ANNEALS_OF_SET; seed++)
        for (uint32_t i = 0; i < sets->count && clock_s() < c->until_s; i++) {
            int64_t least = set_least(c, &sets->sets[i]);
            if (least >= c->made.value) break;
            if (memcmp(sets->sets[i].recomputed, c->set, c->chain->layer_count) == 0) continue; /* it was */
            TRY(anneal_set(c, sets->sets[i].recomputed, seed, least, err));
        }
    return STATUS_OK;
}

/* Searches each set until nothing better is left in it. */
static enum status close_sets(struct certifying *c, struct sets *sets, struct error *err)
{
    for (uint64_t width = WIDE; width <= WIDEST; width *= WIDTH_FACTOR * WIDTH_FACTOR)
        for (uint32_t i = 0; i < sets->count && clock_s() < c->until_s; i++) {
            struct set *set = &sets->sets[i];
            set->closed |= set_least(c, set) >= c->made.value;
            if (!set->closed) TRY(search_set(c, set->recomputed, (uint32_t)width, &set->closed, err));
        }
    return STATUS_OK;
}

/*
 * The fluid program gives the least cost of any set of recomputed layers. If layers differ, few sets cost less than the
 * best known schedule: each is searched. The cheapest come first, for a better best known value, because the number of
 * sets grows with it.
 */
static enum status try_sets(struct certifying *c, struct error *err)
{
    struct sets sets = {0};
    double least = (double)(c->made.fluid_bound - c->chain->compute);
    double most = (double)(c->made.value - c->chain->compute) - 0.5;
    if (sets_list(c, least + near_share * (most - least), &sets, err) || anneal_sets(c, &sets, err)) goto out;
    sets_release(&sets);
    if (c->made.value == c->made.bound) goto out;
    most = (double)(c->made.value - c->chain->compute) - 0.5;
    if (sets_list(c, most, &sets, err) || anneal_sets(c, &sets, err) || close_sets(c, &sets, err)) goto out;
    for (uint32_t i = 0; i < sets.count; i++)
        if (!sets.sets[i].closed) goto out;
    if (!sets.complete) goto out;
    c->made.sets = sets.count;
    c->made.bound = c->made.value;
    c->made.proved_by = "sets";
out:
    if (c->made.value == c->made.bound) c->made.status = CERTIFICATE_SOLVED;
    sets_release(&sets);
    return err->status;
}

/*
 * Returns the search's width before GLPK. Equal layers are many equal questions to GLPK and few states to the search,
 * so GLPK comes late. If layers differ, useful states grow faster than the chain.
 */
static uint32_t first_width(const struct chain *chain)
{
    uint32_t alike = 0, layers = chain->layer_count;
    for (uint32_t l = 1; l < layers; l++) {
        const struct chain_layer *a = &chain->layers[l - 1], *b = &chain->layers[l];
        alike += a->forward == b->forward && a->backward == b->backward && a->again == b->again &&
                 a->saved == b->saved && a->boundary == b->boundary;
    }
    if (2 * alike >= layers) return WIDTH_FACTOR * WIDEST;
    return layers > SHORT ? NARROW : WIDEST;
}

/* Proves by narrow searches, the fluid program, annealing, and the remaining sets; or by wide searches. */
static enum status prove(struct certifying *c, struct error *err)
{
    struct chain_bound bound = {0};
    bool closed;
    uint32_t widest = c->options->width_max > 0 ? c->options->width_max : UINT32_MAX;
    uint32_t first = first_width(c->chain), width = widest < first ? widest : first;
    TRY(chain_bound_make(c->chain, NULL, c->until_s - clock_s(), &bound, err));
    c->made.bound = c->made.price_bound = chain_bound_ticks(c->chain, &bound);
    c->made.proved_by = "prices";
    if (search_sharpened(c, &bound, width, &closed, err)) goto out;
    if (is_open(c) && solve_fluid(c, solver_share * (c->until_s - clock_s()), err)) goto out;
    if (is_open(c) && anneal_all(c, err)) goto out;
    if (is_open(c) && c->made.fluid_proven && strcmp(c->made.solver, milp_solver_names[0]) == 0 && try_sets(c, err))
        goto out;
    if (is_open(c) && widest > width) {
        struct chain_search_options options = {.width_min = WIDTH_FACTOR * width, .width_max = c->options->width_max};
        struct chain_search_result result;
        if (search(c, &bound, options, &result, err)) goto out;
    }
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
                           .tried = alloc_zeroed(chain->layer_count, 1),
                           .set = alloc_zeroed(chain->layer_count, 1),
                           .until_s = started + options->limit_s};
    if (!c.choices || !c.scratch || !c.tried || !c.set) {
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
    free(c.tried);
    free(c.set);
    return err->status;
}

double chain_certificate_gap(const struct chain_certificate *c)
{
    return certificate_claim_gap(c->value, c->bound);
}

const char *chain_certificate_text(const struct chain_certificate *c, char text[CERTIFICATE_TEXT_BYTES])
{
    char bound[64];
    snprintf(bound, sizeof bound, "bound of %s", c->proved_by);
    const struct certificate_claim claim = {.status = c->status, .objective = "makespan", .value = c->value,
                                            .bound = c->bound, .bound_name = bound, .search = "the search",
                                            .unit = "states", .work = c->states, .solver = c->solver,
                                            .program = "fluid program"};
    if (c->status != CERTIFICATE_SOLVED || c->sets == 0) return certificate_claim_text(&claim, text);
    snprintf(text, CERTIFICATE_TEXT_BYTES,
             "makespan %" PRId64
             " is optimal: the search finds nothing below in the %u set%s of recomputed layers that "
             "GLPK leaves, within its tolerances",
             c->value, c->sets, c->sets == 1 ? "" : "s");
    return text;
}
