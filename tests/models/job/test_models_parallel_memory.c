/*
 * models/job/parallel_memory.h: parameters and bytes by hand, and sums over chunks. The figures of papers are in
 * test_models_parallel_papers.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>

#include "base/random.h"
#include "base/size.h"
#include "models/job/parallel_memory.h"
#include "tests/support/planner/support_parallel.h"
#include "tests/support/support_seed.h"

static struct parallel_layers one_block(void)
{
    return (struct parallel_layers){5, 1};
}

/* --- states ----------------------------------------------------------------------------------- */

static void shares_are_whole_parameters(void **state)
{
    (void)state;
    const struct parameter_bytes each = {.weight = 2, .gradient = 4, .state = 12};
    struct rank_state s = parallel_zero_state(23, each, 5, 3); /* 5 each, the last one 3 */
    assert_int_equal(s.weight_bytes, 10);
    assert_int_equal(s.gradient_bytes, 20);
    assert_int_equal(s.state_bytes, 60);
    s = parallel_zero_state(23, each, 5, 0);
    assert_int_equal(s.weight_bytes + s.gradient_bytes + s.state_bytes, 23 * 18);
}

static void bytes_of_a_parameter(void **state)
{
    (void)state;
    static const struct {
        uint32_t precision, optimizer, moments;
        struct parameter_bytes each;
    } rows[] = {
        {PRECISION_BF16, OPTIMIZER_ADAMW, PRECISION_FP32, {2, 4, 12}},
        {PRECISION_BF16, OPTIMIZER_ADAMW, PRECISION_BF16, {2, 4, 8}},
        {PRECISION_BF16, OPTIMIZER_SGD, PRECISION_FP32, {2, 4, 4}},
        {PRECISION_FP32, OPTIMIZER_ADAMW, PRECISION_FP32, {4, 4, 8}},
        {PRECISION_FP32, OPTIMIZER_MOMENTUM, PRECISION_FP32, {4, 4, 4}},
        {PRECISION_FP32, OPTIMIZER_SGD, PRECISION_FP32, {4, 4, 0}},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct job job = {.precision = rows[i].precision,
                          .optimizer = {.kind = rows[i].optimizer, .moments = rows[i].moments}};
        struct parameter_bytes each = parallel_parameter_bytes(&job);
        assert_int_equal(each.weight, rows[i].each.weight);
        assert_int_equal(each.gradient, rows[i].each.gradient);
        assert_int_equal(each.state, rows[i].each.state);
    }
}

/* --- parameters ------------------------------------------------------------------------------- */

/*
 * Each of t members holds whole copies of the tensors that are only as wide as the network. In a block these are two
 * norms and the biases of two results, 6 h; outside, the last norm, 2 h, and the positions, s h. With several stages
 * the last one has a copy of the table.
 */
static void groups_have_norms_and_tables_several_times(void **state)
{
    (void)state;
    for (int shape = 0; shape < SUPPORT_GPT_COUNT; shape++)
        for (uint32_t pipeline = 1; pipeline <= 8; pipeline *= 2) {
            struct support_gpt g = support_gpts[shape];
            struct job job = support_parallel_job(support_gpt(g), 1, 8, pipeline);
            uint64_t sum = 0, h = g.width, l = g.blocks;
            for (uint32_t chunk = 0; chunk < parallel_chunks(&job.parallel); chunk++)
                sum += 8 * parallel_parameters(&job, parallel_layers(&job, chunk));
            uint64_t once = 12 * l * h * h + 13 * l * h + (51200 + 2048) * h + 2 * h;
            uint64_t table = pipeline > 1 ? 51200 * h : 0;
            assert_int_equal(sum, once + 7 * (6 * l * h + 2 * h + 2048 * h) + table);
            assert_int_equal(parallel_tied_bytes(&job), table / 8 * 4);
        }
}

/* In a V the last chunk is on the first stage, which has the table. */
static void a_table_is_copied_to_another_stage_only(void **state)
{
    (void)state;
    struct job job = support_parallel_job(support_gpt(support_gpts[SUPPORT_GPT_22B]), 1, 2, 4);
    struct parallel_layers last = parallel_layers(&job, 3);
    uint64_t with = parallel_parameters(&job, last);
    job.parallel.schedule = PIPELINE_ZB_V;
    assert_int_equal(with - parallel_parameters(&job, last), 0); /* chunks 1: still the last stage */
    job.parallel.chunks = 2;
    assert_int_equal(with - parallel_parameters(&job, last), 25600 * 6144);
    assert_int_equal(parallel_tied_bytes(&job), 0);
    job.parallel.schedule = PIPELINE_INTERLEAVED;
    assert_int_equal(with, parallel_parameters(&job, last));
    job.network.tied_head = false; /* a separate table with the same number of parameters */
    assert_int_equal(with, parallel_parameters(&job, last));
    assert_int_equal(parallel_tied_bytes(&job), 0);
}

