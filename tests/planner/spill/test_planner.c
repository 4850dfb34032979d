/* label: medium
 * The planner: published toys, properties over random workloads, what does not fit.
 *
 * The makespan of a plan is taken from the simulator, which shares no code with the scheduler's own
 * clock; plan_check() has passed every plan that planner_plan() returns.
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
#include "planner/policy/policies.h"
#include "planner/spill/cut/bound.h"
#include "planner/strategy/planner.h"
#include "sim/sim.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_seed.h"

/* Plans and simulates. Returns the seconds, or HUGE_VAL if nothing fits. */
static double makespan(struct hardware *hardware, struct job_set *jobs,
                       const struct planner_options *options, struct plan *plan)
{
    struct error err = {0};
    struct sim_result result = {0};
    struct trace trace = {0};
    struct sim_options sim = {0};
    *plan = (struct plan){0};
    enum status status = planner_plan(hardware, jobs, options, plan, &err);
    if (status == STATUS_INFEASIBLE) return HUGE_VAL;
    if (!status) status = sim_run(plan, &sim, &result, &trace, &err);
    if (status) fail_msg("%s: %s", options->policy, err.text);
    double seconds = result.makespan_s;
    sim_result_release(&result);
    trace_release(&trace);
    return seconds;
}

/* --- the toy of Hydra's Fig. 6: 3 models x 2 shards x 2 devices -------------------------------- */

/* A shard takes one unit of time (1 s) forward and one backward; bytes cost next to nothing. A
 * minibatch is 1 + 2 + 1 = 4 units. Model parallelism runs the models one after the other: 12. Two
 * resident stages per model, interleaved: the second device computes loss units of 2 back to back
 * from time 1 to 7 and the last backward ends at 8. Any shard anywhere: 12 units on 2 devices: 6. */
static struct test_layer toy_layer(void *context, uint32_t job, uint32_t layer)
{
    (void)context, (void)job, (void)layer;
    return (struct test_layer){64, 64, 64, 1000000000, 1000000000};
}

static void test_toy(void **state)
{
    (void)state;
    const struct {
        const char *policy;
        double units;
    } expected[] = {{"model-parallel", 12}, {"shard-parallel", 8}, {"sharded-lrtf", 6},
                    {"spill-sequential", 12}};
    for (size_t i = 0; i < ARRAY_COUNT(expected); i++) {
        struct hardware hardware;
        struct job_set jobs;
        struct plan plan;
        /* activations stay, so that backward only costs its own second; shards = 2 */
        struct planner_options options = {.policy = expected[i].policy,
                                          .activations = PLANNER_AUTO,
                                          .shards = 2};
        test_hardware(&hardware, 2, 1 << 20, 1e12);
        test_profile_jobs(&jobs, 3, 2, 1, toy_layer, NULL);
        double seconds = makespan(&hardware, &jobs, &options, &plan);
        print_message("%s: %.6f units\n", expected[i].policy, seconds);
        assert_true(fabs(seconds - expected[i].units) < 1e-6);
        assert_true(plan.lower_bound_s <= seconds);
        assert_true(fabs(plan.lower_bound_s - 6) < 1e-6); /* 12 units on 2 devices */
        plan_release(&plan);
    }
}

/* --- every policy on random workloads ---------------------------------------------------------- */

