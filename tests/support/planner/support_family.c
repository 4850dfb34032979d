/* Trains small networks of any family and compares the results. */
#include "tests/support/planner/support_family.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bf16.h"
#include "base/json/json_in.h"
#include "base/random.h"
#include "exec/files/safetensors.h"
#include "exec/files/weights.h"
#include "models/network/network_ignored.h"
#include "models/network/network_traits.h"
#include "tests/support/support_seed.h"

int family_set_up(struct family_test *test, const char *subject)
{
    struct error err = {0};
    if (kernels_host_create(1, &test->one, &err) != STATUS_OK) return -1;
    if (kernels_host_create(2, &test->two, &err) != STATUS_OK) return -1;
    kernels_host_attach(test->two);
    test->seed = support_seed(subject);
    return 0;
}

int family_tear_down(struct family_test *test)
{
    kernels_host_destroy(test->one);
    kernels_host_destroy(test->two);
    return 0;
}

/* --- states and batches ----------------------------------------------------------------------- */

void family_fill_tokens(const struct job *job, uint64_t seed, uint64_t minibatch, int32_t *batch)
{
    uint64_t count = job->microbatch * (job->sequence + 1);
    for (uint64_t i = 0; i < count; i++)
        batch[i] = (int32_t)random_below(seed ^ 77, minibatch * count + i, job->network.vocabulary);
}

static struct weights_walk walk_of(const struct trainer *trainer)
{
    return (struct weights_walk){.job = &trainer->job,
                                 .tables = trainer->state_tables,
                                 .shard_count = trainer->shard_count,
                                 .states = trainer->states};
}

void family_fill_states(struct trainer *trainer, uint64_t seed)
{
    uint64_t counter = 0;
    struct weights_walk walk = walk_of(trainer);
    struct weights_tensor tensor;
    for (uint32_t s = 0; s < trainer->shard_count; s++)
        memset(trainer->states[s], 0, trainer->state_tables[s].layout.bytes);
    while (weights_walk_next(&walk, &tensor)) {
        float around = tensor.spec->init == INIT_ONE ? 1.0f : 0.0f;
        for (uint64_t j = 0; j < tensor.spec->elements; j++) {
            const float value = (float)((random_unit(seed, counter++) - 0.5) * 0.8) + around;
            if (tensor.halves) tensor.halves[j] = bf16_nearest(value); /* frozen */
            else tensor.values[j] = value;
        }
    }
    weights_round(&trainer->job, trainer->state_tables, trainer->shard_count, trainer->states);
}

uint64_t family_flatten(const struct trainer *trainer, double *out)
{
    uint64_t count = 0;
    struct weights_walk walk = walk_of(trainer);
    struct weights_tensor tensor;
    while (weights_walk_next(&walk, &tensor))
        for (uint64_t j = 0; j < tensor.spec->elements; j++) out[count++] = (double)tensor.values[j];
    return count;
}

struct job_optimizer family_optimizer(uint32_t kind)
{
    if (kind == OPTIMIZER_SGD)
        return (struct job_optimizer){.kind = OPTIMIZER_SGD, .learning_rate = 1};
    if (kind == OPTIMIZER_MOMENTUM)
        return (struct job_optimizer){.kind = OPTIMIZER_MOMENTUM,
                                      .learning_rate = 0.05,
                                      .weight_decay = 0.07,
                                      .decay = DECAY_ALL,
                                      .momentum = 0.9,
                                      .nesterov = true,
                                      .schedule = {.kind = RATE_COSINE, .warmup = 2}};
    return (struct job_optimizer){.kind = OPTIMIZER_ADAMW,
                                  .learning_rate = 0.013,
                                  .weight_decay = 0.07,
                                  .beta1 = 0.88,
                                  .beta2 = 0.97,
                                  .epsilon = 1e-8};
}

/* --- gradients -------------------------------------------------------------------------------- */

