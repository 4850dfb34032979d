/* label: medium, all rounds: slow
 * Delayed updates (ZeRO-Offload) have the bits of a slow reference that keeps every version of the weights
 * (tests/support/exec/support_reference_run.h): a minibatch computes with the weights before the last update, which the
 * host makes meanwhile, but for the first minibatch after a flush.
 *
 * Random cuts of all networks, schedules, replicas that split nothing to all, clipping, flushes, evaluations and states
 * in storage; the runs have random pauses on every stream and NaN in all memory that was released. Tensor groups, and
 * shares that clip, have the reference's losses to rounding, and equal bits from run to run. A stopped run has the
 * weights of a shorter run. A run with checkpoints goes on from each with the bits of the run that was not interrupted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "tests/support/exec/support_cut_job.h"
#include "tests/support/exec/support_reference_run.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_seed.h"

enum { MINIBATCHES_MAX = 7 };
#define CASES support_rounds(2, 6)

/* Draws a job; `exactly`: without norms of shares, which have the reference's bits only to rounding. */
static struct job draw(uint64_t seed, uint64_t n, const char *config, const struct job *from, bool exactly)
{
    static const uint32_t recompute[] = {RECOMPUTE_NONE, RECOMPUTE_SELECTIVE, RECOMPUTE_FULL, RECOMPUTE_STAGE};
    struct job job = *from;
    uint64_t key = 64 * n;
    const bool replicated = random_below(seed, key++, 3) > 0;
    const struct job_cut *cut = replicated ? &job_cuts_replicated[random_below(seed, key++, JOB_CUTS_REPLICATED)]
                                           : &job_cuts[random_below(seed, key++, JOB_CUTS)];
    struct parallel p = {.tensor = 1, .prefetch = 1, .pipeline = cut->pipeline, .chunks = cut->chunks,
                         .buckets = cut->buckets,
                         .schedule = cut->schedule, .data = cut->data, .offload = OFFLOAD_STATES, .delayed = true};
    p.zero = (uint32_t)random_below(seed, key++, 4);
    p.prefetch = 1 + (uint32_t)random_below(seed, key++, 2);
    p.recompute = recompute[random_below(seed, key++, 4)];
    p.blocking = random_below(seed, key++, 4) == 0;
    p.storage = random_below(seed, key++, 3) == 0;
    job.microbatch = 2;
    job.microbatches = p.data * (1 + random_below(seed, key++, 4));
    if (p.schedule == PIPELINE_INTERLEAVED) job.microbatches = p.data * p.pipeline * (1 + random_below(seed, key++, 2));
    job.minibatches = 1 + random_below(seed, key++, MINIBATCHES_MAX);
    job.precision = test_precision(random_below(seed, key++, 3));
    job.optimizer.learning_rate = 0.01;
    job.optimizer.schedule.kind = (uint32_t)random_below(seed, key++, RATE_SCHEDULE_COUNT);
    const bool clips = cut_job_clips(config) && random_below(seed, key++, 2) &&
                       (!exactly || p.zero == 0 || p.data == 1);
    if (clips) job.optimizer.clip = 0.05 + 0.5 * random_unit(seed, key++);
    if (random_below(seed, key++, 2)) p.flush = 1 + (uint32_t)random_below(seed, key++, 5);
    if (random_below(seed, key++, 3) == 0)
        job.evaluation = (struct job_evaluation){.every = 1 + random_below(seed, key++, 4)};
    if (job.evaluation.every > 0) job.evaluation.minibatches = 1 + random_below(seed, key++, 2);
    job.parallel = p;
    return job;
}

static void test_bits_of_the_reference(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("delayed");
    for (uint64_t n = 0; n < CUT_JOB_CONFIGS * CASES; n++) {
        const char *config = cut_job_configs[n % CUT_JOB_CONFIGS];
        struct job_set jobs;
        test_network_jobs(&jobs, 1, config, 1);
        const struct job job = draw(seed, n, config, &jobs.jobs[0], true);
        reference_compare(&job, config, n % 3 == 0 ? 0 : seed + n);
        job_set_release(&jobs);
    }
}

static void test_tensor_groups(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("delayed tensor groups");
    for (uint64_t n = 0; n < 8; n++) {
        const char *config = cut_job_configs[n % CUT_JOB_CONFIGS];
        struct job_set jobs;
        test_network_jobs(&jobs, 1, config, 1);
        const struct job job = draw(seed, n, config, &jobs.jobs[0], false);
        const bool group = n % 3 > 0 && parallel_devices(&job.parallel) * 2 <= REFERENCE_DEVICES;
        reference_compare_roughly(&job, config, seed + n, group ? 2 : 1);
        job_set_release(&jobs);
    }
}

static void test_stop(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("delayed stops");
    for (uint64_t n = 0; n < 8; n++) {
        const char *config = cut_job_configs[n % CUT_JOB_CONFIGS];
        struct job_set jobs;
        test_network_jobs(&jobs, 1, config, 1);
        struct job job = draw(seed, n, config, &jobs.jobs[0], true);
        job.minibatches = REFERENCE_UPDATES_MAX;
        reference_stop(&job, config, seed, n);
        job_set_release(&jobs);
    }
}

/* Without a flush the devices never have the newest weights, so no checkpoint has the weights that a minibatch begins
 * with. */
static void test_no_checkpoints(void **state)
{
    (void)state;
    struct job_set jobs;
    test_network_jobs(&jobs, 1, cut_job_configs[0], 3);
    struct job job = jobs.jobs[0];
    job.parallel = (struct parallel){.tensor = 1, .data = 1, .pipeline = 2, .chunks = 1, .prefetch = 1, .delayed = true,
                                     .schedule = PIPELINE_1F1B, .offload = OFFLOAD_STATES};
    reference_no_checkpoints(&job, cut_job_configs[0],
                             "job 'job-0' has delayed updates without a flush, whose minibatches never begin with the "
                             "newest weights, so it has no checkpoints (expected 'flush', a run without them, or no "
                             "'delayed')");
    job_set_release(&jobs);
}

static void test_checkpoints(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("delayed checkpoints");
    for (uint64_t n = 0; n < 8; n++) {
        const char *config = cut_job_configs[n % CUT_JOB_CONFIGS];
        struct job_set jobs;
        test_network_jobs(&jobs, 1, config, 1);
        struct job job = draw(seed, n, config, &jobs.jobs[0], true);
        job.parallel.flush = 2 + (uint32_t)random_below(seed, 1000 + n, 4);
        job.parallel.storage = false;
        job.minibatches = 10;
        reference_resume(&job, config, seed + n);
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
