/*
 * Placements that are found, and bounds on all of them: against every placement of small problems, closed forms,
 * problems that need groups of unlike shapes, and what bursts do.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/size.h"
#include "sim/placement/placement_bound.h"
#include "sim/placement/placement_search.h"
#include "sim/placement/serving_bound.h"
#include "sim/placement/window_cut.h"
#include "tests/support/sim/support_serving.h"
#include "tests/support/support_seed.h"

static uint64_t seed, drawn;

static uint64_t below(uint64_t bound) { return random_below(seed, drawn++, bound); }
static double unit(void) { return random_unit(seed, drawn++); }

static int set_seed(void **state)
{
    (void)state;
    if (seed == 0) seed = support_seed("test_serving_search");
    drawn = 0;
    return 0;
}

/* --- every placement --------------------------------------------------------------------------- */

struct everything {
    const struct serving_cuts *cuts;
    const struct traffic *traffic;
    struct serving_group groups[4];
    uint32_t models[4][8];
    struct serving_placement placement;
    uint32_t best, simulations;
};

/* Tries all sets of models from this group on. */
static void try_models(struct everything *e, uint32_t group)
{
    uint32_t models = e->cuts->in->model_count;
    if (group == e->placement.group_count) {
        struct error err = {0};
        double *latency_s;
        if (placement_check(e->cuts, &e->placement, &err)) return;
        uint32_t count = support_serve(e->cuts, &e->placement, e->traffic, false, &latency_s);
        if (count > e->best) e->best = count;
        e->simulations++;
        free(latency_s);
        return;
    }
    struct serving_group *own = &e->groups[group];
    for (uint32_t set = 0; set < 1u << models; set++) {
        own->model_count = 0;
        for (uint32_t m = 0; m < models; m++)
            if (set >> m & 1) own->models[own->model_count++] = m;
        try_models(e, group + 1);
    }
}

/* All rows of groups that begin with those there are. */
static void try_groups(struct everything *e, uint32_t devices)
{
    bool full = true;
    for (uint32_t s = 0; s < e->cuts->shape_count; s++) {
        uint32_t size = serving_shape_devices(e->cuts->shapes[s]), group = e->placement.group_count;
        if (size > devices) continue;
        full = false;
        e->groups[group] = (struct serving_group){e->cuts->shapes[s], e->models[group], 0};
        e->placement.group_count++;
        try_groups(e, devices - size);
        e->placement.group_count--;
    }
    if (full) try_models(e, 0);
}

static uint32_t best_of_all(const struct serving_cuts *cuts, const struct traffic *traffic)
{
    struct everything *e = calloc(1, sizeof *e);
    assert_non_null(e);
    *e = (struct everything){.cuts = cuts, .traffic = traffic};
    e->placement.groups = e->groups;
    try_groups(e, cuts->in->device_count);
    uint32_t best = e->best;
    free(e);
    return best;
}

/* Makes cuts for all lengths of pipelines, not only powers of two. */
static void all_cuts(struct serving *in, struct serving_cuts *out)
{
    struct serving_shape shapes[] = {{1, 1}, {1, 2}, {1, 3}, {2, 1}};
    struct error err = {0};
    assert_int_equal(serving_cuts_make(&in->arena, in, shapes, ARRAY_COUNT(shapes), out, &err), STATUS_OK);
}

static void batch(struct serving *in)
{
    static const double growth[] = {1, 1.3, 1.9};
    for (uint32_t k = 0; k < in->kind_count; k++) {
        in->kinds[k].batch_max = ARRAY_COUNT(growth);
        for (uint32_t d = 0; d < in->kinds[k].degree_count; d++) in->kinds[k].degrees[d].growth = growth;
    }
}