/*
 * With sgd, rate 1 and no decay a step subtracts the gradient, so p - p' is the gradient to within the rounding of p
 * (6e-8). The judge's gradient is (loss(p + h) - loss(p - h)) / 2h with h = 1e-5: the error is about h^2 times the
 * third derivative plus 1e-16 / h, below 1e-8. If a norm divides by a small number, all gradients before it in the
 * network are large, and so is the rounding of their sums: hence the term with the norm of all gradients.
 */
double family_check_gradients(const struct family_test *test, const struct job *job,
                              const struct trainer_options *options)
{
    const double h = 1e-5;
    struct trainer trainer = {0};
    trainer_init(&trainer, job, options);
    family_fill_states(&trainer, test->seed);
    test->fill_batch(job, test->seed, 0, trainer.batch);
    uint64_t count = network_parameters(&job->network);
    double *before = malloc(3 * count * sizeof *before), *after = before + count;
    double *p = after + count, largest = 0, norm = 0;
    assert_non_null(before);
    assert_true(family_flatten(&trainer, before) == count);
    trainer_step(&trainer, test->two, 0);
    family_flatten(&trainer, after);
    memcpy(p, before, count * sizeof *p);

    double loss = test->judge(job, trainer.batch, p);
    if (!(fabs(trainer.loss - loss) <= 1e-6 * loss))
        fail_msg("loss %.9g, expected %.9g", trainer.loss, loss);
    double *expected = malloc(count * sizeof *expected);
    assert_non_null(expected);
    for (uint64_t i = 0; i < count; i++) {
        p[i] = before[i] + h;
        double up = test->judge(job, trainer.batch, p);
        p[i] = before[i] - h;
        double down = test->judge(job, trainer.batch, p);
        p[i] = before[i];
        expected[i] = (up - down) / (2 * h);
        norm += expected[i] * expected[i];
    }
    norm = sqrt(norm);
    for (uint64_t i = 0; i < count; i++) {
        double found = before[i] - after[i], error = fabs(found - expected[i]);
        if (!(error <= 2e-6 + 1e-4 * fabs(expected[i]) + 1e-5 * norm))
            fail_msg("gradient of parameter %llu of %llu: %.9g, expected %.9g (all: %.9g)",
                     (unsigned long long)i, (unsigned long long)count, found, expected[i], norm);
        largest = fmax(largest, error);
    }
    free(expected);
    free(before);
    trainer_release(&trainer);
    return largest / norm;
}

/* --- the same bits in every cut --------------------------------------------------------------- */

/* Returns the fingerprint of losses and weights. With `evaluates` each batch is evaluated first: that gives the loss
 * that the training step begins with, and changes nothing. */
static uint64_t train(const struct family_test *test, const struct job *job,
                      const struct trainer_options *options, const struct kernels *kernels,
                      bool evaluates)
{
    struct trainer trainer = {0};
    trainer_init(&trainer, job, options);
    family_fill_states(&trainer, test->seed);
    uint64_t print = 0;
    for (uint64_t step = 0; step < job->minibatches; step++) {
        test->fill_batch(job, test->seed, step, trainer.batch);
        double evaluated = evaluates ? trainer_evaluate(&trainer, kernels) : 0;
        trainer_step(&trainer, kernels, step);
        assert_true(isfinite(trainer.loss));
        if (evaluates && !network_drops(&job->network) && memcmp(&evaluated, &trainer.loss, sizeof evaluated) != 0)
            fail_msg("evaluated as %.17g, trained from %.17g", evaluated, trainer.loss);
        uint64_t bits;
        memcpy(&bits, &trainer.loss, sizeof bits);
        print = random_mix(print ^ bits);
    }
    print ^= weights_fingerprint(&trainer.job, trainer.state_tables, trainer.shard_count,
                                 trainer.states);
    trainer_release(&trainer);
    return print;
}

