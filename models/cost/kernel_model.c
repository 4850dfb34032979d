#include "models/cost/kernel_model.h"

#include <assert.h>
#include <math.h>

#include "base/size.h"

enum { ELEMENT_BYTES = 4, ALIGNED_ELEMENTS = 8 };

/* --- matrix products ------------------------------------------------------------------------ */

struct kernel_model_product {
    double m, n, k, batch;
};

/* Tile shapes of libraries. A smaller tile loads more data per multiplication; its relative rate is assumed. */
static const struct tile {
    double rows, columns, rate;
} tiles[] = {{256, 128, 1}, {128, 256, 1}, {128, 128, 0.92}, {128, 64, 0.75}, {64, 128, 0.75}, {64, 64, 0.6}};

static double product_s(const struct kernel_model *model, struct kernel_rates rates, struct kernel_model_product p)
{
    double best = INFINITY, together = model->multiprocessors.value;
    for (size_t i = 0; i < ARRAY_COUNT(tiles); i++) {
        const struct tile *t = &tiles[i];
        double waves = ceil(p.batch * ceil(p.m / t->rows) * ceil(p.n / t->columns) / together);
        double flops = waves * together * t->rows * t->columns * 2 * p.k;
        best = fmin(best, flops / (rates.flops_per_s * t->rate));
    }
    best *= 1 + model->matmul_depth.value / p.k;
    if (!(rates.sustained_flops_per_s > 0)) return best;
    return fmax(best, 2 * p.batch * p.m * p.n * p.k / rates.sustained_flops_per_s);
}

/* --- kernels -------------------------------------------------------------------------------- */

struct kernel_model_parts {
    double products_s, bytes;
    double launches;
};

static bool is_matmul(uint32_t kernel)
{
    return kernel <= KERNEL_MATMUL_WEIGHT || work_is_bf16_matmul(kernel);
}

/* Returns true for attention in 16 bits or fp32, which have the same parts; likewise the next two functions. */
static bool is_attention(uint32_t kernel)
{
    kernel = kernel_half(kernel);
    return kernel >= KERNEL_ATTENTION_HALF_FORWARD && kernel <= KERNEL_ATTENTION_FULL_HALF_BACKWARD;
}

static bool is_backward(uint32_t kernel)
{
    kernel = kernel_half(kernel);
    return kernel == KERNEL_ATTENTION_HALF_BACKWARD || kernel == KERNEL_ATTENTION_FULL_HALF_BACKWARD;
}

/* Returns true for kernels that work on activations, number by number. */
static bool is_elementwise(uint32_t kernel)
{
    kernel = kernel_half(kernel);
    return kernel >= KERNEL_NORM_HALF_FORWARD && kernel <= KERNEL_EMBED_HALF_BACKWARD;
}

/* Returns true if frameworks dispatch these separately. */
static bool is_dispatched(uint32_t kernel)
{
    return kernel_half(kernel) >= KERNEL_MATMUL_HALF_FORWARD;
}

/* Returns true if rows of weights (m x n if the product is their gradient, else n x k) are a multiple of 16 bytes in
 * 16 bits. fp32 products count the same number of elements. */
static bool is_aligned(const struct work_item *item)
{
    bool weight = item->kernel == KERNEL_MATMUL_BF16_WEIGHT || kernel_wide(item->kernel) == KERNEL_MATMUL_WEIGHT;
    return item->n % ALIGNED_ELEMENTS == 0 && (weight ? item->m : item->k) % ALIGNED_ELEMENTS == 0;
}

static struct kernel_model_parts matmul_parts(const struct kernel_model *model, struct kernel_rates rates,
                                              const struct work_item *one)
{
    struct kernel_model_product p = {(double)one->m, (double)one->n, (double)one->k, 1};
    double seconds = rates.of_all_shapes ? work_item_flops(one) / rates.flops_per_s : product_s(model, rates, p);
    bool aligns = work_is_bf16_matmul(one->kernel) || rates.matrix_cores;
    if (model->misaligned_rate.value > 0 && aligns && !is_aligned(one))
        seconds /= model->misaligned_rate.value;
    return (struct kernel_model_parts){seconds, work_item_bytes(one, ELEMENT_BYTES), 1};
}

/* Counts products of scores and of weighted values, twice that backward, and the kernels between them: scale and mask,
 * softmax, dropout, and copies of heads. */
static struct kernel_model_parts scores_parts(const struct kernel_model *model, struct kernel_rates rates,
                                              const struct work_item *one)
{
    double heads = (double)one->m, tokens = (double)one->n, width = (double)one->k;
    double once_s = product_s(model, rates, (struct kernel_model_product){tokens, tokens, width, heads}) +
                    product_s(model, rates, (struct kernel_model_product){tokens, width, tokens, heads});
    bool back = is_backward(one->kernel);
    double score_bytes = back ? model->score_bytes_backward.value : model->score_bytes_forward.value;
    if (kernel_half(one->kernel) != one->kernel) score_bytes *= 2; /* fp32: the values hold for 16 bits */
    double bytes = work_item_bytes(one, ELEMENT_BYTES) + heads * tokens * tokens * score_bytes;
    return (struct kernel_model_parts){back ? 2 * once_s : once_s, bytes, back ? 12 : 8};
}

/* A value that is 0 says nothing. */
static struct kernel_model_parts other_parts(const struct kernel_model *model, struct kernel_rates rates,
                                             const struct work_item *one)
{
    const bool attends = is_attention(one->kernel) && rates.attention_flops_per_s > 0;
    struct kernel_model_parts parts = {
        work_item_flops(one) / (attends ? rates.attention_flops_per_s : rates.flops_per_s),
        work_item_bytes(one, ELEMENT_BYTES), 1};
    double passes = one->kernel == KERNEL_LOSS    ? model->loss_passes.value
                    : is_elementwise(one->kernel) ? model->elementwise_passes.value
                                                  : 0;
    if (rates.frameworks && passes > 0) parts.bytes *= passes;
    return parts;
}

struct kernel_seconds kernel_model_seconds(const struct kernel_model *model, struct kernel_rates rates,
                                           const struct work_item *item)
{
    struct work_item one = *item;
    struct kernel_model_parts parts;
    assert(kernel_model_is_set(model));
    one.count = 1;
    bool scores = rates.frameworks && is_attention(item->kernel) && model->score_bytes_forward.value > 0;
    bool dispatched = rates.frameworks && is_dispatched(item->kernel);
    if (is_matmul(item->kernel)) parts = matmul_parts(model, rates, &one);
    else if (scores) parts = scores_parts(model, rates, &one);
    else parts = other_parts(model, rates, &one);
    double memory_s = parts.bytes / rates.bytes_per_s;
    /* separate kernels */
    double work_s = scores ? parts.products_s + memory_s : fmax(parts.products_s, memory_s);
    double launches = item->count * parts.launches;
    double device_s = launches * (rates.launch_s + (dispatched ? model->kernel_gap.value : 0)) + item->count * work_s;
    double host_s = dispatched ? launches * model->dispatch_latency.value : 0;
    return (struct kernel_seconds){
        .device_s = device_s,
        .host_s = host_s,
        .hiding_s = fmin(device_s, KERNEL_MODEL_AHEAD * host_s),
        .multiplies = parts.products_s > memory_s,
    };
}
