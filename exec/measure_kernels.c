/*
 * How long each kernel takes, with operands where a training step has them.
 *
 * A benchmark that calls a kernel again and again on the same operands measures the cache. In
 * training, an operand is in one of four states, and each has a region of memory here:
 *
 *     hot       written by the kernel before: one place, used again at once
 *     kept      activations of some layers ago: as many places as a few layers have
 *     weights   last read by the previous pass, a model ago
 *     state     parameters and moments of an update, likewise
 *
 * An operand of the latter three moves on at every call and comes back after as many calls as the
 * share of its region says (48 for weights: there are about that many tensors of its size, with
 * gradients and moments, in a small model). Small operands then come back from a cache, as they
 * do in a small model, and large ones from DRAM. Gradients of weights come back after four: they are
 * overwritten by every layer.
 *
 * Sizes. Products and attention are measured on full grids, over which models/cost.h interpolates
 * in three dimensions; all other kernels at a few sizes each, by their bytes. The widest axis ends at
 * 3072 because rates no longer change there: a product with 50257 columns runs as fast.
 *
 * Some classes are no kernel of their own: the column sums for biases are what a weight's product
 * takes longer with them than without, the scattering of an embedding's gradient what its fused step
 * takes longer than an optimizer's step on as many parameters. The optimizer is timed on the tensors
 * of a transformer block with that many parameters, four matrices and eight vectors. Kernels that a
 * back end does not have are left out.
 *
 * Protocol. All sizes of all classes are visited in rounds, three or more; so a disturbance spoils
 * one sample of many sizes and no median. A sample is a batch of calls of at least SAMPLE_MIN_S with
 * a warm-up in front when they are short. Samples during which the kernel took a processor away from
 * this process (it counts that) are set aside, and used only where no others came about. Median
 * and half the interquartile range are reported.
 */
#include "exec/measure_state.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/alloc.h"
#include "base/progress.h"
#include "base/random.h"
#include "base/size.h"
#include "exec/clones.h"
#include "exec/host_memory.h"
#include "exec/kernels.h"
#include "models/memory.h"

static const double SAMPLE_MIN_S = 0.4e-3, WARM_UP_MAX_S = 5e-3;
static const double GPU_SAMPLE_MIN_S = 4e-3; /* waiting for the end takes some 50 us */
enum { ROUNDS_MIN = 3, HOT_SLOTS = 4, TOKENS = 8192, FEW_WORDS = 256, MANY_WORDS = 8192 };

/* --- the bench ----------------------------------------------------------------------------------- */

enum region { HOT, KEPT, WEIGHTS, STATE, COPIES, REGION_COUNT };

/* COPIES is what copies come from and go to. Everything lies in the arena. */
struct bench {
    const struct backend *backend;
    enum bench_size size;
    struct device *device;
    float *regions[REGION_COUNT];
    uint64_t floats[REGION_COUNT];
    const int32_t *few, *many; /* TOKENS tokens below FEW_WORDS, MANY_WORDS */
    double *loss;
    struct work_item step[2 * LAYER_WORK_MAX]; /* see bench_compute_step() */
    uint32_t step_count;
};

static const uint64_t MIB = 1 << 20;
static const uint64_t mebibytes[BENCH_SIZES][REGION_COUNT] = {
    [BENCH_WHOLE] = {[HOT] = HOT_SLOTS * 52, [KEPT] = 128, [WEIGHTS] = 192, [STATE] = 192,
                     [COPIES] = 192},
    [BENCH_SMALL] = {[HOT] = HOT_SLOTS * 8, [KEPT] = 32, [WEIGHTS] = 48, [STATE] = 96,
                     [COPIES] = 64},
    [BENCH_GPU] = {[HOT] = HOT_SLOTS * 512, [KEPT] = 2048, [WEIGHTS] = 2048, [STATE] = 2048,
                   [COPIES] = 1024},
};
enum { EXTRA_BYTES = 2 * TOKENS * sizeof(int32_t) + MEMORY_ALIGNMENT }; /* tokens, and a loss */

uint64_t bench_bytes(enum bench_size size)
{
    uint64_t bytes = EXTRA_BYTES;
    for (uint32_t r = 0; r < REGION_COUNT; r++) bytes += mebibytes[size][r] * MIB;
    return bytes;
}

/* What the arena holds, from a block of the host's memory, as often as it goes in: small values that
 * stay small, neither denormal nor infinite, in whichever role they serve. Then the tokens. */
static enum status fill(struct bench *bench, struct error *err)
{
    enum { BLOCK_FLOATS = 4 << 20 };
    struct device_stream *const stream = device_stream(bench->device, STREAM_H2D);
    uint64_t left = 0;
    for (uint32_t r = 0; r < REGION_COUNT; r++) left += bench->floats[r];
    float *const block = alloc_zeroed(BLOCK_FLOATS, sizeof *block);
    int32_t *const tokens = alloc_zeroed(2 * TOKENS, sizeof *tokens);
    if (!block || !tokens) {
        free(block);
        free(tokens);
        return error_memory(err, "a bench", BLOCK_FLOATS * sizeof *block);
    }
    for (uint32_t i = 0; i < BLOCK_FLOATS; i++)
        block[i] = (float)(i * 2654435761u >> 20) * 1e-5f + 1e-4f;
    for (uint64_t i = 0; i < TOKENS; i++) {
        tokens[i] = (int32_t)random_below(1, i, FEW_WORDS);
        tokens[TOKENS + i] = (int32_t)random_below(2, i, MANY_WORDS);
    }
    float *at = device_arena(bench->device);
    while (left > 0) {
        const uint64_t count = left < BLOCK_FLOATS ? left : BLOCK_FLOATS;
        device_copy(stream, at, block, count * sizeof *at, NULL);
        at += count;
        left -= count;
    }
    device_copy(stream, at, tokens, 2 * TOKENS * sizeof *tokens, NULL);
    while (!device_synchronize(stream, device_record(stream), 1))
        ;
    free(block);
    free(tokens);
    return device_failed(bench->device, err);
}

