/*
 * Policies on instances: schedules by hand, planned and live; the baselines of the searches as a second
 * road to the same values; and every schedule of every built-in policy on random cases, judged by
 * timetable_check().
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "base/size.h"
#include "planner/policy/policies.h"
#include "planner/policy/trial/policy_cases.h"
#include "planner/policy/trial/policy_run.h"
#include "planner/solve/instance/instance_change.h"
#include "planner/solve/instance/timetable_check.h"
#include "planner/solve/search/list_baseline.h"
#include "tests/support/solve/support_instance.h"
#include "tests/support/support_seed.h"

/* A complete run that passed the check; NULL instead of a failure: what the policy may be. */
static struct policy_run run(const struct policy *policy, const struct instance *in,
                             const struct policy_run_options *options)
{
    struct policy_run made = {0};
    struct timetable timetable = {0};
    struct error err = {0};
    const struct instance *what = options->live && options->actual ? options->actual : in;
    if (policy_run(policy, in, options, &made, &err) ||
        timetable_place(what, made.steps, made.starts, made.value, &timetable, &err) ||
        timetable_check(what, &timetable, &err)) {
        test_instance_print(in);
        fail_msg("%s: %s", policy->name, err.text);
    }
    timetable_release(&timetable);
    return made;
}

static bool copies_some(const struct instance *in)
{
    bool copies = false;
    for (uint32_t u = 0; u < in->unit_count; u++) copies |= in->units[u].in > 0 || in->units[u].out > 0;
    return copies;
}

/* --- by hand --------------------------------------------------------------------------------- */

/* One device of memory 10; a: two tasks of 5, 2 to copy in; b: one of 6, 3 to copy in. All are of memory
 * 4, so one is copied in while another computes. */
static const char *const hand =
    "{'spillway_instance': 1, 'devices': [{'memory': 10}], 'jobs': ["
    " {'name': 'a', 'units': [{'compute': 5, 'in': 2, 'memory': 4, 'shard': 0},"
    "                         {'compute': 5, 'in': 2, 'memory': 4, 'shard': 1}]},"
    " {'name': 'b', 'units': [{'compute': 6, 'in': 3, 'memory': 4}]}]}";

/* LRTF: a has 10 left, b 6. Planned: a0 at 2, done at 7; then b (6 against 5) at max(2 + max(5, 3)) = 7,
 * done at 13; a1 at 13, done at 18. Live and late: b is chosen at 7 and is there at 10, done at 16; a1 is
 * there at 18, done at 23. One ahead, live: b is chosen at 2, at its start the only one in hand is a again
 * with 5 left, so b; a1 at 7, when b starts: everything hides, as planned. */
static void schedules_by_hand(void **state)
{
    (void)state;
    static const struct {
        const struct policy *policy;
        bool live;
        int64_t starts[3], value;
    } cases[] = {{&policy_sharded_lrtf, false, {2, 7, 13}, 18},
                 {&policy_sharded_lrtf, true, {2, 10, 18}, 23},
                 {&policy_sharded_lrtf_cached, true, {2, 7, 13}, 18},
                 {&policy_srtf, false, {3, 9, 14}, 19}, /* b first: 3 to 9, a0 to 14, a1 */
                 {&policy_srtf, true, {3, 11, 18}, 23}};
    struct instance in;
    test_instance(hand, &in);
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct policy_run made = run(cases[i].policy, &in, &(struct policy_run_options){.live = cases[i].live});
        for (uint32_t t = 0; t < 3; t++) assert_int_equal(made.starts[t], cases[i].starts[t]);
        assert_int_equal(made.value, cases[i].value);
        assert_true(made.decisions >= 3);
        policy_run_release(&made);
    }
    instance_release(&in);
}

/* The policy sees estimates and meets facts. a is said to take 4, b 10 and c 3, on two devices; really b
 * takes 1. Planned by LRTF: b on 0, a on 1 to 4, c on 1 to 7; kept: a on 1 to 4, c after it to 7. Live: b is done at
 * 1, and c goes to 0: 4. */
