/*
 * Layer norm of rows, preceded by the residual sum, and its gradient.
 *
 *     sum = x + y;  mean, var over the C numbers of a row;  n = (sum - mean) / sqrt(var + epsilon)
 *     out = n w + b
 *     dx  = (g - avg(g) - n avg(g n)) / sqrt(var + epsilon),  g = dout w
 *     dw  = sum over rows of dout n,  db = sum over rows of dout
 *
 * Forward, a row (3 KiB at C = 768) is read once from memory and then three times from the
 * first-level cache: sum, squared differences from the mean (E[x^2] - mean^2 would cancel), result.
 * Backward computes dx by rows, and dw, db by columns, so that no thread needs partial sums of
 * another; the second sweep recomputes n from the two numbers kept per row.
 *
 * Bytes: forward 16 R C with the residual sum (2 read, 2 written), backward 12 to 16 R C for dx and
 * 8 R C for dw and db, mostly from cache.
 */
#include "exec/kernels/kernels_host.h"

#include "exec/kernels/kernels_math.h"

enum { COLUMNS = 64, ROWS = 64 };

/* --- leaves ----------------------------------------------------------------------------------- */

CLONES void HOST(add_row)(kernel_number *sum, const kernel_number *x, const kernel_number *y, int64_t c)
{
#pragma omp simd
    for (int64_t i = 0; i < c; i++) sum[i] = host_stored(host_wide(x[i]) + host_wide(y[i]));
}

CLONES static void norm_row(kernel_number *restrict out, float *restrict stats, const kernel_number *x,
                                 const kernel_number *w, const kernel_number *b, int64_t c, float epsilon)
{
    float mean = math_row_sum(x, c) / (float)c;

    float lanes[HOST_LANES] = {0};
    int64_t i = 0;
    for (; i + HOST_LANES <= c; i += HOST_LANES)
        for (int l = 0; l < HOST_LANES; l++)
            lanes[l] += (host_wide(x[i + l]) - mean) * (host_wide(x[i + l]) - mean);
    for (int l = 0; l < c - i; l++) lanes[l] += (host_wide(x[i + l]) - mean) * (host_wide(x[i + l]) - mean);
    float inverse = 1.0f / sqrtf(math_fold(lanes) / (float)c + epsilon);

    for (int64_t j = 0; j < c; j++)
        out[j] = host_stored((host_wide(x[j]) - mean) * inverse * host_wide(w[j]) + host_wide(b[j]));
    stats[0] = mean;
    stats[1] = inverse;
}

/* added: NULL, or dx */
CLONES static void norm_input_row(kernel_number *dx, const kernel_number *dout, const kernel_number *x,
                                       const float *stats, const kernel_number *w, const kernel_number *added,
                                       int64_t c)
{
    float mean = stats[0], inverse = stats[1];
    float plain[HOST_LANES] = {0}, weighted[HOST_LANES] = {0};
    int64_t i = 0;
    for (; i + HOST_LANES <= c; i += HOST_LANES)
        for (int l = 0; l < HOST_LANES; l++) {
            float g = host_wide(dout[i + l]) * host_wide(w[i + l]);
            plain[l] += g;
            weighted[l] += g * ((host_wide(x[i + l]) - mean) * inverse);
        }
    for (int l = 0; l < c - i; l++) {
        float g = host_wide(dout[i + l]) * host_wide(w[i + l]);
        plain[l] += g;
        weighted[l] += g * ((host_wide(x[i + l]) - mean) * inverse);
    }
    float average = math_fold(plain) / (float)c;
    float slope = math_fold(weighted) / (float)c;

    if (added) {
#pragma omp simd
        for (int64_t j = 0; j < c; j++) {
            const float g = host_wide(dout[j]) * host_wide(w[j]), n = (host_wide(x[j]) - mean) * inverse;
            dx[j] = host_stored(host_wide(added[j]) + (g - average - n * slope) * inverse);
        }
    } else {
#pragma omp simd
        for (int64_t j = 0; j < c; j++) {
            const float g = host_wide(dout[j]) * host_wide(w[j]), n = (host_wide(x[j]) - mean) * inverse;
            dx[j] = host_stored((g - average - n * slope) * inverse);
        }
    }
}

