/* models/jobs/job_keys.h: each key is parsed, and changes the fingerprint of plans and the identity of checkpoints as
 * its row says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json_in.h"
#include "base/size.h"
#include "exec/checkpoint/checkpoint_format.h"
#include "models/jobs/jobs_file.h"
#include "models/jobs/job_keys.h"
#include "planner/plan.h"

#define GPT2 "'network': 'gpt2-tiny-bytes', 'sequence': 32"
#define ROWS GPT2 ", 'data': '" SOURCE_DIR "/tests/fuzz/corpus/rows/long'"
#define BF16_PAIR GPT2 ", 'precision': 'bf16', 'microbatches': 2, 'parallel': {'data': 2}"

/* The rest of a job, and the key's part of it before and after; both are valid with `rest`. */
static const struct {
    const char *rest, *before, *after;
} changes[JOB_KEY_COUNT] = {
    [JOB_KEY_NAME] = {GPT2, "", "'name': 'other'"},
    [JOB_KEY_NETWORK] = {"'sequence': 32", "'network': 'gpt2-tiny-bytes'", "'network': 'gpt2'"},
    [JOB_KEY_SEQUENCE] = {"'network': 'gpt2-tiny-bytes'", "'sequence': 32", "'sequence': 16"},
    [JOB_KEY_DECODER_SEQUENCE] = {"'network': 't5-small', 'sequence': 32", "", "'decoder_sequence': 16"},
    [JOB_KEY_IMAGE_SIZE] = {"'network': 'resnet-50'", "", "'image_size': 192"},
    [JOB_KEY_MICROBATCH] = {GPT2, "'microbatch': 2", "'microbatch': 3"},
    [JOB_KEY_MICROBATCHES] = {GPT2, "'microbatches': 2", "'microbatches': 3"},
    [JOB_KEY_ACCUMULATION] = {GPT2, "", "'gradient_accumulation_steps': 3"},
    [JOB_KEY_TRAIN_BATCH_SIZE] = {GPT2, "'train_batch_size': 4", "'train_batch_size': 6"},
    [JOB_KEY_MINIBATCHES] = {GPT2, "'minibatches': 3", "'minibatches': 5"},
    [JOB_KEY_EPOCHS] = {ROWS, "'epochs': 3", "'epochs': 5"},
    [JOB_KEY_FIRST_MINIBATCH] = {GPT2, "", "'first_minibatch': 2"},
    [JOB_KEY_OPTIMIZER] = {GPT2, "'optimizer': {'lr': 0.002}", "'optimizer': {'lr': 0.003}"},
    [JOB_KEY_PRECISION] = {GPT2, "", "'precision': 'bf16-weights'"},
    [JOB_KEY_GRADIENTS] = {BF16_PAIR, "", "'gradients': 'bf16'"},
    [JOB_KEY_SUM] = {GPT2, "", "'sum': 'tree'"},
    [JOB_KEY_DROPOUT] = {"'network': {'model_type': 'gpt2', 'n_layer': 1, 'n_embd': 8, 'n_head': 2, 'attn_pdrop': "
                         "0.1}, 'sequence': 32",
                         "", "'dropout': false"},
    [JOB_KEY_SEED] = {GPT2, "'seed': 5", "'seed': 7"},
    [JOB_KEY_DATA] = {GPT2, "", "'data': 'corpus.txt'"},
    [JOB_KEY_DATA_FORMAT] = {GPT2 ", 'data': 'corpus.txt'", "", "'data_format': 'nanogpt'"},
    [JOB_KEY_TOKENS] = {GPT2 ", 'data': 'corpus.txt'", "", "'tokens': 'bytes'"},
    [JOB_KEY_NORMALIZE] = {"'network': 'resnet-18', 'data': 'images.bin'", "'normalize': {'mean': 0.4, 'std': 0.2}",
                           "'normalize': {'mean': [0.4, 0.4, 0.5], 'std': [0.2, 0.2, 0.2]}"},
    [JOB_KEY_PACKING] = {ROWS, "", "'packing': true"},
    [JOB_KEY_LONG_ROWS] = {ROWS, "", "'long_rows': 'skip'"},
    [JOB_KEY_WEIGHTS_IN] = {GPT2, "", "'weights_in': 'w.safetensors'"},
    [JOB_KEY_WEIGHTS_OUT] = {GPT2, "", "'weights_out': 'w.safetensors'"},
    [JOB_KEY_EVALUATE] = {GPT2, "", "'evaluate': {'every': 2}"},
    [JOB_KEY_KEEP] = {GPT2 ", 'evaluate': {'every': 2}, 'weights_out': 'w.safetensors'", "", "'keep': 'best'"},
    [JOB_KEY_FREEZE] = {GPT2, "'freeze': {'layers': [0]}", "'freeze': {'layers': [[0, 1]]}"},
    [JOB_KEY_ADAPTER] = {GPT2, "'adapter': {'rank': 4}", "'adapter': {'rank': 4, 'alpha': 5}"},
    [JOB_KEY_PARALLEL] = {GPT2 ", 'microbatches': 2", "", "'parallel': {'data': 2}"},
    [JOB_KEY_BASE] = {GPT2 ", 'freeze': {'layers': [0]}", "'base': 'x'", "'base': 'y'"},
    [JOB_KEY_DEVICES] = {GPT2, "", "'devices': [1]"},
    [JOB_KEY_COMPRESSION] = {BF16_PAIR, "", "'compression': {'gradients': {'ratio': 2, 'encode': '1GB/s', 'decode': "
                                            "'1GB/s'}}"},
    [JOB_KEY_COPIES] = {GPT2, "", "'count': 2"},
};