static void live_sees_what_happened(void **state)
{
    (void)state;
    struct instance in, actual;
    test_instance("{'spillway_instance': 1, 'devices': [{'count': 2, 'memory': 1}], 'jobs': ["
                  " {'name': 'a', 'units': [{'compute': 4}]}, {'name': 'b', 'units': [{'compute': 10}]},"
                  " {'name': 'c', 'units': [{'compute': 3}]}]}", &in);
    test_instance("{'spillway_instance': 1, 'devices': [{'count': 2, 'memory': 1}], 'jobs': ["
                  " {'name': 'a', 'units': [{'compute': 4}]}, {'name': 'b', 'units': [{'compute': 1}]},"
                  " {'name': 'c', 'units': [{'compute': 3}]}]}", &actual);
    struct policy_run planned = run(&policy_sharded_lrtf, &in, &(struct policy_run_options){0});
    struct timetable kept = {0};
    struct error err = {0};
    assert_int_equal(timetable_make(&actual, planned.steps, &kept, &err), STATUS_OK);
    struct policy_run live = run(&policy_sharded_lrtf, &in,
                                 &(struct policy_run_options){.live = true, .actual = &actual});
    assert_int_equal(planned.value, 10);
    assert_int_equal(kept.value, 7);
    assert_int_equal(live.value, 4);
    timetable_release(&kept);
    policy_run_release(&planned);
    policy_run_release(&live);
    instance_release(&in);
    instance_release(&actual);
}

/* --- the baselines of the searches ----------------------------------------------------------- */

/* list_baseline.h breaks ties by the lowest index on the device that asks, without a preferred device. */
static bool longest_here(void *state, const struct policy_view *view, struct policy_choice *out)
{
    (void)state;
    bool found = false;
    for (uint32_t j = 0; j < view->job_count; j++) {
        bool own = view->ahead && view->devices[view->device].job == j;
        if (!policy_may_run(view, j, view->device)) continue;
        double left = view->jobs[j].remaining;
        if (found && !(left > view->jobs[out->job].remaining) &&
            !(own && left >= view->jobs[out->job].remaining))
            continue;
        *out = (struct policy_choice){j, view->device};
        found = true;
    }
    return found;
}

static const struct policy lrtf = {.version = SPILLWAY_POLICY_VERSION, .name = "l", .choose = longest_here};
static const struct policy hydra = {
    .version = SPILLWAY_POLICY_VERSION, .name = "h", .choose = longest_here, .commit_ahead = true};

static void same_as_the_baselines(void **state)
{
    (void)state;
    uint64_t seed = support_seed(__func__);
    for (uint32_t c = 0; c < 1000; c++) {
        struct instance in = {0};
        struct error err = {0};
        int64_t value;
        assert_int_equal(policy_case(seed, c, &in, &err), STATUS_OK);
        bool alike = in.device_count == 1 || (in.class_count == 1 && !copies_some(&in));
        if (!alike) { /* which of two idle devices is asked first matters there, and it differs */
            instance_release(&in);
            continue;
        }
        struct dispatch_step *steps = calloc(in.task_count, sizeof *steps);
        assert_non_null(steps);
        struct policy_run late = run(&lrtf, &in, &(struct policy_run_options){0});
        struct policy_run ahead = run(&hydra, &in, &(struct policy_run_options){0});
        assert_int_equal(list_baseline_lrtf(&in, HUGE_VAL, steps, &value, &err), STATUS_OK);
        if (value != late.value) {
            test_instance_print(&in);
            fail_msg("case %u: LRTF %lld, as a policy %lld", c, (long long)value, (long long)late.value);
        }
        assert_int_equal(list_baseline_hydra(&in, HUGE_VAL, steps, &value, &err), STATUS_OK);
        /* with several devices that begin at the same time, it differs which of them chooses first */
        if (in.device_count == 1 && value != ahead.value) {
            test_instance_print(&in);
            fail_msg("case %u: Hydra %lld, as a policy %lld", c, (long long)value, (long long)ahead.value);
        }
        free(steps);
        policy_run_release(&late);
        policy_run_release(&ahead);
        instance_release(&in);
    }
}

/* --- properties ------------------------------------------------------------------------------ */

/* Each schedule is right (run() asks), is the same again, and where nothing is copied and durations are as
 * estimated, deciding live makes no difference. */
