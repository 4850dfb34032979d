/* label: long
 *
 * Checkpoints of runs, and going on from them.
 *
 * A checkpoint does not show by which plan it was made: the files of every policy, on one device and
 * two, spilled and resident, are the same byte for byte. And a run that goes on from any of them, by
 * any other plan, ends with the losses and weights of one that was never stopped. With random pauses
 * on every stream and NaN in all memory that was released, as in test_exec_run.c.
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
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/random.h"
#include "base/size.h"
#include "exec/run/run.h"
#include "planner/check/plan_check.h"
#include "planner/strategy/planner.h"
#include "tests/support/exec/support_stop.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_disk.h"
#include "tests/support/support_seed.h"

enum { JOBS = 2, STEPS = 5, EVERY = 2, LONG = 300, BLOCKS = 3, WIDTH = 32, VOCABULARY = 97, KEEP = 1000 };
static const uint64_t room = 64 << 20;

/* --- plans and runs ----------------------------------------------------------------------------- */

struct setting {
    const char *policy;
    uint32_t devices, shards;
    uint64_t device_bytes; /* 0: plenty */
    uint32_t activations;
    uint32_t storage;
};

/* All jobs spilled whole, in slices, resident, on two devices, and mixtures of these. */
static const struct setting settings[] = {
    {"spill-sequential", 1, 3, 0, ACTIVATIONS_RECOMPUTE, PLANNER_STORAGE_NONE},
    {"sharded-lrtf", 1, 4, 400000, PLANNER_AUTO, PLANNER_STORAGE_NONE},
    {"sharded-lrtf", 2, 4, 1200000, ACTIVATIONS_SPILL, PLANNER_STORAGE_NONE},
    {"sharded-lrtf-cached", 1, 3, 0, PLANNER_AUTO, PLANNER_STORAGE_NONE},
    {"sharded-lrtf-cached", 2, 4, 1200000, PLANNER_AUTO, PLANNER_STORAGE_NONE},
    {"model-parallel", 2, 2, 0, PLANNER_AUTO, PLANNER_STORAGE_NONE},
    {"shard-parallel", 2, 3, 0, ACTIVATIONS_KEEP, PLANNER_STORAGE_NONE},
    {"random", 2, 2, 1200000, ACTIVATIONS_SPILL_INPUTS, PLANNER_STORAGE_NONE},
    {"random", 2, 2, 0, PLANNER_AUTO, PLANNER_STORAGE_NONE},
    {"sharded-lrtf", 1, 4, 400000, PLANNER_AUTO, PLANNER_STORAGE_ALL},
    {"sharded-lrtf", 2, 4, 1200000, ACTIVATIONS_SPILL, PLANNER_STORAGE_ALL},
    {"model-parallel", 2, 2, 0, PLANNER_AUTO, PLANNER_STORAGE_ALL},
};

/* Both jobs clip, and are spilled where settings would have them stay. */
static bool clipped;
static bool rounded; /* weights of both are bf16, and moments of the first, which are AdamW's then */

