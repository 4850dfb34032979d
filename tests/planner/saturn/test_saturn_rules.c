/*
 * The rules that Saturn is compared with, as policies (label: fast): Optimus's rule with repeated planning, by hand and
 * against its single schedule; each rule's plan against closed forms of equal jobs, and its end against the
 * simulation's.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "planner/saturn/saturn.h"
#include "planner/saturn/spase/spase_introspect.h"
#include "sim/sim.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/solve/support_spase.h"
#include "tests/support/planner/support_parallel_plan.h"
#include "tests/support/support_seed.h"

/* --- Optimus's rule, planned again ------------------------------------------------------------ */

static int64_t optimus(const struct spase *in, const struct spase_introspect_options *options, int64_t *single,
                       uint32_t *replans)
{
    struct spase_step steps[8];
    struct spase_course course = {0};
    struct error err = {0};
    assert_true(in->job_count <= 8);
    if (spase_baseline_run(in, SPASE_BASELINE_OPTIMUS, 0, NULL, steps, single, &err) ||
        spase_introspect(in, steps, options, &course, &err) ||
        spase_course_check(in, &course, options->restart_ticks, &err))
        fail_msg("%s", err.text);
    int64_t makespan = course.makespan;
    *replans = course.replans;
    spase_course_release(&course);
    return makespan;
}

/*
 * Two devices. b ends at 4, a would at 10 on one device. Looked at at 5, a has half of its work left, which is 3 ticks
 * on both devices: it ends at 5 + restart + 3, if that is by the threshold before 10. On both devices from the start it
 * would have ended at 6, and then b at 10.
 */
static void widened_when_devices_are_left(void **state)
{
    static const struct {
        int64_t threshold, restart, makespan;
        uint32_t replans;
    } cases[] = {{2, 0, 8, 1}, {3, 0, 10, 0}, {1, 1, 9, 1}, {2, 1, 10, 0}, {0, 2, 10, 0}};
    struct spase in;
    (void)state;
    test_spase("{'spillway_spase': 1, 'name': 't', 'nodes': [{'name': 'n', 'devices': 2}], 'jobs': ["
               "{'name': 'a', 'configurations': [{'parallelism': 'one', 'devices': 1, 'ticks': 10},"
               "                                 {'parallelism': 'two', 'devices': 2, 'ticks': 6}]},"
               "{'name': 'b', 'configurations': [{'parallelism': 'one', 'devices': 1, 'ticks': 4}]}]}", &in);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct spase_introspect_options options = {.interval_ticks = 5, .threshold_ticks = cases[i].threshold,
                                                         .restart_ticks = cases[i].restart, .optimus = true};
        int64_t single;
        uint32_t replans;
        int64_t makespan = optimus(&in, &options, &single, &replans);
        if (makespan != cases[i].makespan || replans != cases[i].replans)
            fail_msg("case %zu: %lld after %u changes", i, (long long)makespan, replans);
        assert_int_equal(single, 10);
    }
    spase_release(&in);
}

/* Never later than its single schedule, and for some sooner. */
static void never_later(void **state)
{
    uint64_t seed = support_seed("never_later");
    uint32_t sooner = 0;
    (void)state;
    for (uint32_t round = 0; round < 200; round++) {
        struct spase in;
        int64_t single;
        uint32_t replans;
        test_spase_tiny(seed + round, 6, &in);
        const struct spase_introspect_options options = {.interval_ticks = 1 + round % 3, .optimus = true};
        int64_t makespan = optimus(&in, &options, &single, &replans);
        if (makespan > single) {
            test_spase_print(&in);
            fail_msg("seed %llu: %lld, %lld without", (unsigned long long)(seed + round), (long long)makespan,
                     (long long)single);
        }
        sooner += makespan < single;
        spase_release(&in);
    }
    assert_true(sooner > 0);
}

/* --- as policies ------------------------------------------------------------------------------- */

enum { LAYERS = 4, DEVICES = 4, JOBS = 6, MICROBATCHES = 8, MINIBATCHES = 30 };

static enum status simulated_s(void *context, const struct plan *plan, double *seconds, struct error *err)
{
    struct sim_result result = {0};
    struct trace trace = {0};
    const struct sim_options options = {.record_spans = false};
    (void)context;
    enum status status = sim_run(plan, &options, &result, &trace, err);
    *seconds = result.makespan_s;
    sim_result_release(&result);
    trace_release(&trace);
    return status;
}

/* 3 ms forward and 6 ms backward in all; what replicas exchange is next to nothing. */
static struct test_layer equal_layer(void *context, uint32_t job, uint32_t layer)
{
    (void)context, (void)job, (void)layer;
    return (struct test_layer){.forward_ns = 3000000 / LAYERS, .backward_ns = 6000000 / LAYERS,
                               .activation_bytes = 640, .boundary_bytes = 128, .parameter_bytes = 1000};
}

