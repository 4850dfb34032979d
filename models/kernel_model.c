/* See kernel_model.h. */
#include "models/kernel_model.h"

#include <assert.h>
#include <math.h>

#include "base/size.h"

enum { ELEMENT_BYTES = 4 };

/* --- matrix products ------------------------------------------------------------------------ */

/* `batch` products of m x n x k. */
struct product {
    double m, n, k, batch;
};

/* Shapes that libraries choose among. A smaller tile loads more for each multiplication; its rate, to that of the largest,
 * is assumed. */
static const struct tile {
    double rows, columns, rate;
} tiles[] = {{256, 128, 1}, {128, 256, 1}, {128, 128, 0.92}, {128, 64, 0.75}, {64, 128, 0.75}, {64, 64, 0.6}};

static double product_s(const struct kernel_model *model, double flops_per_s, struct product p)
{
    double best = INFINITY, together = model->multiprocessors.value;
    for (size_t i = 0; i < ARRAY_COUNT(tiles); i++) {
        const struct tile *t = &tiles[i];
        double waves = ceil(p.batch * ceil(p.m / t->rows) * ceil(p.n / t->columns) / together);
        double flops = waves * together * t->rows * t->columns * 2 * p.k;
        best = fmin(best, flops / (flops_per_s * t->rate));
    }
    return best * (1 + model->matmul_depth.value / p.k);
}

/* --- kernels -------------------------------------------------------------------------------- */

/* What one execution is made of. */
struct parts {
    double products_s, bytes;
    double launches;
};

static bool is_matmul(uint32_t kernel)
{
    return kernel <= KERNEL_MATMUL_WEIGHT ||
           (kernel >= KERNEL_MATMUL_BF16_FORWARD && kernel <= KERNEL_MATMUL_BF16_WEIGHT) ||
           (kernel >= KERNEL_MATMUL_HALF_FORWARD && kernel <= KERNEL_MATMUL_HALF_WEIGHT);
}

static bool is_half_attention(uint32_t kernel)
{
    return kernel >= KERNEL_ATTENTION_HALF_FORWARD && kernel <= KERNEL_ATTENTION_FULL_HALF_BACKWARD;
}

static bool is_backward(uint32_t kernel)
{
    return kernel == KERNEL_ATTENTION_HALF_BACKWARD || kernel == KERNEL_ATTENTION_FULL_HALF_BACKWARD;
}

static struct parts matmul_parts(const struct kernel_model *model, double flops_per_s, const struct work_item *one)
{
    struct product p = {(double)one->m, (double)one->n, (double)one->k, 1};
    return (struct parts){product_s(model, flops_per_s, p), work_item_bytes(one, ELEMENT_BYTES), 1};
}

/* Scores, what they weigh, and twice that on the way back; kernels between them: scale and mask, softmax,
 * dropout, and copies of heads to where products want them. */
static struct parts scores_parts(const struct kernel_model *model, double flops_per_s, const struct work_item *one)
{
    double heads = (double)one->m, tokens = (double)one->n, width = (double)one->k;
    double once_s = product_s(model, flops_per_s, (struct product){tokens, tokens, width, heads}) +
                    product_s(model, flops_per_s, (struct product){tokens, width, tokens, heads});
    bool back = is_backward(one->kernel);
    double score_bytes = back ? model->score_bytes_backward.value : model->score_bytes_forward.value;
    double bytes = work_item_bytes(one, ELEMENT_BYTES) + heads * tokens * tokens * score_bytes;
    return (struct parts){back ? 2 * once_s : once_s, bytes, back ? 12 : 8};
}

/* Of jobs that are spread: models/work.h. */
static bool is_dispatched(uint32_t kernel)
{
    return kernel >= KERNEL_MATMUL_HALF_FORWARD;
}

double kernel_model_s(const struct kernel_model *model, struct kernel_rates rates, const struct work_item *item,
                      bool *multiplies)
{
    struct work_item one = *item;
    struct parts parts;
    assert(kernel_model_is_set(model));
    one.count = 1;
    bool scores = is_half_attention(item->kernel) && model->score_bytes_forward.value > 0;
    if (is_matmul(item->kernel)) {
        parts = matmul_parts(model, rates.flops_per_s, &one);
    } else if (scores) {
        parts = scores_parts(model, rates.flops_per_s, &one);
    } else {
        parts = (struct parts){work_item_flops(&one) / rates.flops_per_s, work_item_bytes(&one, ELEMENT_BYTES), 1};
        if (item->kernel == KERNEL_LOSS && model->loss_passes.value > 0) parts.bytes *= model->loss_passes.value;
    }
    double memory_s = parts.bytes / rates.bytes_per_s;
    /* products of scores and what goes between them are kernels of their own */
    double work_s = scores ? parts.products_s + memory_s : fmax(parts.products_s, memory_s);
    double dispatch_s = is_dispatched(item->kernel) ? parts.launches * model->dispatch_latency.value : 0;
    *multiplies = parts.products_s > memory_s;
    return item->count * fmax(parts.launches * rates.launch_s + work_s, dispatch_s);
}
