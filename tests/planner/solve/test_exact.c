/* label: long
 * Bounds, searches and exact methods against each other: bound <= optimum <= search, and optimum by
 * trying everything = branch and bound = label setting = GLPK; the theorem on LRTF; limits; same seed, same schedule.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/process/clock.h"
#include "base/random.h"
#include "base/size.h"
#include "planner/solve/bounds/assignment.h"
#include "planner/solve/certify/certify.h"
#include "planner/solve/exact/branch_bound.h"
#include "planner/solve/exact/formulation.h"
#include "planner/solve/exact/label_setting.h"
#include "planner/solve/instance/instance_random.h"
#include "planner/solve/instance/timetable_check.h"
#include "planner/solve/search/list_baseline.h"
#include "tests/support/solve/support_instance.h"
#include "tests/support/support_seed.h"

/* --- the assignment problem ------------------------------------------------------------------ */

static int64_t cheapest(const int64_t *cost, uint32_t n, uint32_t row, uint32_t used)
{
    if (row == n) return 0;
    int64_t best = INT64_MAX / 2;
    for (uint32_t k = 0; k < n; k++)
        if (!(used & 1u << k)) {
            int64_t value = cost[row * n + k] + cheapest(cost, n, row + 1, used | 1u << k);
            if (value < best) best = value;
        }
    return best;
}

/* Duals are feasible and attain the optimum over all permutations. */
static void assignments(void **state)
{
    (void)state;
    uint64_t seed = support_seed("assignments");
    for (uint32_t c = 0; c < 300; c++) {
        uint32_t n = 1 + (uint32_t)random_below(seed, c, 6), ones[6] = {1, 1, 1, 1, 1, 1};
        int64_t cost[36], row[6], column[6], sum = 0;
        struct error err = {0};
        for (uint32_t i = 0; i < n * n; i++) cost[i] = (int64_t)random_below(seed ^ c, i, 30);
        assert_int_equal(assignment_solve(cost, n, ones, ones, row, column, &err), STATUS_OK);
        for (uint32_t i = 0; i < n * n; i++) assert_true(row[i / n] + column[i % n] <= cost[i]);
        for (uint32_t i = 0; i < n; i++) sum += row[i] + column[i];
        assert_int_equal(sum, cheapest(cost, n, 0, 0));
    }
}

/* Two rows of 3 and 2, two columns of 1 and 4; costs 5 2 / 1 9: the second row ships 1 for 1 and
 * 1 for 9, the first 3 for 2: 16. The other way, 5 + 2 * 2 + 2 * 9 = 27. */
static void transports(void **state)
{
    (void)state;
    static const int64_t cost[] = {5, 2, 1, 9};
    static const uint32_t supply[] = {3, 2}, demand[] = {1, 4};
    int64_t row[2], column[2];
    struct error err = {0};
    assert_int_equal(assignment_solve(cost, 2, supply, demand, row, column, &err), STATUS_OK);
    assert_int_equal(3 * row[0] + 2 * row[1] + column[0] + 4 * column[1], 16);
    static const int64_t forbidden[] = {ASSIGNMENT_FORBIDDEN, 2, ASSIGNMENT_FORBIDDEN, 9};
    assert_int_equal(assignment_solve(forbidden, 2, supply, demand, row, column, &err), STATUS_INFEASIBLE);
}

/* --- everything against everything ----------------------------------------------------------- */

static void stop(const struct instance *in, uint64_t seed, const char *what, int64_t found, int64_t expected)
{
    test_instance_print(in);
    fail_msg("seed %" PRIu64 ": %s %" PRId64 ", optimum %" PRId64, seed, what, found, expected);
}

static int64_t by_branching(const struct instance *in, const struct instance_bounds *bounds)
{
    struct dispatch_step *steps = calloc(in->task_count, sizeof *steps);
    struct branch_bound_options options = {.until_s = HUGE_VAL, .memory_bytes = 1 << 20};
    struct branch_bound_result result;
    struct timetable table = {0};
    struct error err = {0};
    int64_t value;
    assert_non_null(steps);
    assert_int_equal(list_baseline_lrtf(in, HUGE_VAL, steps, &value, &err), STATUS_OK);
    if (branch_bound_run(in, bounds, &options, steps, &value, &result, &err)) fail_msg("%s", err.text);
    assert_true(result.proven);
    if (timetable_make(in, steps, &table, &err) || timetable_check(in, &table, &err)) fail_msg("%s", err.text);
    assert_true(table.value <= value);
    value = table.value;
    timetable_release(&table);
    free(steps);
    return value;
}

