/* label: medium
 * Failures of parallel jobs beside other jobs.
 *
 * Of two jobs, on devices of their own, the first fails: its data cannot be read, or its loss is not finite. Pipelines,
 * replicas that split states, tensor groups and asynchronous pipelines, with random pauses on every stream and NaN in
 * all memory that was released: with keep_going the other job ends with the bits that it has by itself, whatever on_nan
 * says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/random.h"
#include "base/size.h"
#include "exec/run/run.h"
#include "planner/check/plan_check.h"
#include "planner/strategy/planner.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_seed.h"

enum { STEPS = 9 };

static const char config[] =
    "{\"model_type\": \"gpt2\", \"n_layer\": 4, \"n_embd\": 24, \"n_head\": 12, \"n_positions\": 16, "
    "\"vocab_size\": 61, \"tie_word_embeddings\": false}";

static const struct parallel ways[] = {
    {.tensor = 1, .pipeline = 2, .data = 1, .chunks = 1, .prefetch = 1, .schedule = PIPELINE_1F1B},
    {.tensor = 1, .pipeline = 2, .data = 1, .chunks = 2, .prefetch = 1, .schedule = PIPELINE_ZB_V},
    {.tensor = 1, .pipeline = 1, .data = 2, .chunks = 2, .prefetch = 1},
    {.tensor = 1, .pipeline = 2, .data = 2, .chunks = 1, .prefetch = 1, .zero = 1, .schedule = PIPELINE_GPIPE},
    {.tensor = 1, .pipeline = 1, .data = 2, .chunks = 2, .prefetch = 1, .zero = 3},
    {.tensor = 2, .pipeline = 2, .data = 1, .chunks = 1, .prefetch = 1, .schedule = PIPELINE_1F1B},
    {.tensor = 1, .pipeline = 2, .data = 1, .chunks = 1, .prefetch = 1, .schedule = PIPELINE_2BW},
    {.tensor = 1, .pipeline = 2, .data = 1, .chunks = 1, .prefetch = 1, .schedule = PIPELINE_PIPEDREAM},
};

struct setting {
    const struct parallel *way;
    double rate, clip;
    const char *data;
    bool alone; /* only the second job */
};

struct outcome {
    double losses[STEPS];
    uint64_t minibatches[2], fingerprint, skipped, nonfinite;
    bool failed;
};

static void make_plan(const struct setting *s, struct plan *plan)
{
    struct hardware hardware;
    struct job_set jobs;
    struct error err = {0};
    const struct planner_options options = {.activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO};
    const uint32_t own = (uint32_t)parallel_devices(s->way);
    test_hardware(&hardware, 2 * own, 1 << 24, 1e9);
    hardware.backend = "host";
    hardware.threads = 1;
    test_network_jobs(&jobs, s->alone ? 1 : 2, config, STEPS);
    for (uint32_t j = 0; j < jobs.count; j++) {
        struct job *const job = &jobs.jobs[j];
        const bool fails = !s->alone && j == 0;
        job->name = fails ? "fails" : "other";
        job->microbatch = 2;
        job->microbatches = s->way->schedule == PIPELINE_PIPEDREAM ? 1 : 4;
        job->optimizer = jobs.jobs[0].optimizer;
        job->optimizer.kind = OPTIMIZER_SGD;
        job->optimizer.learning_rate = fails ? s->rate : 0.01;
        job->optimizer.clip = s->clip;
        job->seed = 7;
        job->data = fails ? s->data : NULL;
        job->data_format = job->data ? DATA_TEXT : DATA_NONE;
        job->parallel = *s->way;
        job->parallel.first_device = j * own;
        if (parallel_check(job, &err)) fail_msg("%s", err.text);
    }
    if (planner_plan(&hardware, &jobs, &options, plan, &err) || plan_check(plan, &err)) fail_msg("%s", err.text);
}

