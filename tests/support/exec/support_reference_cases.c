/* Cases that are compared with the reference, and what all tests of such jobs do with them. */
#include "tests/support/exec/support_reference_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/process/clock.h"
#include "base/random.h"
#include "models/job/evaluation.h"
#include "planner/check/plan_check.h"
#include "planner/strategy/planner.h"
#include "tests/support/exec/support_stop.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_folder.h"

const char *const reference_configs[REFERENCE_CONFIGS] = {
    "{\"model_type\": \"gpt2\", \"n_layer\": 6, \"n_embd\": 16, \"n_head\": 2, \"n_positions\": 16, "
    "\"vocab_size\": 67, \"tie_word_embeddings\": false}",
    "{\"model_type\": \"llama\", \"num_hidden_layers\": 6, \"hidden_size\": 16, \"num_attention_heads\": 4, "
    "\"num_key_value_heads\": 2, \"intermediate_size\": 24, \"max_position_embeddings\": 16, \"vocab_size\": 67, "
    "\"tie_word_embeddings\": false}",
    "{\"model_type\": \"bert\", \"num_hidden_layers\": 6, \"hidden_size\": 16, \"num_attention_heads\": 2, "
    "\"intermediate_size\": 24, \"max_position_embeddings\": 16, \"vocab_size\": 67, \"type_vocab_size\": 2, "
    "\"tie_word_embeddings\": false, \"architectures\": [\"BertForMaskedLM\"]}",
    "{\"model_type\": \"vit\", \"num_hidden_layers\": 6, \"hidden_size\": 16, \"num_attention_heads\": 2, "
    "\"intermediate_size\": 24, \"image_size\": 8, \"patch_size\": 4, \"num_labels\": 5}",
    "{\"model_type\": \"gpt2\", \"n_layer\": 6, \"n_embd\": 16, \"n_head\": 2, \"n_positions\": 16, "
    "\"vocab_size\": 67}",
    "{\"model_type\": \"llama\", \"num_hidden_layers\": 6, \"hidden_size\": 16, \"num_attention_heads\": 4, "
    "\"num_key_value_heads\": 2, \"intermediate_size\": 24, \"max_position_embeddings\": 16, \"vocab_size\": 67, "
    "\"tie_word_embeddings\": true}",
    "{\"model_type\": \"bert\", \"num_hidden_layers\": 6, \"hidden_size\": 16, \"num_attention_heads\": 2, "
    "\"intermediate_size\": 24, \"max_position_embeddings\": 16, \"vocab_size\": 67, \"type_vocab_size\": 2, "
    "\"architectures\": [\"BertForMaskedLM\"]}",
};

enum { DRAWN_REPLICAS = 3 };

