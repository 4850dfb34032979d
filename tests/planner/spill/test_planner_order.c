/*
 * Orders of units: the bound holds for every order, and the search finds the best one where all can be
 * looked at.
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
#include "planner/spill/order/instance_of_cut.h"
#include "planner/solve/instance/timetable_check.h"
#include "planner/solve/search/list_baseline.h"
#include "planner/spill/order/order_bound.h"
#include "planner/spill/order/order_of_instance.h"
#include "planner/spill/order/order_search.h"
#include "planner/spill/order/schedule_builder.h"
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
static bool cut_make(struct cut *cut, const struct planner_options *options)
{
    struct error err = {0};
    bool fits = footprints_create(&cut->hardware, &cut->jobs, &cut->footprints, &err) == STATUS_OK &&
                partition_spilled(&cut->hardware, &cut->jobs, cut->footprints, options, true,
                                  &cut->partition, &err) == STATUS_OK;
    if (!fits) {
        assert_int_equal(err.status, STATUS_INFEASIBLE);
        return false;
    }
    assert_int_equal(cost_table_make(&cut->hardware, &cut->jobs, cut->footprints, &cut->partition,
                                     &cut->times, &err), 0);
    return true;
}

/* The makespan of a random order on random devices. */
static struct order_bound bound_of(const struct cut *cut)
{
    struct order_bound bound;
    struct error err = {0};
    assert_int_equal(order_bound_make(&cut->times, false, &bound, &err), STATUS_OK);
    return bound;
}

static double random_order(const struct cut *cut, uint64_t key)
{
    struct schedule_builder *builder;
    struct error err = {0};
    assert_int_equal(schedule_builder_create(&cut->times, false, &builder, &err), 0);
    for (uint64_t draw = 0;;) {
        uint32_t open = 0, chosen = 0;
        for (uint32_t j = 0; j < cut->jobs.count; j++)
            open += builder->view_jobs[j].remaining_s > 0;
        if (open == 0) break;
        uint32_t index = (uint32_t)random_below(key, draw++, open);
        while (builder->view_jobs[chosen].remaining_s <= 0 || index-- > 0) chosen++;
        struct schedule_unit unit;
        schedule_builder_put(builder, chosen,
                             (uint32_t)random_below(key, draw++, cut->hardware.device_count), &unit);
    }
    double seconds = builder->makespan_s;
    schedule_builder_destroy(builder);
    return seconds;
}

static void bound_holds_for_any_order(void **state)
{
    (void)state;
    uint64_t seed = support_seed(__func__);
    uint32_t made = 0, met = 0, kinds = 0;
    for (uint32_t c = 0; c < 300; c++) {
        uint64_t key = random_mix(seed + c);
        struct cut cut = {0};
        struct test_random_layers r = {key, 1 + random_below(key, 5, 20)};
        struct planner_options options = {
            .activations = (uint32_t)random_below(key, 9, ACTIVATIONS_COUNT + 1),
            .optimizer = (uint32_t)random_below(key, 10, PLANNER_PLACE_COUNT + 1),
            .weight_buffers = (uint32_t)random_below(key, 6, 4),
            .no_persistence = random_below(key, 8, 2),
            .shards = (uint32_t)random_below(key, 7, 5)};
        if (options.activations == ACTIVATIONS_COUNT) options.activations = PLANNER_AUTO;
        if (options.optimizer == PLANNER_PLACE_COUNT) options.optimizer = PLANNER_AUTO;
        uint32_t jobs = 1 + (uint32_t)random_below(key, 1, 5);
        test_hardware(&cut.hardware, 1 + (uint32_t)random_below(key, 0, 4),
                      100000 + random_below(key, 4, 4000000), 1e9);
        cut.hardware.host_bandwidth.value = 1e12;
        cut.hardware.host_bandwidth.source = "made up";
        if (c % 2)
            test_gpt_jobs(&cut.jobs, jobs, 1 + (uint32_t)random_below(key, 2, 4), 32, 97,
                          1 + random_below(key, 3, 4));
        else
            test_profile_jobs(&cut.jobs, jobs, 1 + (uint32_t)random_below(key, 2, 6),
                              1 + random_below(key, 3, 4), test_random_layer, &r);
        if (c % 4 == 1) cut.jobs.jobs[0].optimizer.clip = 1;
        if (c % 4 == 1 && options.optimizer == PLANNER_PLACE_DEVICE) options.optimizer = PLANNER_AUTO;
        if (!cut_make(&cut, &options)) {
            cut_release(&cut);
            continue;
        }
        struct order_bound bound = bound_of(&cut);
        made++;
        kinds |= 1u << bound.kind;
        for (uint32_t i = 0; i < 8; i++) {
            double seconds = random_order(&cut, key + i);
            if (seconds < bound.seconds)
                fail_msg("case %u of seed %llu: an order of %.9g s, below the bound %.9g s (%s)", c,
                         (unsigned long long)seed, seconds, bound.seconds,
                         plan_order_names[bound.kind]);
            met += seconds <= bound.seconds * (1 + 1e-9);
        }
        cut_release(&cut);
    }
    assert_true(made > 150);
    assert_true(met > 0); /* it can be met */
    assert_true(kinds & 1u << PLAN_ORDER_COMPUTE && kinds & 1u << PLAN_ORDER_IN &&
                kinds & 1u << PLAN_ORDER_CHAIN);
}

