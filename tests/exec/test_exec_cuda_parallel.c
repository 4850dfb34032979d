/*
 * Parallel jobs on the CUDA back end: pipelines have the bits of one GPU, replicas of equal number each other's, and all
 * are near the host's.
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
#include "exec/run/run.h"
#include "planner/check/plan_check.h"
#include "planner/strategy/planner.h"
#include "tests/support/exec/support_cuda.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_memory.h"
#include "tests/support/support_seed.h"

#ifndef SPILLWAY_CUDA

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(support_cuda_left_out)};
    return cmocka_run_group_tests_name("CUDA, parallel jobs", tests, NULL, NULL);
}

#else

#ifdef SPILLWAY_EMULATED
#include "tests/emulator/emulator_faults.h"
enum { FAMILIES = 2 }; /* drawn for each run: a case takes seconds */
#else
enum { FAMILIES = 4 };
#endif

enum { STEPS = 2, DEVICES = 4 };

static const char *const configs[] = {
    "{\"model_type\": \"gpt2\", \"n_layer\": 4, \"n_embd\": 16, \"n_head\": 2, \"n_positions\": 4, \"vocab_size\": 67}",
    "{\"model_type\": \"llama\", \"num_hidden_layers\": 4, \"hidden_size\": 16, \"num_attention_heads\": 4, "
    "\"num_key_value_heads\": 2, \"intermediate_size\": 24, \"max_position_embeddings\": 4, \"vocab_size\": 67}",
    "{\"model_type\": \"bert\", \"num_hidden_layers\": 4, \"hidden_size\": 16, \"num_attention_heads\": 2, "
    "\"intermediate_size\": 24, \"max_position_embeddings\": 4, \"vocab_size\": 67, \"type_vocab_size\": 2, "
    "\"architectures\": [\"BertForMaskedLM\"]}",
    "{\"model_type\": \"vit\", \"num_hidden_layers\": 4, \"hidden_size\": 16, \"num_attention_heads\": 2, "
    "\"intermediate_size\": 24, \"image_size\": 8, \"patch_size\": 4, \"num_labels\": 5}",
};

/* Stages, chunks on each, schedule. */
static const struct cut {
    uint32_t pipeline, chunks, schedule;
} cuts[] = {
    {2, 1, PIPELINE_GPIPE}, {3, 1, PIPELINE_1F1B}, {2, 2, PIPELINE_INTERLEAVED}, {1, 3, PIPELINE_1F1B},
    {2, 1, PIPELINE_ZB_H1}, {2, 2, PIPELINE_ZB_V}, {4, 1, PIPELINE_ZB_H2}, {4, 1, PIPELINE_1F1B},
};

struct setting {
    const char *config, *backend;
    const struct cut *cut; /* NULL: one device, spilled */
    uint32_t data, zero, recompute, precision, moments;
    uint64_t microbatches, every, delay_seed;
};

struct outcome {
    double losses[STEPS], evaluated;
    uint64_t fingerprint;
};

static void plan_and_run(const struct setting *s, struct outcome *out)
{
    struct hardware hardware;
    struct job_set jobs;
    struct plan plan = {0};
    struct error err = {0};
    struct run_result result = {0};
    struct trace trace = {0};
    test_hardware(&hardware, s->cut ? DEVICES : 1, 1 << 24, 1e9);
    hardware.backend = s->backend;
    hardware.threads = strcmp(s->backend, "host") == 0;
    hardware.host_bytes.value = 1e9;
    test_network_jobs(&jobs, 1, s->config, STEPS);
    struct job *const job = &jobs.jobs[0];
    job->microbatch = 1;
    job->microbatches = s->microbatches;
    job->precision = s->precision;
    job->optimizer.learning_rate = 0.01;
    job->optimizer.moments = s->moments;
    job->evaluation = (struct job_evaluation){.every = s->every, .minibatches = 1};
    if (s->cut)
        job->parallel = (struct parallel){.tensor = 1, .prefetch = 1, .pipeline = s->cut->pipeline, .data = s->data,
                                          .zero = s->zero, .chunks = s->cut->chunks, .buckets = 1,
                                          .schedule = s->cut->schedule, .recompute = s->recompute};
    const struct planner_options options = {.policy = s->cut ? NULL : "spill-sequential", .shards = 3,
                                            .activations = PLANNER_AUTO, .optimizer = PLANNER_PLACE_DEVICE};
    enum status status = s->cut ? parallel_check(job, &err) : STATUS_OK;
    if (!status) status = planner_plan(&hardware, &jobs, &options, &plan, &err);
    if (!status) status = plan_check(&plan, &err);
    if (!status)
        status = run_plan(&plan, &(struct run_options){.poison = true, .delay_seed = s->delay_seed, .record_spans = s->cut},
                          &result, &trace, &err);
    if (!status && s->cut) status = trace_check(&trace, &err);
    if (status) fail_msg("%s", err.text);
    assert_memory_as_planned(&plan, &result);
    assert_int_equal(result.jobs[0].minibatches, STEPS);
    memcpy(out->losses, result.jobs[0].losses, sizeof out->losses);
    out->evaluated = s->every > 0 ? result.jobs[0].evaluations[0].loss : 0;
    out->fingerprint = result.jobs[0].weights_fingerprint;
    run_result_release(&result);
    trace_release(&trace);
    plan_release(&plan);
}

