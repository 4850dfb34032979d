/*
 * Linear layers by oneDNN's dnnl_sgemm, and their biases.
 *
 *     forward   y(m,n)  = x(m,k) w + bias     2 m n k FLOPs
 *     input     dx(m,k) = dy(m,n) w^T         the same
 *     weight    dw      = x^T dy              the same
 *
 * GPT-2 stores a weight as (in, out), most others as (out, in): equally fast. dnnl_sgemm was chosen by measurement:
 * Debian's OpenBLAS runs at a fifth of its speed on processors younger than itself.
 *
 * y is filled with the bias and the product is added to it (beta = 1): the fill writes m n floats, and adding costs
 * nothing measurable since the tile of y is in cache.
 *
 * The bias gradient is the column sums of dy (kernels_columns.c).
 *
 * The library promises, and we test: equal calls with an equal number of threads give equal bits.
 */
#include "exec/kernels/kernels_host.h"

#include <assert.h>

#include <oneapi/dnnl/dnnl.h>

void host_multiply(const struct host_product *p)
{
    dnnl_status_t status = dnnl_sgemm(p->transpose_a ? 'T' : 'N', p->transpose_b ? 'T' : 'N', p->m,
                                      p->n, p->k, p->alpha, p->a, p->row_a, p->b, p->row_b,
                                      p->beta, p->c, p->row_c);
    /* It refuses only wrong sizes. */
    assert(status == dnnl_success);
    (void)status;
}

void host_linear_forward(const struct kernels *kernels, float *y, const float *x, const float *w,
                         const float *bias, int64_t m, int64_t n, int64_t k, bool w_in_out)
{
    if (bias) {
#pragma omp parallel for schedule(static) num_threads((int)kernels->threads) \
    if (m * n > HOST_SERIAL)
        for (int64_t row = 0; row < m; row++)
            memcpy(y + row * n, bias, (size_t)n * sizeof *y);
    }
    host_multiply(&(struct host_product){.transpose_b = !w_in_out,
                                         .m = m,
                                         .n = n,
                                         .k = k,
                                         .alpha = 1.0f,
                                         .beta = bias ? 1.0f : 0.0f,
                                         .a = x,
                                         .row_a = k,
                                         .b = w,
                                         .row_b = w_in_out ? n : k,
                                         .c = y,
                                         .row_c = n});
}

void host_linear_input(const struct kernels *kernels, float *dx, const float *dy, const float *w,
                       int64_t m, int64_t n, int64_t k, bool w_in_out, bool accumulate)
{
    (void)kernels;
    host_multiply(&(struct host_product){.transpose_b = w_in_out,
                                         .m = m,
                                         .n = k,
                                         .k = n,
                                         .alpha = 1.0f,
                                         .beta = accumulate ? 1.0f : 0.0f,
                                         .a = dy,
                                         .row_a = n,
                                         .b = w,
                                         .row_b = w_in_out ? n : k,
                                         .c = dx,
                                         .row_c = k});
}

void host_linear_weight(const struct kernels *kernels, float *dw, float *dbias, const float *dy,
                        const float *x, int64_t m, int64_t n, int64_t k, bool w_in_out,
                        uint32_t add)
{
    struct host_product product = {.transpose_a = true,
                                   .k = m,
                                   .alpha = 1.0f,
                                   .beta = add & KERNEL_LINEAR_ADD_WEIGHT ? 1.0f : 0.0f,
                                   .c = dw};
    if (w_in_out) {
        product.m = k;
        product.n = n;
        product.a = x;
        product.b = dy;
    } else {
        product.m = n;
        product.n = k;
        product.a = dy;
        product.b = x;
    }
    product.row_a = product.m;
    product.row_b = product.row_c = product.n;
    if (dw) host_multiply(&product);
    if (dbias) host_column_sums(kernels, dbias, dy, m, n, add & KERNEL_LINEAR_ADD_BIAS);
}
