/*
 * models/job/job.h: defaults, counts, paths and formats, refusals with their place, and that a written job reads back
 * the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/size.h"
#include "models/job/evaluation.h"
#include "models/jobs/jobs_file.h"
#include "tests/support/support_folder.h"
#include "tests/support/support_models.h"

static void read_jobs(const char *text, struct job_set *out)
{
    struct error err = {0};
    *out = (struct job_set){0};
    if (support_jobs(text, "/data/runs", out, &err) != STATUS_OK) fail_msg("%s", err.text);
}

/* --- values --------------------------------------------------------------------------------- */

static void a_job_has_the_documented_defaults(void **state)
{
    (void)state;
    struct job_set set;
    read_jobs("{\"spillway_jobs\": 1, \"jobs\": [{\"network\": \"gpt2\", \"minibatches\": 20}]}",
              &set);
    assert_int_equal(set.count, 1);
    const struct job *job = &set.jobs[0];
    assert_string_equal(job->name, "job-1");
    assert_string_equal(job->network.name, "gpt2");
    assert_int_equal(job->sequence, 1024);
    assert_int_equal(job->microbatch, 1);
    assert_int_equal(job->minibatches, 20);
    assert_int_equal(job->optimizer.kind, OPTIMIZER_ADAMW);
    assert_true(job->optimizer.learning_rate == 3e-4 && job->optimizer.weight_decay == 0);
    assert_true(job->optimizer.beta1 == 0.9 && job->optimizer.beta2 == 0.999);
    assert_true(job->optimizer.epsilon == 1e-8);
    assert_int_equal(job->seed, 1);
    assert_null(job->data);
    assert_int_equal(job->data_format, DATA_NONE);
    assert_null(job->weights_in);
    assert_null(job->weights_out);
    job_set_release(&set);
}

static void a_job_overrides_the_shared_defaults(void **state)
{
    (void)state;
    struct job_set set;
    read_jobs("{\"spillway_jobs\": 1, \"_comment\": \"two\","
              " \"defaults\": {\"network\": \"gpt2-medium\", \"sequence\": 64, \"microbatch\": 4,"
              "                \"minibatches\": 20, \"seed\": 7, \"data\": \"corpus.txt\","
              "                \"tokens\": \"bytes\", \"optimizer\": {\"kind\": \"sgd\", \"lr\": 0.25}},"
              " \"jobs\": [{\"name\": \"a\"},"
              "            {\"name\": \"b\", \"network\": \"gpt2\", \"sequence\": 96,"
              "             \"optimizer\": {\"weight_decay\": 0.125}, \"seed\": 9,"
              "             \"data\": \"/abs/other.txt\"},"
              "            {\"name\": \"c\", \"optimizer\": \"adamw\"}]}",
              &set);
    assert_int_equal(set.count, 3);
    const struct job *a = &set.jobs[0], *b = &set.jobs[1], *c = &set.jobs[2];
    assert_string_equal(a->network.name, "gpt2-medium");
    assert_int_equal(a->sequence, 64);
    assert_int_equal(a->seed, 7);
    assert_string_equal(a->data, "/data/runs/corpus.txt");
    assert_int_equal(a->data_format, DATA_TEXT);
    assert_true(a->byte_tokens);
    assert_int_equal(a->optimizer.kind, OPTIMIZER_SGD);
    assert_string_equal(b->network.name, "gpt2");
    assert_int_equal(b->sequence, 96);
    assert_int_equal(b->microbatch, 4);
    assert_int_equal(b->optimizer.kind, OPTIMIZER_SGD);
    assert_true(b->optimizer.learning_rate == 0.25 && b->optimizer.weight_decay == 0.125);
    assert_int_equal(b->seed, 9);
    assert_string_equal(b->data, "/abs/other.txt");
    assert_int_equal(c->optimizer.kind, OPTIMIZER_ADAMW);
    assert_true(c->optimizer.learning_rate == 0.25);
    job_set_release(&set);
}

