/* label: long, all rounds: slow
 * Replicas that split states, gradients or weights, and hosts that update them, change where a job is computed, not
 * what.
 *
 * For every family, random levels, replicas, cuts and schedules, with random pauses on every stream and NaN in all
 * memory that was released: all levels that add up in one order have the same bits; clipped shares differ by rounding,
 * and the same shares have the same bits.
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
#include "models/job/chunk_memory.h"
#include "tests/support/exec/support_cut_job.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_seed.h"

#define SHARE_CASES support_rounds(3, 32)
#define CLIPPED support_rounds(2, 16)
#define BELOW support_rounds(3, 32)
#define SWAPPED support_rounds(4, 20)

/* Draws a cut for `data` replicas, which have `each` microbatches; with backward passes in two units only if
 * `halves`. */
static struct job_cut draw_cut(uint64_t seed, uint64_t n, uint32_t data, uint64_t each, bool halves)
{
    static const uint32_t schedules[] = {PIPELINE_GPIPE, PIPELINE_1F1B, PIPELINE_INTERLEAVED};
    struct job_cut cut = {.pipeline = 1 + (uint32_t)random_below(seed, n, 3), .data = data, .buckets = 1, .chunks = 1};
    cut.schedule = schedules[random_below(seed, n + 1, 3)];
    if (cut.pipeline > 1 && halves && random_below(seed, n + 3, 3) == 0) {
        cut.schedule = random_below(seed, n + 2, 2) ? PIPELINE_ZB_H1 : PIPELINE_ZB_V;
        cut.chunks = cut.schedule == PIPELINE_ZB_V ? 2 : 1;
        return cut;
    }
    if (cut.pipeline > 1 && cut.schedule == PIPELINE_INTERLEAVED && each % cut.pipeline != 0)
        cut.schedule = PIPELINE_1F1B;
    if (cut.schedule == PIPELINE_INTERLEAVED)
        cut.chunks = cut.pipeline == 3 ? 2 : 2 + (uint32_t)random_below(seed, n + 2, 2);
    else if (cut.pipeline == 1) cut.chunks = 1 + (uint32_t)random_below(seed, n + 2, 4);
    else cut.buckets = 1 + (uint32_t)random_below(seed, n + 2, 2);
    return cut;
}

/*
 * Shares change where a job is computed, not what. Levels 0 and 1 add up each replica's microbatches, then the
 * replicas' sums; 2 and 3 add up the replicas' gradients of each microbatch, then these. With one microbatch each, all
 * four have the same bits. So do gradients that are exchanged in 16 bits.
 */
static void test_bits_of_shares(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("shares");
    for (size_t c = 0; c < CUT_JOB_CONFIGS; c++)
        for (uint64_t n = 0; n < SHARE_CASES; n++) {
            const uint64_t at = 20 * (c * SHARE_CASES + n);
            const uint32_t data = 2 + (uint32_t)random_below(seed, at, 3);
            const uint64_t each = 1 + random_below(seed, at + 1, 4);
            struct cut_job s = {.config = cut_job_configs[c], .microbatches = data * each};
            struct cut_job_outcome wanted, found;
            struct plan plan = {0};
            struct job_cut cut = {.pipeline = 1, .chunks = 1, .buckets = 1, .schedule = PIPELINE_GPIPE, .data = data};
            s.precision = test_precision(random_below(seed, at + 2, 3));
            s.moments = random_below(seed, at + 3, 3) == 0 ? PRECISION_BF16 : PRECISION_FP32;
            s.optimizer = random_below(seed, at + 4, 4) == 0 ? OPTIMIZER_MOMENTUM : OPTIMIZER_ADAMW;
            const uint32_t zero = (uint32_t)random_below(seed, at + 5, 4);
            if (s.precision != PRECISION_FP32 && random_below(seed, at + 16, 2)) s.gradients = PRECISION_BF16;
            s.every = random_below(seed, at + 13, 3);
            s.held_out = s.every > 0 ? 1 + random_below(seed, at + 14, 2) : 0;
            s.cut = &cut;
            s.zero = zero < ZERO_GRADIENTS || each == 1 ? ZERO_NOTHING : ZERO_GRADIENTS;
            cut_job_plan(&s, &plan);
            cut_job_run(&plan, &(struct run_options){.poison = true}, &wanted);
            cut = draw_cut(seed, at + 6, data, each, true);
            s.zero = zero;
            s.offload = random_below(seed, at + 15, 2);
            s.stored = random_below(seed, 1000000 + at, 2);
            s.prefetch = (uint32_t)random_below(seed, at + 10, 2);
            s.recompute = random_below(seed, at + 11, 2) ? RECOMPUTE_NONE : RECOMPUTE_STAGE;
            s.blocking = random_below(seed, at + 12, 4) == 0;
            cut_job_plan(&s, &plan);
            cut_job_run(&plan, &(struct run_options){.poison = true, .delay_seed = n % 3 == 0 ? 0 : seed + n,
                                                     .record_spans = true},
                &found);
            cut_job_same(&wanted, &found, &s);
        }
}