static void is_the_best_of_all(void **state)
{
    (void)state;
    uint32_t met = 0, trials = 80, tight = 0, sum[3] = {0};
    for (uint32_t trial = 0; trial < trials; trial++) {
        struct serving in;
        struct serving_cuts cuts;
        struct traffic traffic;
        struct error err = {0};
        struct placement_found found, again;
        struct placement_bound bound;
        uint32_t work_bound;
        support_serving_random(&in, seed, drawn += 100, true);
        in.device_count = 1 + trial % 3;
        if (trial % 4 == 3) batch(&in);
        all_cuts(&in, &cuts);
        assert_int_equal(traffic_make(&in, trial, 1, &traffic, &err), STATUS_OK);
        struct placement_search_options options = {.seed = trial, .simulations = 400};
        assert_int_equal(placement_search(&in.arena, &cuts, &traffic, &options, &found, &err), STATUS_OK);
        assert_int_equal(placement_search(&in.arena, &cuts, &traffic, &options, &again, &err), STATUS_OK);
        assert_int_equal(found.attained, again.attained);
        assert_int_equal(found.simulations, again.simulations);
        assert_int_equal(placement_check(&cuts, &found.placement, &err), STATUS_OK);
        double *latency_s;
        assert_int_equal(found.attained, support_serve(&cuts, &found.placement, &traffic, false, &latency_s));
        free(latency_s);
        uint32_t best = best_of_all(&cuts, &traffic);
        assert_true(found.attained <= best);
        met += found.attained == best;
        assert_int_equal(serving_bound(&in, &traffic, &work_bound, &err), STATUS_OK);
        assert_int_equal(placement_bound(&in, &traffic, &bound, &err), STATUS_OK);
        assert_true(bound.known);
        assert_true(best <= work_bound);
        if (best > bound.attained) fail_msg("a placement attains %u, and the bound is %u", best, bound.attained);
        tight += bound.attained < work_bound;
        sum[0] += best;
        sum[1] += bound.attained < work_bound ? bound.attained : work_bound;
        sum[2] += work_bound;
        traffic_release(&traffic);
        serving_release(&in);
    }
    print_message("the search found the best of all placements in %u of %u; %u requests attained, bounds of %u, by "
                  "work alone %u\n", met, trials, sum[0], sum[1], sum[2]);
    assert_true(10 * met >= 7 * trials); /* a few of small search budgets miss it */
    assert_true(4 * tight >= trials);    /* a bound of all requests would hold as well */
}

/* --- unlike groups ----------------------------------------------------------------------------- */

static uint32_t search(const struct serving_cuts *cuts, const struct traffic *traffic, struct serving_shape shape)
{
    struct arena arena = {0};
    struct error err = {0};
    struct placement_found found;
    struct placement_search_options options = {.simulations = 100, .shape = shape};
    assert_int_equal(placement_search(&arena, cuts, traffic, &options, &found, &err), STATUS_OK);
    arena_release(&arena);
    return found.attained;
}

/*
 * 'big' has 18 B, and a device 10: it needs two. 'fast' is to take 1.2 s and takes 1 s on one device, 1.5 on two.
 * Three groups, of 1 x 2, 1 x 1 and 1 x 1, answer all: big comes every 2 s and takes 1.5 s, fast every 2 / 3 s and
 * takes 1 s on either of two devices.
 */
static void unlike_models_have_unlike_groups(void **state)
{
    (void)state;
    struct serving in;
    struct serving_cuts cuts;
    struct traffic traffic;
    struct error err = {0};
    support_serving(&in, "{'spillway_serving': 1, 'devices': 4, 'memory': '10 B', 'horizon': '40s', 'models': ["
                         "{'name': 'big', 'latency': '1s', 'layers': 2, 'weights': '18 B', 'hop': '0.5s', "
                         "'objective': '3s','arrivals': {'process': 'even', 'rate': 0.5}},"
                         "{'name': 'fast', 'latency': '1s', 'layers': 2, 'weights': '6 B', 'hop': '0.5s', "
                         "'objective': '1.2s','arrivals': {'process': 'even', 'rate': 1.5}}]}");
    support_serving_cuts(&in, &cuts);
    assert_int_equal(traffic_make(&in, 0, 1, &traffic, &err), STATUS_OK);
    assert_int_equal(traffic.count, 20 + 60);
    assert_int_equal(search(&cuts, &traffic, (struct serving_shape){1, 1}), 60);
    assert_int_equal(search(&cuts, &traffic, (struct serving_shape){1, 2}), 20);
    assert_int_equal(search(&cuts, &traffic, (struct serving_shape){0, 0}), 80);
    traffic_release(&traffic);
    serving_release(&in);
}

/* --- bounds in closed form --------------------------------------------------------------------- */