/* first[j] minibatches of job j are done, of `steps` in all. Returns false if there is no such plan. */
static bool make_plan(const struct setting *setting, uint64_t steps, const uint64_t *first,
                      struct plan *plan)
{
    struct hardware hardware;
    struct job_set jobs;
    struct error err = {0};
    test_hardware(&hardware, setting->devices, setting->device_bytes ? setting->device_bytes : room,
                  10e9);
    hardware.backend = "host";
    hardware.threads = 1;
    hardware.storage.capacity_bytes.value = 1e9;
    hardware.storage.read_rate.value = hardware.storage.write_rate.value = 1e9;
    test_gpt_jobs(&jobs, JOBS, BLOCKS, WIDTH, VOCABULARY, steps);
    jobs.jobs[1].evaluation =
        (struct job_evaluation){.every = EVERY, .minibatches = 2, .data_format = DATA_NONE};
    jobs.jobs[1].keep_best = true;
    jobs.jobs[1].optimizer.learning_rate = 6; /* its losses go up and down */
    for (uint32_t i = 0; i < 3; i++) jobs.jobs[0].network.ignored[i] = 0.1 + 0.1 * i; /* its dropout */
    for (uint32_t j = 0; j < JOBS && clipped; j++) jobs.jobs[j].optimizer.clip = 0.6 + j;
    for (uint32_t j = 0; j < JOBS && rounded; j++) {
        jobs.jobs[j].precision = PRECISION_BF16_WEIGHTS;
        if (j > 0) continue;
        jobs.jobs[j].optimizer = (struct job_optimizer){.kind = OPTIMIZER_ADAMW,
                                                        .learning_rate = 1e-3,
                                                        .beta1 = 0.9,
                                                        .beta2 = 0.99,
                                                        .epsilon = 1e-8,
                                                        .moments = PRECISION_BF16};
    }
    for (uint32_t j = 0; j < JOBS && first; j++) {
        jobs.jobs[j].first_minibatch = first[j];
        jobs.jobs[j].minibatches = steps - first[j];
    }
    const bool another = clipped && strstr(setting->policy, "-parallel");
    const struct planner_options options = {
        .policy = another ? "srtf" : setting->policy,
        .seed = 5,
        .shards = setting->shards,
        .storage = setting->storage,
        .activations = another ? PLANNER_AUTO : setting->activations,
        .optimizer = clipped ? PLANNER_AUTO : PLANNER_PLACE_DEVICE};
    *plan = (struct plan){0};
    enum status status = planner_plan(&hardware, &jobs, &options, plan, &err);
    if (status == STATUS_OK) status = plan_check(plan, &err);
    if (status != STATUS_OK && status != STATUS_INFEASIBLE && status != STATUS_BAD_INPUT)
        fail_msg("%s", err.text);
    if (status != STATUS_OK) plan_release(plan);
    return status == STATUS_OK;
}

struct outcome {
    uint64_t minibatches[JOBS], checkpoints[JOBS], fingerprints[JOBS], skipped[JOBS];
    double losses[JOBS][LONG];
    uint64_t evaluation_count, best_step, kept_fingerprint; /* of job 1 */
    struct evaluation_progress evaluations[LONG];
    char failures[JOBS][512], checkpoint_failures[JOBS][512], unwritten[800];
    bool stopped;
    uint32_t failed;
};

/* Runs the plan and releases it. */
static enum status try_run(struct plan *plan, const struct run_options *options, struct outcome *out,
                           struct error *err)
{
    struct run_result result = {0};
    struct trace trace = {0};
    struct run_options stored = *options;
    stored.storage.folder = BINARY_DIR;
    const enum status status = run_plan(plan, &stored, &result, &trace, err);
    *out = (struct outcome){.stopped = result.stopped, .failed = result.failed};
    for (uint32_t j = 0; status == STATUS_OK && j < JOBS; j++) {
        const struct run_job_result *const job = &result.jobs[j];
        out->minibatches[j] = job->minibatches;
        out->checkpoints[j] = job->checkpoint;
        out->fingerprints[j] = job->weights_fingerprint;
        out->skipped[j] = job->skipped;
        memcpy(out->losses[j], job->losses, job->minibatches * sizeof(double));
        if (job->evaluation_count > 0) {
            assert_int_equal(j, 1);
            out->evaluation_count = job->evaluation_count;
            memcpy(out->evaluations, job->evaluations,
                   job->evaluation_count * sizeof *out->evaluations);
            out->kept_fingerprint = job->kept_fingerprint;
            if (job->best_evaluation != EVALUATION_NONE)
                out->best_step = job->evaluations[job->best_evaluation].step;
        }
        if (job->failure) snprintf(out->failures[j], 512, "%s", job->failure);
        if (job->checkpoint_failure)
            snprintf(out->checkpoint_failures[j], 512, "%s", job->checkpoint_failure);
    }
    snprintf(out->unwritten, sizeof out->unwritten, "%s", result.unwritten);
    trace_release(&trace);
    run_result_release(&result);
    plan_release(plan);
    return status;
}

static void run(struct plan *plan, const struct run_options *options, struct outcome *out)
{
    struct error err = {0};
    if (try_run(plan, options, out, &err) != STATUS_OK) fail_msg("%s", err.text);
}

static void run_untouched(uint64_t steps, struct outcome *out)
{
    struct plan plan;
    assert_true(make_plan(&settings[0], steps, NULL, &plan));
    run(&plan, &(struct run_options){.poison = true}, out);
}

