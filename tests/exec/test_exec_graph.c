/*
 * Training networks of operations by unit_compute(): gradients and running means against a forward pass in double and
 * finite differences, and the same bits however the network is cut and whatever is kept.
 *
 * The judge is written from torch.nn's formulas, image by image and channel by channel; it shares nothing with exec/.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json/json_in.h"
#include "base/random.h"
#include "exec/files/weights.h"
#include "exec/network/unit.h"
#include "models/network/network_graph.h"
#include "tests/support/support_models.h"
#include "tests/support/support_seed.h"

/* Shortcuts, also with a convolution; groups, strides, both poolings; norms. */
static const char residual[] =
    "{\"model_type\": \"cnn\", \"num_channels\": 3, \"image_size\": 9, \"operations\": ["
    "{\"layer\": \"a\", \"kind\": \"convolution\", \"channels\": 4, \"kernel\": 3, \"padding\": 1},"
    "{\"kind\": \"batch_norm\"}, {\"kind\": \"relu\"},"
    "{\"kind\": \"max_pool\", \"kernel\": 3, \"stride\": 2, \"padding\": 1},"
    "{\"layer\": \"b\", \"kind\": \"convolution\", \"channels\": 4, \"kernel\": 3, \"padding\": 1, \"groups\": 2},"
    "{\"kind\": \"batch_norm\"}, {\"kind\": \"relu\"},"
    "{\"kind\": \"convolution\", \"channels\": 4, \"kernel\": 3, \"padding\": 1}, {\"kind\": \"batch_norm\"},"
    "{\"kind\": \"add\", \"from\": [9, 4]}, {\"kind\": \"relu\"},"
    "{\"layer\": \"c\", \"kind\": \"convolution\", \"channels\": 6, \"kernel\": 3, \"padding\": 1, \"stride\": 2},"
    "{\"kind\": \"batch_norm\"}, {\"kind\": \"relu\"},"
    "{\"kind\": \"convolution\", \"channels\": 6, \"kernel\": 3, \"padding\": 1}, {\"kind\": \"batch_norm\"},"
    "{\"kind\": \"convolution\", \"channels\": 6, \"kernel\": 1, \"stride\": 2, \"from\": [11]},"
    "{\"kind\": \"batch_norm\"}, {\"kind\": \"add\", \"from\": [16, 18]}, {\"kind\": \"relu\"},"
    "{\"layer\": \"d\", \"kind\": \"mean_pool\", \"kernel\": 2},"
    "{\"kind\": \"linear\", \"channels\": 5, \"bias\": true}, {\"kind\": \"loss\"}]}";

/* Norms first: the sum crosses cuts, and a shortcut begins after the norm. */
static const char wide[] =
    "{\"model_type\": \"cnn\", \"num_channels\": 2, \"image_size\": 6, \"operations\": ["
    "{\"layer\": \"a\", \"kind\": \"convolution\", \"channels\": 3, \"kernel\": 3, \"padding\": 1},"
    "{\"layer\": \"b\", \"kind\": \"batch_norm\"}, {\"kind\": \"relu\"},"
    "{\"kind\": \"convolution\", \"channels\": 5, \"kernel\": 1, \"stride\": 2},"
    "{\"kind\": \"convolution\", \"channels\": 5, \"kernel\": 3, \"padding\": 1, \"stride\": 2, \"from\": [3]},"
    "{\"kind\": \"batch_norm\"}, {\"kind\": \"relu\"},"
    "{\"kind\": \"convolution\", \"channels\": 5, \"kernel\": 3, \"padding\": 1},"
    "{\"kind\": \"add\", \"from\": [8, 4]},"
    "{\"layer\": \"c\", \"kind\": \"batch_norm\"}, {\"kind\": \"relu\"},"
    "{\"kind\": \"convolution\", \"channels\": 5, \"kernel\": 3, \"padding\": 1},"
    "{\"kind\": \"add\", \"from\": [12, 9]},"
    "{\"layer\": \"d\", \"kind\": \"batch_norm\"}, {\"kind\": \"relu\"}, {\"kind\": \"mean_pool\", \"kernel\": 1},"
    "{\"kind\": \"linear\", \"channels\": 4, \"bias\": true}, {\"kind\": \"loss\"}]}";