static uint32_t bound_of(const char *text)
{
    struct serving in;
    struct traffic traffic;
    struct error err = {0};
    struct placement_bound bound;
    support_serving(&in, "%s", text);
    assert_int_equal(traffic_make(&in, 0, 1, &traffic, &err), STATUS_OK);
    assert_int_equal(placement_bound(&in, &traffic, &bound, &err), STATUS_OK);
    assert_true(bound.known);
    traffic_release(&traffic);
    serving_release(&in);
    return bound.attained;
}

#define MODELS(devices, memory) \
    "{'spillway_serving': 1, 'devices': " devices ", 'memory': '" memory "', 'horizon': '100s', 'models': ["

static void bounds_know_of_memory(void **state)
{
    (void)state;
    /* a device has room for one of three models with 10, 10 and 10 requests far from each other: two of them */
    assert_int_equal(bound_of(MODELS("2", "5 B") "{'name': 'm', 'count': 3, 'latency': '1s', 'weights': '5 B',"
                              "'objective': '3s', 'arrivals': {'process': 'even', 'rate': 0.3}}]}"), 20);
    /* 2.4 B each of 5 B: two models fit on a device and not 2.08 */
    assert_int_equal(bound_of(MODELS("1", "5 B") "{'name': 'm', 'count': 3, 'latency': '1s', 'weights': '2.4 B',"
                              "'objective': '9s', 'arrivals': {'process': 'even', 'rate': 0.3}}]}"), 20);
    /* without an objective as well */
    assert_int_equal(bound_of(MODELS("1", "5 B") "{'name': 'm', 'count': 3, 'latency': '1s', 'weights': '5 B',"
                              "'arrivals': {'process': 'even', 'rate': 0.3}}]}"), 10);
    /* too large for every group */
    assert_int_equal(bound_of(MODELS("4", "5 B") "{'name': 'm', 'latency': '1s', 'weights': '21 B', 'layers': 4,"
                              "'arrivals': {'process': 'even', 'rate': 0.3}}]}"), 0);
}

static void bounds_know_of_bursts(void **state)
{
    (void)state;
    /* five at once on each of two devices: 2.9 of 1 s fit into the objective, which are 2 */
    assert_int_equal(bound_of(MODELS("2", "5 B") "{'name': 'm', 'latency': '1s', 'weights': '5 B', 'objective': '2.9s',"
                              "'arrivals': {'times': [3, 3, 3, 3, 3, 3, 3, 3, 3, 3]}}]}"), 4);
    /* in batches of 2, which take 1.4 s: four of them in 2.9 s on each device */
    assert_int_equal(bound_of(MODELS("2", "5 B") "{'name': 'm', 'latency': '1s', 'weights': '5 B', 'objective': '2.9s',"
                              "'batch': {'most': 2, 'base': '0.6s'},"
                              "'arrivals': {'times': [3, 3, 3, 3, 3, 3, 3, 3, 3, 3]}}]}"), 8);
    /* layers of 0.25 s on four devices: stages in a row answer one at 1, 1.25, 1.5 s; single devices one each */
    assert_int_equal(bound_of(MODELS("4", "5 B") "{'name': 'm', 'latency': '1s', 'layers': 4, 'weights': '5 B',"
                              "'objective': '1.6s', 'arrivals': {'times': [3, 3, 3, 3, 3, 3, 3, 3, 3, 3]}}]}"), 4);
    /* two bursts of other models, where memory for both is on no device, but on two in a row */
    assert_int_equal(bound_of(MODELS("2", "5 B") "{'name': 'a', 'latency': '1s', 'weights': '5 B', 'objective': '1.5s',"
                              "'arrivals': {'times': [3, 3, 3]}}, {'name': 'b', 'latency': '1s', 'weights': '5 B',"
                              "'objective': '1.5s', 'arrivals': {'times': [50, 50, 50]}}]}"), 2);
}

/* --- runs -------------------------------------------------------------------------------------- */