struct job reference_draw(uint64_t seed, uint64_t n, const struct job *from, bool may_clip)
{
    static const uint32_t recompute[] = {RECOMPUTE_NONE, RECOMPUTE_SELECTIVE, RECOMPUTE_FULL, RECOMPUTE_STAGE};
    struct job job = *from;
    uint64_t key = 64 * n;
    struct parallel p = {.tensor = 1, .prefetch = 1, .chunks = 1};
    p.pipeline = 1 + (uint32_t)random_below(seed, key++, 4);
    p.data = p.pipeline == 1 ? 2 : 1 + (uint32_t)random_below(seed, key++, 2);
    p.buckets = p.pipeline == 1 || p.pipeline == 4 ? 1 : 1 + (uint32_t)random_below(seed, key++, 2);
    p.schedule = random_below(seed, key++, 2) ? PIPELINE_PIPEDREAM : PIPELINE_2BW;
    p.recompute = recompute[random_below(seed, key++, 4)];
    p.blocking = random_below(seed, key++, 4) == 0;
    job.microbatch = 2;
    job.microbatches = p.data * (p.schedule == PIPELINE_PIPEDREAM ? 1 : p.pipeline + random_below(seed, key++, 3));
    const bool clips = may_clip && random_below(seed, 1000000 + n, 2);
    if (clips) job.optimizer.clip = 0.02 + 0.4 * random_unit(seed, 2000000 + n);
    if (random_below(seed, key++, 2) && !clips && !job.network.tied_head) {
        p.replicated = p.pipeline;
        p.data = 1;
        for (uint32_t i = 0; i < p.pipeline; i++)
            p.replicas[i] = 1 + (uint32_t)random_below(seed, key++, DRAWN_REPLICAS);
        while (parallel_devices(&p) > REFERENCE_DEVICES / 2) p.replicas[random_below(seed, key++, p.pipeline)] = 1;
        /* enough in flight */
        job.microbatches = p.schedule == PIPELINE_PIPEDREAM ? 1 : 6 * (1 + random_below(seed, key++, 2));
    }
    const uint64_t rounds = p.replicated > 0 && p.schedule == PIPELINE_PIPEDREAM ? 6 : 1; /* updates of all replicas */
    job.minibatches = rounds * (1 + random_below(seed, key++, REFERENCE_UPDATES_MAX / rounds));
    job.optimizer.schedule.kind = (uint32_t)random_below(seed, key++, RATE_SCHEDULE_COUNT);
    job.precision = test_precision(random_below(seed, key++, 3));
    job.optimizer.learning_rate = 0.01;
    if (p.replicated == 0 && random_below(seed, key++, 2)) p.flush = 1 + (uint32_t)random_below(seed, key, 8);
    key++;
    if (p.replicated == 0 && random_below(seed, key++, 3) == 0)
        job.evaluation = (struct job_evaluation){.every = 1 + random_below(seed, key, 6)};
    key++;
    if (job.evaluation.every > 0) job.evaluation.minibatches = 1 + random_below(seed, key++, 3);
    job.parallel = p;
    return job;
}

static void describe(const struct job *job, const char *config, char what[240])
{
    const struct parallel *p = &job->parallel;
    char how[PARALLEL_TEXT_BYTES];
    snprintf(what, 240, "%.24s%s: %s, %s, recompute %s, clip %.3g, %u microbatches, %u minibatches, evaluation %u",
             config, job->network.tied_head ? " tied" : "", pipeline_schedule_names[p->schedule], parallel_text(p, how),
             recompute_names[p->recompute], job->optimizer.clip, (unsigned)job->microbatches,
             (unsigned)job->minibatches, (unsigned)job->evaluation.every);
    print_message("%s\n", what);
}

void reference_plan(const struct job *wanted, const char *config, struct plan *plan)
{
    struct hardware hardware;
    struct job_set jobs;
    struct error err = {0};
    test_hardware(&hardware, REFERENCE_DEVICES, 1 << 24, 1e9);
    hardware.backend = "host";
    hardware.threads = 1;
    hardware.host_bandwidth = hardware.types[0].memory_bandwidth;
    if (wanted->parallel.storage)
        hardware.storage.capacity_bytes = hardware.storage.read_rate = hardware.storage.write_rate =
        hardware.host_bandwidth;
    test_network_jobs(&jobs, 1, config, wanted->minibatches);
    struct job *job = &jobs.jobs[0];
    job->microbatch = wanted->microbatch;
    job->microbatches = wanted->microbatches;
    job->precision = wanted->precision;
    job->freeze = wanted->freeze;
    job->adapter = wanted->adapter;
    job->network.trained = wanted->network.trained;
    job->gradients = wanted->gradients;
    memcpy(job->compression, wanted->compression, sizeof job->compression);
    job->optimizer = wanted->optimizer;
    job->parallel = wanted->parallel;
    job->evaluation = wanted->evaluation;
    job->first_minibatch = wanted->first_minibatch;
    const struct planner_options options = {.activations = PLANNER_AUTO, .optimizer = PLANNER_PLACE_DEVICE};
    enum status status = parallel_check(job, &err);
    if (!status) status = planner_plan(&hardware, &jobs, &options, plan, &err);
    if (!status) status = plan_check(plan, &err);
    if (status) fail_msg("%s", err.text);
}