static void assert_same(const struct outcome *a, const struct outcome *b, uint32_t job,
                        const char *what)
{
    assert_int_equal(a->minibatches[job], b->minibatches[job]);
    for (uint64_t i = 0; i < a->minibatches[job]; i++)
        if (memcmp(&a->losses[job][i], &b->losses[job][i], sizeof(double)) != 0)
            fail_msg("%s: job %u, minibatch %u: loss %.17g, not %.17g", what, job, (unsigned)i,
                     b->losses[job][i], a->losses[job][i]);
    if (a->fingerprints[job] != b->fingerprints[job]) fail_msg("%s: job %u: other weights", what, job);
    if (job != 1) return;
    assert_int_equal(a->evaluation_count, b->evaluation_count);
    assert_memory_equal(a->evaluations, b->evaluations,
                        a->evaluation_count * sizeof *a->evaluations);
    assert_int_equal(a->best_step, b->best_step);
    if (a->kept_fingerprint != b->kept_fingerprint) fail_msg("%s: other best weights", what);
}

/* --- folders -------------------------------------------------------------------------------------- */

/* In memory where that can be had: hundreds of syncs of a busy disk take minutes. */
static char in_memory[] = "/dev/shm/test-resume-XXXXXX", on_disk[] = "/tmp/test-resume-XXXXXX";
static char *top;

static void remove_folder(const char *path)
{
    char command[256];
    snprintf(command, sizeof command, "rm -rf '%s'", path);
    assert_int_equal(system(command), 0);
}

/* Copies as `cp -r`; `to` does not exist yet. */
static void copy_folder(const char *from, const char *to)
{
    char command[300];
    snprintf(command, sizeof command, "cp -r '%s' '%s'", from, to);
    assert_int_equal(system(command), 0);
}

static const char *folder_of(size_t number)
{
    static char paths[2][128];
    static uint32_t turn;
    char *const path = paths[turn++ % 2];
    snprintf(path, sizeof paths[0], "%s/%s%zu", top, clipped ? "clipped-" : rounded ? "rounded-" : "", number);
    return path;
}

static void assert_same_file(const char *a, const char *b, uint32_t job, uint64_t step)
{
    char path[256], *text[2];
    size_t length[2];
    struct error err = {0};
    const char *const folders[] = {a, b};
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/job-%u/step-%010llu.safetensors", folders[i], job,
                 (unsigned long long)step);
        if (file_read(path, 64 << 20, &text[i], &length[i], &err) != STATUS_OK)
            fail_msg("%s", err.text);
    }
    if (length[0] != length[1] || memcmp(text[0], text[1], length[0]) != 0)
        fail_msg("job %u, step %u: %s and %s differ", job, (unsigned)step, a, b);
    free(text[0]);
    free(text[1]);
}

/* --- every step, every plan ------------------------------------------------------------------------ */

/* Each setting takes a checkpoint after every minibatch. All files of a step are alike. */
static void test_checkpoints_do_not_show_the_plan(void **state)
{
    (void)state;
    struct outcome untouched, out;
    run_untouched(STEPS, &untouched);
    for (size_t i = 0; i < ARRAY_COUNT(settings); i++) {
        const struct run_checkpoints checkpoints = {
            .folder = folder_of(i), .every_steps = 1, .keep = KEEP, .each = true};
        const struct run_options options = {
            .poison = true, .delay_seed = 11 + i, .checkpoints = &checkpoints};
        struct plan plan;
        assert_true(make_plan(&settings[i], STEPS, NULL, &plan));
        run(&plan, &options, &out);
        for (uint32_t j = 0; j < JOBS; j++) {
            assert_same(&untouched, &out, j, settings[i].policy);
            assert_int_equal(out.checkpoints[j], STEPS);
            for (uint64_t step = 1; step <= STEPS; step++)
                assert_same_file(folder_of(0), folder_of(i), j, step);
        }
    }
}

