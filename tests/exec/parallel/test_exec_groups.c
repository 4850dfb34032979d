/* label: medium, all rounds: slow
 * Tensor groups that are carried out have one device's losses and weights to rounding, and stop at any time.
 *
 * Groups that cut the rows of norms and sums (sequence parallelism) have the bits of those that do not.
 *
 * For every family, random numbers of members, stages, replicas, schedules, microbatches and ways to recompute, with
 * random pauses on every stream and NaN in all memory that was released: the plan passes its check, the memory that it
 * counts is what the executor hands out, and the run has the losses and the last checkpoint of the job spilled on one
 * device, to rounding; a second run with other pauses has the same bits. Checkpoints do not show the groups: a job that
 * stopped under one cut goes on under another.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/random.h"
#include "base/size.h"
#include "tests/support/exec/support_cut_job.h"
#include "tests/support/exec/support_rough_job.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_folder.h"
#include "tests/support/support_seed.h"

enum { STEPS = 6, MANY_STEPS = ROUGH_JOB_STEPS_MAX };
#define CASES support_rounds(1, 10)

static const char *const configs[] = {
    "{\"model_type\": \"gpt2\", \"n_layer\": 4, \"n_embd\": 24, \"n_head\": 12, \"n_positions\": 16, "
    "\"vocab_size\": 67}",
    "{\"model_type\": \"gpt2\", \"n_layer\": 4, \"n_embd\": 24, \"n_head\": 12, \"n_positions\": 16, "
    "\"vocab_size\": 61, \"tie_word_embeddings\": false}",
    "{\"model_type\": \"llama\", \"num_hidden_layers\": 4, \"hidden_size\": 48, \"num_attention_heads\": 24, "
    "\"num_key_value_heads\": 12, \"intermediate_size\": 36, \"max_position_embeddings\": 16, \"vocab_size\": 67, "
    "\"tie_word_embeddings\": true}",
    "{\"model_type\": \"llama\", \"num_hidden_layers\": 4, \"hidden_size\": 48, \"num_attention_heads\": 12, "
    "\"intermediate_size\": 36, \"max_position_embeddings\": 16, \"vocab_size\": 67, \"tie_word_embeddings\": false}",
    "{\"model_type\": \"qwen3\", \"num_hidden_layers\": 4, \"hidden_size\": 48, \"num_attention_heads\": 24, "
    "\"head_dim\": 4, \"num_key_value_heads\": 12, \"intermediate_size\": 36, \"max_position_embeddings\": 16, "
    "\"vocab_size\": 67}",
    "{\"model_type\": \"gpt_neox\", \"num_hidden_layers\": 4, \"hidden_size\": 48, \"num_attention_heads\": 12, "
    "\"rotary_pct\": 0.5, \"intermediate_size\": 36, \"max_position_embeddings\": 16, \"vocab_size\": 67}",
    "{\"model_type\": \"phi\", \"num_hidden_layers\": 4, \"hidden_size\": 96, \"num_attention_heads\": 24, "
    "\"num_key_value_heads\": 12, \"intermediate_size\": 36, \"max_position_embeddings\": 16, \"vocab_size\": 40}",
    "{\"model_type\": \"gemma2\", \"num_hidden_layers\": 4, \"hidden_size\": 48, \"num_attention_heads\": 24, "
    "\"head_dim\": 4, \"num_key_value_heads\": 12, \"intermediate_size\": 36, \"max_position_embeddings\": 16, "
    "\"sliding_window\": 5, \"final_logit_softcapping\": 2, \"vocab_size\": 67}",
    "{\"model_type\": \"opt\", \"num_hidden_layers\": 4, \"hidden_size\": 24, \"num_attention_heads\": 12, "
    "\"ffn_dim\": 36, \"word_embed_proj_dim\": 24, \"max_position_embeddings\": 16, \"vocab_size\": 67, "
    "\"dropout\": 0.1}",
    "{\"model_type\": \"mixtral\", \"num_hidden_layers\": 4, \"hidden_size\": 48, \"num_attention_heads\": 12, "
    "\"num_key_value_heads\": 12, \"num_local_experts\": 4, \"intermediate_size\": 24, "
    "\"max_position_embeddings\": 16, \"vocab_size\": 67}",
    "{\"model_type\": \"qwen3_moe\", \"num_hidden_layers\": 4, \"hidden_size\": 48, \"num_attention_heads\": 24, "
    "\"head_dim\": 4, \"num_key_value_heads\": 12, \"num_experts\": 6, \"num_experts_per_tok\": 3, "
    "\"moe_intermediate_size\": 12, \"intermediate_size\": 36, \"mlp_only_layers\": [1], "
    "\"max_position_embeddings\": 16, \"vocab_size\": 67}",
    "{\"model_type\": \"qwen2_moe\", \"num_hidden_layers\": 4, \"hidden_size\": 48, \"num_attention_heads\": 12, "
    "\"num_key_value_heads\": 12, \"num_experts\": 5, \"num_experts_per_tok\": 2, \"moe_intermediate_size\": 12, "
    "\"shared_expert_intermediate_size\": 24, \"intermediate_size\": 36, \"decoder_sparse_step\": 2, "
    "\"max_position_embeddings\": 16, \"vocab_size\": 67}",
    "{\"model_type\": \"bert\", \"num_hidden_layers\": 4, \"hidden_size\": 24, \"num_attention_heads\": 12, "
    "\"intermediate_size\": 36, \"max_position_embeddings\": 16, \"vocab_size\": 67, \"type_vocab_size\": 2, "
    "\"architectures\": [\"BertForMaskedLM\"]}",
    "{\"model_type\": \"vit\", \"num_hidden_layers\": 4, \"hidden_size\": 24, \"num_attention_heads\": 12, "
    "\"intermediate_size\": 36, \"image_size\": 12, \"patch_size\": 4, \"num_labels\": 5}",
};

/* --- cases ------------------------------------------------------------------------------------ */