/* --- runs ------------------------------------------------------------------------------------- */

static void assert_same(const char *what, const struct reference_outcome *wanted, const struct run_job_result *found)
{
    for (uint64_t u = 0; u < found->minibatches; u++)
        if (memcmp(&wanted->losses[u], &found->losses[u], sizeof(double)) != 0)
            fail_msg("%s: loss %u is %.17g, not %.17g", what, (unsigned)u, found->losses[u], wanted->losses[u]);
    if (found->weights_fingerprint != wanted->fingerprints[found->minibatches]) fail_msg("%s: other weights", what);
    for (uint64_t i = 0; i < found->evaluation_count; i++) {
        const struct evaluation_progress *const own = &found->evaluations[i];
        if (memcmp(&wanted->held_out[own->step], &own->loss, sizeof(double)) != 0)
            fail_msg("%s: evaluation after %u is %.17g, not %.17g", what, (unsigned)own->step, own->loss,
                     wanted->held_out[own->step]);
    }
}

/* Carries the job out, and fails the test unless losses, evaluations and weights have the reference's bits after the
 * minibatches that the run made. Returns the seconds that it took. */
static double run(const struct job *job, const char *config, const struct run_options *options, const char *what,
                     const struct reference_outcome *wanted)
{
    struct plan plan = {0};
    struct run_result result = {0};
    struct trace trace = {0};
    struct error err = {0};
    reference_plan(job, config, &plan);
    const double begin_s = clock_s();
    struct run_options stored = *options;
    stored.storage.folder = P_tmpdir;
    if (run_plan(&plan, &stored, &result, &trace, &err)) fail_msg("%s: %s", what, err.text);
    const double seconds = clock_s() - begin_s;
    if (options->record_spans && trace_check(&trace, &err)) fail_msg("%s: %s", what, err.text);
    if (options->record_spans) assert_int_equal(trace.span_count, plan_operations(&plan));
    if (!options->stop) assert_int_equal(result.jobs[0].minibatches, job->first_minibatch + job->minibatches);
    else print_message("  ended after %u updates\n", (unsigned)result.jobs[0].minibatches);
    if (!options->stop && job->first_minibatch == 0)
        assert_int_equal(result.jobs[0].evaluation_count, evaluation_count(job));
    assert_same(what, wanted, &result.jobs[0]);
    trace_release(&trace);
    run_result_release(&result);
    plan_release(&plan);
    return seconds;
}

/* Carries the job out, and returns its losses and weights. */
static void run_close(const struct job *job, const char *config, uint64_t delay_seed,
                      double losses[REFERENCE_UPDATES_MAX], uint64_t *fingerprint)
{
    const struct run_options options = {.poison = true, .delay_seed = delay_seed, .record_spans = true,
                                        .storage = {.folder = P_tmpdir}};
    struct plan plan = {0};
    struct run_result result = {0};
    struct trace trace = {0};
    struct error err = {0};
    reference_plan(job, config, &plan);
    assert_true(parallel_is_carried_out(&plan.jobs.jobs[0].parallel));
    if (run_plan(&plan, &options, &result, &trace, &err) || trace_check(&trace, &err)) fail_msg("%s", err.text);
    assert_int_equal(trace.span_count, plan_operations(&plan));
    assert_int_equal(result.jobs[0].minibatches, job->minibatches);
    memcpy(losses, result.jobs[0].losses, job->minibatches * sizeof *losses);
    *fingerprint = result.jobs[0].weights_fingerprint;
    trace_release(&trace);
    run_result_release(&result);
    plan_release(&plan);
}

void reference_compare(const struct job *job, const char *config, uint64_t delay_seed)
{
    struct reference_outcome wanted;
    char what[240];
    describe(job, config, what);
    reference_follow(job, &wanted);
    run(job, config, &(struct run_options){.poison = true, .delay_seed = delay_seed, .record_spans = true}, what,
        &wanted);
}

