/* label: medium
 * Adapters of each family: five steps from a folder of PEFT against PEFT, with the same bits however the network is
 * cut; a new adapter changes nothing; a folder that is written is read; what is not read is refused by name.
 *
 * The golden files are made by tests/golden/families_torch/make_lora.py; PEFT is not needed to run this.
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

#include "base/bf16.h"
#include "base/json/json_in.h"
#include "base/size.h"
#include "exec/files/adapter.h"
#include "models/jobs/job_peft.h"
#include "tests/support/planner/support_family.h"
#include "tests/support/planner/support_trained.h"
#include "tests/support/support_folder.h"

enum { STEPS = 5, PATH_BYTES = 512 };

#define GOLDEN SOURCE_DIR "/tests/golden/"
static const char *const folders[] = {GOLDEN "gpt2_torch",
                                      GOLDEN "families_torch/llama",
                                      GOLDEN "families_torch/mistral",
                                      GOLDEN "families_torch/qwen2",
                                      GOLDEN "families_torch/qwen3",
                                      GOLDEN "families_torch/gemma",
                                      GOLDEN "families_torch/gpt_neox",
                                      GOLDEN "families_torch/gptj",
                                      GOLDEN "families_torch/phi"};

static struct family_test test;

/* A network, its job, and the golden run of one folder. */
struct golden {
    struct arena arena;
    struct job job;
    struct json_input *run, *batches;
    char weights[PATH_BYTES], before[PATH_BYTES], after[PATH_BYTES];
};

static struct json_input *read_json(const char *folder, const char *name)
{
    char path[PATH_BYTES];
    struct json_input *in = NULL;
    struct error err = {0};
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (json_input_read(path, &in, &err) != STATUS_OK) fail_msg("%s", err.text);
    return in;
}

static void read_golden(const char *folder, struct golden *out)
{
    struct error err = {0};
    struct json_input *config = read_json(folder, "config.json");
    *out = (struct golden){.run = read_json(folder, "lora.json"), .batches = read_json(folder, "adamw.json")};
    snprintf(out->weights, sizeof out->weights, "%s/initial.safetensors", folder);
    snprintf(out->before, sizeof out->before, "%s/lora_before", folder);
    snprintf(out->after, sizeof out->after, "%s/lora_after", folder);
    struct job *job = &out->job;
    *job = (struct job){.name = "golden", .sequence = 16, .microbatch = 3, .microbatches = 1, .minibatches = STEPS,
                        .data_format = DATA_NONE, .seed = 3, .weights_in = out->weights};
    job->optimizer = (struct job_optimizer){.kind = OPTIMIZER_ADAMW, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8,
                                            .learning_rate =
                                            json_number_value(json_object_get(json_input_root(out->run), "lr"))};
    if (network_parse(config, json_input_root(config), "config", &out->arena, &job->network, &err) ||
        job_peft_read(out->before, false, &out->arena, &job->adapter, &err))
        fail_msg("%s", err.text);
    json_input_destroy(config);
    job->adapter.from = out->before;
    support_train_only(job, &out->arena);
}

static void release_golden(struct golden *golden)
{
    json_input_destroy(golden->run);
    json_input_destroy(golden->batches);
    arena_release(&golden->arena);
}

