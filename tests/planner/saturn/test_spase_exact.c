/*
 * Bounds, searches and exact methods for SPASE against each other: bounds <= optimum <= search and
 * baselines, and optimum by trying everything = depth-first search = GLPK on the flow formulation; a
 * published formulation that lies; limits; introspection; same seed, same schedule.
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
#include "planner/saturn/spase/spase_baseline.h"
#include "planner/saturn/spase/spase_bound.h"
#include "planner/saturn/spase/spase_branch.h"
#include "planner/saturn/spase/spase_certify.h"
#include "planner/saturn/spase/spase_formulation.h"
#include "planner/saturn/spase/spase_introspect.h"
#include "planner/saturn/spase/spase_search.h"
#include "planner/saturn/spase/spase_stack.h"
#include "tests/support/solve/support_spase.h"
#include "tests/support/support_seed.h"

static void stop(const struct spase *in, uint64_t seed, const char *what, int64_t found, int64_t expected)
{
    test_spase_print(in);
    fail_msg("seed %" PRIu64 ": %s %" PRId64 ", optimum %" PRId64, seed, what, found, expected);
}

/* --- bounds ---------------------------------------------------------------------------------- */

/* Three jobs that need 3 of 5 devices for 10 ticks: area says 3 * 3 * 10 / 5 = 18, but no two fit
 * at the same time, so 30. Then two jobs of 2 devices for 21: with 20 < T < 42 on 3 devices the area is 28, but both
 * cover the middle of [0, T], and 2 + 2 > 3: 42. */
static void scaled_bounds(void **state)
{
    (void)state;
    struct spase in;
    struct spase_bounds b;
    struct error err = {0};
    test_spase("{'spillway_spase': 1, 'nodes': [{'devices': 5}], 'jobs': ["
               "{'name': 'a', 'configurations': [{'parallelism': 'x', 'devices': 3, 'ticks': 10}]},"
               "{'name': 'b', 'configurations': [{'parallelism': 'x', 'devices': 3, 'ticks': 10}]},"
               "{'name': 'c', 'configurations': [{'parallelism': 'x', 'devices': 3, 'ticks': 10}]}]}", &in);
    assert_int_equal(spase_bounds_make(&in, 100, HUGE_VAL, &b, &err), STATUS_OK);
    assert_int_equal(b.value[SPASE_BOUND_AREA], 18);
    assert_int_equal(b.value[SPASE_BOUND_LONGEST], 10);
    assert_int_equal(b.value[SPASE_BOUND_SCALED], 30);
    assert_int_equal(b.best, SPASE_BOUND_SCALED);
    spase_release(&in);
    test_spase("{'spillway_spase': 1, 'nodes': [{'devices': 3}], 'jobs': ["
               "{'name': 'a', 'configurations': [{'parallelism': 'x', 'devices': 2, 'ticks': 21}]},"
               "{'name': 'b', 'configurations': [{'parallelism': 'x', 'devices': 2, 'ticks': 21},"
               " {'parallelism': 'y', 'devices': 3, 'ticks': 20}]}]}", &in);
    assert_int_equal(spase_bounds_make(&in, 42, HUGE_VAL, &b, &err), STATUS_OK);
    assert_int_equal(spase_bounds_best(&b), 41); /* y after a */
    spase_release(&in);
}

/* Two jobs on one device: 3 or 5 ticks, and 4. Within 6 ticks 5 of them can be used, within 7 all, within 3 exactly
 * 3. */
static void stacks_by_hand(void **state)
{
    (void)state;
    static const int64_t expected[] = {0, 0, 0, 3, 4, 5, 5, 7, 7, 9, 9};
    struct spase in;
    struct spase_stacks stacks;
    struct error err = {0};
    test_spase("{'spillway_spase': 1, 'nodes': [{'devices': 2}], 'jobs': ["
               "{'name': 'a', 'configurations': [{'parallelism': 'x', 'devices': 2, 'ticks': 3},"
               " {'parallelism': 'y', 'devices': 1, 'ticks': 5}]},"
               "{'name': 'b', 'configurations': [{'parallelism': 'x', 'devices': 1, 'ticks': 4}]}]}", &in);
    assert_int_equal(spase_stacks_make(&in, 10, SPASE_STACK_TICKS, &stacks, &err), STATUS_OK);
    for (int64_t t = 0; t <= 10; t++) assert_int_equal(spase_stacks_capacity(&stacks, 0, t), expected[t]);
    spase_stacks_release(&stacks);
    spase_release(&in);
}

