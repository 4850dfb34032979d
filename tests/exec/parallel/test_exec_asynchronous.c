/* label: long
 * Asynchronous pipelines have the bits of a slow reference that keeps every version of the weights
 * (tests/support/exec/support_stale_job.h).
 *
 * Random cuts, unequal replicas, microbatches, ways to recompute and numbers of updates; the runs have random pauses on
 * every stream and NaN in all memory that was released. A run that is stopped ends the updates that any stage has begun, so
 * it has the weights of a shorter run. Tensor groups have the reference's losses to rounding, and equal bits from run to
 * run. A run with checkpoints goes on from each with the bits of the run that was not interrupted.
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

#include "base/random.h"
#include "base/size.h"
#include "tests/support/exec/support_stale_job.h"
#include "tests/support/exec/support_stop.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_folder.h"
#include "tests/support/support_seed.h"

enum { CASES = 12, REPLICAS_MAX = 3 };

static const char *const configs[] = {
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

/* --- cases ------------------------------------------------------------------------------------ */

static struct job draw(uint64_t seed, uint64_t n, const struct job *from, const char *config)
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
    const bool clips = !strstr(config, "bert") && !strstr(config, "vit") && random_below(seed, 1000000 + n, 2);
    if (clips) job.optimizer.clip = 0.02 + 0.4 * random_unit(seed, 2000000 + n);
    if (random_below(seed, key++, 2) && !clips && !job.network.tied_head) {
        p.replicated = p.pipeline;
        p.data = 1;
        for (uint32_t i = 0; i < p.pipeline; i++) p.replicas[i] = 1 + (uint32_t)random_below(seed, key++, REPLICAS_MAX);
        while (parallel_devices(&p) > STALE_JOB_DEVICES / 2) p.replicas[random_below(seed, key++, p.pipeline)] = 1;
        job.microbatches = p.schedule == PIPELINE_PIPEDREAM ? 1 : 6 * (1 + random_below(seed, key++, 2)); /* enough in flight */
    }
    job.minibatches = p.replicated > 0 && p.schedule == PIPELINE_PIPEDREAM ? 6 * (1 + random_below(seed, key++, STALE_JOB_UPDATES_MAX / 6))
                                                                           : 1 + random_below(seed, key++, STALE_JOB_UPDATES_MAX);
    job.optimizer.schedule.kind = (uint32_t)random_below(seed, key++, RATE_SCHEDULE_COUNT);
    job.precision = random_below(seed, key++, 3) == 0 ? PRECISION_BF16_WEIGHTS : PRECISION_FP32;
    job.optimizer.learning_rate = 0.01;
    if (p.replicated == 0 && random_below(seed, key++, 2)) p.flush = 1 + (uint32_t)random_below(seed, key, 8);
    key++;
    if (p.replicated == 0 && random_below(seed, key++, 3) == 0) job.evaluation = (struct job_evaluation){.every = 1 + random_below(seed, key, 6)};
    key++;
    if (job.evaluation.every > 0) job.evaluation.minibatches = 1 + random_below(seed, key++, 3);
    job.parallel = p;
    return job;
}

static void describe(const struct job *job, const char *config, char what[200])
{
    const struct parallel *p = &job->parallel;
    char how[PARALLEL_TEXT_BYTES];
    snprintf(what, 200, "%.24s%s: %s, %s, recompute %s, %u microbatches, %u updates, evaluation %u, clip %.3g", config,
             job->network.tied_head ? " tied" : "",
             pipeline_schedule_names[p->schedule], parallel_text(p, how), recompute_names[p->recompute],
             (unsigned)job->microbatches, (unsigned)job->minibatches, (unsigned)job->evaluation.every, job->optimizer.clip);
    print_message("%s\n", what);
}

static void test_bits_of_the_reference(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("asynchronous");
    for (size_t c = 0; c < ARRAY_COUNT(configs); c++)
        for (uint64_t n = 0; n < CASES; n++) {
            struct job_set jobs;
            struct stale_job_outcome wanted;
            char what[200];
            test_network_jobs(&jobs, 1, configs[c], 1);
            const struct job job = draw(seed, c * CASES + n, &jobs.jobs[0], configs[c]);
            describe(&job, configs[c], what);
            stale_job_reference(&job, &wanted);
            const struct run_options options = {.poison = true, .delay_seed = n % 3 == 0 ? 0 : seed + n, .record_spans = true};
            stale_job_run(&job, configs[c], &options, what, &wanted);
            job_set_release(&jobs);
        }
}

static void test_tensor_groups(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("asynchronous tensor groups");
    for (uint64_t n = 0; n < 16; n++) {
        const char *config = configs[n % ARRAY_COUNT(configs)];
        struct job_set jobs;
        struct stale_job_outcome wanted;
        char what[200];
        test_network_jobs(&jobs, 1, config, 1);
        struct job job = draw(seed, n, &jobs.jobs[0], config);
        if (parallel_devices(&job.parallel) * 2 > STALE_JOB_DEVICES) {
            job.parallel.pipeline = 2;
            job.parallel.buckets = 1;
        }
        describe(&job, config, what);
        stale_job_reference(&job, &wanted);
        job.parallel.tensor = 2;
        stale_job_close(&job, config, seed + n, what, &wanted);
        job_set_release(&jobs);
    }
}