void family_check_cuts(const struct family_test *test, const struct job *job, bool slices)
{
    static const struct trainer_options cuts[] = {
        {.blocks_per_shard = 1, .slices = 1},
        {.blocks_per_shard = 1, .head_alone = true, .slices = 2},
        {.blocks_per_shard = 2, .slices = 3, .keep = true},
        {.blocks_per_shard = 2, .slices = 1, .elsewhere = true},
        {.blocks_per_shard = 1, .slices = 2, .keep = true, .elsewhere = true},
        {.blocks_per_shard = 2, .head_alone = true, .slices = 7},
        {.blocks_per_shard = 3, .head_alone = true, .keep = true, .slices = 1},
        {.blocks_per_shard = 1, .inputs = true, .slices = 2},
        {.blocks_per_shard = 2, .inputs = true, .slices = 1},
        {.blocks_per_shard = 2, .inputs = true, .slices = 1, .elsewhere = true},
        {.blocks_per_shard = 3, .head_alone = true, .inputs = true, .slices = 1},
        {.blocks_per_shard = 8, .inputs = true, .slices = 3},
    };
    struct trainer_options whole = {.blocks_per_shard = job->network.blocks, .slices = 1};
    kernels_host_attach(test->two);
    uint64_t expected = train(test, job, &whole, test->two, false);
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++)
        for (int poison = 0; poison < 2; poison++) {
            if (SUPPORT_SANITIZED && (i + (size_t)poison) % 4 != 0) continue;
            struct trainer_options options = cuts[i];
            options.poison = poison;
            if (!slices) options.slices = 1;
            if (train(test, job, &options, test->two, true) != expected) fail_msg("cut %zu differs", i);
        }
    kernels_host_attach(test->one);
    assert_true(train(test, job, &whole, test->one, true) == expected);
    kernels_host_attach(test->two);
}

/* --- logits in pieces ------------------------------------------------------------------------- */

/* Does one step from the first states and returns its loss; `gradient` receives the difference. `batch`: a batch
 * other than the family's first one; may be NULL. */
static double step_once(const struct family_test *test, const struct job *job,
                        const struct trainer_options *options, const int32_t *batch,
                        double *gradient)
{
    struct trainer trainer = {0};
    trainer_init(&trainer, job, options);
    family_fill_states(&trainer, test->seed);
    if (batch)
        memcpy(trainer.batch, batch, job_batch_bytes(job));
    else
        test->fill_batch(job, test->seed, 0, trainer.batch);
    uint64_t count = network_parameters(&job->network);
    double *before = malloc(count * sizeof *before);
    assert_non_null(before);
    family_flatten(&trainer, before);
    double evaluated = trainer_evaluate(&trainer, test->two);
    trainer_step(&trainer, test->two, 0);
    assert_true(evaluated == trainer.loss);
    family_flatten(&trainer, gradient);
    for (uint64_t i = 0; i < count; i++) gradient[i] = before[i] - gradient[i];
    double loss = trainer.loss;
    free(before);
    trainer_release(&trainer);
    return loss;
}

/* p - p' is the gradient to within the rounding of p, 3e-8 an element. */
static void compare_tensors(const struct network *network, const double *found,
                            const double *expected)
{
    uint64_t at = 0;
    for (uint64_t layer = 0; layer < network->layer_count; layer++) {
        struct tensor_spec specs[LAYER_TENSORS_MAX];
        uint32_t tensors = network_layer_tensors(network, layer, specs);
        for (uint32_t i = 0; i < tensors; i++) {
            double error = 0, norm = 0, count = (double)specs[i].elements;
            for (uint64_t end = at + specs[i].elements; at < end; at++) {
                error += (found[at] - expected[at]) * (found[at] - expected[at]);
                norm += expected[at] * expected[at];
            }
            if (!(sqrt(error) <= 1e-4 * sqrt(norm) + 1e-7 * sqrt(count)))
                fail_msg("gradient of %s: off by %.3g, norm %.3g", specs[i].name, sqrt(error),
                         sqrt(norm));
        }
    }
}