/* A U-Net: results skip layers, and each pixel has a loss. */
static const char unet[] =
    "{\"model_type\": \"cnn\", \"num_channels\": 1, \"image_size\": 8, \"operations\": ["
    "{\"layer\": \"a\", \"kind\": \"convolution\", \"channels\": 3, \"kernel\": 3, \"padding\": 1, \"bias\": true},"
    "{\"kind\": \"relu\"},"
    "{\"layer\": \"b\", \"kind\": \"max_pool\", \"kernel\": 2, \"stride\": 2},"
    "{\"kind\": \"convolution\", \"channels\": 4, \"kernel\": 3, \"padding\": 1, \"bias\": true},"
    "{\"kind\": \"relu\"},"
    "{\"layer\": \"c\", \"kind\": \"max_pool\", \"kernel\": 2, \"stride\": 2},"
    "{\"kind\": \"convolution\", \"channels\": 5, \"kernel\": 3, \"padding\": 1, \"bias\": true},"
    "{\"kind\": \"relu\"},"
    "{\"layer\": \"d\", \"kind\": \"upsample\", \"channels\": 4, \"kernel\": 2, \"bias\": true},"
    "{\"kind\": \"concat\", \"from\": [5, 9]},"
    "{\"kind\": \"convolution\", \"channels\": 4, \"kernel\": 3, \"padding\": 1, \"bias\": true},"
    "{\"kind\": \"relu\"},"
    "{\"layer\": \"e\", \"kind\": \"upsample\", \"channels\": 3, \"kernel\": 2, \"bias\": true},"
    "{\"kind\": \"concat\", \"from\": [2, 13]}, {\"kind\": \"relu\"},"
    "{\"layer\": \"f\", \"kind\": \"convolution\", \"channels\": 3, \"kernel\": 1, \"bias\": true},"
    "{\"kind\": \"loss\"}]}";

/* Linear layers on images; results that their own layer reads and that also leave it; one that is read twice. */
static const char dense[] =
    "{\"model_type\": \"cnn\", \"num_channels\": 2, \"image_size\": 5, \"operations\": ["
    "{\"layer\": \"a\", \"kind\": \"convolution\", \"channels\": 3, \"kernel\": 3, \"padding\": 1, \"bias\": true},"
    "{\"kind\": \"relu\"},"
    "{\"kind\": \"convolution\", \"channels\": 3, \"kernel\": 3, \"padding\": 1}, {\"kind\": \"relu\"},"
    "{\"kind\": \"convolution\", \"channels\": 3, \"kernel\": 1, \"from\": [2]},"
    "{\"layer\": \"b\", \"kind\": \"concat\", \"from\": [2, 4]},"
    "{\"kind\": \"add\", \"from\": [4, 5]}, {\"kind\": \"add\", \"from\": [7, 7]},"
    "{\"kind\": \"concat\", \"from\": [6, 8]},"
    "{\"kind\": \"max_pool\", \"kernel\": 2, \"stride\": 1}, {\"kind\": \"mean_pool\", \"kernel\": 3},"
    "{\"layer\": \"c\", \"kind\": \"linear\", \"channels\": 7, \"bias\": true},"
    "{\"kind\": \"relu\"},"
    "{\"layer\": \"d\", \"kind\": \"linear\", \"channels\": 4}, {\"kind\": \"loss\"}]}";

static const char *const networks[] = {residual, wide, unet, dense};

enum { SAMPLES = 3, STEPS = 3, SHARDS_MAX = 8 };

static struct kernels *one, *two;
static uint64_t seed;

static struct job job_of(const char *config, struct arena *arena)
{
    struct error err = {0};
    struct job job = {.name = "small", .microbatch = SAMPLES, .microbatches = 1, .minibatches = STEPS, .sequence = 1,
                      .optimizer = {.kind = OPTIMIZER_SGD, .learning_rate = 1}, .data_format = DATA_NONE};
    if (support_network(config, arena, &job.network, &err)) fail_msg("%s", err.text);
    return job;
}

/* --- a trainer -------------------------------------------------------------------------------- */

struct graph_trainer {
    struct job job;
    struct arena arena;
    uint32_t count;
    struct plan_shard shards[SHARDS_MAX];
    struct unit_tables tables[SHARDS_MAX];
    float *states[SHARDS_MAX], *boundaries[SHARDS_MAX], *gradients[SHARDS_MAX], *kept[SHARDS_MAX];
    int32_t *batch;
    double loss;
    bool keeps, inputs;
};