static void test_random_workloads(void **state)
{
    (void)state;
    uint64_t seed = support_seed(__func__);
    for (uint32_t c = 0; c < 60; c++) {
        uint64_t key = random_mix(seed + c);
        uint32_t devices = 1 + (uint32_t)random_below(key, 0, 4);
        uint32_t count = 1 + (uint32_t)random_below(key, 1, 6);
        uint32_t layers = 1 + (uint32_t)random_below(key, 2, 6);
        uint64_t minibatches = 1 + random_below(key, 3, 5);
        uint64_t memory = 200000 + random_below(key, 4, 4000000);
        struct test_random_layers r = {key, 1 + random_below(key, 5, 8)};
        for (uint32_t p = 0; policy_at(p); p++) {
            struct hardware hardware;
            struct job_set jobs;
            struct plan plan;
            struct planner_options options = {
                .policy = policy_at(p)->name,
                .seed = key >> 1,
                .activations = PLANNER_AUTO,
                .no_double_buffer = random_below(key, 6, 3) == 0,
                .no_persistence = random_below(key, 8, 2) == 0,
                .shards = (uint32_t)random_below(key, 7, 4)};
            test_hardware(&hardware, devices, memory, 1e10);
            test_profile_jobs(&jobs, count, layers, minibatches, test_random_layer, &r);
            double seconds = makespan(&hardware, &jobs, &options, &plan);
            if (seconds < HUGE_VAL) {
                if (seconds < plan.lower_bound_s * (1 - 1e-9))
                    fail_msg("case %u of seed %llu, %s: %.9f s is below the bound %.9f s", c,
                             (unsigned long long)seed, options.policy, seconds,
                             plan.lower_bound_s);
                for (uint32_t d = 0; d < devices; d++)
                    assert_true(plan_device_bytes(&plan, d) <= memory);
            }
            plan_release(&plan);
        }
    }
}

/* Without copies the longest-remaining rule is within (1 - 1/G) of the longest unit of the bound. */
static struct test_layer light_layer(void *context, uint32_t job, uint32_t layer)
{
    struct test_layer t = test_random_layer(context, job, layer);
    t.parameter_bytes = t.boundary_bytes = t.activation_bytes = 64;
    return t;
}

static void test_lrtf_guarantee(void **state)
{
    (void)state;
    uint64_t seed = support_seed(__func__);
    for (uint32_t c = 0; c < 100; c++) {
        uint64_t key = random_mix(seed + 1000 + c);
        uint32_t devices = 2 + (uint32_t)random_below(key, 0, 7);
        uint32_t count = 1 + (uint32_t)random_below(key, 1, 20);
        uint32_t layers = 2 + (uint32_t)random_below(key, 2, 5);
        struct test_random_layers r = {key, 1};
        struct hardware hardware;
        struct job_set jobs;
        struct plan plan;
        struct planner_options options = {
            .activations = ACTIVATIONS_SPILL, .shards = layers, .policy = "sharded-lrtf"};
        double longest_unit = 0;
        test_profile_jobs(&jobs, count, layers, 4, light_layer, &r);
        for (uint32_t j = 0; j < count; j++)
            for (uint32_t l = 0; l < layers; l++) {
                struct test_layer t = light_layer(&r, j, l);
                double s = (double)(t.backward_ns + (l + 1 == layers ? t.forward_ns : 0)) * 1e-9;
                if (s > longest_unit) longest_unit = s;
            }
        test_hardware(&hardware, devices, 1 << 20, 1e15);
        double seconds = makespan(&hardware, &jobs, &options, &plan);
        double limit = plan.lower_bound_s + (1 - 1.0 / devices) * longest_unit;
        if (seconds > limit * (1 + 1e-6))
            fail_msg("case %u of seed %llu: %.9f s, guaranteed %.9f s", c,
                     (unsigned long long)seed, seconds, limit);
        plan_release(&plan);
    }
}

/* --- the shape of plans -------------------------------------------------------------------------- */

/* 2 S - 1 computing units in each minibatch of each job, whatever the policy. */
static void test_units_per_minibatch(void **state)
{
    (void)state;
    struct hardware hardware;
    struct job_set jobs;
    struct plan plan;
    struct planner_options options = {.activations = PLANNER_AUTO, .shards = 4};
    test_hardware(&hardware, 2, 3 << 20, 1e10);
    test_gpt_jobs(&jobs, 3, 6, 64, 257, 5);
    assert_true(makespan(&hardware, &jobs, &options, &plan) < HUGE_VAL);
    uint64_t units[3] = {0};
    for (uint32_t s = 0; s < plan.segment_count; s++)
        for (uint32_t i = 0; i < plan.segments[s].task_count; i++) {
            const struct plan_unit *u =
                &plan.units[plan.tasks[plan.segments[s].first_task + i].unit];
            if (u->pass <= PLAN_BACKWARD) units[u->job] += plan.segments[s].repeat_count;
        }
    for (uint32_t j = 0; j < 3; j++) {
        uint32_t shards = plan.job_first_shard[j + 1] - plan.job_first_shard[j];
        assert_true(shards >= 4);
        assert_int_equal(units[j], (2 * shards - 1) * 5);
    }
    plan_release(&plan);
}