void family_check_ways(const struct family_test *test, family_small_job make, uint32_t slices)
{
    const struct trainer_options ways[] = {
        {.blocks_per_shard = 2, .slices = 1, .poison = true},
        {.blocks_per_shard = 1, .head_alone = true, .keep = true, .slices = slices, .poison = true},
        {.blocks_per_shard = 8, .slices = 1, .poison = true},
    };
    double largest = 0;
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        struct job job = make(OPTIMIZER_SGD, way != 2);
        if (way == 1) job.network.token_types = 0;
        largest = fmax(largest, family_check_gradients(test, &job, &ways[way]));
    }
    print_message("gradients: errors of at most %.1e of their norm\n", largest);
}

void family_check_optimizers(const struct family_test *test, family_small_job make, bool slices)
{
    for (uint32_t optimizer = 0; optimizer < OPTIMIZER_COUNT; optimizer++)
        for (int choice = 0; choice < 2; choice++) {
            struct job job = make(optimizer, choice);
            if (optimizer == OPTIMIZER_SGD) job.optimizer.learning_rate = 0.05;
            family_check_cuts(test, &job, slices);
        }
}

void family_check_pieces(const struct family_test *test, const struct job *job,
                         uint64_t (*words)(const int32_t *sample, uint64_t t))
{
    const struct trainer_options whole = {.blocks_per_shard = 8, .slices = 1, .poison = true};
    const struct trainer_options cut = {
        .blocks_per_shard = 1, .head_alone = true, .inputs = true, .elsewhere = true, .slices = 1};
    uint64_t t = job->sequence, b = job->microbatch, count = network_parameters(&job->network);
    assert_true(network_logit_rows(&job->network, b * t) < b * t);
    assert_true(network_logit_rows(&job->network, t) == t);
    double *found = calloc(4 * count, sizeof *found), *other = found + count;
    double *one = other + count, *expected = one + count, expected_loss = 0;
    int32_t *batch = malloc(job_batch_bytes(job));
    assert_true(found && batch);
    double loss = step_once(test, job, &whole, NULL, found);
    assert_true(step_once(test, job, &cut, NULL, other) == loss);
    assert_memory_equal(found, other, count * sizeof *found);

    struct job alone = *job;
    alone.microbatch = 1;
    uint64_t stride = job_batch_bytes(&alone) / sizeof *batch, all = 0;
    test->fill_batch(job, test->seed, 0, batch);
    for (uint64_t i = 0; i < b; i++) all += words ? words(batch + i * stride, t) : t;
    for (uint64_t i = 0; i < b; i++) {
        const int32_t *sample = batch + i * stride;
        double share = (double)(words ? words(sample, t) : t) / (double)all;
        expected_loss += share * step_once(test, &alone, &whole, sample, one);
        for (uint64_t j = 0; j < count; j++) expected[j] += share * one[j];
    }
    assert_true(fabs(loss - expected_loss) <= 1e-6 * expected_loss);
    compare_tensors(&job->network, found, expected);
    free(batch);
    free(found);
}

/* --- golden runs ------------------------------------------------------------------------------ */

static double number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    assert_true(json_is_number(value));
    return json_number_value(value);
}

static struct job_optimizer golden_optimizer(const json_t *root)
{
    const json_t *options = json_object_get(root, "options");
    struct job_optimizer optimizer = {.kind = OPTIMIZER_SGD,
                                      .learning_rate = number(options, "lr"),
                                      .weight_decay = number(options, "weight_decay")};
    const char *kind = json_string_value(json_object_get(root, "kind"));
    if (strcmp(kind, "adamw") == 0) {
        optimizer.kind = OPTIMIZER_ADAMW;
        optimizer.beta1 = number(options, "beta1");
        optimizer.beta2 = number(options, "beta2");
        optimizer.epsilon = number(options, "epsilon");
    } else if (strcmp(kind, "momentum") == 0) {
        const json_t *schedule = json_object_get(options, "schedule");
        optimizer.kind = OPTIMIZER_MOMENTUM;
        optimizer.momentum = number(options, "momentum");
        optimizer.nesterov = json_is_true(json_object_get(options, "nesterov"));
        if (schedule) optimizer.schedule = (struct rate_schedule){.kind = RATE_COSINE,
                                                    .warmup = (uint64_t)number(schedule, "warmup"),
                                                    .floor = number(schedule, "floor")};
    }
    if (json_object_get(options, "clip")) optimizer.clip = number(options, "clip");
    return optimizer;
}

