/* label: medium
 * Folders of the Hub trained by unit_compute(): every gradient by its name in the files, and the losses of 20 steps of
 * AdamW, against the modules of transformers.
 *
 * The golden folders are made by tests/golden/families_hub/make_families_hub.py; transformers is not needed to run
 * this.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/json/json_in.h"
#include "base/size.h"
#include "exec/files/safetensors.h"
#include "exec/files/weights.h"
#include "tests/support/planner/support_family.h"
#include "tests/support/support_folder.h"

#define FOLDERS SOURCE_DIR "/tests/golden/families_hub/"

static const char *const folders[] = {FOLDERS "gemma2", FOLDERS "gemma3_text", FOLDERS "opt", FOLDERS "gpt_neox",
                                      FOLDERS "mixtral", FOLDERS "qwen3_moe", FOLDERS "qwen2_moe"};

static struct family_test test;

struct golden {
    struct arena arena;
    struct json_input *input;
    const json_t *batches, *losses;
    char weights[512];
    struct job job;
};

static void open_golden(const char *folder, struct golden *g)
{
    char path[512];
    struct error err = {0};
    snprintf(path, sizeof path, "%s/golden.json", folder);
    if (json_input_read(path, &g->input, &err)) fail_msg("%s", err.text);
    g->batches = json_object_get(json_input_root(g->input), "batches");
    g->losses = json_object_get(json_input_root(g->input), "losses");
    snprintf(path, sizeof path, "%s/config.json", folder);
    g->job = (struct job){.name = "golden", .sequence = 12, .microbatch = 3, .microbatches = 1, .minibatches = 20};
    if (network_read_config(path, &g->arena, &g->job.network, &err)) fail_msg("%s", err.text);
    snprintf(g->weights, sizeof g->weights, "%s", folder);
    g->job.weights_in = g->weights;
    assert_null(unit_unsupported(&g->job));
    assert_true(json_array_size(json_array_get(g->batches, 0)) == g->job.microbatch * (g->job.sequence + 1));
}

static void close_golden(struct golden *g)
{
    json_input_destroy(g->input);
    arena_release(&g->arena);
}

static void begin(struct trainer *trainer, const struct job *job, const struct trainer_options *options)
{
    struct error err = {0};
    trainer_init(trainer, job, options);
    if (weights_read(job, trainer->state_tables, trainer->shard_count, trainer->states, &err)) fail_msg("%s", err.text);
}

static void take_batch(struct trainer *trainer, const struct golden *g, uint64_t step)
{
    const json_t *const batch = json_array_get(g->batches, step);
    for (size_t i = 0; i < json_array_size(batch); i++)
        trainer->batch[i] = (int32_t)json_integer_value(json_array_get(batch, i));
}

/* Writes the weights as the files have them, and opens them. */
static void write_weights(const struct trainer *trainer, const char *path, struct safetensors **out)
{
    struct error err = {0};
    if (weights_write(&trainer->job, trainer->state_tables, trainer->shard_count, trainer->states, path, &err) ||
        safetensors_open(path, out, &err))
        fail_msg("%s", err.text);
}

static float *floats_of(const struct safetensors *file, const char *name, uint64_t elements)
{
    const struct safetensors_tensor *const tensor = safetensors_find(file, name);
    if (!tensor || tensor->elements != elements)
        fail_msg("no tensor '%s' of %llu elements", name, (unsigned long long)elements);
    float *const values = malloc(elements * sizeof *values);
    assert_non_null(values);
    assert_true(safetensors_floats(tensor, values));
    return values;
}

/* A step by sgd with rate 1 subtracts the gradient, to within the rounding of the weight. Returns the largest error
 * relative to the tensor's largest gradient. */
