/*
 * Training on rows: the samples of a batch, and losses over learned tokens.
 *
 * Batches are compared with plain arrays; a run that stops and goes on, and parts of a minibatch, have the same
 * samples. A step of rows with 3, 200 and 0 learned tokens in three microbatches has the loss and the weights of one
 * microbatch of all; a step of rows with nothing to learn has the loss 0.
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
#include "models/rows/rows_set.h"
#include "models/rows/rows_write.h"
#include "tests/support/exec/support_checkpoints.h"
#include "tests/support/exec/support_host_run.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_folder.h"
#include "tests/support/support_seed.h"

enum { VOCABULARY = 131, LENGTH_MAX = 220, PACKED_LENGTH = 40 };

static char folder[SUPPORT_FOLDER_BYTES], path[SUPPORT_FOLDER_BYTES + 16];

static int setup(void **state)
{
    (void)state;
    support_folder_make(folder);
    snprintf(path, sizeof path, "%s/a.rows", folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    support_folder_remove(folder);
    return 0;
}

/* Tokens of row r are 7 r + i; learned are those from `first[r]` on. */
static uint32_t token_of(uint64_t r, uint64_t i)
{
    return (uint32_t)((7 * r + i) % VOCABULARY);
}

static void write_rows(const uint64_t *lengths, const uint64_t *first, uint64_t count)
{
    struct rows_write *rows;
    struct error err = {0};
    if (rows_write_create(path, VOCABULARY, 0, &rows, &err)) fail_msg("%s", err.text);
    for (uint64_t r = 0; r < count; r++) {
        uint32_t tokens[LENGTH_MAX];
        const struct rows_write_span span = {first[r], lengths[r]};
        assert_true(lengths[r] <= LENGTH_MAX);
        for (uint64_t i = 0; i < lengths[r]; i++) tokens[i] = token_of(r, i);
        if (rows_write_row(rows, tokens, lengths[r], &span, first[r] < lengths[r], &err)) fail_msg("%s", err.text);
    }
    if (rows_write_commit(rows, &err)) fail_msg("%s", err.text);
    rows_write_destroy(rows);
}

static struct job job_of(uint64_t sequence, bool packs)
{
    struct job job = {.name = "a", .sequence = sequence, .microbatch = 2, .microbatches = 3, .minibatches = 9,
                      .seed = 5, .data = path, .data_format = DATA_ROWS, .packs = packs,
                      .evaluation = {.share = 0.25, .split_seed = 1}};
    job.network.vocabulary = VOCABULARY;
    return job;
}

/* --- batches ---------------------------------------------------------------------------------------- */

enum { ROWS = 50 };

/* Checks a sample against the rows that it should have. */
static void check_sample(const struct rows_set *set, uint64_t sample, const uint64_t *lengths, const uint64_t *first,
                         const int32_t *found, const int32_t *begins)
{
    const uint64_t t = set->choice.sequence;
    uint32_t one;
    const uint32_t *list;
    uint64_t at = 0;
    const uint64_t count = rows_set_rows(set, sample, &one, &list);
    for (uint64_t n = 0; n < count; n++) {
        const uint64_t r = list[n], begin = at;
        for (uint64_t i = 0; i + 1 < lengths[r] && i < t; i++, at++) {
            assert_int_equal(found[at], token_of(r, i));
            assert_int_equal(found[t + at], i + 1 >= first[r] ? (int32_t)token_of(r, i + 1) : -1);
            if (begins) assert_int_equal(begins[at], begin);
        }
    }
    for (const uint64_t end = at; at < t; at++) {
        assert_int_equal(found[at], 0);
        assert_int_equal(found[t + at], -1);
        if (begins) assert_int_equal(begins[at], end);
    }
}