/* Draws a schedule with backward passes in two units for half of the pipelines. */
static void draw_schedule(uint64_t seed, uint64_t n, struct parallel *p)
{
    static const uint32_t halves[] = {PIPELINE_ZB_H1, PIPELINE_ZB_H2, PIPELINE_ZB_V};
    if (p->pipeline == 1 || random_below(seed, n, 2)) return;
    p->schedule = halves[random_below(seed, n + 1, 3)];
    p->chunks = p->schedule == PIPELINE_ZB_V ? 2 : 1;
    p->buckets = 1;
}

/* Draws a level of shares of replicas, and how far ahead weights are gathered. */
static void draw_shares(uint64_t seed, uint64_t n, struct parallel *p)
{
    if (p->data == 1) return;
    p->zero = (uint32_t)random_below(seed, n, 4);
    p->prefetch = (uint32_t)random_below(seed, n + 1, 3);
}

/* Draws where the states are, and the weights. Whole weights come up for one microbatch of each replica. */
static void draw_offload(uint64_t seed, uint64_t n, struct rough_job *s)
{
    const bool whole = s->parallel.data > 1 && s->parallel.zero == ZERO_NOTHING;
    s->parallel.offload = (uint32_t)random_below(seed, n, 3);
    if (s->parallel.offload != OFFLOAD_WEIGHTS) return;
    if ((s->parallel.zero > 0 && s->parallel.data > 1 && s->parallel.zero < ZERO_WEIGHTS) ||
        (whole && s->parallel.schedule == PIPELINE_INTERLEAVED))
        s->parallel.offload = OFFLOAD_STATES;
    else if (whole) s->microbatches = s->parallel.data;
}

/* Returns true if the devices of a group may cut the rows of norms and sums. */
static bool divides_tokens(const struct rough_job *s)
{
    struct job_set jobs;
    test_network_jobs(&jobs, 1, s->config, STEPS);
    const bool divides = parallel_divides_tokens(&jobs.jobs[0], s->parallel.tensor);
    job_set_release(&jobs);
    return divides;
}

