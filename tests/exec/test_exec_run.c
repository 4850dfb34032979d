/* label: medium
 * exec/run/run.h: a plan changes when and where, never what.
 *
 * Every plan of a job must give the same losses and the same final weights, bit by bit: resident or
 * spilled, in few or many shards, its embedding whole or in slices, on one device or two, with or
 * without double buffering, with activations kept, spilled or recomputed - and with random pauses
 * on every stream and NaN in all memory that was released, which is how a missing wait shows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json_in.h"
#include "base/size.h"
#include "exec/run/run.h"
#include "planner/check/plan_check.h"
#include "planner/strategy/planner.h"
#include "tests/support/exec/support_stop.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_folder.h"

enum { BLOCKS = 3, WIDTH = 32, VOCABULARY = 97, MINIBATCHES = 3, ROOM = 64 << 20 };

/* --- making and running plans ----------------------------------------------------------------- */

struct setting {
    const char *policy;
    uint32_t devices, jobs, shards, minibatches, threads;
    uint64_t device_bytes; /* 0: plenty */
    bool no_double_buffer;
    uint32_t activations;  /* enum plan_activations, or PLANNER_AUTO */
    double link_bytes_per_s; /* paced; 0: not */
    double learning_rate;    /* 0: as the jobs have it */
    bool stored;             /* all states are on storage */
    double clip;             /* of the last job; 0: it does not */
};

/* Returns an error if there is no such plan. */
static enum status make_plan(const struct setting *setting, struct plan *plan)
{
    struct hardware hardware;
    struct job_set jobs;
    struct error err = {0};
    test_hardware(&hardware, setting->devices ? setting->devices : 1,
                  setting->device_bytes ? setting->device_bytes : ROOM,
                  setting->link_bytes_per_s > 0 ? setting->link_bytes_per_s : 10e9);
    hardware.backend = "host";
    hardware.threads = setting->threads ? setting->threads : 1;
    hardware.storage.capacity_bytes.value = 1e9;
    hardware.storage.read_rate.value = hardware.storage.write_rate.value = 1e9;
    for (uint32_t l = 0; l < hardware.link_count; l++)
        hardware.links[l].paced = setting->link_bytes_per_s > 0;
    test_gpt_jobs(&jobs, setting->jobs ? setting->jobs : 1, BLOCKS, WIDTH, VOCABULARY,
                  setting->minibatches ? setting->minibatches : MINIBATCHES);
    for (uint32_t j = 0; j < jobs.count; j++) {
        /* stopped runs are compared with shorter ones: a schedule would tell them apart */
        jobs.jobs[j].optimizer.schedule = (struct rate_schedule){.kind = RATE_CONSTANT};
        if (setting->learning_rate > 0)
            jobs.jobs[j].optimizer.learning_rate = setting->learning_rate;
    }
    jobs.jobs[jobs.count - 1].optimizer.clip = setting->clip;
    const struct planner_options options = {
        .policy = setting->policy,
        .seed = 5,
        .optimizer = setting->clip > 0 ? PLANNER_AUTO : PLANNER_PLACE_DEVICE,
        .shards = setting->shards,
        .no_double_buffer = setting->no_double_buffer,
        .activations = setting->activations,
        .storage = setting->stored ? PLANNER_STORAGE_ALL : PLANNER_STORAGE_NONE,
    };
    *plan = (struct plan){0};
    enum status status = planner_plan(&hardware, &jobs, &options, plan, &err);
    if (status == STATUS_OK) status = plan_check(plan, &err);
    /* what does not fit, and what a policy cannot do */
    if (status != STATUS_OK && status != STATUS_INFEASIBLE && status != STATUS_BAD_INPUT)
        fail_msg("%s", err.text);
    return status;
}

struct outcome {
    uint32_t jobs;
    uint64_t minibatches[4];
    double losses[4][256];
    uint64_t fingerprints[4];
    bool stopped;
};

static void keep_outcome(const struct plan *plan, const struct run_result *result,
                         struct outcome *out)
{
    *out = (struct outcome){.jobs = plan->jobs.count, .stopped = result->stopped};
    for (uint32_t j = 0; j < out->jobs; j++) {
        out->minibatches[j] = result->jobs[j].minibatches;
        out->fingerprints[j] = result->jobs[j].weights_fingerprint;
        memcpy(out->losses[j], result->jobs[j].losses,
               result->jobs[j].minibatches * sizeof(double));
    }
}

