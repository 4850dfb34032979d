/*
 * Training GPT-2 by unit_compute(): gradients against finite differences, 20 steps against PyTorch,
 * and the same bits however the network is cut.
 *
 * The judge of the gradients is a forward pass in double written here, number by number, from the
 * architecture; it shares nothing with exec/. The golden files are made by
 * tests/golden/gpt2_torch/make.py; PyTorch is not needed to run this.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json_in.h"
#include "base/random.h"
#include "exec/safetensors.h"
#include "exec/weights.h"
#include "tests/support_gpt2.h"
#include "tests/support_seed.h"

static struct kernels *one, *two;
static uint64_t seed;

/* --- a forward pass in double ----------------------------------------------------------------- */

/* Parameters as one array in the order of the network's tensors. */
struct judge {
    struct network network;
    uint64_t b, t;
    const int32_t *batch; /* (B, T+1) */
    double *p;            /* parameter_count */
};

struct cursor {
    const double *p;
};

static const double *next(struct cursor *cursor, uint64_t count)
{
    const double *here = cursor->p;
    cursor->p += count;
    return here;
}

/* out(n) = in(k) w(k,n) + bias(n) */
static void judge_linear(double *out, const double *in, const double *w, const double *bias,
                         uint64_t n, uint64_t k)
{
    for (uint64_t j = 0; j < n; j++) {
        out[j] = bias[j];
        for (uint64_t i = 0; i < k; i++) out[j] += in[i] * w[i * n + j];
    }
}

static void judge_norm(double *out, const double *in, const double *w, const double *b, uint64_t c)
{
    double mean = 0, variance = 0;
    for (uint64_t i = 0; i < c; i++) mean += in[i] / (double)c;
    for (uint64_t i = 0; i < c; i++) variance += (in[i] - mean) * (in[i] - mean) / (double)c;
    for (uint64_t i = 0; i < c; i++) out[i] = (in[i] - mean) / sqrt(variance + 1e-5) * w[i] + b[i];
}

/* Row i of one head: out(d) from q, k, v inside qkv(t, 3c). */
static void judge_attention(double *out, const double *qkv, uint64_t i, uint64_t head, uint64_t c,
                            uint64_t d)
{
    double weights[64], sum = 0;
    for (uint64_t j = 0; j <= i; j++) {
        double score = 0;
        for (uint64_t e = 0; e < d; e++)
            score += qkv[i * 3 * c + head * d + e] * qkv[j * 3 * c + c + head * d + e];
        weights[j] = exp(score / sqrt((double)d));
        sum += weights[j];
    }
    for (uint64_t e = 0; e < d; e++) {
        out[e] = 0;
        for (uint64_t j = 0; j <= i; j++)
            out[e] += weights[j] / sum * qkv[j * 3 * c + 2 * c + head * d + e];
    }
}

