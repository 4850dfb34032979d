/* label: medium, all rounds: slow
 * Tensor groups that compute products in pieces ("tensor_pieces") have the same bits for any number of devices.
 *
 * Random jobs of every causal family, pieces, stages, replicas, schedules, ways to recompute, optimizers, clipping and
 * evaluations, with random pauses and NaN in all memory that was released: each number of devices that divides the
 * pieces, one included, has the same losses, weights and checkpoints. A job goes on under another number, too. Jobs
 * without pieces have other bits.
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

#include "base/random.h"
#include "base/size.h"
#include "tests/support/exec/support_cut_job.h"
#include "tests/support/support_folder.h"
#include "tests/support/support_seed.h"

enum { STEPS = 3, PIECES_MOST = 8 };
#define CASES support_rounds(1, 3)

#define SIZES \
    "\"num_hidden_layers\": 4, \"hidden_size\": 32, \"intermediate_size\": 40, \"max_position_embeddings\": 16, "
static const char *const configs[] = {
    "{\"model_type\": \"gpt2\", \"n_layer\": 4, \"n_embd\": 32, \"n_head\": 8, \"n_positions\": 16, "
    "\"vocab_size\": 67}",
    "{\"model_type\": \"gpt2\", \"n_layer\": 4, \"n_embd\": 32, \"n_head\": 8, \"n_positions\": 16, "
    "\"vocab_size\": 40, \"tie_word_embeddings\": false}",
    "{\"model_type\": \"llama\", " SIZES "\"num_attention_heads\": 16, \"num_key_value_heads\": 8, \"vocab_size\": 67, "
    "\"tie_word_embeddings\": true}",
    "{\"model_type\": \"mistral\", \"sliding_window\": 5, " SIZES "\"num_attention_heads\": 8, \"vocab_size\": 67}",
    "{\"model_type\": \"qwen2\", " SIZES "\"num_attention_heads\": 8, \"vocab_size\": 67}",
    "{\"model_type\": \"qwen3\", " SIZES "\"num_attention_heads\": 16, \"num_key_value_heads\": 8, \"head_dim\": 4, "
    "\"vocab_size\": 67}",
    "{\"model_type\": \"gemma\", " SIZES "\"num_attention_heads\": 8, \"num_key_value_heads\": 8, \"head_dim\": 4, "
    "\"vocab_size\": 67}",
    "{\"model_type\": \"gpt_neox\", " SIZES "\"num_attention_heads\": 8, \"rotary_pct\": 0.5, \"vocab_size\": 67}",
    "{\"model_type\": \"phi\", " SIZES "\"num_attention_heads\": 8, \"num_key_value_heads\": 8, \"vocab_size\": 67}",
    "{\"model_type\": \"gptj\", \"n_layer\": 4, \"n_embd\": 32, \"n_head\": 8, \"n_inner\": 40, \"n_positions\": 16, "
    "\"rotary_dim\": 2, \"vocab_size\": 67}",
    "{\"model_type\": \"gemma3_text\", " SIZES "\"num_attention_heads\": 8, \"num_key_value_heads\": 8, "
                                               "\"head_dim\": 4, "
    "\"sliding_window\": 4, \"sliding_window_pattern\": 3, \"final_logit_softcapping\": 2, \"vocab_size\": 67}",
    "{\"model_type\": \"gpt_neox\", " SIZES "\"num_attention_heads\": 8, \"use_parallel_residual\": false, "
    "\"vocab_size\": 67}",
    "{\"model_type\": \"mixtral\", " SIZES "\"num_attention_heads\": 8, \"num_key_value_heads\": 8, "
    "\"num_local_experts\": 4, \"vocab_size\": 67}",
    "{\"model_type\": \"qwen3_moe\", " SIZES "\"num_attention_heads\": 16, \"num_key_value_heads\": 8, "
    "\"head_dim\": 4, \"num_experts\": 6, \"num_experts_per_tok\": 3, \"moe_intermediate_size\": 16, "
    "\"mlp_only_layers\": [1], \"vocab_size\": 67}",
    "{\"model_type\": \"qwen2_moe\", " SIZES "\"num_attention_heads\": 8, \"num_key_value_heads\": 8, "
    "\"num_experts\": 5, \"num_experts_per_tok\": 2, \"moe_intermediate_size\": 8, "
    "\"shared_expert_intermediate_size\": 24, \"vocab_size\": 67}",
};

struct setting {
    struct cut_job job;
    struct parallel parallel;
};

static struct setting draw(uint64_t seed, uint64_t n, const char *config)
{
    static const uint32_t schedules[] = {PIPELINE_GPIPE, PIPELINE_1F1B, PIPELINE_ZB_H1};
    static const uint32_t recompute[] = {RECOMPUTE_NONE, RECOMPUTE_FULL, RECOMPUTE_STAGE};
    const uint64_t at = 16 * n;
    struct setting s = {.job = {.config = config, .steps = STEPS, .rate = 0.05}};
    struct parallel *const p = &s.parallel;
    *p = (struct parallel){.tensor = 1, .pipeline = 1 + (uint32_t)random_below(seed, at, 2),
                           .data = 1 + (uint32_t)random_below(seed, at + 1, 2), .chunks = 1, .prefetch = 1,
                           .tensor_pieces = 2u << random_below(seed, at + 2, 3),
                           .recompute = recompute[random_below(seed, at + 3, ARRAY_COUNT(recompute))]};
    if (p->tensor_pieces == PIECES_MOST) p->pipeline = p->data = 1;
    s.job.devices = 4 * 2 * 2;
    p->schedule = schedules[random_below(seed, at + 4, p->pipeline > 1 ? 3 : 2)];
    if (random_below(seed, at + 5, 2)) s.job.clip = 0.05 + 0.5 * random_unit(seed, at + 6);
    else if (p->data > 1) p->zero = (uint32_t)random_below(seed, at + 7, 4);
    p->tree = p->zero == 0 && p->schedule != PIPELINE_ZB_H1 && random_below(seed, at + 8, 3) == 0;
    p->offload = s.job.clip > 0 || p->tree || random_below(seed, at + 9, 3) > 0 ? OFFLOAD_NOTHING : OFFLOAD_STATES;
    s.job.microbatches = p->data * (UINT64_C(1) << random_below(seed, at + 10, 3));
    s.job.every = random_below(seed, at + 11, 3);
    s.job.held_out = 2;
    s.job.optimizer = random_below(seed, at + 12, 2) ? OPTIMIZER_ADAMW : OPTIMIZER_MOMENTUM;
    return s;
}

/* Carries the job out on groups of `tensor` devices; 0: without pieces on one. Checkpoints of each step go to
 * `folder`. */
