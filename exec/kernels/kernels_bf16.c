/*
 * Linear layers with bf16 weights, as a GPU computes them: operands are bf16, products exact in fp32, sums in fp32.
 *
 * A processor with a matrix unit multiplies bf16 itself (kernels_bf16_library.h). Others multiply fp32 (some with bf16
 * are slower with it): operands are widened by tiles into memory that stays in the cache:
 *
 *     for each column tile of the result, for each part of the inner dimension:
 *         widen that tile of B                  DEPTH x SIDE
 *         for each row tile: widen A's tile     SIDE x DEPTH; then C(tile) += A(tile) B(tile)
 *
 * A is widened once for each column tile: one number moved for 2 SIDE FLOPs. Tiles depend only on the shape. An fp32
 * product has another order of sums, because the inner dimension is cut here.
 */
#include "exec/kernels/kernels_host.h"

#include <assert.h>

#include "exec/kernels/kernels_bf16.h"
#include "exec/kernels/kernels_bf16_library.h"

enum { SIDE = 1024, DEPTH = 1024 };
static_assert(SIDE * DEPTH <= HOST_WIDENED, "a tile fits");

/* --- leaves ----------------------------------------------------------------------------------- */

CLONES void host_round_row(bf16 *restrict out, const float *restrict x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) out[i] = bf16_nearest(x[i]);
}

CLONES void host_widen_row(float *restrict out, const bf16 *restrict x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) out[i] = bf16_widen(x[i]);
}

/* --- products --------------------------------------------------------------------------------- */

/* Widens a part of op(X) in stored order, without gaps. */
static void widen_tile(const struct kernels *kernels, float *out, const struct kernels_bf16_operand *x,
                       int64_t row, int64_t column, int64_t rows, int64_t columns)
{
    const int64_t first = x->transposed ? column : row, count = x->transposed ? columns : rows;
    const int64_t from = x->transposed ? row : column, width = x->transposed ? rows : columns;
#pragma omp parallel for schedule(static) num_threads((int)kernels->threads) \
    if (rows * columns > HOST_SERIAL)
    for (int64_t i = 0; i < count; i++)
        host_widen_row(out + i * width, x->x + (first + i) * x->columns + from, width);
}

static bool multiplies_bf16(const struct host_context *context, const struct kernels_bf16_product *p)
{
    const struct kernels_bf16_library_product product = {
        .m = p->m,
        .n = p->n,
        .k = p->k,
        .transpose_a = p->a.transposed,
        .transpose_b = p->b.transposed,
        .accumulate = p->accumulate,
        .a = p->a.x,
        .b = p->b.x,
        .c = p->c,
    };
    return context->bf16 && kernels_bf16_library_multiply(context->bf16, &product);
}

void kernels_bf16_multiply(const struct kernels *kernels, const struct kernels_bf16_product *p)
{
    const struct host_context *const context = kernels->context;
    if (multiplies_bf16(context, p)) return;
    float *const a = context->widened, *const b = a + HOST_WIDENED;
    for (int64_t column = 0; column < p->n; column += SIDE) {
        const int64_t n = host_min(SIDE, p->n - column);
        for (int64_t inner = 0; inner < p->k; inner += DEPTH) {
            const int64_t k = host_min(DEPTH, p->k - inner);
            widen_tile(kernels, b, &p->b, inner, column, k, n);
            for (int64_t row = 0; row < p->m; row += SIDE) {
                const int64_t m = host_min(SIDE, p->m - row);
                widen_tile(kernels, a, &p->a, row, inner, m, k);
                host_multiply(&(struct host_product){
                    .transpose_a = p->a.transposed,
                    .transpose_b = p->b.transposed,
                    .m = m,
                    .n = n,
                    .k = k,
                    .alpha = 1.0f,
                    .beta = p->accumulate || inner > 0 ? 1.0f : 0.0f,
                    .a = a,
                    .row_a = p->a.transposed ? m : k,
                    .b = b,
                    .row_b = p->b.transposed ? k : n,
                    .c = p->c + row * p->n + column,
                    .row_c = p->n,
                });
            }
        }
    }
}

/* --- drivers ---------------------------------------------------------------------------------- */

void host_round(const struct kernels *kernels, bf16 *out, const float *x, int64_t n)
{
    const int64_t blocks = host_blocks(n, HOST_BLOCK);
#pragma omp parallel for schedule(static) num_threads((int)kernels->threads) if (n > HOST_SERIAL)
    for (int64_t block = 0; block < blocks; block++) {
        const int64_t first = block * HOST_BLOCK;
        host_round_row(out + first, x + first, host_min(HOST_BLOCK, n - first));
    }
}

void host_linear_forward_bf16(const struct kernels *kernels, float *y, const bf16 *x, const bf16 *w,
                              const float *bias, int64_t m, int64_t n, int64_t k, bool w_in_out)
{
    if (bias) {
#pragma omp parallel for schedule(static) num_threads((int)kernels->threads) \
    if (m * n > HOST_SERIAL)
        for (int64_t row = 0; row < m; row++) memcpy(y + row * n, bias, (size_t)n * sizeof *y);
    }
    kernels_bf16_multiply(kernels, &(struct kernels_bf16_product){.m = m,
                                                              .n = n,
                                                              .k = k,
                                                              .a = {.x = x, .columns = k},
                                                              .b = {.x = w, .columns = w_in_out ? n : k,
                                                                    .transposed = !w_in_out},
                                                              .c = y,
                                                              .accumulate = bias != NULL});
}

void host_linear_input_bf16(const struct kernels *kernels, float *dx, const bf16 *dy, const bf16 *w,
                            int64_t m, int64_t n, int64_t k, bool w_in_out, bool accumulate)
{
    kernels_bf16_multiply(kernels, &(struct kernels_bf16_product){.m = m,
                                                              .n = k,
                                                              .k = n,
                                                              .a = {.x = dy, .columns = n},
                                                              .b = {.x = w, .columns = w_in_out ? n : k,
                                                                    .transposed = w_in_out},
                                                              .c = dx,
                                                              .accumulate = accumulate});
}

void host_linear_weight_bf16(const struct kernels *kernels, float *dw, float *dbias,
                             const float *dy, const bf16 *dy_rounded, const bf16 *x, int64_t m,
                             int64_t n, int64_t k, bool w_in_out, uint32_t add)
{
    const struct kernels_bf16_operand in = {.x = x, .columns = k}, out = {.x = dy_rounded, .columns = n};
    struct kernels_bf16_product product = {.m = w_in_out ? k : n,
                                           .n = w_in_out ? n : k,
                                           .k = m,
                                           .a = w_in_out ? in : out,
                                           .b = w_in_out ? out : in,
                                           .c = dw,
                                           .accumulate = add & KERNEL_LINEAR_ADD_WEIGHT};
    product.a.transposed = true;
    if (dw) kernels_bf16_multiply(kernels, &product);
    if (dbias) host_column_sums(kernels, dbias, dy, m, n, add & KERNEL_LINEAR_ADD_BIAS);
}