/* For the steps from `first` on: values of their modes, and the capacity that the devices still have when all
 * earlier steps have been put on them. */
static void check_stacks_behind(const struct spase *in, const struct spase_stacks *stacks, int64_t limit,
                                const struct spase_step *steps, uint32_t first)
{
    struct spase_list list;
    struct error err = {0};
    int64_t earned = 0, capacity = 0;
    assert_int_equal(spase_list_init(&list, in, &err), STATUS_OK);
    for (uint32_t i = 0; i < in->job_count; i++) {
        const struct spase_mode *mode = &in->modes[steps[i].mode];
        if (i < first) spase_list_put(&list, mode, steps[i].node, NULL);
        else earned += mode->devices * stacks->value[steps[i].mode];
    }
    for (uint32_t n = 0; n < in->node_count; n++)
        for (uint32_t d = 0; d < in->nodes[n].device_count; d++)
            capacity += spase_stacks_capacity(stacks, in->nodes[n].class,
                                              limit - list.slots[in->nodes[n].first_device + d].free);
    assert_true(earned <= capacity && capacity < INT64_C(1) << 52);
    spase_list_release(&list);
}

/* A schedule that is there must not be refuted, from any of its states on, with any room above it. Ticks are
 * multiplied so that a step of time is one, and many. */
static void stacks_hold(void **state)
{
    (void)state;
    uint64_t seed = support_seed("stacks hold");
    for (uint32_t c = 0; c < 300; c++) {
        struct test_spase_random options = {.seed = random_u64(seed, c), .jobs = 1 + c % 12, .parallelisms = 4,
                                       .nodes = 1 + c % 3, .devices = 8, .slow_nodes = c % 2, .slow_devices = 4};
        struct spase_search_options search = {.seed = c, .iterations = 200, .until_s = HUGE_VAL};
        struct spase in = {0};
        struct spase_step steps[12];
        struct error err = {0};
        int64_t value;
        uint64_t made;
        assert_int_equal(test_spase_random(&options, &in, &err), STATUS_OK);
        for (uint32_t m = 0; m < in.mode_count && c % 4 == 0; m++) in.modes[m].ticks *= 1000;
        assert_int_equal(spase_search(&in, &search, false, steps, &value, &made, &err), STATUS_OK);
        for (enum spase_stack_values v = 0; v < SPASE_STACK_VALUES; v++) {
            int64_t limit = value + (int64_t)random_below(seed, c, 3) * value / 5;
            struct spase_stacks stacks;
            assert_int_equal(spase_stacks_make(&in, limit, v, &stacks, &err), STATUS_OK);
            for (uint32_t first = 0; first <= in.job_count; first++)
                check_stacks_behind(&in, &stacks, limit, steps, first);
            spase_stacks_release(&stacks);
        }
        spase_release(&in);
    }
}

/* --- everything against everything ----------------------------------------------------------- */

/* The least makespan that the depth-first search does not refute. */
static int64_t by_branching(const struct spase *in, int64_t known)
{
    struct spase_branch_options options = {.until_s = HUGE_VAL, .memory_bytes = 1 << 20};
    struct spase_step steps[8];
    int64_t least = known;
    for (enum spase_answer answer = SPASE_YES; answer == SPASE_YES;) {
        struct spase_schedule schedule = {0};
        struct error err = {0};
        uint64_t nodes = 0;
        if (spase_branch(in, least - 1, &options, &answer, steps, &nodes, &err)) fail_msg("%s", err.text);
        assert_true(answer != SPASE_UNKNOWN);
        if (answer == SPASE_NO) break;
        if (spase_schedule_make(in, steps, NULL, &schedule, &err) || spase_check(in, &schedule, &err))
            fail_msg("%s", err.text);
        assert_true(schedule.makespan < least);
        least = schedule.makespan;
        spase_schedule_release(&schedule);
    }
    return least;
}