enum status bench_open(const struct bench_options *options, struct bench **out, struct error *err)
{
    struct bench *bench = alloc_zeroed(1, sizeof *bench);
    if (!bench) return error_memory(err, "a bench", sizeof *bench);
    bench->backend = options->backend;
    bench->size = options->size;
    const uint64_t bytes = bench_bytes(options->size);
    const struct device_options device = {.index = options->index,
                                          .arena_bytes = bytes,
                                          .threads = options->threads,
                                          .tf32 = options->tf32};
    enum status status = STATUS_OK;
    if (options->backend->arena_on_host && bytes > host_memory_available())
        status = error_memory(err, "the operands of the measurement", bytes);
    if (status == STATUS_OK) status = options->backend->open(&device, &bench->device, err);
    if (status == STATUS_OK) {
        float *at = device_arena(bench->device);
        for (uint32_t r = 0; r < REGION_COUNT; r++) {
            bench->regions[r] = at;
            bench->floats[r] = mebibytes[options->size][r] * MIB / sizeof(float);
            at += bench->floats[r];
        }
        bench->few = (const int32_t *)(const void *)at;
        bench->many = bench->few + TOKENS;
        bench->loss = (double *)(void *)(at + 2 * TOKENS);
        status = fill(bench, err);
    }
    if (status != STATUS_OK) {
        bench_close(bench);
        return status;
    }
    *out = bench;
    return STATUS_OK;
}

void bench_close(struct bench *bench)
{
    if (!bench) return;
    device_close(bench->device);
    free(bench);
}

struct device *bench_device(struct bench *bench)
{
    return bench->device;
}

const struct backend *bench_backend(const struct bench *bench)
{
    return bench->backend;
}

enum status bench_map_host(const struct bench *bench, uint64_t bytes, char **out,
                           struct error *err)
{
    void *host = NULL;
    char why[160];
    const enum status status = host_memory_map("the copies' host memory", bytes, &host, err);
    if (status != STATUS_OK) return status;
    if (bench->backend->pin && !bench->backend->pin(host, bytes, why, sizeof why)) {
        host_memory_unmap(host, bytes);
        return error_set(err, STATUS_DEVICE, "host memory cannot be pinned: %s", why);
    }
    *out = host;
    return STATUS_OK;
}

void bench_unmap_host(const struct bench *bench, char *host, uint64_t bytes)
{
    if (!host) return;
    if (bench->backend->unpin) bench->backend->unpin(host);
    host_memory_unmap(host, bytes);
}

char *bench_copies(struct bench *bench, uint64_t *bytes)
{
    *bytes = bench->floats[COPIES] * sizeof(float);
    return (char *)bench->regions[COPIES];
}

/* --- operands ------------------------------------------------------------------------------------ */

/* How many operands of one size there are before the first comes back. */
enum { KEPT_SHARE = 16, GRADIENT_SHARE = 4, WEIGHT_SHARE = 48 };

/* One call of a kernel. */
struct call {
    const struct bench *bench;
    const struct kernels *kernels;
    int64_t m, n, k;
    uint64_t turn;
};

static float *place(const struct call *c, enum region region, uint64_t share, int64_t elements)
{
    const uint64_t step = size_align((uint64_t)elements, MEMORY_ALIGNMENT / sizeof(float));
    const uint64_t room = c->bench->floats[region] / step;
    assert(room > 0);
    return c->bench->regions[region] + c->turn % (room < share ? room : share) * step;
}

static float *hot(const struct call *c, uint32_t slot, int64_t elements)
{
    const uint64_t room = c->bench->floats[HOT] / HOT_SLOTS;
    assert((uint64_t)elements <= room && slot < HOT_SLOTS);
    return c->bench->regions[HOT] + slot * room;
}

static float *kept(const struct call *c, int64_t elements)
{
    return place(c, KEPT, KEPT_SHARE, elements);
}

/* A second tensor kept by the same layer. */
static float *kept_too(const struct call *c, int64_t elements)
{
    return place(&(struct call){.bench = c->bench, .turn = c->turn + KEPT_SHARE / 2}, KEPT,
                 KEPT_SHARE, elements);
}

static float *gradient(const struct call *c, int64_t elements)
{
    return place(c, KEPT, GRADIENT_SHARE, elements);
}

static float *weight(const struct call *c, int64_t elements)
{
    return place(c, WEIGHTS, WEIGHT_SHARE, elements);
}

static float *state(const struct call *c, int64_t elements)
{
    return place(c, STATE, WEIGHT_SHARE, elements);
}

/* --- calls, by class; m, n, k as models/work.h defines them --------------------------------------- */

static void call_matmul_forward(const struct call *c)
{
    c->kernels->linear_forward(c->kernels, kept(c, c->m * c->n), hot(c, 0, c->m * c->k),
                               weight(c, c->n * c->k), c->bench->regions[WEIGHTS], c->m, c->n, c->k,
                               true);
}

static void call_matmul_input(const struct call *c)
{
    c->kernels->linear_input(c->kernels, hot(c, 1, c->m * c->n), hot(c, 0, c->m * c->k),
                             weight(c, c->n * c->k), c->m, c->k, c->n, true, false);
}

static void call_matmul_weight(const struct call *c)
{
    c->kernels->linear_weight(c->kernels, gradient(c, c->m * c->n), NULL, hot(c, 0, c->k * c->m),
                              kept(c, c->k * c->n), c->k, c->m, c->n, true, 0);
}

enum { BIAS_INPUTS = 16 };

static void call_without_bias(const struct call *c)
{
    c->kernels->linear_weight(c->kernels, hot(c, 1, c->n * BIAS_INPUTS), NULL,
                              hot(c, 0, c->m * c->n), hot(c, 2, c->m * BIAS_INPUTS), c->m, c->n,
                              BIAS_INPUTS, true, 0);
}