static void momentum_and_schedules(void **state)
{
    (void)state;
    struct job_set set;
    read_jobs("{\"spillway_jobs\": 1, \"defaults\": {\"network\": \"gpt2\", \"minibatches\": 20,"
              "   \"optimizer\": {\"kind\": \"sgd\", \"momentum\": 0.875, \"decay\": \"all\","
              "                   \"clip\": 0.375, \"moments\": \"bf16\","
              "                   \"schedule\": {\"kind\": \"linear\", \"warmup\": 7, \"steps\": 31}}},"
              " \"jobs\": [{\"optimizer\": {\"nesterov\": true, \"schedule\": {\"floor\": 0.25}}},"
              "            {\"optimizer\": {\"kind\": \"adamw\", \"schedule\": \"cosine\"}},"
              "            {\"optimizer\": {\"momentum\": 0, \"decay\": \"matrices\"}},"
              "            {\"optimizer\": \"sgd\"}]}",
              &set);
    const struct job_optimizer *o = &set.jobs[0].optimizer;
    assert_int_equal(o->kind, OPTIMIZER_MOMENTUM);
    assert_true(o->momentum == 0.875 && o->nesterov && o->clip == 0.375);
    assert_int_equal(o->moments, PRECISION_BF16);
    assert_int_equal(o->decay, DECAY_ALL);
    assert_int_equal(o->schedule.kind, RATE_LINEAR);
    assert_true(o->schedule.warmup == 7 && o->schedule.floor == 0.25 && o->schedule.steps == 31);
    o = &set.jobs[1].optimizer;
    assert_int_equal(o->kind, OPTIMIZER_ADAMW);
    assert_int_equal(o->schedule.kind, RATE_COSINE);
    assert_true(o->schedule.warmup == 7 && o->schedule.floor == 0);
    assert_int_equal(o->moments, PRECISION_BF16);
    o = &set.jobs[2].optimizer;
    assert_int_equal(o->kind, OPTIMIZER_SGD);
    assert_int_equal(o->moments, PRECISION_FP32); /* it has none to store */
    assert_int_equal(o->decay, DECAY_MATRICES);
    assert_int_equal(set.jobs[3].optimizer.kind, OPTIMIZER_MOMENTUM);
    job_set_release(&set);
}

static void evaluations(void **state)
{
    (void)state;
    struct job_set set;
    read_jobs("{\"spillway_jobs\": 1, \"defaults\": {\"network\": \"gpt2\", \"minibatches\": 20,"
              "   \"data\": \"a.bin\", \"weights_out\": \"{name}.safetensors\","
              "   \"evaluate\": {\"every\": 6}},"
              " \"jobs\": [{\"name\": \"a\", \"keep\": \"best\"},"
              "            {\"name\": \"b\", \"evaluate\": {\"every\": 10, \"minibatches\": 3,"
              "             \"data\": \"b.bin\"}, \"weights_out\": \"w\", \"keep\": \"best\"}]}",
              &set);
    const struct job *a = &set.jobs[0], *b = &set.jobs[1];
    assert_int_equal(a->evaluation.every, 6);
    assert_int_equal(a->evaluation.minibatches, 8);
    assert_null(a->evaluation.data);
    assert_string_equal(a->weights_best, "/data/runs/a.best.safetensors");
    assert_int_equal(b->evaluation.minibatches, 3);
    assert_string_equal(b->evaluation.data, "/data/runs/b.bin");
    assert_int_equal(b->evaluation.data_format, DATA_NANOGPT);
    assert_string_equal(b->weights_best, "/data/runs/w.best");

    /* after steps 6, 12, 18 and the last; 10 and 20 */
    assert_int_equal(evaluation_count(a), 4);
    assert_int_equal(evaluation_count(b), 2);
    uint64_t found = 0;
    for (uint64_t minibatch = 0; minibatch < 20; minibatch++)
        if (evaluation_follows(a, minibatch)) found |= UINT64_C(1) << (minibatch + 1);
    assert_int_equal(found, 1 << 6 | 1 << 12 | 1 << 18 | 1 << 20);
    assert_false(evaluation_follows(b, 18));
    assert_true(evaluation_follows(b, 19));
    job_set_release(&set);
}

static void count_makes_numbered_jobs(void **state)
{
    (void)state;
    struct job_set set;
    read_jobs("{\"spillway_jobs\": 1, \"jobs\": [{\"name\": \"lr\", \"count\": 3, \"seed\": 40,"
              "\"network\": \"gpt2\", \"minibatches\": 2, \"weights_in\": \"./gpt2.safetensors\","
              "\"weights_out\": \"out/{name}/{name}.safetensors\"},"
              "{\"name\": \"one\", \"count\": 1, \"network\": \"gpt2\", \"minibatches\": 2}]}",
              &set);
    assert_int_equal(set.count, 4);
    for (uint32_t i = 0; i < 3; i++) {
        char name[16], path[80];
        snprintf(name, sizeof name, "lr-%" PRIu32, i + 1);
        snprintf(path, sizeof path, "/data/runs/out/%s/%s.safetensors", name, name);
        assert_string_equal(set.jobs[i].name, name);
        assert_string_equal(set.jobs[i].weights_out, path);
        assert_string_equal(set.jobs[i].weights_in, "/data/runs/gpt2.safetensors");
        assert_int_equal(set.jobs[i].seed, 40 + i);
    }
    assert_string_equal(set.jobs[3].name, "one-1");
    job_set_release(&set);
}