/* Runs a plan, and reads the gradients' norms in its log. */
static void run_with_norms(struct plan *plan, struct run_options options, struct cut_job_outcome *out)
{
    char path[] = "/tmp/test-pipeline-norms-XXXXXX", *line = NULL;
    const int file = mkstemp(path);
    size_t room = 0;
    uint32_t count = 0;
    assert_true(file >= 0);
    close(file);
    options.log_path = path;
    cut_job_run(plan, &options, out);
    FILE *log = fopen(path, "r");
    assert_non_null(log);
    while (getline(&line, &room, log) > 0) {
        const char *norm = strstr(line, "\"norm\":");
        if (!norm) continue;
        assert_true(count < CUT_JOB_STEPS);
        out->norms[count++] = strtod(norm + strlen("\"norm\":"), NULL);
    }
    assert_int_equal(count, CUT_JOB_STEPS);
    free(line);
    fclose(log);
    unlink(path);
}

static void assert_near(const struct cut_job_outcome *wanted, const struct cut_job_outcome *found,
                        const struct cut_job *s, double most)
{
    for (uint32_t i = 0; i < CUT_JOB_STEPS; i++)
        if (!(fabs(found->losses[i] / wanted->losses[i] - 1) <= most) ||
            !(fabs(found->norms[i] / wanted->norms[i] - 1) <= most))
            fail_msg("%.60s..., %u stages, %u chunks, %u replicas, %s, zero %u, clip %g: loss %u is %.9g (one device: "
                     "%.9g), norm %.9g (%.9g)", s->config, s->cut->pipeline, s->cut->chunks, s->cut->data,
                     pipeline_schedule_names[s->cut->schedule], s->zero, s->clip, i, found->losses[i],
                     wanted->losses[i], found->norms[i], wanted->norms[i]);
}

/* Clipped replicas with shares have the losses and norms of one device, to rounding: a share cuts tensors, whose
 * squares are added up in another order. Other ways to compute with the same shares have the same bits. */
static void test_clipped_shares(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("clipped shares");
    for (size_t c = 0; c < CUT_JOB_CONFIGS; c++)
        for (uint64_t n = 0; n < CLIPPED && cut_job_clips(cut_job_configs[c]); n++) {
            const uint64_t at = 20 * (c * CLIPPED + n);
            const uint32_t data = 2 + (uint32_t)random_below(seed, at, 3),
                zero = 1 + (uint32_t)random_below(seed, at + 1, 3);
            const uint64_t each = 1 + random_below(seed, at + 2, 4);
            const struct job_cut cut = draw_cut(seed, at + 3, data, each, true);
            struct cut_job s = {.config = cut_job_configs[c], .microbatches = data * each};
            struct cut_job_outcome alone, found, again;
            struct plan plan = {0};
            s.clip = 0.02 + 0.4 * random_unit(seed, at + 7);
            s.precision = test_precision(random_below(seed, at + 8, 4));
            s.optimizer = random_below(seed, at + 9, 2) ? OPTIMIZER_MOMENTUM : OPTIMIZER_ADAMW;
            s.every = random_below(seed, at + 10, 3);
            s.held_out = s.every > 0 ? 1 + random_below(seed, at + 11, 2) : 0;
            cut_job_plan(&s, &plan);
            run_with_norms(&plan, (struct run_options){.poison = true}, &alone);
            s.cut = &cut;
            s.zero = zero;
            for (uint32_t way = 0; way < 2; way++) {
                s.prefetch = (uint32_t)random_below(seed, at + 12 + way, 2);
                s.recompute = random_below(seed, at + 14 + way, 2) ? RECOMPUTE_NONE : RECOMPUTE_STAGE;
                s.blocking = random_below(seed, at + 16 + way, 4) == 0;
                s.offload = random_below(seed, at + 18 + way, 2);
                cut_job_plan(&s, &plan);
                run_with_norms(&plan, (struct run_options){.poison = true, .delay_seed = way == 0 ? 0 : seed + n,
                                                           .record_spans = true},
                               way == 0 ? &found : &again);
            }
            assert_near(&alone, &found, &s, s.precision == PRECISION_FP32 ? 1e-5 : 1e-2);
            cut_job_same(&found, &again, &s);
            assert_memory_equal(found.norms, again.norms, sizeof found.norms);
        }
}

