/* label: medium, all rounds: slow
 *
 * Plans of convolutional networks, carried out: however the jobs are cut, wherever their states and activations are,
 * whichever layers' activations are swapped or recomputed by each rule, on one device or several, losses, evaluations
 * and weights have the bits of the jobs alone on a device that holds all,
 * with random pauses on every stream and NaN in all memory that was released; and memory is used as planned. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "base/size.h"
#include "exec/run/run.h"
#include "planner/policy/policies.h"
#include "planner/strategy/planner.h"
#include "planner/swap/swap.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_memory.h"
#include "tests/support/support_seed.h"

enum { JOBS = 2, STEPS = 4, EVALUATIONS = 2, ROUNDS = SUPPORT_ROUNDS(40) };

static const char *const configs[] = {
    "{\"model_type\": \"cnn\", \"num_channels\": 3, \"image_size\": 12, \"operations\": ["
    "{\"layer\": \"a\", \"kind\": \"convolution\", \"channels\": 16, \"kernel\": 3, \"padding\": 1},"
    "{\"kind\": \"batch_norm\"}, {\"kind\": \"relu\"},"
    "{\"layer\": \"b\", \"kind\": \"convolution\", \"channels\": 16, \"kernel\": 3, \"padding\": 1},"
    "{\"kind\": \"batch_norm\"}, {\"kind\": \"relu\"},"
    "{\"kind\": \"convolution\", \"channels\": 16, \"kernel\": 3, \"padding\": 1}, {\"kind\": \"batch_norm\"},"
    "{\"kind\": \"add\", \"from\": [8, 3]}, {\"kind\": \"relu\"},"
    "{\"layer\": \"c\", \"kind\": \"convolution\", \"channels\": 24, \"kernel\": 3, \"padding\": 1, \"stride\": 2},"
    "{\"kind\": \"batch_norm\"}, {\"kind\": \"relu\"},"
    "{\"kind\": \"convolution\", \"channels\": 24, \"kernel\": 3, \"padding\": 1}, {\"kind\": \"batch_norm\"},"
    "{\"kind\": \"convolution\", \"channels\": 24, \"kernel\": 1, \"stride\": 2, \"from\": [10]},"
    "{\"kind\": \"batch_norm\"}, {\"kind\": \"add\", \"from\": [15, 17]}, {\"kind\": \"relu\"},"
    "{\"layer\": \"d\", \"kind\": \"convolution\", \"channels\": 24, \"kernel\": 3, \"padding\": 1},"
    "{\"kind\": \"batch_norm\"}, {\"kind\": \"relu\"}, {\"kind\": \"add\", \"from\": [22, 19]},"
    "{\"layer\": \"e\", \"kind\": \"mean_pool\", \"kernel\": 1},"
    "{\"kind\": \"linear\", \"channels\": 10, \"bias\": true}, {\"kind\": \"loss\"}]}",
    "{\"model_type\": \"cnn\", \"num_channels\": 1, \"image_size\": 16, \"operations\": ["
    "{\"layer\": \"a\", \"kind\": \"convolution\", \"channels\": 8, \"kernel\": 3, \"padding\": 1, \"bias\": true},"
    "{\"kind\": \"relu\"},"
    "{\"layer\": \"b\", \"kind\": \"max_pool\", \"kernel\": 2, \"stride\": 2},"
    "{\"kind\": \"convolution\", \"channels\": 16, \"kernel\": 3, \"padding\": 1, \"bias\": true},"
    "{\"kind\": \"relu\"},"
    "{\"layer\": \"c\", \"kind\": \"max_pool\", \"kernel\": 2, \"stride\": 2},"
    "{\"kind\": \"convolution\", \"channels\": 32, \"kernel\": 3, \"padding\": 1, \"bias\": true},"
    "{\"kind\": \"relu\"},"
    "{\"layer\": \"d\", \"kind\": \"upsample\", \"channels\": 16, \"kernel\": 2, \"bias\": true},"
    "{\"kind\": \"concat\", \"from\": [5, 9]},"
    "{\"kind\": \"convolution\", \"channels\": 16, \"kernel\": 3, \"padding\": 1, \"bias\": true},"
    "{\"kind\": \"relu\"},"
    "{\"layer\": \"e\", \"kind\": \"upsample\", \"channels\": 8, \"kernel\": 2, \"bias\": true},"
    "{\"kind\": \"concat\", \"from\": [2, 13]}, {\"kind\": \"relu\"},"
    "{\"layer\": \"f\", \"kind\": \"convolution\", \"channels\": 3, \"kernel\": 1, \"bias\": true},"
    "{\"kind\": \"loss\"}]}",
};

struct outcome {
    double losses[JOBS][STEPS], evaluations[JOBS][EVALUATIONS];
    uint64_t weights[JOBS], best[JOBS];
};

static void make_jobs(const char *config, bool tree, const struct planner_options *options, struct job_set *jobs)
{
    test_network_jobs(jobs, JOBS, config, STEPS);
    for (uint32_t j = 0; j < JOBS; j++) {
        struct job *const job = &jobs->jobs[j];
        job->microbatches = 1 + 2 * j;
        if (!options->swap)
            job->evaluation = (struct job_evaluation){.every = 2, .minibatches = 1 + j, .data_format = DATA_NONE};
        job->keep_best = !options->swap && options->storage == PLANNER_STORAGE_NONE && j == 1;
        job->tree = j == 1 && tree;
    }
}

/* Plans and runs. Returns false if nothing fits. */
static bool outcome_of(const char *config, bool tree, uint32_t devices, uint64_t bytes,
                       const struct planner_options *options, uint64_t delay_seed, struct outcome *out,
                       uint32_t *shards)
{
    struct hardware hardware;
    struct job_set jobs;
    struct plan plan = {0};
    struct error err = {0};
    struct run_result result = {0};
    struct trace trace = {0};
    const struct run_options run = {.poison = true, .delay_seed = delay_seed, .storage = {.folder = BINARY_DIR}};
    test_hardware(&hardware, devices, bytes, 1e9);
    hardware.backend = "host";
    hardware.threads = 1;
    hardware.host_bytes.value = 1e9;
    hardware.storage.capacity_bytes.value = 1e9;
    hardware.storage.read_rate.value = hardware.storage.write_rate.value = 0.7e9;
    make_jobs(config, tree, options, &jobs);
    enum status status = planner_plan(&hardware, &jobs, options, &plan, &err);
    if (status == STATUS_INFEASIBLE) return false;
    if (!status) status = run_plan(&plan, &run, &result, &trace, &err);
    if (status) fail_msg("%s", err.text);
    assert_memory_as_planned(&plan, &result);
    memset(out, 0, sizeof *out);
    for (uint32_t j = 0; j < JOBS; j++) {
        assert_int_equal(result.jobs[j].minibatches, STEPS);
        assert_int_equal(result.jobs[j].evaluation_count, options->swap ? 0 : EVALUATIONS);
        memcpy(out->losses[j], result.jobs[j].losses, sizeof out->losses[j]);
        for (uint32_t i = 0; i < EVALUATIONS && !options->swap; i++)
            out->evaluations[j][i] = result.jobs[j].evaluations[i].loss;
        out->weights[j] = result.jobs[j].weights_fingerprint;
        out->best[j] = result.jobs[j].kept_fingerprint;
    }
    *shards = plan.shard_count;
    run_result_release(&result);
    trace_release(&trace);
    plan_release(&plan);
    return true;
}