/* Returns the largest relative error of a loss. `before` receives the parameters before the last step. */
static double train_golden(struct trainer *trainer, const struct kernels *kernels,
                           const json_t *root, double *before)
{
    const json_t *losses = json_object_get(root, "losses");
    const json_t *batches = json_object_get(root, "batches"), *norms = json_object_get(root, "norms");
    double largest = 0;
    for (uint64_t step = 0; step < json_array_size(losses); step++) {
        const json_t *batch = json_array_get(batches, step);
        for (size_t i = 0; i < json_array_size(batch); i++) {
            const json_t *item = json_array_get(batch, i);
            float real = (float)json_number_value(item); /* pixels are numbers with a decimal point */
            if (json_is_integer(item))
                trainer->batch[i] = (int32_t)json_integer_value(item);
            else
                memcpy(&trainer->batch[i], &real, sizeof real);
        }
        if (step + 1 == json_array_size(losses)) family_flatten(trainer, before);
        trainer_step(trainer, kernels, step);
        double norm = json_number_value(json_array_get(norms, step)); /* 0: not clipped */
        if (!(fabs(trainer->norm - norm) <= 1e-5 * norm))
            fail_msg("norm of step %llu: %.9g, expected %.9g", (unsigned long long)step,
                     trainer->norm, norm);
        double expected = json_number_value(json_array_get(losses, step));
        double error = fabs(trainer->loss - expected) / expected;
        if (!(error <= 1e-5))
            fail_msg("loss of step %llu: %.9g, expected %.9g", (unsigned long long)step,
                     trainer->loss, expected);
        largest = fmax(largest, error);
    }
    return largest;
}

static void check_weight_norms(const struct trainer *trainer, const json_t *root,
                               bool (*is_noise)(const char *name, uint64_t i, uint64_t count))
{
    const char *name;
    json_t *expected;
    bool adamw = trainer->job.optimizer.kind == OPTIMIZER_ADAMW;
    json_object_foreach(json_object_get(root, "weight_norms"), name, expected) {
        uint64_t count;
        const float *p = trainer_tensor(trainer, name, &count);
        const bool less_one = strstr(name, "norm") && network_traits(&trainer->job.network)->less_one;
        double sum = 0, want = json_number_value(expected);
        bool noise = false;
        for (uint64_t i = 0; i < count; i++) {
            const double value = (double)p[i] - less_one;
            sum += value * value;
            noise = noise || (adamw && is_noise && is_noise(name, i, count));
        }
        if (!noise && !(fabs(sqrt(sum) - want) <= 1e-5 * want))
            fail_msg("norm of %s: %.9g, expected %.9g", name, sqrt(sum), want);
    }
}

/* Gradients of the last step by sgd: p' = p - lr (g + decay p) gives back g to 1e-8 / lr = 5e-7,
 * against norms of 1e-2 and more. */
static void check_gradient_norms(const struct trainer *trainer, const json_t *root,
                                 const double *before, const double *after)
{
    const struct job_optimizer *optimizer = &trainer->job.optimizer;
    uint64_t at = 0;
    for (uint64_t layer = 0; layer < trainer->job.network.layer_count; layer++) {
        struct tensor_spec specs[LAYER_TENSORS_MAX];
        uint32_t tensors = network_layer_tensors(&trainer->job.network, layer, specs);
        for (uint32_t i = 0; i < tensors; i++) {
            double decay = specs[i].matrix ? optimizer->weight_decay : 0, sum = 0;
            for (uint64_t end = at + specs[i].elements; at < end; at++) {
                double g = (before[at] - after[at]) / optimizer->learning_rate - decay * before[at];
                sum += g * g;
            }
            double want = number(json_object_get(root, "gradient_norms"), specs[i].name);
            if (!(fabs(sqrt(sum) - want) <= 1e-3 * want + 1e-5))
                fail_msg("gradient of %s: norm %.9g, expected %.9g", specs[i].name, sqrt(sum),
                         want);
        }
    }
}

