/*
 * Lists of units by policies that rank jobs: planner/spill/order/agenda.h against policy_decide(), which looks at all
 * jobs and devices for each decision; and that the work grows with the units, not with the jobs and devices.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "planner/policy/policies.h"
#include "planner/policy/policy_ask.h"
#include "planner/spill/order/agenda.h"
#include "planner/spill/order/schedule.h"
#include "planner/spill/order/cost_table.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_seed.h"

struct cut { /* jobs on a machine, cut into shards, with durations */
    struct hardware hardware;
    struct job_set jobs;
    struct footprints *footprints;
    struct partition partition;
    struct cost_table times;
};

static void cut_release(struct cut *cut)
{
    cost_table_release(&cut->times);
    partition_release(&cut->partition);
    footprints_destroy(cut->footprints);
    job_set_release(&cut->jobs);
    hardware_release(&cut->hardware);
}

/* Hardware and jobs are there. False: they do not fit. */
static bool cut_make(struct cut *cut, const struct planner_options *options, bool resident)
{
    struct error err = {0};
    bool fits = footprints_create(&cut->hardware, &cut->jobs, &cut->footprints, &err) == STATUS_OK;
    if (fits && resident)
        fits = partition_resident(&cut->hardware, &cut->jobs, cut->footprints, options, UINT32_MAX, &cut->partition,
                                  &err) == STATUS_OK;
    else if (fits)
        fits = partition_spilled(&cut->hardware, &cut->jobs, cut->footprints, options, true, &cut->partition, &err) ==
               STATUS_OK;
    if (!fits) {
        assert_int_equal(err.status, STATUS_INFEASIBLE);
        return false;
    }
    assert_int_equal(cost_table_make(&cut->hardware, &cut->jobs, cut->footprints, &cut->partition, &cut->times, &err),
                     0);
    return true;
}

/* A policy that ranks, asked through choose(). */
static struct policy ranked;

static bool look_at_all(void *state, const struct policy_view *view, struct policy_choice *out)
{
    return policy_decide(&ranked, state, view, out);
}

/* A rank that knows nothing but the job and the seed, with many ties. */
static double rank_by_lot(void *state, const struct policy_view *view, uint32_t job)
{
    (void)state;
    return (double)random_below(view->seed, job, 3);
}

static const struct policy by_lot = {
    .version = SPILLWAY_POLICY_VERSION, .name = "by-lot", .summary = "by lot", .rank = rank_by_lot};

enum kind { SPILLED, ON_NODES, RESIDENT, KINDS };

static bool make_case(uint64_t key, enum kind kind, struct cut *cut)
{
    struct test_random_layers r = {key, 1 + random_below(key, 5, 20)};
    uint32_t devices = 1 + (uint32_t)random_below(key, 0, 6), jobs = 1 + (uint32_t)random_below(key, 1, 9);
    struct planner_options options = {.activations = PLANNER_AUTO,
                                      .optimizer = kind == RESIDENT          ? PLANNER_AUTO
                                                   : random_below(key, 6, 2) ? PLANNER_PLACE_CPU
                                                                             : PLANNER_AUTO,
                                      .shards = kind == RESIDENT ? 0 : (uint32_t)random_below(key, 7, 4)};
    test_hardware(&cut->hardware, devices, 2000000 + random_below(key, 4, 6000000), 1e9);
    cut->hardware.host_bandwidth.value = 1e12;
    cut->hardware.host_bandwidth.source = "made up";
    if (kind == ON_NODES) {
        cut->hardware.host_nodes = 1 + devices / 2;
        for (uint32_t d = 0; d < devices; d++)
            cut->hardware.devices[d].host = (uint32_t)random_below(key, 20 + d, cut->hardware.host_nodes);
    }
    if (random_below(key, 8, 2))
        test_gpt_jobs(&cut->jobs, jobs, 1 + (uint32_t)random_below(key, 2, 4), 32, 97, 1 + random_below(key, 3, 5));
    else
        test_profile_jobs(&cut->jobs, jobs, 2 + (uint32_t)random_below(key, 2, 5), 1 + random_below(key, 3, 5),
                          test_random_layer, &r);
    if (cut_make(cut, &options, kind == RESIDENT)) return true;
    cut_release(cut);
    return false;
}

