/* label: medium, all rounds: slow
 * Parallel jobs keep the weights of their best evaluation.
 *
 * For every family, random stages, replicas, tensor groups, shares, offloading and precisions, with random pauses on
 * every stream and NaN in all memory that was released: the weights kept are the final weights of a run that ends with
 * the best evaluation, to the last bit; those of a pipeline are those of the job spilled on one device. A run that
 * stops after the best evaluation and goes on under another cut still keeps its weights.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/size.h"
#include "tests/support/exec/support_host_run.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_folder.h"
#include "tests/support/support_seed.h"

enum { STEPS = 6 };
#define CASES support_rounds(4, 10)

static const char *const configs[] = {
    "{\"model_type\": \"gpt2\", \"n_layer\": 4, \"n_embd\": 24, \"n_head\": 12, \"n_positions\": 16, "
    "\"vocab_size\": 67}",
    "{\"model_type\": \"gpt2\", \"n_layer\": 4, \"n_embd\": 24, \"n_head\": 12, \"n_positions\": 16, "
    "\"vocab_size\": 61, \"tie_word_embeddings\": false}",
    "{\"model_type\": \"llama\", \"num_hidden_layers\": 4, \"hidden_size\": 48, \"num_attention_heads\": 24, "
    "\"num_key_value_heads\": 12, \"intermediate_size\": 36, \"max_position_embeddings\": 16, \"vocab_size\": 67, "
    "\"tie_word_embeddings\": true}",
    "{\"model_type\": \"bert\", \"num_hidden_layers\": 4, \"hidden_size\": 24, \"num_attention_heads\": 12, "
    "\"intermediate_size\": 36, \"max_position_embeddings\": 16, \"vocab_size\": 67, \"type_vocab_size\": 2, "
    "\"architectures\": [\"BertForMaskedLM\"]}",
    "{\"model_type\": \"vit\", \"num_hidden_layers\": 4, \"hidden_size\": 24, \"num_attention_heads\": 12, "
    "\"intermediate_size\": 36, \"image_size\": 8, \"patch_size\": 4, \"num_labels\": 5}",
};

struct setting {
    const char *config;
    struct parallel parallel; /* tensor 0: spilled on one device */
    uint64_t microbatches, every, first, last; /* first: minibatches that are done */
    uint32_t precision;
    double rate;
};

struct outcome {
    uint64_t weights, kept, best; /* fingerprints; the step of the best evaluation */
};

static void carry_out(const struct setting *s, const char *folder, uint64_t delay_seed, struct outcome *out)
{
    struct hardware hardware;
    struct job_set jobs;
    struct host_run run;
    const bool spilled = s->parallel.tensor == 0;
    host_run_machine(&hardware, spilled ? 1 : (uint32_t)parallel_devices(&s->parallel), 1);
    hardware.host_bandwidth = hardware.types[0].memory_bandwidth;
    test_network_jobs(&jobs, 1, s->config, STEPS);
    struct job *const job = &jobs.jobs[0];
    job->microbatch = 2;
    job->microbatches = s->microbatches;
    job->precision = s->precision;
    job->optimizer.learning_rate = s->rate;
    job->evaluation = (struct job_evaluation){.every = s->every, .minibatches = 2};
    job->keep_best = true;
    job->first_minibatch = s->first;
    job->minibatches = s->last - s->first;
    job->parallel = s->parallel;
    char text[PARALLEL_TEXT_BYTES], what[PARALLEL_TEXT_BYTES + 50];
    snprintf(what, sizeof what, "%.40s..., %s", s->config, spilled ? "spilled" : parallel_text(&s->parallel, text));
    const struct host_run_options options = {.policy = spilled ? "spill-sequential" : NULL, .shards = 3,
                                             .folder = folder,
                                             .delay_seed = delay_seed, .what = what};
    host_run(&hardware, &jobs, &options, &run);
    const struct run_job_result *const of = &run.result.jobs[0];
    assert_int_equal(of->minibatches, s->last);
    assert_true(of->best_evaluation != EVALUATION_NONE);
    *out = (struct outcome){.weights = of->weights_fingerprint, .kept = of->kept_fingerprint,
                            .best = of->evaluations[of->best_evaluation].step};
    host_run_release(&run);
}