static void check_weights(const struct trainer *trainer, const char *path,
                          bool (*is_noise)(const char *name, uint64_t i, uint64_t count))
{
    struct safetensors *file = NULL;
    struct error err = {0};
    if (safetensors_open(path, &file, &err) != STATUS_OK) fail_msg("%s", err.text);
    for (size_t i = 0; i < safetensors_count(file); i++) {
        const struct safetensors_tensor *tensor = safetensors_at(file, i);
        uint64_t count;
        const float *found = trainer_tensor(trainer, tensor->name, &count);
        assert_true(count == tensor->elements);
        float *expected = malloc(count * sizeof *expected);
        assert_non_null(expected);
        assert_true(safetensors_floats(tensor, expected));
        const float less = strstr(tensor->name, "norm") && network_traits(&trainer->job.network)->less_one ? 1 : 0;
        for (uint64_t j = 0; j < count; j++)
            if (!(fabsf(found[j] - less - expected[j]) <= 1e-4f) &&
                !(is_noise && is_noise(tensor->name, j, count)))
                fail_msg("%s[%llu]: %.9g, expected %.9g", tensor->name, (unsigned long long)j,
                         (double)found[j], (double)expected[j]);
        free(expected);
    }
    safetensors_close(file);
}

double family_check_golden(const struct family_test *test, const struct job *job,
                           const struct trainer_options *options, const char *folder,
                           const char *kind,
                           bool (*is_noise)(const char *name, uint64_t i, uint64_t count))
{
    char weights[512], run[512], final[512];
    snprintf(weights, sizeof weights, "%s/initial.safetensors", folder);
    snprintf(run, sizeof run, "%s/%s.json", folder, kind);
    snprintf(final, sizeof final, "%s/%s.safetensors", folder, kind);
    struct json_input *golden = NULL;
    struct error err = {0};
    if (json_input_read(run, &golden, &err) != STATUS_OK) fail_msg("%s", err.text);
    const json_t *root = json_input_root(golden);

    struct job trained = *job;
    trained.optimizer = golden_optimizer(root);
    trained.weights_in = weights;
    struct trainer trainer = {0};
    trainer_init(&trainer, &trained, options);
    if (weights_read(&trained, trainer.state_tables, trainer.shard_count, trainer.states,
                     &err) != STATUS_OK)
        fail_msg("%s", err.text);
    uint64_t parameters = network_parameters(&trained.network);
    double *before = malloc(2 * parameters * sizeof *before), *after = before + parameters;
    assert_non_null(before);
    double largest = train_golden(&trainer, test->two, root, before);
    family_flatten(&trainer, after);
    check_weight_norms(&trainer, root, is_noise);
    if (trained.optimizer.kind == OPTIMIZER_ADAMW)
        check_weights(&trainer, final, is_noise);
    else if (trained.optimizer.kind == OPTIMIZER_SGD)
        check_gradient_norms(&trainer, root, before, after);
    free(before);
    trainer_release(&trainer);
    json_input_destroy(golden);
    return largest;
}

void family_check_torch(const struct family_test *test, const struct job *job, const char *folder, uint32_t slices,
                        bool (*is_noise)(const char *name, uint64_t i, uint64_t count))
{
    double adamw = family_check_golden(test, job, &(struct trainer_options){.blocks_per_shard = 2, .slices = 1}, folder,
                                       "adamw", is_noise);
    double sgd = family_check_golden(test, job, &(struct trainer_options){.blocks_per_shard = 1, .slices = slices},
                                     folder, "sgd", is_noise);
    print_message("PyTorch: losses differ by at most %.1e (adamw) and %.1e (sgd)\n", adamw, sgd);
}

bool family_is_key_bias(const char *name, uint64_t i, uint64_t count)
{
    (void)i;
    (void)count;
    return strstr(name, "key.bias") != NULL;
}