/* --- the search ------------------------------------------------------------------------------ */

/* The least makespan of all orders on all devices, from this state on. */
static double enumerate(const struct cut *cut, const struct schedule_builder *from, double best)
{
    struct error err = {0};
    struct schedule_builder *next = NULL;
    bool any = false;
    if (from->makespan_s >= best) return best;
    assert_int_equal(schedule_builder_create(&cut->times, false, &next, &err), 0);
    for (uint32_t j = 0; j < cut->jobs.count; j++) {
        if (from->view_jobs[j].remaining_s <= 0) continue;
        any = true;
        for (uint32_t d = 0; d < cut->hardware.device_count; d++) {
            struct schedule_unit unit;
            schedule_builder_copy(next, from);
            schedule_builder_put(next, j, d, &unit);
            best = fmin(best, enumerate(cut, next, best));
        }
    }
    schedule_builder_destroy(next);
    return any ? best : from->makespan_s;
}

static void count_calls(void *context) { ++*(uint32_t *)context; }

static void search_finds_the_best(void **state)
{
    (void)state;
    uint64_t seed = support_seed(__func__);
    double sum = 0;
    uint32_t optimal = 0, cases = 40;
    for (uint32_t c = 0; c < cases; c++) {
        uint64_t key = random_mix(seed + c);
        struct cut cut = {0};
        struct test_random_layers r = {key, 1 + random_below(key, 5, 20)};
        struct planner_options options = {.activations = ACTIVATIONS_RECOMPUTE,
                                          .optimizer = PLANNER_PLACE_DEVICE,
                                          .no_persistence = true, .shards = 2};
        test_hardware(&cut.hardware, 1 + c % 2, 8000000, 1e9);
        test_profile_jobs(&cut.jobs, c % 2 ? 2 : 3, 2, 1, test_random_layer, &r);
        assert_true(cut_make(&cut, &options));
        struct error err = {0};
        struct schedule_builder *start;
        struct schedule schedule, again;
        struct planner_search tried, tried_again;
        assert_int_equal(schedule_builder_create(&cut.times, false, &start, &err), 0);
        double best = enumerate(&cut, start, HUGE_VAL);
        schedule_builder_destroy(start);
        struct order_bound bound = bound_of(&cut);
        assert_true(bound.seconds <= best);
        struct order_search_options search = {
            .seed = key, .iterations = 4000, .until_s = HUGE_VAL, .bound_s = bound.seconds};
        assert_int_equal(order_search(&cut.times, &search, &schedule, &tried, &err), 0);
        assert_true(schedule.makespan_s >= best * (1 - 1e-12));
        optimal += schedule.makespan_s <= best * (1 + 1e-9);
        sum += schedule.makespan_s / best - 1;
        uint32_t told = 0;
        search.on_progress = count_calls; /* changes nothing */
        search.context = &told;
        assert_int_equal(order_search(&cut.times, &search, &again, &tried_again, &err), 0);
        assert_true(told > 0);
        assert_int_equal(tried.iterations, tried_again.iterations);
        assert_false(tried.cut_short);
        assert_int_equal(schedule.count, again.count);
        assert_memory_equal(schedule.units, again.units, schedule.count * sizeof *again.units);
        schedule_release(&schedule);
        schedule_release(&again);
        cut_release(&cut);
    }
    print_message("%u of %u optimal, mean gap %.3f %%\n", optimal, cases, 100 * sum / cases);
    assert_true(optimal >= cases / 2); /* 31 to 37 have been seen */
    assert_true(sum / cases < 0.02);   /* 0.4 to 0.7 % */
}