/* Makes a trainer with the network's weights, and adapters from `folder`, or new ones. */
static void begin(struct trainer *trainer, const struct golden *golden, const struct trainer_options *options,
                  const char *folder)
{
    struct error err = {0};
    struct job job = golden->job;
    job.adapter.from = folder;
    *trainer = (struct trainer){0};
    trainer_init(trainer, &job, options);
    if (weights_read(&job, trainer->state_tables, trainer->shard_count, trainer->states, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    if (!folder) return;
    if (adapter_check(&job, trainer->state_tables, trainer->shard_count, &err) ||
        adapter_read(&job, trainer->state_tables, trainer->shard_count, trainer->states, NULL, &err))
        fail_msg("%s", err.text);
}

static void take_batch(struct trainer *trainer, const struct golden *golden, size_t step)
{
    const json_t *batch = json_array_get(json_object_get(json_input_root(golden->batches), "batches"), step);
    assert_int_equal(json_array_size(batch) * sizeof(int32_t), job_batch_bytes(&golden->job));
    for (size_t i = 0; i < json_array_size(batch); i++)
        trainer->batch[i] = (int32_t)json_integer_value(json_array_get(batch, i));
}

/* Returns the largest difference of an adapter's number; `moved`: the largest distance from `start`. */
static double compare(const struct trainer *found, const struct trainer *expected, const struct trainer *start,
                      double *moved)
{
    struct tensor_spec specs[LAYER_TENSORS_MAX];
    double most = 0;
    *moved = 0;
    for (uint64_t layer = 0; layer < found->job.network.layer_count; layer++) {
        const uint32_t count = network_layer_tensors(&found->job.network, layer, specs);
        for (uint32_t t = 0; t < count; t++) {
            uint64_t elements;
            if (!specs[t].adapter) continue;
            const float *x = trainer_tensor(found, specs[t].name, &elements),
                *y = trainer_tensor(expected, specs[t].name, &elements);
            const float *z = trainer_tensor(start, specs[t].name, &elements);
            for (uint64_t i = 0; i < elements; i++) {
                if (!(fabsf(x[i] - y[i]) <= 1e-4f))
                    fail_msg("%s[%d]: %.9g, expected %.9g", specs[t].name, (int)i, (double)x[i], (double)y[i]);
                most = fmax(most, fabs((double)x[i] - (double)y[i]));
                *moved = fmax(*moved, fabs((double)x[i] - (double)z[i]));
            }
        }
    }
    return most;
}

static uint64_t fingerprint(const struct trainer *trainer)
{
    return weights_fingerprint(&trainer->job, trainer->state_tables, trainer->shard_count, trainer->states);
}

/* Trains with a cut of the network. Returns the fingerprint of the weights. */
static uint64_t train(const struct golden *golden, const struct trainer_options *options, const char *folder)
{
    struct trainer trainer, after, before;
    const json_t *losses = json_object_get(json_input_root(golden->run), "losses");
    double loss_error = 0, moved;
    begin(&trainer, golden, options, golden->before);
    begin(&after, golden, options, golden->after);
    begin(&before, golden, options, golden->before);
    const uint64_t frozen = weights_frozen_fingerprint(&trainer.job, trainer.state_tables, trainer.shard_count,
                                                       trainer.states);
    assert_int_equal(json_array_size(losses), STEPS);
    for (size_t step = 0; step < STEPS; step++) {
        const double expected = json_number_value(json_array_get(losses, step));
        take_batch(&trainer, golden, step);
        trainer_step(&trainer, test.two, step);
        if (!(fabs(trainer.loss - expected) <= 1e-5 * expected))
            fail_msg("%s: loss of step %zu: %.9g, expected %.9g", folder, step, trainer.loss, expected);
        loss_error = fmax(loss_error, fabs(trainer.loss - expected) / expected);
    }
    const double error = compare(&trainer, &after, &before, &moved);
    assert_true(moved > 1e-2);
    assert_true(frozen == weights_frozen_fingerprint(&trainer.job, trainer.state_tables, trainer.shard_count,
                                                     trainer.states));
    print_message("%s: losses differ from PEFT's by at most %.1e, adapters by %.1e\n", strrchr(folder, '/') + 1,
                  loss_error, error);
    const uint64_t result = fingerprint(&trainer);
    trainer_release(&trainer);
    trainer_release(&after);
    trainer_release(&before);
    return result;
}

static void test_peft(void **state)
{
    static const struct trainer_options cuts[] = {
        {.blocks_per_shard = 2, .slices = 1, .poison = true},
        {.blocks_per_shard = 1, .slices = 1, .head_alone = true, .keep = true, .poison = true},
        {.blocks_per_shard = 1, .slices = 1, .inputs = true, .elsewhere = true, .poison = true},
    };
    (void)state;
    for (size_t f = 0; f < ARRAY_COUNT(folders); f++) {
        struct golden golden;
        uint64_t first = 0;
        read_golden(folders[f], &golden);
        for (size_t c = 0; c < ARRAY_COUNT(cuts); c++) {
            const uint64_t weights = train(&golden, &cuts[c], folders[f]);
            if (c == 0) first = weights;
            assert_true(weights == first);
        }
        release_golden(&golden);
    }
}

/* B is zero: the loss is the network's own. A is in its bounds, and another seed makes another one. */
static void test_new(void **state)
{
    (void)state;
    for (size_t f = 0; f < ARRAY_COUNT(folders); f++) {
        struct golden golden;
        struct trainer trainer, other;
        const struct trainer_options options = {.blocks_per_shard = 2, .slices = 1};
        read_golden(folders[f], &golden);
        begin(&trainer, &golden, &options, NULL);
        take_batch(&trainer, &golden, 0);
        const double own = json_number_value(json_object_get(json_input_root(golden.run), "first_loss"));
        const double loss = trainer_evaluate(&trainer, test.two);
        if (!(fabs(loss - own) <= 1e-5 * own)) fail_msg("%s: %.9g, expected %.9g", folders[f], loss, own);
        golden.job.seed++;
        begin(&other, &golden, &options, NULL);
        struct weights_walk walk = {.job = &trainer.job, .tables = trainer.state_tables,
                                    .shard_count = trainer.shard_count,
                                    .states = trainer.states};
        struct weights_tensor tensor;
        while (weights_walk_next(&walk, &tensor)) {
            uint64_t elements, same = 0;
            if (!tensor.spec->adapter) continue;
            const bool b = strstr(tensor.spec->name, "lora_B") != NULL;
            const float bound = b ? 0 : 1 / sqrtf((float)tensor.spec->shape[1]);
            const float *theirs = trainer_tensor(&other, tensor.spec->name, &elements);
            float most = 0;
            for (uint64_t i = 0; i < elements; i++) {
                most = fmaxf(most, fabsf(tensor.values[i]));
                same += tensor.values[i] >= theirs[i] && tensor.values[i] <= theirs[i];
            }
            assert_true(most <= bound && most >= 0.9f * bound);
            assert_true(b ? same == elements : same < elements / 10);
        }
        trainer_release(&trainer);
        trainer_release(&other);
        release_golden(&golden);
    }
}

/* A folder that is written is read back with the same bits, and only for the network whose adapter it is. */
static void test_round(void **state)
{
    (void)state;
    for (size_t f = 0; f < ARRAY_COUNT(folders); f++) {
        struct golden golden;
        struct trainer trainer, again;
        struct error err = {0};
        char folder[SUPPORT_FOLDER_BYTES], path[PATH_BYTES], expected[PATH_BYTES];
        const struct trainer_options options = {.blocks_per_shard = 2, .slices = 1};
        support_folder_make(folder);
        snprintf(path, sizeof path, "%s/adapter_model.safetensors", folder);
        read_golden(folders[f], &golden);
        begin(&trainer, &golden, &options, golden.before);
        if (weights_write(&trainer.job, trainer.state_tables, trainer.shard_count, trainer.states, path, &err) ||
            adapter_write_config(&trainer.job, path, &err))
            fail_msg("%s", err.text);
        begin(&again, &golden, &options, folder);
        assert_true(fingerprint(&trainer) == fingerprint(&again));
        const uint64_t own = weights_base_fingerprint(&again.job, again.state_tables, again.shard_count, again.states),
            other = own + 1;
        if (adapter_read(&again.job, again.state_tables, again.shard_count, again.states, &own, &err))
            fail_msg("%s", err.text);
        assert_int_equal(adapter_read(&again.job, again.state_tables, again.shard_count, again.states, &other, &err),
                         STATUS_BAD_INPUT);
        snprintf(expected, sizeof expected, "adapter_model.safetensors: an adapter of other weights than the job's "
                                            "network has");
        assert_non_null(strstr(err.text, expected));
        trainer_release(&trainer);
        trainer_release(&again);
        release_golden(&golden);
        support_folder_remove(folder);
    }
}

static uint64_t base_of(const struct trainer *trainer)
{
    return weights_base_fingerprint(&trainer->job, trainer->state_tables, trainer->shard_count, trainer->states);
}

/* An adapter that was trained beside a network in one precision is read beside the same network in the other. */
static void test_precisions(void **state)
{
    static const enum precision precisions[][2] = {
        {PRECISION_FP32, PRECISION_BF16_WEIGHTS}, {PRECISION_BF16, PRECISION_FP32}};
    (void)state;
    for (size_t f = 0; f < 2 * ARRAY_COUNT(folders); f++) {
        const struct trainer_options options = {.blocks_per_shard = 2, .slices = 1};
        const enum precision *const both = precisions[f / ARRAY_COUNT(folders)];
        struct trainer trainers[2];
        struct golden golden;
        struct error err = {0};
        read_golden(folders[f % ARRAY_COUNT(folders)], &golden);
        for (size_t p = 0; p < 2; p++) {
            golden.job.precision = both[p];
            begin(&trainers[p], &golden, &options, golden.before);
        }
        for (size_t p = 0; p < 2; p++) {
            struct trainer *const from = &trainers[p], *const to = &trainers[1 - p];
            char folder[SUPPORT_FOLDER_BYTES], path[PATH_BYTES];
            const uint64_t base = base_of(to);
            support_folder_make(folder);
            snprintf(path, sizeof path, "%s/adapter_model.safetensors", folder);
            to->job.adapter.from = folder;
            if (weights_write(&from->job, from->state_tables, from->shard_count, from->states, path, &err) ||
                adapter_read(&to->job, to->state_tables, to->shard_count, to->states, &base, &err))
                fail_msg("%s", err.text);
            support_folder_remove(folder);
        }
        struct trainer *const wide = &trainers[both[0] == PRECISION_FP32 ? 0 : 1];
        struct weights_walk walk = {.job = &wide->job, .tables = wide->state_tables, .shard_count = wide->shard_count,
                                    .states = wide->states};
        struct weights_tensor tensor = {0};
        while (weights_walk_next(&walk, &tensor) && !tensor.spec->frozen) {}
        tensor.values[tensor.spec->elements - 1] += 1; /* another network's */
        assert_true(base_of(&trainers[0]) != base_of(&trainers[1]));
        for (size_t p = 0; p < 2; p++) trainer_release(&trainers[p]);
        release_golden(&golden);
    }
}

/* --- 16 bits throughout ----------------------------------------------------------------------- */

/* As those of whole networks (tests/support/planner/support_family_half.c). */
static const double gradient_tolerance = 0.03, loss_tolerance = 0.01;

/* Makes all values ones that bf16 has, so that each precision begins with the same ones. */
static void round_all(struct trainer *trainer)
{
    struct weights_walk walk = {.job = &trainer->job, .tables = trainer->state_tables,
                                .shard_count = trainer->shard_count, .states = trainer->states};
    struct weights_tensor tensor;
    while (weights_walk_next(&walk, &tensor))
        for (uint64_t i = 0; i < tensor.spec->elements && !tensor.halves; i++)
            tensor.values[i] = bf16_widen(bf16_nearest(tensor.values[i]));
    weights_round(&trainer->job, trainer->state_tables, trainer->shard_count, trainer->states);
}

/* Lists the adapters' values. Returns their number. */
static uint64_t list_adapters(const struct trainer *trainer, double *out)
{
    struct weights_walk walk = {.job = &trainer->job, .tables = trainer->state_tables,
                                .shard_count = trainer->shard_count, .states = trainer->states};
    struct weights_tensor tensor;
    uint64_t count = 0;
    while (weights_walk_next(&walk, &tensor))
        for (uint64_t i = 0; i < tensor.spec->elements && tensor.spec->adapter; i++)
            out[count++] = (double)tensor.values[i];
    return count;
}

/* Steps once by sgd with rate 1; `gradient` gets the difference of the adapters. Returns the loss. */
static double step_in(const struct golden *golden, enum precision precision, double *gradient, double *before)
{
    const struct trainer_options options = {.blocks_per_shard = 1, .slices = 1, .poison = true};
    struct golden with = *golden;
    struct trainer trainer;
    with.job.precision = precision;
    with.job.optimizer = family_optimizer(OPTIMIZER_SGD);
    begin(&trainer, &with, &options, golden->before);
    round_all(&trainer);
    take_batch(&trainer, golden, 0);
    const uint64_t count = list_adapters(&trainer, before);
    trainer_step(&trainer, test.two, 0);
    list_adapters(&trainer, gradient);
    for (uint64_t i = 0; i < count; i++) gradient[i] = before[i] - gradient[i];
    const double loss = trainer.loss;
    trainer_release(&trainer);
    return loss;
}

static double norm_of_difference(const double *a, const double *b, uint64_t count)
{
    double squares = 0;
    for (uint64_t i = 0; i < count; i++) squares += (a[i] - b[i]) * (a[i] - b[i]);
    return sqrt(squares);
}

static void check_gradients(const struct golden *golden, const char *name)
{
    const uint64_t count = network_trained_parameters(&golden->job.network);
    double *const none = calloc(5 * count, sizeof *none), *const fp32 = none + count, *const weights = fp32 + count;
    double *const half = weights + count, *const before = half + count;
    assert_non_null(none);
    const double expected = step_in(golden, PRECISION_FP32, fp32, before);
    step_in(golden, PRECISION_BF16_WEIGHTS, weights, before);
    const double loss = step_in(golden, PRECISION_BF16, half, before);
    const double norm = norm_of_difference(fp32, none, count);
    const double rough = norm_of_difference(weights, fp32, count) / norm;
    const double error = norm_of_difference(half, fp32, count) / norm;
    print_message("%s in bf16: loss %.6f (fp32: %.6f), gradient off by %.2f %% of its norm (bf16-weights: %.2f %%)\n",
                  name, loss, expected, 100 * error, 100 * rough);
    if (!(fabs(loss - expected) <= loss_tolerance * expected)) fail_msg("loss %.9g, expected %.9g", loss, expected);
    if (!(error <= gradient_tolerance + 6 * rough)) fail_msg("gradient off by %.3g of its norm", error);
    assert_true(error > 0);
    free(none);
}

/* PEFT's run in fp32 has about the same losses. */
static void check_losses(const struct golden *golden)
{
    const struct trainer_options options = {.blocks_per_shard = 2, .slices = 1, .poison = true};
    const json_t *losses = json_object_get(json_input_root(golden->run), "losses");
    struct trainer trainer;
    begin(&trainer, golden, &options, golden->before);
    for (size_t step = 0; step < STEPS; step++) {
        const double expected = json_number_value(json_array_get(losses, step));
        take_batch(&trainer, golden, step);
        trainer_step(&trainer, test.two, step);
        if (!(fabs(trainer.loss - expected) <= loss_tolerance * expected))
            fail_msg("loss of step %zu: %.9g, expected %.9g", step, trainer.loss, expected);
    }
    trainer_release(&trainer);
}

/* An adapter in bf16, with a master in fp32, beside the same one in fp32, and in every cut. */
static void test_half(void **state)
{
    (void)state;
    for (size_t f = 0; f < ARRAY_COUNT(folders); f++) {
        struct golden golden;
        read_golden(folders[f], &golden);
        check_gradients(&golden, strrchr(folders[f], '/') + 1);
        golden.job.precision = PRECISION_BF16;
        assert_null(unit_unsupported(&golden.job));
        check_losses(&golden);
        golden.job.optimizer = family_optimizer(OPTIMIZER_ADAMW);
        family_check_cuts(&test, &golden.job, true);
        release_golden(&golden);
    }
}

/* --- refusals --------------------------------------------------------------------------------- */

static void write_config(const char *folder, const char *text)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/adapter_config.json", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (const char *c = text; *c; c++) fputc(*c == '\'' ? '"' : *c, file);
    assert_int_equal(fclose(file), 0);
}

static void test_refused(void **state)
{
#define PLAIN "{'peft_type': 'LORA', 'r': 4, 'target_modules': ['q_proj']"
    static const char *const cases[][2] = {
        {"{'peft_type': 'IA3'}", ":1:15: unknown peft_type 'IA3' (expected LORA)"},
        {"{'peft_type': 'LORA', 'target_modules': ['q_proj']}", ":1:1: missing key 'r'"},
        {"{'peft_type': 'LORA', 'r': 4}", ":1:1: missing key 'target_modules'"},
        {"{'peft_type': 'LORA', 'r': 4, 'target_modules': '.*proj'}",
         ":1:49: 'target_modules' is a pattern (expected a list of names, or all-linear)"},
        {"{'peft_type': 'LORA', 'r': 4, 'target_modules': []}",
         ":1:49: 'target_modules' has 0 names (expected 1 to 100000)"},
        {PLAIN ", 'use_dora': true}", ":1:73: 'use_dora' is not supported (expected none)"},
        {PLAIN ", 'rank_pattern': {'q_proj': 8}}", ":1:77: 'rank_pattern' is not supported (expected none)"},
        {PLAIN ", 'alpha_pattern': {'q_proj': 8}}", ":1:78: 'alpha_pattern' is not supported (expected none)"},
        {PLAIN ", 'modules_to_save': ['lm_head']}", ":1:80: 'modules_to_save' is not supported (expected none)"},
        {PLAIN ", 'bias': 'all'}", ":1:69: 'bias' is 'all' (expected none)"},
        {PLAIN ", 'lora_dropout': 0.1}",
         ":1:77: 'lora_dropout' is not supported (expected 0, or \"dropout\": 0 in the job to train on without)"},
        {PLAIN ", 'init_lora_weights': 'pissa_niter_4'}",
         ":1:82: 'init_lora_weights' is 'pissa_niter_4', which changes the network's own weights (expected true, "
         "false or gaussian)"},
    };
    char folder[SUPPORT_FOLDER_BYTES], expected[2 * PATH_BYTES];
    (void)state;
    support_folder_make(folder);
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct arena arena = {0};
        struct job_adapter adapter = {0};
        struct error err = {0};
        write_config(folder, cases[i][0]);
        assert_int_equal(job_peft_read(folder, false, &arena, &adapter, &err), STATUS_BAD_INPUT);
        snprintf(expected, sizeof expected, "%s/adapter_config.json%s", folder, cases[i][1]);
        assert_string_equal(err.text, expected);
        arena_release(&arena);
    }
    support_folder_remove(folder);
}

