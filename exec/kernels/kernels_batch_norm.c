/*
 * Batch norm over the rows of x(rows, c), a column for each channel; and the gradient of a bias, the same sums.
 *
 * Forward, mean and variance are two sums over the rows of a column, then y = (x - mean) / std * w + b. Backward, with
 * n = (x - mean) / std and N rows,
 *
 *     db = sum dy,  dw = sum dy n,  dx = w / std (dy - db / N - n dw / N)
 *
 * Sums. Rows are cut into at most PARTS parts of whole blocks of ROWS, columns into blocks of COLUMNS. In a block of
 * rows a column is summed in fp32, blocks in double, parts in their order: the order depends only on the shape.
 *
 * Cost: x is read three times forward; dy and x are read twice backward.
 */
#include "exec/kernels/kernels_host.h"

#include <math.h>

enum { COLUMNS = 64, ROWS = 64, PARTS = 64 };

/* Two sums for each column of a part: of x, or (x - mean)^2; of dy and dy n. */
struct part_sums {
    double sums[2][COLUMNS];
};

/* A block of columns. */
struct columns {
    const float *x, *dy, *mean, *inverse; /* of its first column; dy, mean and inverse may be NULL */
    int64_t stride, count;
};

/* Sums rows from `first` up to `end`; columns past the last one count as zeros of their own. */
CLONES static void sum_part(struct part_sums *out, const struct columns *of, int64_t first, int64_t end)
{
    float mean[COLUMNS] = {0}, inverse[COLUMNS] = {0};
    *out = (struct part_sums){.sums = {{0}}};
    for (int64_t l = 0; l < of->count; l++) mean[l] = of->mean ? of->mean[l] : 0;
    for (int64_t l = 0; l < of->count; l++) inverse[l] = of->inverse ? of->inverse[l] : 0;
    for (int64_t block = first; block < end; block += ROWS) {
        const int64_t last = host_min(block + ROWS, end);
        float a[COLUMNS] = {0}, b[COLUMNS] = {0};
        for (int64_t row = block; row < last; row++) {
            const float *const x = of->x + row * of->stride;
            const int64_t count = of->count;
            if (of->dy) {
                const float *const dy = of->dy + row * of->stride;
                for (int64_t l = 0; l < count; l++) a[l] += dy[l];
                for (int64_t l = 0; l < count; l++) b[l] += dy[l] * ((x[l] - mean[l]) * inverse[l]);
            } else {
                for (int64_t l = 0; l < count; l++) a[l] += of->mean ? (x[l] - mean[l]) * (x[l] - mean[l]) : x[l];
            }
        }
        for (int l = 0; l < COLUMNS; l++) out->sums[0][l] += (double)a[l];
        for (int l = 0; l < COLUMNS; l++) out->sums[1][l] += (double)b[l];
    }
}

/* sums(2, c): all of a matrix; the second one only with dy. */
static void sum_columns(const struct kernels *kernels, double *sums, const struct columns *of, int64_t rows, int64_t c)
{
    const int64_t each = host_blocks(host_blocks(rows, ROWS), PARTS) * ROWS, parts = host_blocks(rows, each);
    const int64_t blocks = host_blocks(c, COLUMNS);
#pragma omp parallel for schedule(static) num_threads((int)kernels->threads) if (rows * c > HOST_SERIAL && blocks > 1)
    for (int64_t block = 0; block < blocks; block++) {
        const int64_t at = block * COLUMNS, count = host_min(COLUMNS, c - at);
        const struct columns own = {.x = of->x + at, .dy = of->dy ? of->dy + at : NULL,
                                    .mean = of->mean ? of->mean + at : NULL,
                                    .inverse = of->inverse ? of->inverse + at : NULL, .stride = c, .count = count};
        struct part_sums made[PARTS];
#pragma omp parallel for schedule(static) num_threads((int)kernels->threads) if (rows * c > HOST_SERIAL && blocks == 1)
        for (int64_t part = 0; part < parts; part++)
            sum_part(&made[part], &own, part * each, host_min((part + 1) * each, rows));
        for (int64_t l = 0; l < count; l++) {
            double all[2] = {0, 0};
            for (int64_t part = 0; part < parts; part++)
                for (int s = 0; s < 2; s++) all[s] += made[part].sums[s][l];
            sums[at + l] = all[0];
            if (of->dy) sums[c + at + l] = all[1];
        }
    }
}

static double *room_for(const struct kernels *kernels)
{
    return ((struct host_context *)kernels->context)->columns;
}

/* The columns are few and long, so that threads share out rows, too. */
void host_bias_backward(const struct kernels *kernels, float *dbias, const float *dy, int64_t rows, int64_t c)
{
    double *const sums = room_for(kernels);
    if (c > HOST_CHANNELS) {
        host_column_sums(kernels, dbias, dy, rows, c, false);
        return;
    }
    sum_columns(kernels, sums, &(struct columns){.x = dy}, rows, c);
    for (int64_t l = 0; l < c; l++) dbias[l] = (float)sums[l];
}