/* Resumes from every step, by every plan; the two jobs are at different steps. */
static void test_resumed_is_untouched(void **state)
{
    (void)state;
    struct outcome untouched, out;
    run_untouched(STEPS, &untouched);
    uint32_t ran = 0;
    for (size_t i = 0; i < ARRAY_COUNT(settings); i++)
        for (uint64_t step = 1; step < STEPS; step++) {
            const uint64_t first[JOBS] = {step, 1 + (step + i) % (STEPS - 1)};
            const char *const copy = folder_of(60); /* a run removes checkpoints later than its own */
            const struct run_checkpoints checkpoints = {.folder = copy, .keep = KEEP};
            const struct run_options options = {
                .poison = true, .delay_seed = i == step ? 7 : 0, .checkpoints = &checkpoints};
            struct plan plan;
            char what[96];
            snprintf(what, sizeof what, "%s from %u and %u", settings[i].policy, (unsigned)first[0],
                     (unsigned)first[1]);
            copy_folder(folder_of((i + step) % ARRAY_COUNT(settings)), copy);
            assert_true(make_plan(&settings[i], STEPS, first, &plan));
            run(&plan, &options, &out);
            for (uint32_t j = 0; j < JOBS; j++) assert_same(&untouched, &out, j, what);
            remove_folder(copy);
            ran++;
        }
    print_message("%u resumed runs\n", ran);
    /* after steps 2, 4 and the last; the best is not the last one, so its weights have to be remembered */
    assert_int_equal(untouched.evaluation_count, 3);
    assert_in_range(untouched.best_step, 2, 4);
    assert_true(untouched.kept_fingerprint != untouched.fingerprints[1]);
}

/* Job 1 ends at once, so only the saver keeps job 0's next update from its state while it is copied. */
static void test_a_job_alone_outruns_no_copy(void **state)
{
    (void)state;
    const uint64_t first[JOBS] = {1, STEPS - 1};
    for (size_t i = 0; i < ARRAY_COUNT(settings); i++) {
        const char *const from = folder_of(0), *const to = folder_of(50 + i);
        copy_folder(from, to);
        const struct run_checkpoints checkpoints = {
            .folder = to, .every_steps = 1, .keep = KEEP, .each = true};
        const struct run_options options = {
            .poison = true, .delay_seed = 31 + i, .checkpoints = &checkpoints};
        struct plan plan;
        struct outcome out;
        assert_true(make_plan(&settings[i], STEPS, first, &plan));
        run(&plan, &options, &out);
        for (uint64_t step = 2; step <= STEPS; step++) assert_same_file(from, to, 0, step);
        remove_folder(to);
    }
}

/* --- while it runs ----------------------------------------------------------------------------------- */

/* Checks that the newest checkpoints and the best one are there, and nothing else. */
static void assert_kept(const char *folder, uint32_t job, const struct outcome *out, uint64_t keep)
{
    char path[256];
    uint32_t found = 0, best = 0;
    if (out->minibatches[job] == 0) return;
    for (uint64_t step = 1; step <= out->minibatches[job]; step++) {
        snprintf(path, sizeof path, "%s/job-%u/step-%010llu.safetensors", folder, job,
                 (unsigned long long)step);
        if (access(path, F_OK) != 0) continue;
        found++;
        best += job == 1 && step == out->best_step;
    }
    if (job == 1 && out->best_step > 0) assert_int_equal(best, 1);
    assert_in_range(found, 1, keep + (job == 1));
}

/* Stopped again and again, each time by another plan, with checkpoints every few steps that no step
 * waits for: the end is the same as in one run. */
static void test_stopped_many_times(void **state)
{
    (void)state;
    const uint64_t seed = support_seed(__func__);
    struct outcome untouched, out;
    run_untouched(LONG, &untouched);
    const struct run_checkpoints checkpoints = {
        .folder = folder_of(100), .every_steps = 7, .keep = 2};
    uint64_t first[JOBS] = {0};
    uint32_t runs = 0;
    /* a job that is done would be left out of the next plan, which is not this test's matter */
    for (; first[0] < LONG && first[1] < LONG; runs++) {
        const struct setting *const setting = &settings[runs % ARRAY_COUNT(settings)];
        const struct run_options options = {.poison = true,
                                            .delay_seed = runs % 2 ? seed + runs : 0,
                                            .checkpoints = &checkpoints,
                                            .stop = &support_stop};
        struct plan plan;
        assert_true(make_plan(setting, LONG, first, &plan));
        support_stop_after(runs > 30 ? 999999 : 30000 + (long)random_below(seed, runs, 120000));
        run(&plan, &options, &out);
        for (uint32_t j = 0; j < JOBS; j++) {
            assert_int_equal(out.checkpoints[j], out.minibatches[j]);
            assert_kept(folder_of(100), j, &out, 2);
            first[j] = out.minibatches[j];
        }
    }
    support_stop_after(0);
    for (uint32_t j = 0; j < JOBS; j++) {
        print_message("job %u: %u minibatches in %u runs\n", j, (unsigned)out.minibatches[j], runs);
        for (uint64_t i = 0; i < out.minibatches[j]; i++)
            assert_memory_equal(&out.losses[j][i], &untouched.losses[j][i], sizeof(double));
        if (out.minibatches[j] == LONG) assert_same(&untouched, &out, j, "stopped many times");
    }
}

