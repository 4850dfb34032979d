/* label: long, all rounds: slow
 * Pipelines that are carried out have the bits of one device.
 *
 * For every family, random cuts, schedules, microbatches and ways to recompute, with random pauses on every stream and
 * NaN in all memory that was released: the plan passes its check, and the run ends with the losses and weights of the
 * job spilled on one device. Replicas add up their gradients in another order: all plans of equally many replicas have
 * the same bits, and losses that differ from one device's only by rounding. A tree's sums have the same bits for any
 * number of replicas, and spilled on one device.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "base/size.h"
#include "tests/support/exec/support_cut_job.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_seed.h"

enum { TREES = 8 };
#define CASES support_rounds(4, 32)
#define FAMILY_CASES support_rounds(2, 8)

/* Runs case n of a network spilled on one device, and as a pipeline. */
static void check_bits(uint64_t seed, uint64_t n, const char *config)
{
    const struct cut_job s = cut_job_draw(seed, n, config);
    struct cut_job alone = s;
    struct cut_job_outcome wanted, found;
    struct plan plan = {0};
    alone.cut = NULL;
    cut_job_plan(&alone, &plan);
    cut_job_run(&plan, &(struct run_options){.poison = true}, &wanted);
    cut_job_plan(&s, &plan);
    cut_job_run(&plan, &(struct run_options){.poison = true, .delay_seed = n % 3 == 0 ? 0 : seed + n,
                                             .record_spans = true}, &found);
    cut_job_same(&wanted, &found, &s);
}

static void test_bits_of_one_device(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("pipelines");
    for (size_t c = 0; c < CUT_JOB_CONFIGS; c++)
        for (uint64_t n = 0; n < CASES; n++) check_bits(seed, c * CASES + n, cut_job_configs[c]);
}

/* Families with switches: windows, biases, norms of heads, GELU; parts side by side. */
static void test_bits_of_families(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("families");
    for (size_t c = 0; c < CUT_JOB_FAMILIES; c++)
        for (uint64_t n = 0; n < FAMILY_CASES; n++) check_bits(seed, c * FAMILY_CASES + n, cut_job_families[c]);
}

/* Compares all cuts of 2 and of 4 replicas with the first, and the first with one device. */
static void test_bits_of_equal_replicas(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("replicas");
    for (size_t c = 0; c < CUT_JOB_CONFIGS; c++) {
        struct cut_job_outcome alone, first = {0}, found;
        struct plan plan = {0};
        uint32_t replicas = 0;
        const uint32_t precision = test_precision(random_below(seed, c, 3));
        struct cut_job s = {.config = cut_job_configs[c], .microbatches = 8, .precision = precision,
                            .every = 1 + random_below(seed, 50 + c, 3), .held_out = 2};
        if (c % 2 == 0 && cut_job_clips(cut_job_configs[c])) s.clip = 0.2;
        cut_job_plan(&s, &plan);
        cut_job_run(&plan, &(struct run_options){.poison = true}, &alone);
        for (size_t i = 0; i < JOB_CUTS_REPLICATED; i++) {
            s.cut = &job_cuts_replicated[i];
            s.recompute = random_below(seed, 100 * c + i, 2) ? RECOMPUTE_NONE : RECOMPUTE_STAGE;
            cut_job_plan(&s, &plan);
            cut_job_run(&plan, &(struct run_options){.poison = true, .delay_seed = seed + i, .record_spans = true},
                        &found);
            if (replicas != s.cut->data) {
                replicas = s.cut->data;
                first = found;
                for (uint32_t k = 0; k < CUT_JOB_STEPS; k++)
                    if (fabs(found.losses[k] / alone.losses[k] - 1) > (precision == PRECISION_FP32 ? 1e-5 : 1e-2))
                        fail_msg("%.25s...: loss %u is %.9g, of one device %.9g", s.config, k, found.losses[k],
                                 alone.losses[k]);
            }
            cut_job_same(&first, &found, &s);
        }
    }
}

/* Splits states, or gradients and weights of one microbatch a replica. Shares add up their squares in another order. */
static void draw_shares_of_tree(uint64_t seed, uint64_t draws, const struct job_cut *cut, struct cut_job *s)
{
    const bool once = random_below(seed, draws, 2) && cut->schedule != PIPELINE_INTERLEAVED;
    if (once) s->microbatches = cut->data;
    s->zero = once ? 2 + (uint32_t)random_below(seed, draws + 1, 2) : ZERO_STATES;
    s->offload = random_below(seed, draws + 2, 3) == 0;
    s->clip = 0;
}