static void plan_by(enum saturn_rule rule, double interval_s, struct plan *plan, struct saturn_report *report)
{
    const struct planner_options spilled = {.activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO, .iterations = 500};
    const struct saturn_clock clock = {.time = simulated_s};
    const struct saturn_options options = {.spilled = &spilled, .clock = &clock, .rule = rule,
                                           .interval_s = interval_s, .threshold_s = -1, .restart_s = 0};
    struct hardware hardware;
    struct job_set jobs;
    struct error err = {0};
    test_parallel_machine(&hardware, DEVICES, 1e12, 0);
    test_profile_jobs(&jobs, JOBS, LAYERS, MINIBATCHES, equal_layer, NULL);
    for (uint32_t j = 0; j < jobs.count; j++) jobs.jobs[j].microbatches = MICROBATCHES;
    *report = (struct saturn_report){0};
    if (saturn_plan(&hardware, &jobs, &options, report, plan, &err))
        fail_msg("%s: %s", saturn_rule_names[rule], err.text);
}

/*
 * A job is 30 minibatches of 8 microbatches of 9 ms, 2.16 s on one device and 0.54 s on four. All devices for one
 * after another is 6 x 0.54 = 3.24 s, which no schedule beats; one device each is two rounds, 4.32 s. Updates and
 * exchanges add less than 5 %.
 */
static void closed_forms(void **state)
{
    static const double least_s[SATURN_RULES] = {
        [SATURN_RULE_SPASE] = 3.24, [SATURN_RULE_MAX] = 3.24, [SATURN_RULE_MIN] = 4.32,
        [SATURN_RULE_OPTIMUS] = 3.24, [SATURN_RULE_OPTIMUS_DYNAMIC] = 3.24, [SATURN_RULE_RANDOM] = 3.24};
    (void)state;
    for (enum saturn_rule rule = 0; rule < SATURN_RULES; rule++) {
        struct plan plan = {0};
        struct saturn_report report;
        struct error err = {0};
        double seconds;
        enum saturn_rule found;
        plan_by(rule, 0, &plan, &report);
        if (simulated_s(NULL, &plan, &seconds, &err)) fail_msg("%s", err.text);
        assert_string_equal(plan.policy, saturn_rule_names[rule]);
        assert_true(saturn_rule_find(plan.policy, &found) && found == rule);
        assert_true(fabs(seconds / plan.estimated_makespan_s - 1) <= 1e-6);
        if (!(plan.estimated_makespan_s >= least_s[rule])) fail_msg("%s: %g s", plan.policy, plan.estimated_makespan_s);
        if (rule <= SATURN_RULE_MIN && !(plan.estimated_makespan_s <= 1.05 * least_s[rule]))
            fail_msg("%s: %g s", plan.policy, plan.estimated_makespan_s);
        assert_true((double)report.certificate.bound * report.tick_s <= report.scheduled_s * (1 + 1e-9));
        plan_release(&plan);
    }
    enum saturn_rule none;
    assert_false(saturn_rule_find("sharded-lrtf", &none) || saturn_rule_find(NULL, &none));
}

/* Each policy's plan is equal to its line in the others' reports; without intervals Optimus-dynamic has the paper's. */
static void reported_by_the_others(void **state)
{
    static const enum spase_baseline baselines[SATURN_RULES] = {
        [SATURN_RULE_MAX] = SPASE_BASELINE_MAX, [SATURN_RULE_MIN] = SPASE_BASELINE_MIN,
        [SATURN_RULE_OPTIMUS] = SPASE_BASELINE_OPTIMUS, [SATURN_RULE_RANDOM] = SPASE_BASELINE_RANDOM};
    struct plan plan = {0};
    struct saturn_report report, other;
    (void)state;
    plan_by(SATURN_RULE_SPASE, 0.5, &plan, &report);
    plan_release(&plan);
    assert_true(report.optimus_dynamic_s > 0);
    for (enum saturn_rule rule = SATURN_RULE_MAX; rule < SATURN_RULES; rule++) {
        bool dynamic = rule == SATURN_RULE_OPTIMUS_DYNAMIC;
        plan_by(rule, dynamic ? 0.5 : 0, &plan, &other);
        double expected_s = dynamic ? report.optimus_dynamic_s : report.baselines_s[baselines[rule]];
        if (!(fabs(plan.estimated_makespan_s - expected_s) <= 0.02 * expected_s))
            fail_msg("%s: %g s, and %g s said of it", saturn_rule_names[rule], plan.estimated_makespan_s, expected_s);
        plan_release(&plan);
    }
    plan_by(SATURN_RULE_OPTIMUS_DYNAMIC, 0, &plan, &other);
    assert_int_equal(other.intervals, 0); /* shorter than one */
    assert_true(fabs(other.threshold_s - SATURN_INTERVAL_S / 2) < 1e-9);
    plan_release(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(widened_when_devices_are_left), cmocka_unit_test(never_later), cmocka_unit_test(closed_forms),
        cmocka_unit_test(reported_by_the_others),
    };
    return cmocka_run_group_tests_name("saturn's rules", tests, NULL, NULL);
}