static void carry_out(const struct setting *s, uint32_t tensor, const char *folder, uint64_t delays,
                      struct cut_job_outcome *out)
{
    struct cut_job job = s->job;
    struct parallel p = s->parallel;
    struct plan plan = {0};
    const struct run_checkpoints checkpoints = {.folder = folder, .every_steps = 1, .keep = STEPS, .each = true};
    p.tensor = tensor > 0 ? tensor : 1;
    if (tensor == 0) p.tensor_pieces = 0;
    job.parallel = &p;
    cut_job_plan(&job, &plan);
    cut_job_run(&plan, &(struct run_options){.poison = true, .delay_seed = delays,
                                             .checkpoints = folder ? &checkpoints : NULL},
                out);
}

static char *read_step(const char *folder, uint32_t step, size_t *length)
{
    char path[SUPPORT_FOLDER_BYTES + 64];
    snprintf(path, sizeof path, "%s/job-0/step-%010u.safetensors", folder, step);
    FILE *const file = fopen(path, "rb");
    if (!file) fail_msg("no file %s", path);
    fseek(file, 0, SEEK_END);
    *length = (size_t)ftell(file);
    rewind(file);
    char *const bytes = malloc(*length);
    if (!bytes || fread(bytes, 1, *length, file) != *length) fail_msg("cannot read %s", path);
    fclose(file);
    return bytes;
}