static struct rough_job draw(uint64_t seed, uint64_t n, const char *config)
{
    static const uint32_t recompute[] = {RECOMPUTE_NONE, RECOMPUTE_SELECTIVE, RECOMPUTE_FULL, RECOMPUTE_STAGE};
    const uint32_t pipeline = 1 + (uint32_t)random_below(seed, 10 * n, 2),
        interleaved = random_below(seed, 10 * n + 1, 3) == 0;
    struct rough_job s = {.config = config, .last = STEPS};
    s.parallel = (struct parallel){.tensor = 2 + (uint32_t)random_below(seed, 10 * n + 2, 3),
                                   .pipeline = pipeline,
                                   .data = 1 + (uint32_t)random_below(seed, 10 * n + 3, 2),
                                   .prefetch = 1,
                                   .chunks = pipeline > 1 && interleaved ? 2 : 1,
                                   .buckets = pipeline > 1 && !interleaved && random_below(seed, 10 * n + 4, 3) == 0
                                              ? 2 : 1,
                                   .recompute = recompute[random_below(seed, 10 * n + 5, 4)],
                                   .blocking = random_below(seed, 10 * n + 6, 4) == 0};
    s.parallel.schedule = pipeline > 1 && interleaved ? PIPELINE_INTERLEAVED
                          : random_below(seed, 10 * n + 7, 2) ? PIPELINE_1F1B : PIPELINE_GPIPE;
    draw_schedule(seed, 1000 + 10 * n, &s.parallel);
    draw_shares(seed, 1000 + 10 * n + 6, &s.parallel);
    if (random_below(seed, 1000 + 10 * n + 2, 2) && cut_job_clips(config))
        s.clip = 0.05 + 0.5 * random_unit(seed, 1000 + 10 * n + 3);
    s.every = random_below(seed, 1000 + 10 * n + 4, 4);
    s.held_out = s.every > 0 ? 1 + random_below(seed, 1000 + 10 * n + 5, 3) : 0;
    s.microbatches = s.parallel.data * pipeline * (1 + random_below(seed, 10 * n + 8, 2));
    s.parallel.tree = random_below(seed, 10 * n + 9, 3) == 0 && !pipeline_has_halves(s.parallel.schedule) &&
                      s.parallel.zero == 0;
    s.precision = test_precision(random_below(seed, 10 * n + 9, 4));
    draw_offload(seed, 2000 + 2 * n, &s);
    s.parallel.sequence = divides_tokens(&s) && random_below(seed, 6000 + n, 2);
    s.parallel.scatter = pipeline > 1 && !s.parallel.sequence && random_below(seed, 3000 + n, 2);
    s.encodes = s.precision == PRECISION_BF16_WEIGHTS && !s.parallel.tree && random_below(seed, 4000 + n, 2) &&
                !(pipeline > 1 && s.parallel.sequence) && /* boundaries with cut rows are not encoded */
                !(s.parallel.offload == OFFLOAD_WEIGHTS && s.parallel.zero == ZERO_NOTHING);
    return s;
}

static void test_one_device(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("tensor groups");
    for (size_t c = 0; c < ARRAY_COUNT(configs); c++)
        for (uint64_t n = 0; n < CASES; n++) {
            const struct rough_job s = draw(seed, c * CASES + n, configs[c]);
            struct rough_job alone = s, whole = s;
            struct rough_job_outcome wanted, found, again;
            char text[256], one[SUPPORT_FOLDER_BYTES], many[SUPPORT_FOLDER_BYTES];
            support_folder_make(one);
            support_folder_make(many);
            print_message("%s\n", rough_job_text(&s, text));
            alone.parallel = (struct parallel){0};
            rough_job_run(&alone, one, 0, &wanted);
            rough_job_run(&s, many, n % 3 == 0 ? 0 : seed + n, &found);
            whole.parallel.sequence = false;
            whole.parallel.scatter = s.encodes && s.parallel.scatter; /* else whole boundaries are sent, with the same
                                                                         bits */
            whole.parallel.storage = s.parallel.offload != OFFLOAD_NOTHING;
            rough_job_run(&whole, NULL, seed + 1000 + n, &again);
            rough_job_compare(&s, &wanted, &found);
            if (s.precision == PRECISION_FP32) rough_job_compare_checkpoints(&s, one, many);
            rough_job_same(&s, &again, &found);
            support_folder_remove(one);
            support_folder_remove(many);
        }
}