static struct planner_options draw_options(uint64_t draw)
{
    static const char *const policies[] = {"sharded-lrtf", "spill-sequential", "model-parallel", "srtf",
                                           "shard-parallel"};
    struct planner_options options = {.policy = policies[random_below(draw, 0, ARRAY_COUNT(policies))],
                                      .seed = draw >> 1,
                                      .no_double_buffer = random_below(draw, 1, 3) == 0,
                                      .no_persistence = random_below(draw, 2, 2) == 0,
                                      .activations = (uint32_t)random_below(draw, 3, ACTIVATIONS_COUNT + 1),
                                      .mixed = random_below(draw, 4, 2) == 0,
                                      .optimizer = PLANNER_PLACE_DEVICE, /* the host's processor steps no operations */
                                      .storage = random_below(draw, 6, 3) == 0 ? PLANNER_STORAGE_ALL
                                                                               : PLANNER_STORAGE_NONE,
                                      .shards = (uint32_t)random_below(draw, 7, 6)};
    if (options.activations == ACTIVATIONS_COUNT) options.activations = PLANNER_AUTO;
    if (policy_find(options.policy)->resident && plan_activations_spill(options.activations))
        options.activations = PLANNER_AUTO;
    return options;
}

static void check_plans(const char *config, bool tree, uint64_t seed)
{
    const struct planner_options resident = {.policy = "model-parallel", .activations = PLANNER_AUTO,
                                             .optimizer = PLANNER_PLACE_DEVICE, .storage = PLANNER_STORAGE_NONE};
    struct outcome alone, other;
    uint32_t shards, ran = 0, most = 0, several = 0;
    assert_true(outcome_of(config, tree, 1, 1 << 25, &resident, 0, &alone, &shards));
    for (uint32_t j = 0; j < JOBS; j++) {
        assert_true(isfinite(alone.losses[j][STEPS - 1]) && alone.losses[j][0] != alone.losses[j][1]);
        assert_true(alone.evaluations[j][0] != alone.evaluations[j][1]);
    }
    for (uint32_t round = 0; round < ROUNDS; round++) {
        const uint64_t draw = random_mix(seed + round);
        const struct planner_options options = draw_options(draw);
        const uint32_t devices = 1 + (uint32_t)random_below(draw, 8, 3);
        const uint64_t bytes = 200000 + random_below(draw, 9, 1500000);
        if (!outcome_of(config, tree, devices, bytes, &options, draw, &other, &shards)) continue;
        if (options.storage != PLANNER_STORAGE_NONE) memcpy(other.best, alone.best, sizeof other.best);
        if (memcmp(&alone, &other, sizeof alone) != 0)
            fail_msg("%s on %u devices of %llu bytes: other bits than alone (first losses %.17g, %.17g)",
                     options.policy, devices, (unsigned long long)bytes, other.losses[0][1], alone.losses[0][1]);
        ran++;
        several += devices > 1;
        if (shards > most) most = shards;
    }
    assert_true(ran > ROUNDS / 10 && several > 0 && most > 2 * JOBS);
}

