/* label: long, all rounds: slow
 * Asynchronous pipelines have the bits of a slow reference that keeps every version of the weights
 * (tests/support/exec/support_reference_run.h).
 *
 * Random cuts, unequal replicas, microbatches, ways to recompute and numbers of updates; the runs have random pauses on
 * every stream and NaN in all memory that was released. A run that is stopped ends the updates that any stage has
 * begun, so it has the weights of a shorter run. Tensor groups have the reference's losses to rounding, and equal bits
 * from run to run. A run with checkpoints goes on from each with the bits of the run that was not interrupted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/random.h"
#include "base/size.h"
#include "tests/support/exec/support_cut_job.h"
#include "tests/support/exec/support_reference_run.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_seed.h"

#define CASES support_rounds(3, 24)

static struct job draw(uint64_t seed, uint64_t n, const struct job *from, const char *config)
{
    return reference_draw(seed, n, from, cut_job_clips(config));
}

static void test_bits_of_the_reference(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("asynchronous");
    for (size_t c = 0; c < REFERENCE_CONFIGS; c++)
        for (uint64_t n = 0; n < CASES; n++) {
            struct job_set jobs;
            test_network_jobs(&jobs, 1, reference_configs[c], 1);
            const struct job job = draw(seed, c * CASES + n, &jobs.jobs[0], reference_configs[c]);
            reference_compare(&job, reference_configs[c], n % 3 == 0 ? 0 : seed + n);
            job_set_release(&jobs);
        }
}

static void test_tensor_groups(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("asynchronous tensor groups");
    for (uint64_t n = 0; n < 16; n++) {
        const char *config = reference_configs[n % REFERENCE_CONFIGS];
        struct job_set jobs;
        test_network_jobs(&jobs, 1, config, 1);
        struct job job = draw(seed, n, &jobs.jobs[0], config);
        if (parallel_devices(&job.parallel) * 2 > REFERENCE_DEVICES) {
            job.parallel.pipeline = 2;
            job.parallel.buckets = 1;
        }
        reference_compare_roughly(&job, config, seed + n, 2);
        job_set_release(&jobs);
    }
}

static void test_stop(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("stops");
    for (uint64_t n = 0; n < 12; n++) {
        struct job_set jobs;
        const char *config = reference_configs[n % REFERENCE_CONFIGS];
        test_network_jobs(&jobs, 1, config, 1);
        struct job job = draw(seed, n, &jobs.jobs[0], config);
        job.minibatches = REFERENCE_UPDATES_MAX / 6 * 6;
        reference_stop(&job, config, seed, n);
        job_set_release(&jobs);
    }
}

static void test_no_trees(void **state)
{
    (void)state;
    struct job_set jobs;
    struct error err = {0};
    test_network_jobs(&jobs, 1, reference_configs[0], 3);
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
    test_network_jobs(&jobs, 1, reference_configs[0], 3);
    struct job job = jobs.jobs[0];
    job.parallel = (struct parallel){.tensor = 1, .data = 1, .pipeline = 2, .chunks = 1, .prefetch = 1,
                                     .schedule = PIPELINE_PIPEDREAM};
    reference_no_checkpoints(&job, reference_configs[0],
                             "job 'job-0' has the asynchronous schedule 'pipedream' without a flush, whose stages are "
                             "never in the same minibatch, so it has no checkpoints (expected 'flush', a run without "
                             "them, or another schedule)");
    job_set_release(&jobs);
}

static void test_checkpoints(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("asynchronous checkpoints");
    for (uint64_t n = 0; n < 16; n++) {
        const char *config = reference_configs[n % REFERENCE_CONFIGS];
        struct job_set jobs;
        test_network_jobs(&jobs, 1, config, 1);
        struct job job = draw(seed, n, &jobs.jobs[0], config);
        job.parallel.flush = 2 + (uint32_t)random_below(seed, 1000 + n, 4);
        job.minibatches = 10;
        if (job.parallel.replicated == 0) reference_resume(&job, config, seed + n);
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