static void describe(const struct setting *s, char out[200])
{
    snprintf(out, 200, "%.22s..., %s, %u stages, %u chunks, %u replicas, zero %u, %s, recompute %s, precision %u, %u microbatches",
             s->config, s->backend, s->cut->pipeline, s->cut->chunks, s->data, s->zero,
             pipeline_schedule_names[s->cut->schedule], recompute_names[s->recompute], s->precision, (unsigned)s->microbatches);
}

static void assert_same(const struct outcome *wanted, const struct outcome *found, const struct setting *s)
{
    char what[200];
    describe(s, what);
    if (memcmp(wanted, found, sizeof *wanted) != 0)
        fail_msg("%s: loss %.17g and weights %llx, not %.17g and %llx", what, found->losses[STEPS - 1],
                 (unsigned long long)found->fingerprint, wanted->losses[STEPS - 1], (unsigned long long)wanted->fingerprint);
}

static void assert_near(const struct outcome *wanted, const struct outcome *found, const struct setting *s)
{
    char what[200];
    describe(s, what);
    for (int i = 0; i < STEPS; i++)
        if (!(fabs(found->losses[i] / wanted->losses[i] - 1) <= (s->precision == PRECISION_FP32 ? 1e-5 : 1e-2)))
            fail_msg("%s: loss %d is %.9g, not %.9g", what, i, found->losses[i], wanted->losses[i]);
}

/* Skips the test without enough GPUs. */
static void need_gpus(void)
{
    uint32_t count = 0;
    struct error err = {0};
    support_need_gpu();
    if (backend_find("cuda")->count(&count, &err) == STATUS_OK && count >= DEVICES) return;
    print_message("skipped: %u GPUs, not %d\n", count, DEVICES);
    skip();
}

static struct setting draw(uint64_t seed, uint64_t n, const char *config)
{
    static const uint32_t recompute[] = {RECOMPUTE_NONE, RECOMPUTE_FULL, RECOMPUTE_STAGE};
    const bool rounded = random_below(seed, n + 1, 3) == 0;
    return (struct setting){.config = config, .backend = "cuda", .data = 1,
                            .cut = &cuts[random_below(seed, n, ARRAY_COUNT(cuts))],
                            .recompute = recompute[random_below(seed, n + 2, 3)],
                            .precision = rounded ? PRECISION_BF16_WEIGHTS : PRECISION_FP32,
                            .moments = random_below(seed, n + 3, 3) == 0 ? PRECISION_BF16 : PRECISION_FP32,
                            .microbatches = 4, .every = random_below(seed, n + 4, 2), .delay_seed = seed + n};
}

/* Returns another family for each n below their number. */
static const char *config_of(uint64_t seed, uint64_t n)
{
    return configs[(random_below(seed, 9999, ARRAY_COUNT(configs)) + n) % ARRAY_COUNT(configs)];
}

static void test_pipelines(void **state)
{
    (void)state;
    need_gpus();
    const uint64_t seed = support_seed("pipelines on GPUs");
    for (uint64_t n = 0; n < FAMILIES; n++) {
        const struct setting s = draw(seed, 10 * n, config_of(seed, n));
        struct setting alone = s, host = s;
        struct outcome wanted, found, near;
        alone.cut = NULL;
        alone.delay_seed = 0;
        plan_and_run(&alone, &wanted);
        plan_and_run(&s, &found);
        assert_same(&wanted, &found, &s);
        host.backend = "host";
        plan_and_run(&host, &near);
        assert_near(&near, &found, &s);
    }
}

/* Levels 0 and 1 of shares, and of 2 and 3, have the same bits. */
static void test_replicas(void **state)
{
    (void)state;
    static const struct cut whole = {1, 1, PIPELINE_1F1B}, others[] = {{1, 3, PIPELINE_1F1B}, {2, 1, PIPELINE_1F1B},
                                                                       {2, 1, PIPELINE_GPIPE}};
    need_gpus();
    const uint64_t seed = support_seed("replicas on GPUs");
    for (uint64_t n = 0; n < FAMILIES; n++) {
        struct setting s = draw(seed, 2000 + 10 * n, config_of(seed, n));
        struct outcome wanted, found, near;
        const uint32_t zero = (uint32_t)random_below(seed, 5000 + n, 4);
        s.cut = &whole;
        s.data = 2;
        s.zero = zero < ZERO_GRADIENTS ? ZERO_NOTHING : ZERO_GRADIENTS;
        plan_and_run(&s, &wanted);
        s.backend = "host";
        plan_and_run(&s, &near);
        assert_near(&near, &wanted, &s);
        s.backend = "cuda";
        s.cut = &others[random_below(seed, 6000 + n, ARRAY_COUNT(others))];
        s.zero = zero;
        s.delay_seed++;
        plan_and_run(&s, &found);
        assert_same(&wanted, &found, &s);
    }
}

int main(void)
{
#ifdef SPILLWAY_EMULATED
    emulator_set_devices(DEVICES);
#endif
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_replicas), cmocka_unit_test(test_pipelines)};
    return cmocka_run_group_tests_name("CUDA, parallel jobs", tests, NULL, NULL);
}

#endif
