/*
 * Linear layers whose operands and results are bf16. Each result is rounded once, with its bias or the number that it
 * is added to. A library for a matrix unit does so itself. Other products have fp32 results (kernels_bf16.c), a block
 * of rows at a time in memory that stays in the cache.
 */
#include "exec/kernels/kernels_bf16.h"
#include "exec/kernels/kernels_bf16_library.h"

/* out = sums + bias + (adds) out; bias may be NULL */
CLONES static void store_row(bf16 *restrict out, const float *restrict sums, const bf16 *restrict bias, bool adds,
                             int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        float sum = sums[i];
        if (bias) sum += host_wide(bias[i]);
        if (adds) sum += host_wide(out[i]);
        out[i] = host_stored(sum);
    }
}

static bool multiplies_by_library(const struct host_context *context, bf16 *y, const bf16 *bias, bool adds,
                                  const struct kernels_bf16_product *p)
{
    const struct kernels_bf16_library_product product = {
        .m = p->m,
        .n = p->n,
        .k = p->k,
        .transpose_b = p->b.transposed,
        .accumulate = adds,
        .a = p->a.x,
        .b = p->b.x,
        .bias = bias,
        .rounded = y,
    };
    return context->bf16 && kernels_bf16_library_multiply(context->bf16, &product);
}

/* y = op(A) op(B) + bias, or adds to y; A is as it is stored. */
static void multiply(const struct kernels *kernels, bf16 *y, const bf16 *bias, bool adds,
                     const struct kernels_bf16_product *product)
{
    const struct host_context *const context = kernels->context;
    const int64_t n = product->n, most = HOST_WIDENED / n > 0 ? HOST_WIDENED / n : 1;
    float *const sums = context->widened + 2 * HOST_WIDENED;
    if (multiplies_by_library(context, y, bias, adds, product)) return;
    for (int64_t first = 0; first < product->m; first += most) {
        struct kernels_bf16_product block = *product;
        block.m = host_min(most, product->m - first);
        block.a.x += first * product->a.columns;
        block.c = sums;
        kernels_bf16_multiply(kernels, &block);
#pragma omp parallel for schedule(static) num_threads((int)kernels->threads) if (block.m * n > HOST_SERIAL)
        for (int64_t row = 0; row < block.m; row++)
            store_row(y + (first + row) * n, sums + row * n, bias, adds, n);
    }
}

void half_linear_forward(const struct kernels *kernels, bf16 *y, const bf16 *x, const bf16 *w, const bf16 *bias,
                         int64_t m, int64_t n, int64_t k, bool w_in_out)
{
    multiply(kernels, y, bias, false,
             &(struct kernels_bf16_product){.m = m, .n = n, .k = k, .a = {.x = x, .columns = k},
                                            .b = {.x = w, .columns = w_in_out ? n : k, .transposed = !w_in_out}});
}

void half_linear_input(const struct kernels *kernels, bf16 *dx, const bf16 *dy, const bf16 *w, int64_t m, int64_t n,
                       int64_t k, bool w_in_out, bool accumulate)
{
    multiply(kernels, dx, NULL, accumulate,
             &(struct kernels_bf16_product){.m = m, .n = k, .k = n, .a = {.x = dy, .columns = n},
                                            .b = {.x = w, .columns = w_in_out ? n : k, .transposed = w_in_out}});
}

void half_linear_forward_bf16(const struct kernels *kernels, float *y, const bf16 *x, const bf16 *w, const bf16 *bias,
                              int64_t m, int64_t n, int64_t k, bool w_in_out)
{
    for (int64_t row = 0; bias && row < m; row++) host_widen_row(y + row * n, bias, n);
    kernels_bf16_multiply(kernels,
                       &(struct kernels_bf16_product){.m = m, .n = n, .k = k, .a = {.x = x, .columns = k},
                                                      .b = {.x = w, .columns = w_in_out ? n : k,
                                                            .transposed = !w_in_out},
                                                      .c = y, .accumulate = bias != NULL});
}

void half_linear_weight(const struct kernels *kernels, float *dw, float *dbias, const bf16 *dy, const bf16 *x,
                        int64_t m, int64_t n, int64_t k, bool w_in_out, uint32_t add)
{
    host_linear_weight_bf16(kernels, dw, NULL, NULL, dy, x, m, n, k, w_in_out, add);
    if (dbias) half_column_sums(kernels, dbias, dy, m, n, add & KERNEL_LINEAR_ADD_BIAS);
}
