/*
 * The contract of training: a plan changes when and where, never what is computed.
 *
 * The same jobs, planned by each policy for devices of several sizes and numbers, with and without
 * double buffering, with activations kept, spilled and recomputed, carried out with random pauses on
 * every stream and with every released range filled with NaN: the losses of each step and the final
 * weights have the same bits as when each job runs alone on a device that holds all of it.
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
#include "base/size.h"
#include "exec/run.h"
#include "planner/planner.h"
#include "planner/policy.h"
#include "tests/support_planner.h"
#include "tests/support_seed.h"

enum { JOBS = 3, STEPS = 4, BLOCKS = 3, WIDTH = 32, VOCABULARY = 131 };

struct outcome {
    double losses[JOBS][STEPS];
    uint64_t weights[JOBS];
};

/* The host's devices are made-up ones with its back end's name. */
static void host_devices(struct hardware *hardware, uint32_t devices, uint64_t memory_bytes)
{
    test_hardware(hardware, devices, memory_bytes, 1e9);
    hardware->backend = "host";
    hardware->threads = 1;
    hardware->host_bytes.value = 1e9;
}

/* Plan and run; false when nothing fits. `only` picks one job of the set (PLAN_NONE: all). */
static bool outcome_of(uint32_t devices, uint64_t memory_bytes,
                       const struct planner_options *options, uint64_t delay_seed,
                       struct outcome *out, uint32_t *shards)
{
    struct hardware hardware;
    struct job_set jobs;
    struct plan plan = {0};
    struct error err = {0};
    struct run_result result = {0};
    struct trace trace = {0};
    struct run_options run = {.poison = true, .delay_seed = delay_seed};
    host_devices(&hardware, devices, memory_bytes);
    test_gpt_jobs(&jobs, JOBS, BLOCKS, WIDTH, VOCABULARY, STEPS);
    enum status status = planner_plan(&hardware, &jobs, options, &plan, &err);
    if (status == STATUS_INFEASIBLE) return false;
    if (!status) status = run_plan(&plan, &run, &result, &trace, &err);
    if (status) fail_msg("%s", err.text);
    for (uint32_t j = 0; j < JOBS; j++) {
        assert_int_equal(result.jobs[j].minibatches, STEPS);
        memcpy(out->losses[j], result.jobs[j].losses, sizeof out->losses[j]);
        out->weights[j] = result.jobs[j].weights_fingerprint;
    }
    *shards = plan.shard_count;
    run_result_release(&result);
    trace_release(&trace);
    plan_release(&plan);
    return true;
}

static void test_same_bits(void **state)
{
    (void)state;
    uint64_t seed = support_seed(__func__);
    const uint64_t sizes[] = {4000000, 1200000, 500000, 250000, 180000};
    struct outcome alone;
    uint32_t ran = 0, shards, shards_most = 0, by_place[PLACE_COUNT] = {0};
    struct planner_options resident = {.policy = "model-parallel", .activations = PLANNER_AUTO};
    assert_true(outcome_of(1, 1 << 24, &resident, 0, &alone, &shards));
    for (uint32_t j = 0; j < JOBS; j++)
        for (uint32_t i = 0; i < STEPS; i++) /* a sane start: about ln(vocabulary) */
            assert_true(fabs(alone.losses[j][i] - log(VOCABULARY)) < 0.5);
    for (uint32_t p = 0; policy_at(p); p++) {
        for (uint32_t devices = 1; devices <= 2; devices++) {
            for (size_t m = 0; m < ARRAY_COUNT(sizes); m++) {
                uint64_t draw = random_mix(seed + p * 100 + devices * 10 + m);
                uint32_t mode = (uint32_t)random_below(draw, 0, 4);
                struct planner_options options = {
                    .policy = policy_at(p)->name,
                    .seed = draw >> 1,
                    .no_double_buffer = random_below(draw, 1, 3) == 0,
                    .activations = mode < ACTIVATIONS_COUNT ? mode : PLANNER_AUTO,
                    .optimizer = (uint32_t)random_below(draw, 3, PLACE_COUNT),
                    .shards = (uint32_t)random_below(draw, 2, 6)};
                if (policy_at(p)->resident) options.optimizer = PLACE_DEVICE;
                if (policy_at(p)->resident && mode == ACTIVATIONS_SPILL)
                    options.activations = PLANNER_AUTO;
                struct outcome outcome;
                by_place[options.optimizer]++;
                if (!outcome_of(devices, sizes[m], &options, draw, &outcome, &shards)) continue;
                ran++;
                if (shards > shards_most) shards_most = shards;
                if (memcmp(&outcome, &alone, sizeof alone) != 0)
                    fail_msg("%s on %u devices of %llu bytes, activations %u, optimizers %s, %u "
                             "shards: other bits than alone (first loss %.17g, %.17g)",
                             options.policy, devices, (unsigned long long)sizes[m],
                             options.activations, planner_place_names[options.optimizer], shards,
                             outcome.losses[0][1], alone.losses[0][1]);
            }
        }
    }
    print_message("%u plans with up to %u shards: the same bits\n", ran, shards_most);
    assert_true(ran >= 20);
    for (uint32_t place = 0; place < PLACE_COUNT; place++) assert_true(by_place[place] >= 5);
    assert_true(shards_most >= JOBS * 5); /* each layer was a shard of its own at least once */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_bits)};
    return cmocka_run_group_tests_name("contract", tests, NULL, NULL);
}