static void *room(uint64_t bytes)
{
    void *const at = aligned_alloc(64, (bytes + 127) / 64 * 64);
    assert_non_null(at);
    memset(at, 0xff, (bytes + 127) / 64 * 64); /* not a number */
    return at;
}

static uint64_t cut_bytes(const struct job *job, uint64_t layer)
{
    if (layer == 0) return 0;
    return job->microbatches * memory_boundary_bytes(&job->network, layer - 1, SAMPLES, 1, PRECISION_FP32);
}

static void begin(struct graph_trainer *t, const struct job *job, uint64_t each, bool keeps, bool inputs)
{
    struct error err = {0};
    *t = (struct graph_trainer){.job = *job, .keeps = keeps, .inputs = inputs};
    for (uint64_t layer = 0; layer < job->network.layer_count; layer += each) {
        const uint64_t left = job->network.layer_count - layer;
        const uint32_t s = t->count++;
        t->shards[s] = (struct plan_shard){0, layer, left < each ? left : each, inputs};
        assert_int_equal(unit_tables_init(&t->job, &t->shards[s], &t->arena, &t->tables[s], &err), STATUS_OK);
        t->states[s] = room(t->tables[s].state.layout.bytes);
        weights_init(&t->job, &t->tables[s].state, t->states[s]);
        t->boundaries[s] = room(cut_bytes(job, layer));
        t->gradients[s] = room(cut_bytes(job, layer));
        t->kept[s] = room(job->microbatches * (inputs ? t->tables[s].inputs.bytes : t->tables[s].activations.bytes));
    }
    t->batch = room(job_batch_bytes(job));
}

static void end(struct graph_trainer *t)
{
    for (uint32_t s = 0; s < t->count; s++) {
        free(t->states[s]);
        free(t->boundaries[s]);
        free(t->gradients[s]);
        free(t->kept[s]);
    }
    free(t->batch);
    arena_release(&t->arena);
}

static void pass(struct graph_trainer *t, const struct kernels *k, uint32_t s, uint32_t what, uint64_t step)
{
    const bool last = s + 1 == t->count, back = what == PLAN_LOSS || what == PLAN_BACKWARD;
    uint64_t bytes = 0;
    for (int p = 0; p < 3; p++)
        for (uint32_t how = 0; how < UNIT_WAYS; how++)
            if (t->tables[s].workspace[p][how].bytes > bytes) bytes = t->tables[s].workspace[p][how].bytes;
    const bool holds = what != PLAN_EVALUATE && !last && (t->keeps || (t->inputs && t->tables[s].inputs.bytes > 0));
    struct unit_arguments a = {.job = &t->job, .shard = &t->shards[s], .tables = &t->tables[s], .pass = what,
                               .minibatch = step, .state = t->states[s], .loss = last ? &t->loss : NULL,
                               .batch = s == 0 || last ? t->batch : NULL,
                               .boundary_in = s > 0 ? t->boundaries[s] : NULL,
                               .boundary_out = !last && !back ? t->boundaries[s + 1] : NULL,
                               .gradient_in = !last && back ? t->gradients[s + 1] : NULL,
                               .gradient_out = s > 0 && back ? t->gradients[s] : NULL,
                               .inputs_only = t->inputs, .activations = holds ? t->kept[s] : NULL,
                               .workspace = room(bytes)};
    unit_compute(k, &a);
    free(a.workspace);
}

static void make_step(struct graph_trainer *t, const struct kernels *k, uint64_t step)
{
    for (uint32_t s = 0; s + 1 < t->count; s++) pass(t, k, s, PLAN_FORWARD, step);
    pass(t, k, t->count - 1, PLAN_LOSS, step);
    for (uint32_t s = t->count - 1; s-- > 0;) pass(t, k, s, PLAN_BACKWARD, step);
}

static void fill_batch(struct graph_trainer *t, uint64_t step)
{
    const struct network *n = &t->job.network;
    const uint64_t samples = job_samples(&t->job), labels = samples * job_image_labels(&t->job);
    const uint64_t pixels = samples * n->channels * n->image * n->image;
    float *const out = (float *)(void *)(t->batch + labels);
    for (uint64_t i = 0; i < labels; i++) t->batch[i] = (int32_t)random_below(seed ^ step, i, n->classes);
    for (uint64_t i = 0; i < pixels; i++) out[i] = (float)(2 * random_unit(seed ^ (step + 99), i) - 1);
}