/* One spilled job repeats itself: its plan does not grow with its minibatches. */
static void test_repetition_is_stored_once(void **state)
{
    (void)state;
    uint32_t tasks[2];
    for (int i = 0; i < 2; i++) {
        struct hardware hardware;
        struct job_set jobs;
        struct plan plan;
        struct planner_options options = {.policy = "spill-sequential",
                                          .activations = PLANNER_AUTO};
        test_hardware(&hardware, 1, 2 << 20, 1e10);
        test_gpt_jobs(&jobs, 1, 6, 64, 257, i ? 1000 : 100);
        assert_true(makespan(&hardware, &jobs, &options, &plan) < HUGE_VAL);
        tasks[i] = plan.task_count;
        plan_release(&plan);
    }
    assert_true(tasks[1] <= tasks[0] + 8);
}

/* Evaluations as often as asked for, and a plan that grows with their number only. */
static void test_evaluations(void **state)
{
    (void)state;
    static const char *const policies[] = {"spill-sequential", "sharded-lrtf", "model-parallel"};
    enum { MINIBATCHES = 1003, EVERY = 100, HELD_OUT = 7, EVALUATIONS = 11 };
    for (size_t p = 0; p < ARRAY_COUNT(policies); p++) {
        struct hardware hardware;
        struct job_set jobs;
        struct plan plan;
        struct planner_options options = {.policy = policies[p], .activations = PLANNER_AUTO};
        test_hardware(&hardware, 1, p == 2 ? 16 << 20 : 2 << 20, 1e10);
        test_gpt_jobs(&jobs, 1, 6, 64, 257, MINIBATCHES);
        jobs.jobs[0].evaluation = (struct job_evaluation){
            .every = EVERY, .minibatches = HELD_OUT, .data_format = DATA_NONE};
        jobs.jobs[0].keep_best = true;
        assert_true(makespan(&hardware, &jobs, &options, &plan) < HUGE_VAL);
        uint64_t evaluates = 0, keeps = 0, trains = 0;
        for (uint32_t s = 0; s < plan.segment_count; s++)
            for (uint32_t i = 0; i < plan.segments[s].task_count; i++) {
                const struct plan_unit *u =
                    &plan.units[plan.tasks[plan.segments[s].first_task + i].unit];
                if (u->pass == PLAN_EVALUATE) evaluates += plan.segments[s].repeat_count;
                if (u->pass == PLAN_KEEP) keeps += plan.segments[s].repeat_count;
                if (u->pass <= PLAN_BACKWARD) trains += plan.segments[s].repeat_count;
            }
        assert_int_equal(evaluates, (uint64_t)EVALUATIONS * HELD_OUT * plan.shard_count);
        assert_int_equal(keeps, (uint64_t)EVALUATIONS * plan.shard_count);
        assert_int_equal(trains, (uint64_t)MINIBATCHES * (2 * plan.shard_count - 1));
        /* turns of weight buffers and edges make some minibatches differ in where they lie */
        assert_true(plan.task_count < 100 * EVALUATIONS * plan.shard_count);
        assert_true(plan.segment_count < 12 * EVALUATIONS);
        print_message("%s: %u shards, %u segments, %u tasks\n", policies[p], plan.shard_count,
                      plan.segment_count, plan.task_count);
        plan_release(&plan);
    }
}