static void sorted_jobs_are_chosen_like_all(void **state)
{
    (void)state;
    const struct policy *const policies[] = {&policy_sharded_lrtf, &policy_srtf, &policy_fifo, &policy_lrtf_emptiest,
                                             &by_lot};
    uint64_t seed = support_seed(__func__);
    uint32_t made[KINDS] = {0};
    for (uint32_t c = 0; c < 900; c++) {
        uint64_t key = random_mix(seed + c);
        enum kind kind = c % KINDS;
        struct cut cut = {0};
        if (!make_case(key, kind, &cut)) continue;
        made[kind]++;
        for (size_t p = 0; p < sizeof policies / sizeof *policies; p++) {
            struct schedule sorted = {0}, plain = {0};
            struct error err = {0};
            ranked = *policies[p];
            struct policy chooses = ranked;
            chooses.rank = NULL;
            chooses.choose = look_at_all;
            assert_int_equal(schedule_make(&cut.times, &ranked, key, false, &sorted, &err), 0);
            assert_int_equal(schedule_make(&cut.times, &chooses, key, false, &plain, &err), 0);
            assert_int_equal(sorted.count, plain.count);
            for (uint32_t i = 0; i < sorted.count; i++)
                if (memcmp(&sorted.units[i], &plain.units[i], sizeof *plain.units) != 0)
                    fail_msg("case %u of seed %llu, %s: unit %u is job %u on device %u (expected %u on %u)", c,
                             (unsigned long long)seed, ranked.name, i, sorted.units[i].job, sorted.units[i].device,
                             plain.units[i].job, plain.units[i].device);
            assert_true(sorted.makespan_s >= plain.makespan_s && sorted.makespan_s <= plain.makespan_s);
            schedule_release(&sorted);
            schedule_release(&plain);
        }
        cut_release(&cut);
    }
    for (uint32_t k = 0; k < KINDS; k++) assert_true(made[k] > 100);
}

/* Ranks that were asked for. */
static uint64_t asked;

static double count_rank(void *state, const struct policy_view *view, uint32_t job)
{
    asked++;
    return policy_remaining(state, view, job);
}

/* Each unit is ranked once: 2 n jobs take twice the ranks of n jobs, for any number of devices. */
static void work_grows_with_the_units(void **state)
{
    (void)state;
    struct policy policy = policy_sharded_lrtf;
    policy.rank = count_rank;
    for (uint32_t n = 50; n <= 400; n *= 2) {
        struct cut cut = {0};
        struct schedule schedule = {0};
        struct error err = {0};
        struct test_random_layers r = {.key = 3, .copy_weight = 2};
        const struct planner_options options = {.activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO, .shards = 3};
        test_hardware(&cut.hardware, n / 5, 8000000, 1e9);
        test_profile_jobs(&cut.jobs, n, 4, 7, test_random_layer, &r);
        assert_true(cut_make(&cut, &options, false));
        asked = 0;
        assert_int_equal(schedule_make(&cut.times, &policy, 0, false, &schedule, &err), 0);
        assert_int_equal(asked, schedule.count);
        assert_int_equal(schedule.count, n * cost_table_unit_count(&cut.times, 0));
        schedule_release(&schedule);
        cut_release(&cut);
    }
}

/* Groups {0, 2} and {1}. Ranks in the comments. */
static void agenda_decides_in_order(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct agenda agenda;
    struct error err = {0};
    uint32_t group_of[] = {0, 1, 0};
    double at;
    assert_int_equal(agenda_create(&arena, 5, 3, group_of, 2, &agenda, &err), 0);
    assert_int_equal(agenda_next(&agenda, &at), AGENDA_NONE);
    agenda_add(&agenda, 3, 0, 2.5);
    agenda_add(&agenda, 1, 0, 2.5);
    agenda_add(&agenda, 4, 1, 2.5);
    agenda_add(&agenda, 0, 0, 7.5);
    assert_int_equal(agenda_next(&agenda, &at), 0); /* device 0 before device 1, at the same time */
    assert_true(at >= 2.5 && at <= 2.5);
    assert_int_equal(agenda_wake(&agenda, 0, at), 1);
    agenda_rank(&agenda, 1, 0, -4);
    assert_int_equal(agenda_wake(&agenda, 0, at), 3);
    agenda_rank(&agenda, 3, 0, -4);
    assert_int_equal(agenda_wake(&agenda, 0, at), AGENDA_NONE);
    assert_int_equal(agenda_pop(&agenda, 0), 1); /* the lower one of equal rank */
    agenda_set_free(&agenda, 0, 9);
    assert_int_equal(agenda_next(&agenda, &at), 1);
    assert_int_equal(agenda_wake(&agenda, 1, at), 4);
    agenda_rank(&agenda, 4, 1, 0.5);
    assert_int_equal(agenda_pop(&agenda, 1), 4);
    assert_int_equal(agenda_next(&agenda, &at), 2); /* job 3 is still there, and device 2 of its group is free */
    assert_true(at >= 2.5 && at <= 2.5);
    agenda_set_free(&agenda, 2, 8.5);
    assert_int_equal(agenda_next(&agenda, &at), 2);
    assert_true(at >= 8.5 && at <= 8.5);
    assert_int_equal(agenda_wake(&agenda, 0, at), 0);
    agenda_rank(&agenda, 0, 0, 1.5);
    assert_int_equal(agenda_pop(&agenda, 0), 0); /* the higher rank */
    assert_int_equal(agenda_pop(&agenda, 0), 3);
    assert_int_equal(agenda_next(&agenda, &at), AGENDA_NONE);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agenda_decides_in_order),
        cmocka_unit_test(sorted_jobs_are_chosen_like_all),
        cmocka_unit_test(work_grows_with_the_units),
    };
    return cmocka_run_group_tests_name("planner/spill/order/schedule.h", tests, NULL, NULL);
}