static void against_allotment(const struct spase *in, uint64_t seed, int64_t best)
{
    struct spase_formulation_result result;
    struct spase_step steps[8];
    struct error err = {0};
    int64_t value = best;
    if (spase_formulation_solve(in, SPASE_ALLOTMENT, "glpk", 60, 1, steps, &value, &result, &err))
        fail_msg("%s", err.text);
    if (result.bound > best) stop(in, seed, "allotment bound", result.bound, best);
}

/* GLPK 5.0 gives up on this one's program while it makes cuts. */
static void cuts_fail(void **state)
{
    (void)state;
    uint64_t seed = 12697962643961043936U;
    struct spase in;
    test_spase_tiny(random_u64(seed, 220), 4, &in);
    against_allotment(&in, seed, test_spase_brute_force(&in));
    spase_release(&in);
}

static void tiny(void **state)
{
    (void)state;
    uint64_t seed = support_seed("tiny");
    for (uint32_t c = 0; c < 400; c++) {
        struct spase in;
        struct spase_bounds bounds;
        struct spase_schedule schedule = {0};
        struct spase_certificate certificate;
        struct spase_step steps[8];
        struct error err = {0};
        struct spase_certify_options options = {.seed = c, .iterations = 300, .search_limit_s = HUGE_VAL};
        int64_t value;
        test_spase_tiny(random_u64(seed, c), 4, &in);
        int64_t best = test_spase_brute_force(&in);
        assert_int_equal(spase_bounds_make(&in, in.horizon, HUGE_VAL, &bounds, &err), STATUS_OK);
        static const char *const names[SPASE_BOUND_COUNT] = {"longest", "area", "scaled"};
        for (uint32_t b = 0; b < SPASE_BOUND_COUNT; b++)
            if (bounds.value[b] > best) stop(&in, seed, names[b], bounds.value[b], best);
        int64_t branched = by_branching(&in, in.horizon + 1);
        if (branched != best) stop(&in, seed, "depth-first search", branched, best);
        if (c % 20 == 0) against_allotment(&in, seed, best);
        for (uint32_t b = 0; b < SPASE_BASELINE_COUNT; b++) {
            assert_int_equal(spase_baseline_run(&in, b, c, NULL, steps, &value, &err), STATUS_OK);
            if (spase_schedule_make(&in, steps, NULL, &schedule, &err) || spase_check(&in, &schedule, &err))
                fail_msg("%s: %s", spase_baseline_names[b], err.text);
            assert_int_equal(schedule.makespan, value);
            if (value < best) stop(&in, seed, spase_baseline_names[b], value, best);
            spase_schedule_release(&schedule);
        }
        if (spase_certify(&in, &options, &schedule, &certificate, &err)) fail_msg("%s", err.text);
        if (certificate.value < best || certificate.bound > best)
            stop(&in, seed, "certificate", certificate.value, best);
        spase_schedule_release(&schedule);
        spase_release(&in);
    }
}

/* Nodes of several devices and jobs, without trying everything: the two exact methods agree. */
static void solvers_agree(void **state)
{
    (void)state;
    uint64_t seed = support_seed("solvers agree");
    uint32_t proven = 0;
    for (uint32_t c = 0; c < 12; c++) {
        struct spase_formulation_result result;
        struct spase_step steps[8];
        struct spase in;
        struct error err = {0};
        int64_t value;
        test_spase_tiny(random_u64(seed, c), 5, &in);
        assert_int_equal(spase_baseline_run(&in, SPASE_BASELINE_MIN, 0, NULL, steps, &value, &err), STATUS_OK);
        int64_t best = by_branching(&in, value);
        if (spase_formulation_solve(&in, SPASE_FLOW, "glpk", 60, 1, steps, &value, &result, &err))
            fail_msg("%s", err.text);
        if (result.proven) proven++;
        if (result.proven && value != best) stop(&in, seed, "flow", value, best);
        assert_true(value >= best && result.bound <= best);
        spase_release(&in);
    }
    assert_true(proven > 0);
}