static void random_cases(void **state)
{
    (void)state;
    uint64_t seed = support_seed(__func__);
    for (uint32_t c = 0; c < 200; c++) {
        struct instance in = {0}, actual = {0};
        struct error err = {0};
        assert_int_equal(policy_case(seed, c, &in, &err), STATUS_OK);
        assert_int_equal(instance_perturb(&in, POLICY_CASE_NOISE, seed + c, &actual, &err), STATUS_OK);
        bool copies = copies_some(&in);
        for (uint32_t p = 0; policy_at(p); p++) {
            const struct policy *policy = policy_at(p);
            if (policy->resident || policy_is_searched(policy)) continue;
            struct policy_run_options planned = {.seed = seed}, live = {.seed = seed, .live = true},
                                      off = {.seed = seed, .live = true, .actual = &actual};
            struct policy_run first = run(policy, &in, &planned), again = run(policy, &in, &planned);
            struct policy_run alive = run(policy, &in, &live), noisy = run(policy, &in, &off);
            assert_int_equal(first.value, again.value);
            assert_memory_equal(first.steps, again.steps, in.task_count * sizeof *first.steps);
            if (!copies) assert_int_equal(first.value, alive.value);
            if (policy->one_device)
                for (uint32_t t = 0; t < in.task_count; t++) assert_int_equal(first.steps[t].device, 0);
            policy_run_release(&first);
            policy_run_release(&again);
            policy_run_release(&alive);
            policy_run_release(&noisy);
        }
        instance_release(&in);
        instance_release(&actual);
    }
}

static void not_for_instances(void **state)
{
    (void)state;
    struct instance in;
    struct policy_run made = {0};
    struct error err = {0};
    test_instance("{'spillway_instance': 1, 'devices': [{'memory': 1}, {'memory': 9}],"
                  " 'jobs': [{'name': 'a', 'units': [{'compute': 4, 'memory': 5}]}]}", &in);
    assert_int_equal(policy_run(&policy_model_parallel, &in, &(struct policy_run_options){0}, &made, &err),
                     STATUS_INFEASIBLE);
    assert_string_equal(err.text, "policy 'model-parallel' keeps states on devices, which instances know "
                                  "nothing of");
    err = (struct error){0};
    assert_int_equal(policy_run(&policy_optimal, &in, &(struct policy_run_options){0}, &made, &err),
                     STATUS_INFEASIBLE);
    assert_string_equal(err.text, "policy 'optimal' is a search and cannot decide live");
    err = (struct error){0};
    assert_int_equal(policy_run(&policy_spill_sequential, &in, &(struct policy_run_options){0}, &made, &err),
                     STATUS_INFEASIBLE);
    assert_string_equal(err.text,
                        "policy 'spill-sequential' uses only device 0, which has no room for job 'a'");
    policy_run_release(&made);
    instance_release(&in);
}

/* --- changed instances ----------------------------------------------------------------------- */

static void changes(void **state)
{
    (void)state;
    uint64_t seed = support_seed(__func__);
    for (uint32_t c = 0; c < 100; c++) {
        struct instance in = {0}, finer = {0}, off = {0}, other = {0};
        struct error err = {0};
        assert_int_equal(policy_case(seed, c, &in, &err), STATUS_OK);
        assert_int_equal(instance_scale(&in, 1000, &finer, &err), STATUS_OK);
        assert_int_equal(instance_perturb(&finer, 0.1, seed, &off, &err), STATUS_OK);
        assert_int_equal(instance_reorder(&in, seed + c, &other, &err), STATUS_OK);
        for (uint32_t u = 0; u < in.unit_count; u++) {
            int64_t was = instance_compute(&finer, u, 0), is = instance_compute(&off, u, 0);
            assert_int_equal(was, 1000 * instance_compute(&in, u, 0));
            assert_true(10 * is >= 9 * was - 10 && 10 * is <= 11 * was + 10);
            assert_int_equal(off.units[u].memory, in.units[u].memory);
        }
        int64_t sum = 0, sum_other = 0, order = 0;
        for (uint32_t j = 0; j < in.job_count; j++) {
            sum += instance_compute(&in, in.jobs[j].first_unit, 0) * in.jobs[j].weight;
            sum_other += instance_compute(&other, other.jobs[j].first_unit, 0) * other.jobs[j].weight;
            order += other.jobs[j].name[4] != in.jobs[j].name[4];
        }
        assert_int_equal(sum, sum_other); /* the same jobs */
        assert_true(order != 1);
        assert_int_equal(in.task_count, other.task_count);
        instance_release(&in);
        instance_release(&finer);
        instance_release(&off);
        instance_release(&other);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schedules_by_hand),     cmocka_unit_test(live_sees_what_happened),
        cmocka_unit_test(same_as_the_baselines), cmocka_unit_test(random_cases),
        cmocka_unit_test(not_for_instances),     cmocka_unit_test(changes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