/* At a rate of 0.01 AdamW amplifies rounding: some jobs whose weights begin one unit in the last place apart have
 * losses 0.4 % apart after 18 updates, in the reference itself. At this rate losses in fp32 stay within 1e-7, and a
 * version of the weights that is one too new changes them by more than 1e-4. */
#define CLOSE_RATE 0.003

void reference_compare_roughly(const struct job *drawn, const char *config, uint64_t delay_seed, uint32_t tensor)
{
    struct reference_outcome wanted;
    struct job slow = *drawn;
    slow.optimizer.learning_rate = CLOSE_RATE;
    const struct job *const job = &slow;
    struct job group = slow;
    double losses[2][REFERENCE_UPDATES_MAX];
    uint64_t fingerprints[2];
    char what[240];
    describe(job, config, what);
    reference_follow(job, &wanted);
    group.parallel.tensor = tensor;
    for (uint32_t again = 0; again < 2; again++)
        run_close(&group, config, again * delay_seed, losses[again], &fingerprints[again]);
    const double tolerance = job->precision == PRECISION_FP32 ? 1e-6 : 5e-3;
    for (uint64_t u = 0; u < job->minibatches; u++)
        if (!(fabs(losses[0][u] / wanted.losses[u] - 1) <= tolerance))
            fail_msg("%s: loss %u is %.9g (expected %.9g)", what, (unsigned)u, losses[0][u], wanted.losses[u]);
    assert_memory_equal(losses[0], losses[1], job->minibatches * sizeof **losses);
    if (fingerprints[0] != fingerprints[1]) fail_msg("%s: other weights", what);
}

void reference_stop(const struct job *job, const char *config, uint64_t seed, uint64_t n)
{
    struct reference_outcome wanted;
    char what[240];
    describe(job, config, what);
    reference_follow(job, &wanted);
    struct run_options options = {.poison = true, .delay_seed = seed + n};
    const double seconds = run(job, config, &options, what, &wanted);
    options.stop = &support_stop;
    support_stop_after((long)(fmin(seconds, 0.9) * 1e6 * (0.2 + 0.8 * random_unit(seed, n))));
    run(job, config, &options, what, &wanted);
    support_stop_after(0);
}

void reference_no_checkpoints(const struct job *job, const char *config, const char *message)
{
    struct plan plan = {0};
    struct run_result result = {0};
    struct trace trace = {0};
    struct error err = {0};
    reference_plan(job, config, &plan);
    const struct run_checkpoints checkpoints = {.folder = "/tmp/never", .keep = 2};
    assert_int_equal(run_plan(&plan, &(struct run_options){.checkpoints = &checkpoints}, &result, &trace, &err),
                     STATUS_BAD_INPUT);
    assert_string_equal(err.text, message);
    run_result_release(&result);
    trace_release(&trace);
    plan_release(&plan);
}

void reference_resume(const struct job *job, const char *config, uint64_t delay_seed)
{
    struct reference_outcome wanted;
    char what[240], folder[SUPPORT_FOLDER_BYTES];
    describe(job, config, what);
    reference_follow(job, &wanted);
    support_folder_make(folder);
    const struct run_checkpoints checkpoints = {.folder = folder, .every_steps = 1, .keep = 100, .each = true};
    const struct run_options options = {.poison = true, .delay_seed = delay_seed, .checkpoints = &checkpoints};
    run(job, config, &options, what, &wanted);
    uint32_t resumed = 0;
    for (uint64_t done = 1; done < job->minibatches; done++) {
        struct job rest = *job;
        char path[160];
        snprintf(path, sizeof path, "%s/job-0/step-%010u.safetensors", folder, (unsigned)done);
        const uint64_t every = job->evaluation.every;
        const bool flushed = done % job->parallel.flush == 0 || (every > 0 && done % every == 0);
        assert_int_equal(access(path, F_OK) == 0, flushed);
        if (!flushed) continue;
        rest.first_minibatch = done;
        rest.minibatches = job->minibatches - done;
        run(&rest, config, &options, what, &wanted);
        resumed++;
    }
    assert_true(resumed > 0);
    support_folder_remove(folder);
}