static void compare_checkpoints(const char *wanted, const char *found, uint32_t first, const char *what)
{
    for (uint32_t step = first; step <= STEPS; step++) {
        size_t lengths[2];
        char *const files[2] = {read_step(wanted, step, &lengths[0]), read_step(found, step, &lengths[1])};
        if (lengths[0] != lengths[1] || memcmp(files[0], files[1], lengths[0]) != 0)
            fail_msg("%s: another checkpoint after %u steps", what, step);
        free(files[0]);
        free(files[1]);
    }
}

static void check_case(uint64_t seed, uint64_t n, const char *config)
{
    struct setting s = draw(seed, n, config);
    struct cut_job_outcome wanted, found, plain;
    char one[SUPPORT_FOLDER_BYTES], many[SUPPORT_FOLDER_BYTES], how[PARALLEL_TEXT_BYTES],
        what[PARALLEL_TEXT_BYTES + 160];
    support_folder_make(one);
    carry_out(&s, 1, one, 0, &wanted);
    snprintf(what, sizeof what, "%.40s..., %s, %s, recompute %s, clip %g, %u microbatches", config,
             parallel_text(&s.parallel, how),
             pipeline_schedule_names[s.parallel.schedule], recompute_names[s.parallel.recompute], s.job.clip,
             (unsigned)s.job.microbatches);
    print_message("%s\n", what);
    for (uint32_t tensor = 2; tensor <= s.parallel.tensor_pieces; tensor *= 2) {
        struct cut_job about = s.job;
        about.parallel = &s.parallel;
        support_folder_make(many);
        carry_out(&s, tensor, many, seed + tensor, &found);
        cut_job_same(&wanted, &found, &about);
        compare_checkpoints(one, many, 1, what);
        support_folder_remove(many);
    }
    carry_out(&s, 0, NULL, 0, &plain);
    if (plain.fingerprint == wanted.fingerprint) fail_msg("%s: pieces change nothing", what);
    /* AdamW's first steps have the size of the rate, also where a gradient is nothing but rounding. */
    const double later = s.job.optimizer == OPTIMIZER_ADAMW ? 1e-3 : 1e-5;
    for (uint32_t i = 0; i < STEPS; i++)
        if (!(fabs(plain.losses[i] / wanted.losses[i] - 1) <= (i == 0 ? 1e-6 : later)))
            fail_msg("%s: loss %u is %.9g (expected %.9g)", what, i, wanted.losses[i], plain.losses[i]);
    support_folder_remove(one);
}

static void test_same_bits(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("tensor pieces");
    for (size_t c = 0; c < ARRAY_COUNT(configs); c++)
        for (uint64_t n = 0; n < CASES; n++) check_case(seed, CASES * c + n, configs[c]);
}

/* Each step is another group's. */
static void test_other_groups_go_on(void **state)
{
    (void)state;
    static const uint32_t groups[STEPS] = {2, 4, 1};
    for (size_t c = 0; c < ARRAY_COUNT(configs); c += 3) {
        struct setting s = {.job = {.config = configs[c], .microbatches = 2, .rate = 0.05, .steps = STEPS, .clip = 0.5},
                            .parallel = {.tensor = 1, .pipeline = 1, .data = 1, .chunks = 1, .prefetch = 1,
                                         .tensor_pieces = 4,
                                         .schedule = PIPELINE_1F1B}};
        struct cut_job_outcome wanted, found = {0};
        char one[SUPPORT_FOLDER_BYTES], many[SUPPORT_FOLDER_BYTES];
        support_folder_make(one);
        support_folder_make(many);
        carry_out(&s, 1, one, 0, &wanted);
        for (uint32_t i = 0; i < STEPS; i++) {
            s.job.first = i;
            s.job.steps = i + 1;
            carry_out(&s, groups[i], many, 0, &found);
        }
        assert_true(found.fingerprint == wanted.fingerprint);
        assert_memory_equal(found.losses, wanted.losses, STEPS * sizeof *found.losses);
        compare_checkpoints(one, many, STEPS, configs[c]);
        support_folder_remove(one);
        support_folder_remove(many);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_bits), cmocka_unit_test(test_other_groups_go_on)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
