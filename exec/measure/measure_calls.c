/*
 * Hot operands are in one place. A kept operand, a weight or a state moves on at every call and returns after a number
 * of calls that its region's share determines (48 for weights, as in a small model): small operands then come from a
 * cache, and large ones from DRAM. Gradients of weights return after four calls.
 *
 * Some classes are differences: the column sums for biases between a weight's product with and without them, the
 * scattering of an embedding's gradient between its fused step and an optimizer's step. The optimizer is timed on a
 * transformer block's tensors, four matrices and eight vectors.
 */
#define KERNELS_NUMBER float
#include "exec/measure/measure_calls.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>

#include "base/size.h"
#include "models/job/memory.h"

/* --- operands ------------------------------------------------------------------------------------ */

/* Operands of one size before the first is used again. */
enum { KEPT_SHARE = 16, GRADIENT_SHARE = 4, WEIGHT_SHARE = 48 };

static float *place(const struct measure_call *c, enum measure_region region, uint64_t share, int64_t elements)
{
    const uint64_t step = size_align((uint64_t)elements, MEMORY_ALIGNMENT / sizeof(float));
    const uint64_t room = c->bench->floats[region] / step;
    assert(room > 0);
    return c->bench->regions[region] + c->operands % (room < share ? room : share) * step;
}

static float *hot(const struct measure_call *c, uint32_t slot, int64_t elements)
{
    const uint64_t room = c->bench->floats[MEASURE_HOT] / MEASURE_HOT_SLOTS;
    assert((uint64_t)elements <= room && slot < MEASURE_HOT_SLOTS);
    return c->bench->regions[MEASURE_HOT] + slot * room;
}

static float *kept(const struct measure_call *c, int64_t elements)
{
    return place(c, MEASURE_KEPT, KEPT_SHARE, elements);
}

/* Returns a second tensor of the same layer. */
static float *kept_too(const struct measure_call *c, int64_t elements)
{
    return place(&(struct measure_call){.bench = c->bench, .operands = c->operands + KEPT_SHARE / 2}, MEASURE_KEPT,
                 KEPT_SHARE, elements);
}

static float *gradient(const struct measure_call *c, int64_t elements)
{
    return place(c, MEASURE_KEPT, GRADIENT_SHARE, elements);
}

static float *weight(const struct measure_call *c, int64_t elements)
{
    return place(c, MEASURE_WEIGHTS, WEIGHT_SHARE, elements);
}

static float *state(const struct measure_call *c, int64_t elements)
{
    return place(c, MEASURE_STATE, WEIGHT_SHARE, elements);
}

/* --- calls, by class --------------------------------------------------------------------------- */

static void call_matmul_forward(const struct measure_call *c)
{
    c->kernels->linear_forward(c->kernels, kept(c, c->m * c->n), hot(c, 0, c->m * c->k),
                               weight(c, c->n * c->k), c->bench->regions[MEASURE_WEIGHTS], c->m, c->n, c->k,
                               true);
}

static void call_matmul_input(const struct measure_call *c)
{
    c->kernels->linear_input(c->kernels, hot(c, 1, c->m * c->n), hot(c, 0, c->m * c->k),
                             weight(c, c->n * c->k), c->m, c->k, c->n, true, false);
}

static void call_matmul_weight(const struct measure_call *c)
{
    c->kernels->linear_weight(c->kernels, gradient(c, c->m * c->n), NULL, hot(c, 0, c->k * c->m),
                              kept(c, c->k * c->n), c->k, c->m, c->n, true, 0);
}

enum { BIAS_INPUTS = 16 };

static void call_without_bias(const struct measure_call *c)
{
    c->kernels->linear_weight(c->kernels, hot(c, 1, c->n * BIAS_INPUTS), NULL,
                              hot(c, 0, c->m * c->n), hot(c, 2, c->m * BIAS_INPUTS), c->m, c->n,
                              BIAS_INPUTS, true, 0);
}