static void call_with_bias(const struct call *c)
{
    c->kernels->linear_weight(c->kernels, hot(c, 1, c->n * BIAS_INPUTS), hot(c, 3, c->n),
                              hot(c, 0, c->m * c->n), hot(c, 2, c->m * BIAS_INPUTS), c->m, c->n,
                              BIAS_INPUTS, true, 0);
}

/* m heads in all: B samples of H. */
static int64_t heads_of(const struct call *c)
{
    return c->m % 4 == 0 ? 4 : c->m;
}

/* q, k and v as columns of one array, where attention is causal: as GPT-2 has them; else apart. */
static struct attention attention_of(const struct call *c, float *q, bool causal)
{
    const int64_t h = heads_of(c), width = h * c->k, elements = c->m * c->n * c->k;
    const int64_t apart = causal ? width : elements;
    return (struct attention){.q = q,
                              .k = q + apart,
                              .v = q + 2 * apart,
                              .scratch = hot(c, 3, 0),
                              .b = c->m / h,
                              .t = c->n,
                              .h = h,
                              .kv = h,
                              .d = c->k,
                              .row_q = causal ? 3 * width : width,
                              .row_kv = causal ? 3 * width : width,
                              .causal = causal};
}

static void attend_forward(const struct call *c, bool causal)
{
    const int64_t elements = c->m * c->n * c->k;
    struct attention attention = attention_of(c, hot(c, 0, 3 * elements), causal);
    attention.out = kept(c, elements);
    attention.stats = kept_too(c, c->m * c->n);
    c->kernels->attention_forward(c->kernels, &attention);
}

static void attend_backward(const struct call *c, bool causal)
{
    const int64_t elements = c->m * c->n * c->k;
    struct attention attention = attention_of(c, kept(c, 3 * elements), causal);
    attention.out = kept_too(c, elements);
    attention.stats = hot(c, 2, c->m * c->n);
    attention.dout = hot(c, 0, elements);
    attention.dq = hot(c, 1, 3 * elements);
    attention.dk = attention.dq + (attention.k - attention.q);
    attention.dv = attention.dq + (attention.v - attention.q);
    c->kernels->attention_backward(c->kernels, &attention);
}

static void call_attention_forward(const struct call *c)
{
    attend_forward(c, true);
}

static void call_attention_backward(const struct call *c)
{
    attend_backward(c, true);
}

static void call_attention_full_forward(const struct call *c)
{
    attend_forward(c, false);
}

static void call_attention_full_backward(const struct call *c)
{
    attend_backward(c, false);
}

static void call_norm_forward(const struct call *c)
{
    float *const parameters = weight(c, 2 * c->n);
    c->kernels->norm_forward(c->kernels, kept(c, c->m * c->n), kept_too(c, c->m * c->n),
                             hot(c, 2, 2 * c->m), hot(c, 1, c->m * c->n), hot(c, 0, c->m * c->n),
                             parameters, parameters + c->n, c->m, c->n, 1e-5f);
}

static void call_norm_backward(const struct call *c)
{
    float *const stream = hot(c, 1, c->m * c->n), *const gradients = hot(c, 3, 2 * c->n);
    c->kernels->norm_backward(c->kernels, stream, gradients, gradients + c->n,
                              hot(c, 0, c->m * c->n), kept(c, c->m * c->n), hot(c, 2, 2 * c->m),
                              weight(c, c->n), stream, c->m, c->n);
}

static void call_rms_norm_forward(const struct call *c)
{
    c->kernels->rms_norm_forward(c->kernels, kept(c, c->m * c->n), kept_too(c, c->m * c->n),
                                 hot(c, 2, c->m), hot(c, 1, c->m * c->n), hot(c, 0, c->m * c->n),
                                 weight(c, c->n), c->m, c->n, 1e-5f);
}

static void call_rms_norm_backward(const struct call *c)
{
    float *const stream = hot(c, 1, c->m * c->n);
    c->kernels->rms_norm_backward(c->kernels, stream, hot(c, 3, c->n), hot(c, 0, c->m * c->n),
                                  kept(c, c->m * c->n), hot(c, 2, c->m), weight(c, c->n), stream,
                                  c->m, c->n);
}

static void call_gelu_forward(const struct call *c)
{
    const int64_t n = c->m * c->n;
    c->kernels->gelu_forward(c->kernels, kept(c, n), hot(c, 0, n), n, true);
}

static void call_gelu_backward(const struct call *c)
{
    const int64_t n = c->m * c->n;
    c->kernels->gelu_backward(c->kernels, hot(c, 0, n), hot(c, 0, n), kept(c, n), n, true);
}

static void call_swiglu_forward(const struct call *c)
{
    const int64_t n = c->m * c->n;
    c->kernels->swiglu_forward(c->kernels, kept(c, n), hot(c, 0, n), hot(c, 1, n), n);
}

static void call_swiglu_backward(const struct call *c)
{
    const int64_t n = c->m * c->n;
    c->kernels->swiglu_backward(c->kernels, hot(c, 0, n), hot(c, 1, n), hot(c, 0, n), kept(c, n),
                                kept_too(c, n), n);
}

static void call_residual(const struct call *c)
{
    const int64_t n = c->m * c->n;
    c->kernels->residual(c->kernels, hot(c, 0, n), kept(c, n), hot(c, 0, n), n);
}

/* Rows of a microbatch: samples of at most 64 tokens. */
struct batch {
    int64_t b, t;
};

static struct batch batch_of(int64_t rows)
{
    const int64_t t = rows < 64 ? rows : 64;
    assert(rows % t == 0 && rows / t * (t + 1) <= TOKENS);
    return (struct batch){rows / t, t};
}

static void call_embed_forward(const struct call *c)
{
    const struct batch s = batch_of(c->m);
    const int64_t rows = MANY_WORDS + s.t;
    c->kernels->embed_forward(c->kernels, hot(c, 0, c->m * c->n), weight(c, rows * c->n),
                              c->bench->many, s.t + 1, s.b, s.t, c->n, MANY_WORDS, 0, rows);
}