/* Smaller and smaller devices: more shards and slices, until the answer is a clear no. */
static void test_smaller_devices(void **state)
{
    (void)state;
    uint32_t shards_before = 0, fitted = 0;
    for (uint64_t memory = 32 << 20; memory > 20000; memory = memory * 4 / 5) {
        struct hardware hardware;
        struct job_set jobs;
        struct plan plan;
        struct error err = {0};
        uint64_t bytes = 0;
        struct planner_options options = {.activations = ACTIVATIONS_RECOMPUTE, .missing_bytes = &bytes};
        test_hardware(&hardware, 1, memory, 1e10);
        test_gpt_jobs(&jobs, 2, 4, 64, 1021, 2);
        plan = (struct plan){0};
        enum status status = planner_plan(&hardware, &jobs, &options, &plan, &err);
        if (status == STATUS_OK) {
            assert_true(plan.shard_count >= 4);
            assert_true(plan_device_bytes(&plan, 0) <= memory);
            shards_before = plan.shard_count;
            fitted++;
        } else {
            assert_int_equal(status, STATUS_INFEASIBLE);
            assert_non_null(strstr(err.text, "needs devices of at least "));
            assert_true(bytes > 0 && bytes < 8u << 20);
            /* with the missing bytes it fits, with one less it does not */
            for (uint64_t less = 0; less < 2; less++) {
                struct error again = {0};
                test_hardware(&hardware, 1, memory + bytes - less, 1e10);
                test_gpt_jobs(&jobs, 2, 4, 64, 1021, 2);
                plan_release(&plan);
                status = planner_plan(&hardware, &jobs, &options, &plan, &again);
                assert_int_equal(status, less ? STATUS_INFEASIBLE : STATUS_OK);
            }
        }
        plan_release(&plan);
    }
    assert_true(fitted > 8);
    assert_true(shards_before >= 2 * 4); /* the smallest that fitted was cut more finely than any */
}

/* A single job on a slow link: few large shards would wait for their own copies. More memory makes larger shards
 * possible, not worse plans. */
static void test_more_memory(void **state)
{
    (void)state;
    double best = HUGE_VAL, first = 0, last = 0;
    for (uint64_t memory = 8 << 20; memory <= 40 << 20; memory += 4 << 20) {
        struct hardware hardware;
        struct job_set jobs;
        struct plan plan;
        const struct planner_options options = {.policy = "spill-sequential",
                                                .activations = PLANNER_AUTO,
                                                .no_persistence = true};
        test_hardware(&hardware, 1, memory, 1e9);
        test_gpt_jobs(&jobs, 1, 12, 64, 131, 20);
        jobs.jobs[0].microbatch = 32;
        last = makespan(&hardware, &jobs, &options, &plan);
        if (first <= 0) first = last;
        if (last < best) best = last;
        assert_true(last <= best * 1.03);
        plan_release(&plan);
    }
    print_message("%.4g s on 8 MiB, %.4g s on 40\n", first, last);
}

/* Where activations are most of the needed memory, shards that hold one layer's at a time are larger and therefore
 * fewer, and less is recomputed: on a link that takes no time, no block's output is made again. 32 x 16 tokens, 12
 * blocks: 2.1 MB of activations each, 0.6 MB of state, 0.13 MB of inputs. */
