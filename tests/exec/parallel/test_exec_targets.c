/* label: medium, all rounds: slow
 * The loss of a minibatch is the mean over its targets, however these are divided.
 *
 * A masked language model, or a decoder that learns some tokens of rows, trained with many microbatches, which have
 * unequal numbers of targets or none, with packed rows and others, has the losses and weights of the same samples in
 * one microbatch, to rounding: on one device, spilled, in pipelines, replicas, trees, with split states, in tensor
 * groups, with slices of tokens, and in evaluations. The reference has one microbatch, so that nothing is weighed
 * there.
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
#include "exec/files/data.h"
#include "tests/support/exec/support_checkpoints.h"
#include "tests/support/exec/support_host_run.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_folder.h"
#include "tests/support/support_rows.h"
#include "tests/support/support_seed.h"

enum { STEPS = 4, SAMPLES = 16, SEQUENCE = 16, ROWS = 45, VOCABULARY = 67, KINDS = 3 };
#define CASES support_rounds(14, 36)

static const char *const configs[KINDS] = {
    "{\"model_type\": \"bert\", \"num_hidden_layers\": 6, \"hidden_size\": 16, \"num_attention_heads\": 4, "
    "\"intermediate_size\": 24, \"max_position_embeddings\": 16, \"vocab_size\": 67, \"type_vocab_size\": 2, "
    "\"architectures\": [\"BertForMaskedLM\"]}",
    "{\"model_type\": \"gpt2\", \"resid_pdrop\": 0, \"embd_pdrop\": 0, \"attn_pdrop\": 0, "
    "\"n_layer\": 6, \"n_embd\": 16, \"n_head\": 4, \"n_positions\": 16, \"vocab_size\": 67}",
    "{\"model_type\": \"llama\", \"num_hidden_layers\": 6, \"hidden_size\": 16, \"num_attention_heads\": 4, "
    "\"num_key_value_heads\": 2, \"intermediate_size\": 24, \"max_position_embeddings\": 16, \"vocab_size\": 67}",
};

static char rows_path[SUPPORT_FOLDER_BYTES + 16];

struct setting {
    uint32_t kind;
    struct parallel parallel; /* tensor 0: spilled on one device */
    uint64_t microbatches, seed;
    bool packs;
};

static struct job make_job(const struct setting *s, struct job_set *jobs)
{
    test_network_jobs(jobs, 1, configs[s->kind], STEPS);
    struct job *job = &jobs->jobs[0];
    job->microbatch = SAMPLES / s->microbatches;
    job->microbatches = s->microbatches;
    job->seed = s->seed;
    job->optimizer.kind = OPTIMIZER_MOMENTUM;
    job->optimizer.learning_rate = 0.05;
    job->evaluation = (struct job_evaluation){.every = 2, .minibatches = 2, .share = 0.4, .split_seed = s->seed};
    if (s->kind > 0) job->data = rows_path;
    if (s->kind > 0) job->data_format = DATA_ROWS;
    job->parallel = s->parallel;
    job->packs = s->packs;
    return *job;
}

static const char *how_of(const struct setting *s, char text[PARALLEL_TEXT_BYTES])
{
    return s->parallel.tensor > 0 ? parallel_text(&s->parallel, text) : "spilled";
}

struct outcome {
    double losses[STEPS];
    struct evaluation_progress evaluations[STEPS];
    uint64_t evaluation_count;
};

static void carry_out(const struct setting *s, const char *folder, uint64_t delay_seed, struct outcome *out)
{
    struct hardware hardware;
    struct job_set jobs;
    struct host_run run;
    char how[PARALLEL_TEXT_BYTES];
    const bool spilled = s->parallel.tensor == 0;
    host_run_machine(&hardware, spilled ? 1 : (uint32_t)parallel_devices(&s->parallel), 1);
    make_job(s, &jobs);
    const struct host_run_options options = {.policy = spilled ? "spill-sequential" : NULL, .shards = 3,
                                             .folder = folder,
                                             .delay_seed = delay_seed, .what = how_of(s, how)};
    host_run(&hardware, &jobs, &options, &run);
    const struct run_job_result *const of = &run.result.jobs[0];
    assert_int_equal(of->minibatches, STEPS);
    memcpy(out->losses, of->losses, sizeof out->losses);
    out->evaluation_count = of->evaluation_count;
    memcpy(out->evaluations, of->evaluations, out->evaluation_count * sizeof *out->evaluations);
    host_run_release(&run);
}

/* Returns true if both settings train on the same labels: a microbatch in which no word would be chosen has one
 * more. */
static bool have_equal_labels(const struct setting *a, const struct setting *b)
{
    int32_t batches[2][SAMPLES * 3 * SEQUENCE];
    bool equal = true;
    for (uint64_t m = 0; m < STEPS && a->kind == 0; m++) {
        for (int i = 0; i < 2; i++) {
            struct job_set jobs;
            struct data_source *source;
            struct error err = {0};
            const struct job job = make_job(i == 0 ? a : b, &jobs);
            if (data_open(&job, &source, &err) || data_batch(source, m, batches[i], &err)) fail_msg("%s", err.text);
            data_close(source);
            job_set_release(&jobs);
        }
        equal = equal && memcmp(batches[0], batches[1], sizeof batches[0]) == 0;
    }
    return equal;
}

