/* label: medium, all rounds: slow
 * Sequences that go through a pipeline in slices of tokens (terapipe) are trained like whole ones.
 *
 * For GPT-2 and Llama, random unequal slices, stages, replicas, shares, tensor groups, microbatches, ways to recompute,
 * places of states and weights, sums and evaluations, with random pauses on every stream and NaN in all memory that was
 * released: the plan passes its check, and the run has the losses, also the held-out ones, of the job spilled on one
 * device, to rounding. Gradients are added up slice by slice, the last slice of a microbatch first: the bits depend on
 * the slices, not on stages, recomputation, offloading or pauses. They are those of one stage that passes over all
 * slices one after the other. Sums as a tree have the bits of one replica.
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
#include "base/arena.h"
#include "exec/network/chunk.h"
#include "models/job/chunk_memory.h"
#include "tests/support/exec/support_cut_job.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_seed.h"

enum { CAUSAL = 3, TOKENS = 16 };
#define CASES support_rounds(5, 14)
#define FAMILY_CASES support_rounds(1, 4)

/* Draws slices of at least one token each that make up the sequence. */
static void draw_slices(uint64_t seed, uint64_t n, struct cut_job *s)
{
    uint32_t left = TOKENS;
    s->slices = 0;
    while (left > 0) {
        uint32_t tokens = 1 + (uint32_t)random_below(seed, 100 * n + s->slices, left < 7 ? left : 7);
        s->slice_tokens[s->slices++] = tokens;
        left -= tokens;
    }
}

static struct cut_job draw(uint64_t seed, uint64_t n, const char *config, struct job_cut *cut)
{
    static const uint32_t recompute[] = {RECOMPUTE_NONE, RECOMPUTE_SELECTIVE, RECOMPUTE_FULL, RECOMPUTE_STAGE};
    const uint64_t draws = 1000000 + 20 * n;
    *cut = (struct job_cut){.pipeline = 1 + (uint32_t)random_below(seed, draws, 4), .chunks = 1, .buckets = 1,
                            .schedule = PIPELINE_TERAPIPE, .data = 1 + (uint32_t)random_below(seed, draws + 1, 3)};
    struct cut_job s = {.config = config, .cut = cut,
                        .recompute = recompute[random_below(seed, draws + 2, 4)],
                        .precision = test_precision(random_below(seed, draws + 3, 3)),
                        .blocking = random_below(seed, draws + 4, 4) == 0,
                        .optimizer = OPTIMIZER_MOMENTUM,
                        .microbatches = cut->data * (1 + random_below(seed, draws + 5, 3))};
    if (cut->data > 1) s.zero = (uint32_t)random_below(seed, draws + 6, 4);
    s.prefetch = (uint32_t)random_below(seed, draws + 7, 2);
    if (random_below(seed, draws + 8, 2)) s.clip = 0.05 + 0.5 * random_unit(seed, draws + 9);
    s.offload = random_below(seed, draws + 10, 3) == 0;
    s.weights_below = (cut->data == 1 || s.zero == ZERO_WEIGHTS) && random_below(seed, draws + 11, 3) == 0;
    s.every = random_below(seed, draws + 12, 3);
    s.held_out = 1 + random_below(seed, draws + 13, 2);
    s.tensor = 1 + (uint32_t)random_below(seed, draws + 14, 2);
    s.scatters = s.tensor > 1 && random_below(seed, draws + 15, 2);
    s.devices = cut->pipeline * cut->data * s.tensor;
    s.tree = random_below(seed, draws + 16, 3) == 0 && !(cut->data > 1 && s.zero > 0);
    if (s.tree && cut->data > 1) s.microbatches = cut->data << random_below(seed, draws + 5, 3);
    draw_slices(seed, n, &s);
    return s;
}

/* Returns the job that has the same bits: one stage and everything on its devices; for a tree one replica. */
static struct cut_job reference(const struct cut_job *s, struct job_cut *one)
{
    struct cut_job whole = *s;
    *one = *s->cut;
    one->pipeline = 1;
    if (s->tree) one->data = 1;
    whole.cut = one;
    whole.recompute = RECOMPUTE_NONE;
    whole.zero = s->zero >= ZERO_GRADIENTS ? ZERO_GRADIENTS : s->clip > 0 ? s->zero : ZERO_NOTHING;
    whole.blocking = whole.offload = whole.weights_below = whole.scatters = false;
    return whole;
}

/* Compares with the job as a whole, to rounding. */
static void compare_with_whole(const struct cut_job *s, const struct cut_job_outcome *found)
{
    const double tolerance = s->precision == PRECISION_FP32 ? 1e-5 : 1e-2;
    struct cut_job alone = *s;
    struct cut_job_outcome wanted;
    struct plan plan = {0};
    alone.cut = NULL;
    cut_job_plan(&alone, &plan);
    cut_job_run(&plan, &(struct run_options){.poison = true}, &wanted);
    for (uint32_t i = 0; i < CUT_JOB_STEPS; i++)
        if (!(fabs(found->losses[i] / wanted.losses[i] - 1) <= tolerance))
            fail_msg("%.25s..., %u slices, %u stages, %u replicas, precision %u: loss %u is %.9g, of one device %.9g",
                     s->config,
                     s->slices, s->cut->pipeline, s->cut->data, s->precision, i, found->losses[i], wanted.losses[i]);
    assert_int_equal(found->evaluation_count, wanted.evaluation_count);
    for (uint32_t i = 0; i < found->evaluation_count; i++)
        if (!(fabs(found->evaluations[i].loss / wanted.evaluations[i].loss - 1) <= tolerance))
            fail_msg("%.25s..., %u slices: held-out loss %u is %.9g, of one device %.9g", s->config, s->slices, i,
                     found->evaluations[i].loss, wanted.evaluations[i].loss);
}