static void test_inputs_of_layers(void **state)
{
    (void)state;
    uint32_t fewer = 0;
    for (uint64_t memory = 14 << 20; memory <= 26 << 20; memory += 2 << 20) {
        double seconds[ACTIVATIONS_COUNT];
        uint32_t shards[ACTIVATIONS_COUNT];
        for (uint32_t mode = 0; mode < ACTIVATIONS_COUNT; mode++) {
            struct hardware hardware;
            struct job_set jobs;
            struct plan plan;
            const struct planner_options options = {.policy = "spill-sequential",
                                                    .activations = mode,
                                                    .no_persistence = true,
                                                    .weight_buffers = 2};
            test_hardware(&hardware, 1, memory, 1e13);
            test_gpt_jobs(&jobs, 1, 12, 64, 131, 20);
            jobs.jobs[0].microbatch = 32;
            seconds[mode] = makespan(&hardware, &jobs, &options, &plan);
            shards[mode] = plan.shard_count;
            plan_release(&plan);
        }
        assert_true(seconds[ACTIVATIONS_KEEP] >= HUGE_VAL); /* all of them fit nowhere */
        assert_true(seconds[ACTIVATIONS_RECOMPUTE] < HUGE_VAL);
        for (uint32_t mode = ACTIVATIONS_KEEP_INPUTS; mode < ACTIVATIONS_COUNT; mode++) {
            assert_true(seconds[mode] < seconds[ACTIVATIONS_RECOMPUTE]);
            if (2 * shards[mode] < shards[ACTIVATIONS_RECOMPUTE]) fewer++;
        }
    }
    assert_true(fewer >= 4); /* up to 16 MiB, either way */
}

/* On one device the whole network but its embedding is one shard, the loss. Holding all activations of 12 blocks
 * takes 11 blocks' activations without their outputs more than holding one block's activations but its output, and
 * 12 inputs. */
static void test_resident_inputs(void **state)
{
    (void)state;
    struct plan plan;
    uint64_t least[2] = {0};
    for (uint64_t memory = 64 << 20; memory >= 8 << 20; memory -= 1 << 18) {
        struct hardware hardware;
        struct job_set jobs;
        const struct planner_options options = {.policy = "model-parallel",
                                                .activations = PLANNER_AUTO};
        test_hardware(&hardware, 1, memory, 1e10);
        test_gpt_jobs(&jobs, 1, 12, 64, 131, 3);
        jobs.jobs[0].microbatch = 32;
        if (makespan(&hardware, &jobs, &options, &plan) < HUGE_VAL) {
            assert_int_equal(plan.shard_count, 2);
            least[plan.shards[1].inputs_only] = memory;
        }
        plan_release(&plan);
    }
    /* R = 512 rows: a block keeps 16 C + 4 + H numbers a row, H = 4, an input C */
    const int64_t block = 512 * (16 * 64 + 8) * 4, input = 512 * 64 * 4;
    int64_t saved = 11 * (block - input);
    int64_t difference = (int64_t)least[0] - (int64_t)least[1] - saved;
    assert_true(least[1] > 0);
    if (difference < -(2 << 18) || difference > 2 << 18)
        fail_msg("%llu and %llu bytes, %lld saved", (unsigned long long)least[0],
                 (unsigned long long)least[1], (long long)saved);
}