/* Returns the status of the run. The losses and weights are the other job's. */
static enum status run(const struct setting *s, struct run_options options, struct outcome *out)
{
    struct plan plan = {0};
    struct run_result result = {0};
    struct trace trace = {0};
    struct error err = {0};
    *out = (struct outcome){.fingerprint = 0};
    options.poison = true;
    make_plan(s, &plan);
    const uint32_t other = s->alone ? 0 : 1;
    const enum status status = run_plan(&plan, &options, &result, &trace, &err);
    for (uint32_t j = 0; j <= other && status == STATUS_OK; j++) out->minibatches[j] = result.jobs[j].minibatches;
    if (status == STATUS_OK) {
        const struct run_job_result *const of = &result.jobs[other];
        memcpy(out->losses, of->losses, of->minibatches * sizeof *out->losses);
        out->fingerprint = of->weights_fingerprint;
        out->failed = result.jobs[0].failure != NULL;
        out->skipped = result.jobs[0].skipped;
        out->nonfinite = result.jobs[0].nonfinite;
    }
    trace_release(&trace);
    run_result_release(&result);
    plan_release(&plan);
    return status;
}

static void compare(const struct outcome *alone, const struct outcome *found, size_t way)
{
    if (alone->minibatches[0] != STEPS || found->minibatches[1] != STEPS ||
        memcmp(alone->losses, found->losses, sizeof alone->losses) != 0 || alone->fingerprint != found->fingerprint)
        fail_msg("way %u: the other job has other bits, %u of %u minibatches, losses %g and %g, %g and %g",
                 (unsigned)way,
                 (unsigned)found->minibatches[1], STEPS, alone->losses[0], found->losses[0], alone->losses[STEPS - 1],
                 found->losses[STEPS - 1]);
}

static void test_data_that_are_missing(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("missing data");
    for (size_t w = 0; w < ARRAY_COUNT(ways); w++) {
        struct setting s = {.way = &ways[w], .rate = 0.01, .data = "/nonexistent/tokens.bin"};
        struct outcome alone, found;
        assert_int_not_equal(run(&s, (struct run_options){.delay_seed = 0}, &found), STATUS_OK);
        assert_int_equal(run(&s, (struct run_options){.keep_going = true, .delay_seed = seed + w}, &found), STATUS_OK);
        assert_true(found.failed);
        assert_int_equal(found.minibatches[0], 0);
        s.alone = true;
        assert_int_equal(run(&s, (struct run_options){.delay_seed = 0}, &alone), STATUS_OK);
        compare(&alone, &found, w);
    }
}

static void test_losses_that_are_not_finite(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("losses that are not finite");
    for (size_t w = 0; w < ARRAY_COUNT(ways); w++)
        for (uint32_t on_nan = RUN_NAN_CONTINUE; on_nan <= RUN_NAN_SKIP; on_nan++) {
            struct setting s = {.way = &ways[w], .rate = 1e9};
            struct outcome alone, found;
            const bool skips = on_nan == RUN_NAN_SKIP;
            if (skips) s.clip = 1e20;
            const struct run_options options = {.keep_going = random_below(seed, 4 * w + on_nan, 2), .on_nan = on_nan,
                                                .delay_seed = seed + w};
            assert_int_equal(run(&s, options, &found), STATUS_OK);
            assert_int_equal(found.failed, on_nan == RUN_NAN_STOP);
            if (on_nan == RUN_NAN_STOP) assert_true(found.nonfinite <= 1); /* or a gradient was not finite before */
            else assert_int_equal(found.minibatches[0], STEPS);
            if (on_nan != RUN_NAN_STOP && found.nonfinite == 0)
                fail_msg("way %u, on_nan %u: all losses are finite", (unsigned)w, on_nan);
            assert_true(!skips || found.skipped > 0);
            s.alone = true;
            assert_int_equal(run(&s, (struct run_options){.on_nan = on_nan}, &alone), STATUS_OK);
            compare(&alone, &found, w);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data_that_are_missing),
        cmocka_unit_test(test_losses_that_are_not_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