/* As many heads of keys as of queries, of 32. */
static void call_rope(const struct call *c)
{
    static const struct rope rope = {.kind = ROPE_DEFAULT, .theta = 10000};
    const struct batch s = batch_of(c->m);
    const int64_t d = 32, heads = c->n / 2 / d;
    c->kernels->rope(c->kernels, hot(c, 0, c->m * heads * d), hot(c, 1, c->m * heads * d), s.b,
                     s.t, heads, heads, d, &rope, false);
}

/* Every second row. */
static void call_gather(const struct call *c)
{
    const int64_t n = c->m * c->n;
    c->kernels->first_forward(c->kernels, hot(c, 0, n), kept(c, 2 * n), c->m, 2, c->n);
}

static const struct optimizer adamw = {.kind = OPTIMIZER_ADAMW,
                                       .learning_rate = 1e-6,
                                       .weight_decay = 0.01,
                                       .beta1 = 0.9,
                                       .beta2 = 0.95,
                                       .epsilon = 1e-8};
static const struct optimizer sgd = {.kind = OPTIMIZER_SGD, .learning_rate = 1e-6};
static const struct optimizer momentum = {
    .kind = OPTIMIZER_MOMENTUM, .learning_rate = 1e-6, .momentum = 0.9};

static const struct optimizer adamw_bf16 = {.kind = OPTIMIZER_ADAMW,
                                            .learning_rate = 1e-6,
                                            .weight_decay = 0.01,
                                            .beta1 = 0.9,
                                            .beta2 = 0.95,
                                            .epsilon = 1e-8,
                                            .moments = PRECISION_BF16};
static const struct optimizer momentum_bf16 = {.kind = OPTIMIZER_MOMENTUM,
                                               .learning_rate = 1e-6,
                                               .momentum = 0.9,
                                               .moments = PRECISION_BF16};

/* n parameters and moments of AdamW, one after the other. */
static struct kernel_parameters in_a_row(float *p, int64_t n)
{
    return (struct kernel_parameters){.p = p, .m = p + n, .v = p + 2 * n};
}

static void call_embed_update(const struct call *c)
{
    const struct batch s = batch_of(c->m);
    const int64_t words = c->k - s.t;
    const struct kernel_parameters rows = in_a_row(state(c, 3 * c->k * c->n), c->k * c->n);
    c->kernels->embed_update(c->kernels, &rows, hot(c, 1, words * c->n), hot(c, 0, c->m * c->n),
                             words < MANY_WORDS ? c->bench->few : c->bench->many, s.t + 1, s.b,
                             s.t, c->n, words, 0, c->k, &adamw, 1, hot(c, 3, 4 * c->m));
}

static void call_embed_step(const struct call *c)
{
    const int64_t n = c->k * c->n;
    const struct kernel_parameters parameters = in_a_row(state(c, 3 * n), n);
    c->kernels->update(c->kernels, &parameters, hot(c, 1, n), n, &adamw, true, 1);
}

/* Gradients that came from a device a moment ago. */
static void call_squares(const struct call *c)
{
    static _Thread_local volatile double keep; /* else there is nothing to do */
    keep = c->kernels->squares(c->kernels, hot(c, 0, c->m), c->m);
    (void)keep;
}

static void call_loss(const struct call *c)
{
    const struct batch s = batch_of(c->m);
    c->kernels->loss(c->kernels, c->bench->loss, hot(c, 0, c->m * c->n), c->bench->few, s.t + 1,
                     s.b, s.t, c->n, (struct loss_rows){.count = c->m, .parts = 1});
}

/* The tensors of a block with m parameters: 12 C^2 in four matrices, and vectors. Parameters were
 * read a moment ago, to carry the gradient through, and gradients written: both are hot. */
static void update_block(const struct call *c, const struct optimizer *optimizer)
{
    static const int64_t twelfths[] = {3, 1, 4, 4}, vector_widths[] = {1, 1, 3, 1, 1, 1, 4, 1};
    const int64_t width = (int64_t)sqrt((double)c->m / 12), matrices = c->m - 13 * width;
    const uint32_t moments = optimizer_moments(optimizer->kind);
    const uint64_t bytes = precision_bytes(optimizer->moments);
    const bool rounded = optimizer->moments == PRECISION_BF16;
    /* a moment in bf16 takes half of what is there for it */
    char *const first = moments > 0 ? (char *)state(c, moments * c->m) : NULL;
    struct kernel_parameters all = {.m = first,
                                    .v = moments > 1 ? first + (uint64_t)c->m * bytes : NULL};
    for (size_t i = 0; i < ARRAY_COUNT(twelfths) + ARRAY_COUNT(vector_widths); i++) {
        const bool matrix = i < ARRAY_COUNT(twelfths);
        const int64_t n = matrix ? matrices * twelfths[i] / 12
                                 : vector_widths[i - ARRAY_COUNT(twelfths)] * width;
        all.p = hot(c, 1, n);
        c->kernels->update(c->kernels, &all, hot(c, 0, n), n, optimizer, matrix, 1);
        all = kernel_parameters_from(all, n, rounded);
    }
}

static void call_sgd(const struct call *c)
{
    update_block(c, &sgd);
}

static void call_adamw(const struct call *c)
{
    update_block(c, &adamw);
}

static void call_momentum(const struct call *c)
{
    update_block(c, &momentum);
}

static void call_adamw_bf16(const struct call *c)
{
    update_block(c, &adamw_bf16);
}

static void call_momentum_bf16(const struct call *c)
{
    update_block(c, &momentum_bf16);
}

/* Arrays of bf16 are as long as those of fp32 that they lie in. */
static bf16 *halves(float *array)
{
    return (bf16 *)(void *)array;
}

static void call_round(const struct call *c)
{
    c->kernels->round(c->kernels, halves(hot(c, 1, c->m)), hot(c, 0, c->m), c->m);
}