static void test_plans(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("plans of operations");
    for (size_t i = 0; i < ARRAY_COUNT(configs); i++)
        for (uint32_t tree = 0; tree < 2; tree++) check_plans(configs[i], tree, seed + 1000 * tree + i);
}

/* Rules choose layers by layer; memory is drawn. */
static void test_rules(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("rules of operations");
    uint64_t counts[CHAIN_CHOICES] = {0};
    for (size_t i = 0; i < ARRAY_COUNT(configs); i++) {
        struct swap_options swap = {.way = SWAP_BEST, .limit_s = 0.05};
        struct swap_report report = {0};
        struct planner_options options = {.activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO, .swap = &swap,
                                          .swap_report = &report};
        struct outcome alone, other;
        uint32_t shards;
        assert_true(outcome_of(configs[i], false, 1, 1 << 25, &options, 0, &alone, &shards));
        swap_report_release(&report);
        for (uint32_t way = 0; way < SWAP_WAYS; way++)
            for (uint64_t draw = 0; draw < 3; draw++) {
                const uint64_t bytes = 300000 + random_below(seed + draw, 10 * i + way, 1200000);
                swap.way = way;
                if (!outcome_of(configs[i], false, 1, bytes, &options, seed + draw, &other, &shards)) continue;
                if (memcmp(&alone, &other, sizeof alone) != 0)
                    fail_msg("rule %u with %llu bytes: other bits than resident", way, (unsigned long long)bytes);
                for (uint32_t c = 0; c < CHAIN_CHOICES; c++) counts[c] += report.jobs[0].counts[c];
                swap_report_release(&report);
            }
    }
    for (uint32_t c = 0; c < CHAIN_CHOICES; c++) assert_true(counts[c] > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_plans), cmocka_unit_test(test_rules)};
    return cmocka_run_group_tests_name("plans of operations", tests, NULL, NULL);
}