static void run(const struct plan *plan, const struct run_options *options, struct outcome *out)
{
    struct run_result result = {0};
    struct trace trace = {0};
    struct error err = {0};
    struct run_options stored = *options;
    stored.storage.folder = BINARY_DIR;
    if (run_plan(plan, &stored, &result, &trace, &err) != STATUS_OK) fail_msg("%s", err.text);
    if (trace_check(&trace, &err) != STATUS_OK) fail_msg("%s", err.text);
    if (options->record_spans && !result.stopped)
        assert_int_equal(trace.span_count, plan_operations(plan));
    keep_outcome(plan, &result, out);
    trace_release(&trace);
    run_result_release(&result);
}

/* Checks that the first `minibatches` losses of both have the same bits; the weights too if they end there. */
static void assert_same(const struct outcome *a, const struct outcome *b, const char *what)
{
    assert_int_equal(a->jobs, b->jobs);
    for (uint32_t j = 0; j < a->jobs; j++) {
        const uint64_t common =
            a->minibatches[j] < b->minibatches[j] ? a->minibatches[j] : b->minibatches[j];
        for (uint64_t i = 0; i < common; i++)
            if (memcmp(&a->losses[j][i], &b->losses[j][i], sizeof(double)) != 0)
                fail_msg("%s: job %u, minibatch %u: loss %.17g, not %.17g", what, j, (unsigned)i,
                         b->losses[j][i], a->losses[j][i]);
        if (a->minibatches[j] == b->minibatches[j] && a->fingerprints[j] != b->fingerprints[j])
            fail_msg("%s: job %u: other weights", what, j);
    }
}

static void run_reference(uint32_t jobs, uint32_t minibatches, struct outcome *out)
{
    const struct setting setting = {.policy = "spill-sequential",
                                    .jobs = jobs,
                                    .minibatches = minibatches,
                                    .activations = ACTIVATIONS_RECOMPUTE};
    const struct run_options options = {.record_spans = true};
    struct plan plan;
    assert_int_equal(make_plan(&setting, &plan), STATUS_OK);
    run(&plan, &options, out);
    plan_release(&plan);
}

/* --- one result ------------------------------------------------------------------------------- */

static void test_it_learns(void **state)
{
    (void)state;
    struct outcome out;
    run_reference(2, 60, &out);
    for (uint32_t j = 0; j < 2; j++) {
        assert_int_equal(out.minibatches[j], 60);
        /* Random tokens out of 97: the loss begins at ln 97 = 4.57 and falls a little. */
        assert_true(fabs(out.losses[j][0] - log(VOCABULARY)) < 0.1);
    }
    assert_true(out.fingerprints[0] != out.fingerprints[1]);
}

static void test_every_plan_gives_the_same_bits(void **state)
{
    (void)state;
    static const char *const policies[] = {"spill-sequential", "sharded-lrtf",
                                           "sharded-lrtf-cached", "random", "model-parallel",
                                           "shard-parallel"};
    /* 400 kB cannot hold an embedding of (97 + 32) rows with its moments and gradient in addition to the rest. */
    static const uint64_t memories[] = {0, 1200000, 400000};
    struct outcome reference, out;
    run_reference(3, MINIBATCHES, &reference);
    uint32_t ran = 0;
    for (size_t p = 0; p < ARRAY_COUNT(policies); p++)
        for (size_t m = 0; m < ARRAY_COUNT(memories); m++)
            for (uint32_t variant = 0; variant < 4 * ACTIVATIONS_COUNT; variant++) {
                const struct setting setting = {
                    .policy = policies[p],
                    .jobs = 3,
                    .devices = 1 + variant % 2,
                    .device_bytes = memories[m],
                    .no_double_buffer = variant / 2 % 2,
                    .activations = variant / 4,
                    .shards = variant % 4 + 2,
                };
                struct plan plan;
                if (make_plan(&setting, &plan) == STATUS_OK) {
                    char what[160];
                    snprintf(what, sizeof what, "%s on %u devices of %llu bytes, variant %u",
                             setting.policy, setting.devices,
                             (unsigned long long)setting.device_bytes, variant);
                    const bool hard = variant == p;     /* pauses cost time */
                    const struct run_options options = {
                        .record_spans = true,
                        .poison = true,
                        .delay_seed = hard ? 1000 * (p + 1) + variant : 0,
                    };
                    run(&plan, &options, &out);
                    assert_same(&reference, &out, what);
                    ran++;
                }
                plan_release(&plan);
            }
    print_message("%u plans, all alike\n", ran);
    assert_true(ran > 60);
}