/* --- disks that fail --------------------------------------------------------------------------------- */

static void on_note(void *context, const char *text)
{
    snprintf(context, 512, "%s", text);
}

/* The disk is full from some call on: training goes on, and both jobs report that they have no more checkpoints. */
static void test_a_full_disk(void **state)
{
    (void)state;
    struct outcome untouched, out;
    run_untouched(STEPS, &untouched);
    for (uint64_t at = 1; at < 700; at += 97) {
        struct support_disk disk;
        char note[512] = "";
        support_disk_init(&disk);
        disk.fault = FAULT_FULL;
        disk.at = at;
        const struct run_checkpoints checkpoints = {.folder = SUPPORT_DISK_TOP "/kept",
                                                    .every_steps = 1,
                                                    .keep = 2,
                                                    .disk = &disk.disk,
                                                    .each = true};
        const struct run_options options = {.poison = true,
                                            .checkpoints = &checkpoints,
                                            .on_note = on_note,
                                            .context = note};
        struct plan plan;
        assert_true(make_plan(&settings[at % 3], STEPS, NULL, &plan));
        run(&plan, &options, &out);
        assert_int_equal(out.failed, 0); /* what they trained is whole */
        assert_non_null(strstr(out.unwritten, "no last checkpoint of 2 of 2 jobs, the first of them '"));
        assert_non_null(strstr(out.unwritten, "No space left"));
        for (uint32_t j = 0; j < JOBS; j++) {
            assert_same(&untouched, &out, j, "on a full disk");
            assert_non_null(strstr(out.checkpoint_failures[j], "No space left"));
            assert_true(out.checkpoints[j] < STEPS);
        }
        assert_non_null(strstr(note, "goes on without checkpoints"));
        assert_int_equal(support_disk_count(&disk, ".tmp"), 0);
        support_disk_release(&disk);
    }
}

/* --- jobs that fail ----------------------------------------------------------------------------------- */

/* One job's loss is not finite: it ends without a checkpoint of that; the other is not affected. */
static void test_a_loss_that_is_not_finite(void **state)
{
    (void)state;
    struct outcome untouched, out;
    run_untouched(20, &untouched);
    for (size_t i = 0; i < ARRAY_COUNT(settings); i++) {
        const char *const folder = folder_of(200 + i);
        const struct run_checkpoints checkpoints = {
            .folder = folder, .every_steps = 1, .keep = KEEP, .each = true};
        const struct run_options options = {.poison = true,
                                            .delay_seed = i % 2 ? 5 : 0,
                                            .checkpoints = &checkpoints,
                                            .on_nan = RUN_NAN_STOP};
        struct plan plan;
        assert_true(make_plan(&settings[i], 20, NULL, &plan));
        plan.jobs.jobs[1].optimizer.learning_rate = 1e30;
        run(&plan, &options, &out);
        assert_same(&untouched, &out, 0, "beside a job that diverges");
        assert_false(out.stopped);
        assert_int_equal(out.failed, 1);
        assert_non_null(strstr(out.failures[1], "the loss of minibatch"));
        const uint64_t done = out.minibatches[1], kept = out.checkpoints[1];
        assert_in_range(done, 2, 20);
        assert_true(kept < done);
        for (uint64_t m = 0; m < kept; m++) assert_true(isfinite(out.losses[1][m]));
        for (uint64_t m = 0; m < done; m++) assert_true(!isfinite(out.losses[1][m]) == (m + 1 == done));
        remove_folder(folder);
        /* its weights, and all that steps remember, are the same as in a run that ends one minibatch sooner */
        struct outcome sooner;
        char text[80];
        snprintf(text, sizeof text, "is not finite; it keeps its weights after minibatch %llu",
                 (unsigned long long)done - 1);
        assert_non_null(strstr(out.failures[1], text));
        assert_true(make_plan(&settings[i], done - 1, NULL, &plan));
        plan.jobs.jobs[1].optimizer.learning_rate = 1e30;
        run(&plan, &(struct run_options){.poison = true}, &sooner);
        assert_int_equal(out.fingerprints[1], sooner.fingerprints[1]);
    }
}