/* Checks the samples and targets of a minibatch, and that its microbatches are its parts. The arrays have its size. */
static void check_minibatch(const struct job *job, const struct data_source *source, const struct rows_set *set,
                            uint64_t m, const uint64_t *lengths, const uint64_t *first, int32_t *whole, int32_t *part,
                            int32_t *begins)
{
    const uint64_t each = job_batch_bytes(job) / sizeof(int32_t) / job_samples(job);
    const struct parallel_microbatches all = {0, 1, job->microbatches};
    struct error err = {0};
    uint64_t targets = 0;
    if (data_batch(source, m, whole, &err)) fail_msg("%s", err.text);
    data_begins(source, m, &all, begins);
    for (uint64_t b = 0; b < job_samples(job); b++) {
        const int32_t *sample = whole + b * each;
        check_sample(set, rows_set_sample(set, job->seed, m * job_samples(job) + b), lengths, first, sample,
                     begins + b * job->sequence);
        for (uint64_t i = 0; i < job->sequence; i++) targets += sample[job->sequence + i] >= 0;
    }
    assert_int_equal(data_targets(source, m), targets > 0 ? targets : 1);
    for (uint64_t k = 0; k < job->microbatches; k++) {
        const struct parallel_microbatches alone = {k, 1, 1};
        if (data_batch_part(source, m, &alone, part, &err)) fail_msg("%s", err.text);
        assert_memory_equal(part, whole + k * job->microbatch * each, job->microbatch * each * sizeof *part);
    }
}

static void test_batches(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("batches of rows");
    for (uint64_t n = 0; n < 12; n++) {
        uint64_t lengths[ROWS], first[ROWS];
        for (uint64_t r = 0; r < ROWS; r++) {
            lengths[r] = random_below(seed + n, 2 * r, 30);
            first[r] = random_below(seed + n, 2 * r + 1, 30);
        }
        write_rows(lengths, first, ROWS);
        struct job job = job_of(11 + n, n % 2);
        job.evaluation.every = n % 3 == 0 ? 2 : 0;
        job.evaluation.minibatches = 2;
        job.skips_long = n % 4 == 3;
        const struct rows_choice choice = {.sequence = job.sequence, .packs = job.packs, .skips_long = job.skips_long,
                                           .held_out = n % 3 == 0 ? 0.25 : 0, .split_seed = 1};
        struct rows_file file;
        struct rows_set set;
        struct data_source *source, *held_out = NULL;
        struct error err = {0};
        if (rows_file_open(path, &file, &err) || rows_set_make(&file, &choice, false, &set, &err) ||
            data_open(&job, &source, &err))
            fail_msg("%s", err.text);
        const uint64_t words = job_batch_bytes(&job) / sizeof(int32_t), each = words / job_samples(&job);
        assert_int_equal(each, 2 * job.sequence);
        assert_int_equal(data_tokens(source), file.token_count);
        int32_t *whole = malloc(words * sizeof *whole), *part = malloc(words * sizeof *part),
            *begins = malloc(words * sizeof *part);
        assert_true(whole && part && begins);
        for (uint64_t m = 0; m < job.minibatches; m++)
            check_minibatch(&job, source, &set, m, lengths, first, whole, part, begins);
        if (job.evaluation.every > 0) {
            if (data_open_held_out(&job, &held_out, &err) || data_batch(held_out, 1, whole, &err))
                fail_msg("%s", err.text);
            rows_set_release(&set);
            if (rows_set_make(&file, &choice, true, &set, &err)) fail_msg("%s", err.text);
            for (uint64_t b = 0; b < job_samples(&job); b++)
                check_sample(&set, (job_samples(&job) + b) * set.samples / (2 * job_samples(&job)), lengths, first,
                             whole + b * each, NULL);
        }
        free(whole);
        free(part);
        free(begins);
        data_close(source);
        data_close(held_out);
        rows_set_release(&set);
        rows_file_close(&file);
    }
}

static void test_a_token_outside_the_vocabulary(void **state)
{
    (void)state;
    const uint64_t lengths[] = {5, 20}, first[] = {1, 3};
    char wanted[128];
    write_rows(lengths, first, 2);
    struct job job = job_of(8, false);
    struct data_source *source;
    struct error err = {0};
    job.network.vocabulary = 24;
    assert_int_equal(data_open(&job, &source, &err), STATUS_BAD_INPUT);
    snprintf(wanted, sizeof wanted, "data of job 'a': %s: token 22 is 24 (expected less than the vocabulary, 24)",
             path);
    assert_string_equal(err.text, wanted);
}

/* --- losses ----------------------------------------------------------------------------------------- */