static void other_networks_choose_their_sequence(void **state)
{
    (void)state;
    struct job_set set;
    read_jobs("{\"spillway_jobs\": 1, \"defaults\": {\"minibatches\": 3, \"sequence\": 64}, \"jobs\": ["
              "{\"network\": \"hydra-vit-1b\", \"microbatch\": 512},"
              "{\"network\": {\"model_type\": \"bert\", \"name\": \"small\", \"num_hidden_layers\": 2}}]}",
              &set);
    assert_int_equal(set.jobs[0].sequence, 17);
    assert_int_equal(set.jobs[1].sequence, 64);
    assert_string_equal(set.jobs[1].network.name, "small");
    job_set_release(&set);
    read_jobs("{\"spillway_jobs\": 1, \"jobs\": [{\"minibatches\": 3, \"network\": "
              "{\"model_type\": \"profile\", \"layers\": [{\"parameter_bytes\": 8,"
              "\"activation_bytes\": 1, \"boundary_bytes\": 2, \"forward_ns\": 3,"
              "\"backward_ns\": 4}]}}]}",
              &set);
    assert_int_equal(set.jobs[0].sequence, 1);
    assert_int_equal(set.jobs[0].network.family, NETWORK_PROFILE);
    job_set_release(&set);
}

/* --- files ---------------------------------------------------------------------------------- */

static void write_file(const char *folder, const char *name, const void *data, size_t length)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, length, file), length);
    fclose(file);
}

static void remove_file(const char *folder, const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    unlink(path);
}

/* 20240520 = 0x0134d888, 20240801 = 0x0134d9a1, little-endian. */
static void formats_follow_name_and_magic(void **state)
{
    (void)state;
    char folder[SUPPORT_FOLDER_BYTES], path[64];
    support_folder_make(folder);
    static const char text[] =
        "{\"spillway_jobs\": 1, \"defaults\": {\"network\": \"net/config.json\", \"minibatches\": 2},"
        " \"jobs\": [{\"data\": \"gpt2.bin\"}, {\"data\": \"llama.bin\"}, {\"data\": \"bare.bin\"},"
        " {\"data\": \"missing.bin\"}, {\"data\": \"a.txt\", \"tokens\": \"bytes\"},"
        " {\"data\": \"bare.bin\", \"data_format\": \"text\", \"tokens\": \"bytes\"},"
        " {\"data\": \"bare.bin\", \"tokens\": \"bytes\"}, {}]}";
    static const char network[] = "{\"model_type\": \"gpt2\", \"n_layer\": 2}";
    write_file(folder, "gpt2.bin", "\x88\xd8\x34\x01", 4);
    write_file(folder, "llama.bin", "\xa1\xd9\x34\x01", 4);
    write_file(folder, "bare.bin", "\x88\xd8", 2);
    write_file(folder, "jobs.json", text, strlen(text));
    snprintf(path, sizeof path, "%s/net", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    write_file(path, "config.json", network, strlen(network));
    snprintf(path, sizeof path, "%s/jobs.json", folder);

    struct job_set set = {0};
    struct error err = {0};
    if (job_set_read(path, &set, &err) != STATUS_OK) fail_msg("%s", err.text);
    static const uint32_t formats[] = {DATA_LLMC, DATA_LLMC, DATA_NANOGPT, DATA_NANOGPT,
                                       DATA_TEXT, DATA_TEXT, DATA_TEXT, DATA_NONE};
    assert_int_equal(set.count, ARRAY_COUNT(formats));
    for (uint32_t i = 0; i < set.count; i++) {
        assert_int_equal(set.jobs[i].data_format, formats[i]);
        assert_int_equal(set.jobs[i].network.blocks, 2);
    }
    snprintf(path, sizeof path, "%s/gpt2.bin", folder);
    assert_string_equal(set.jobs[0].data, path);
    job_set_release(&set);

    static const char *const names[] = {"gpt2.bin", "llama.bin", "bare.bin", "jobs.json",
                                        "net/config.json"};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) remove_file(folder, names[i]);
    snprintf(path, sizeof path, "%s/net", folder);
    rmdir(path);
    support_folder_remove(folder);
}

/* "jobs.json" without a folder, seen from its own folder. */
static void relative_job_files_make_absolute_paths(void **state)
{
    (void)state;
    char folder[SUPPORT_FOLDER_BYTES], here[4096], expected[80];
    static const char text[] = "{\"spillway_jobs\": 1, \"jobs\": [{\"network\": \"gpt2\","
                               "\"minibatches\": 2, \"data\": \"a.txt\", \"tokens\": \"bytes\"}]}";
    assert_non_null(getcwd(here, sizeof here));
    support_folder_make(folder);
    write_file(folder, "jobs.json", text, strlen(text));
    assert_int_equal(chdir(folder), 0);
    struct job_set set = {0};
    struct error err = {0};
    assert_int_equal(job_set_read("jobs.json", &set, &err), STATUS_OK);
    snprintf(expected, sizeof expected, "%s/a.txt", folder);
    assert_string_equal(set.jobs[0].data, expected);
    job_set_release(&set);
    assert_int_equal(chdir("/tmp"), 0);
    char relative[64];
    snprintf(relative, sizeof relative, "%s/jobs.json", folder + strlen("/tmp/"));
    assert_int_equal(job_set_read(relative, &set, &err), STATUS_OK);
    assert_string_equal(set.jobs[0].data, expected);
    job_set_release(&set);
    assert_int_equal(chdir(here), 0);
    remove_file(folder, "jobs.json");
    support_folder_remove(folder);
}