/* 50257 words on 4: 12565 each, rounded up to whole 16 bytes; 15 rows in all belong to no word. */
static void words_are_rounded_up(void **state)
{
    (void)state;
    struct job job = support_parallel_job(support_preset("gpt2"), 1, 4, 1);
    struct parallel_layers embedding = {0, 1};
    assert_int_equal(parallel_parameters(&job, embedding), (12568 + 1024) * 768);
}

static void updates_are_of_shares(void **state)
{
    (void)state;
    struct job job = support_parallel_job(support_gpt(support_gpts[SUPPORT_GPT_22B]), 1, 8, 1);
    struct parallel_layers block = one_block();
    /* 12 h^2 / 8 + (3 h + 4 h) / 8 + 6 h */
    uint64_t h = 6144, all = 12 * h * h / 8 + 7 * h / 8 + 6 * h;
    job.parallel.data = 5;
    assert_int_equal(parallel_updated_parameters(&job, block), all);
    for (uint32_t zero = 1; zero <= 3; zero++) {
        job.parallel.zero = zero;
        assert_int_equal(parallel_updated_parameters(&job, block), (all + 4) / 5);
        struct rank_state s = parallel_state(&job, block);
        assert_int_equal(s.state_bytes, 12 * ((all + 4) / 5));
        assert_int_equal(s.gradient_bytes, 4 * (zero >= 2 ? (all + 4) / 5 : all));
        assert_int_equal(s.weight_bytes, 2 * (zero == 3 ? (all + 4) / 5 : all));
    }
}

/* --- activations ------------------------------------------------------------------------------ */

/* B 2, T 96, R 192, C 768, F 3072, H 12, V 50257 on 2 devices: 25136. */
static void kept_by_hand(void **state)
{
    (void)state;
    struct job job = support_parallel_job(support_preset("gpt2"), 2, 2, 1);
    struct parallel_layers head = {13, 1}, two = {11, 2}, start = {0, 2};
    uint64_t rows = 192 * 768;
    job.sequence = 96;
    job.precision = PRECISION_FP32;
    /* norm1, middle, norm2; a half of q, k, v, attention and of fc, gelu; of 12 heads' weights 6 */
    uint64_t block = 4 * (3 * rows + 2 * rows + 4 * rows + 192 * 6 * 96);
    assert_int_equal(parallel_kept_bytes(&job, one_block(), false), block);
    assert_int_equal(parallel_kept_bytes(&job, two, false), 2 * block + 4 * rows);
    assert_int_equal(parallel_kept_bytes(&job, start, false), block + 4 * rows);
    assert_int_equal(parallel_kept_bytes(&job, head, false), 4 * (rows + 192 * 25136));
    job.precision = PRECISION_BF16; /* but for the logits */
    assert_int_equal(parallel_kept_bytes(&job, one_block(), false), block / 2);
    assert_int_equal(parallel_kept_bytes(&job, head, false), 2 * rows + 4 * 192 * 25136);
    job.parallel.recompute = RECOMPUTE_FULL;
    assert_int_equal(parallel_kept_bytes(&job, one_block(), false), 0);
    assert_int_equal(parallel_kept_bytes(&job, two, true), 2 * rows);
}

/* llama-2-7b, R 3 * 64, on 4 devices of 8 heads; F 11008, V 32000. Three numbers for each of F. */
static void llama_by_hand(void **state)
{
    (void)state;
    struct job job = support_parallel_job(support_preset("llama-2-7b"), 3, 4, 1);
    struct parallel_layers head = {33, 1};
    job.sequence = 64;
    job.parallel.recompute = RECOMPUTE_SELECTIVE;
    uint64_t r = 192, rows = r * 4096;
    assert_int_equal(parallel_kept_bytes(&job, one_block(), false),
                     2 * (3 * rows + 4 * r * 1024 + 3 * r * 2752));
    assert_int_equal(parallel_kept_bytes(&job, head, false), 2 * rows + 4 * r * 8000);
    /* the stream, gate and up's gradients (2 * 2752 against 3 * 1024 columns), attention's weights again */
    assert_int_equal(parallel_workspace_bytes(&job, one_block()),
                     2 * (rows + r * 2 * 2752 + r * 8 * 64));
    job.parallel.sequence = true;
    assert_int_equal(parallel_boundary_bytes(&job, 2), 2 * rows / 4);
    assert_int_equal(parallel_workspace_bytes(&job, one_block()),
                     2 * (rows / 4 + rows + r * 2 * 2752 + r * 8 * 64));
}