static void call_with_bias(const struct measure_call *c)
{
    c->kernels->linear_weight(c->kernels, hot(c, 1, c->n * BIAS_INPUTS), hot(c, 3, c->n),
                              hot(c, 0, c->m * c->n), hot(c, 2, c->m * BIAS_INPUTS), c->m, c->n,
                              BIAS_INPUTS, true, 0);
}

/* Returns B samples of H for m heads in all. */
static int64_t heads_of(const struct measure_call *c)
{
    return c->m % 4 == 0 ? 4 : c->m;
}

/* Sets columns of one array for causal attention, as GPT-2 has them; else separate arrays. */
static struct kernel_attention attention_of(const struct measure_call *c, float *q, bool causal)
{
    const int64_t h = heads_of(c), width = h * c->k, elements = c->m * c->n * c->k;
    const int64_t apart = causal ? width : elements;
    return (struct kernel_attention){.q = q,
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

static void attend_forward(const struct measure_call *c, bool causal)
{
    const int64_t elements = c->m * c->n * c->k;
    struct kernel_attention attention = attention_of(c, hot(c, 0, 3 * elements), causal);
    attention.out = kept(c, elements);
    attention.stats = kept_too(c, c->m * c->n);
    c->kernels->attention_forward(c->kernels, &attention);
}

static void attend_backward(const struct measure_call *c, bool causal)
{
    const int64_t elements = c->m * c->n * c->k;
    struct kernel_attention attention = attention_of(c, kept(c, 3 * elements), causal);
    attention.out = kept_too(c, elements);
    attention.stats = hot(c, 2, c->m * c->n);
    attention.dout = hot(c, 0, elements);
    attention.dq = hot(c, 1, 3 * elements);
    attention.dk = attention.dq + (attention.k - attention.q);
    attention.dv = attention.dq + (attention.v - attention.q);
    c->kernels->attention_backward(c->kernels, &attention);
}

static void call_attention_forward(const struct measure_call *c)
{
    attend_forward(c, true);
}

static void call_attention_backward(const struct measure_call *c)
{
    attend_backward(c, true);
}

static void call_attention_full_forward(const struct measure_call *c)
{
    attend_forward(c, false);
}

static void call_attention_full_backward(const struct measure_call *c)
{
    attend_backward(c, false);
}

static void call_norm_forward(const struct measure_call *c)
{
    float *const parameters = weight(c, 2 * c->n);
    c->kernels->norm_forward(c->kernels, kept(c, c->m * c->n), kept_too(c, c->m * c->n),
                             hot(c, 2, 2 * c->m), hot(c, 1, c->m * c->n), hot(c, 0, c->m * c->n),
                             parameters, parameters + c->n, c->m, c->n, 1e-5f);
}

static void call_norm_backward(const struct measure_call *c)
{
    float *const stream = hot(c, 1, c->m * c->n), *const gradients = hot(c, 3, 2 * c->n);
    c->kernels->norm_backward(c->kernels, stream, gradients, gradients + c->n,
                              hot(c, 0, c->m * c->n), kept(c, c->m * c->n), hot(c, 2, 2 * c->m),
                              weight(c, c->n), stream, c->m, c->n);
}

static void call_rms_norm_forward(const struct measure_call *c)
{
    c->kernels->rms_norm_forward(c->kernels, kept(c, c->m * c->n), kept_too(c, c->m * c->n),
                                 hot(c, 2, c->m), hot(c, 1, c->m * c->n), hot(c, 0, c->m * c->n),
                                 weight(c, c->n), c->m, c->n, 1e-5f);
}

static void call_rms_norm_backward(const struct measure_call *c)
{
    float *const stream = hot(c, 1, c->m * c->n);
    c->kernels->rms_norm_backward(c->kernels, stream, hot(c, 3, c->n), hot(c, 0, c->m * c->n),
                                  kept(c, c->m * c->n), hot(c, 2, c->m), weight(c, c->n), stream,
                                  c->m, c->n);
}

static void call_gelu_forward(const struct measure_call *c)
{
    const int64_t n = c->m * c->n;
    c->kernels->gelu_forward(c->kernels, kept(c, n), hot(c, 0, n), n, true);
}

static void call_gelu_backward(const struct measure_call *c)
{
    const int64_t n = c->m * c->n;
    c->kernels->gelu_backward(c->kernels, hot(c, 0, n), hot(c, 0, n), kept(c, n), n, true);
}

static void call_swiglu_forward(const struct measure_call *c)
{
    const int64_t n = c->m * c->n;
    c->kernels->swiglu_forward(c->kernels, kept(c, n), hot(c, 0, n), hot(c, 1, n), n);
}

static void call_swiglu_backward(const struct measure_call *c)
{
    const int64_t n = c->m * c->n;
    c->kernels->swiglu_backward(c->kernels, hot(c, 0, n), hot(c, 1, n), hot(c, 0, n), kept(c, n),
                                kept_too(c, n), n);
}

static void call_residual(const struct measure_call *c)
{
    const int64_t n = c->m * c->n;
    c->kernels->residual(c->kernels, hot(c, 0, n), kept(c, n), hot(c, 0, n), n);
}

/* Samples have at most 64 tokens. */
struct batch {
    int64_t b, t;
};

static struct batch batch_of(int64_t rows)
{
    const int64_t t = rows < 64 ? rows : 64;
    assert(rows % t == 0 && rows / t * (t + 1) <= MEASURE_TOKENS);
    return (struct batch){rows / t, t};
}

static void call_embed_forward(const struct measure_call *c)
{
    const struct batch s = batch_of(c->m);
    const int64_t rows = MEASURE_MANY_WORDS + s.t;
    c->kernels->embed_forward(c->kernels, hot(c, 0, c->m * c->n), weight(c, rows * c->n),
                              c->bench->many, s.t + 1, s.b, s.t, c->n, MEASURE_MANY_WORDS, 0, rows);
}

/* Uses equal numbers of heads of keys and queries, 32 wide. */
static void call_rope(const struct measure_call *c)
{
    static const struct network_rope rope = {.kind = ROPE_DEFAULT, .theta = 10000};
    const struct batch s = batch_of(c->m);
    const int64_t d = 32, heads = c->n / 2 / d;
    const struct kernel_rope arguments = {.q = hot(c, 0, c->m * heads * d), .k = hot(c, 1, c->m * heads * d), .b = s.b,
                                          .t = s.t,
                                          .h = heads, .kv = heads, .d = d, .row_q = heads * d, .row_k = heads * d,
                                          .turned = d, .rope = &rope};
    c->kernels->rope(c->kernels, &arguments);
}

/* Every second row. */
static void call_gather(const struct measure_call *c)
{
    const int64_t n = c->m * c->n;
    c->kernels->first_forward(c->kernels, hot(c, 0, n), kept(c, 2 * n), c->m, 2, c->n);
}

static const struct job_optimizer adamw = {.kind = OPTIMIZER_ADAMW,
                                           .learning_rate = 1e-6,
                                           .weight_decay = 0.01,
                                           .beta1 = 0.9,
                                           .beta2 = 0.95,
                                           .epsilon = 1e-8};
static const struct job_optimizer sgd = {.kind = OPTIMIZER_SGD, .learning_rate = 1e-6};
static const struct job_optimizer momentum = {
    .kind = OPTIMIZER_MOMENTUM, .learning_rate = 1e-6, .momentum = 0.9};

static const struct job_optimizer adamw_bf16 = {.kind = OPTIMIZER_ADAMW,
                                                .learning_rate = 1e-6,
                                                .weight_decay = 0.01,
                                                .beta1 = 0.9,
                                                .beta2 = 0.95,
                                                .epsilon = 1e-8,
                                                .moments = PRECISION_BF16};
static const struct job_optimizer momentum_bf16 = {.kind = OPTIMIZER_MOMENTUM,
                                                   .learning_rate = 1e-6,
                                                   .momentum = 0.9,
                                                   .moments = PRECISION_BF16};

/* Returns parameters with AdamW's moments. */
static struct kernel_parameters in_a_row(float *p, int64_t n)
{
    return (struct kernel_parameters){.p = p, .m = p + n, .v = p + 2 * n};
}

static void call_embed_update(const struct measure_call *c)
{
    const struct batch s = batch_of(c->m);
    const int64_t words = c->k - s.t;
    const struct kernel_parameters rows = in_a_row(state(c, 3 * c->k * c->n), c->k * c->n);
    c->kernels->embed_update(c->kernels, &rows, hot(c, 1, words * c->n), hot(c, 0, c->m * c->n),
                             words < MEASURE_MANY_WORDS ? c->bench->few : c->bench->many, s.t + 1, s.b,
                             s.t, c->n, words, 0, c->k, &adamw, 1, 1, hot(c, 3, 4 * c->m));
}

static void call_embed_step(const struct measure_call *c)
{
    const int64_t n = c->k * c->n;
    const struct kernel_parameters parameters = in_a_row(state(c, 3 * n), n);
    c->kernels->update(c->kernels, &parameters, hot(c, 1, n), n, &adamw, true, 1);
}

/* Sums gradients that just came from a device. */
static void call_squares(const struct measure_call *c)
{
    c->kernels->squares(c->kernels, c->bench->loss, hot(c, 0, c->m), c->m, false);
}

static void call_loss(const struct measure_call *c)
{
    const struct batch s = batch_of(c->m);
    c->kernels->loss(c->kernels, c->bench->loss, hot(c, 0, c->m * c->n), c->bench->few, s.t + 1,
                     s.b, s.t, c->n, (struct kernel_loss_rows){.count = c->m, .parts = 1});
}

/* Steps the tensors of a block with m parameters: 12 C^2 in four matrices, and vectors. `apart`: parameters and
 * gradients come from memory, and a pass over the gradient asks first whether it is finite; else they are hot. */
static void update_tensors(const struct measure_call *c, const struct job_optimizer *optimizer, bool apart)
{
    static const int64_t twelfths[] = {3, 1, 4, 4}, vector_widths[] = {1, 1, 3, 1, 1, 1, 4, 1};
    const int64_t width = (int64_t)sqrt((double)c->m / 12), matrices = c->m - 13 * width;
    const uint32_t moments = optimizer_moments(optimizer->kind);
    const uint64_t bytes = precision_bytes(optimizer->moments);
    const bool rounded = optimizer->moments == PRECISION_BF16;
    /* a bf16 moment takes half of its room */
    float *const cold = moments > 0 || apart ? state(c, (moments + (apart ? 2 : 0)) * c->m) : NULL;
    char *const first = moments > 0 ? (char *)(cold + (apart ? 2 * c->m : 0)) : NULL;
    int64_t at = 0;
    struct kernel_parameters all = {.m = first,
                                    .v = moments > 1 ? first + (uint64_t)c->m * bytes : NULL};
    for (size_t i = 0; i < ARRAY_COUNT(twelfths) + ARRAY_COUNT(vector_widths); i++) {
        const bool matrix = i < ARRAY_COUNT(twelfths);
        const int64_t n = matrix ? matrices * twelfths[i] / 12
                                 : vector_widths[i - ARRAY_COUNT(twelfths)] * width;
        const float *const gradients = apart ? cold + c->m + at : hot(c, 0, n);
        all.p = apart ? cold + at : hot(c, 1, n);
        if (apart && c->kernels->threads > 0) c->kernels->squares(c->kernels, c->bench->loss, gradients, n, false);
        c->kernels->update(c->kernels, &all, gradients, n, optimizer, matrix, 1);
        all = kernel_parameters_from(all, n, rounded);
        at += n;
    }
}

static void update_block(const struct measure_call *c, const struct job_optimizer *optimizer)
{
    update_tensors(c, optimizer, false);
}

static void update_block_apart(const struct measure_call *c, const struct job_optimizer *optimizer)
{
    update_tensors(c, optimizer, true);
}

static void call_sgd(const struct measure_call *c)
{
    update_block(c, &sgd);
}

static void call_adamw(const struct measure_call *c)
{
    update_block(c, &adamw);
}

static void call_momentum(const struct measure_call *c)
{
    update_block(c, &momentum);
}

static void call_adamw_bf16(const struct measure_call *c)
{
    update_block(c, &adamw_bf16);
}

static void call_momentum_bf16(const struct measure_call *c)
{
    update_block(c, &momentum_bf16);
}

static void call_sgd_apart(const struct measure_call *c)
{
    update_block_apart(c, &sgd);
}

static void call_adamw_apart(const struct measure_call *c)
{
    update_block_apart(c, &adamw);
}

static void call_momentum_apart(const struct measure_call *c)
{
    update_block_apart(c, &momentum);
}

static void call_adamw_bf16_apart(const struct measure_call *c)
{
    update_block_apart(c, &adamw_bf16);
}

static void call_momentum_bf16_apart(const struct measure_call *c)
{
    update_block_apart(c, &momentum_bf16);
}

static bf16 *halves(float *array)
{
    return (bf16 *)(void *)array;
}

static void call_round(const struct measure_call *c)
{
    c->kernels->round(c->kernels, halves(hot(c, 1, c->m)), hot(c, 0, c->m), c->m);
}

static void call_matmul_bf16_forward(const struct measure_call *c)
{
    c->kernels->linear_forward_bf16(c->kernels, hot(c, 0, c->m * c->n), halves(hot(c, 1, c->m * c->k)),
                                    halves(weight(c, c->k * c->n)), hot(c, 2, c->n), c->m, c->n, c->k,
                                    false);
}

static void call_matmul_bf16_input(const struct measure_call *c)
{
    c->kernels->linear_input_bf16(c->kernels, hot(c, 0, c->m * c->n), halves(hot(c, 1, c->m * c->k)),
                                  halves(weight(c, c->k * c->n)), c->m, c->k, c->n, false, false);
}

static void call_matmul_bf16_weight(const struct measure_call *c)
{
    c->kernels->linear_weight_bf16(c->kernels, gradient(c, c->m * c->n), NULL, NULL,
                                   halves(hot(c, 1, c->k * c->m)), halves(kept(c, c->k * c->n)), c->k,
                                   c->m, c->n, false, false);
}

/* --- images ------------------------------------------------------------------------------------- */

/* A convolution with `pixels` of the result, each of which reads `columns` numbers. 3 x 3 taps with a stride of 1 are
 * on images of 32 x 32, 8 x 8 or 2 x 2 pixels, of which the last have 16 of 36 taps in the image; others have a stride
 * of 2, with 7 x 7 taps on 3 channels or 3 x 3 taps. */
static struct kernel_convolution convolution_of(int64_t pixels, int64_t columns, int64_t out, bool halves)
{
    enum { STEM = 7 * 7 * 3, SMALL = 512, LARGE = 2048 };
    const int64_t side = halves ? 8 : pixels < SMALL ? 2 : pixels < LARGE ? 8 : 32;
    const int64_t kernel = halves && columns == STEM ? 7 : 3;
    struct kernel_convolution shape = {.in = columns / (kernel * kernel), .out = out, .kernel = kernel,
                                       .side_in = halves ? 2 * side : side, .side_out = side, .stride = halves ? 2 : 1,
                                       .padding = kernel / 2, .groups = 1};
    shape.b = side == 2 ? pixels * 9 / 16 : pixels / (side * side);
    return shape;
}

static int64_t image_numbers(const struct kernel_convolution *s)
{
    return s->b * s->side_in * s->side_in * s->in;
}

static int64_t result_numbers(const struct kernel_convolution *s)
{
    return s->b * s->side_out * s->side_out * s->out;
}

static int64_t weight_numbers(const struct kernel_convolution *s)
{
    return s->out * s->in * s->kernel * s->kernel;
}

static void convolve(const struct measure_call *c, bool halves)
{
    const struct kernel_convolution s = convolution_of(c->m, c->k, c->n, halves);
    c->kernels->images->convolve(c->kernels, kept(c, result_numbers(&s)), hot(c, 0, image_numbers(&s)),
                                 weight(c, weight_numbers(&s)), NULL, &s);
}

static void convolve_input(const struct measure_call *c, bool halves)
{
    const struct kernel_convolution s = convolution_of(c->m, c->n, c->k, halves);
    c->kernels->images->convolve_input(c->kernels, hot(c, 1, image_numbers(&s)), hot(c, 0, result_numbers(&s)),
                                       weight(c, weight_numbers(&s)), &s);
}

static void convolve_weight(const struct measure_call *c, bool halves)
{
    const struct kernel_convolution s = convolution_of(c->k, c->n, c->m, halves);
    c->kernels->images->convolve_weight(c->kernels, gradient(c, weight_numbers(&s)), hot(c, 0, result_numbers(&s)),
                                        kept(c, image_numbers(&s)), &s);
}

static void call_convolution_forward(const struct measure_call *c)
{
    convolve(c, true);
}

static void call_convolution_input(const struct measure_call *c)
{
    convolve_input(c, true);
}

static void call_convolution_weight(const struct measure_call *c)
{
    convolve_weight(c, true);
}

static void call_convolution_3x3_forward(const struct measure_call *c)
{
    convolve(c, false);
}

static void call_convolution_3x3_input(const struct measure_call *c)
{
    convolve_input(c, false);
}

static void call_convolution_3x3_weight(const struct measure_call *c)
{
    convolve_weight(c, false);
}

static void call_batch_norm_forward(const struct measure_call *c)
{
    float *const parameters = weight(c, 2 * c->n);
    c->kernels->images->batch_norm(c->kernels, kept_too(c, c->m * c->n), hot(c, 2, 2 * c->n), kept(c, c->m * c->n),
                                   parameters, parameters + c->n, c->m, c->n, 1e-5f);
}

/* As after a convolution: the gradient is replaced. */
static void call_batch_norm_backward(const struct measure_call *c)
{
    float *const gradients = hot(c, 3, 2 * c->n), *const d = hot(c, 0, c->m * c->n);
    c->kernels->images->batch_norm_backward(c->kernels, d, gradients, gradients + c->n, d, kept(c, c->m * c->n),
                                            hot(c, 2, 2 * c->n), weight(c, c->n), c->m, c->n, false);
}

static void call_relu_forward(const struct measure_call *c)
{
    float *const x = kept(c, c->m * c->n);
    c->kernels->relu_forward(c->kernels, x, x, c->m * c->n);
}

static void call_relu_backward(const struct measure_call *c)
{
    float *const d = hot(c, 0, c->m * c->n);
    c->kernels->relu_backward(c->kernels, d, d, kept(c, c->m * c->n), c->m * c->n);
}

/* The largest of 2 x 2 pixels: of m pixels, images of 16 x 16 are two thirds; results and indexes a sixth each. */
static void call_pool(const struct measure_call *c)
{
    enum { SIDE = 16 };
    const struct kernel_pool pool = {.b = c->m * 2 / 3 / (SIDE * SIDE), .c = c->n, .side_in = SIDE,
                                     .side_out = SIDE / 2, .kernel = 2, .stride = 2};
    const int64_t results = pool.b * pool.side_out * pool.side_out * pool.c;
    c->kernels->images->max_pool(c->kernels, hot(c, 0, results), (int32_t *)(void *)kept_too(c, results),
                                 kept(c, pool.b * SIDE * SIDE * pool.c), &pool);
}

/* --- all of them -------------------------------------------------------------------------------- */

#define IMAGES offsetof(struct kernels, images)

/* Classes of 16 bits throughout are only used by parallel jobs, which are not carried out. */
const struct measure_kernel_class measure_kernel_classes[KERNEL_COUNT] = {
    [KERNEL_MATMUL_FORWARD] = {call_matmul_forward},
    [KERNEL_MATMUL_INPUT] = {call_matmul_input},
    [KERNEL_MATMUL_WEIGHT] = {call_matmul_weight},
    [KERNEL_ATTENTION_FULL_FORWARD] = {call_attention_full_forward},
    [KERNEL_ATTENTION_FULL_BACKWARD] = {call_attention_full_backward},
    [KERNEL_ATTENTION_FORWARD] = {call_attention_forward},
    [KERNEL_ATTENTION_BACKWARD] = {call_attention_backward},
    [KERNEL_NORM_FORWARD] = {call_norm_forward},
    [KERNEL_NORM_BACKWARD] = {call_norm_backward},
    [KERNEL_GELU_FORWARD] = {call_gelu_forward},
    [KERNEL_GELU_BACKWARD] = {call_gelu_backward},
    [KERNEL_RESIDUAL] = {call_residual},
    [KERNEL_BIAS_BACKWARD] = {call_with_bias, call_without_bias},
    [KERNEL_EMBED_FORWARD] = {call_embed_forward},
    [KERNEL_EMBED_BACKWARD] = {call_embed_update, call_embed_step},
    [KERNEL_LOSS] = {call_loss},
    [KERNEL_SGD] = {call_sgd},
    [KERNEL_ADAMW] = {call_adamw},
    [KERNEL_RMS_NORM_FORWARD] = {call_rms_norm_forward,
                                 .need = offsetof(struct kernels, rms_norm_forward)},
    [KERNEL_RMS_NORM_BACKWARD] = {call_rms_norm_backward,
                                  .need = offsetof(struct kernels, rms_norm_backward)},
    [KERNEL_ROPE] = {call_rope, .need = offsetof(struct kernels, rope)},
    [KERNEL_SWIGLU_FORWARD] = {call_swiglu_forward,
                               .need = offsetof(struct kernels, swiglu_forward)},
    [KERNEL_SWIGLU_BACKWARD] = {call_swiglu_backward,
                                .need = offsetof(struct kernels, swiglu_backward)},
    [KERNEL_GATHER] = {call_gather, .need = offsetof(struct kernels, first_forward)},
    [KERNEL_MOMENTUM] = {call_momentum},
    [KERNEL_SQUARES] = {call_squares, .need = offsetof(struct kernels, squares)},
    [KERNEL_ADAMW_BF16] = {call_adamw_bf16},
    [KERNEL_MOMENTUM_BF16] = {call_momentum_bf16},
    [KERNEL_SGD_APART] = {call_sgd_apart},
    [KERNEL_ADAMW_APART] = {call_adamw_apart},
    [KERNEL_MOMENTUM_APART] = {call_momentum_apart},
    [KERNEL_ADAMW_BF16_APART] = {call_adamw_bf16_apart},
    [KERNEL_MOMENTUM_BF16_APART] = {call_momentum_bf16_apart},
    [KERNEL_ROUND] = {call_round},
    [KERNEL_CONVOLUTION_FORWARD] = {call_convolution_forward, .need = IMAGES},
    [KERNEL_CONVOLUTION_INPUT] = {call_convolution_input, .need = IMAGES},
    [KERNEL_CONVOLUTION_WEIGHT] = {call_convolution_weight, .need = IMAGES},
    [KERNEL_CONVOLUTION_3X3_FORWARD] = {call_convolution_3x3_forward, .need = IMAGES},
    [KERNEL_CONVOLUTION_3X3_INPUT] = {call_convolution_3x3_input, .need = IMAGES},
    [KERNEL_CONVOLUTION_3X3_WEIGHT] = {call_convolution_3x3_weight, .need = IMAGES},
    [KERNEL_BATCH_NORM_FORWARD] = {call_batch_norm_forward, .need = IMAGES},
    [KERNEL_BATCH_NORM_BACKWARD] = {call_batch_norm_backward, .need = IMAGES},
    [KERNEL_RELU_FORWARD] = {call_relu_forward, .need = IMAGES},
    [KERNEL_RELU_BACKWARD] = {call_relu_backward, .need = IMAGES},
    [KERNEL_POOL] = {call_pool, .need = IMAGES},
    /* the host widens operands to fp32 */
    [KERNEL_MATMUL_BF16_FORWARD] = {call_matmul_bf16_forward, .gpu_only = true},
    [KERNEL_MATMUL_BF16_INPUT] = {call_matmul_bf16_input, .gpu_only = true},
    [KERNEL_MATMUL_BF16_WEIGHT] = {call_matmul_bf16_weight, .gpu_only = true},
};
