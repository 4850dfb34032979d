/*
 * Weights in the shards of a folder, as the Hub has them (label: fast): the values of one file, and a line for each
 * folder that is broken.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/files/folder.h"
#include "base/random.h"
#include "exec/files/weights.h"
#include "exec/files/weights_files.h"
#include "tests/support/exec/support_gpt2.h"
#include "tests/support/support_models.h"
#include "tests/support/support_seed.h"

enum { TENSORS_MAX = 64, SHARDS_MAX = 5, PATH_BYTES = 512, TEXT_BYTES = 8192 };

static char folder[PATH_BYTES];

static const char *in_folder(const char *name, char out[PATH_BYTES])
{
    snprintf(out, PATH_BYTES, "%.256s/%s", folder, name);
    return out;
}

static void write_text(const char *name, const char *text)
{
    char path[PATH_BYTES];
    FILE *const file = fopen(in_folder(name, path), "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* --- a network ---------------------------------------------------------------------------------- */

static struct job tiny_job(const char *weights)
{
    return (struct job){.name = "tiny", .network = support_gpt2_network(12, 3, 2, 29, 7), .sequence = 5,
                        .microbatch = 2,
                        .microbatches = 1, .seed = 42, .optimizer = {.kind = OPTIMIZER_ADAMW, .learning_rate = 0.1},
                        .weights_in = weights};
}

static void init(struct trainer *trainer, const struct job *job)
{
    const struct trainer_options options = {.blocks_per_shard = 1, .slices = 1};
    trainer_init(trainer, job, &options);
    for (uint32_t s = 0; s < trainer->shard_count; s++)
        weights_init(&trainer->job, &trainer->state_tables[s], trainer->states[s]);
}

static uint64_t fingerprint(const struct trainer *trainer)
{
    return weights_fingerprint(&trainer->job, trainer->state_tables, trainer->shard_count, trainer->states);
}

static enum status read_weights(struct trainer *trainer, struct error *err)
{
    *err = (struct error){0};
    return weights_read(&trainer->job, trainer->state_tables, trainer->shard_count, trainer->states, err);
}

/* --- folders ------------------------------------------------------------------------------------ */

struct tensors {
    struct safetensors_tensor all[TENSORS_MAX];
    char names[TENSORS_MAX][128];
    uint32_t shard[TENSORS_MAX];
    size_t count;
};

static void list_tensors(struct trainer *trainer, struct tensors *out)
{
    struct weights_walk walk = {.job = &trainer->job, .tables = trainer->state_tables,
                                .shard_count = trainer->shard_count,
                                .states = trainer->states};
    struct weights_tensor tensor;
    for (out->count = 0; weights_walk_next(&walk, &tensor); out->count++) {
        assert_true(out->count < TENSORS_MAX);
        snprintf(out->names[out->count], sizeof out->names[0], "%s", tensor.spec->name);
        out->all[out->count] = (struct safetensors_tensor){.name = out->names[out->count], .rank = tensor.spec->rank,
                                                           .data = (const unsigned char *)tensor.values};
        memcpy(out->all[out->count].shape, tensor.spec->shape, sizeof tensor.spec->shape);
        out->shard[out->count] = 0;
    }
}

static const char *shard_name(uint32_t shard, char out[64])
{
    snprintf(out, 64, "model-%05u-of-%05d.safetensors", shard + 1, SHARDS_MAX);
    return out;
}

/* Writes each shard's tensors, and the index. */
static void write_shards(struct tensors *tensors)
{
    char text[TEXT_BYTES], name[64], path[PATH_BYTES];
    size_t used = (size_t)snprintf(text, sizeof text, "{\"metadata\": {\"total_size\": 1.5}, \"weight_map\": {");
    for (size_t i = 0; i < tensors->count; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s\n\"%s\": \"%s\"", i > 0 ? "," : "",
                                 tensors->all[i].name, shard_name(tensors->shard[i], name));
    snprintf(text + used, sizeof text - used, "}}\n");
    write_text("model.safetensors.index.json", text);
    for (uint32_t s = 0; s < SHARDS_MAX; s++) {
        struct safetensors_tensor some[TENSORS_MAX];
        struct error err = {0};
        size_t count = 0;
        for (size_t i = 0; i < tensors->count; i++)
            if (tensors->shard[i] == s) some[count++] = tensors->all[i];
        if (count > 0 && safetensors_write(in_folder(shard_name(s, name), path), some, count, &err))
            fail_msg("%s", err.text);
    }
}