static struct test_layer even_layer(void *context, uint32_t job, uint32_t layer)
{
    (void)context, (void)job, (void)layer;
    return (struct test_layer){.parameter_bytes = 64000, .boundary_bytes = 64, .activation_bytes = 64,
                               .forward_ns = 1000000, .backward_ns = 2000000};
}

/* If computing hides copies, the search stops at the bound and says so. */
static void search_stops_at_the_bound(void **state)
{
    (void)state;
    struct cut cut = {0};
    struct error err = {0};
    struct planner_options options = {.activations = ACTIVATIONS_RECOMPUTE, .shards = 4,
                                      .optimizer = PLANNER_PLACE_DEVICE, .no_persistence = true};
    struct schedule schedule;
    struct planner_search tried;
    test_hardware(&cut.hardware, 1, 4000000, 1e10);
    test_profile_jobs(&cut.jobs, 3, 4, 3, even_layer, NULL);
    assert_true(cut_make(&cut, &options));
    struct order_bound bound = bound_of(&cut);
    struct order_search_options search = {
        .iterations = 100000, .until_s = HUGE_VAL, .bound_s = bound.seconds * (1 + 1e-9)};
    assert_int_equal(order_search(&cut.times, &search, &schedule, &tried, &err), 0);
    assert_true(schedule.makespan_s <= bound.seconds * (1 + 1e-9));
    assert_true(tried.iterations < 1000);
    assert_false(tried.cut_short);
    assert_int_equal(bound.kind, PLAN_ORDER_COMPUTE);
    schedule_release(&schedule);
    cut_release(&cut);
}

/* --- as an instance -------------------------------------------------------------------------- */

/* A cut becomes an instance with its lengths and sums. */
static void becomes_an_instance(void **state)
{
    (void)state;
    uint64_t seed = support_seed(__func__);
    for (uint32_t c = 0; c < 20; c++) {
        uint64_t key = random_mix(seed + c);
        struct cut cut = {0};
        struct error err = {0};
        struct instance instance = {0};
        struct planner_options options = {.activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO,
                                          .shards = 3};
        test_hardware(&cut.hardware, 1 + c % 3, 6000000, 1e9);
        cut.hardware.host_bandwidth.value = 1e12;
        cut.hardware.host_bandwidth.source = "made up";
        test_gpt_jobs(&cut.jobs, 1 + (uint32_t)random_below(key, 0, 4), 3, 32, 97,
                      1 + random_below(key, 1, 4));
        assert_true(cut_make(&cut, &options));
        assert_int_equal(instance_of_cut(&cut.times, CUT_COPIES, 0, &instance, &err), 0);
        assert_int_equal(instance.device_count, cut.hardware.device_count);
        double seconds = 0;
        uint64_t tasks = 0;
        for (uint32_t j = 0; j < cut.jobs.count; j++) {
            uint32_t on_devices = 0;
            uint32_t positions = schedule_unit_count(partition_job_units(&cut.partition, j));
            for (uint32_t i = 0; i < positions; i++) {
                const struct cost_unit *time = cost_table_at(&cut.times, 0, j, i);
                on_devices += !time->cpu_alone;
                seconds += time->compute_s * (double)cut.jobs.jobs[j].minibatches;
            }
            assert_int_equal(instance.jobs[j].unit_count, on_devices);
            tasks += on_devices * cut.jobs.jobs[j].minibatches;
        }
        assert_int_equal(instance.task_count, tasks);
        int64_t area = 0;
        for (uint32_t u = 0; u < instance.unit_count; u++)
            area += instance_compute(&instance, u, 0) * instance.jobs[instance.units[u].job].repeat;
        assert_true((double)area * 1e-6 >= seconds * (1 - 1e-9));
        assert_true((double)area * 1e-6 <= seconds + 1.001e-6 * (double)tasks); /* rounded up */
        instance_release(&instance);
        cut_release(&cut);
    }
}