static void call_matmul_bf16_forward(const struct call *c)
{
    c->kernels->linear_forward_bf16(c->kernels, hot(c, 0, c->m * c->n), halves(hot(c, 1, c->m * c->k)),
                                    halves(weight(c, c->k * c->n)), hot(c, 2, c->n), c->m, c->n, c->k,
                                    false);
}

static void call_matmul_bf16_input(const struct call *c)
{
    c->kernels->linear_input_bf16(c->kernels, hot(c, 0, c->m * c->n), halves(hot(c, 1, c->m * c->k)),
                                  halves(weight(c, c->k * c->n)), c->m, c->k, c->n, false, false);
}

static void call_matmul_bf16_weight(const struct call *c)
{
    c->kernels->linear_weight_bf16(c->kernels, gradient(c, c->m * c->n), NULL, NULL,
                                   halves(hot(c, 1, c->k * c->m)), halves(kept(c, c->k * c->n)), c->k,
                                   c->m, c->n, false, false);
}

/* --- which sizes ----------------------------------------------------------------------------------- */

typedef void (*call_function)(const struct call *call);

struct axis {
    const uint64_t *sizes;
    uint32_t count;
};
#define AXIS(...) {(const uint64_t[]){__VA_ARGS__}, ARRAY_COUNT(((const uint64_t[]){__VA_ARGS__}))}