/* --- stopping --------------------------------------------------------------------------------- */

/* Asks for a stop at a share of the work, since seconds differ between machines. */
static void stop_at_share(void *context, double done_s, double total_s, uint32_t job, double loss)
{
    (void)job, (void)loss;
    if (done_s >= *(const double *)context * total_s) support_stop = true;
}

/* Stop in the middle: the completed steps and the weights are the same as in a run that was shorter from
 * the start, wherever the state lay. */
static void check_stop(const struct setting *setting, double share)
{
    struct plan plan;
    assert_int_equal(make_plan(setting, &plan), STATUS_OK);
    const struct run_options options = {
        .record_spans = true, .poison = true, .delay_seed = 3, .stop = &support_stop, .on_progress = stop_at_share,
        .context = &share};
    struct outcome stopped, reference;
    support_stop = false;
    run(&plan, &options, &stopped);
    plan_release(&plan);
    assert_true(stopped.stopped);
    for (uint32_t j = 0; j < setting->jobs; j++) {
        const uint64_t completed = stopped.minibatches[j];
        print_message("%s: job %u stopped after %u minibatches\n", setting->policy, j,
                      (unsigned)completed);
        assert_true(completed < setting->minibatches);
        if (completed == 0) continue;
        run_reference(setting->jobs, (uint32_t)completed, &reference);
        for (uint64_t i = 0; i < completed; i++)
            assert_memory_equal(&reference.losses[j][i], &stopped.losses[j][i], sizeof(double));
        assert_int_equal(reference.fingerprints[j], stopped.fingerprints[j]);
    }
}

static void test_stop(void **state)
{
    (void)state;
    static const struct setting settings[] = {
        {.policy = "spill-sequential", .jobs = 1, .minibatches = 120, .shards = 3},
        {.policy = "sharded-lrtf", .jobs = 3, .devices = 2, .minibatches = 120, .shards = 4,
         .device_bytes = 400000},
        {.policy = "sharded-lrtf-cached", .jobs = 2, .minibatches = 120, .shards = 3},
        {.policy = "shard-parallel", .jobs = 2, .devices = 2, .minibatches = 120, .shards = 2,
         .activations = ACTIVATIONS_KEEP},
        {.policy = "model-parallel", .jobs = 1, .devices = 2, .minibatches = 120, .shards = 2},
        {.policy = "sharded-lrtf", .jobs = 3, .devices = 2, .minibatches = 120, .shards = 4,
         .device_bytes = 400000, .stored = true},
        {.policy = "shard-parallel", .jobs = 2, .devices = 2, .minibatches = 120, .shards = 2,
         .stored = true},
    };
    for (size_t i = 0; i < ARRAY_COUNT(settings); i++)
        check_stop(&settings[i], 0.1 + 0.08 * (double)i);
}

static void test_stop_before_the_first_minibatch(void **state)
{
    (void)state;
    const struct setting setting = {.policy = "sharded-lrtf", .jobs = 2, .shards = 3};
    struct plan plan;
    assert_int_equal(make_plan(&setting, &plan), STATUS_OK);
    support_stop = true;
    const struct run_options options = {.record_spans = true, .stop = &support_stop};
    struct outcome out;
    run(&plan, &options, &out);
    assert_true(out.stopped);
    for (uint32_t j = 0; j < 2; j++) assert_int_equal(out.minibatches[j], 0);
    plan_release(&plan);
}

/* --- files ------------------------------------------------------------------------------------ */