/* x(t, c) through one block, in place. */
static void judge_block(const struct network *n, double *x, uint64_t t, struct cursor *cursor)
{
    uint64_t c = n->width, f = n->ff_width, d = c / n->heads;
    const double *norm1_w = next(cursor, c), *norm1_b = next(cursor, c);
    const double *qkv_w = next(cursor, 3 * c * c), *qkv_b = next(cursor, 3 * c);
    const double *projection_w = next(cursor, c * c), *projection_b = next(cursor, c);
    const double *norm2_w = next(cursor, c), *norm2_b = next(cursor, c);
    const double *fc_w = next(cursor, c * f), *fc_b = next(cursor, f);
    const double *out_w = next(cursor, f * c), *out_b = next(cursor, c);
    double qkv[64 * 3 * 16], normed[64], heads[64], branch[64], wide[256];
    assert_true(t <= 64 && c <= 16 && f <= 64);
    for (uint64_t i = 0; i < t; i++) {
        judge_norm(normed, x + i * c, norm1_w, norm1_b, c);
        judge_linear(qkv + i * 3 * c, normed, qkv_w, qkv_b, 3 * c, c);
    }
    for (uint64_t i = 0; i < t; i++) {
        for (uint64_t head = 0; head < n->heads; head++)
            judge_attention(heads + head * d, qkv, i, head, c, d);
        judge_linear(branch, heads, projection_w, projection_b, c, c);
        for (uint64_t j = 0; j < c; j++) x[i * c + j] += branch[j];
        judge_norm(normed, x + i * c, norm2_w, norm2_b, c);
        judge_linear(wide, normed, fc_w, fc_b, f, c);
        for (uint64_t j = 0; j < f; j++) {
            double z = wide[j], cubic = z + 0.044715 * z * z * z;
            wide[j] = n->gelu_tanh ? 0.5 * z * (1 + tanh(sqrt(2 / M_PI) * cubic))
                                   : 0.5 * z * erfc(-z / sqrt(2.0));
        }
        judge_linear(branch, wide, out_w, out_b, c, f);
        for (uint64_t j = 0; j < c; j++) x[i * c + j] += branch[j];
    }
}

static double judge_loss(const struct judge *judge)
{
    const struct network *n = &judge->network;
    uint64_t c = n->width, v = n->vocabulary, t = judge->t;
    double total = 0;
    for (uint64_t b = 0; b < judge->b; b++) {
        struct cursor cursor = {judge->p};
        const double *table = next(&cursor, v * c), *positions = next(&cursor, n->positions * c);
        const int32_t *tokens = judge->batch + b * (t + 1);
        double x[64 * 16];
        for (uint64_t i = 0; i < t; i++)
            for (uint64_t j = 0; j < c; j++)
                x[i * c + j] = table[(uint64_t)tokens[i] * c + j] + positions[i * c + j];
        for (uint64_t block = 0; block < n->blocks; block++) judge_block(n, x, t, &cursor);
        const double *norm_w = next(&cursor, c), *norm_b = next(&cursor, c);
        const double *head = n->tied_head ? table : next(&cursor, v * c);
        for (uint64_t i = 0; i < t; i++) {
            double normed[64], sum = 0, at_target = 0;
            judge_norm(normed, x + i * c, norm_w, norm_b, c);
            for (uint64_t word = 0; word < v; word++) {
                double logit = 0;
                for (uint64_t j = 0; j < c; j++) logit += normed[j] * head[word * c + j];
                sum += exp(logit);
                if ((int32_t)word == tokens[i + 1]) at_target = logit;
            }
            total += log(sum) - at_target;
        }
    }
    return total / (double)(judge->b * t);
}

/* --- helpers ---------------------------------------------------------------------------------- */

/* Numbers around 0.3 in all tensors, norms around one: every term matters. */
static void fill_states(struct trainer *trainer)
{
    uint64_t counter = 0;
    for (uint32_t s = 0; s < trainer->shard_count; s++) {
        uint32_t words = optimizer_state_words(trainer->job.optimizer.kind);
        memset(trainer->states[s], 0, trainer->parameters[s].bytes * (1 + words));
        for (uint32_t i = 0; i < trainer->parameters[s].count; i++) {
            const struct memory_entry *entry = &trainer->parameters[s].entries[i];
            float *p = trainer->states[s] + entry->offset_bytes / sizeof(float);
            bool norm = strstr(entry->name, "ln_") && strstr(entry->name, "weight");
            for (uint64_t j = 0; j < entry->bytes / sizeof(float); j++)
                p[j] = (float)((random_unit(seed, counter++) - 0.5) * 1.2) + (norm ? 1.0f : 0.0f);
        }
    }
}

static void fill_batch(struct trainer *trainer, uint64_t minibatch)
{
    uint64_t count = trainer->job.microbatch * (trainer->job.sequence + 1);
    for (uint64_t i = 0; i < count; i++)
        trainer->batch[i] = (int32_t)random_below(seed ^ 77, minibatch * count + i,
                                                  trainer->job.network.vocabulary);
}