/* Checks that label setting finds the optimum, or proves it, from any known schedule. */
static void check_label_setting(const struct instance *in, const struct instance_bounds *bounds, uint64_t seed,
                                int64_t best)
{
    struct label_setting_options options = {.until_s = HUGE_VAL, .memory_bytes = 1 << 20};
    struct label_setting_result result;
    struct error err = {0};
    if (!label_setting_takes(in)) return;
    struct dispatch_step *steps = calloc(in->task_count, sizeof *steps);
    assert_non_null(steps);
    for (int64_t more = 0; more < 2; more++) {
        int64_t value = best + more;
        if (label_setting_run(in, bounds, &options, steps, &value, &result, &err)) fail_msg("%s", err.text);
        assert_true(result.proven);
        if (value != best) stop(in, seed, "label setting", value, best);
    }
    free(steps);
}

static void tiny(void **state)
{
    (void)state;
    uint64_t seed = support_seed("tiny");
    for (uint32_t c = 0; c < 400; c++) {
        struct instance in;
        struct instance_bounds bounds = {0};
        struct timetable table = {0};
        struct certificate certificate;
        struct error err = {0};
        struct certify_options options = {.seed = c, .iterations = 40, .search_limit_s = HUGE_VAL};
        test_instance_tiny(random_u64(seed, c), 3, &in);
        if (in.task_count > 7) {
            instance_release(&in);
            continue;
        }
        int64_t best = test_brute_force(&in);
        assert_int_equal(instance_bounds_make(&in, &bounds, &err), STATUS_OK);
        for (uint32_t b = 0; b < INSTANCE_BOUND_COUNT; b++)
            if (bounds.value[b] > best) stop(&in, seed, instance_bound_names[b], bounds.value[b], best);
        int64_t branched = by_branching(&in, &bounds);
        if (branched != best) stop(&in, seed, "branch and bound", branched, best);
        check_label_setting(&in, &bounds, seed, best);
        if (certify(&in, &options, &table, &certificate, &err)) fail_msg("%s", err.text);
        if (certificate.value < best) stop(&in, seed, "search", certificate.value, best);
        timetable_release(&table);
        instance_bounds_release(&bounds);
        instance_release(&in);
    }
}

/* The bound where there are too many units for a matrix. */
static void sorted_bound(void **state)
{
    (void)state;
    uint64_t seed = support_seed("sorted bound");
    struct instance_random options = {.family = INSTANCE_FAMILY_COPY, .seed = seed, .devices = {16, 16},
                                      .jobs = {40, 40}, .shards = {8, 8}, .minibatches = {1, 2}};
    struct instance in = {0};
    struct instance_bounds bounds = {0};
    struct error err = {0};
    assert_int_equal(instance_random(&options, &in, &err), STATUS_OK);
    assert_true(in.unit_count > INSTANCE_BOUND_UNITS_MAX);
    assert_int_equal(instance_bounds_make(&in, &bounds, &err), STATUS_OK);
    assert_int_equal(bounds.best, INSTANCE_BOUND_SORTED);
    for (uint32_t j = 0; j < in.unit_count; j++) {
        for (uint32_t k = 0; k < in.unit_count; k++)
            assert_true(bounds.row[j] + bounds.column[k] <= instance_distance(&in, j, k));
        int64_t first = in.units[j].in > instance_head(&in, j) ? in.units[j].in : instance_head(&in, j);
        assert_true(bounds.row_start + bounds.column[j] <= first);
        assert_true(bounds.row[j] + bounds.column_end <= instance_tail(&in, j));
    }
    instance_bounds_release(&bounds);
    instance_release(&in);
}

