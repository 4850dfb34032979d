/*
 * The contract of training on the CUDA back end: spilled is resident, to the last bit, and both are near the host's.
 * Some jobs learn some tokens of rows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "exec/run/run.h"
#include "planner/strategy/planner.h"
#include "tests/support/exec/support_cuda.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_folder.h"
#include "tests/support/support_memory.h"
#include "tests/support/support_rows.h"
#include "tests/support/support_seed.h"

#ifndef SPILLWAY_CUDA

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(support_cuda_left_out)};
    return cmocka_run_group_tests_name("CUDA, contract", tests, NULL, NULL);
}

#else

#include "exec/cuda/kernels_cuda_launch.h"

#ifdef SPILLWAY_EMULATED /* each run takes seconds: a quarter is drawn */
enum { STEPS = 2, EACH = 4 };
#else
enum { STEPS = 4, EACH = 1 };
#endif
enum { JOBS = 3, SIZES_MAX = 5, FP32 = PRECISION_FP32, BF16 = PRECISION_BF16, ROUNDED = PRECISION_BF16_WEIGHTS };

/* The jobs that train, and the sizes of their small devices. */
static const struct subject {
    const char *config;
    uint64_t memory_bytes[SIZES_MAX]; /* up to the first 0 */
    uint64_t emulated_bytes[SIZES_MAX];
    uint32_t weights[JOBS], moments[JOBS]; /* enum precision */
    bool rows;
} subjects[] = {
    {"{\"model_type\": \"gpt2\", \"n_layer\": 3, \"n_embd\": 64, \"n_head\": 4, "
     "\"n_positions\": 32, \"vocab_size\": 131}",
     {16000000, 4000000, 2000000, 1000000, 700000}, {2000000, 700000}, {0}, {0}, true},
    {"{\"model_type\": \"llama\", \"num_hidden_layers\": 3, \"hidden_size\": 32, "
     "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"head_dim\": 14, "
     "\"intermediate_size\": 77, \"max_position_embeddings\": 32, \"vocab_size\": 131}",
     {1200000, 500000, 250000}, {500000}, {0}, {0}, true},
    {"{\"model_type\": \"bert\", \"num_hidden_layers\": 3, \"hidden_size\": 32, "
     "\"num_attention_heads\": 4, \"intermediate_size\": 101, "
     "\"max_position_embeddings\": 32, \"vocab_size\": 131}",
     {1200000, 500000, 250000}, {500000}, {0}, {0}, false},
    {"{\"model_type\": \"vit\", \"num_hidden_layers\": 3, \"hidden_size\": 32, "
     "\"num_attention_heads\": 3, \"head_dim\": 12, \"intermediate_size\": 133, "
     "\"image_size\": 16, \"patch_size\": 4, \"qkv_bias\": false, \"num_labels\": 10}",
     {1200000, 500000, 250000}, {500000}, {0}, {0}, false},
    {"{\"model_type\": \"gpt2\", \"n_layer\": 3, \"n_embd\": 33, \"n_head\": 3, "
     "\"n_positions\": 32, \"vocab_size\": 131}",
     {4000000, 1000000, 600000}, {1000000, 600000}, {ROUNDED, ROUNDED, FP32}, {FP32, BF16, BF16}, false},
};

struct outcome {
    double losses[JOBS][STEPS];
    uint64_t weights[JOBS];
};

static char rows_path[SUPPORT_FOLDER_BYTES + 16];