static const char *const configs[] = {
    "{\"model_type\": \"gpt2\", \"resid_pdrop\": 0, \"embd_pdrop\": 0, \"attn_pdrop\": 0, "
    "\"n_layer\": 2, \"n_embd\": 32, \"n_head\": 4, \"n_positions\": 256, \"vocab_size\": 131}",
    "{\"model_type\": \"llama\", \"num_hidden_layers\": 2, \"hidden_size\": 32, \"num_attention_heads\": 4, "
    "\"num_key_value_heads\": 2, \"intermediate_size\": 88, \"max_position_embeddings\": 256, \"vocab_size\": 131}",
};

/* A way to put all rows into one minibatch. */
struct way {
    bool packs;
    uint64_t sequence, samples, microbatches;
    uint32_t shards, threads;
};

/* Trains for `steps` on the rows of `path`; checkpoints go to `kept`. */
static void train(const char *config, const struct way *way, uint64_t steps, const char *kept, double *losses)
{
    struct hardware hardware;
    struct job_set jobs;
    struct host_run run;
    host_run_machine(&hardware, 1, way->threads);
    test_network_jobs(&jobs, 1, config, steps);
    struct job *const job = &jobs.jobs[0];
    job->sequence = way->sequence;
    job->microbatches = way->microbatches;
    job->microbatch = way->samples / way->microbatches;
    job->data = path;
    job->data_format = DATA_ROWS;
    job->packs = way->packs;
    job->optimizer.kind = OPTIMIZER_MOMENTUM;
    job->optimizer.learning_rate = 0.05;
    const struct host_run_options options = {.shards = way->shards, .folder = kept};
    host_run(&hardware, &jobs, &options, &run);
    memcpy(losses, run.result.jobs[0].losses, steps * sizeof *losses);
    host_run_release(&run);
}

/* Returns a way with three samples, a row each. */
static struct way way_of(uint64_t microbatches)
{
    return (struct way){.sequence = 206, .samples = 3, .microbatches = microbatches, .shards = 2, .threads = 1};
}

static void test_rows_of_unequal_targets(void **state)
{
    (void)state;
    enum { STEPS = 3 };
    const uint64_t lengths[] = {207, 203, 40}, first[] = {204, 3, 40}; /* learned: 3, 200, 0 */
    const struct way in_one = way_of(1), in_three = way_of(3);
    write_rows(lengths, first, 3);
    for (size_t c = 0; c < ARRAY_COUNT(configs); c++) {
        char one[SUPPORT_FOLDER_BYTES], three[SUPPORT_FOLDER_BYTES];
        double whole[STEPS], parts[STEPS];
        struct job_set jobs;
        support_folder_make(one);
        support_folder_make(three);
        train(configs[c], &in_one, STEPS, one, whole);
        train(configs[c], &in_three, STEPS, three, parts);
        for (int i = 0; i < STEPS; i++)
            if (!(fabs(parts[i] / whole[i] - 1) <= 1e-6))
                fail_msg("loss %d is %.9g (expected %.9g)", i, parts[i], whole[i]);
        assert_true(fabs(whole[0] - log(VOCABULARY)) < 0.3);
        test_network_jobs(&jobs, 1, configs[c], STEPS);
        support_checkpoints_compare(&jobs.jobs[0].network, one, three, STEPS, "three microbatches");
        job_set_release(&jobs);
        support_folder_remove(one);
        support_folder_remove(three);
    }
}

static void test_nothing_to_learn(void **state)
{
    (void)state;
    const uint64_t lengths[] = {40, 7, 1}, first[] = {40, 7, 1};
    char kept[SUPPORT_FOLDER_BYTES];
    double losses[3];
    write_rows(lengths, first, 3);
    for (uint64_t microbatches = 1; microbatches <= 3; microbatches += 2) {
        const struct way way = way_of(microbatches);
        support_folder_make(kept);
        train(configs[0], &way, 3, kept, losses);
        for (int i = 0; i < 3; i++) assert_true(!(losses[i] < 0) && !(losses[i] > 0));
        support_folder_remove(kept);
    }
}

/* --- packed rows ------------------------------------------------------------------------------------ */