static uint64_t flatten(const struct trainer *trainer, double *out)
{
    uint64_t count = 0;
    for (uint32_t s = 0; s < trainer->shard_count; s++)
        for (uint32_t i = 0; i < trainer->parameters[s].count; i++) {
            const struct memory_entry *entry = &trainer->parameters[s].entries[i];
            const float *p = trainer->states[s] + entry->offset_bytes / sizeof(float);
            for (uint64_t j = 0; j < entry->bytes / sizeof(float); j++) out[count++] = (double)p[j];
        }
    return count;
}

static struct job small_job(uint32_t optimizer, bool tied, bool gelu_tanh)
{
    struct job job = {.name = "small",
                      .network = support_gpt2_network(6, 2, 3, 11, 7),
                      .sequence = 5,
                      .microbatch = 2,
                      .minibatches = 4,
                      .data_format = DATA_NONE};
    job.network.tied_head = tied;
    job.network.gelu_tanh = gelu_tanh;
    if (optimizer == OPTIMIZER_SGD)
        job.optimizer = (struct optimizer){.kind = OPTIMIZER_SGD, .learning_rate = 1};
    else
        job.optimizer = (struct optimizer){.kind = OPTIMIZER_ADAMW,
                                           .learning_rate = 0.013,
                                           .weight_decay = 0.07,
                                           .beta1 = 0.88,
                                           .beta2 = 0.97,
                                           .epsilon = 1e-8};
    return job;
}

/* --- gradients -------------------------------------------------------------------------------- */

/*
 * With SGD, rate 1 and no decay a step subtracts the gradient, so p - p' is the gradient to within
 * the rounding of p (6e-8). The judge's is (loss(p + h) - loss(p - h)) / 2h with h = 1e-5: the error
 * is about h^2 times the third derivative plus 1e-16 / h, below 1e-8.
 */
static void check_gradients(const struct trainer_options *options, bool tied, bool gelu_tanh)
{
    struct job job = small_job(OPTIMIZER_SGD, tied, gelu_tanh);
    struct trainer trainer = {0};
    trainer_init(&trainer, &job, options);
    fill_states(&trainer);
    fill_batch(&trainer, 0);
    uint64_t count = network_parameters(&job.network);
    double *before = malloc(3 * count * sizeof *before), *after = before + count;
    assert_true(flatten(&trainer, before) == count);
    trainer_step(&trainer, two, 0);
    flatten(&trainer, after);

    memcpy(after + count, before, count * sizeof *before);
    struct judge judge = {job.network, job.microbatch, job.sequence, trainer.batch, after + count};
    double loss = judge_loss(&judge);
    assert_true(fabs(trainer.loss - loss) <= 1e-6 * loss);
    const double h = 1e-5;
    for (uint64_t i = 0; i < count; i++) {
        judge.p[i] = before[i] + h;
        double up = judge_loss(&judge);
        judge.p[i] = before[i] - h;
        double down = judge_loss(&judge);
        judge.p[i] = before[i];
        double expected = (up - down) / (2 * h), found = before[i] - after[i];
        if (!(fabs(found - expected) <= 2e-6 + 1e-4 * fabs(expected)))
            fail_msg("gradient of parameter %llu: %.9g, expected %.9g (tied %d)",
                     (unsigned long long)i, found, expected, tied);
    }
    free(before);
    trainer_release(&trainer);
}

static void test_gradients(void **state)
{
    (void)state;
    struct trainer_options options = {.blocks_per_shard = 2, .slices = 1, .poison = true};
    check_gradients(&options, true, true);
}

static void test_gradients_untied(void **state)
{
    (void)state;
    struct trainer_options options = {.blocks_per_shard = 8, .slices = 1, .poison = true};
    check_gradients(&options, false, true);
}