/* Weights that come up for each pass, whole or in shares, and gradients that hosts add up, have the bits of the same
 * job without offloading. */
static void test_bits_of_weights_below(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("weights below");
    for (size_t c = 0; c < CUT_JOB_CONFIGS; c++)
        for (uint64_t n = 0; n < BELOW; n++) {
            const uint64_t at = 20 * (c * BELOW + n);
            const uint32_t data = 1 + (uint32_t)random_below(seed, at, 4),
                zero = n % 2 == 0 ? ZERO_NOTHING : ZERO_WEIGHTS;
            const uint64_t each = data > 1 && zero == ZERO_NOTHING ? 1 : 1 + random_below(seed, at + 1, 4);
            const struct job_cut cut = draw_cut(seed, at + 2, data, each, false);
            struct cut_job s = {.config = cut_job_configs[c], .cut = &cut, .zero = zero, .microbatches = data * each};
            struct cut_job_outcome wanted, found;
            struct plan plan = {0};
            s.precision = test_precision(random_below(seed, at + 6, 3));
            s.moments = random_below(seed, at + 7, 3) == 0 ? PRECISION_BF16 : PRECISION_FP32;
            s.every = random_below(seed, at + 8, 3);
            s.held_out = s.every > 0 ? 1 + random_below(seed, at + 9, 2) : 0;
            if (cut_job_clips(s.config) && random_below(seed, at + 10, 3) == 0)
                s.clip = 0.02 + 0.4 * random_unit(seed, at + 11);
            s.tree = zero == ZERO_NOTHING && (each == 1 || each == 2) && random_below(seed, at + 12, 3) == 0;
            cut_job_plan(&s, &plan);
            cut_job_run(&plan, &(struct run_options){.poison = true}, &wanted);
            s.weights_below = true;
            s.stored = random_below(seed, 1000000 + at, 2);
            s.prefetch = (uint32_t)random_below(seed, at + 13, 3);
            s.recompute = random_below(seed, at + 14, 2) ? RECOMPUTE_NONE : RECOMPUTE_STAGE;
            s.blocking = random_below(seed, at + 15, 4) == 0;
            cut_job_plan(&s, &plan);
            cut_job_run(&plan, &(struct run_options){.poison = true, .delay_seed = n % 3 == 0 ? 0 : seed + n,
                                                     .record_spans = true},
                        &found);
            cut_job_same(&wanted, &found, &s);
        }
}

/* Places for swapped activations: as large as the largest, without a last chunk that is larger. */
struct places {
    uint64_t each;
    uint32_t count;
};

static struct places places_of(const struct job *job)
{
    const uint32_t chunks = parallel_chunks(&job->parallel);
    struct places places = {0};
    for (uint32_t c = 0; c < chunks; c++) {
        const uint64_t bytes = size_align(chunk_memory(job, parallel_layers(job, c)).activation_bytes,
                                          MEMORY_ALIGNMENT);
        if (bytes == 0 || (c + 1 == chunks && bytes > places.each)) continue;
        if (bytes > places.each) places.each = bytes;
        places.count++;
    }
    return places;
}