/* by_default: the key is in "defaults". */
static void parse(const char *rest, const char *own, bool by_default, struct job_set *set)
{
    char text[1024];
    struct error err = {0};
    struct json_input *in;
    const bool minibatches = strstr(own, "'minibatches'") || strstr(own, "'epochs'");
    const char *const both = minibatches ? "" : ", 'minibatches': 3";
    if (by_default)
        snprintf(text, sizeof text, "{'spillway_jobs': 1, 'defaults': {%s}, 'jobs': [{%s%s}]}", own, rest, both);
    else
        snprintf(text, sizeof text, "{'spillway_jobs': 1, 'jobs': [{%s%s%s%s}]}", rest, *own ? ", " : "", own, both);
    for (char *c = text; *c; c++)
        if (*c == '\'') *c = '"';
    if (json_input_parse("jobs", text, strlen(text), &in, &err) != STATUS_OK ||
        job_set_parse(in, json_input_root(in), "/tmp", set, &err) != STATUS_OK)
        fail_msg("%s: %s", text, err.text);
    json_input_destroy(in);
}

static uint64_t fingerprint(const struct job_set *set)
{
    uint32_t activations[4] = {0};
    struct plan plan = {.jobs = *set, .job_activations = activations};
    assert_true(set->count <= ARRAY_COUNT(activations));
    return plan_fingerprint(&plan);
}

/* Returns NULL for a network that is not trained and is too large to describe: there are no checkpoints of it. */
static struct checkpoint_identity *identify(const struct job_set *set)
{
    struct checkpoint_identity *identity = NULL;
    struct error err = {0};
    const struct checkpoint_subject subject = {.job = &set->jobs[0]}; /* its data has no tokens */
    if (checkpoint_identify(&subject, &identity, &err) != STATUS_OK)
        assert_int_equal(set->jobs[0].network.family, NETWORK_CNN);
    return identity;
}

static bool identities_differ(const struct job_set *a, const struct job_set *b)
{
    struct checkpoint_identity *x = identify(a), *y = identify(b);
    bool differ = false;
    for (size_t i = 0; x && y && i < CHECKPOINT_KEY_COUNT; i++) differ |= strcmp(x->values[i], y->values[i]) != 0;
    free(x);
    free(y);
    return differ;
}

static void each_key_changes_what_its_row_says(void **state)
{
    (void)state;
    for (size_t key = 0; key < JOB_KEY_COUNT; key++) {
        const struct job_key_row *row = &job_key_rows[key];
        struct job_set before = {0}, after = {0};
        char quoted[64];
        snprintf(quoted, sizeof quoted, "'%s':", row->name);
        if (!changes[key].rest || !strstr(changes[key].after, quoted))
            fail_msg("there is no change of the key '%s' here", row->name);
        parse(changes[key].rest, changes[key].before, false, &before);
        parse(changes[key].rest, changes[key].after, false, &after);
        if ((fingerprint(&before) != fingerprint(&after)) != row->in_fingerprint)
            fail_msg("the fingerprint %s by '%s': see add_job() in planner/plan.c",
                     row->in_fingerprint ? "is not changed" : "is changed", row->name);
        if (identities_differ(&before, &after) != row->in_identity)
            fail_msg("the identity %s by '%s': see checkpoint_identify()",
                     row->in_identity ? "is not changed" : "is changed", row->name);
        job_set_release(&before);
        job_set_release(&after);
    }
}

static void each_key_is_taken_from_defaults(void **state)
{
    (void)state;
    for (size_t key = 0; key < JOB_KEY_COUNT; key++) {
        struct job_set own = {0}, shared = {0};
        if (key == JOB_KEY_NAME || key == JOB_KEY_NETWORK) continue; /* of the job; in the rest */
        parse(changes[key].rest, changes[key].after, false, &own);
        parse(changes[key].rest, changes[key].after, true, &shared);
        const struct job *a = &own.jobs[0], *b = &shared.jobs[0];
        if (fingerprint(&own) != fingerprint(&shared) || a->device_count != b->device_count ||
            a->byte_tokens != b->byte_tokens || a->gradients != b->gradients ||
            parallel_is_set(&a->parallel) != parallel_is_set(&b->parallel))
            fail_msg("'%s' in \"defaults\" is not what it is in a job", job_key_rows[key].name);
        job_set_release(&own);
        job_set_release(&shared);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_key_changes_what_its_row_says),
                                       cmocka_unit_test(each_key_is_taken_from_defaults)};
    return cmocka_run_group_tests_name("models/jobs/job_keys.h", tests, NULL, NULL);
}