static void test_gradients_exact_gelu(void **state)
{
    (void)state;
    struct trainer_options options = {
        .blocks_per_shard = 1, .head_alone = true, .keep = true, .slices = 3, .poison = true};
    check_gradients(&options, true, false);
}

/* --- the same bits in every cut --------------------------------------------------------------- */

/* The fingerprint of losses and weights after four steps. */
static uint64_t train(const struct job *job, const struct trainer_options *options,
                      const struct kernels *kernels)
{
    struct trainer trainer = {0};
    trainer_init(&trainer, job, options);
    fill_states(&trainer);
    uint64_t print = 0;
    for (uint64_t step = 0; step < job->minibatches; step++) {
        fill_batch(&trainer, step);
        trainer_step(&trainer, kernels, step);
        assert_true(isfinite(trainer.loss));
        uint64_t bits;
        memcpy(&bits, &trainer.loss, sizeof bits);
        print = random_mix(print ^ bits);
    }
    print ^= weights_fingerprint(trainer.shards, trainer.parameters, trainer.shard_count,
                                 trainer.states);
    trainer_release(&trainer);
    return print;
}

static void check_cuts(const struct job *job)
{
    static const struct trainer_options cuts[] = {
        {.blocks_per_shard = 1, .slices = 1},
        {.blocks_per_shard = 1, .head_alone = true, .slices = 2},
        {.blocks_per_shard = 2, .slices = 3, .keep = true},
        {.blocks_per_shard = 2, .head_alone = true, .slices = 7},
        {.blocks_per_shard = 3, .head_alone = true, .keep = true, .slices = 1},
    };
    struct trainer_options whole = {.blocks_per_shard = job->network.blocks, .slices = 1};
    kernels_host_attach(two);
    uint64_t expected = train(job, &whole, two);
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++)
        for (int poison = 0; poison < 2; poison++) {
            struct trainer_options options = cuts[i];
            options.poison = poison;
            if (train(job, &options, two) != expected) fail_msg("cut %zu differs", i);
        }
    kernels_host_attach(one);
    assert_true(train(job, &whole, one) == expected);
    kernels_host_attach(two);
}

static void test_cuts(void **state)
{
    (void)state;
    for (uint32_t optimizer = 0; optimizer < OPTIMIZER_COUNT; optimizer++)
        for (int tied = 0; tied < 2; tied++) {
            struct job job = small_job(optimizer, tied, true);
            if (optimizer == OPTIMIZER_SGD) job.optimizer.learning_rate = 0.05;
            check_cuts(&job);
        }
}

/* Large enough for several tiles, teams and the library's other ways of cutting a product. */
static void test_cuts_larger(void **state)
{
    (void)state;
    struct job job = small_job(OPTIMIZER_ADAMW, true, true);
    job.network = support_gpt2_network(96, 6, 3, 509, 130);
    job.sequence = 130;
    check_cuts(&job);
}

/* --- PyTorch ---------------------------------------------------------------------------------- */

static struct json_input *golden;

static double number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    assert_true(json_is_number(value));
    return json_number_value(value);
}

static struct job golden_job(const json_t *root)
{
    const json_t *options = json_object_get(root, "options");
    const char *kind = json_string_value(json_object_get(root, "kind"));
    struct job job = {
        .name = "golden",
        .network = support_gpt2_network(
            (uint64_t)number(root, "width"), (uint64_t)number(root, "heads"),
            (uint64_t)number(root, "blocks"), (uint64_t)number(root, "vocabulary"),
            (uint64_t)number(root, "positions")),
        .sequence = (uint64_t)number(root, "sequence"),
        .microbatch = (uint64_t)number(root, "microbatch"),
        .minibatches = json_array_size(json_object_get(root, "losses")),
        .weights_in = SOURCE_DIR "/tests/golden/gpt2_torch/initial.safetensors",
        .optimizer = {.kind = OPTIMIZER_SGD,
                      .learning_rate = number(options, "lr"),
                      .weight_decay = number(options, "weight_decay")}};
    if (strcmp(kind, "adamw") == 0) {
        job.optimizer.kind = OPTIMIZER_ADAMW;
        job.optimizer.beta1 = number(options, "beta1");
        job.optimizer.beta2 = number(options, "beta2");
        job.optimizer.epsilon = number(options, "epsilon");
    }
    return job;
}