/* Saturn's rows with their M of 1e8: whatever a solver claims, the schedule is rebuilt, and what comes
 * back is a schedule's makespan. Two jobs of 490 on one device end at 980 at the earliest. */
static void published_lies(void **state)
{
    (void)state;
    struct spase_formulation_result result;
    struct spase_step steps[2];
    struct spase in;
    struct error err = {0};
    int64_t value = 5000;
    test_spase("{'spillway_spase': 1, 'nodes': [{'devices': 1}], 'jobs': ["
               "{'name': 'a', 'configurations': [{'parallelism': 'x', 'devices': 1, 'ticks': 490}]},"
               "{'name': 'b', 'configurations': [{'parallelism': 'x', 'devices': 1, 'ticks': 490}]}]}", &in);
    if (spase_formulation_solve(&in, SPASE_PUBLISHED, "glpk", 20, 490, steps, &value, &result, &err))
        fail_msg("%s", err.text);
    assert_true(result.claims);
    assert_true(value == 980 && !result.proven && result.bound == 0);
    spase_release(&in);
}

/* --- certificates ---------------------------------------------------------------------------- */

static void random_instance(uint64_t seed, uint32_t jobs, uint32_t nodes, struct spase *out)
{
    struct test_spase_random options = {.seed = seed, .jobs = jobs, .parallelisms = 4, .nodes = nodes, .devices = 8};
    struct error err = {0};
    *out = (struct spase){0};
    assert_int_equal(test_spase_random(&options, out, &err), STATUS_OK);
}

static void proofs(void **state)
{
    (void)state;
    for (uint32_t c = 0; c < 6; c++) {
        struct spase in;
        struct spase_schedule schedule = {0};
        struct spase_certificate made;
        struct error err = {0};
        struct spase_certify_options options = {.iterations = 20000, .early = c % 2, .search_limit_s = HUGE_VAL,
                                                .exact_limit_s = HUGE_VAL};
        random_instance(500 + c, 6, 1, &in);
        if (spase_certify(&in, &options, &schedule, &made, &err)) fail_msg("%s", err.text);
        assert_true(made.status != CERTIFICATE_GAP);
        assert_true(made.value == made.bound && schedule.makespan == made.value);
        assert_true(made.searched_value >= made.value);
        spase_schedule_release(&schedule);
        spase_release(&in);
    }
}

static void repeats(void **state)
{
    (void)state;
    struct spase in;
    struct spase_schedule a = {0}, b = {0};
    struct spase_certificate first, second;
    struct error err = {0};
    struct spase_certify_options options = {.seed = 5, .iterations = 20000, .early = true, .nodes_max = 3000,
                                            .search_limit_s = HUGE_VAL, .exact_limit_s = HUGE_VAL};
    random_instance(77, 9, 2, &in);
    assert_int_equal(spase_certify(&in, &options, &a, &first, &err), STATUS_OK);
    assert_int_equal(spase_certify(&in, &options, &b, &second, &err), STATUS_OK);
    assert_memory_equal(a.tasks, b.tasks, in.job_count * sizeof *a.tasks);
    assert_memory_equal(a.devices, b.devices, a.device_first[in.job_count] * sizeof *a.devices);
    assert_int_equal(first.iterations, second.iterations);
    assert_int_equal(first.nodes, second.nodes);
    assert_int_equal(first.bound, second.bound);
    spase_schedule_release(&a);
    spase_schedule_release(&b);
    spase_release(&in);
}

