/* label: medium, all rounds: slow
 * Stages with unequal numbers of replicas have one device's losses and weights to rounding.
 *
 * For every family, random numbers of replicas of each stage, schedules, microbatches that do not divide evenly,
 * buckets, tensor groups, ways to recompute, clipping and evaluations, with random pauses on every stream and NaN in
 * all memory that was released: the plan passes its check, and the run has the losses and the last checkpoint of the
 * job spilled on one device, to rounding. Another synchronous schedule with the same replicas has the same bits.
 * Checkpoints do not show the replicas: a job that stopped under one cut goes on under another, or spilled.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "base/size.h"
#include "tests/support/exec/support_cut_job.h"
#include "tests/support/exec/support_rough_job.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_folder.h"
#include "tests/support/support_seed.h"

enum { STEPS = 4, STAGES_MAX = 3 };
#define CASES support_rounds(3, 8)

static const char *const configs[] = {
    "{\"model_type\": \"gpt2\", \"n_layer\": 6, \"n_embd\": 24, \"n_head\": 4, \"n_positions\": 16, "
    "\"vocab_size\": 67}",
    "{\"model_type\": \"gpt2\", \"n_layer\": 6, \"n_embd\": 24, \"n_head\": 4, \"n_positions\": 16, "
    "\"vocab_size\": 61, \"tie_word_embeddings\": false}",
    "{\"model_type\": \"llama\", \"num_hidden_layers\": 6, \"hidden_size\": 16, \"num_attention_heads\": 4, "
    "\"num_key_value_heads\": 2, \"intermediate_size\": 24, \"max_position_embeddings\": 16, \"vocab_size\": 67, "
    "\"tie_word_embeddings\": true}",
    "{\"model_type\": \"bert\", \"num_hidden_layers\": 6, \"hidden_size\": 16, \"num_attention_heads\": 2, "
    "\"intermediate_size\": 24, \"max_position_embeddings\": 16, \"vocab_size\": 67, \"type_vocab_size\": 2, "
    "\"architectures\": [\"BertForMaskedLM\"]}",
    "{\"model_type\": \"vit\", \"num_hidden_layers\": 6, \"hidden_size\": 16, \"num_attention_heads\": 2, "
    "\"intermediate_size\": 24, \"image_size\": 8, \"patch_size\": 4, \"num_labels\": 5}",
};

/* Draws what does not change the bits of given replicas: a synchronous schedule, buckets, and what is recomputed. */
static void draw_way(uint64_t seed, uint64_t n, struct parallel *p)
{
    static const uint32_t recompute[] = {RECOMPUTE_NONE, RECOMPUTE_SELECTIVE, RECOMPUTE_FULL, RECOMPUTE_STAGE};
    p->schedule = random_below(seed, n, 2) ? PIPELINE_1F1B : PIPELINE_GPIPE;
    p->buckets = p->pipeline > 1 ? 1 + (uint32_t)random_below(seed, n + 1, 2) : 1;
    p->recompute = recompute[random_below(seed, n + 2, 4)];
    p->blocking = random_below(seed, n + 3, 4) == 0;
}

static struct rough_job draw(uint64_t seed, uint64_t n, const char *config)
{
    const uint64_t at = 40 * n;
    struct rough_job s = {.config = config, .last = STEPS};
    struct parallel *p = &s.parallel;
    uint64_t least = 1;
    *p = (struct parallel){.tensor = random_below(seed, at, 4) == 0 ? 2 : 1,
                           .pipeline = 1 + (uint32_t)random_below(seed, at + 1, STAGES_MAX), .data = 1, .prefetch = 1,
                           .chunks = 1};
    p->replicated = p->pipeline;
    for (uint32_t i = 0; i < p->pipeline; i++) {
        p->replicas[i] = 1 + (uint32_t)random_below(seed, at + 2 + i, 4);
        if (p->replicas[i] > least) least = p->replicas[i];
    }
    draw_way(seed, at + 6, p);
    s.microbatches = least + random_below(seed, at + 10, 6);
    s.precision = test_precision(random_below(seed, at + 11, 4));
    if (random_below(seed, at + 12, 2) && cut_job_clips(config)) s.clip = 0.05 + 0.5 * random_unit(seed, at + 13);
    s.every = random_below(seed, at + 14, 4);
    s.held_out = s.every > 0 ? 1 + random_below(seed, at + 15, 3) : 0;
    return s;
}

static void test_one_device(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("replicas");
    for (size_t c = 0; c < ARRAY_COUNT(configs); c++)
        for (uint64_t n = 0; n < CASES; n++) {
            struct rough_job s = draw(seed, c * CASES + n, configs[c]), alone = s;
            struct rough_job_outcome wanted, found, again;
            char text[256], one[SUPPORT_FOLDER_BYTES], many[SUPPORT_FOLDER_BYTES];
            support_folder_make(one);
            support_folder_make(many);
            print_message("%s\n", rough_job_text(&s, text));
            alone.parallel = (struct parallel){0};
            rough_job_run(&alone, one, 0, &wanted);
            rough_job_run(&s, many, n % 3 == 0 ? 0 : seed + n, &found);
            rough_job_compare(&s, &wanted, &found);
            if (s.precision == PRECISION_FP32) rough_job_compare_checkpoints(&s, one, many);
            if (s.parallel.tensor == 1) draw_way(seed, 1000000 + 8 * (c * CASES + n), &s.parallel);
            rough_job_run(&s, NULL, seed + 1000 + n, &again);
            rough_job_same(&s, &found, &again);
            support_folder_remove(one);
            support_folder_remove(many);
        }
}

/* Each cut trains a minibatch and leaves the job to the next one. */
static void test_other_cuts_go_on(void **state)
{
    (void)state;
    const struct parallel cuts[] = {
        {.tensor = 1, .pipeline = 2, .data = 1, .chunks = 1, .prefetch = 1, .replicated = 2, .replicas = {2, 1}},
        {.tensor = 1, .pipeline = 2, .data = 2, .chunks = 1, .prefetch = 1, .zero = ZERO_STATES,
         .schedule = PIPELINE_1F1B},
        {.tensor = 2, .pipeline = 3, .data = 1, .chunks = 1, .prefetch = 1, .replicated = 3, .replicas = {1, 3, 2},
         .schedule = PIPELINE_1F1B},
        {.tensor = 0},
    };
    static_assert(ARRAY_COUNT(cuts) == STEPS, "one for each minibatch");
    for (size_t c = 0; c < ARRAY_COUNT(configs); c++) {
        struct rough_job s = {.config = configs[c], .microbatches = 4};
        struct parallel turned[STEPS];
        for (size_t i = 0; i < STEPS; i++) turned[i] = cuts[(i + c) % STEPS];
        rough_job_go_on(&s, turned, STEPS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_device),
        cmocka_unit_test(test_other_cuts_go_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