static void read_golden(const char *path)
{
    struct error err = {0};
    if (json_input_read(path, &golden, &err) != STATUS_OK) fail_msg("%s", err.text);
}

static double norm_of(const float *x, uint64_t count)
{
    double sum = 0;
    for (uint64_t i = 0; i < count; i++) sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

/*
 * A bias of the keys shifts all scores of a query alike, which softmax does not see: its gradient is
 * zero but for rounding, and AdamW scales rounding up to steps of the learning rate. So the middle
 * third of these biases is anything.
 */
static bool is_noise(const char *name, uint64_t i, uint64_t count)
{
    return strstr(name, "c_attn.bias") && i >= count / 3 && i < 2 * count / 3;
}

/* Steps through the golden batches; losses to 1e-5. `before` (may be NULL) gets the parameters in
 * front of the last step. */
static void train_golden(struct trainer *trainer, const json_t *root, double *before)
{
    const json_t *losses = json_object_get(root, "losses");
    const json_t *batches = json_object_get(root, "batches");
    struct error err = {0};
    if (weights_read(&trainer->job, trainer->shards, trainer->parameters, trainer->shard_count,
                     trainer->states, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    for (uint64_t step = 0; step < trainer->job.minibatches; step++) {
        const json_t *batch = json_array_get(batches, step);
        for (size_t i = 0; i < json_array_size(batch); i++)
            trainer->batch[i] = (int32_t)json_integer_value(json_array_get(batch, i));
        if (before && step + 1 == trainer->job.minibatches) flatten(trainer, before);
        trainer_step(trainer, two, step);
        double expected = json_number_value(json_array_get(losses, step));
        if (!(fabs(trainer->loss - expected) <= 1e-5 * expected))
            fail_msg("loss of step %llu: %.9g, expected %.9g", (unsigned long long)step,
                     trainer->loss, expected);
    }
}

static void check_weight_norms(const struct trainer *trainer, const json_t *root)
{
    const char *name;
    json_t *expected;
    json_object_foreach(json_object_get(root, "weight_norms"), name, expected) {
        uint64_t count;
        const float *p = trainer_tensor(trainer, name, &count);
        if (trainer->job.optimizer.kind == OPTIMIZER_ADAMW && strstr(name, "c_attn.bias")) continue;
        double found = norm_of(p, count), want = json_number_value(expected);
        if (!(fabs(found - want) <= 1e-5 * want))
            fail_msg("norm of %s: %.9g, expected %.9g", name, found, want);
    }
}

static void test_torch_adamw(void **state)
{
    (void)state;
    read_golden(SOURCE_DIR "/tests/golden/gpt2_torch/adamw.json");
    const json_t *root = json_input_root(golden);
    struct job job = golden_job(root);
    struct trainer trainer = {0};
    trainer_init(&trainer, &job, &(struct trainer_options){.blocks_per_shard = 2, .slices = 1});
    train_golden(&trainer, root, NULL);
    check_weight_norms(&trainer, root);

    struct safetensors *file = NULL;
    struct error err = {0};
    if (safetensors_open(SOURCE_DIR "/tests/golden/gpt2_torch/adamw.safetensors", &file, &err) !=
        STATUS_OK)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < safetensors_count(file); i++) {
        const struct safetensors_tensor *tensor = safetensors_at(file, i);
        uint64_t count;
        const float *found = trainer_tensor(&trainer, tensor->name, &count);
        assert_true(count == tensor->elements);
        float *expected = malloc(count * sizeof *expected);
        assert_true(safetensors_floats(tensor, expected));
        for (uint64_t j = 0; j < count; j++)
            if (!(fabsf(found[j] - expected[j]) <= 1e-4f) && !is_noise(tensor->name, j, count))
                fail_msg("%s[%llu]: %.9g, expected %.9g", tensor->name, (unsigned long long)j,
                         (double)found[j], (double)expected[j]);
        free(expected);
    }
    safetensors_close(file);
    trainer_release(&trainer);
    json_input_destroy(golden);
}

/* p' = p - lr (g + decay p) gives back g to 1e-8 / lr = 5e-7, against norms of 1e-2 and more. */
static void test_torch_sgd(void **state)
{
    (void)state;
    read_golden(SOURCE_DIR "/tests/golden/gpt2_torch/sgd.json");
    const json_t *root = json_input_root(golden);
    struct job job = golden_job(root);
    struct trainer trainer = {0};
    trainer_init(&trainer, &job, &(struct trainer_options){.blocks_per_shard = 1, .slices = 4});
    uint64_t total = network_parameters(&job.network);
    double *before = malloc(2 * total * sizeof *before), *after = before + total;
    train_golden(&trainer, root, before);
    check_weight_norms(&trainer, root);
    flatten(&trainer, after);

    uint64_t at = 0;
    for (uint32_t s = 0; s < trainer.shard_count; s++)
        for (uint32_t i = 0; i < trainer.parameters[s].count; i++) {
            const struct memory_entry *entry = &trainer.parameters[s].entries[i];
            uint64_t count = entry->bytes / sizeof(float);
            bool matrix = strstr(entry->name, "wte") || strstr(entry->name, "wpe") ||
                          (strstr(entry->name, "c_") && strstr(entry->name, "weight"));
            double decay = matrix ? job.optimizer.weight_decay : 0, sum = 0;
            for (uint64_t j = at; j < at + count; j++) {
                double g = (before[j] - after[j]) / job.optimizer.learning_rate - decay * before[j];
                sum += g * g;
            }
            double expected = number(json_object_get(root, "gradient_norms"), entry->name);
            if (!(fabs(sqrt(sum) - expected) <= 1e-3 * expected + 1e-5))
                fail_msg("gradient of %s: norm %.9g, expected %.9g", entry->name, sqrt(sum),
                         expected);
            at += count;
        }
    free(before);
    trainer_release(&trainer);
    json_input_destroy(golden);
}

/* --- what cannot be trained ------------------------------------------------------------------- */

static void test_unsupported(void **state)
{
    (void)state;
    struct job job = small_job(OPTIMIZER_SGD, true, true);
    assert_null(unit_unsupported(&job));
    job.network.head_width = 5;
    assert_string_equal(unit_unsupported(&job), "its heads do not make up its width");
    job = small_job(OPTIMIZER_SGD, true, true);
    job.network.family = NETWORK_PROFILE;
    assert_string_equal(unit_unsupported(&job),
                        "networks of family 'profile' can be planned and simulated only");
    assert_null(unit_missing_kernel(two, &job));
}

static int setup(void **state)
{
    (void)state;
    seed = support_seed("exec/unit.h");
    struct error err = {0};
    if (kernels_host_create(1, &one, &err) != STATUS_OK) return -1;
    if (kernels_host_create(2, &two, &err) != STATUS_OK) return -1;
    kernels_host_attach(two);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    kernels_host_destroy(one);
    kernels_host_destroy(two);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients),   cmocka_unit_test(test_gradients_untied),
        cmocka_unit_test(test_gradients_exact_gelu), cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_cuts_larger), cmocka_unit_test(test_torch_adamw),
        cmocka_unit_test(test_torch_sgd),   cmocka_unit_test(test_unsupported),
    };
    return cmocka_run_group_tests_name("exec/unit.h", tests, setup, teardown);
}