/* --- refusals ------------------------------------------------------------------------------- */

/* Reads jobs.json in `folder` with one job of these keys; returns the message, "" when it is accepted. */
static const char *read_one(const char *folder, const char *keys)
{
    static char message[sizeof((struct error *)0)->text];
    char path[300], text[600];
    struct job_set set = {0};
    struct error err = {0};
    snprintf(text, sizeof text, "{\"spillway_jobs\": 1, \"jobs\": [\n{\"minibatches\": 2, %s}]}", keys);
    snprintf(path, sizeof path, "%s/jobs.json", folder);
    write_file(folder, "jobs.json", text, strlen(text));
    if (job_set_read(path, &set, &err) == STATUS_OK) err.text[0] = '\0';
    job_set_release(&set);
    snprintf(message, sizeof message, "%s",
             strncmp(err.text, path, strlen(path)) == 0 ? err.text + strlen(path) : err.text);
    return message;
}

#define BYTE_NETWORK "\"network\": {\"model_type\": \"gpt2\", \"vocab_size\": 512, \"n_layer\": 2}"
#define WANTED "(expected text, tokens in a .bin file of llm.c or nanoGPT, or rows of 'spillway tokenize'"

/* Bytes are tokens where the vocabulary says so, or the job. */
static void bytes_are_tokens_only_when_meant(void **state)
{
    (void)state;
    char folder[SUPPORT_FOLDER_BYTES];
    support_folder_make(folder);
    static const char text[] = "PARis is worth a mass. Gzip is not.";
    write_file(folder, "a.txt", text, sizeof text);
    static const struct {
        const char *keys, *message;
    } rows[] = {
        {BYTE_NETWORK ", \"data\": \"a.txt\"", ""},
        {"\"network\": {\"model_type\": \"gpt2\", \"vocab_size\": 513}, \"data\": \"a.txt\"",
         ":2:82: the bytes of 'a.txt' would be tokens 0 to 255 of the 513 of network 'network' (expected tokens in a "
         ".bin file of llm.c or nanoGPT, or \"tokens\": \"bytes\" if bytes are meant)"},
        {"\"network\": \"gpt2\", \"data\": \"a.txt\", \"data_format\": \"text\"",
         ":2:47: the bytes of 'a.txt' would be tokens 0 to 255 of the 50257 of network 'gpt2' (expected tokens in a "
         ".bin file of llm.c or nanoGPT, or \"tokens\": \"bytes\" if bytes are meant)"},
        {"\"network\": \"gpt2\", \"data\": \"a.txt\", \"tokens\": \"bytes\"", ""},
        {"\"network\": \"gpt2\", \"data\": \"a.txt\", \"tokens\": \"words\"",
         ":2:66: unknown tokens 'words' (expected bytes)"},
        {"\"network\": \"gpt2\", \"data\": \"a.bin\", \"data_format\": \"llmc\", \"tokens\": \"bytes\"",
         ":2:89: 'tokens' is 'bytes' but the format of 'a.bin' is 'llmc' (expected text)"},
        {"\"network\": \"gpt2\", \"evaluate\": {\"every\": 1, \"data\": \"a.txt\"}",
         ":2:72: the bytes of 'a.txt' would be tokens 0 to 255 of the 50257 of network 'gpt2' (expected tokens in a "
         ".bin file of llm.c or nanoGPT, or \"tokens\": \"bytes\" if bytes are meant)"},
        {BYTE_NETWORK ", \"data\": \"a.jsonl\"",
         ":2:96: 'a.jsonl' holds JSON lines by its name: make rows of it by 'spillway tokenize a.jsonl --rows "
         "--tokenizer FOLDER -o a.rows' (or \"tokens\": \"bytes\" if bytes are meant)"},
        {BYTE_NETWORK ", \"data\": \"A.CSV\"",
         ":2:96: 'A.CSV' holds a table by its name, and its bytes would be the tokens " WANTED
         ", or \"tokens\": \"bytes\" if bytes are meant)"},
        {BYTE_NETWORK ", \"data\": \"a.jsonl\", \"tokens\": \"bytes\"", ""},
        {BYTE_NETWORK ", \"data\": \".\", \"tokens\": \"bytes\"", ":2:96: '.' is a folder " WANTED ")"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) assert_string_equal(read_one(folder, rows[i].keys), rows[i].message);
    remove_file(folder, "a.txt");
    remove_file(folder, "jobs.json");
    support_folder_remove(folder);
}

/* Compressed files and weights are refused as data, whatever their names and the job. */
static void files_of_other_formats_are_no_data(void **state)
{
    (void)state;
    char folder[SUPPORT_FOLDER_BYTES];
    support_folder_make(folder);
    static const struct {
        const char *bytes;
        size_t count;
        const char *what;
    } rows[] = {
        {"PAR1\x15\x04", 6, "a Parquet file"},
        {"\x1f\x8b\x08\x00", 4, "compressed by gzip"},
        {"\x28\xb5\x2f\xfd", 4, "compressed by zstd"},
        {"BZh91AY&SY", 10, "compressed by bzip2"},
        {"PK\x03\x04\x14", 5, "a zip archive, as PyTorch writes"},
        {"\x93NUMPY\x01", 7, "a NumPy array"},
        {"\x0b\0\0\0\0\0\0\0{\"a\": null}  ", 21, "a safetensors file of weights"},
        {"GGUF\x03\0\0\0", 8, "a GGUF file of weights"},
    };
    static const char *const names[] = {"a.txt", "a.bin"};
    for (size_t i = 0; i < 2 * ARRAY_COUNT(rows); i++) {
        char keys[200], expected[300];
        const char *name = names[i % 2];
        write_file(folder, name, rows[i / 2].bytes, rows[i / 2].count);
        snprintf(keys, sizeof keys, "\"network\": \"gpt2\", \"data\": \"%s\"%s", name,
                 i % 2 ? "" : ", \"tokens\": \"bytes\"");
        snprintf(expected, sizeof expected, ":2:47: '%s' is %s " WANTED ")", name, rows[i / 2].what);
        assert_string_equal(read_one(folder, keys), expected);
        remove_file(folder, name);
    }
    remove_file(folder, "jobs.json");
    support_folder_remove(folder);
}

/* 99 letters: allowed, but not with a number appended. */
#define TEN "nnnnnnnnnn"
#define LONG_NAME TEN TEN TEN TEN TEN TEN TEN TEN TEN "nnnnnnnnn"
#define ONE_JOB(keys) "{\"spillway_jobs\": 1, \"jobs\": [\n{\"network\": \"gpt2\", \"minibatches\": 2, " keys "}]}"

static void bad_files_are_refused_with_their_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"[]", "test:1:1: found an array (expected an object with 'spillway_jobs' and 'jobs')"},
        {"{\"jobs\": []}", "test:1:1: missing key 'spillway_jobs'"},
        {"{\"spillway_jobs\": 2, \"jobs\": []}", "test:1:19: 'spillway_jobs' is 2 (expected 1)"},
        {"{\"spillway_jobs\": 1, \"jobs\": []}",
         "test:1:30: 'jobs' is empty (expected at least one job)"},
        {"{\"spillway_jobs\": 1, \"jobs\": [3]}",
         "test:1:31: element 0 is a number (expected a job object)"},
        {"{\"spillway_jobs\": 1, \"jobs\": [{\"minibatches\": 2}]}",
         "test:1:31: missing key 'network' (a name of 'spillway models list', or a config.json)"},
        {"{\"spillway_jobs\": 1, \"jobs\": [{\"network\": \"gpt2\"}]}",
         "test:1:31: missing key 'minibatches' (optimizer steps, Hugging Face's max_steps)"},
        {ONE_JOB("\"micr_batch\": 4"),
         "test:2:39: unknown key 'micr_batch' (did you mean 'microbatch'?)"},
        {ONE_JOB("\"microbatch\": 0"), "test:2:53: 'microbatch' is 0 (expected 1 to 1048576)"},
        {ONE_JOB("\"sequence\": 1025"),
         "test:2:51: 'sequence' 1025 is longer than the 1024 positions of network 'gpt2'"},
        {ONE_JOB("\"name\": \"a b\""),
         "test:2:47: bad job name 'a b' (expected at most 100 letters, digits, '-', '_' and '.', "
         "beginning with a letter or digit)"},
        {ONE_JOB("\"name\": \"\""),
         "test:2:47: bad job name '' (expected at most 100 letters, digits, '-', '_' and '.', "
         "beginning with a letter or digit)"},
        {ONE_JOB("\"count\": 2, \"name\": \"" LONG_NAME "\""),
         "test:2:59: the job name '" LONG_NAME "-1' is too long (limit is 100)"},
        {ONE_JOB("\"optimizer\": \"adamv\""),
         "test:2:52: unknown optimizer 'adamv' (expected sgd or adamw)"},
        {ONE_JOB("\"optimizer\": {\"kind\": \"adam\"}"),
         "test:2:61: unknown kind 'adam' (expected sgd or adamw)"},
        {ONE_JOB("\"optimizer\": {\"lr\": 0}"), "test:2:59: 'lr' is 0 (expected more than 0)"},
        {ONE_JOB("\"optimizer\": {\"lr\": -1}"), "test:2:59: 'lr' is -1 (expected 0 to 1000000)"},
        {ONE_JOB("\"optimizer\": {\"beta2\": 1.5}"),
         "test:2:62: 'beta2' is 1.5 (expected 0 to 0.9999999999999999)"},
        {ONE_JOB("\"optimizer\": {\"dampening\": 0.9}"),
         "test:2:53: unknown key 'dampening' (expected kind, lr, weight_decay, beta1, beta2, "
         "epsilon, decay, momentum, nesterov, moments, clip or schedule)"},
        {ONE_JOB("\"precision\": \"int8\""),
         "test:2:52: unknown precision 'int8' (expected fp32, bf16 or bf16-weights)"},
        {ONE_JOB("\"sum\": \"ring\""), "test:2:46: unknown sum 'ring' (expected order or tree)"},
        {ONE_JOB("\"optimizer\": {\"moments\": \"fp8\"}"),
         "test:2:64: unknown moments 'fp8' (expected fp32 or bf16)"},
        {ONE_JOB("\"optimizer\": {\"kind\": \"sgd\", \"moments\": \"bf16\"}"),
         "test:2:79: 'moments' needs an optimizer that has some (found sgd without momentum)"},
        {ONE_JOB("\"optimizer\": {\"clip\": -1}"),
         "test:2:61: 'clip' is -1 (expected 0 to 1e30)"},
        {ONE_JOB("\"optimizer\": \"momentum\""),
         "test:2:52: unknown optimizer 'momentum' (expected sgd or adamw)"},
        {ONE_JOB("\"optimizer\": {\"kind\": \"sgd\", \"momentum\": 1}"),
         "test:2:80: 'momentum' is 1 (expected 0 to 0.9999999999999999)"},
        {ONE_JOB("\"optimizer\": {\"momentum\": 0.9, \"nesterov\": true}"),
         "test:2:65: 'momentum' needs sgd (found adamw)"},
        {ONE_JOB("\"evaluate\": {\"minibatches\": 2}"), "test:2:51: missing key 'every'"},
        {ONE_JOB("\"evaluate\": {\"every\": 0}"),
         "test:2:61: 'every' is 0 (expected 1 to 1000000000)"},
        {ONE_JOB("\"evaluate\": {\"every\": 1, \"data_format\": \"text\"}"),
         "test:2:79: 'data_format' is 'text' but there is no 'data'"},
        {ONE_JOB("\"evaluate\": {\"every\": 1, \"data\": \"a.bin\", \"data_format\": \"images\"}"),
         "test:2:96: 'data_format' is 'images' but network 'gpt2' reads text (expected text, llmc, "
         "nanogpt, rows or none)"},
        {ONE_JOB("\"keep\": \"all\""), "test:2:47: unknown keep 'all' (expected last or best)"},
        {ONE_JOB("\"keep\": \"best\", \"weights_out\": \"w\""),
         "test:2:47: 'keep' is 'best' but there is no 'evaluate'"},
        {ONE_JOB("\"keep\": \"best\", \"evaluate\": {\"every\": 1}"),
         "test:2:47: 'keep' is 'best' but there is no 'weights_out'"},
        {"{\"spillway_jobs\": 1, \"defaults\": {\"network\": \"gpt2\", \"minibatches\": 2,"
         "\"evaluate\": {\"every\": 1}},\n\"jobs\": [{\"keep\": \"best\", \"weights_out\": \"w\"},"
         "{\"weights_out\": \"w.best\"}]}",
         "test:2:63: jobs 'job-1' and 'job-2' would both write '/data/runs/w.best' (use {name} in it)"},
        {ONE_JOB("\"optimizer\": {\"decay\": \"most\"}"),
         "test:2:62: unknown decay 'most' (expected matrices or all)"},
        {ONE_JOB("\"optimizer\": {\"schedule\": \"step\"}"),
         "test:2:65: unknown schedule 'step' (expected constant, linear or cosine)"},
        {ONE_JOB("\"optimizer\": {\"schedule\": {\"floor\": 1.5}}"),
         "test:2:75: 'floor' is 1.5 (expected 0 to 1)"},
        {ONE_JOB("\"optimizer\": {\"schedule\": {\"warmup\": 3}}"),
         "test:2:52: the learning rate warms up for 3 steps (expected at most the 2 of the job)"},
        {ONE_JOB("\"data_format\": \"llmc\""),
         "test:2:54: 'data_format' is 'llmc' but there is no 'data'"},
        {ONE_JOB("\"data\": \"a\", \"data_format\": \"none\""),
         "test:2:67: 'data_format' is 'none' but 'data' names a file"},
        {ONE_JOB("\"data\": \"a.csv\", \"data_format\": \"csv\""),
         "test:2:71: unknown data_format 'csv' (expected text, llmc, nanogpt, none, "
         "cifar10, images, rows or folder)"},
        {ONE_JOB("\"count\": 2, \"weights_out\": \"w.safetensors\""),
         "test:2:66: jobs 'job-1-1' and 'job-1-2' would both write '/data/runs/w.safetensors' "
         "(use {name} in it)"},
        {"{\"spillway_jobs\": 1, \"jobs\": [{\"name\": \"a\", \"network\": \"gpt2\", \"minibatches\": 2},"
         "\n{\"network\": \"gpt2\", \"minibatches\": 2, \"name\": \"a\"}]}",
         "test:2:47: there are two jobs 'a' (names must differ)"},
        {"{\"spillway_jobs\": 1, \"defaults\": {\"sequence\": 2000}, \"jobs\": ["
         "{\"network\": \"gpt2\", \"minibatches\": 2}]}",
         "test:1:47: 'sequence' 2000 is longer than the 1024 positions of network 'gpt2'"},
        {"{\"spillway_jobs\": 1, \"jobs\": [{\"network\": \"gtp2\", \"minibatches\": 2}]}",
         "test:1:43: unknown network 'gtp2' (did you mean 'gpt2'?)"},
        {"{\"spillway_jobs\": 1, \"jobs\": [{\"network\": 7, \"minibatches\": 2}]}",
         "test:1:43: 'network' is neither a name or path nor an object"},
        {"{\"spillway_jobs\": 1, \"jobs\": [{\"network\": {\"model_type\": \"gpt2\", \"vocab_size\": 65},"
         "\n\"minibatches\": 2, \"data\": \"a.txt\"}]}",
         "test:2:27: text needs 256 tokens, one for each byte, and network 'network' has 65"},
        {"{\"spillway_jobs\": 1, \"jobs\": [{\"network\": \"hydra-vit-300m\", \"minibatches\": 1,\n"
         "\"data\": \"a.bin\", \"data_format\": \"llmc\"}]}",
         "test:2:33: 'data_format' is 'llmc' but network 'hydra-vit-300m' reads images (expected "
         "cifar10, images, folder or none)"},
        {"{\"spillway_jobs\": 1, \"jobs\": [{\"network\": \"gpt2\", \"minibatches\": 1,\n"
         "\"data\": \"a.bin\", \"data_format\": \"cifar10\"}]}",
         "test:2:33: 'data_format' is 'cifar10' but network 'gpt2' reads text (expected text, llmc, "
         "nanogpt, rows or none)"},
        {"{\"spillway_jobs\": 1, \"jobs\": [{\"network\": \"vit-base\", \"minibatches\": 1,\n"
         "\"data\": \"a.bin\", \"data_format\": \"cifar10\"}]}",
         "test:2:33: cifar10 has images of 3 x 32 x 32 pixels, and network 'vit-base' takes 3 x 224 "
         "x 224 (expected data_format images)"},
        {"{\"spillway_jobs\": 1, \"jobs\": [{\"network\": {\"model_type\": \"bert\", \"vocab_size\": 256},\n"
         "\"minibatches\": 1, \"data\": \"text\"}]}",
         "test:2:27: text needs 257 tokens, one for each byte and one for the mask, and network "
         "'network' has 256"},
        {ONE_JOB("\"microbatch\": 1048576, \"network_\": 1"),
         "test:2:62: unknown key 'network_' (did you mean 'network'?)"},
        {"{\"spillway_jobs\": 1, \"jobs\": [{\"minibatches\": 2, \"microbatch\": 1048576,"
         "\n\"network\": {\"model_type\": \"gpt2\", \"n_positions\": 4096}}]}",
         "test:1:64: 1048576 samples of 4096 tokens are too many for one minibatch (limit is "
         "2147483648 tokens)"},
        {"{\"spillway_jobs\": 1, \"jobs\": [{\"minibatches\": 2, \"microbatch\": 1048576,"
         "\n\"network\": {\"model_type\": \"gpt2\", \"n_layer\": 90000, \"n_embd\": 12288}}]}",
         "test:1:64: the activations of one minibatch are too large (limit is "
         "1152921504606846976 bytes)"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct job_set set = {0};
        struct error err = {0};
        enum status status = support_jobs(rows[i].text, "/data/runs", &set, &err);
        assert_string_equal(err.text, rows[i].message);
        assert_int_equal(status, STATUS_BAD_INPUT);
        assert_int_equal(set.count, 0);
        assert_null(set.jobs);
        job_set_release(&set);
    }
}