/* y = x * factor + term, column by column */
CLONES static void apply_row(float *y, const float *x, const float *factor, const float *term, int64_t c)
{
    for (int64_t l = 0; l < c; l++) y[l] = x[l] * factor[l] + term[l];
}

/* Applies y = (x - mean) * inverse * w + b, for which room(2, c) has space for two rows of floats. */
static void apply(const struct kernels *kernels, float *y, const float *x, const float *mean, const float *inverse,
                  const float *w, const float *b, int64_t rows, int64_t c)
{
    float *const factor = (float *)(void *)(room_for(kernels) + 2 * c), *const term = factor + c;
    for (int64_t l = 0; l < c; l++) {
        factor[l] = inverse[l] * w[l];
        term[l] = b[l] - mean[l] * factor[l];
    }
#pragma omp parallel for schedule(static) num_threads((int)kernels->threads) if (rows * c > HOST_SERIAL)
    for (int64_t row = 0; row < rows; row++) apply_row(y + row * c, x + row * c, factor, term, c);
}

void host_batch_norm(const struct kernels *kernels, float *y, float *stats, const float *x, const float *w,
                     const float *b, int64_t rows, int64_t c, float epsilon)
{
    double *const sums = room_for(kernels);
    float *const mean = stats, *const inverse = stats + c;
    struct columns of = {.x = x};
    sum_columns(kernels, sums, &of, rows, c);
    for (int64_t l = 0; l < c; l++) mean[l] = (float)(sums[l] / (double)rows);
    of.mean = mean;
    sum_columns(kernels, sums, &of, rows, c);
    for (int64_t l = 0; l < c; l++) inverse[l] = (float)(1 / sqrt(sums[l] / (double)rows + (double)epsilon));
    if (y) apply(kernels, y, x, mean, inverse, w, b, rows, c);
}

void host_batch_norm_apply(const struct kernels *kernels, float *y, const float *x, const float *mean,
                           const float *variance, const float *w, const float *b, int64_t rows, int64_t c,
                           float epsilon)
{
    float *const inverse = (float *)(void *)room_for(kernels);
    for (int64_t l = 0; l < c; l++) inverse[l] = (float)(1 / sqrt((double)variance[l] + (double)epsilon));
    apply(kernels, y, x, mean, inverse, w, b, rows, c);
}

/* dx = (adds: +=) dy * factor + x * slope + term */
CLONES static void backward_row(float *dx, const float *dy, const float *x, const float *factor, const float *slope,
                                const float *term, int64_t c, bool adds)
{
    if (adds)
        for (int64_t l = 0; l < c; l++) dx[l] += dy[l] * factor[l] + (x[l] * slope[l] + term[l]);
    else
        for (int64_t l = 0; l < c; l++) dx[l] = dy[l] * factor[l] + (x[l] * slope[l] + term[l]);
}

void host_batch_norm_backward(const struct kernels *kernels, float *dx, float *dw, float *db, const float *dy,
                              const float *x, const float *stats, const float *w, int64_t rows, int64_t c, bool adds)
{
    double *const sums = room_for(kernels);
    const float *const mean = stats, *const inverse = stats + c;
    float *const factor = (float *)(void *)(sums + 2 * c), *const slope = factor + c, *const term = slope + c;
    const struct columns of = {.x = x, .dy = dy, .mean = mean, .inverse = inverse};
    sum_columns(kernels, sums, &of, rows, c);
    for (int64_t l = 0; l < c; l++) {
        const double each = (double)inverse[l] * (double)w[l], n = (double)rows;
        const double along = each * sums[c + l] / n * (double)inverse[l];
        if (db) db[l] = (float)sums[l];
        if (dw) dw[l] = (float)sums[c + l];
        factor[l] = (float)each;
        slope[l] = (float)-along;
        term[l] = (float)(along * (double)mean[l] - each * sums[l] / n);
    }
    if (!dx) return;
#pragma omp parallel for schedule(static) num_threads((int)kernels->threads) if (rows * c > HOST_SERIAL)
    for (int64_t row = 0; row < rows; row++)
        backward_row(dx + row * c, dy + row * c, x + row * c, factor, slope, term, c, adds);
}

void host_batch_norm_means(const struct kernels *kernels, float *mean, float *variance, const float *stats,
                           int64_t rows, int64_t c, float epsilon)
{
    const double share = rows > 1 ? (double)rows / (double)(rows - 1) : 1;
    (void)kernels;
    memcpy(mean, stats, (size_t)c * sizeof *mean);
    for (int64_t l = 0; l < c; l++) {
        const double inverse = (double)stats[c + l], found = 1 / (inverse * inverse) - (double)epsilon;
        variance[l] = found > 0 ? (float)(found * share) : 0;
    }
}