/* With streams, an instance's clock is the planner's, but for ticks: times are rounded up. */
static void instance_has_the_planners_clock(void **state)
{
    (void)state;
    uint64_t seed = support_seed(__func__);
    uint32_t made = 0, on_host = 0;
    for (uint32_t c = 0; c < 200; c++) {
        uint64_t key = random_mix(seed + c);
        struct cut cut = {0};
        struct error err = {0};
        struct instance in = {0};
        struct test_random_layers r = {key, 1 + random_below(key, 5, 20)};
        struct planner_options options = {.activations = PLANNER_AUTO, .no_persistence = true,
                                          .optimizer = random_below(key, 10, 2) ? PLANNER_PLACE_CPU : PLANNER_AUTO,
                                          .weight_buffers = (uint32_t)random_below(key, 6, 5),
                                          .shards = (uint32_t)random_below(key, 7, 5)};
        uint32_t jobs = 1 + (uint32_t)random_below(key, 1, 5);
        test_hardware(&cut.hardware, 1 + (uint32_t)random_below(key, 0, 4), 400000 + random_below(key, 4, 4000000),
                      1e9);
        cut.hardware.host_bandwidth.value = exp(log(1e9) + random_unit(key, 12) * log(1000));
        cut.hardware.host_bandwidth.source = "made up";
        uint64_t minibatches = 1 + random_below(key, 3, 4);
        if (c % 2) test_gpt_jobs(&cut.jobs, jobs, 1 + (uint32_t)random_below(key, 2, 4), 32, 97, minibatches);
        else test_profile_jobs(&cut.jobs, jobs, 1 + (uint32_t)random_below(key, 2, 6), minibatches,
                               test_random_layer, &r);
        if (cut_make(&cut, &options)) {
            struct schedule schedule = {0};
            struct timetable table = {0};
            int64_t value;
            assert_int_equal(instance_of_cut(&cut.times, CUT_CLOCK, 1e-9, &in, &err), 0);
            struct dispatch_step *steps = calloc(in.task_count, sizeof *steps);
            assert_int_equal(list_baseline_lrtf(&in, HUGE_VAL, steps, &value, &err), 0);
            if (timetable_make(&in, steps, &table, &err) || timetable_check(&in, &table, &err) ||
                order_of_steps(&cut.times, &in, steps, &schedule, &err))
                fail_msg("case %u of seed %llu: %s", c, (unsigned long long)seed, err.text);
            double by_instance_s = (double)table.value * in.tick_s, most_s = 8e-9 * in.task_count;
            if (fabs(by_instance_s - schedule.makespan_s) > most_s + 1e-9)
                fail_msg("case %u of seed %llu: %.9g s by the instance's clock, %.9g s by the planner's (%u tasks)", c,
                         (unsigned long long)seed, by_instance_s, schedule.makespan_s, in.task_count);
            made++;
            for (uint32_t u = 0; u < in.unit_count; u++) on_host += in.units[u].host_before > 0;
            free(steps);
            timetable_release(&table);
            schedule_release(&schedule);
            instance_release(&in);
        }
        cut_release(&cut);
    }
    assert_true(made > 100 && on_host > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bound_holds_for_any_order),
        cmocka_unit_test(search_finds_the_best),
        cmocka_unit_test(search_stops_at_the_bound),
        cmocka_unit_test(becomes_an_instance),
        cmocka_unit_test(instance_has_the_planners_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