static void solvers_agree(void **state)
{
    (void)state;
    uint32_t proven = 0;
    uint64_t seed = support_seed("solvers agree");
    for (uint32_t c = 0; c < 24; c++) {
        enum instance_family family = (enum instance_family)(c % 4);
        struct instance_random options = {.family = family, .seed = random_u64(seed, c) >> 8, .devices = {2, 3},
                                          .jobs = {2, 3}, .shards = {2, 2}, .minibatches = {1, 1},
                                          .forward = {2, 6}};
        struct instance in = {0};
        struct instance_bounds bounds = {0};
        struct error err = {0};
        assert_int_equal(instance_random(&options, &in, &err), STATUS_OK);
        assert_int_equal(instance_bounds_make(&in, &bounds, &err), STATUS_OK);
        int64_t best = by_branching(&in, &bounds);
        check_label_setting(&in, &bounds, seed, best);
        struct dispatch_step *steps = calloc(in.task_count, sizeof *steps);
        assert_non_null(steps);
        for (uint32_t kind = 0; kind < FORMULATION_COUNT; kind++) {
            struct formulation_result result;
            int64_t value;
            if (kind != FORMULATION_ADJACENCY && family != INSTANCE_FAMILY_COMPUTE) continue;
            assert_int_equal(list_baseline_hydra(&in, HUGE_VAL, steps, &value, &err), STATUS_OK);
            if (formulation_solve(&in, &bounds, kind, "glpk", 60, steps, &value, &result, &err))
                fail_msg("%s: %s", formulation_names[kind], err.text);
            if (!result.proven && result.status == MILP_STOPPED) continue; /* a machine that stood still */
            assert_true(result.proven);
            proven++;
            if (value != best) stop(&in, seed, formulation_names[kind], value, best);
        }
        free(steps);
        instance_bounds_release(&bounds);
        instance_release(&in);
    }
    assert_true(proven > 0);
}

/* A known schedule fulfils every row of every formulation, and comes back from its values. */
static void schedules_as_values(void **state)
{
    (void)state;
    uint64_t seed = support_seed("schedules as values");
    for (uint32_t c = 0; c < 60; c++) {
        uint32_t kind = c % FORMULATION_COUNT;
        struct instance_random options = {
            .family = kind == FORMULATION_ADJACENCY ? (enum instance_family)(c / 3 % 4) : INSTANCE_FAMILY_COMPUTE,
            .seed = random_u64(seed, c) >> 8, .devices = {2, 3}, .jobs = {3, 5}, .shards = {2, 3},
            .minibatches = {1, 2}};
        struct instance in = {0};
        struct instance_bounds bounds = {0};
        struct timetable table = {0};
        struct formulation *f;
        struct error err = {0};
        int64_t value;
        assert_int_equal(instance_random(&options, &in, &err), STATUS_OK);
        assert_int_equal(instance_bounds_make(&in, &bounds, &err), STATUS_OK);
        struct dispatch_step *steps = calloc(in.task_count, sizeof *steps);
        assert_int_equal(list_baseline_lrtf(&in, HUGE_VAL, steps, &value, &err), STATUS_OK);
        assert_int_equal(timetable_make(&in, steps, &table, &err), STATUS_OK);
        if (formulation_create(&in, &bounds, kind, value + 3, &f, &err)) fail_msg("%s", err.text);
        double *x = calloc(milp_column_count(formulation_milp(f)) + 1, sizeof *x);
        if (formulation_values(f, &table, x, &err)) fail_msg("%s", err.text);
        assert_true(milp_feasible(formulation_milp(f), x));
        if (kind != FORMULATION_TIME_INDEXED)
            assert_int_equal((int64_t)milp_objective(formulation_milp(f), x), value);
        if (formulation_steps(f, x, steps, &err)) fail_msg("%s", err.text);
        timetable_release(&table);
        assert_int_equal(timetable_make(&in, steps, &table, &err), STATUS_OK);
        assert_int_equal(table.value, value);
        free(x);
        free(steps);
        formulation_destroy(f);
        timetable_release(&table);
        instance_bounds_release(&bounds);
        instance_release(&in);
    }
}

/* Multiplies all durations by `factor`. */
static void stretch(struct instance *in, int64_t factor)
{
    struct error err = {0};
    for (uint32_t u = 0; u < in->unit_count; u++) {
        in->units[u].in *= factor;
        in->units[u].out *= factor;
        in->compute[u] *= factor;
    }
    assert_int_equal(instance_finish(in, &err), STATUS_OK);
}