/* Checks a log: a head, a line for each minibatch of each job, an end. Only job 1 clips. */
static void check_log(const char *path, const struct run_result *result, double clip)
{
    char *text;
    size_t length;
    struct error err = {0};
    assert_int_equal(file_read(path, 1 << 20, &text, &length, &err), STATUS_OK);
    uint32_t lines = 0, steps[2] = {0, 0};
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), lines++) {
        struct json_input *in;
        assert_int_equal(json_input_parse("line", line, strlen(line), &in, &err), STATUS_OK);
        const json_t *root = json_input_root(in);
        if (lines == 0) {
            assert_int_equal(json_integer_value(json_object_get(root, "spillway_log")), 1);
        } else if (json_object_get(root, "job")) {
            const char *name = json_string_value(json_object_get(root, "job"));
            const uint32_t j = name[strlen(name) - 1] == '1';
            const double loss = json_number_value(json_object_get(root, "loss"));
            assert_true(loss == result->jobs[j].losses[steps[j]]);
            assert_int_equal(json_integer_value(json_object_get(root, "step")), ++steps[j]);
            assert_true(json_number_value(json_object_get(root, "tokens_per_s")) > 0);
            /* of a job that clips, the norm before that */
            const json_t *const norm = json_object_get(root, "norm");
            assert_int_equal(norm != NULL, j);
            if (norm) assert_true(json_number_value(norm) > clip);
        } else {
            assert_string_equal(json_string_value(json_object_get(root, "end")), "complete");
        }
        json_input_destroy(in);
    }
    assert_int_equal(lines, 2 + 2 * MINIBATCHES);
    free(text);
}

static void test_log_and_weights(void **state)
{
    (void)state;
    char folder[SUPPORT_FOLDER_BYTES], log[64], weights[64];
    support_folder_make(folder);
    snprintf(log, sizeof log, "%s/log.jsonl", folder);
    snprintf(weights, sizeof weights, "%s/weights.safetensors", folder);
    const struct setting setting = {
        .policy = "sharded-lrtf", .jobs = 2, .shards = 3, .clip = 0.25};
    struct plan plan;
    assert_int_equal(make_plan(&setting, &plan), STATUS_OK);
    plan.jobs.jobs[1].weights_out = weights;
    const struct run_options options = {.log_path = log, .save_weights = true};
    struct run_result result = {0};
    struct trace trace = {0};
    struct error err = {0};
    if (run_plan(&plan, &options, &result, &trace, &err) != STATUS_OK) fail_msg("%s", err.text);
    assert_null(result.jobs[0].weights_path);
    assert_string_equal(result.jobs[1].weights_path, weights);
    assert_int_equal(access(weights, R_OK), 0);
    assert_true(trace.complete && trace.span_count == 0 && trace.makespan_s > 0);
    assert_true(trace.jobs[0].has_loss && trace.jobs[0].minibatches == MINIBATCHES);

    check_log(log, &result, setting.clip);
    trace_release(&trace);
    run_result_release(&result);

    /* A job that starts from these weights has them. */
    plan.jobs.jobs[0].weights_in = weights;
    plan.jobs.jobs[0].optimizer.learning_rate = 0;
    plan.jobs.jobs[1].weights_out = NULL;
    const struct run_options plain = {.save_weights = true};
    struct run_result again = {0};
    if (run_plan(&plan, &plain, &again, &trace, &err) != STATUS_OK) fail_msg("%s", err.text);
    assert_int_equal(again.jobs[0].weights_fingerprint, again.jobs[1].weights_fingerprint);
    trace_release(&trace);
    run_result_release(&again);
    plan_release(&plan);
    unlink(weights);
    unlink(log);
    support_folder_remove(folder);
}

static void test_losses_that_are_not_finite(void **state)
{
    (void)state;
    char log[] = "/tmp/test-run-XXXXXX";
    const int file = mkstemp(log);
    assert_true(file >= 0);
    close(file);
    const struct setting setting = {.policy = "sharded-lrtf", .shards = 3, .learning_rate = 1e30};
    struct plan plan;
    assert_int_equal(make_plan(&setting, &plan), STATUS_OK);
    const struct run_options options = {.log_path = log};
    struct run_result result = {0};
    struct trace trace = {0};
    struct error err = {0};
    if (run_plan(&plan, &options, &result, &trace, &err) != STATUS_OK) fail_msg("%s", err.text);
    assert_false(result.stopped);
    assert_int_equal(result.jobs[0].minibatches, MINIBATCHES);
    assert_true(result.jobs[0].nonfinite > 0);
    assert_false(trace.jobs[0].has_loss);
    char *text;
    size_t length;
    assert_int_equal(file_read(log, 1 << 20, &text, &length, &err), STATUS_OK);
    assert_non_null(strstr(text, "\"loss\": null, \"nonfinite\": true"));
    free(text);
    unlink(log);
    trace_release(&trace);
    run_result_release(&result);
    plan_release(&plan);
}