static double compare_gradient(const struct safetensors_tensor *expected, const struct safetensors *before,
                               const struct safetensors *after)
{
    const uint64_t count = expected->elements;
    float *const g = malloc(count * sizeof *g), *const p = floats_of(before, expected->name, count),
          *const q = floats_of(after, expected->name, count);
    double largest = 0, worst = 0;
    assert_non_null(g);
    assert_true(safetensors_floats(expected, g));
    for (uint64_t i = 0; i < count; i++) largest = fmax(largest, fabs((double)g[i]));
    for (uint64_t i = 0; i < count; i++) {
        const double rounding = 1.2e-7 * fmax(fabs((double)p[i]), fabs((double)q[i])) + 1e-8;
        const double error = fabs((double)p[i] - (double)q[i] - (double)g[i]);
        if (!(error <= 1e-4 * largest + rounding))
            fail_msg("gradient of %s[%llu]: %.9g, expected %.9g (largest %.9g)", expected->name, (unsigned long long)i,
                     (double)p[i] - (double)q[i], (double)g[i], largest);
        if (error > rounding) worst = fmax(worst, (error - rounding) / largest);
    }
    free(g);
    free(p);
    free(q);
    return worst;
}

static double check_gradients(const struct golden *g, const char *folder, const struct trainer_options *options)
{
    struct safetensors *gradients = NULL, *before = NULL, *after = NULL;
    char root[SUPPORT_FOLDER_BYTES], path[512];
    struct trainer trainer = {0};
    struct job job = g->job;
    struct error err = {0};
    double worst = 0;
    support_folder_make(root);
    job.optimizer = family_optimizer(OPTIMIZER_SGD);
    begin(&trainer, &job, options);
    snprintf(path, sizeof path, "%s/before", root);
    write_weights(&trainer, path, &before);
    take_batch(&trainer, g, 0);
    trainer_step(&trainer, test.two, 0);
    snprintf(path, sizeof path, "%s/after", root);
    write_weights(&trainer, path, &after);
    snprintf(path, sizeof path, "%s/gradients.safetensors", folder);
    if (safetensors_open(path, &gradients, &err)) fail_msg("%s", err.text);
    assert_int_equal(safetensors_count(gradients), safetensors_count(before));
    for (size_t i = 0; i < safetensors_count(gradients); i++)
        worst = fmax(worst, compare_gradient(safetensors_at(gradients, i), before, after));
    safetensors_close(gradients);
    safetensors_close(before);
    safetensors_close(after);
    trainer_release(&trainer);
    support_folder_remove(root);
    return worst;
}

/* Returns the largest relative error of a loss. */
static double check_losses(const struct golden *g, const struct trainer_options *options)
{
    struct trainer trainer = {0};
    struct job job = g->job;
    double worst = 0;
    job.optimizer = (struct job_optimizer){.kind = OPTIMIZER_ADAMW, .learning_rate = 2e-3, .weight_decay = 0.1,
                                           .beta1 = 0.9,
                                           .beta2 = 0.95, .epsilon = 1e-8};
    begin(&trainer, &job, options);
    for (uint64_t step = 0; step < json_array_size(g->losses); step++) {
        take_batch(&trainer, g, step);
        trainer_step(&trainer, test.two, step);
        const double expected = json_number_value(json_array_get(g->losses, step));
        const double error = fabs(trainer.loss / expected - 1);
        if (!(error <= 1e-5))
            fail_msg("loss of step %llu: %.9g, expected %.9g", (unsigned long long)step, trainer.loss, expected);
        worst = fmax(worst, error);
    }
    trainer_release(&trainer);
    return worst;
}

static void test_folders(void **state)
{
    (void)state;
    for (size_t f = 0; f < ARRAY_COUNT(folders); f++) {
        static const struct trainer_options cuts[] = {{.blocks_per_shard = 2, .slices = 1},
                                                      {.blocks_per_shard = 1, .head_alone = true, .slices = 3}};
        struct golden g = {.input = NULL};
        double gradients = 0, losses = 0;
        open_golden(folders[f], &g);
        for (size_t c = 0; c < ARRAY_COUNT(cuts); c++) {
            gradients = fmax(gradients, check_gradients(&g, folders[f], &cuts[c]));
            losses = fmax(losses, check_losses(&g, &cuts[c]));
        }
        print_message("%s: gradients differ by at most %.1e of the largest of their tensor, losses by %.1e\n",
                      folders[f] + sizeof FOLDERS - 1, gradients, losses);
        close_golden(&g);
    }
}

static int setup(void **state)
{
    (void)state;
    return family_set_up(&test, "folders of the Hub");
}

static int teardown(void **state)
{
    (void)state;
    return family_tear_down(&test);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_folders)};
    return cmocka_run_group_tests_name("families of the Hub", tests, setup, teardown);
}