static void workspaces_by_hand(void **state)
{
    (void)state;
    struct job job = support_parallel_job(support_preset("gpt2"), 2, 2, 1);
    struct parallel_layers embedding = {0, 1}, head = {13, 1};
    uint64_t rows = 192 * 768;
    job.sequence = 96;
    assert_int_equal(parallel_workspace_bytes(&job, embedding), 2 * rows);
    /* the stream, half of fc's 4 C columns against half of 3 C */
    assert_int_equal(parallel_workspace_bytes(&job, one_block()), 2 * (rows + 2 * rows));
    /* the gradient of the norm and of the stream, and of the logits in 16 bits */
    assert_int_equal(parallel_workspace_bytes(&job, head), 2 * (2 * rows + 192 * 25136));
    assert_int_equal(parallel_workspace_bytes(&job, support_all_layers(&job)),
                     parallel_workspace_bytes(&job, head));
    job.parallel.recompute = RECOMPUTE_FULL;
    assert_int_equal(parallel_workspace_bytes(&job, one_block()),
                     2 * (3 * rows + 3 * rows + 2 * rows + 4 * rows + 192 * 6 * 96));
    job.precision = PRECISION_FP32; /* gradients of logits stay where they are */
    assert_int_equal(parallel_workspace_bytes(&job, head), 4 * 2 * rows);
}

/* As kept_by_hand(): a recomputed stage keeps nothing, and its backward pass has all activations, embedding and head
 * included, and the workspace of the widest of these passes. */
static void stages_are_made_again_whole(void **state)
{
    (void)state;
    struct job job = support_parallel_job(support_preset("gpt2"), 2, 2, 1);
    struct parallel_layers start = {0, 3}, end = {11, 3};
    uint64_t rows = 192 * 768, scores = 192 * 6 * 96, logits = 192 * 25136;
    uint64_t block = 4 * (3 * rows + 2 * rows + 4 * rows + scores);
    job.sequence = 96;
    job.precision = PRECISION_FP32;
    job.parallel.recompute = RECOMPUTE_STAGE;
    assert_int_equal(parallel_kept_bytes(&job, start, true), 0);
    assert_int_equal(parallel_kept_bytes(&job, end, false), 0);
    /* results of the embedding and of the first block, two blocks; the stream's gradient and half of fc's 4 C
     * columns */
    assert_int_equal(parallel_workspace_bytes(&job, start), 4 * 2 * rows + 2 * block + 4 * 3 * rows);
    /* results of two blocks, these, norm and logits; half of fc's columns is more than the norm's two gradients */
    assert_int_equal(parallel_workspace_bytes(&job, end),
                     4 * 2 * rows + 2 * block + 4 * (rows + logits) + 4 * 3 * rows);
}

static void profiles_keep_what_they_say(void **state)
{
    (void)state;
    static const struct layer_profile layers[] = {{40, 1000, 70, 11, 23}, {80, 3000, 90, 13, 29},
                                                  {120, 2000, 50, 17, 31}};
    struct network n = {.family = NETWORK_PROFILE, .layer_count = 3, .profile = layers};
    struct job job = support_parallel_job(n, 1, 1, 1);
    struct parallel_layers all = {0, 3}, last = {2, 1};
    job.sequence = 1;
    assert_int_equal(parallel_kept_bytes(&job, all, false), 6000);
    assert_int_equal(parallel_workspace_bytes(&job, all), 0);
    assert_int_equal(parallel_boundary_bytes(&job, 1), 90);
    assert_int_equal(parallel_parameters(&job, all), 60);
    assert_int_equal(parallel_tied_bytes(&job), 0);
    job.parallel.recompute = RECOMPUTE_FULL;
    assert_int_equal(parallel_kept_bytes(&job, all, false), 70 + 90);
    assert_int_equal(parallel_kept_bytes(&job, last, false), 0);
    assert_int_equal(parallel_workspace_bytes(&job, all), 3000);
    job.parallel.recompute = RECOMPUTE_STAGE;
    assert_int_equal(parallel_kept_bytes(&job, all, false), 0);
    assert_int_equal(parallel_workspace_bytes(&job, all), 6000);
}