/* Parameters around 0.3, norms around one: far from zero gradients. */
static void fill_states(struct graph_trainer *t)
{
    uint64_t counter = 0;
    struct state_tables tables[SHARDS_MAX];
    for (uint32_t s = 0; s < t->count; s++) tables[s] = t->tables[s].state;
    struct weights_walk walk = {.job = &t->job, .tables = tables, .shard_count = t->count, .states = t->states};
    struct weights_tensor tensor;
    while (weights_walk_next(&walk, &tensor))
        for (uint64_t i = 0; i < tensor.spec->elements; i++)
            tensor.values[i] = (float)(0.8 * (random_unit(seed, counter++) - 0.5)) + (tensor.spec->init == INIT_ONE);
}

static uint64_t flatten(const struct graph_trainer *t, double *out)
{
    uint64_t count = 0;
    struct state_tables tables[SHARDS_MAX];
    for (uint32_t s = 0; s < t->count; s++) tables[s] = t->tables[s].state;
    struct weights_walk walk = {.job = &t->job, .tables = tables, .shard_count = t->count,
                                .states = (float *const *)t->states};
    struct weights_tensor tensor;
    while (weights_walk_next(&walk, &tensor))
        for (uint64_t i = 0; i < tensor.spec->elements; i++, count++)
            if (out) out[count] = (double)tensor.values[i];
    return count;
}

/* --- a forward pass in double ------------------------------------------------------------------ */

/* Images are (sample, channel, row, column). */
struct judge {
    const struct network_graph *graph;
    double *values[64];
    const double *p;      /* the next parameter */
    double *means;        /* of each norm: means and unbiased variances, or NULL */
    bool evaluates;
};

static double *image_at(const struct judge *j, uint32_t op, uint64_t sample, uint64_t channel)
{
    const struct graph_op *const o = &j->graph->ops[op];
    return j->values[op] + (sample * o->channels + channel) * o->side * o->side;
}

static double pixel(const double *image, uint64_t side, int64_t y, int64_t x, double outside)
{
    if (y < 0 || x < 0 || y >= (int64_t)side || x >= (int64_t)side) return outside;
    return image[(uint64_t)y * side + (uint64_t)x];
}

static void judge_convolution(struct judge *j, uint32_t op)
{
    const struct graph_op *const o = &j->graph->ops[op], *const in = &j->graph->ops[o->from[0]];
    const uint64_t each = in->channels / o->groups, k = o->kernel, out_each = o->channels / o->groups;
    const double *const w = j->p, *const bias = o->bias ? w + o->channels * each * k * k : NULL;
    for (uint64_t b = 0; b < SAMPLES; b++)
        for (uint64_t c = 0; c < o->channels; c++)
            for (uint64_t i = 0; i < o->side * o->side; i++) {
                double sum = bias ? bias[c] : 0;
                for (uint64_t d = 0; d < each; d++)
                    for (uint64_t t = 0; t < k * k; t++)
                        sum += w[(c * each + d) * k * k + t] *
                               pixel(image_at(j, o->from[0], b, c / out_each * each + d), in->side,
                                     (int64_t)(i / o->side * o->stride + t / k) - o->padding,
                                     (int64_t)(i % o->side * o->stride + t % k) - o->padding, 0);
                image_at(j, op, b, c)[i] = sum;
            }
    j->p += o->channels * each * k * k + (bias ? o->channels : 0);
}

static void judge_upsample(struct judge *j, uint32_t op)
{
    const struct graph_op *const o = &j->graph->ops[op], *const in = &j->graph->ops[o->from[0]];
    const uint64_t k = o->kernel;
    const double *const w = j->p, *const bias = o->bias ? w + in->channels * o->channels * k * k : NULL;
    for (uint64_t b = 0; b < SAMPLES; b++)
        for (uint64_t c = 0; c < o->channels; c++)
            for (uint64_t i = 0; i < o->side * o->side; i++) {
                const uint64_t y = i / o->side, x = i % o->side;
                double sum = bias ? bias[c] : 0;
                for (uint64_t d = 0; d < in->channels; d++)
                    sum += image_at(j, o->from[0], b, d)[y / k * in->side + x / k] *
                           w[((d * o->channels + c) * k + y % k) * k + x % k];
                image_at(j, op, b, c)[i] = sum;
            }
    j->p += in->channels * o->channels * k * k + (bias ? o->channels : 0);
}