/* Adds up the swapped and the recomputed chunks of a plan. */
static void count_ways(const struct plan *plan, uint32_t *swapped, uint32_t *recomputed)
{
    const struct parallel *p = &plan->jobs.jobs[0].parallel;
    for (uint32_t c = 0; c < p->chosen; c++) *recomputed += p->choices[c] == PARALLEL_AGAIN;
    for (uint32_t o = 0; o < plan->op_count; o++) {
        const struct plan_op *op = &plan->ops[o];
        if (op->kind == OP_COPY && op->stream == STREAM_D2H)
            *swapped += plan->buffers[plan->accesses[op->first_access].buffer].kind == BUFFER_ACTIVATIONS;
    }
}

/* Activations that leave for the host and come back, encoded or not, on devices too small for all, and chunks that are
 * recomputed instead by the planner's choice, change nothing. */
static void test_bits_of_swapping(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("swapping");
    uint32_t swapped = 0, recomputed = 0;
    for (size_t c = 0; c < CUT_JOB_CONFIGS; c++)
        for (uint64_t n = 0; n < SWAPPED; n++) {
            const uint64_t at = 20 * (c * SWAPPED + n);
            const uint32_t data = 1 + (uint32_t)random_below(seed, at, 3);
            const struct job_cut cut = {.pipeline = 1, .chunks = 4 + (uint32_t)random_below(seed, at + 1, 3),
                                        .buckets = 1,
                                        .schedule = random_below(seed, at + 2, 2) ? PIPELINE_1F1B : PIPELINE_GPIPE,
                                        .data = data};
            struct cut_job s = {.config = cut_job_configs[c], .cut = &cut, .microbatches = data, .weights_below = true};
            struct cut_job_outcome wanted, found;
            struct plan plan = {0};
            s.zero = random_below(seed, at + 3, 2) ? ZERO_WEIGHTS : ZERO_NOTHING;
            s.precision = test_precision(random_below(seed, at + 4, 3));
            s.every = random_below(seed, at + 5, 3);
            s.held_out = s.every > 0 ? 1 : 0;
            if (cut_job_clips(s.config) && random_below(seed, at + 6, 3) == 0)
                s.clip = 0.02 + 0.4 * random_unit(seed, at + 7);
            const uint32_t recompute = random_below(seed, at + 9, 3) == 0 ? RECOMPUTE_FULL : RECOMPUTE_NONE;
            const bool coded = random_below(seed, 2000000 + at, 3) == 0; /* what is kept is rounded */
            if (coded) s.kept_ratio = random_below(seed, 2000001 + at, 2) ? 2 : 3.75;
            if (coded) s.recompute = recompute;
            if (coded && s.precision == PRECISION_BF16) s.precision = PRECISION_BF16_WEIGHTS; /* 16 bits have no code */
            cut_job_plan(&s, &plan);
            cut_job_run(&plan, &(struct run_options){.poison = true}, &wanted);
            s.swaps = true;
            s.stored = random_below(seed, 1000000 + at, 3) == 0;
            s.prefetch = (uint32_t)random_below(seed, at + 8, 2);
            s.recompute = recompute;
            cut_job_plan(&s, &plan);
            const struct places places = places_of(&plan.jobs.jobs[0]); /* the last one may not be used to its end */
            const uint32_t least = s.prefetch + 2, fewer = places.count > least ? places.count - least : 0;
            s.device_bytes = plan_device_bytes(&plan, 0) + places.each * (1 - random_below(seed, at + 10, fewer + 1));
            plan_release(&plan);
            s.chooses = !coded && s.recompute == RECOMPUTE_NONE && random_below(seed, at + 11, 4) > 0;
            cut_job_plan(&s, &plan);
            count_ways(&plan, &swapped, &recomputed);
            cut_job_run(&plan, &(struct run_options){.poison = true, .delay_seed = n % 3 == 0 ? 0 : seed + n,
                                                     .record_spans = true},
                        &found);
            cut_job_same(&wanted, &found, &s);
        }
    print_message("%u chunks swapped, %u recomputed\n", swapped, recomputed);
    assert_true(swapped > 0 && recomputed > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits_of_swapping),
        cmocka_unit_test(test_bits_of_shares),
        cmocka_unit_test(test_clipped_shares),
        cmocka_unit_test(test_bits_of_weights_below),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