static void time_limits(void **state)
{
    (void)state;
    static const double limits[] = {0, 0.01, 0.2};
    struct spase in;
    random_instance(3, 64, 4, &in);
    for (size_t l = 0; l < ARRAY_COUNT(limits); l++) {
        struct spase_schedule schedule = {0};
        struct spase_certificate c;
        struct error err = {0};
        struct spase_certify_options options = {.iterations = UINT64_MAX, .search_limit_s = limits[l],
                                                .exact_limit_s = limits[l], .solver = "glpk",
                                                .solver_limit_s = limits[l]};
        double started = clock_s();
        assert_int_equal(spase_certify(&in, &options, &schedule, &c, &err), STATUS_OK);
        assert_true(clock_s() - started < 3 * limits[l] + 2); /* a busy machine */
        assert_true(c.value >= c.bound && c.bound > 0);
        spase_schedule_release(&schedule);
    }
    spase_release(&in);
}

static void texts(void **state)
{
    (void)state;
    char text[CERTIFICATE_TEXT_BYTES];
    struct spase_certificate c = {.value = 1326, .bound = 1326, .proved_by = SPASE_PROOF_SCALED};
    assert_string_equal(spase_certificate_text(&c, text), "makespan 1326 is optimal: it equals the scaled bound");
    c.status = CERTIFICATE_SEARCHED;
    c.nodes = 77;
    assert_string_equal(spase_certificate_text(&c, text),
                        "makespan 1326 is optimal: depth-first search left nothing out (77 nodes)");
    c.status = CERTIFICATE_GAP;
    c.proved_by = SPASE_PROOF_ALLOTMENT;
    c.bound = 1300;
    assert_string_equal(spase_certificate_text(&c, text),
                        "makespan 1326 is within 2.00 % of the optimum (allotment bound 1300)");
    c.status = CERTIFICATE_SOLVED;
    c.proved_by = SPASE_PROOF_FLOW;
    c.solver = "cbc";
    assert_string_equal(spase_certificate_text(&c, text),
                        "makespan 1326 is optimal: 'cbc' finds nothing below in the flow formulation, within its "
                        "tolerances");
}

static void refuses(void **state)
{
    (void)state;
    struct test_spase_random options = {.seed = 1, .jobs = 3, .parallelisms = 2, .nodes = 2, .devices = 2,
                                        .spans = true};
    struct spase_branch_options limits = {.until_s = HUGE_VAL};
    struct spase_step steps[3];
    struct spase_formulation *f = NULL;
    struct spase in = {0};
    struct error err = {0}, second = {0};
    enum spase_answer answer;
    uint64_t nodes = 0;
    assert_int_equal(test_spase_random(&options, &in, &err), STATUS_OK);
    assert_int_equal(spase_branch(&in, 10000, &limits, &answer, steps, &nodes, &err), STATUS_LIMIT);
    assert_string_equal(err.text, "branch and bound takes at most 64 jobs, 64 devices and 1073741824 ticks, "
                                  "and no gang that spans nodes");
    assert_int_equal(spase_formulation_create(&in, SPASE_FLOW, 1, 10000, &f, &second), STATUS_LIMIT);
    assert_string_equal(second.text, "the flow formulation has no gangs that span nodes");
    spase_release(&in);
}

/* --- introspection --------------------------------------------------------------------------- */

/* Two jobs on 2 devices: one device for 100 ticks or both for 50. Begun with b after a on both, so that all ends at
 * 100; nothing better exists, so nothing changes. With only a on one device and then b on the same (200), after 30
 * ticks b starts on the other device: 130. */