/* The time that devices lose at first, where that is most of the schedule; and with time cut into parts. */
static void bounds_of_openings(void **state)
{
    (void)state;
    uint64_t seed = support_seed("bounds of openings");
    uint32_t more = 0, more_stretched = 0;
    for (uint32_t c = 0; c < 300; c++) {
        enum instance_family family = c % 4 == 3 ? INSTANCE_FAMILY_COPY : INSTANCE_FAMILY_TIGHT;
        struct instance_random options = {.family = family, .seed = random_u64(seed, c) >> 8, .devices = {2, 3},
                                          .jobs = {3, 4}, .shards = {2, 2}, .minibatches = {1, 1}};
        struct instance in = {0};
        struct instance_bounds bounds = {0};
        struct error err = {0};
        assert_int_equal(instance_random(&options, &in, &err), STATUS_OK);
        assert_int_equal(instance_bounds_make(&in, &bounds, &err), STATUS_OK);
        int64_t bound = bounds.value[INSTANCE_BOUND_OPENING], best = by_branching(&in, &bounds);
        if (bound > best) stop(&in, seed, "opening", bound, best);
        more += bound > bounds.value[INSTANCE_BOUND_ASSIGNMENT];
        instance_bounds_release(&bounds);
        stretch(&in, 41);
        assert_int_equal(instance_bounds_make(&in, &bounds, &err), STATUS_OK);
        bound = bounds.value[INSTANCE_BOUND_OPENING];
        if (bound > 41 * best) stop(&in, seed, "opening, stretched", bound, 41 * best);
        more_stretched += bound > bounds.value[INSTANCE_BOUND_ASSIGNMENT];
        instance_bounds_release(&bounds);
        instance_release(&in);
    }
    assert_true(more > 0);
    assert_true(more_stretched > 0);
}

/* Bounds of several minibatches, compared with branch and bound that knows only the duals. */
static void bounds_of_minibatches(void **state)
{
    (void)state;
    uint64_t seed = support_seed("bounds of minibatches");
    uint32_t met = 0;
    for (uint32_t c = 0; c < 400; c++) {
        struct instance_random options = {.family = (enum instance_family)(c % 4), .seed = random_u64(seed, c) >> 8,
                                          .devices = {1, 4}, .jobs = {1, 4}, .shards = {1, 2},
                                          .minibatches = {1, 3}};
        struct instance in = {0};
        struct instance_bounds bounds = {0};
        struct error err = {0};
        assert_int_equal(instance_random(&options, &in, &err), STATUS_OK);
        assert_int_equal(instance_bounds_make(&in, &bounds, &err), STATUS_OK);
        if (in.task_count <= 14) {
            int64_t bound = instance_bounds_best(&bounds);
            memset(bounds.value, 0, sizeof bounds.value);
            int64_t best = by_branching(&in, &bounds);
            if (bound > best) stop(&in, seed, "bound", bound, best);
            met += bound == best;
        }
        instance_bounds_release(&bounds);
        instance_release(&in);
    }
    assert_true(met > 0);
}

/* --- theorem, limits, determinism ------------------------------------------------------------ */

/* Without copies: C <= max(longest chain, W / G + (1 - 1/G) longest task). */
static void lrtf_theorem(void **state)
{
    (void)state;
    uint64_t seed = support_seed("LRTF theorem");
    for (uint32_t c = 0; c < 2000; c++) {
        struct instance_random options = {.family = INSTANCE_FAMILY_COMPUTE, .seed = random_u64(seed, c) >> 8,
                                          .devices = {1, 6}, .jobs = {1, 9}, .shards = {1, 3},
                                          .minibatches = {1, 2}, .forward = {1, 30}};
        struct instance in = {0};
        struct error err = {0};
        int64_t value, work = 0, longest_task = 0, longest_chain = 0;
        assert_int_equal(instance_random(&options, &in, &err), STATUS_OK);
        struct dispatch_step *steps = calloc(in.task_count, sizeof *steps);
        assert_int_equal(list_baseline_lrtf(&in, HUGE_VAL, steps, &value, &err), STATUS_OK);
        for (uint32_t i = 0; i < in.job_count; i++) {
            int64_t chain = 0;
            for (uint32_t t = 0; t < instance_length(&in.jobs[i]); t++) {
                int64_t p = instance_compute(&in, instance_unit_at(&in.jobs[i], t), 0);
                chain += p;
                if (p > longest_task) longest_task = p;
            }
            work += chain;
            if (chain > longest_chain) longest_chain = chain;
        }
        int64_t devices = in.device_count;
        if (value > longest_chain && devices * value > work + (devices - 1) * longest_task)
            stop(&in, seed, "LRTF", value, (work + (devices - 1) * longest_task) / devices);
        free(steps);
        instance_release(&in);
    }
}