/* The tree's sums have the same bits spilled on one device, and for any number of replicas, stages and chunks. */
static void test_bits_of_trees(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("trees");
    for (size_t c = 0; c < CUT_JOB_CONFIGS; c++)
        for (uint64_t n = 0; n < TREES; n++) {
            const uint64_t draws = 1000 + 16 * (c * TREES + n);
            const uint32_t pipeline = 1 + (uint32_t)random_below(seed, draws, 3);
            const bool interleaved = pipeline == 2 && random_below(seed, draws + 1, 2);
            struct job_cut cut = {.pipeline = pipeline, .buckets = 1,
                                  .data = 1 + (uint32_t)random_below(seed, draws + 2, 4),
                              .chunks = interleaved || pipeline == 1
                                        ? 1 + (uint32_t)random_below(seed, draws + 3, 3) : 1,
                              .schedule = interleaved ? PIPELINE_INTERLEAVED : PIPELINE_1F1B};
            if (interleaved && cut.chunks == 1) cut.chunks = 2;
            if (pipeline * cut.data > CUT_JOB_DEVICES) cut.data = 2;
            struct cut_job s = {.config = cut_job_configs[c], .tree = true, .every = 2, .held_out = 2};
            s.precision = test_precision(random_below(seed, draws + 4, 3));
            s.microbatches = cut.data == 1 ? 1 + random_below(seed, draws + 5, 8)
                                           : cut.data * (UINT64_C(1) << random_below(seed, draws + 5, 3));
            if (interleaved) s.microbatches = cut.data * 2 * (1 + random_below(seed, draws + 6, 2));
            if (random_below(seed, draws + 7, 2) && cut_job_clips(cut_job_configs[c])) s.clip = 0.2;
            if (cut.data > 1 && random_below(seed, draws + 9, 2)) draw_shares_of_tree(seed, draws + 10, &cut, &s);
            if (pipeline > 1 && cut.chunks == 1 && random_below(seed, draws + 13, 2))
                cut.schedule = random_below(seed, draws + 14, 2) ? PIPELINE_ZB_H1 : PIPELINE_ZB_H2;
            struct cut_job_outcome wanted, found;
            struct plan plan = {0};
            cut_job_plan(&s, &plan);
            cut_job_run(&plan, &(struct run_options){.poison = true}, &wanted);
            s.cut = &cut;
            s.recompute = random_below(seed, draws + 8, 2) ? RECOMPUTE_NONE : RECOMPUTE_STAGE;
            cut_job_plan(&s, &plan);
            cut_job_run(&plan, &(struct run_options){.poison = true, .delay_seed = seed + n, .record_spans = true},
                        &found);
            cut_job_same(&wanted, &found, &s);
        }
}

/* A job whose loss is not finite ends, or leaves out the step, as on one device; replicas agree. */
static void test_losses_that_are_not_finite(void **state)
{
    (void)state;
    static const enum run_on_nan ways[] = {RUN_NAN_STOP, RUN_NAN_STOP, RUN_NAN_SKIP};
    const struct job_cut *const those[] = {&job_cuts[3], &job_cuts[5], &job_cuts_replicated[2],
                                           &job_cuts_replicated[6]};
    for (size_t w = 0; w < ARRAY_COUNT(ways); w++) {
        struct cut_job s = {.config = cut_job_configs[0], .microbatches = 8, .diverges = true,
                            .clip = w == 0 ? 0 : 1e20};
        struct cut_job_outcome wanted, found;
        struct plan plan = {0};
        cut_job_plan(&s, &plan);
        cut_job_run(&plan, &(struct run_options){.poison = true, .on_nan = ways[w]}, &wanted);
        if (isfinite(wanted.losses[wanted.minibatches - 1])) fail_msg("the job does not diverge");
        for (size_t i = 0; i < ARRAY_COUNT(those); i++) {
            s.cut = those[i];
            s.offload = (i + w) % 2 == 0;
            cut_job_plan(&s, &plan);
            cut_job_run(&plan, &(struct run_options){.poison = true, .delay_seed = 1 + i, .on_nan = ways[w]}, &found);
            assert_int_equal(found.minibatches, wanted.minibatches);
            if (isfinite(found.losses[found.minibatches - 1])) fail_msg("the replicas do not diverge");
            if (s.cut->data == 1) assert_true(found.fingerprint == wanted.fingerprint);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits_of_one_device), cmocka_unit_test(test_bits_of_families),
        cmocka_unit_test(test_bits_of_equal_replicas),
        cmocka_unit_test(test_bits_of_trees),
        cmocka_unit_test(test_losses_that_are_not_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