static void introspects(void **state)
{
    (void)state;
    struct spase in;
    struct spase_course course = {0};
    struct error err = {0};
    struct spase_introspect_options options = {.interval_ticks = 30, .restart_ticks = 7, .iterations = 500};
    test_spase("{'spillway_spase': 1, 'nodes': [{'devices': 2}], 'jobs': ["
               "{'name': 'a', 'configurations': [{'parallelism': 'x', 'devices': 1, 'ticks': 100},"
               " {'parallelism': 'x', 'devices': 2, 'ticks': 50}]},"
               "{'name': 'b', 'configurations': [{'parallelism': 'x', 'devices': 2, 'ticks': 90}]}]}", &in);
    const struct spase_step good[] = {{0, 1, 0}, {1, 2, 0}};
    assert_int_equal(spase_introspect(&in, good, &options, &course, &err), STATUS_OK);
    if (spase_course_check(&in, &course, 7, &err)) fail_msg("%s", err.text);
    assert_int_equal(course.makespan, 140);
    assert_int_equal(course.replans, 0);
    spase_course_release(&course);
    /* a on one device until 100, then b until 190: at 30 the 70 left of a are 35 on two, and 7 to restart:
     * 30 + 7 + 35 + 90 = 162 */
    const struct spase_step poor[] = {{0, 0, 0}, {1, 2, 0}};
    assert_int_equal(spase_introspect(&in, poor, &options, &course, &err), STATUS_OK);
    if (spase_course_check(&in, &course, 7, &err)) fail_msg("%s", err.text);
    assert_int_equal(course.makespan, 162);
    assert_int_equal(course.replans, 1);
    assert_int_equal(course.piece_count, 3);
    for (size_t p = 0; p < course.piece_count; p++) course.pieces[p].restart = 0;
    assert_int_equal(spase_course_check(&in, &course, 7, &err), STATUS_CHECK);
    assert_string_equal(err.text, "job 'a': a restart of 0 ticks");
    spase_course_release(&course);
    options.threshold_ticks = 29; /* 190 - 162 = 28 is not worth it; later it is worth less */
    struct error none = {0};
    assert_int_equal(spase_introspect(&in, poor, &options, &course, &none), STATUS_OK);
    assert_int_equal(course.makespan, 190);
    spase_course_release(&course);
    options.interval_ticks = 1;
    options.threshold_ticks = 0;
    assert_int_equal(spase_introspect(&in, poor, &options, &course, &none), STATUS_OK);
    assert_int_equal(course.makespan, 148); /* at 1: 99 ticks left are 50 on two: 1 + 7 + 50 + 90 */
    spase_course_release(&course);
    spase_release(&in);
}

/* From any schedule, the course is valid and ends no later; on tiny instances no sooner than the work allows. */
static void never_worse(void **state)
{
    (void)state;
    uint64_t seed = support_seed("never worse");
    uint32_t better = 0;
    for (uint32_t c = 0; c < 150; c++) {
        struct test_spase_random options = {.seed = random_u64(seed, c), .jobs = 1 + c % 7, .parallelisms = 3,
                                            .nodes = 2,
                                       .devices = 4, .slow_nodes = c % 2, .slow_devices = 3, .powers = true,
                                       .spans = c % 3 == 0};
        struct spase_introspect_options how = {.interval_ticks = 50 + (int64_t)random_below(seed, c, 900),
                                               .threshold_ticks = c % 4 == 0 ? 100 : 0, .restart_ticks = c % 5 * 40,
                                               .iterations = 200, .seed = c, .optimus = c % 6 == 0};
        struct spase in = {0};
        struct spase_course course = {0};
        struct spase_step steps[8];
        struct error err = {0};
        int64_t value;
        assert_int_equal(test_spase_random(&options, &in, &err), STATUS_OK);
        assert_int_equal(spase_baseline_run(&in, SPASE_BASELINE_RANDOM, c, NULL, steps, &value, &err), STATUS_OK);
        if (spase_introspect(&in, steps, &how, &course, &err) ||
            spase_course_check(&in, &course, how.restart_ticks, &err)) {
            test_spase_print(&in);
            fail_msg("seed %" PRIu64 ", case %u: %s", seed, c, err.text);
        }
        assert_true(course.makespan <= value);
        better += course.makespan < value;
        spase_course_release(&course);
        spase_release(&in);
    }
    assert_true(better > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scaled_bounds),  cmocka_unit_test(stacks_by_hand), cmocka_unit_test(stacks_hold),
        cmocka_unit_test(tiny),           cmocka_unit_test(cuts_fail),      cmocka_unit_test(solvers_agree),
        cmocka_unit_test(published_lies), cmocka_unit_test(proofs),         cmocka_unit_test(repeats),
        cmocka_unit_test(time_limits),    cmocka_unit_test(texts),          cmocka_unit_test(refuses),
        cmocka_unit_test(introspects),    cmocka_unit_test(never_worse)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