/* The folder's tensors have to be those of the job's adapters. */
static void test_other_network(void **state)
{
    struct golden golden, other;
    struct trainer trainer;
    struct error err = {0};
    const struct trainer_options options = {.blocks_per_shard = 2, .slices = 1};
    (void)state;
    read_golden(folders[1], &golden);
    read_golden(folders[3], &other);
    begin(&trainer, &golden, &options, NULL);
    struct job job = trainer.job;
    job.adapter.from = other.before;
    assert_int_equal(adapter_check(&job, trainer.state_tables, trainer.shard_count, &err), STATUS_BAD_INPUT);
    assert_non_null(strstr(err.text, "no tensor 'base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight' "
                                     "among its 18"));
    trainer_release(&trainer);
    release_golden(&golden);
    release_golden(&other);
}

static int set_up(void **state)
{
    (void)state;
    test.fill_batch = family_fill_tokens;
    return family_set_up(&test, "tests/exec/test_exec_adapter.c");
}

static int tear_down(void **state)
{
    (void)state;
    return family_tear_down(&test);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_peft), cmocka_unit_test(test_new),
                                       cmocka_unit_test(test_round),
                                       cmocka_unit_test(test_precisions), cmocka_unit_test(test_half),
                                       cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_other_network)};
    return cmocka_run_group_tests_name("adapters", tests, set_up, tear_down);
}