/* --- tests -------------------------------------------------------------------------------------- */

static void shards_have_the_values_of_one_file(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("shards of weights");
    char index[PATH_BYTES], single[PATH_BYTES];
    in_folder("model.safetensors.index.json", index);
    const char *const paths[] = {folder, index};
    struct job job = tiny_job(folder);
    struct trainer from = {0};
    struct tensors tensors;
    struct error err = {0};
    init(&from, &job);
    for (uint64_t round = 0; round < 12; round++) {
        list_tensors(&from, &tensors);
        for (size_t i = 0; i < tensors.count; i++)
            tensors.shard[i] = (uint32_t)random_below(random_u64(seed, round), i, 1 + round % SHARDS_MAX);
        write_shards(&tensors);
        for (size_t p = 0; p < 2; p++) {
            struct job other = tiny_job(paths[p]);
            struct trainer to = {0};
            other.seed = 7;
            init(&to, &other);
            assert_true(fingerprint(&to) != fingerprint(&from));
            if (read_weights(&to, &err)) fail_msg("seed %llu, round %llu: %s", (unsigned long long)seed,
                                                  (unsigned long long)round, err.text);
            assert_true(fingerprint(&to) == fingerprint(&from));
            trainer_release(&to);
        }
    }
    /* a single file comes first */
    struct job other = tiny_job(folder);
    struct trainer to = {0};
    other.seed = 7;
    init(&to, &other);
    const uint64_t own = fingerprint(&to);
    if (weights_write(&to.job, to.state_tables, to.shard_count, to.states, in_folder("model.safetensors", single),
                      &err))
        fail_msg("%s", err.text);
    if (read_weights(&from, &err)) fail_msg("%s", err.text);
    assert_true(fingerprint(&from) == own);
    remove(single);
    trainer_release(&to);
    trainer_release(&from);
}

static void refuse(struct trainer *to, const char *expected)
{
    struct error err;
    assert_int_equal(read_weights(to, &err), STATUS_BAD_INPUT);
    if (!strstr(err.text, expected)) fail_msg("'%s' is not in '%s'", expected, err.text);
}

static void broken_folders(void **state)
{
    (void)state;
    char path[PATH_BYTES], name[64];
    struct job job = tiny_job(folder);
    struct trainer from = {0};
    struct tensors tensors;
    struct error err;
    init(&from, &job);
    list_tensors(&from, &tensors);
    for (size_t i = 0; i < tensors.count; i++) tensors.shard[i] = i < 3 ? 1 : 0;

    remove(in_folder("model.safetensors.index.json", path));
    refuse(&from, "has neither 'model.safetensors' nor 'model.safetensors.index.json'");

    write_shards(&tensors);
    assert_int_equal(read_weights(&from, &err), STATUS_OK);
    remove(in_folder(shard_name(1, name), path));
    assert_int_not_equal(read_weights(&from, &err), STATUS_OK);
    assert_non_null(strstr(err.text, "cannot open '"));
    assert_non_null(strstr(err.text, "model.safetensors.index.json, for tensor 'wte.weight'"));

    write_shards(&tensors);
    tensors.count--; /* the index lacks the last tensor, which its shard has */
    char text[TEXT_BYTES];
    size_t used = (size_t)snprintf(text, sizeof text, "{\"weight_map\": {");
    for (size_t i = 0; i < tensors.count; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s\n\"%s\": \"%s\"", i > 0 ? "," : "",
                                 tensors.all[i].name, shard_name(tensors.shard[i], name));
    snprintf(text + used, sizeof text - used, "}}\n");
    write_text("model.safetensors.index.json", text);
    refuse(&from, "model.safetensors.index.json:1:16: no entry for tensor 'ln_f.bias' of "
                  "'model-00001-of-00005.safetensors'");
    tensors.count++;

    static const struct {
        const char *text, *message;
    } indexes[] = {
        {"{\"weight_map\": {}}", ":1:16: no tensors (expected \"name\": \"file\")"},
        {"{\"metadata\": {}}", "missing key 'weight_map'"},
        {"{\"weight_map\": {\"a\": \"../x.safetensors\"}}", ":1:22: expected the name of a file in the folder of the "
                                                            "index"},
        {"{\"weight_map\": {\"a\": \"..\"}}", ":1:22: expected the name of a file in the folder of the index"},
        {"{\"weight_map\": {\"a\": 7}}", ":1:22: expected the name of a file in the folder of the index"},
        {"{\"weight_map\": {\"a\": \"model-00001-of-00005.safetensors\"}}",
         ":1:22: tensor 'a' is not in 'model-00001-of-00005.safetensors'"},
        {"{\"weight_map\": {\"a\": \"x\", \"a\": \"x\"}}", "duplicate"},
    };
    for (size_t i = 0; i < sizeof indexes / sizeof *indexes; i++) {
        write_text("model.safetensors.index.json", indexes[i].text);
        refuse(&from, indexes[i].message);
    }

    write_shards(&tensors); /* a tensor in two files */
    tensors.shard[0] = 0;
    struct safetensors_tensor both[TENSORS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < tensors.count; i++)
        if (i == 0 || tensors.shard[i] == 0) both[count++] = tensors.all[i];
    err = (struct error){0};
    if (safetensors_write(in_folder(shard_name(0, name), path), both, count, &err)) fail_msg("%s", err.text);
    refuse(&from, "tensor 'wte.weight' is in 'model-00002-of-00005.safetensors', and in "
                  "'model-00001-of-00005.safetensors', too");
    trainer_release(&from);
}

