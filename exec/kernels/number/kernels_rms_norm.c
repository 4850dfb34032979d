/*
 * Root-mean-square norm of rows, preceded by the residual sum, and its gradient.
 *
 *     sum = x + y;  inverse = 1 / sqrt(avg(sum^2) + epsilon);  n = sum inverse;  out = n w
 *     dx  = (g - n avg(g n)) inverse,  g = dout w
 *     dw  = sum over rows of dout n
 *
 * Made like the layer norm of kernels_norm.c. Bytes: 16 R C forward with the residual sum, 12 to 16
 * R C backward for dx and 8 R C, mostly from cache, for dw.
 *
 * Source: Zhang and Sennrich, "Root mean square layer normalization", arXiv 1910.07467.
 */
#include "exec/kernels/kernels_host.h"

#include "exec/kernels/kernels_math.h"

enum { COLUMNS = 64, ROWS = 64 };

/* --- leaves ----------------------------------------------------------------------------------- */

CLONES static void rms_norm_row(kernel_number *restrict out, float *restrict stats, const kernel_number *x,
                                const kernel_number *w, int64_t c, float epsilon)
{
    float lanes[HOST_LANES] = {0};
    int64_t i = 0;
    for (; i + HOST_LANES <= c; i += HOST_LANES)
        for (int l = 0; l < HOST_LANES; l++) lanes[l] += host_wide(x[i + l]) * host_wide(x[i + l]);
    for (int l = 0; l < c - i; l++) lanes[l] += host_wide(x[i + l]) * host_wide(x[i + l]);
    float inverse = 1.0f / sqrtf(math_fold(lanes) / (float)c + epsilon);
    for (int64_t j = 0; j < c; j++) out[j] = host_stored(host_wide(x[j]) * inverse * host_wide(w[j]));
    *stats = inverse;
}

/* added: NULL, or dx */
CLONES static void rms_norm_input_row(kernel_number *dx, const kernel_number *dout, const kernel_number *x,
                                      float inverse, const kernel_number *w, const kernel_number *added, int64_t c)
{
    float lanes[HOST_LANES] = {0};
    int64_t i = 0;
    for (; i + HOST_LANES <= c; i += HOST_LANES)
        for (int l = 0; l < HOST_LANES; l++)
            lanes[l] += host_wide(dout[i + l]) * host_wide(w[i + l]) * (host_wide(x[i + l]) * inverse);
    for (int l = 0; l < c - i; l++)
        lanes[l] += host_wide(dout[i + l]) * host_wide(w[i + l]) * (host_wide(x[i + l]) * inverse);
    float slope = math_fold(lanes) / (float)c;

    if (added) {
#pragma omp simd
        for (int64_t j = 0; j < c; j++) {
            float g = (host_wide(dout[j]) * host_wide(w[j]) - host_wide(x[j]) * inverse * slope) * inverse;
            dx[j] = host_stored(host_wide(added[j]) + g);
        }
    } else {
#pragma omp simd
        for (int64_t j = 0; j < c; j++)
            dx[j] = host_stored((host_wide(dout[j]) * host_wide(w[j]) - host_wide(x[j]) * inverse * slope) * inverse);
    }
}

/* dw of COLUMNS columns over all rows */
CLONES static void rms_norm_weight_columns(float *restrict dw, const kernel_number *dout, const kernel_number *x,
                                           const float *stats, int64_t r, int64_t stride)
{
    float total[COLUMNS] = {0};
    for (int64_t first = 0; first < r; first += ROWS) {
        float partial[COLUMNS] = {0};
        int64_t end = host_min(first + ROWS, r);
        for (int64_t row = first; row < end; row++) {
            const kernel_number *g = dout + row * stride, *in = x + row * stride;
            for (int l = 0; l < COLUMNS; l++) partial[l] += host_wide(g[l]) * (host_wide(in[l]) * stats[row]);
        }
        for (int l = 0; l < COLUMNS; l++) total[l] += partial[l];
    }
    memcpy(dw, total, sizeof total);
}

/* Sums the last, narrower block. */
static void rms_norm_weight_some(float *dw, const kernel_number *dout, const kernel_number *x, const float *stats,
                                 int64_t r, int64_t stride, int64_t count)
{
    for (int64_t l = 0; l < count; l++) {
        float total = 0;
        for (int64_t first = 0; first < r; first += ROWS) {
            float partial = 0;
            int64_t end = host_min(first + ROWS, r);
            for (int64_t row = first; row < end; row++)
                partial += host_wide(dout[row * stride + l]) * (host_wide(x[row * stride + l]) * stats[row]);
            total += partial;
        }
        dw[l] = total;
    }
}

/* --- drivers ---------------------------------------------------------------------------------- */

void HOST(rms_norm_forward)(const struct kernels *kernels, kernel_number *out, kernel_number *sum, float *stats,
                           const kernel_number *x, const kernel_number *y, const kernel_number *w, int64_t r, int64_t c,
                           float epsilon)
{
#pragma omp parallel for schedule(static) num_threads((int)kernels->threads) \
    if (r * c > HOST_SERIAL)
    for (int64_t row = 0; row < r; row++) {
        const kernel_number *in = x + row * c;
        if (y) {
            HOST(add_row)(sum + row * c, in, y + row * c, c);
            in = sum + row * c;
        }
        rms_norm_row(out + row * c, stats + row, in, w, c, epsilon);
    }
}

void HOST(rms_norm_backward)(const struct kernels *kernels, kernel_number *dx, float *dw, const kernel_number *dout,
                             const kernel_number *x, const float *stats, const kernel_number *w,
                             const kernel_number *added, int64_t r, int64_t c)
{
    int64_t blocks = dw ? host_blocks(c, COLUMNS) : 0;
#pragma omp parallel num_threads((int)kernels->threads) if (r * c > HOST_SERIAL)
    {
#pragma omp for schedule(static)
        for (int64_t block = 0; block < blocks; block++) {
            int64_t column = block * COLUMNS;
            if (column + COLUMNS <= c)
                rms_norm_weight_columns(dw + column, dout + column, x + column, stats, r, c);
            else
                rms_norm_weight_some(dw + column, dout + column, x + column, stats, r, c,
                                     c - column);
        }
        /* after the sums, which read dout: dx may be dout */
#pragma omp for schedule(static)
        for (int64_t row = 0; row < r; row++)
            rms_norm_input_row(dx + row * c, dout + row * c, x + row * c, stats[row], w,
                               added ? added + row * c : NULL, c);
    }
}