/* Groups of one shape, all windows alike: the best of all sets of requests, what fits being no whole number. */
static void runs_are_the_minimum_cut(void **state)
{
    (void)state;
    for (int trial = 0; trial < 200; trial++) {
        enum { MOST = 10 };
        struct traffic_request requests[MOST];
        struct traffic traffic = {requests, 1 + (uint32_t)below(MOST)};
        struct placement_window window = {true, unit(), 1 + 2 * unit(), 1 + unit()};
        double groups = 0.3 + 1.5 * unit(), at_s = 0, best = 0;
        struct placement_window_shapes shapes = {&window, &groups, 1, 1};
        uint32_t all[MOST], chosen[MOST], ends[MOST];
        bool from[2 * MOST];
        struct placement_window_runs runs = {chosen, ends, 0, 0};
        for (uint32_t r = 0; r < traffic.count; r++) {
            requests[r] = (struct traffic_request){at_s += 1.5 * unit(), 0};
            all[r] = r;
        }
        for (uint32_t set = 0; set < 1u << traffic.count; set++) {
            double value = 0, until_s = -1;
            for (uint32_t r = 0; r < traffic.count; r++) {
                double end_s = requests[r].at_s + window.length_s;
                if (!(set >> r & 1)) continue;
                value += 1 - groups * (end_s - fmax(requests[r].at_s, until_s)) / window.work_s;
                until_s = end_s;
            }
            best = fmax(best, value);
        }
        placement_window_runs_find(&traffic, &shapes, 0, all, traffic.count, from, &runs);
        double value = 0, until_s = -1;
        for (uint32_t i = 0; i < runs.request_count; i++) {
            double end_s = requests[runs.requests[i]].at_s + window.length_s;
            assert_true(i == 0 || runs.requests[i] > runs.requests[i - 1]);
            value += 1 - groups * (end_s - fmax(requests[runs.requests[i]].at_s, until_s)) / window.work_s;
            until_s = end_s;
        }
        assert_true(runs.run_count == 0 || runs.ends[runs.run_count - 1] == runs.request_count);
        for (uint32_t i = 1; i < runs.run_count; i++) assert_true(runs.ends[i] > runs.ends[i - 1]);
        if (!(fabs(value - best) < 1e-9)) fail_msg("runs are worth %.12g, and the best %.12g", value, best);
    }
}

/* --- bursts ------------------------------------------------------------------------------------ */

/* How many more of two models' requests attain where both are on one pipeline of two devices than where each has a
 * device of its own, in shares. */
static double gain(double cv)
{
    static const char text[] = "{'spillway_serving': 1, 'devices': 2, 'memory': '4 B', 'horizon': '8000s', 'models': ["
                               "{'name': 'm', 'count': 2, 'latency': '1s', 'layers': 2, 'weights': '2 B', 'hop': "
                               "'0.02s','objective': '4s', 'arrivals': {'process': 'gamma', 'rate': 1, 'cv': %g}}]}";
    struct serving in;
    struct serving_cuts cuts;
    struct traffic traffic;
    struct error err = {0};
    uint32_t models[2] = {0, 1};
    struct serving_group apart[] = {{{1, 1}, models, 1}, {{1, 1}, models + 1, 1}}, both[] = {{{1, 2}, models, 2}};
    double *latency_s;
    support_serving(&in, text, cv);
    support_serving_cuts(&in, &cuts);
    assert_int_equal(traffic_make(&in, 7, 1, &traffic, &err), STATUS_OK);
    double alone = support_serve(&cuts, &(struct serving_placement){apart, 2}, &traffic, false, &latency_s);
    free(latency_s);
    double shared = support_serve(&cuts, &(struct serving_placement){both, 1}, &traffic, false, &latency_s);
    free(latency_s);
    double count = traffic.count;
    print_message("cv %g: %.3f apart, %.3f together\n", cv, alone / count, shared / count);
    traffic_release(&traffic);
    serving_release(&in);
    return (shared - alone) / count;
}

/* AlpaServe, section 3: the burstier requests are, the more there is to gain from devices that all models share. */
static void bursts_gain_from_sharing(void **state)
{
    (void)state;
    static const double cvs[] = {1, 2, 4};
    double last = 0;
    for (size_t i = 0; i < ARRAY_COUNT(cvs); i++) {
        double now = gain(cvs[i]);
        assert_true(now > last);
        last = now;
    }
    assert_true(last > 0.05);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(is_the_best_of_all, set_seed),
        cmocka_unit_test(unlike_models_have_unlike_groups),
        cmocka_unit_test(bounds_know_of_memory),
        cmocka_unit_test(bounds_know_of_bursts),
        cmocka_unit_test_setup(runs_are_the_minimum_cut, set_seed),
        cmocka_unit_test(bursts_gain_from_sharing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