static void too_many_jobs_are_refused(void **state)
{
    (void)state;
    struct job_set set = {0};
    struct error err = {0};
    assert_int_equal(support_jobs("{\"spillway_jobs\": 1, \"defaults\": {\"count\": 16384, "
                                  "\"network\": \"gpt2\", \"minibatches\": 1}, "
                                  "\"jobs\": [{}, {\"count\": 1}]}",
                                  "/", &set, &err),
                     STATUS_BAD_INPUT);
    assert_string_equal(err.text, "test:1:102: too many jobs (limit is 16384)");
    job_set_release(&set);
}

/* --- writing -------------------------------------------------------------------------------- */

static void what_is_written_reads_back_the_same(void **state)
{
    (void)state;
    struct job_set set, again;
    read_jobs("{\"spillway_jobs\": 1, \"defaults\": {\"minibatches\": 300}, \"jobs\": ["
              "{\"network\": \"gpt2-xl\", \"sequence\": 512, \"microbatch\": 3, \"count\": 2,"
              " \"precision\": \"bf16\","
              " \"optimizer\": {\"kind\": \"sgd\", \"lr\": 1e-5, \"epsilon\": 3e-7, \"momentum\": 0.5,"
              "   \"nesterov\": true, \"decay\": \"all\", \"clip\": 0.375, \"moments\": \"bf16\","
              "   \"schedule\": {\"kind\": \"cosine\", \"warmup\": 3, \"floor\": 0.125}}},"
              "{\"name\": \"x\", \"network\": \"hydra-vit-600m\", \"data\": \"/d/a.bin\","
              " \"data_format\": \"images\", \"weights_in\": \"i\", \"weights_out\": \"o\", \"keep\": \"best\","
              " \"sum\": \"tree\","
              " \"evaluate\": {\"every\": 9, \"minibatches\": 7, \"data\": \"/d/b.bin\"}},"
              "{\"name\": \"p\", \"network\": {\"model_type\": \"profile\", \"layers\": ["
              " {\"parameter_bytes\": 8, \"activation_bytes\": 1, \"boundary_bytes\": 2,"
              "  \"forward_ns\": 3, \"backward_ns\": 4, \"repeat\": 5}]}}]}",
              &set);
    char *first = support_jobs_text(&set);
    assert_non_null(first);
    struct error err = {0};
    again = (struct job_set){0};
    if (support_jobs(first, "/elsewhere", &again, &err) != STATUS_OK) fail_msg("%s", err.text);
    assert_int_equal(again.count, 4);
    for (uint32_t i = 0; i < again.count; i++) {
        const struct job *a = &set.jobs[i], *b = &again.jobs[i];
        assert_string_equal(a->name, b->name);
        assert_int_equal(a->sequence, b->sequence);
        assert_int_equal(a->microbatch, b->microbatch);
        assert_int_equal(a->minibatches, b->minibatches);
        assert_int_equal(a->precision, i < 2 ? PRECISION_BF16 : PRECISION_FP32);
        assert_int_equal(a->precision, b->precision);
        assert_int_equal(a->tree, i == 2);
        assert_int_equal(a->tree, b->tree);
        assert_int_equal(a->optimizer.moments, i < 2 ? PRECISION_BF16 : PRECISION_FP32);
        assert_memory_equal(&a->optimizer, &b->optimizer, sizeof a->optimizer);
        assert_int_equal(a->seed, b->seed);
        assert_int_equal(a->data_format, b->data_format);
        assert_int_equal(network_parameters(&a->network), network_parameters(&b->network));
    }
    assert_string_equal(again.jobs[2].weights_in, "/data/runs/i");
    assert_string_equal(again.jobs[2].weights_out, "/data/runs/o");
    char *second = support_jobs_text(&again);
    assert_string_equal(first, second);
    free(first);
    free(second);
    job_set_release(&set);
    job_set_release(&again);
}