/* All faults of the tensors are told at once. */
static void all_faults_in_one_line(void **state)
{
    (void)state;
    struct job job = tiny_job(folder);
    struct trainer from = {0};
    struct tensors tensors;
    init(&from, &job);
    list_tensors(&from, &tensors);
    tensors.all[1].name = "wpe";
    tensors.all[5].shape[0] = 37;
    write_shards(&tensors);
    refuse(&from, "no tensor 'wpe.weight' (nor 'transformer.wpe.weight') among its 28; tensor 'h.0.attn.c_attn.bias' "
                  "has shape [37] (expected [36]); the network has no tensor 'wpe'");
    list_tensors(&from, &tensors);
    for (size_t i = 0; i < tensors.count; i++) { /* more than a line holds */
        snprintf(tensors.names[i], sizeof tensors.names[i], "tensor-%zu", i);
        tensors.all[i].name = tensors.names[i];
    }
    write_shards(&tensors);
    refuse(&from, "no tensor 'wte.weight' (nor 'transformer.wte.weight') among its 28; nor 'wpe.weight'; nor '");
    refuse(&from, " more");
    trainer_release(&from);
}

/* Buffers of old files and other heads are left; a head that is not the table of words is not. */
static void tensors_of_no_use(void **state)
{
    (void)state;
    static const char *const left[] = {"h.0.attn.bias", "h.1.attn.masked_bias", "score.weight"};
    struct job job = tiny_job(folder);
    struct trainer from = {0};
    struct tensors tensors;
    struct error err;
    init(&from, &job);
    list_tensors(&from, &tensors);
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        tensors.all[tensors.count] = tensors.all[1];
        tensors.all[tensors.count++].name = left[i];
    }
    tensors.all[tensors.count] = tensors.all[0]; /* the table again */
    tensors.all[tensors.count++].name = "lm_head.weight";
    for (size_t i = 0; i < tensors.count; i++) tensors.shard[i] = (uint32_t)(i % 2);
    write_shards(&tensors);
    if (read_weights(&from, &err)) fail_msg("%s", err.text);

    float other[29 * 12] = {1};
    tensors.all[tensors.count - 1].data = (const unsigned char *)other;
    write_shards(&tensors);
    refuse(&from, "'lm_head.weight' is not the table of words, which is the network's head (expected "
                  "\"tie_word_embeddings\": false)");
    trainer_release(&from);
}

static int setup(void **state)
{
    struct error err = {0};
    (void)state;
    return folder_make_temporary("weights", folder, sizeof folder, &err) == STATUS_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    folder_remove(folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shards_have_the_values_of_one_file),
        cmocka_unit_test(broken_folders),
        cmocka_unit_test(all_faults_in_one_line),
        cmocka_unit_test(tensors_of_no_use),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
