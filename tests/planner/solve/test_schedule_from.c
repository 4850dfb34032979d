/* label: medium
 * The way back from a timetable to a plan: there and back, in that order; files that lie.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "planner/check/plan_check.h"
#include "planner/policy/policies.h"
#include "planner/policy/trial/policy_run.h"
#include "planner/solve/certify/certify.h"
#include "planner/solve/instance/timetable_io.h"
#include "planner/spill/order/order_of_instance.h"
#include "planner/strategy/planner.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_folder.h"
#include "tests/support/support_seed.h"

static char folder[SUPPORT_FOLDER_BYTES], file[SUPPORT_FOLDER_BYTES + 16];

static int make_folder(void **state)
{
    (void)state;
    support_folder_make(folder);
    snprintf(file, sizeof file, "%s/timetable.json", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    support_folder_remove(folder);
    return 0;
}

/* Unlike the instances of test_random_layer(): long against a tick, with small boundaries. */
static struct test_layer random_layer(void *context, uint32_t job, uint32_t layer)
{
    uint64_t key = *(const uint64_t *)context, at = (uint64_t)job * 1000 + layer;
    return (struct test_layer){.parameter_bytes = 64 * (1 + random_below(key, at, 8000)),
                               .boundary_bytes = 64 * (1 + random_below(key + 1, at, 5)),
                               .activation_bytes = 64 * (1 + random_below(key + 2, at, 200)),
                               .forward_ns = 20000 + random_below(key + 3, at, 500000),
                               .backward_ns = 20000 + random_below(key + 4, at, 900000)};
}

/* Returns true for units of milliseconds, with small boundaries and no work for the host's processor. Then the
 * instance's clock is close to the planner's. */
static bool alike_to_instance(uint64_t key)
{
    return random_below(key, 5, 2) == 0;
}

static uint32_t layers_of(uint64_t key)
{
    return 2 + (uint32_t)random_below(key, 2, 4);
}

/* Returns false if the jobs do not fit. */
static bool plan_of(uint64_t key, const struct planner_options *options, struct plan *out, struct error *err)
{
    struct hardware hardware = {0};
    struct job_set jobs = {0};
    uint32_t count = 1 + (uint32_t)random_below(key, 1, 4);
    *out = (struct plan){0};
    test_hardware(&hardware, 1 + (uint32_t)random_below(key, 0, 3), 1000000 + random_below(key, 4, 1000000), 1e9);
    hardware.host_bandwidth.value = 1e12;
    hardware.host_bandwidth.source = "made up";
    if (!alike_to_instance(key))
        test_gpt_jobs(&jobs, count, 1 + (uint32_t)random_below(key, 2, 4), 32, 97, 1 + random_below(key, 3, 3));
    else
        test_profile_jobs(&jobs, count, layers_of(key), 1 + random_below(key, 3, 3),
                          random_layer, &key);
    return planner_plan(&hardware, &jobs, options, out, err) == STATUS_OK;
}

static struct planner_options options_of(uint64_t key)
{
    return (struct planner_options){.activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO,
                                    .no_persistence = random_below(key, 6, 2),
                                    .weight_buffers = (uint32_t)random_below(key, 7, 3),
                                    .shards = 1 + (uint32_t)random_below(key, 8, 4)};
}

/* The number of a plan's unit in its job's minibatch as the instance has it; false: it does not. */
static bool unit_in_instance(const struct instance *in, const struct plan_unit *unit, uint32_t *number)
{
    const struct instance_job *job = &in->jobs[unit->job];
    if (unit->pass != PLAN_FORWARD && unit->pass != PLAN_LOSS && unit->pass != PLAN_BACKWARD) return false;
    for (*number = 0; *number < job->unit_count; (*number)++) {
        const struct instance_unit *known = &in->units[job->first_unit + *number];
        if (known->shard == unit->shard && known->writes == (unit->pass != PLAN_FORWARD)) return true;
    }
    return false;
}

/* Every device runs the timetable's tasks in the timetable's order, and nothing else that is one. */
static void check_order(const struct instance *in, const struct timetable *timetable, const struct plan *plan)
{
    uint32_t next[8];
    assert_true(in->device_count <= 8);
    for (uint32_t g = 0; g < in->device_count; g++) next[g] = timetable->device_first[g];
    for (uint32_t s = 0; s < plan->segment_count; s++)
        for (uint32_t r = 0; r < plan->segments[s].repeat_count; r++)
            for (uint32_t i = 0; i < plan->segments[s].task_count; i++) {
                const struct plan_task *ordered = &plan->tasks[plan->segments[s].first_task + i];
                const struct plan_unit *unit = &plan->units[ordered->unit];
                uint32_t number, g = ordered->device;
                if (!unit_in_instance(in, unit, &number)) continue;
                assert_true(next[g] < timetable->device_first[g + 1]);
                const struct timetable_task *task = &timetable->tasks[next[g]++];
                assert_int_equal(task->job, unit->job);
                assert_int_equal(task->position % in->jobs[task->job].unit_count, number);
            }
    for (uint32_t g = 0; g < in->device_count; g++) assert_int_equal(next[g], timetable->device_first[g + 1]);
}

/* By the instance's clock, what the solver's policy makes of it. */
static int64_t by_lrtf(const struct instance *in)
{
    struct policy_run_options options = {0};
    struct policy_run run = {0};
    struct error err = {0};
    if (policy_run(&policy_sharded_lrtf, in, &options, &run, &err)) fail_msg("%s", err.text);
    int64_t value = run.value;
    policy_run_release(&run);
    return value;
}