/* A class is measured on a grid or at listed sizes. `less`: what is subtracted, the same sizes. */
struct kernel_class {
    call_function call, less;
    size_t need;                    /* offset in struct kernels of what a back end may lack; 0: none */
    bool gpu_only;                  /* models/cost.c puts the host's together from what is measured */
    struct axis grid[BENCH_SIZES][3]; /* [how large][m, n, k] */
    const uint64_t (*sizes)[3];     /* NULL: the grid; ascending like points in a file */
    uint32_t size_count;            /* BENCH_SMALL takes the first COARSE_SIZES */
    const uint64_t (*gpu_sizes)[3];
    uint32_t gpu_size_count;
};
#define SIZES(list)                                                        \
    .sizes = list, .size_count = ARRAY_COUNT(list), .gpu_sizes = gpu_##list, \
    .gpu_size_count = ARRAY_COUNT(gpu_##list)
enum { COARSE_SIZES = 2 };

static const uint64_t norm_sizes[][3] = {
    {16, 128, 1}, {64, 256, 1}, {256, 512, 1}, {1024, 768, 1}, {4096, 1024, 1}};
static const uint64_t wide_sizes[][3] = {
    {16, 512, 0}, {64, 1024, 0}, {256, 2048, 0}, {1024, 3072, 0}, {2048, 4096, 0}};
static const uint64_t narrow_sizes[][3] = {
    {16, 128, 0}, {64, 256, 0}, {256, 512, 0}, {1024, 768, 0}, {4096, 1024, 0}};
static const uint64_t table_sizes[][3] = {{64, 128, 320}, {256, 256, 1280}, {256, 512, 8256}};
static const uint64_t loss_sizes[][3] = {
    {16, 256, 0}, {64, 16384, 0}, {128, 256, 0}, {256, 50257, 0}, {1024, 256, 0}};
static const uint64_t parameter_sizes[][3] = {
    {3 << 14, 0, 0}, {3 << 16, 0, 0}, {3 << 18, 0, 0}, {3 << 20, 0, 0}, {3 << 22, 0, 0}};

static const uint64_t gpu_norm_sizes[][3] = {
    {64, 256, 1}, {256, 512, 1}, {1024, 768, 1}, {4096, 1024, 1}, {16384, 4096, 1}};
static const uint64_t gpu_wide_sizes[][3] = {
    {64, 1024, 0}, {256, 2048, 0}, {1024, 3072, 0}, {4096, 4096, 0}, {8192, 16384, 0}};
static const uint64_t gpu_narrow_sizes[][3] = {
    {64, 256, 0}, {256, 512, 0}, {1024, 768, 0}, {4096, 1024, 0}, {4096, 4096, 0}};
static const uint64_t gpu_table_sizes[][3] = {
    {64, 128, 320}, {256, 512, 8256}, {1024, 768, 50321}, {4096, 768, 50321}};
static const uint64_t gpu_loss_sizes[][3] = {
    {64, 16384, 0}, {128, 256, 0}, {256, 50257, 0}, {1024, 50257, 0}, {2048, 50257, 0}};
static const uint64_t gpu_parameter_sizes[][3] = {
    {3 << 16, 0, 0}, {3 << 18, 0, 0}, {3 << 20, 0, 0}, {3 << 22, 0, 0}, {3 << 25, 0, 0}};

#define GPU_ROWS AXIS(64, 256, 1024, 4096, 16384)
#define GPU_WIDTHS AXIS(256, 768, 2048, 5120)
#define GPU_HEADS AXIS(16, 128)
#define GPU_LENGTHS AXIS(64, 256, 1024, 2048)
#define GPU_HEAD_WIDTHS AXIS(32, 64, 128)
#define ROWS AXIS(16, 64, 256, 1024)
#define WIDTHS AXIS(128, 384, 1024, 3072)
#define COARSE_ROWS AXIS(16, 256)
#define COARSE_WIDTHS AXIS(128, 1024)
#define HEADS AXIS(4, 32)
#define LENGTHS AXIS(16, 32, 64, 128, 256, 1024)
#define FEW_LENGTHS AXIS(16, 64, 256, 1024)
#define HEAD_WIDTHS AXIS(16, 32, 64)

/* Without those of 16 bits throughout: jobs that are spread over devices are not carried out. */
static const struct kernel_class classes[KERNEL_COUNT] = {
    [KERNEL_MATMUL_FORWARD] = {call_matmul_forward,
                               .grid = {{ROWS, WIDTHS, WIDTHS},
                                        {COARSE_ROWS, COARSE_WIDTHS, COARSE_WIDTHS},
                                        {GPU_ROWS, GPU_WIDTHS, GPU_WIDTHS}}},
    [KERNEL_MATMUL_INPUT] = {call_matmul_input,
                             .grid = {{ROWS, WIDTHS, WIDTHS},
                                      {COARSE_ROWS, COARSE_WIDTHS, COARSE_WIDTHS},
                                        {GPU_ROWS, GPU_WIDTHS, GPU_WIDTHS}}},
    [KERNEL_MATMUL_WEIGHT] = {call_matmul_weight,
                              .grid = {{WIDTHS, WIDTHS, ROWS},
                                       {COARSE_WIDTHS, COARSE_WIDTHS, COARSE_ROWS},
                                       {GPU_WIDTHS, GPU_WIDTHS, GPU_ROWS}}},
    [KERNEL_ATTENTION_FULL_FORWARD] = {call_attention_full_forward,
                                       .grid = {{HEADS, FEW_LENGTHS, HEAD_WIDTHS},
                                                {AXIS(4), AXIS(16, 256), AXIS(16, 64)},
                                                {GPU_HEADS, GPU_LENGTHS, GPU_HEAD_WIDTHS}}},
    [KERNEL_ATTENTION_FULL_BACKWARD] = {call_attention_full_backward,
                                        .grid = {{HEADS, FEW_LENGTHS, HEAD_WIDTHS},
                                                 {AXIS(4), AXIS(16, 256), AXIS(16, 64)},
                                                 {GPU_HEADS, GPU_LENGTHS, GPU_HEAD_WIDTHS}}},
    [KERNEL_ATTENTION_FORWARD] = {call_attention_forward,
                                  .grid = {{HEADS, LENGTHS, HEAD_WIDTHS},
                                           {AXIS(4), AXIS(16, 256), AXIS(16, 64)},
                                           {GPU_HEADS, GPU_LENGTHS, GPU_HEAD_WIDTHS}}},
    [KERNEL_ATTENTION_BACKWARD] = {call_attention_backward,
                                   .grid = {{HEADS, LENGTHS, HEAD_WIDTHS},
                                            {AXIS(4), AXIS(16, 256), AXIS(16, 64)},
                                           {GPU_HEADS, GPU_LENGTHS, GPU_HEAD_WIDTHS}}},
    [KERNEL_NORM_FORWARD] = {call_norm_forward, SIZES(norm_sizes)},
    [KERNEL_NORM_BACKWARD] = {call_norm_backward, SIZES(norm_sizes)},
    [KERNEL_GELU_FORWARD] = {call_gelu_forward, SIZES(wide_sizes)},
    [KERNEL_GELU_BACKWARD] = {call_gelu_backward, SIZES(wide_sizes)},
    [KERNEL_RESIDUAL] = {call_residual, SIZES(narrow_sizes)},
    [KERNEL_BIAS_BACKWARD] = {call_with_bias, call_without_bias, SIZES(wide_sizes)},
    [KERNEL_EMBED_FORWARD] = {call_embed_forward, SIZES(narrow_sizes)},
    [KERNEL_EMBED_BACKWARD] = {call_embed_update, call_embed_step, SIZES(table_sizes)},
    [KERNEL_LOSS] = {call_loss, SIZES(loss_sizes)},
    [KERNEL_SGD] = {call_sgd, SIZES(parameter_sizes)},
    [KERNEL_ADAMW] = {call_adamw, SIZES(parameter_sizes)},
    [KERNEL_RMS_NORM_FORWARD] = {call_rms_norm_forward,
                                 .need = offsetof(struct kernels, rms_norm_forward),
                                 SIZES(norm_sizes)},
    [KERNEL_RMS_NORM_BACKWARD] = {call_rms_norm_backward,
                                  .need = offsetof(struct kernels, rms_norm_backward),
                                  SIZES(norm_sizes)},
    [KERNEL_ROPE] = {call_rope, .need = offsetof(struct kernels, rope), SIZES(narrow_sizes)},
    [KERNEL_SWIGLU_FORWARD] = {call_swiglu_forward,
                               .need = offsetof(struct kernels, swiglu_forward),
                               SIZES(wide_sizes)},
    [KERNEL_SWIGLU_BACKWARD] = {call_swiglu_backward,
                                .need = offsetof(struct kernels, swiglu_backward),
                                SIZES(wide_sizes)},
    [KERNEL_GATHER] = {call_gather,
                       .need = offsetof(struct kernels, first_forward),
                       SIZES(narrow_sizes)},
    [KERNEL_MOMENTUM] = {call_momentum, SIZES(parameter_sizes)},
    [KERNEL_SQUARES] = {call_squares, .need = offsetof(struct kernels, squares),
                        SIZES(parameter_sizes)},
    [KERNEL_ADAMW_BF16] = {call_adamw_bf16, SIZES(parameter_sizes)},
    [KERNEL_MOMENTUM_BF16] = {call_momentum_bf16, SIZES(parameter_sizes)},
    [KERNEL_ROUND] = {call_round, SIZES(parameter_sizes)},
    /* the host makes them in fp32, from operands that it widens */
    [KERNEL_MATMUL_BF16_FORWARD] = {call_matmul_bf16_forward,
                                    .gpu_only = true,
                                    .grid = {{ROWS, WIDTHS, WIDTHS},
                                             {COARSE_ROWS, COARSE_WIDTHS, COARSE_WIDTHS},
                                             {GPU_ROWS, GPU_WIDTHS, GPU_WIDTHS}}},
    [KERNEL_MATMUL_BF16_INPUT] = {call_matmul_bf16_input,
                                  .gpu_only = true,
                                  .grid = {{ROWS, WIDTHS, WIDTHS},
                                           {COARSE_ROWS, COARSE_WIDTHS, COARSE_WIDTHS},
                                           {GPU_ROWS, GPU_WIDTHS, GPU_WIDTHS}}},
    [KERNEL_MATMUL_BF16_WEIGHT] = {call_matmul_bf16_weight,
                                   .gpu_only = true,
                                   .grid = {{WIDTHS, WIDTHS, ROWS},
                                            {COARSE_WIDTHS, COARSE_WIDTHS, COARSE_ROWS},
                                            {GPU_WIDTHS, GPU_WIDTHS, GPU_ROWS}}},
};

/* --- sampling --------------------------------------------------------------------------------------- */

struct probe {
    const struct bench *bench;
    const struct kernel_class *class;
    struct work_item item;
    double call_s;  /* estimate; 0: none yet */
    uint64_t turn;
    struct samples clean, disturbed;
};

/* How often the kernel has taken a processor away from a thread of this process. */
static long count_preemptions(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nivcsw : 0;
}

/* Seconds of one call, from a batch of them. */
static double time_calls(struct probe *probe, const struct kernels *kernels, call_function function)
{
    struct call call = {.bench = probe->bench,
                        .kernels = kernels,
                        .m = (int64_t)probe->item.m,
                        .n = (int64_t)probe->item.n,
                        .k = (int64_t)probe->item.k};
    const double least_s = kernels->finish ? GPU_SAMPLE_MIN_S : SAMPLE_MIN_S;
    const double wanted = probe->call_s > 0 ? least_s / probe->call_s : 1;
    const uint64_t count = wanted > 1 ? (uint64_t)ceil(fmin(wanted, 10000)) : 1;
    if (probe->call_s < WARM_UP_MAX_S) {
        call.turn = probe->turn++;
        function(&call);
        kernels_finish(kernels);
    }
    const double start_s = clock_s();
    for (uint64_t i = 0; i < count; i++) {
        call.turn = probe->turn++;
        function(&call);
    }
    kernels_finish(kernels);
    return (clock_s() - start_s) / (double)count;
}

static void take_sample(const struct kernels *kernels, void *argument)
{
    struct probe *const probe = argument;
    const long preemptions = count_preemptions();
    const double with_s = time_calls(probe, kernels, probe->class->call);
    double seconds = with_s;
    if (probe->class->less) {
        /* A difference of two measurements may be noise; a twentieth is as good as nothing. */
        seconds -= time_calls(probe, kernels, probe->class->less);
        seconds = fmax(seconds, with_s / 20);
    }
    const bool first = probe->call_s == 0;
    probe->call_s = with_s;
    /* The first batch was too short to count, unless one call is enough. */
    if (first && with_s < (kernels->finish ? GPU_SAMPLE_MIN_S : SAMPLE_MIN_S)) return;
    samples_add(count_preemptions() == preemptions ? &probe->clean : &probe->disturbed, seconds);
}

/* All sizes of a class, in the order that files have them. Returns how many. */
static uint32_t list_sizes(const struct kernel_class *class, enum bench_size size,
                           struct work_item items[RATE_POINTS_MAX])
{
    uint32_t count = 0;
    if (class->sizes) {
        const bool gpu = size == BENCH_GPU;
        const uint64_t (*const sizes)[3] = gpu ? class->gpu_sizes : class->sizes;
        const uint32_t all = gpu ? class->gpu_size_count : class->size_count;
        for (uint32_t i = 0; i < (size == BENCH_SMALL ? COARSE_SIZES : all); i++)
            items[count++] =
                (struct work_item){.m = sizes[i][0], .n = sizes[i][1], .k = sizes[i][2]};
        return count;
    }
    const struct axis *const axes = class->grid[size];
    for (uint32_t m = 0; m < axes[0].count; m++)
        for (uint32_t n = 0; n < axes[1].count; n++)
            for (uint32_t k = 0; k < axes[2].count; k++)
                items[count++] = (struct work_item){
                    .m = axes[0].sizes[m], .n = axes[1].sizes[n], .k = axes[2].sizes[k]};
    return count;
}

/* Is there anything to measure, and does the device have the kernel? */
static bool is_measured(const struct bench *bench, const struct kernel_class *class)
{
    void (*function)(void) = NULL;
    if (class->gpu_only && bench->backend->arena_on_host) return false;
    if (!class->call || class->need == 0) return class->call != NULL;
    memcpy(&function, (const char *)device_kernels(bench->device) + class->need, sizeof function);
    return function != NULL;
}

static enum status make_probes(const struct bench *bench, struct probe **out, uint32_t *count,
                               struct error *err)
{
    struct work_item items[RATE_POINTS_MAX];
    uint32_t total = 0;
    for (uint32_t kernel = 0; kernel < KERNEL_COUNT; kernel++)
        if (is_measured(bench, &classes[kernel]))
            total += list_sizes(&classes[kernel], bench->size, items);
    struct probe *const probes = alloc_zeroed(total, sizeof *probes);
    if (!probes) return error_memory(err, "the measurement", total * sizeof *probes);
    uint32_t made = 0;
    for (uint32_t kernel = 0; kernel < KERNEL_COUNT; kernel++) {
        if (!is_measured(bench, &classes[kernel])) continue;
        const uint32_t sizes = list_sizes(&classes[kernel], bench->size, items);
        for (uint32_t i = 0; i < sizes; i++) {
            struct probe *const probe = &probes[made++];
            probe->bench = bench;
            probe->class = &classes[kernel];
            probe->item = items[i];
            probe->item.kernel = kernel;
            probe->item.count = 1;
        }
    }
    *out = probes;
    *count = total;
    return STATUS_OK;
}

/* Points in the arena of the hardware, by class. */
static enum status keep_points(struct measure *measure, const struct probe *probes, uint32_t count,
                               struct compute_profile *profile, struct error *err)
{
    for (uint32_t first = 0; first < count;) {
        const uint32_t kernel = probes[first].item.kernel;
        uint32_t end = first;
        while (end < count && probes[end].item.kernel == kernel) end++;
        void *memory;
        const enum status status = arena_array(&measure->hardware->arena, end - first,
                                               sizeof(struct rate_point), &memory, err);
        if (status != STATUS_OK) return status;
        struct rate_point *const points = memory;
        for (uint32_t i = first; i < end; i++) {
            const struct probe *const probe = &probes[i];
            const struct samples *const samples =
                probe->clean.count > 0 ? &probe->clean : &probe->disturbed;
            points[i - first] = (struct rate_point){
                .m = probe->item.m,
                .n = probe->item.n,
                .k = probe->item.k,
                .seconds = samples_median(samples),
                .spread = samples_spread(samples),
            };
        }
        profile->kernels[kernel] = (struct kernel_rate){points, end - first};
        first = end;
    }
    return STATUS_OK;
}

enum status measure_kernels(struct measure *measure, struct bench *bench, double budget_s,
                            struct compute_profile *profile, struct error *err)
{
    struct probe *probes = NULL;
    uint32_t count = 0;
    enum status status = make_probes(bench, &probes, &count, err);
    if (status != STATUS_OK) return status;
    struct device_stream *const stream = device_stream(bench->device, STREAM_COMPUTE);
    const double start_s = clock_s();
    double told_s = 0;
    /* One round to learn how long calls take, then rounds that count. A machine so slow or so busy
     * that three of them need half as much again as the budget has to do with fewer. */
    for (uint32_t round = 0; round <= SAMPLES_MAX; round++) {
        const double spent_s = clock_s() - start_s;
        if (round > ROUNDS_MIN && spent_s > budget_s) break;
        if (round > 1 && spent_s > 1.5 * budget_s) break;
        for (uint32_t i = 0; i < count; i++)
            device_compute(stream, take_sample, &probes[i], 0, NULL);
        while (!device_synchronize(stream, device_record(stream), 0.1)) {
            const double now_s = fmin(clock_s() - start_s, budget_s);
            char what[64];
            if (profile->threads == 0)
                snprintf(what, sizeof what, "kernels of the GPU");
            else
                snprintf(what, sizeof what, "kernels, %u thread%s", profile->threads,
                         profile->threads == 1 ? "" : "s");
            measure_progress(measure, now_s - told_s, what);
            told_s = now_s;
            if (measure_stopped(measure)) {
                device_stop(bench->device); /* what is queued points to the probes */
                free(probes);
                return error_set(err, STATUS_INTERRUPTED, "the measurement was stopped");
            }
        }
    }
    measure_progress(measure, budget_s - told_s, "kernels");
    status = device_failed(bench->device, err);
    if (status == STATUS_OK) status = keep_points(measure, probes, count, profile, err);
    free(probes);
    return status;
}

/* --- a load like training ---------------------------------------------------------------------------- */

/* Forward, backward and update of a block 256 wide on 4 samples of 64 tokens. */
static void list_step(struct bench *bench)
{
    const struct network network = {.family = NETWORK_GPT2,
                                    .layer_count = 3,
                                    .width = 256,
                                    .heads = 4,
                                    .head_width = 64,
                                    .ff_width = 1024,
                                    .blocks = 1,
                                    .vocabulary = FEW_WORDS,
                                    .positions = 64,
                                    .tied_head = true,
                                    .causal = true,
                                    .biases = true,
                                    .gelu_tanh = true};
    for (uint32_t pass = PASS_FORWARD; pass <= PASS_UPDATE; pass++) {
        struct work_item items[LAYER_WORK_MAX];
        const uint32_t count = network_layer_work(&network, 1, (enum pass)pass, 4, 64,
                                                  (struct state_format){.optimizer = OPTIMIZER_ADAMW},
                                                  items);
        for (uint32_t i = 0; i < count && bench->step_count < ARRAY_COUNT(bench->step); i++)
            bench->step[bench->step_count++] = items[i];
    }
}

void bench_compute_step(const struct kernels *kernels, void *bench_step)
{
    const struct bench_step *const step = bench_step;
    struct bench *const bench = step->bench;
    if (bench->step_count == 0) list_step(bench);
    for (uint32_t i = 0; i < bench->step_count; i++) {
        const struct work_item *const item = &bench->step[i];
        const struct kernel_class *const class = &classes[item->kernel];
        if (class->less) continue; /* no kernel of its own */
        for (uint32_t again = 0; again < item->count; again++)
            class->call(&(struct call){.bench = bench,
                                       .kernels = kernels,
                                       .m = (int64_t)item->m,
                                       .n = (int64_t)item->n,
                                       .k = (int64_t)item->k,
                                       .turn = step->turn * 4 + again});
    }
}

/* --- the peak ------------------------------------------------------------------------------------------ */

enum { PEAK_LANES = 128, PEAK_ROUNDS = 20000, PEAK_REPEATS = 9 };

/* Multiply and add in registers: 2 * PEAK_LANES FLOPs a round. */
CLONES static float multiply_and_add(float factor)
{
    float lanes[PEAK_LANES];
    for (int l = 0; l < PEAK_LANES; l++) lanes[l] = (float)l;
    for (int round = 0; round < PEAK_ROUNDS; round++)
        for (int l = 0; l < PEAK_LANES; l++) lanes[l] = lanes[l] * factor + 1.0f;
    float sum = 0;
    for (int l = 0; l < PEAK_LANES; l++) sum += lanes[l];
    return sum;
}

static void compute_peak(const struct kernels *kernels, void *argument)
{
    double best_s = INFINITY;
    for (int i = 0; i < PEAK_REPEATS; i++) {
        volatile float factor = 0.5f, sink = 0;
        const double start_s = clock_s();
#pragma omp parallel num_threads((int)kernels->threads)
        {
            const float sum = multiply_and_add(factor);
#pragma omp critical
            sink += sum;
        }
        (void)sink;
        best_s = fmin(best_s, clock_s() - start_s);
    }
    *(double *)argument = 2.0 * PEAK_LANES * PEAK_ROUNDS * kernels->threads / best_s;
}

double measure_peak(struct bench *bench)
{
    assert(bench->backend->arena_on_host); /* the loop is the host's own */
    struct device_stream *const stream = device_stream(bench->device, STREAM_COMPUTE);
    double rate = 0;
    device_compute(stream, compute_peak, &rate, 0, NULL);
    while (!device_synchronize(stream, device_record(stream), 1))
        ;
    return rate;
}