/* Every step after the one that ruins the weights is skipped: weights equal those of a run that ends there. */
static void test_steps_left_out(void **state)
{
    (void)state;
    clipped = true;
    for (size_t i = 0; i < ARRAY_COUNT(settings); i++) {
        struct run_options options = {
            .poison = true, .delay_seed = i % 2 ? 5 : 0, .on_nan = RUN_NAN_SKIP};
        struct outcome out, ruined;
        struct plan plan;
        struct error err = {0};
        if (!make_plan(&settings[i], 8, NULL, &plan)) continue;
        plan.jobs.jobs[1].optimizer.learning_rate = 1e30;
        run(&plan, &options, &out);
        assert_int_equal(out.failed, 0);
        assert_int_equal(out.minibatches[1], 8);
        assert_int_equal(out.skipped[0], 0);
        assert_in_range(out.skipped[1], 1, 7);
        const uint64_t steps = 8 - out.skipped[1];
        for (uint64_t m = 0; m < 8; m++)
            if (m < steps) assert_true(isfinite(out.losses[1][m]));
        assert_true(make_plan(&settings[i], steps, NULL, &plan));
        plan.jobs.jobs[1].optimizer.learning_rate = 1e30;
        options.on_nan = RUN_NAN_CONTINUE;
        run(&plan, &options, &ruined);
        assert_int_equal(out.fingerprints[1], ruined.fingerprints[1]);
        if (i > 0) continue;
        clipped = false;
        options.on_nan = RUN_NAN_SKIP;
        assert_true(make_plan(&settings[i], 8, NULL, &plan));
        assert_int_equal(try_run(&plan, &options, &out, &err), STATUS_BAD_INPUT);
        assert_non_null(strstr(err.text, "expected \"clip\" in its optimizer"));
        clipped = true;
    }
    clipped = false;
}

static void test_keep_going_without_data(void **state)
{
    (void)state;
    struct outcome untouched, out;
    struct error err = {0};
    struct plan plan;
    run_untouched(STEPS, &untouched);
    for (int keep_going = 0; keep_going < 2; keep_going++) {
        const struct run_options options = {.poison = true, .keep_going = keep_going};
        assert_true(make_plan(&settings[2], STEPS, NULL, &plan));
        plan.jobs.jobs[1].data_format = DATA_TEXT;
        plan.jobs.jobs[1].data = "/nonexistent/corpus.txt";
        const enum status status = try_run(&plan, &options, &out, &err);
        if (!keep_going) {
            assert_int_equal(status, STATUS_BAD_INPUT);
            continue;
        }
        assert_int_equal(status, STATUS_OK);
        assert_same(&untouched, &out, 0, "beside a job without data");
        assert_int_equal(out.minibatches[1], 0);
        assert_int_equal(out.failed, 1);
        assert_non_null(strstr(out.failures[1], "corpus.txt"));
    }
}

struct shortening {
    const char *path;
    double after;
};

static void shorten(void *context, double done, double total, uint32_t job, double loss)
{
    (void)job;
    (void)loss;
    const struct shortening *const shortening = context;
    if (done > shortening->after * total) assert_int_equal(truncate(shortening->path, 10), 0);
}

/* A file that is shortened during a run ends that job, or all jobs; either way each job keeps a
 * checkpoint of the steps it completed. */
static void test_data_that_vanish(void **state)
{
    (void)state;
    struct outcome untouched, out;
    struct error err = {0};
    char path[128], text[1000];
    run_untouched(LONG, &untouched);
    snprintf(path, sizeof path, "%s/corpus.txt", top);
    for (size_t i = 0; i < sizeof text; i++) text[i] = (char)('!' + i % 60);
    for (int keep_going = 0; keep_going < 2; keep_going++) {
        FILE *const file = fopen(path, "we");
        assert_non_null(file);
        assert_int_equal(fwrite(text, 1, sizeof text, file), sizeof text);
        assert_int_equal(fclose(file), 0);
        struct shortening shortening = {path, 0.2};
        struct run_checkpoints checkpoints = {.folder = folder_of(300 + (size_t)keep_going),
                                              .keep = 1};
        const struct run_options options = {.poison = true,
                                            .keep_going = keep_going,
                                            .checkpoints = &checkpoints,
                                            .on_progress = shorten,
                                            .context = &shortening};
        struct plan plan;
        assert_true(make_plan(&settings[1], LONG, NULL, &plan));
        plan.jobs.jobs[1].data_format = DATA_TEXT;
        plan.jobs.jobs[1].data = path;
        const enum status status = try_run(&plan, &options, &out, &err);
        struct stat about;
        char first_job[160];
        snprintf(first_job, sizeof first_job, "%s/job-0", checkpoints.folder);
        assert_int_equal(stat(first_job, &about), 0);
        if (!keep_going) {
            assert_int_equal(status, STATUS_IO);
            assert_non_null(strstr(err.text, "has become shorter"));
            continue;
        }
        assert_int_equal(status, STATUS_OK);
        assert_same(&untouched, &out, 0, "beside a job whose data vanish");
        assert_non_null(strstr(out.failures[1], "has become shorter"));
        assert_true(out.minibatches[1] < LONG && out.checkpoints[1] == out.minibatches[1]);
    }
    unlink(path);
}