/* --- properties ------------------------------------------------------------------------------- */

struct dice {
    uint64_t seed, count;
};

static uint64_t roll(struct dice *dice, uint64_t sides)
{
    return random_below(dice->seed, dice->count++, sides);
}

static struct job random_job(struct dice *dice)
{
    static const char *const names[] = {"gpt2", "gpt2-xl", "llama-2-7b", "bert-large", "vit-base"};
    struct network n = support_preset(names[roll(dice, ARRAY_COUNT(names))]);
    struct job job = support_parallel_job(n, 1 + roll(dice, 5), 1, 1 + (uint32_t)roll(dice, 6));
    job.sequence = 64 * (1 + roll(dice, 4));
    job.precision = (uint32_t)roll(dice, PRECISION_COUNT);
    job.parallel.recompute = (uint32_t)roll(dice, RECOMPUTE_STAGE); /* what stages keep again is no sum over layers */
    if (n.heads % 4 == 0) job.parallel.tensor = 1 << roll(dice, 3);
    job.parallel.sequence = job.parallel.tensor > 1 && n.family != NETWORK_VIT && roll(dice, 2);
    job.parallel.data = 1 + (uint32_t)roll(dice, 9);
    job.parallel.zero = (uint32_t)roll(dice, 4);
    return job;
}

/* Chunks and the boundaries between them hold the activations of the whole; less is kept with more recomputation or
 * more devices. */
static void chunks_add_up(void **state)
{
    (void)state;
    uint64_t seed = support_seed("models_parallel_memory");
    struct dice dice = {.seed = seed};
    for (int trial = 0; trial < 2000; trial++) {
        struct job job = random_job(&dice);
        struct parallel *p = &job.parallel;
        uint64_t kept = 0, parameters = 0;
        for (uint32_t chunk = 0; chunk < parallel_chunks(p); chunk++) {
            struct parallel_layers layers = parallel_layers(&job, chunk);
            kept += parallel_kept_bytes(&job, layers, true);
            parameters += parallel_parameters(&job, layers);
            if (chunk > 0) kept += parallel_boundary_bytes(&job, layers.first - 1);
        }
        assert_int_equal(kept, parallel_kept_bytes(&job, support_all_layers(&job), true));
        if (p->tensor == 1)
            assert_int_equal(4 * parameters,
                             4 * network_parameters(&job.network) + parallel_tied_bytes(&job));

        struct job more = job;
        more.parallel.recompute = RECOMPUTE_NONE;
        uint64_t none = parallel_kept_bytes(&more, one_block(), false);
        more.parallel.recompute = RECOMPUTE_SELECTIVE;
        uint64_t selective = parallel_kept_bytes(&more, one_block(), false);
        more.parallel.recompute = RECOMPUTE_FULL;
        assert_true(none > selective && selective > parallel_kept_bytes(&more, one_block(), false));
        assert_true(parallel_kept_bytes(&job, one_block(), true) >=
                    parallel_kept_bytes(&job, one_block(), false));

        struct job alone = job;
        alone.parallel.tensor = 1;
        alone.parallel.sequence = false;
        assert_true(parallel_kept_bytes(&job, one_block(), false) <=
                    parallel_kept_bytes(&alone, one_block(), false));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_are_whole_parameters),
        cmocka_unit_test(bytes_of_a_parameter),
        cmocka_unit_test(groups_have_norms_and_tables_several_times),
        cmocka_unit_test(a_table_is_copied_to_another_stage_only),
        cmocka_unit_test(words_are_rounded_up),
        cmocka_unit_test(updates_are_of_shares),
        cmocka_unit_test(kept_by_hand),
        cmocka_unit_test(llama_by_hand),
        cmocka_unit_test(workspaces_by_hand),
        cmocka_unit_test(stages_are_made_again_whole),
        cmocka_unit_test(profiles_keep_what_they_say),
        cmocka_unit_test(chunks_add_up),
    };
    return cmocka_run_group_tests_name("models/parallel_memory", tests, NULL, NULL);
}
