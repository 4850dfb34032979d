/*
 * Other tools' names for our options (base/process/options.h, cli/common/cli_synonyms.h), keys of job files
 * (base/json/json_rename.h) and degrees (models/job/parallel.h). The result must be the same as with our own names.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/json/json_in.h"
#include "base/process/options.h"
#include "base/size.h"
#include "cli/common/cli.h"
#include "cli/common/cli_synonyms.h"
#include "models/jobs/jobs_file.h"

/* --- options ---------------------------------------------------------------------------------- */

static void an_option_goes_by_other_names(void **state)
{
    (void)state;
    const char *output = NULL;
    uint64_t sequence = 0;
    const struct option_spec specs[] = {
        OPTION_STRING("output", 'o', "FILE", &output, "where it goes"),
        OPTION_U64("sequence", 0, "N", 1, 4096, &sequence, "tokens per sample"),
    };
    struct options options = {.command = "spillway mem", .arguments = "", .summary = "none", .specs = specs,
                              .spec_count = ARRAY_COUNT(specs), .synonyms = cli_synonyms};
    struct error err = {0};
    char verb[] = "mem", out[] = "--out", file[] = "a.json", length[] = "--seq-len=2048";
    char *words[] = {verb, out, file, length};
    assert_int_equal(options_parse(&options, ARRAY_COUNT(words), words, &err), STATUS_OK);
    assert_string_equal(output, "a.json");
    assert_int_equal(sequence, 2048);
    assert_null(options.former);

    /* if the verb lacks the option, the other name is unknown, too; a bad value is reported with our name */
    char type[] = "--dtype=bf16", none[] = "--seq=0";
    char *unknown[] = {verb, type}, *bad[] = {verb, none};
    assert_int_equal(options_parse(&options, 2, unknown, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "unknown option '--dtype' (see 'spillway mem --help')");
    err = (struct error){0};
    assert_int_equal(options_parse(&options, 2, bad, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "option '--sequence' is '0' (expected a whole number from 1 to 4096)");
}

/* A name of the last release works and is told apart from other tools' names. */
static void a_former_name_is_noted(void **state)
{
    (void)state;
    uint64_t buffers = 0;
    const struct option_spec specs[] = {OPTION_U64("weight-buffers", 0, "N", 1, 8, &buffers, "weight buffers")};
    struct options options = {.command = "spillway plan", .arguments = "", .summary = "none", .specs = specs,
                              .spec_count = ARRAY_COUNT(specs), .synonyms = cli_synonyms,
                              .former_names = cli_former_names};
    struct error err = {0};
    char verb[] = "plan", now[] = "--weight-buffers=3", before[] = "--regions=2";
    char *current[] = {verb, now}, *former[] = {verb, before};
    assert_int_equal(options_parse(&options, 2, current, &err), STATUS_OK);
    assert_null(options.former);
    assert_int_equal(options_parse(&options, 2, former, &err), STATUS_OK);
    assert_int_equal(buffers, 2);
    assert_string_equal(options.former->ours, "weight-buffers");
}

struct found {
    bool known[64];
};

static void look(void *context, const struct options *options)
{
    struct found *found = context;
    for (size_t s = 0; cli_synonyms[s].theirs; s++)
        for (size_t i = 0; i < options->spec_count; i++)
            if (strcmp(options->specs[i].name, cli_synonyms[s].ours) == 0) found->known[s] = true;
}

/* Each synonym stands for an option of some verb. */
static void synonyms_mean_something(void **state)
{
    (void)state;
    struct found found = {0};
    struct error err = {0};
    assert_int_equal(cli_look(NULL, look, &found, &err), STATUS_OK);
    for (size_t s = 0; cli_synonyms[s].theirs; s++) {
        assert_true(s < ARRAY_COUNT(found.known));
        if (!found.known[s]) fail_msg("no verb has '%s'", cli_synonyms[s].ours);
    }
}

/* --- keys ------------------------------------------------------------------------------------- */

static enum status parse(const char *text, struct job_set *jobs, struct error *err)
{
    struct json_input *in;
    assert_int_equal(json_input_parse("test", text, strlen(text), &in, err), STATUS_OK);
    enum status status = job_set_parse(in, json_input_root(in), ".", jobs, err);
    json_input_destroy(in);
    return status;
}

static void keys_go_by_other_names(void **state)
{
    (void)state;
    static const char ours[] = "{\"spillway_jobs\": 1, \"defaults\": {\"sequence\": 96}, "
                               "\"jobs\": [{\"network\": \"gpt2\", \"microbatch\": 3, \"microbatches\": 25, "
                               "\"minibatches\": 7, \"precision\": \"bf16\", \"optimizer\": {\"kind\": \"sgd\", "
                               "\"lr\": 0.03}, \"parallel\": {\"tensor\": 2, \"data\": 5}}]}",
                      theirs[] = "{\"spillway_jobs\": 1, \"defaults\": {\"seq_len\": 96}, "
                                 "\"jobs\": [{\"network\": \"gpt2\", \"micro_batch\": 3, \"grad_accum\": 5, "
                                 "\"max_steps\": 7, \"dtype\": \"bf16\", \"optim\": {\"kind\": \"sgd\", "
                                 "\"lr\": 0.03}, \"parallel\": {\"tp\": 2, \"dp\": 5}}]}";
    struct job_set a = {0}, b = {0};
    struct error err = {0};
    if (parse(ours, &a, &err) != STATUS_OK || parse(theirs, &b, &err) != STATUS_OK) fail_msg("%s", err.text);
    const struct job *x = &a.jobs[0], *y = &b.jobs[0];
    assert_int_equal(y->sequence, 96);
    assert_int_equal(x->sequence, y->sequence);
    assert_int_equal(x->microbatch, y->microbatch);
    assert_int_equal(x->microbatches, y->microbatches);
    assert_int_equal(x->minibatches, y->minibatches);
    assert_int_equal(x->precision, y->precision);
    assert_int_equal(x->optimizer.kind, y->optimizer.kind);
    assert_memory_equal(&x->parallel, &y->parallel, sizeof x->parallel);
    job_set_release(&a);
    job_set_release(&b);
}

static void mistakes_have_their_place(void **state)
{
    (void)state;
    static const struct {
        const char *job, *message;
    } rows[] = {
        {"\"seq_len\": 2048", "test:1:80: 'sequence' 2048 is longer than the 1024 positions of network 'gpt2'"},
        {"\"seq_len\": 8, \"x\": 1", "test:1:83: unknown key 'x'"},
        {"\"seq_len\": 8, \"sequence\": 8", "test:1:80: 'seq_len' is another name of 'sequence', which is given as "
                                            "well"},
        {"\"seq_len\": 8, \"seq_length\": 8",
         "test:1:80: 'seq_len' and 'seq_length' both mean 'sequence' (expected one of them)"},
        {"\"parallel\": {\"tp\": 2, \"tensor\": 2}",
         "test:1:88: 'tp' is another name of 'tensor', which is given as well"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        char text[256];
        struct job_set jobs = {0};
        struct error err = {0};
        snprintf(text, sizeof text, "{\"spillway_jobs\": 1, \"jobs\": [{\"network\": \"gpt2\", \"minibatches\": 2, "
                                    "%s}]}",
                 rows[i].job);
        assert_int_equal(parse(text, &jobs, &err), STATUS_BAD_INPUT);
        assert_string_equal(err.text, rows[i].message);
        job_set_release(&jobs);
    }
}

/* --- precisions ------------------------------------------------------------------------------- */

static void precisions_are_spelled_in_many_ways(void **state)
{
    (void)state;
    static const struct {
        const char *text, *ours;
    } rows[] = {
        {"bf16", "bf16"},    {"bfloat16", "bf16"},      {"torch.bfloat16", "bf16"}, {"BF16", "bf16"},
        {"fp16", NULL},
        {"float16", NULL},   {"torch.float16", NULL},   {"half", NULL},             {"torch.HALF", NULL},
    {"fp32", "fp32"},
        {"float32", "fp32"}, {"torch.float32", "fp32"}, {"float", "fp32"},          {"tf32", "fp32"},
    {"int8", NULL},
        {"torch.", NULL},    {"bf1", NULL},             {"", NULL},
    };
    static const char *const choices[] = {"fp32", "bf16", NULL}, *const others[] = {"half", "float", NULL};
    uint32_t fp16 = 0;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        char option[64], job[256], verb[] = "mem";
        size_t chosen = 7;
        struct job_set jobs = {0};
        struct error err = {0};
        const struct option_spec specs[] = {OPTION_CHOICE("dtype", 0, "TYPE", choices, &chosen, "none")};
        struct options options = {.command = "spillway mem", .arguments = "", .summary = "none", .specs = specs,
                                  .spec_count = ARRAY_COUNT(specs), .spelled = precision_spelled};
        const char *found = precision_spelled(rows[i].text);
        if (rows[i].ours ? !found || strcmp(found, rows[i].ours) != 0 : found != NULL) fail_msg("%s", rows[i].text);
        fp16 += precision_is_fp16(rows[i].text);
        if (rows[i].text[0] == '\0') continue;
        snprintf(option, sizeof option, "--dtype=%s", rows[i].text);
        char *words[] = {verb, option};
        enum status expected = rows[i].ours ? STATUS_OK : STATUS_BAD_INPUT;
        assert_int_equal(options_parse(&options, 2, words, &err), expected);
        assert_string_equal(rows[i].ours ? choices[chosen] : "none", rows[i].ours ? rows[i].ours : "none");
        err = (struct error){0};
        snprintf(job, sizeof job, "{\"spillway_jobs\": 1, \"jobs\": [{\"network\": \"gpt2\", \"minibatches\": 2, "
                                  "\"dtype\": \"%s\"}]}",
                 rows[i].text);
        assert_int_equal(parse(job, &jobs, &err), expected);
        bool half = strstr(err.text, "which is neither trained nor modelled here (expected fp32, or bf16, which has "
                                     "the same size)");
        assert_int_equal(half, precision_is_fp16(rows[i].text));
        if (rows[i].ours) assert_string_equal(precision_names[jobs.jobs[0].precision], rows[i].ours);
        job_set_release(&jobs);
    }
    assert_int_equal(fp16, 5);
    /* A word that is a choice of its own stays that. */
    size_t chosen = 7;
    char verb[] = "x", half[] = "--which=half";
    char *words[] = {verb, half};
    const struct option_spec specs[] = {OPTION_CHOICE("which", 0, "TYPE", others, &chosen, "none")};
    struct options options = {.command = "x", .arguments = "", .summary = "none", .specs = specs, .spec_count = 1,
                              .spelled = precision_spelled};
    struct error err = {0};
    assert_int_equal(options_parse(&options, 2, words, &err), STATUS_OK);
    assert_int_equal(chosen, 0);
}

/* --- degrees ---------------------------------------------------------------------------------- */

static void degrees_are_said_once(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"dp=4,dp=2", "'dp' is given twice in 'dp=4,dp=2'"},
        {"dp=4,tp=2,dp=4", "'dp' is given twice in 'dp=4,tp=2,dp=4'"},
        {"sp,tp=2,sp", "'sp' is given twice in 'sp,tp=2,sp'"},
        {"offload=states,zero=3,offload=weights",
         "'offload' is given twice in 'offload=states,zero=3,offload=weights'"},
        {"replicas=2-1,replicas=3", "'replicas' is given twice in 'replicas=2-1,replicas=3'"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct parallel p = {0};
        struct error err = {0};
        assert_int_equal(parallel_parse_text(rows[i].text, &p, &err), STATUS_BAD_INPUT);
        assert_string_equal(err.text, rows[i].message);
    }
    /* the order of words about the same degrees has no meaning: parallel_check() sees both */
    struct parallel before = {0}, behind = {0};
    struct error err = {0};
    assert_int_equal(parallel_parse_text("pp=4,dp=3,replicas=2-1", &before, &err), STATUS_OK);
    assert_int_equal(parallel_parse_text("replicas=2-1,dp=3,pp=4", &behind, &err), STATUS_OK);
    assert_int_equal(before.pipeline, 4);
    assert_int_equal(before.data, 3);
    assert_memory_equal(&before, &behind, sizeof before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_option_goes_by_other_names),
        cmocka_unit_test(a_former_name_is_noted),
        cmocka_unit_test(synonyms_mean_something),
        cmocka_unit_test(keys_go_by_other_names),
        cmocka_unit_test(mistakes_have_their_place),
        cmocka_unit_test(precisions_are_spelled_in_many_ways),
        cmocka_unit_test(degrees_are_said_once),
    };
    return cmocka_run_group_tests_name("synonyms", tests, NULL, NULL);
}