/* --- refused inputs ------------------------------------------------------------------------------------- */

static void check_refused(struct plan *plan, const char *folder, enum status expected,
                          const char *first, const char *second)
{
    struct error err = {0};
    struct outcome out;
    const struct run_checkpoints checkpoints = {.folder = folder, .keep = 1};
    const struct run_options options = {.checkpoints = folder ? &checkpoints : NULL};
    assert_int_equal(try_run(plan, &options, &out, &err), expected);
    print_message("%s\n", err.text);
    assert_non_null(strstr(err.text, first));
    assert_non_null(strstr(err.text, second));
}

static void test_refusals(void **state)
{
    (void)state;
    struct plan plan;
    const uint64_t first[JOBS] = {2, 2};
    assert_true(make_plan(&settings[0], STEPS, NULL, &plan)); /* from the start, although checkpoints exist */
    check_refused(&plan, folder_of(0), STATUS_BAD_INPUT, "job-0", "--resume");
    assert_true(make_plan(&settings[0], STEPS, first, &plan)); /* from nowhere */
    check_refused(&plan, NULL, STATUS_BAD_INPUT, "job-0", "no folder of checkpoints");
    assert_true(make_plan(&settings[0], STEPS, first, &plan)); /* from where there is nothing */
    check_refused(&plan, folder_of(999), STATUS_IO, "step-0000000002", "No such file");
    assert_true(make_plan(&settings[0], STEPS, first, &plan)); /* another training */
    plan.jobs.jobs[1].seed = 12345;
    check_refused(&plan, folder_of(0), STATUS_BAD_INPUT, "another training", "expected 12345");
}

static int make_top(void **state)
{
    (void)state;
    top = mkdtemp(in_memory);
    if (!top) top = mkdtemp(on_disk);
    return top ? 0 : -1;
}

/* Does the same for jobs that clip, whose minibatches end with updates. */
static void test_clipped(void **state)
{
    struct outcome before, after;
    run_untouched(STEPS, &before);
    clipped = true;
    run_untouched(STEPS, &after);
    for (uint32_t j = 0; j < JOBS; j++) assert_true(before.fingerprints[j] != after.fingerprints[j]);
    test_checkpoints_do_not_show_the_plan(state);
    test_resumed_is_untouched(state);
    test_a_job_alone_outruns_no_copy(state);
    test_stopped_many_times(state);
    test_a_loss_that_is_not_finite(state);
    clipped = false;
}

/* Does the same with weights and moments in bf16: stochastic rounding does not depend on where a run resumes. */
static void test_rounded(void **state)
{
    struct outcome before, after;
    run_untouched(STEPS, &before);
    rounded = true;
    run_untouched(STEPS, &after);
    for (uint32_t j = 0; j < JOBS; j++) assert_true(before.fingerprints[j] != after.fingerprints[j]);
    test_checkpoints_do_not_show_the_plan(state);
    test_resumed_is_untouched(state);
    rounded = false;
}

static int remove_top(void **state)
{
    (void)state;
    remove_folder(top);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_checkpoints_do_not_show_the_plan),
        cmocka_unit_test(test_resumed_is_untouched),
        cmocka_unit_test(test_a_job_alone_outruns_no_copy),
        cmocka_unit_test(test_stopped_many_times),
        cmocka_unit_test(test_a_full_disk),
        cmocka_unit_test(test_a_loss_that_is_not_finite),
        cmocka_unit_test(test_steps_left_out),
        cmocka_unit_test(test_keep_going_without_data),
        cmocka_unit_test(test_clipped), cmocka_unit_test(test_rounded),
        cmocka_unit_test(test_data_that_vanish),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests_name("resume", tests, make_top, remove_top);
}