/* Dilated devices have the same losses and weights; members of their tensor groups wait for each other. */
static void test_dilated_groups(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("dilated tensor groups");
    for (uint32_t c = 0; c < 4; c++) {
        struct rough_job s = {.config = configs[c], .microbatches = 2, .last = 2,
                            .parallel = {.tensor = 2 + c % 2, .pipeline = 1 + c / 2, .data = 1, .chunks = 1,
                                         .schedule = PIPELINE_1F1B}};
        struct rough_job_outcome plain, dilated;
        rough_job_run(&s, NULL, random_u64(seed, 2 * c), &plain);
        s.dilation = 3;
        s.parallel.sequence = divides_tokens(&s);
        rough_job_run(&s, NULL, random_u64(seed, 2 * c + 1), &dilated);
        assert_true(plain.fingerprint == dilated.fingerprint);
        assert_memory_equal(plain.losses, dilated.losses, s.last * sizeof *plain.losses);
    }
}

static void test_other_cuts_go_on(void **state)
{
    (void)state;
    const struct parallel cuts[] = {
        {.tensor = 2, .pipeline = 1, .data = 1, .chunks = 1, .prefetch = 1, .sequence = true},
        {.tensor = 0},
        {.tensor = 2, .pipeline = 2, .data = 2, .chunks = 1, .prefetch = 1, .zero = ZERO_STATES,
         .schedule = PIPELINE_1F1B,
         .sequence = true},
        {.tensor = 3, .pipeline = 1, .data = 2, .chunks = 2, .prefetch = 1, .zero = ZERO_WEIGHTS,
         .offload = OFFLOAD_STATES},
        {.tensor = 3, .pipeline = 2, .data = 1, .chunks = 1, .prefetch = 1, .schedule = PIPELINE_1F1B},
        {.tensor = 1, .pipeline = 2, .data = 2, .chunks = 1, .prefetch = 1},
    };
    for (size_t c = 0; c < ARRAY_COUNT(configs); c++) {
        struct rough_job s = {.config = configs[c], .microbatches = 4};
        rough_job_go_on(&s, cuts, ARRAY_COUNT(cuts));
    }
}

struct stopper {
    volatile bool stop;
    long wait_ns;
};

static void *stop_later(void *pointer)
{
    struct stopper *stopper = pointer;
    nanosleep(&(struct timespec){.tv_nsec = stopper->wait_ns}, NULL);
    stopper->stop = true;
    return NULL;
}

/* A run that is stopped at any time ends, and the rest is done without groups. */
static void test_stops(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("stops");
    struct rough_job s = {.config = configs[0], .microbatches = 4, .last = MANY_STEPS};
    struct rough_job_outcome wanted, found = {0}, rest;
    uint32_t early = 0;
    rough_job_run(&s, NULL, 0, &wanted);
    for (uint64_t n = 0; n < 8; n++) {
        char folder[SUPPORT_FOLDER_BYTES];
        pthread_t thread;
        struct stopper stopper = {.wait_ns = (long)random_below(seed, n, 300) * 1000000};
        support_folder_make(folder);
        s.parallel = (struct parallel){.tensor = 2 + (uint32_t)n % 2, .pipeline = 1 + (uint32_t)n % 4 / 2, .data = 1,
                                       .chunks = 1, .prefetch = 1, .schedule = PIPELINE_1F1B, .sequence = n % 2 == 0};
        s.first = 0;
        if (pthread_create(&thread, NULL, stop_later, &stopper) != 0) abort();
        rough_job_run_until(&s, folder, seed + n, &stopper.stop, &found);
        pthread_join(thread, NULL);
        early += found.stopped;
        if (found.minibatches > 0 && found.minibatches < MANY_STEPS) {
            s.parallel = (struct parallel){0};
            s.first = found.minibatches;
            rough_job_run(&s, folder, 0, &rest);
            rough_job_compare(&s, &wanted, &rest);
        }
        support_folder_remove(folder);
    }
    print_message("%u of 8 stopped early\n", early);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_device), cmocka_unit_test(test_dilated_groups),
        cmocka_unit_test(test_other_cuts_go_on),
        cmocka_unit_test(test_stops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