static void test_errors(void **state)
{
    (void)state;
    const struct {
        struct planner_options options;
        uint64_t memory;
        const char *message;
    } cases[] = {
        {{.policy = "sharded-ltrf", .activations = PLANNER_AUTO},
         1 << 24,
         "unknown policy 'sharded-ltrf' (did you mean 'sharded-lrtf'?)"},
        {{.policy = "greedy", .activations = PLANNER_AUTO},
         1 << 24,
         "unknown policy 'greedy' (expected sharded-lrtf, sharded-lrtf-cached, lrtf-emptiest, srtf, fifo, random, "
         "spill-sequential, model-parallel, shard-parallel or optimal, or a shared object such as ./mine.so)"},
        {{.policy = "fifo", .weight_buffers = 9, .activations = PLANNER_AUTO},
         1 << 24,
         "9 weight buffers (expected 1 to 8)"},
        {{.policy = "model-parallel", .activations = ACTIVATIONS_SPILL},
         1 << 24,
         "activations of resident shards cannot be spilled (expected keep, keep-inputs or recompute)"},
        {{.policy = "shard-parallel", .activations = ACTIVATIONS_SPILL_INPUTS},
         1 << 24,
         "activations of resident shards cannot be spilled (expected keep, keep-inputs or recompute)"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct hardware hardware;
        struct job_set jobs;
        struct plan plan = {0};
        struct error err = {0};
        test_hardware(&hardware, 2, cases[i].memory, 1e10);
        test_gpt_jobs(&jobs, 1, 2, 32, 97, 1);
        enum status status = planner_plan(&hardware, &jobs, &cases[i].options, &plan, &err);
        assert_int_equal(status, STATUS_BAD_INPUT);
        assert_string_equal(err.text, cases[i].message);
    }
}

/* --- bounds -------------------------------------------------------------------------------------- */

/* 16 devices of 12 GB/s, four below each switch of 20, all below one bridge of 32 GB/s. */
static void test_host_rate(void **state)
{
    (void)state;
    struct hardware hw;
    test_hardware(&hw, 16, 1 << 20, 12e9);
    struct hardware_link links[16 + 4 + 1];
    for (uint32_t i = 0; i < 16; i++) {
        links[i] = hw.links[i];
        hw.devices[i].path[0] = 20;
        hw.devices[i].path[1] = 16 + i / 4;
        hw.devices[i].path[2] = i;
        hw.devices[i].path_count = 3;
    }
    for (uint32_t i = 16; i < 21; i++) {
        links[i] = hw.links[0];
        links[i].bandwidth.value = i < 20 ? 20e9 : 32e9;
    }
    hw.links = links;
    hw.link_count = 21;
    assert_true(fabs(bound_host_rate(&hw) - 32e9) < 1);
    links[20].bandwidth.value = 100e9; /* now the switches bind: 4 x 20 */
    assert_true(fabs(bound_host_rate(&hw) - 80e9) < 1);
    links[17].bandwidth.value = 60e9; /* this switch's devices bind: 4 x 12 */
    assert_true(fabs(bound_host_rate(&hw) - 108e9) > 1);
    assert_true(fabs(bound_host_rate(&hw) - 100e9) < 1);
    hardware_release(&hw);
}

static struct test_layer heavy_layer(void *context, uint32_t job, uint32_t layer)
{
    (void)context, (void)job, (void)layer;
    return (struct test_layer){.parameter_bytes = 12000000, .forward_ns = 1, .backward_ns = 1};
}

/* A duplex link of 3 GB/s below a bridge that both directions cross: 12 MB each way take 4 ms, or the time that the
 * bridge takes for 24. */
static void test_link_bound(void **state)
{
    (void)state;
    static const double bridges[][2] = {{4e9, 24e6 / 4e9}, {8e9, 12e6 / 3e9}, {2e9, 24e6 / 2e9}};
    for (size_t i = 0; i < ARRAY_COUNT(bridges); i++) {
        struct hardware hw;
        struct job_set jobs;
        struct bound bound;
        test_hardware(&hw, 2, 1 << 30, 3e9);
        hw.device_count = 1;
        hw.devices[0].path[0] = 1;
        hw.devices[0].path[1] = 0;
        hw.devices[0].path_count = 2;
        hw.links[1].duplex = false;
        hw.links[1].bandwidth.value = bridges[i][0];
        test_profile_jobs(&jobs, 1, 1, 1, heavy_layer, NULL);
        bound_makespan(&hw, &jobs, false, &bound);
        assert_int_equal(bound.kind, BOUND_LINK);
        assert_true(fabs(bound.seconds - bridges[i][1]) < 1e-12);
        job_set_release(&jobs);
        hardware_release(&hw);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_toy),
        cmocka_unit_test(test_random_workloads),
        cmocka_unit_test(test_lrtf_guarantee),
        cmocka_unit_test(test_units_per_minibatch),
        cmocka_unit_test(test_repetition_is_stored_once),
        cmocka_unit_test(test_evaluations),
        cmocka_unit_test(test_smaller_devices),
        cmocka_unit_test(test_more_memory),
        cmocka_unit_test(test_inputs_of_layers),
        cmocka_unit_test(test_resident_inputs),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_host_rate),
        cmocka_unit_test(test_link_bound),
    };
    return cmocka_run_group_tests_name("planner", tests, NULL, NULL);
}