/* Stops each run at some time of a whole one. */
static void test_stop(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("stops");
    for (uint64_t n = 0; n < 12; n++) {
        struct job_set jobs;
        const char *config = configs[n % ARRAY_COUNT(configs)];
        test_network_jobs(&jobs, 1, config, 1);
        struct job job = draw(seed, n, &jobs.jobs[0], config);
        struct stale_job_outcome wanted;
        char what[200];
        job.minibatches = STALE_JOB_UPDATES_MAX / 6 * 6;
        describe(&job, config, what);
        stale_job_reference(&job, &wanted);
        struct run_options options = {.poison = true, .delay_seed = seed + n};
        const double seconds = stale_job_run(&job, config, &options, what, &wanted);
        options.stop = &support_stop;
        support_stop_after((long)(fmin(seconds, 0.9) * 1e6 * (0.2 + 0.8 * random_unit(seed, n))));
        stale_job_run(&job, config, &options, what, &wanted);
        support_stop_after(0);
        job_set_release(&jobs);
    }
}

static void test_no_trees(void **state)
{
    (void)state;
    struct job_set jobs;
    struct error err = {0};
    test_network_jobs(&jobs, 1, configs[0], 3);
    struct job *job = &jobs.jobs[0];
    job->microbatches = 2;
    job->parallel = (struct parallel){.tensor = 1, .data = 1, .pipeline = 2, .chunks = 1, .prefetch = 1, .tree = true,
                                      .schedule = PIPELINE_2BW};
    assert_int_equal(parallel_check(job, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "'sum' 'tree' with a schedule without a flush");
    job_set_release(&jobs);
}

/* Without a flush stages are never in the same minibatch, so no checkpoint has the weights of one. */
static void test_no_checkpoints(void **state)
{
    (void)state;
    struct job_set jobs;
    struct plan plan = {0};
    struct run_result result = {0};
    struct trace trace = {0};
    struct error err = {0};
    test_network_jobs(&jobs, 1, configs[0], 3);
    struct job job = jobs.jobs[0];
    job.parallel = (struct parallel){.tensor = 1, .data = 1, .pipeline = 2, .chunks = 1, .prefetch = 1,
                                     .schedule = PIPELINE_PIPEDREAM};
    stale_job_plan(&job, configs[0], &plan);
    const struct run_checkpoints checkpoints = {.folder = "/tmp/never", .keep = 2};
    assert_int_equal(run_plan(&plan, &(struct run_options){.checkpoints = &checkpoints}, &result, &trace, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "job 'job-0' has the asynchronous schedule 'pipedream' without a flush, whose stages are "
                                  "never in the same minibatch, so it has no checkpoints (expected 'flush', a run without "
                                  "them, or another schedule)");
    run_result_release(&result);
    trace_release(&trace);
    plan_release(&plan);
    job_set_release(&jobs);
}

/* Takes checkpoints wherever the pipeline is flushed, and goes on from each. */
static void test_checkpoints(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("asynchronous checkpoints");
    for (uint64_t n = 0; n < 16; n++) {
        const char *config = configs[n % ARRAY_COUNT(configs)];
        struct job_set jobs;
        struct stale_job_outcome wanted;
        char what[200], folder[SUPPORT_FOLDER_BYTES];
        test_network_jobs(&jobs, 1, config, 1);
        struct job job = draw(seed, n, &jobs.jobs[0], config);
        if (job.parallel.replicated > 0) {
            job_set_release(&jobs);
            continue;
        }
        job.parallel.flush = 2 + (uint32_t)random_below(seed, 1000 + n, 4);
        job.minibatches = 10;
        describe(&job, config, what);
        stale_job_reference(&job, &wanted);
        support_folder_make(folder);
        const struct run_checkpoints checkpoints = {.folder = folder, .every_steps = 1, .keep = 100, .each = true};
        const struct run_options options = {.poison = true, .delay_seed = seed + n, .checkpoints = &checkpoints};
        stale_job_run(&job, config, &options, what, &wanted);
        uint32_t resumed = 0;
        for (uint64_t done = 1; done < 10; done++) {
            struct job rest = job;
            char path[160];
            snprintf(path, sizeof path, "%s/job-0/step-%010u.safetensors", folder, (unsigned)done);
            const uint64_t every = job.evaluation.every;
            const bool flushed = done % job.parallel.flush == 0 || (every > 0 && done % every == 0);
            assert_int_equal(access(path, F_OK) == 0, flushed);
            if (!flushed) continue;
            rest.first_minibatch = done;
            rest.minibatches = 10 - done;
            stale_job_run(&rest, config, &options, what, &wanted);
            resumed++;
        }
        assert_true(resumed > 0);
        support_folder_remove(folder);
        job_set_release(&jobs);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits_of_the_reference),
        cmocka_unit_test(test_tensor_groups),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_no_checkpoints),
        cmocka_unit_test(test_checkpoints),
        cmocka_unit_test(test_no_trees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