static void memory_may_end_anywhere(void **state)
{
    (void)state;
    const char *text = "{\"spillway_jobs\": 1, \"jobs\": [{\"network\": \"gpt2\", \"count\": 9,"
                       "\"minibatches\": 2, \"data\": \"a.bin\", \"weights_out\": \"{name}\"}]}";
    for (uint64_t n = 1;; n++) {
        struct job_set set = {0};
        struct error err = {0};
        alloc_test_fail_at(n);
        enum status status = support_jobs(text, "/data", &set, &err);
        uint64_t calls = alloc_test_fail_at(0);
        job_set_release(&set);
        if (status == STATUS_OK && calls < n) break;
        assert_int_equal(status, STATUS_NO_MEMORY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_has_the_documented_defaults),
        cmocka_unit_test(a_job_overrides_the_shared_defaults),
        cmocka_unit_test(momentum_and_schedules),
        cmocka_unit_test(evaluations),
        cmocka_unit_test(count_makes_numbered_jobs),
        cmocka_unit_test(other_networks_choose_their_sequence),
        cmocka_unit_test(formats_follow_name_and_magic),
        cmocka_unit_test(relative_job_files_make_absolute_paths),
        cmocka_unit_test(bytes_are_tokens_only_when_meant),
        cmocka_unit_test(files_of_other_formats_are_no_data),
        cmocka_unit_test(bad_files_are_refused_with_their_place),
        cmocka_unit_test(too_many_jobs_are_refused),
        cmocka_unit_test(what_is_written_reads_back_the_same),
        cmocka_unit_test(memory_may_end_anywhere),
    };
    return cmocka_run_group_tests_name("models/job/job.h", tests, NULL, NULL);
}