static void judge_linear(struct judge *j, uint32_t op)
{
    const struct graph_op *const o = &j->graph->ops[op], *const in = &j->graph->ops[o->from[0]];
    const uint64_t count = in->channels * in->side * in->side;
    const double *const w = j->p;
    for (uint64_t b = 0; b < SAMPLES; b++)
        for (uint64_t c = 0; c < o->channels; c++) {
            double sum = o->bias ? w[o->channels * count + c] : 0;
            for (uint64_t i = 0; i < count; i++) sum += w[c * count + i] * image_at(j, o->from[0], b, 0)[i];
            *image_at(j, op, b, c) = sum;
        }
    j->p += o->channels * (count + o->bias);
}

static void judge_norm(struct judge *j, uint32_t op)
{
    const struct graph_op *const o = &j->graph->ops[op];
    const uint64_t area = o->side * o->side;
    const double n = SAMPLES * (double)area, *const p = j->p;
    for (uint64_t c = 0; c < o->channels; c++) {
        double mean = 0, variance = 0;
        for (uint64_t b = 0; b < SAMPLES; b++)
            for (uint64_t i = 0; i < area; i++) mean += image_at(j, o->from[0], b, c)[i] / n;
        for (uint64_t b = 0; b < SAMPLES; b++)
            for (uint64_t i = 0; i < area; i++) variance += pow(image_at(j, o->from[0], b, c)[i] - mean, 2) / n;
        if (j->means) {
            j->means[c] = mean;
            j->means[o->channels + c] = variance * n / (n - 1);
        }
        if (j->evaluates) mean = p[2 * o->channels + c];
        if (j->evaluates) variance = p[3 * o->channels + c];
        for (uint64_t b = 0; b < SAMPLES; b++)
            for (uint64_t i = 0; i < area; i++)
                image_at(j, op, b, c)[i] = (image_at(j, o->from[0], b, c)[i] - mean) / sqrt(variance + 1e-5) * p[c] +
                                           p[o->channels + c];
    }
    if (j->means) j->means += 2 * o->channels;
    j->p += 4 * o->channels;
}

static void judge_pool(struct judge *j, uint32_t op)
{
    const struct graph_op *const o = &j->graph->ops[op], *const in = &j->graph->ops[o->from[0]];
    for (uint64_t b = 0; b < SAMPLES; b++)
        for (uint64_t c = 0; c < o->channels; c++)
            for (uint64_t i = 0; i < o->side * o->side; i++) {
                const uint64_t y = i / o->side, x = i % o->side;
                const double *const image = image_at(j, o->from[0], b, c);
                double most = -HUGE_VAL, sum = 0, count = 0;
                for (uint64_t t = 0; t < (uint64_t)o->kernel * o->kernel && o->kind == GRAPH_MAX_POOL; t++)
                    most = fmax(most, pixel(image, in->side, (int64_t)(y * o->stride + t / o->kernel) - o->padding,
                                            (int64_t)(x * o->stride + t % o->kernel) - o->padding, -HUGE_VAL));
                /* the pixels whose window, floor(y in / out) to ceil((y + 1) in / out), this is */
                for (uint64_t t = 0; t < in->side * in->side; t++) {
                    const uint64_t row = t / in->side, column = t % in->side;
                    if ((row + 1) * o->side <= y * in->side || row * o->side >= (y + 1) * in->side) continue;
                    if ((column + 1) * o->side <= x * in->side || column * o->side >= (x + 1) * in->side) continue;
                    sum += image[t];
                    count++;
                }
                image_at(j, op, b, c)[i] = o->kind == GRAPH_MAX_POOL ? most : sum / count;
            }
}

static double judge_loss(const struct judge *j, uint32_t op, const int32_t *labels)
{
    const struct graph_op *const o = &j->graph->ops[op];
    const uint64_t area = o->side * o->side;
    double total = 0;
    for (uint64_t b = 0; b < SAMPLES; b++)
        for (uint64_t i = 0; i < area; i++) {
            double sum = 0;
            for (uint64_t c = 0; c < o->channels; c++) sum += exp(image_at(j, o->from[0], b, c)[i]);
            total += log(sum) - image_at(j, o->from[0], b, (uint64_t)labels[b * area + i])[i];
        }
    return total / (double)(SAMPLES * area);
}

