/*
 * models/job/job_batch.h (label: fast): minibatches in the words of transformers, DeepSpeed and Megatron-LM. They count
 * samples of each replica, here all replicas count; of train_batch_size = microbatch * accumulation * replicas any one
 * may be left out, and none may contradict the others.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json/json_in.h"
#include "base/json/json_out.h"
#include "base/random.h"
#include "base/size.h"
#include "cli/common/cli_parallel.h"
#include "models/jobs/jobs_file.h"
#include "tests/support/support_seed.h"

static enum status parse_text(const char *text, struct job_set *jobs, struct error *err)
{
    struct json_input *in;
    assert_int_equal(json_input_parse("test", text, strlen(text), &in, err), STATUS_OK);
    enum status status = job_set_parse(in, json_input_root(in), ".", jobs, err);
    json_input_destroy(in);
    return status;
}

/* One job of gpt2 with these keys, and with these as "defaults". */
static enum status parse(const char *defaults, const char *keys, struct job_set *jobs, struct error *err)
{
    char text[512];
    snprintf(text, sizeof text, "{\"spillway_jobs\": 1, \"defaults\": {\"sequence\": 8%s}, "
                                "\"jobs\": [{\"network\": \"gpt2\", \"minibatches\": 2, %s}]}", defaults, keys);
    return parse_text(text, jobs, err);
}

#define DATA_3 ", \"parallel\": {\"data\": 3}"

static void words_of_others_mean_what_they_mean_there(void **state)
{
    (void)state;
    static const struct {
        const char *defaults, *keys;
        uint64_t microbatch, microbatches;
        const char *text;
    } rows[] = {
        {"", "\"per_device_train_batch_size\": 4, \"gradient_accumulation_steps\": 5" DATA_3, 4, 15,
         "4 samples x 5 accumulated x 3 replicas = 60 a minibatch, in 15 microbatches"},
        {"", "\"micro_batch\": 4, \"grad_accum\": 5", 4, 5, "4 samples x 5 accumulated = 20 a minibatch, in 5 "
                                                            "microbatches"},
        /* DeepSpeed: each two of three, all three, and a single one */
        {"", "\"train_batch_size\": 60, \"train_micro_batch_size_per_gpu\": 4" DATA_3, 4, 15,
         "4 samples x 5 accumulated x 3 replicas = 60 a minibatch, in 15 microbatches"},
        {"", "\"train_batch_size\": 60, \"gradient_accumulation_steps\": 5" DATA_3, 4, 15,
         "4 samples x 5 accumulated x 3 replicas = 60 a minibatch, in 15 microbatches"},
        {"", "\"train_batch_size\": 60, \"train_micro_batch_size_per_gpu\": 4, "
             "\"gradient_accumulation_steps\": 5" DATA_3, 4, 15,
         "4 samples x 5 accumulated x 3 replicas = 60 a minibatch, in 15 microbatches"},
        {"", "\"train_batch_size\": 60" DATA_3, 20, 3, "20 samples x 1 accumulated x 3 replicas = 60 a minibatch, in "
                                                       "3 microbatches"},
        /* Megatron-LM */
        {"", "\"global_batch_size\": 60, \"micro_batch_size\": 2" DATA_3, 2, 30,
         "2 samples x 10 accumulated x 3 replicas = 60 a minibatch, in 30 microbatches"},
        {"", "\"global_batch\": 7, \"microbatch_size\": 7", 7, 1,
         "7 samples x 1 accumulated = 7 a minibatch, in 1 microbatch"},
        /* our own keys count all replicas, and need no other key */
        {"", "\"microbatch\": 4, \"microbatches\": 15" DATA_3, 4, 15, ""},
        {"", "\"microbatch\": 4, \"microbatches\": 15, \"grad_accum\": 5" DATA_3, 4, 15,
         "4 samples x 5 accumulated x 3 replicas = 60 a minibatch, in 15 microbatches"},
        /* what a job says takes the place of what all have */
        {", \"microbatches\": 9", "\"grad_accum\": 5" DATA_3, 1, 15,
         "1 sample x 5 accumulated x 3 replicas = 15 a minibatch, in 15 microbatches"},
        {", \"grad_accum\": 5, \"train_batch_size\": 30", "\"microbatches\": 9" DATA_3, 1, 9, ""},
        {", \"grad_accum\": 5", "\"train_batch_size\": 30" DATA_3, 2, 15,
         "2 samples x 5 accumulated x 3 replicas = 30 a minibatch, in 15 microbatches"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct job_set jobs = {0};
        struct error err = {0};
        char text[JOB_BATCH_TEXT_BYTES];
        if (parse(rows[i].defaults, rows[i].keys, &jobs, &err) != STATUS_OK) fail_msg("%s: %s", rows[i].keys, err.text);
        assert_int_equal(jobs.jobs[0].microbatch, rows[i].microbatch);
        assert_int_equal(jobs.jobs[0].microbatches, rows[i].microbatches);
        assert_string_equal(job_batch_text(&jobs.jobs[0], text), rows[i].text);
        job_set_release(&jobs);
    }
}

static void contradictions_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *keys, *message;
    } rows[] = {
        {"\"train_batch_size\": 64, \"micro_batch\": 4, \"gradient_accumulation_steps\": 5" DATA_3,
         "test:1:118: 'train_batch_size' is 64 but microbatches of 4 x 5 accumulated x 3 replicas are 60 samples"},
        {"\"train_batch_size\": 64, \"micro_batch\": 4, \"gradient_accumulation_steps\": 5",
         "test:1:118: 'train_batch_size' is 64 but microbatches of 4 x 5 accumulated are 20 samples"},
        {"\"global_batch\": 64, \"micro_batch\": 4" DATA_3,
         "test:1:114: 'train_batch_size' is 64 (expected a multiple of 12: microbatches of 4 x 3 replicas)"},
        {"\"global_batch\": 64, \"grad_accum\": 5" DATA_3,
         "test:1:114: 'train_batch_size' is 64 (expected a multiple of 15: accumulated 5 x 3 replicas)"},
        {"\"microbatches\": 5, \"grad_accum\": 5" DATA_3,
         "test:1:131: 'microbatches' is 5 for all replicas together, but 'gradient_accumulation_steps' 5 x 3 replicas "
         "makes 15"},
        {"\"grad_accum\": 5, \"parallel\": {\"replicas\": [2, 1]}",
         "test:1:112: 'gradient_accumulation_steps' counts for each replica, and 'replicas' gives stages different "
         "numbers of replicas (expected 'microbatches', which counts for all of them)"},
        {"\"grad_accum\": 1048576" DATA_3,
         "test:1:112: 'gradient_accumulation_steps': 3145728 microbatches of 1 x 8 tokens are too many for one "
         "minibatch (limit is 1048576 microbatches, 2147483648 tokens)"},
        {"\"grad_accum\": 2, \"gradient_accumulation_steps\": 2",
         "test:1:112: 'grad_accum' is another name of 'gradient_accumulation_steps', which is given as well"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct job_set jobs = {0};
        struct error err = {0};
        assert_int_equal(parse("", rows[i].keys, &jobs, &err), STATUS_BAD_INPUT);
        assert_string_equal(err.text, rows[i].message);
        job_set_release(&jobs);
    }
}