/* --- what goes wrong -------------------------------------------------------------------------- */

static void check_refused(const struct plan *plan, const struct run_options *options,
                          enum status expected, const char *first, const char *second)
{
    struct run_result result = {0};
    struct trace trace = {0};
    struct error err = {0};
    assert_int_equal(run_plan(plan, options, &result, &trace, &err), expected);
    print_message("%s\n", err.text);
    assert_non_null(strstr(err.text, first));
    assert_non_null(strstr(err.text, second));
    trace_release(&trace);
    run_result_release(&result);
}

static void test_refusals(void **state)
{
    (void)state;
    const struct run_options options = {.save_weights = true};
    const struct setting setting = {.policy = "sharded-lrtf", .shards = 3};
    struct plan plan;
    assert_int_equal(make_plan(&setting, &plan), STATUS_OK);
    plan.hardware.backend = "abacus";
    check_refused(&plan, &options, STATUS_DEVICE, "'abacus'", "built with host");
    plan.hardware.backend = "host";

    plan.jobs.jobs[0].weights_out = "/nonexistent/weights.safetensors";
    check_refused(&plan, &options, STATUS_BAD_INPUT, "job-0", "/nonexistent");
    plan.jobs.jobs[0].weights_out = NULL;

    plan.jobs.jobs[0].weights_in = "/nonexistent/weights.safetensors";
    check_refused(&plan, &options, STATUS_BAD_INPUT, "weights.safetensors", "No such file");
    plan.jobs.jobs[0].weights_in = NULL;

    const struct run_options no_log = {.log_path = "/nonexistent/log"};
    check_refused(&plan, &no_log, STATUS_BAD_INPUT, "log", "/nonexistent");

    plan.jobs.jobs[0].data_format = DATA_TEXT;
    plan.jobs.jobs[0].data = "/nonexistent/corpus.txt";
    check_refused(&plan, &options, STATUS_BAD_INPUT, "job-0", "corpus.txt");
    plan_release(&plan);
}

/* 16 TiB of host buffers are more than this machine has; the message says how much of both. */
static void test_no_memory(void **state)
{
    (void)state;
    const struct run_options options = {.save_weights = false};
    const struct setting setting = {.policy = "sharded-lrtf", .shards = 3};
    struct plan plan;
    assert_int_equal(make_plan(&setting, &plan), STATUS_OK);
    for (uint32_t b = 0; b < plan.buffer_count; b++)
        if (!plan.buffers[b].on_device && plan.buffers[b].kind == BUFFER_STATE) {
            plan.buffers[b].bytes = UINT64_C(1) << 44;
            break;
        }
    check_refused(&plan, &options, STATUS_NO_MEMORY, "needs 16", "available");
    plan_release(&plan);
}

/* A link of 2 kB/s needs minutes for a copy of this model: no operation ends, which is reported. */
static void test_a_stall_is_reported(void **state)
{
    (void)state;
    const struct setting setting = {
        .policy = "sharded-lrtf", .shards = 3, .link_bytes_per_s = 2e3};
    struct plan plan;
    assert_int_equal(make_plan(&setting, &plan), STATUS_OK);
    const struct run_options options = {.stall_s = 0.3};
    check_refused(&plan, &options, STATUS_DEVICE, "does not end", "waits for");
    plan_release(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_learns),
        cmocka_unit_test(test_every_plan_gives_the_same_bits),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_stop_before_the_first_minibatch),
        cmocka_unit_test(test_log_and_weights),
        cmocka_unit_test(test_losses_that_are_not_finite),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_a_stall_is_reported),
    };
    return cmocka_run_group_tests_name("run", tests, NULL, NULL);
}