static void judge_simple(const struct judge *j, uint32_t op)
{
    const struct graph_op *const o = &j->graph->ops[op];
    const uint64_t area = o->side * o->side, first = j->graph->ops[o->from[0]].channels;
    for (uint64_t b = 0; b < SAMPLES; b++)
        for (uint64_t c = 0; c < o->channels; c++)
            for (uint64_t i = 0; i < area; i++) {
                double *const out = &image_at(j, op, b, c)[i];
                if (o->kind == GRAPH_CONCAT)
                    *out = c < first ? image_at(j, o->from[0], b, c)[i] : image_at(j, o->from[1], b, c - first)[i];
                else if (o->kind == GRAPH_ADD)
                    *out = image_at(j, o->from[0], b, c)[i] + image_at(j, o->from[1], b, c)[i];
                else
                    *out = fmax(image_at(j, o->from[0], b, c)[i], 0);
            }
}

/* Returns the loss of SAMPLES samples. */
static double judge(const struct job *job, const int32_t *batch, const double *p, double *means, bool evaluates)
{
    const struct network_graph *const graph = job->network.graph;
    const uint64_t channels = graph->ops[0].channels, side = graph->ops[0].side;
    struct judge j = {.graph = graph, .p = p, .means = means, .evaluates = evaluates};
    const float *const pixels = (const float *)(const void *)(batch + job_samples(job) * job_image_labels(job));
    double loss = 0;
    assert_true(graph->op_count <= 64);
    for (uint32_t op = 0; op < graph->op_count; op++) {
        j.values[op] = calloc(graph_elements(graph, op, SAMPLES), sizeof(double));
        assert_non_null(j.values[op]);
        for (uint64_t i = 0; op == 0 && i < graph_elements(graph, 0, SAMPLES); i++)
            image_at(&j, 0, i / (channels * side * side), i % channels)[i / channels % (side * side)] =
                (double)pixels[i];
        switch (graph->ops[op].kind) {
        case GRAPH_INPUT: break;
        case GRAPH_CONVOLUTION: judge_convolution(&j, op); break;
        case GRAPH_UPSAMPLE: judge_upsample(&j, op); break;
        case GRAPH_LINEAR: judge_linear(&j, op); break;
        case GRAPH_BATCH_NORM: judge_norm(&j, op); break;
        case GRAPH_MAX_POOL:
        case GRAPH_MEAN_POOL: judge_pool(&j, op); break;
        case GRAPH_LOSS: loss = judge_loss(&j, op, batch); break;
        default: judge_simple(&j, op);
        }
    }
    for (uint32_t op = 0; op < graph->op_count; op++) free(j.values[op]);
    return loss;
}

/* --- gradients and running means ---------------------------------------------------------------- */

/* With sgd and rate 1 a step subtracts the gradient. A change of 1e-6 rarely passes a kink of a relu or a pooling. */
static void check_gradients(const char *config)
{
    const double h = 1e-6;
    struct arena arena = {0};
    const struct job job = job_of(config, &arena);
    struct graph_trainer t;
    begin(&t, &job, job.network.layer_count, false, false);
    fill_states(&t);
    fill_batch(&t, 0);
    const uint64_t count = flatten(&t, NULL);
    double *const before = calloc(5 * count, sizeof *before), *const after = before + count, *const p = after + count;
    double *const expected = p + count, *const means = expected + count, norm = 0;
    assert_non_null(before);
    flatten(&t, before);
    make_step(&t, two, 0);
    flatten(&t, after);
    memcpy(p, before, count * sizeof *p);
    const double loss = judge(&job, t.batch, p, means, false);
    if (!(fabs(t.loss - loss) <= 1e-6 * loss)) fail_msg("loss %.9g, expected %.9g", t.loss, loss);
    for (uint64_t i = 0; i < count; i++) {
        p[i] = before[i] + h;
        const double up = judge(&job, t.batch, p, NULL, false);
        p[i] = before[i] - h;
        const double down = judge(&job, t.batch, p, NULL, false);
        p[i] = before[i];
        expected[i] = (up - down) / (2 * h);
        norm += expected[i] * expected[i];
    }
    norm = sqrt(norm);
    assert_true(norm > 0.01);
    uint64_t i = 0, seen = 0;
    for (uint64_t layer = 0; layer < job.network.layer_count; layer++) {
        struct tensor_spec specs[LAYER_TENSORS_MAX];
        const uint32_t tensors = network_layer_tensors(&job.network, layer, specs);
        for (uint32_t s = 0; s < tensors; s++)
            for (uint64_t e = 0; e < specs[s].elements; e++, i++) {
                const double found = specs[s].running ? after[i] : before[i] - after[i];
                const double wanted = specs[s].running ? 0.9 * before[i] + 0.1 * means[seen++] : expected[i];
                if (!(fabs(found - wanted) <= 1e-6 + 1e-4 * fabs(wanted) + 1e-5 * norm))
                    fail_msg("%s[%llu]: %.9g, expected %.9g (all: %.9g)", specs[s].name, (unsigned long long)e, found,
                             wanted, norm);
            }
    }
    assert_int_equal(i, count);
    /* an evaluation norms by the running means, and changes nothing */
    pass(&t, two, 0, PLAN_EVALUATE, 1);
    const double evaluated = judge(&job, t.batch, after, NULL, true);
    if (!(fabs(t.loss - evaluated) <= 1e-6 + 1e-5 * evaluated)) fail_msg("loss %.9g, expected %.9g", t.loss, evaluated);
    flatten(&t, p);
    assert_memory_equal(p, after, count * sizeof *p);
    free(before);
    end(&t);
    arena_release(&arena);
}