/* From any two values the identity gives the third, and a written job is read again as the same. */
static void the_identity_holds(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("job_batch: the_identity_holds");
    for (uint64_t i = 0; i < 400; i++) {
        uint64_t each = 1 + random_below(seed, 4 * i, 40), steps = 1 + random_below(seed, 4 * i + 1, 40);
        uint64_t data = 1 + random_below(seed, 4 * i + 2, 40), samples = each * steps * data,
            left = random_below(seed, 4 * i + 3, 4);
        char keys[256];
        size_t used = (size_t)snprintf(keys, sizeof keys, "\"parallel\": {\"data\": %" PRIu64 "}", data);
        if (left != 0) used += (size_t)snprintf(keys + used, sizeof keys - used, ", \"microbatch\": %" PRIu64, each);
        if (left != 1) used += (size_t)snprintf(keys + used, sizeof keys - used, ", \"grad_accum\": %" PRIu64, steps);
        if (left != 2)
            used += (size_t)snprintf(keys + used, sizeof keys - used, ", \"global_batch\": %" PRIu64, samples);
        struct job_set jobs = {0}, again = {0};
        struct error err = {0};
        size_t length;
        if (parse("", keys, &jobs, &err) != STATUS_OK) fail_msg("%s: %s", keys, err.text);
        assert_int_equal(jobs.jobs[0].microbatch, each);
        assert_int_equal(jobs.jobs[0].microbatches, steps * data);
        struct json_out *out = json_out_create(NULL);
        job_set_write(jobs.jobs, jobs.count, NULL, out, NULL);
        const char *text = json_out_text(out, &length);
        if (parse_text(text, &again, &err) != STATUS_OK) fail_msg("%s: %s", text, err.text);
        assert_int_equal(again.jobs[0].microbatch, each);
        assert_int_equal(again.jobs[0].microbatches, steps * data);
        assert_int_equal(again.jobs[0].batch.steps, jobs.jobs[0].batch.steps);
        assert_int_equal(again.jobs[0].batch.samples, jobs.jobs[0].batch.samples);
        json_out_destroy(out);
        job_set_release(&jobs);
        job_set_release(&again);
    }
}

/* When the command line gives the number of replicas, the share of each replica changes; a minibatch's samples stay. */
static void degrees_of_the_command_line_count(void **state)
{
    (void)state;
    static const struct {
        const char *keys;
        uint64_t microbatch, microbatches;
    } rows[] = {
        {"\"micro_batch\": 4, \"grad_accum\": 6", 4, 30},
        {"\"micro_batch\": 4, \"global_batch\": 40", 4, 10},
        {"\"global_batch\": 40", 8, 5},
        {"\"microbatch\": 4, \"microbatches\": 10", 4, 10},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct cli_parallel asked = CLI_PARALLEL_NONE;
        struct job_set jobs = {0};
        struct error err = {0};
        asked.degrees = "dp=5";
        if (parse("", rows[i].keys, &jobs, &err) != STATUS_OK || cli_parallel_apply(&asked, &jobs, &err) != STATUS_OK)
            fail_msg("%s", err.text);
        assert_int_equal(jobs.jobs[0].microbatch, rows[i].microbatch);
        assert_int_equal(jobs.jobs[0].microbatches, rows[i].microbatches);
        asked.degrees = "dp=3";
        enum status status = cli_parallel_apply(&asked, &jobs, &err);
        assert_int_equal(status, jobs.jobs[0].batch.samples > 0 ? STATUS_BAD_INPUT : STATUS_OK);
        job_set_release(&jobs);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_of_others_mean_what_they_mean_there),
        cmocka_unit_test(contradictions_are_refused),
        cmocka_unit_test(the_identity_holds),
        cmocka_unit_test(degrees_of_the_command_line_count),
    };
    return cmocka_run_group_tests_name("job_batch", tests, NULL, NULL);
}