/* dw and db of COLUMNS columns over all rows; either may be NULL */
CLONES static void norm_weight_columns(float *dw, float *db, const kernel_number *dout, const kernel_number *x,
                                       const float *stats, int64_t r, int64_t stride)
{
    float total_w[COLUMNS] = {0}, total_b[COLUMNS] = {0};
    for (int64_t first = 0; first < r; first += ROWS) {
        float partial_w[COLUMNS] = {0}, partial_b[COLUMNS] = {0};
        int64_t end = host_min(first + ROWS, r);
        for (int64_t row = first; row < end; row++) {
            float mean = stats[2 * row], inverse = stats[2 * row + 1];
            const kernel_number *g = dout + row * stride, *in = x + row * stride;
            for (int l = 0; l < COLUMNS; l++) {
                partial_w[l] += host_wide(g[l]) * ((host_wide(in[l]) - mean) * inverse);
                partial_b[l] += host_wide(g[l]);
            }
        }
        for (int l = 0; l < COLUMNS; l++) {
            total_w[l] += partial_w[l];
            total_b[l] += partial_b[l];
        }
    }
    if (dw) memcpy(dw, total_w, sizeof total_w);
    if (db) memcpy(db, total_b, sizeof total_b);
}

/* Sums the last, narrower block. */
static void norm_weight_some(float *dw, float *db, const kernel_number *dout, const kernel_number *x,
                             const float *stats, int64_t r, int64_t stride, int64_t count)
{
    for (int64_t l = 0; l < count; l++) {
        float total_w = 0, total_b = 0;
        for (int64_t first = 0; first < r; first += ROWS) {
            float partial_w = 0, partial_b = 0;
            int64_t end = host_min(first + ROWS, r);
            for (int64_t row = first; row < end; row++) {
                float g = host_wide(dout[row * stride + l]);
                partial_w += g * ((host_wide(x[row * stride + l]) - stats[2 * row]) * stats[2 * row + 1]);
                partial_b += g;
            }
            total_w += partial_w;
            total_b += partial_b;
        }
        if (dw) dw[l] = total_w;
        if (db) db[l] = total_b;
    }
}

/* --- drivers ---------------------------------------------------------------------------------- */

void HOST(norm_forward)(const struct kernels *kernels, kernel_number *out, kernel_number *sum, float *stats,
                        const kernel_number *x, const kernel_number *y, const kernel_number *w,
                        const kernel_number *b, int64_t r, int64_t c, float epsilon)
{
#pragma omp parallel for schedule(static) num_threads((int)kernels->threads) \
    if (r * c > HOST_SERIAL)
    for (int64_t row = 0; row < r; row++) {
        const kernel_number *in = x + row * c;
        if (y) {
            HOST(add_row)(sum + row * c, in, y + row * c, c);
            in = sum + row * c;
        }
        norm_row(out + row * c, stats + 2 * row, in, w, b, c, epsilon);
    }
}

void HOST(norm_backward)(const struct kernels *kernels, kernel_number *dx, float *dw, float *db,
                        const kernel_number *dout, const kernel_number *x, const float *stats, const kernel_number *w,
                        const kernel_number *added, int64_t r, int64_t c)
{
    int64_t blocks = dw || db ? host_blocks(c, COLUMNS) : 0;
#pragma omp parallel num_threads((int)kernels->threads) if (r * c > HOST_SERIAL)
    {
#pragma omp for schedule(static) nowait
        for (int64_t row = 0; row < r; row++)
            norm_input_row(dx + row * c, dout + row * c, x + row * c, stats + 2 * row, w,
                           added ? added + row * c : NULL, c);
#pragma omp for schedule(static)
        for (int64_t block = 0; block < blocks; block++) {
            int64_t column = block * COLUMNS;
            float *own_dw = dw ? dw + column : NULL, *own_db = db ? db + column : NULL;
            if (column + COLUMNS <= c)
                norm_weight_columns(own_dw, own_db, dout + column, x + column, stats, r, c);
            else
                norm_weight_some(own_dw, own_db, dout + column, x + column, stats, r, c, c - column);
        }
    }
}