static void check_bits(uint64_t seed, uint64_t n, const char *config)
{
    struct job_cut cut, one;
    const struct cut_job s = draw(seed, n, config, &cut);
    const struct cut_job whole = reference(&s, &one);
    struct cut_job_outcome wanted, found;
    struct plan plan = {0};
    print_message("%.25s..., %u stages, %u replicas, %u in a group, zero %u, %u slices, recompute %s, %u microbatches, "
                  "precision %u%s%s%s, clip %g\n", config, cut.pipeline, cut.data, s.tensor, s.zero, s.slices,
                  recompute_names[s.recompute], (unsigned)s.microbatches, s.precision, s.tree ? ", tree" : "",
                  s.every > 0 ? ", evaluated" : "",
                  s.weights_below ? ", weights below" : s.offload ? ", states below" : "", s.clip);
    cut_job_plan(&whole, &plan);
    cut_job_run(&plan, &(struct run_options){.poison = true}, &wanted);
    cut_job_plan(&s, &plan);
    cut_job_run(&plan, &(struct run_options){.poison = true, .delay_seed = n % 3 == 0 ? 0 : seed + n,
                                             .record_spans = true},
                &found);
    cut_job_same(&wanted, &found, &s);
    compare_with_whole(&s, &found);
}

static void test_bits_of_slices(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("slices");
    for (uint64_t c = 0; c < CAUSAL; c++)
        for (uint64_t n = 0; n < CASES; n++) check_bits(seed, c * CASES + n, cut_job_configs[c]);
}

static void test_families(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("slices of families");
    for (uint64_t c = 0; c < CUT_JOB_FAMILIES; c++)
        for (uint64_t n = 0; n < FAMILY_CASES; n++) check_bits(seed, c * FAMILY_CASES + n, cut_job_families[c]);
}

/* The planner chooses the slices; a job whose slices it does not cut is trained as a whole. */
static void test_chosen_slices(void **state)
{
    (void)state;
    static const struct job_cut cut = {3, 1, 1, PIPELINE_TERAPIPE, 1};
    const struct cut_job s = {.config = cut_job_configs[0], .cut = &cut, .optimizer = OPTIMIZER_MOMENTUM,
                              .microbatches = 2};
    struct plan plan = {0};
    struct cut_job_outcome found;
    cut_job_plan(&s, &plan);
    assert_true(plan.jobs.jobs[0].parallel.slices > 0);
    cut_job_run(&plan, &(struct run_options){.poison = true, .delay_seed = 1}, &found);
    compare_with_whole(&s, &found);
}

/* Slices use their buffers to the last byte, and those of a chunk are as large as the largest slice's. */
static void test_buffers(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("buffers");
    for (uint64_t n = 0; n < CAUSAL * CASES; n++) {
        struct job_cut cut;
        struct cut_job s = draw(seed, n, cut_job_configs[n % CAUSAL], &cut);
        struct plan plan = {0};
        s.offload = s.weights_below = false;
        cut_job_plan(&s, &plan);
        const struct job *job = &plan.jobs.jobs[0];
        for (uint32_t c = 0; c < cut.pipeline; c++) {
            struct arena arena = {0};
            struct chunk_tables tables;
            struct error err = {0};
            uint64_t activations = 0, workspace = 0;
            if (chunk_tables_init(job, 0, parallel_layers(job, c), &arena, &tables, &err)) fail_msg("%s", err.text);
            for (uint32_t i = 0; i < parallel_slices(&job->parallel) && job->parallel.slices > 1; i++) {
                const struct chunk_tables *own = &tables.slices[i];
                const struct chunk_memory *m = &own->memory;
                const struct unit_tables *last = &own->units[m->piece_count - 1];
                const uint64_t kept = m->inputs_only ? last->inputs.bytes : last->activations.bytes;
                if (m->activation_bytes > 0) assert_int_equal(m->kept_offset + kept, m->activation_bytes);
                const uint32_t how = UNIT_GRADIENTS_OUT | (m->activation_bytes > 0 || m->inputs_only ? UNIT_KEEP : 0) |
                                     (m->inputs_only ? UNIT_INPUTS : 0);
                assert_true(m->scratch_offset + last->workspace[UNIT_BACKWARD][how].bytes <= m->context_offset);
                assert_true(m->context_offset < m->workspace_bytes);
                activations = m->activation_bytes > activations ? m->activation_bytes : activations;
                workspace = m->workspace_bytes > workspace ? m->workspace_bytes : workspace;
            }
            if (job->parallel.slices > 1) assert_int_equal(tables.memory.activation_bytes, activations);
            if (job->parallel.slices > 1) assert_int_equal(tables.memory.workspace_bytes, workspace);
            arena_release(&arena);
        }
        plan_release(&plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits_of_slices),
        cmocka_unit_test(test_families),
        cmocka_unit_test(test_chosen_slices),
        cmocka_unit_test(test_buffers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
