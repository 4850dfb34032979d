/*
 * One decision of a run made by another policy (planner/policy/trial/policy_run.h), against a policy made here that
 * asks the one or the other by the number of the decision; in a process of its own as here; and the report of the
 * decision.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/random.h"
#include "base/size.h"
#include "planner/policy/policies.h"
#include "planner/policy/trial/policy_run.h"
#include "planner/policy/trial/policy_trial.h"
#include "planner/solve/instance/instance_change.h"
#include "planner/solve/instance/instance_random.h"
#include "planner/solve/instance/timetable_check.h"
#include "tests/support/solve/support_instance.h"
#include "tests/support/support_seed.h"

static const char *const names[] = {"fifo", "srtf", "sharded-lrtf", "random"};

static void make(uint64_t seed, struct instance *out)
{
    struct error err = {0};
    const struct instance_random options = {.family = seed % 2 ? INSTANCE_FAMILY_TIGHT : INSTANCE_FAMILY_COPY,
                                            .seed = seed, .devices = {2, 4},
                                            .jobs = {3, 7}, .shards = {2, 5}, .minibatches = {1, 3}};
    if (instance_random(&options, out, &err) != STATUS_OK) fail_msg("%s", err.text);
}

static struct policy_run run(const struct policy *policy, const struct instance *in,
                             const struct policy_run_options *options)
{
    struct policy_run made = {0};
    struct timetable timetable = {0};
    struct error err = {0};
    const struct instance *what = options->live ? options->actual : in;
    if (policy_run(policy, in, options, &made, &err) ||
        timetable_place(what, made.steps, made.starts, made.value, &timetable, &err) ||
        timetable_check(what, &timetable, &err)) {
        test_instance_print(in);
        fail_msg("%s: %s", policy->name, err.text);
    }
    timetable_release(&timetable);
    return made;
}

static void same(const struct policy_run *a, const struct policy_run *b)
{
    assert_int_equal(a->task_count, b->task_count);
    assert_int_equal(a->value, b->value);
    assert_int_equal(a->decisions, b->decisions);
    assert_memory_equal(a->steps, b->steps, a->task_count * sizeof *a->steps);
    assert_memory_equal(a->starts, b->starts, a->task_count * sizeof *a->starts);
}

/* --- both in one policy -------------------------------------------------------------------------- */

static struct {
    const struct policy *policy, *other;
    uint64_t decision; /* from 0 */
} both;

static bool choose(void *state, const struct policy_view *view, struct policy_choice *out)
{
    (void)state;
    return policy_decide(view->decision == both.decision ? both.other : both.policy, NULL, view, out);
}

/* Policies that are asked here keep no state, so nothing is lost where both have the same one. */
static void as_one_that_asks_both(void **state)
{
    (void)state;
    uint64_t seed = support_seed("other");
    uint32_t changed = 0;
    for (uint64_t i = 0; i < 60; i++) {
        struct instance in = {0}, actual = {0};
        struct error err = {0};
        make(random_u64(seed, i), &in);
        assert_int_equal(instance_perturb(&in, 0.2, random_u64(seed, 100 + i), &actual, &err), STATUS_OK);
        both.policy = policy_find(names[random_below(seed, 200 + i, 3)]);
        both.other = policy_find(names[random_below(seed, 300 + i, 3)]);
        struct policy_run_options options = {.seed = i, .live = i % 3 == 0, .actual = i % 3 == 0 ? &actual : NULL};
        struct policy_run plain = run(both.policy, &in, &options);
        options.decision = 1 + random_below(seed, 400 + i, (uint32_t)plain.decisions);
        options.other = both.other;
        both.decision = options.decision - 1;
        struct policy_run made = run(both.policy, &in, &options);
        const struct policy mixed = {.version = SPILLWAY_POLICY_VERSION, .name = "mixed", .choose = choose,
                                     .commit_ahead = both.policy->commit_ahead};
        const struct policy_run_options alone = {.seed = options.seed, .live = options.live, .actual = options.actual};
        struct policy_run expected = run(&mixed, &in, &alone);
        same(&made, &expected);
        assert_true(made.decided.made);
        changed += made.value != plain.value;
        policy_run_release(&plain);
        policy_run_release(&made);
        policy_run_release(&expected);
        instance_release(&actual);
        instance_release(&in);
    }
    assert_true(changed > 3);
}

/* A policy in its own place changes nothing; the first decision is the first task; there is none after the last. */
static void itself_changes_nothing(void **state)
{
    (void)state;
    struct instance in = {0};
    make(support_seed("itself"), &in);
    for (size_t p = 0; p < ARRAY_COUNT(names); p++) {
        const struct policy *policy = policy_find(names[p]);
        struct policy_run_options options = {.seed = 5};
        struct policy_run plain = run(policy, &in, &options);
        assert_false(plain.decided.made);
        options.decision = 1;
        options.other = policy;
        struct policy_run again = run(policy, &in, &options);
        same(&plain, &again);
        assert_true(again.decided.made && !again.decided.waits && again.decided.at == 0);
        assert_int_equal(again.decided.choice.job, again.steps[0].job);
        assert_int_equal(again.decided.choice.device, again.steps[0].device);
        options.decision = plain.decisions + 1;
        struct policy_run beyond = run(policy, &in, &options);
        assert_false(beyond.decided.made);
        same(&plain, &beyond);
        policy_run_release(&plain);
        policy_run_release(&again);
        policy_run_release(&beyond);
    }
    instance_release(&in);
}

static void trials_open_the_other(void **state)
{
    (void)state;
    struct instance in = {0};
    struct error err = {0};
    struct policy_trial trial = {0}, none = {0};
    make(support_seed("trial"), &in);
    struct policy_trial_options options = {.run = {.seed = 2, .decision = 3}, .other = "srtf"};
    assert_int_equal(policy_trial("fifo", &in, &options, &trial, &err), STATUS_OK);
    assert_int_equal(trial.status, STATUS_OK);
    const struct policy_run_options by_hand = {.seed = 2, .decision = 3, .other = policy_find("srtf")};
    struct policy_run made = run(policy_find("fifo"), &in, &by_hand);
    same(&trial.run, &made);
    assert_true(trial.run.decided.made);
    options.other = "nobody";
    assert_int_equal(policy_trial("fifo", &in, &options, &none, &err), STATUS_OK);
    assert_int_equal(none.status, STATUS_BAD_INPUT);
    options.other = "optimal"; /* a search, which cannot be asked */
    policy_trial_release(&none);
    assert_int_equal(policy_trial("fifo", &in, &options, &none, &err), STATUS_OK);
    assert_int_equal(none.status, STATUS_INFEASIBLE);
    policy_run_release(&made);
    policy_trial_release(&trial);
    policy_trial_release(&none);
    instance_release(&in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_one_that_asks_both),
        cmocka_unit_test(itself_changes_nothing),
        cmocka_unit_test(trials_open_the_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