static void copy_instance(struct instance *in, uint32_t devices, uint32_t jobs, uint64_t seed)
{
    struct instance_random options = {.family = INSTANCE_FAMILY_COPY, .seed = seed, .devices = {devices, devices},
                                      .jobs = {jobs, jobs}, .shards = {4, 4}, .minibatches = {1, 1}};
    struct error err = {0};
    *in = (struct instance){0};
    assert_int_equal(instance_random(&options, in, &err), STATUS_OK);
}

static void same_seed(void **state)
{
    (void)state;
    struct instance in;
    struct timetable a = {0}, b = {0};
    struct certificate first, second;
    struct certify_options options = {.seed = 5, .iterations = 60, .search_limit_s = HUGE_VAL,
                                      .exact_limit_s = 1e9, .nodes_max = 2000};
    struct error err = {0};
    copy_instance(&in, 4, 8, 3);
    assert_int_equal(certify(&in, &options, &a, &first, &err), STATUS_OK);
    assert_int_equal(certify(&in, &options, &b, &second, &err), STATUS_OK);
    assert_memory_equal(a.tasks, b.tasks, in.task_count * sizeof *a.tasks);
    assert_int_equal(first.iterations, second.iterations);
    assert_int_equal(first.nodes, second.nodes);
    timetable_release(&a);
    timetable_release(&b);
    instance_release(&in);
}

static void time_limits(void **state)
{
    (void)state;
    static const double limits[] = {1e-9, 0.01, 0.2};
    struct instance in;
    copy_instance(&in, 8, 24, 9);
    for (size_t l = 0; l < ARRAY_COUNT(limits); l++) {
        struct timetable table = {0};
        struct certificate c;
        struct error err = {0};
        struct certify_options options = {.iterations = UINT32_MAX, .search_limit_s = limits[l],
                                          .exact_limit_s = limits[l], .solver = "glpk",
                                          .solver_limit_s = limits[l]};
        double started = clock_s();
        assert_int_equal(certify(&in, &options, &table, &c, &err), STATUS_OK);
        assert_true(clock_s() - started < 3 * limits[l] + 2); /* bounds, baselines; a busy machine */
        assert_true(c.value >= c.bound && c.bound > 0);
        timetable_release(&table);
    }
    instance_release(&in);
}

static void texts(void **state)
{
    (void)state;
    struct instance in;
    char text[CERTIFICATE_TEXT_BYTES];
    struct certificate c = {.value = 1326, .bound = 1326, .proved_by = INSTANCE_BOUND_AREA};
    test_instance("{'spillway_instance': 1, 'devices': [{'memory': 1}], 'jobs': ["
                  " {'name': 'a', 'units': [{'compute': 2}]}]}", &in);
    assert_string_equal(certificate_text(&in, &c, text), "makespan 1326 is optimal: it equals the area bound");
    c.status = CERTIFICATE_SEARCHED;
    c.nodes = 77;
    assert_string_equal(certificate_text(&in, &c, text),
                        "makespan 1326 is optimal: branch and bound left nothing out (77 nodes)");
    c.status = CERTIFICATE_GAP;
    c.bound = 1300;
    assert_string_equal(certificate_text(&in, &c, text),
                        "makespan 1326 is within 2.00 % of the optimum (area bound 1300)");
    instance_release(&in);
}

/* --- copies out that end last ----------------------------------------------------------------- */

struct late_unit {
    int64_t compute[2], in, out;
    uint64_t memory, in_bytes, out_bytes;
    uint32_t shard;
    bool writes;
};