static const char *const packed_configs[] = {
    "{\"model_type\": \"gpt2\", \"resid_pdrop\": 0, \"embd_pdrop\": 0, \"attn_pdrop\": 0, "
    "\"n_layer\": 2, \"n_embd\": 32, \"n_head\": 4, \"n_positions\": 64, \"vocab_size\": 131}",
    "{\"model_type\": \"gpt2\", \"resid_pdrop\": 0, \"embd_pdrop\": 0, \"attn_pdrop\": 0, "
    "\"n_layer\": 2, \"n_embd\": 32, \"n_head\": 4, \"n_positions\": 64, \"vocab_size\": 131, "
    "\"tie_word_embeddings\": false}",
    "{\"model_type\": \"llama\", \"num_hidden_layers\": 2, \"hidden_size\": 32, \"num_attention_heads\": 4, "
    "\"num_key_value_heads\": 2, \"intermediate_size\": 88, \"max_position_embeddings\": 64, \"vocab_size\": 131}",
    "{\"model_type\": \"mistral\", \"num_hidden_layers\": 2, \"hidden_size\": 32, \"num_attention_heads\": 4, "
    "\"sliding_window\": 7, \"num_key_value_heads\": 2, \"intermediate_size\": 88, \"max_position_embeddings\": 64, "
    "\"vocab_size\": 131}",
    "{\"model_type\": \"gptj\", \"n_layer\": 2, \"n_embd\": 32, \"n_head\": 4, \"n_positions\": 64, \"rotary_dim\": 4, "
    "\"vocab_size\": 131}",
};

/* Returns the samples of the packed rows of `path`. */
static uint64_t packed_samples(void)
{
    const struct rows_choice choice = {.sequence = PACKED_LENGTH, .packs = true};
    struct rows_file file;
    struct rows_set set;
    struct error err = {0};
    if (rows_file_open(path, &file, &err) || rows_set_make(&file, &choice, false, &set, &err)) fail_msg("%s", err.text);
    const uint64_t samples = set.samples;
    rows_set_release(&set);
    rows_file_close(&file);
    return samples;
}

/* A step of all rows, packed or one in a sample, is the same step. */
static void test_packed_is_separate(void **state)
{
    (void)state;
    enum { STEPS = 3, COUNT = 18 };
    const uint64_t seed = support_seed("packed rows");
    uint64_t lengths[COUNT], first[COUNT];
    for (uint64_t r = 0; r < COUNT; r++) {
        lengths[r] = 2 + random_below(seed, 2 * r, 25);
        first[r] = r % 5 == 0 ? lengths[r] : 1 + random_below(seed, 2 * r + 1, lengths[r]);
    }
    write_rows(lengths, first, COUNT);
    const uint64_t packs = packed_samples();
    assert_true(packs < COUNT / 2 + 1);
    for (size_t c = 0; c < ARRAY_COUNT(packed_configs); c++)
        for (uint32_t n = 0; n < 3; n++) {
            const struct way apart = {.sequence = PACKED_LENGTH, .samples = COUNT, .microbatches = 3, .shards = 2,
                                      .threads = 2};
            const struct way packed = {.packs = true, .sequence = PACKED_LENGTH, .samples = packs,
                                       .microbatches = n == 0 ? 1 : packs, .shards = 1 + n, .threads = 2};
            char one[SUPPORT_FOLDER_BYTES], other[SUPPORT_FOLDER_BYTES];
            double wanted[STEPS], found[STEPS];
            struct job_set jobs;
            support_folder_make(one);
            support_folder_make(other);
            train(packed_configs[c], &apart, STEPS, one, wanted);
            train(packed_configs[c], &packed, STEPS, other, found);
            for (int i = 0; i < STEPS; i++)
                if (!(fabs(found[i] / wanted[i] - 1) <= 1e-6))
                    fail_msg("network %zu: loss %d is %.9g (expected %.9g)", c, i, found[i], wanted[i]);
            test_network_jobs(&jobs, 1, packed_configs[c], STEPS);
            support_checkpoints_compare(&jobs.jobs[0].network, one, other, STEPS, "packed");
            job_set_release(&jobs);
            support_folder_remove(one);
            support_folder_remove(other);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_a_token_outside_the_vocabulary),
        cmocka_unit_test(test_rows_of_unequal_targets),
        cmocka_unit_test(test_nothing_to_learn),
        cmocka_unit_test(test_packed_is_separate),
    };
    return cmocka_run_group_tests_name("exec/files/data_rows.h", tests, setup, teardown);
}