static struct setting draw(uint64_t seed, uint64_t at, const char *config)
{
    static const uint32_t tensors[] = {1, 1, 2, 3};
    struct parallel p = {.tensor = tensors[random_below(seed, at, 4)],
                         .data = 1 + (uint32_t)random_below(seed, at + 1, 3),
                         .pipeline = 1 + (uint32_t)random_below(seed, at + 2, 3), .chunks = 1, .buckets = 1,
                         .prefetch = 1,
                         .schedule = PIPELINE_1F1B};
    if (p.pipeline > 1 && random_below(seed, at + 3, 3) == 0) p.schedule = PIPELINE_ZB_H1;
    if (p.data > 1) p.zero = (uint32_t)random_below(seed, at + 4, p.schedule == PIPELINE_ZB_H1 ? 2 : 4);
    if (p.tensor == 1 && random_below(seed, at + 5, 3) == 0) p.offload = OFFLOAD_STATES;
    /* unequal replicas */
    if (p.pipeline > 1 && p.zero == 0 && p.offload == OFFLOAD_NOTHING && p.schedule == PIPELINE_1F1B) {
        p.replicated = p.pipeline;
        for (uint32_t i = 0; i < p.pipeline; i++) p.replicas[i] = 1 + (p.data + i) % 3;
        p.data = 1;
    }
    struct setting s = {.config = config, .parallel = p, .every = 1 + random_below(seed, at + 6, 2), .last = STEPS};
    s.microbatches = p.data * (1 + random_below(seed, at + 7, 3)) + (p.replicated > 0 ? 2 : 0);
    s.precision = test_precision(random_below(seed, at + 8, 3));
    s.rate = random_below(seed, at + 9, 2) ? 0.3 : 0.02; /* the best evaluation is early, or late */
    return s;
}

static void test_the_best_weights_are_kept(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("best weights");
    uint32_t early = 0;
    for (size_t c = 0; c < ARRAY_COUNT(configs); c++)
        for (uint64_t n = 0; n < CASES; n++) {
            struct setting s = draw(seed, 20 * (c * CASES + n), configs[c]);
            struct outcome found, until, alone;
            char text[PARALLEL_TEXT_BYTES];
            carry_out(&s, NULL, n % 3 == 0 ? 0 : seed + n, &found);
            struct setting shorter = s;
            shorter.last = found.best;
            carry_out(&shorter, NULL, 0, &until);
            early += found.best < STEPS;
            if (found.kept != until.weights || until.kept != until.weights)
                fail_msg("%.40s..., %s: other weights than after minibatch %u", s.config,
                         parallel_text(&s.parallel, text), (unsigned)found.best);
            if (s.parallel.tensor > 1 || s.parallel.data > 1 || s.parallel.replicated > 0) continue;
            s.parallel = (struct parallel){0};
            carry_out(&s, NULL, 0, &alone);
            assert_int_equal(alone.best, found.best);
            assert_true(alone.kept == found.kept);
        }
    assert_true(early > 0);
}

static void test_resumed_runs_keep_them(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("best weights of resumed runs");
    for (size_t c = 0; c < ARRAY_COUNT(configs); c++) {
        struct setting s = draw(seed, 20 * c, configs[c]);
        struct outcome whole, found;
        char folder[SUPPORT_FOLDER_BYTES];
        s.parallel = (struct parallel){.tensor = 1, .pipeline = 1, .data = 2, .chunks = 2, .buckets = 1, .prefetch = 1};
        s.microbatches = 2;
        s.rate = 0.3;
        support_folder_make(folder);
        carry_out(&s, folder, 0, &whole);
        s.first = 4;
        s.parallel.zero = (uint32_t)random_below(seed, 1000 + c, 4);
        s.parallel.pipeline = 2;
        s.parallel.chunks = 1;
        carry_out(&s, folder, seed, &found);
        assert_int_equal(found.best, whole.best);
        assert_true(found.kept == whole.kept);
        support_folder_remove(folder);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_best_weights_are_kept),
        cmocka_unit_test(test_resumed_runs_keep_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