static struct parallel draw(uint64_t seed, uint64_t at, uint32_t kind, uint64_t microbatches)
{
    static const uint32_t schedules[] = {PIPELINE_GPIPE, PIPELINE_1F1B, PIPELINE_ZB_H1};
    struct parallel p = {.tensor = 1, .pipeline = 1 + (uint32_t)random_below(seed, at, 3), .data = 1, .chunks = 1,
                         .prefetch = 1};
    if (random_below(seed, at + 1, 6) == 0) return (struct parallel){0};
    if (kind > 0 && random_below(seed, at + 11, 4) == 0) {
        p.pipeline = 2;
        p.schedule = PIPELINE_TERAPIPE;
        p.slices = 2;
        p.slice_tokens[0] = 11;
        p.slice_tokens[1] = SEQUENCE - 11;
        return p;
    }
    p.schedule = p.pipeline > 1 ? schedules[random_below(seed, at + 2, 3)] : PIPELINE_1F1B;
    if (random_below(seed, at + 3, 3) == 0) p.tensor = 2;
    if (random_below(seed, at + 4, 2) && p.schedule != PIPELINE_ZB_H1) { /* unequal replicas */
        p.replicated = p.pipeline;
        for (uint32_t i = 0; i < p.pipeline; i++)
            p.replicas[i] = 1 + (uint32_t)random_below(seed, at + 5 + i, microbatches < 4 ? 2 : 3);
        return p;
    }
    p.data = random_below(seed, at + 8, 2) ? 2 : 1;
    if (p.data > 1) p.zero = (uint32_t)random_below(seed, at + 9, p.schedule == PIPELINE_ZB_H1 ? 2 : 4);
    p.tree = p.zero == 0 && p.schedule != PIPELINE_ZB_H1 && random_below(seed, at + 10, 2);
    return p;
}

static void compare(const struct setting *s, const struct outcome *wanted, const struct outcome *found)
{
    char text[PARALLEL_TEXT_BYTES];
    const char *how = how_of(s, text);
    for (uint64_t i = 0; i < STEPS; i++)
        if (!(fabs(found->losses[i] / wanted->losses[i] - 1) <= 1e-5))
            fail_msg("%s, %u microbatches: loss %u is %.9g (expected %.9g)", how, (unsigned)s->microbatches,
                     (unsigned)i, found->losses[i], wanted->losses[i]);
    assert_int_equal(found->evaluation_count, wanted->evaluation_count);
    for (uint64_t i = 0; i < found->evaluation_count; i++)
        if (!(fabs(found->evaluations[i].loss / wanted->evaluations[i].loss - 1) <= 1e-5))
            fail_msg("%s, %u microbatches: evaluation %u is %.9g (expected %.9g)", how, (unsigned)s->microbatches,
                     (unsigned)i, found->evaluations[i].loss, wanted->evaluations[i].loss);
}

static void test_microbatches_of_one_minibatch(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("targets");
    uint32_t compared = 0;
    char folder[SUPPORT_FOLDER_BYTES];
    support_folder_make(folder);
    snprintf(rows_path, sizeof rows_path, "%s/a.rows", folder);
    support_rows_write(rows_path, seed, ROWS, 2 * SEQUENCE, VOCABULARY, 3);
    for (uint64_t n = 0; n < CASES; n++) {
        const uint32_t kind = (uint32_t)(n % KINDS);
        struct setting whole = {.kind = kind, .microbatches = 1, .seed = seed + n};
        struct setting s = {.kind = kind, .microbatches = UINT64_C(2) << random_below(seed, 20 * n + 19, 2),
                            .seed = seed + n};
        s.parallel = draw(seed, 20 * n, kind, s.microbatches);
        whole.packs = s.packs = kind > 0 && s.parallel.slices == 0 && random_below(seed, 20 * n + 18, 2);
        char how[PARALLEL_TEXT_BYTES], one[SUPPORT_FOLDER_BYTES], many[SUPPORT_FOLDER_BYTES];
        struct outcome wanted, found;
        struct job_set jobs;
        if (!have_equal_labels(&whole, &s)) continue;
        compared++;
        print_message("network %u: %s%s, %s, %u microbatches\n", (unsigned)kind, s.packs ? "packed, " : "",
                      how_of(&s, how),
                      pipeline_schedule_names[s.parallel.schedule], (unsigned)s.microbatches);
        support_folder_make(one);
        support_folder_make(many);
        carry_out(&whole, one, 0, &wanted);
        carry_out(&s, many, seed + n, &found);
        compare(&s, &wanted, &found);
        test_network_jobs(&jobs, 1, configs[kind], STEPS);
        support_checkpoints_compare(&jobs.jobs[0].network, one, many, STEPS, how_of(&s, how));
        job_set_release(&jobs);
        support_folder_remove(one);
        support_folder_remove(many);
    }
    assert_true(compared > CASES / 2);
    support_folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_microbatches_of_one_minibatch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