static void there_and_back(void **state)
{
    (void)state;
    uint64_t seed = support_seed(__func__);
    uint32_t made = 0, optimal = 0, alike = 0;
    double ratios = 0;
    for (uint32_t c = 0; c < 24; c++) {
        uint64_t key = random_mix(seed + c);
        struct instance in = {0};
        struct timetable timetable = {0};
        struct certificate certificate;
        struct certify_options how = {.seed = c, .iterations = 60, .nodes_max = 5000, .search_limit_s = 0.1,
                                      .exact_limit_s = HUGE_VAL};
        struct planner_options options = options_of(key);
        struct order_claim claim = {0};
        struct plan by_policy, back;
        struct error err = {0};
        options.instance = &in;
        bool fits = plan_of(key, &options, &by_policy, &err);
        options.instance = NULL;
        options.timetable = file;
        options.claim = &claim;
        options.time_limit_s = 0.02;
        if (fits) {
            if (certify(&in, &how, &timetable, &certificate, &err) ||
                timetable_write(&in, &timetable, certificate.bound, "it was looked for", file, &err) ||
                !plan_of(key, &options, &back, &err) || plan_check(&back, &err))
                fail_msg("case %u: %s", c, err.text);
            assert_string_equal(back.policy, "timetable");
            assert_int_equal(claim.value, certificate.value);
            assert_int_equal(claim.bound, certificate.bound);
            assert_true((double)claim.value <= 1.05 * (double)by_lrtf(&in));
            assert_true(claim.ours.bound <= claim.value && claim.ours.value >= claim.bound);
            assert_true(back.estimated_makespan_s >= back.order.bound_s * (1 - 1e-9));
            check_order(&in, &timetable, &back);
            optimal += claim.value == claim.ours.bound;
            made++;
            if (alike_to_instance(key)) {
                ratios += back.estimated_makespan_s / by_policy.estimated_makespan_s;
                alike++;
            }
            plan_release(&back);
        } else {
            assert_int_equal(err.status, STATUS_INFEASIBLE);
        }
        timetable_release(&timetable);
        instance_release(&in);
        plan_release(&by_policy);
    }
    assert_true(made > 10 && optimal > 3 && alike > 3);
    assert_true(ratios <= 1.05 * alike); /* the planner also counts what an instance leaves out */
}

/* --- files that lie -------------------------------------------------------------------------- */

/* A key of at least two devices, two jobs and a cut of the first into two shards of three layers or more, and its
 * instance. */
static uint64_t key_of_several(struct planner_options *options, struct instance *in)
{
    for (uint64_t c = 0; c < 1000; c++) {
        uint64_t key = random_mix(4711 + c);
        struct plan plan;
        struct error err = {0};
        *options = options_of(key);
        options->instance = in;
        bool fits = alike_to_instance(key) && layers_of(key) > 2 && plan_of(key, options, &plan, &err);
        options->instance = NULL;
        if (fits) plan_release(&plan);
        if (fits && in->device_count > 1 && in->job_count > 1 && in->jobs[0].unit_count == 3) return key;
        instance_release(in);
        *in = (struct instance){0};
    }
    fail_msg("no such case");
    return 0;
}

/* One job after the other on device 0, said to be optimal: two devices end earlier. */
static void bound_too_high(void **state)
{
    (void)state;
    struct planner_options options;
    struct instance in = {0};
    struct timetable timetable = {0};
    struct dispatch_step steps[1024] = {{0}};
    struct order_claim claim = {.value = 77};
    struct plan plan;
    struct error err = {0};
    char begins[128];
    uint64_t key = key_of_several(&options, &in);
    uint32_t count = 0;
    assert_true(in.task_count <= 1024);
    for (uint32_t j = 0; j < in.job_count; j++)
        for (uint32_t t = 0; t < instance_length(&in.jobs[j]); t++) steps[count++].job = j;
    assert_int_equal(timetable_make(&in, steps, &timetable, &err), STATUS_OK);
    assert_int_equal(timetable_write(&in, &timetable, timetable.value, "trust me", file, &err), STATUS_OK);
    options.timetable = file;
    options.claim = &claim;
    assert_false(plan_of(key, &options, &plan, &err));
    assert_int_equal(err.status, STATUS_BAD_INPUT);
    snprintf(begins, sizeof begins, "%s: says that no schedule ends before %lld ('bound'), and there is one that ends "
                                    "at ",
             file, (long long)timetable.value);
    if (strncmp(err.text, begins, strlen(begins)) != 0) fail_msg("%s", err.text);
    assert_int_equal(claim.value, 77); /* untouched */
    timetable_release(&timetable);
    instance_release(&in);
}

/* The same jobs with another cut are another instance. */
static void other_cut(void **state)
{
    (void)state;
    struct planner_options options;
    struct instance in = {0};
    struct timetable timetable = {0};
    struct certificate certificate;
    struct certify_options how = {.iterations = 5, .search_limit_s = HUGE_VAL};
    struct order_claim claim = {0};
    struct plan plan;
    struct error err = {0};
    uint64_t key = key_of_several(&options, &in);
    if (certify(&in, &how, &timetable, &certificate, &err) ||
        timetable_write(&in, &timetable, certificate.bound, "as it is", file, &err))
        fail_msg("%s", err.text);
    options.timetable = file;
    options.claim = &claim;
    options.shards = layers_of(key);
    assert_false(plan_of(key, &options, &plan, &err));
    assert_int_equal(err.status, STATUS_BAD_INPUT);
    if (strncmp(err.text, file, strlen(file)) != 0) fail_msg("%s", err.text);
    timetable_release(&timetable);
    instance_release(&in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(there_and_back), cmocka_unit_test(bound_too_high),
                                       cmocka_unit_test(other_cut)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