/* Returns false if no plan fits. */
static bool outcome_of(const struct subject *subject, const char *backend, uint64_t memory_bytes,
                       const char *policy, uint32_t activations, uint64_t delay_seed, bool tf32,
                       struct outcome *out)
{
    struct hardware hardware;
    struct job_set jobs;
    struct plan plan = {0};
    struct error err = {0};
    struct run_result result = {0};
    struct trace trace = {0};
    const struct planner_options options = {.policy = policy, .activations = activations, .seed = 1};
    const struct run_options run = {.poison = true, .delay_seed = delay_seed, .tf32 = tf32};
    test_hardware(&hardware, 1, memory_bytes, 1e9);
    hardware.backend = backend;
    hardware.threads = strcmp(backend, "host") == 0;
    hardware.host_bytes.value = 1e9;
    test_network_jobs(&jobs, JOBS, subject->config, STEPS);
    jobs.jobs[1].microbatches = 2;
    for (uint32_t j = 0; j < JOBS; j++) {
        jobs.jobs[j].precision = subject->weights[j];
        jobs.jobs[j].optimizer.moments = subject->moments[j];
        if (subject->rows) jobs.jobs[j].data = rows_path;
        if (subject->rows) jobs.jobs[j].data_format = DATA_ROWS;
    }
    enum status status = planner_plan(&hardware, &jobs, &options, &plan, &err);
    if (status == STATUS_INFEASIBLE) return false;
    if (!status) status = run_plan(&plan, &run, &result, &trace, &err);
    if (status) fail_msg("%s", err.text);
    assert_memory_as_planned(&plan, &result);
    if (strcmp(backend, "cuda") == 0) {
        assert_int_equal(result.devices[0].taken.workspace_bytes, CUDA_WORKSPACE_BYTES);
#ifdef SPILLWAY_EMULATED /* which has nothing of its own on the device */
        assert_int_equal(result.devices[0].taken.driver_bytes, 0);
#endif
    }
    for (uint32_t j = 0; j < JOBS; j++) {
        assert_int_equal(result.jobs[j].minibatches, STEPS);
        memcpy(out->losses[j], result.jobs[j].losses, sizeof out->losses[j]);
        out->weights[j] = result.jobs[j].weights_fingerprint;
    }
    run_result_release(&result);
    trace_release(&trace);
    plan_release(&plan);
    return true;
}

/* Returns the number of plans. `drawn`: which of EACH are carried out. */
static uint32_t check_contract(const struct subject *subject, bool tf32, uint64_t drawn)
{
    struct outcome alone, host;
    uint32_t ran = 0;
#ifdef SPILLWAY_EMULATED
    const uint64_t *const sizes = subject->emulated_bytes;
#else
    const uint64_t *const sizes = subject->memory_bytes;
#endif
    assert_true(
        outcome_of(subject, "cuda", 1 << 26, "model-parallel", PLANNER_AUTO, 0, tf32, &alone));
    assert_true(
        outcome_of(subject, "host", 1 << 26, "model-parallel", PLANNER_AUTO, 0, false, &host));
    for (int j = 0; j < JOBS; j++) {
        /* a few steps do not carry rounding far, but in bf16 some numbers are rounded the other way */
        const double most = tf32 || subject->weights[j] == ROUNDED ? 2e-3 : 1e-4;
        for (int i = 0; i < STEPS; i++)
            if (!(fabs(alone.losses[j][i] - host.losses[j][i]) <= most))
                fail_msg("%s: job %d step %d: loss %.9g on the GPU, %.9g on the host",
                         subject->config, j, i, alone.losses[j][i], host.losses[j][i]);
    }
    for (size_t m = 0; m < SIZES_MAX && sizes[m] > 0; m++)
        for (uint32_t mode = 0; mode <= ACTIVATIONS_COUNT; mode++) {
            struct outcome outcome;
            const uint32_t activations = mode < ACTIVATIONS_COUNT ? mode : PLANNER_AUTO;
            if ((drawn + m + mode) % EACH != 0) continue;
            if (!outcome_of(subject, "cuda", sizes[m], "sharded-lrtf", activations,
                            m * 10 + mode + 1, tf32, &outcome))
                continue;
            ran++;
            if (memcmp(&outcome, &alone, sizeof alone) != 0)
                fail_msg("%s: %llu bytes, activations %u, tf32 %d: other bits than alone (loss "
                         "%.17g, %.17g)",
                         subject->config, (unsigned long long)sizes[m], mode, tf32,
                         outcome.losses[0][1], alone.losses[0][1]);
        }
    return ran;
}

static void test_contract(void **state)
{
    (void)state;
    support_need_gpu();
    const uint64_t seed = support_seed("grid") % EACH;
    char folder[SUPPORT_FOLDER_BYTES];
    support_folder_make(folder);
    snprintf(rows_path, sizeof rows_path, "%s/a.rows", folder);
    support_rows_write(rows_path, 7, 40, 30, 131, 3);
#ifdef SPILLWAY_EMULATED /* its products are the same in both ways */
    enum { TF32_END = 1 };
#else
    enum { TF32_END = 2 };
#endif
    for (size_t i = 0; i < ARRAY_COUNT(subjects); i++)
        for (int tf32 = 0; tf32 < TF32_END; tf32++) {
            const uint32_t ran = check_contract(&subjects[i], tf32, seed + i);
            print_message("%.22s...: %u plans, the same bits\n", subjects[i].config, ran);
            assert_true(ran >= 1);
        }
    support_folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_contract)};
    return cmocka_run_group_tests_name("CUDA, contract", tests, NULL, NULL);
}

#endif