static void test_gradients(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof networks / sizeof *networks; n++) check_gradients(networks[n]);
}

/* --- the same bits in every cut ------------------------------------------------------------------ */

static void train(const struct job *job, const struct kernels *k, uint64_t each, bool keeps, bool inputs, double *out,
                  double losses[2 * STEPS])
{
    struct graph_trainer t;
    begin(&t, job, each, keeps, inputs);
    fill_states(&t);
    for (uint64_t step = 0; step < STEPS; step++) {
        fill_batch(&t, step);
        make_step(&t, k, step);
        losses[2 * step] = t.loss;
        for (uint32_t s = 0; s < t.count; s++) pass(&t, k, s, PLAN_EVALUATE, step);
        losses[2 * step + 1] = t.loss;
        assert_true(isfinite(t.loss));
    }
    flatten(&t, out);
    end(&t);
}

static void check_cuts(const char *config, uint64_t microbatches, uint32_t optimizer)
{
    struct arena arena = {0};
    struct job job = job_of(config, &arena);
    job.microbatches = microbatches;
    job.optimizer = (struct job_optimizer){.kind = optimizer, .learning_rate = 0.02, .weight_decay = 0.1,
                                           .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-8,
                                           .momentum = optimizer == OPTIMIZER_MOMENTUM ? 0.9 : 0};
    static double whole[4096], other[4096];
    double losses[2 * STEPS], other_losses[2 * STEPS];
    train(&job, two, job.network.layer_count, false, false, whole, losses);
    assert_true(losses[0] != losses[2]);
    for (uint64_t each = 1; each <= job.network.layer_count; each++)
        for (uint32_t way = 0; way < 4; way++) {
            memset(other, 0, sizeof other);
            train(&job, way == 3 ? one : two, each, way % 3 == 1, way == 2, other, other_losses);
            if (memcmp(losses, other_losses, sizeof losses) != 0)
                fail_msg("%llu layers a shard, way %u: other losses", (unsigned long long)each, way);
            if (memcmp(whole, other, sizeof whole) != 0)
                fail_msg("%llu layers a shard, way %u: other weights", (unsigned long long)each, way);
        }
    memset(whole, 0, sizeof whole);
    arena_release(&arena);
}

static void test_cuts(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof networks / sizeof *networks; n++) {
        check_cuts(networks[n], 1, OPTIMIZER_MOMENTUM);
        check_cuts(networks[n], 3, OPTIMIZER_ADAMW);
    }
}

static void test_unsupported(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct job job = job_of(residual, &arena);
    struct kernels partial = *two;
    assert_null(unit_unsupported(&job));
    assert_null(unit_missing_kernel(&partial, &job));
    partial.images = NULL;
    assert_string_equal(unit_missing_kernel(&partial, &job), "convolutions");
    arena_release(&arena);
}

static int set_up(void **state)
{
    struct error err = {0};
    (void)state;
    if (kernels_host_create(1, &one, &err) || kernels_host_create(2, &two, &err)) return -1;
    kernels_host_attach(two);
    seed = support_seed("exec/network/graph_pass.c");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    kernels_host_destroy(one);
    kernels_host_destroy(two);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gradients), cmocka_unit_test(test_cuts),
                                       cmocka_unit_test(test_unsupported)};
    return cmocka_run_group_tests_name("exec/network/graph_pass.c", tests, set_up, tear_down);
}