/* Jobs of two and three units whose early copies out may end after their last unit. In the first the limit falls
 * while a schedule that keeps only the old one is being continued; in the others two partial schedules differ in
 * such an end. */
static const struct late_case {
    enum instance_objective objective;
    uint64_t bridge, memory;
    uint32_t weights[2];
    int64_t best;
    struct late_unit units[5];
} late_cases[] = {
    {OBJECTIVE_MAKESPAN, 2, 7, {2, 3}, 16,
     {{{9, 6}, 1, 7, 3, 1, 0, 1, true}, {{6, 2}, 2, 0, 7, 8, 1, 0, false}, {{8, 3}, 4, 0, 3, 8, 8, 1, false},
      {{2, 9}, 2, 0, 4, 9, 2, 1, false}, {{4, 9}, 6, 0, 7, 5, 8, 1, false}}},
    {OBJECTIVE_WEIGHTED, 0, 9, {3, 2}, 49,
     {{{9, 3}, 2, 0, 6, 0, 0, 0, false}, {{9, 2}, 1, 4, 3, 0, 0, 0, true}, {{4, 2}, 0, 5, 3, 0, 0, 1, true},
      {{2, 9}, 5, 0, 4, 0, 0, 2, false}, {{1, 9}, 0, 0, 4, 0, 0, 0, false}}},
    {OBJECTIVE_MEAN, 0, 7, {3, 2}, 38,
     {{{2, 9}, 5, 4, 4, 0, 0, 2, true}, {{9, 9}, 0, 0, 4, 0, 0, 0, false}, {{4, 3}, 2, 4, 6, 0, 0, 1, true},
      {{6, 7}, 2, 5, 5, 0, 0, 0, true}, {{5, 1}, 5, 0, 6, 0, 0, 2, false}}},
};

static void late_copies(void **state)
{
    (void)state;
    for (size_t c = 0; c < sizeof late_cases / sizeof *late_cases; c++) {
        const struct late_case *of = &late_cases[c];
        struct instance in = {0};
        struct instance_bounds bounds = {0};
        struct error err = {0};
        assert_int_equal(instance_init(&in, 2, 2, 5, &err), STATUS_OK);
        in.objective = of->objective;
        in.bridge_bytes_per_tick = of->bridge;
        for (uint32_t k = 0; k < 2; k++) {
            in.classes[k].device_count = 1;
            in.classes[k].memory = k == 0 ? 10 : of->memory;
            in.classes[k].slots = INSTANCE_SLOTS;
            in.jobs[k].first_unit = 2 * k;
            in.jobs[k].unit_count = 2 + k;
            in.jobs[k].repeat = 1;
            in.jobs[k].weight = of->weights[k];
            in.jobs[k].deadline = INSTANCE_HORIZON_MAX;
        }
        for (uint32_t u = 0; u < 5; u++) {
            const struct late_unit *unit = &of->units[u];
            memcpy(&in.compute[2 * u], unit->compute, sizeof unit->compute);
            in.units[u] = (struct instance_unit){.in = unit->in, .out = unit->out, .in_bytes = unit->in_bytes,
                                                 .out_bytes = unit->out_bytes, .memory = unit->memory,
                                                 .job = u < 2 ? 0 : 1, .shard = unit->shard, .writes = unit->writes};
        }
        assert_int_equal(instance_finish(&in, &err), STATUS_OK);
        assert_int_equal(test_brute_force(&in), of->best);
        assert_int_equal(instance_bounds_make(&in, &bounds, &err), STATUS_OK);
        assert_int_equal(by_branching(&in, &bounds), of->best);
        instance_bounds_release(&bounds);
        instance_release(&in);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(assignments),   cmocka_unit_test(transports),
        cmocka_unit_test(tiny),          cmocka_unit_test(sorted_bound),
        cmocka_unit_test(solvers_agree), cmocka_unit_test(schedules_as_values),
        cmocka_unit_test(bounds_of_minibatches), cmocka_unit_test(bounds_of_openings),
        cmocka_unit_test(lrtf_theorem),  cmocka_unit_test(same_seed),
        cmocka_unit_test(time_limits),   cmocka_unit_test(texts),
        cmocka_unit_test(late_copies)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
