/*
 * Pooling. Samples are shared out among threads; within a sample a gradient is added in the order of windows.
 */
#include "exec/kernels/kernels_host.h"

#include <math.h>

/* A window: pixels [begin, end) of a side that are in the image. */
struct window {
    int64_t begin, end;
};

static struct window max_window(const struct kernel_pool *p, int64_t i)
{
    const int64_t begin = i * p->stride - p->padding, end = begin + p->kernel;
    return (struct window){begin < 0 ? 0 : begin, end > p->side_in ? p->side_in : end};
}

static struct window mean_window(const struct kernel_pool *p, int64_t i)
{
    return (struct window){i * p->side_in / p->side_out, ((i + 1) * p->side_in + p->side_out - 1) / p->side_out};
}

/* --- the largest ------------------------------------------------------------------------------ */

CLONES static void take_larger(float *best, int32_t *index, const float *x, int64_t c, int32_t number)
{
    for (int64_t l = 0; l < c; l++) {
        index[l] = x[l] > best[l] ? number : index[l];
        best[l] = x[l] > best[l] ? x[l] : best[l];
    }
}

/* Takes the largest of a window's pixels: channels at a time, so that `best` may be elsewhere than in y. */
static void pool_window(const struct kernel_pool *p, float *y, int32_t *index, const float *image, struct window rows,
                        struct window columns)
{
    enum { CHANNELS = 256 };
    for (int64_t first = 0; first < p->c; first += CHANNELS) {
        const int64_t count = host_min(CHANNELS, p->c - first);
        float best[CHANNELS];
        for (int64_t l = 0; l < count; l++) best[l] = -INFINITY;
        const int64_t start = rows.begin * p->side_in + columns.begin; /* also where no number is larger */
        for (int64_t l = 0; l < count; l++) index[first + l] = (int32_t)start;
        for (int64_t row = rows.begin; row < rows.end; row++)
            for (int64_t column = columns.begin; column < columns.end; column++) {
                const int64_t pixel = row * p->side_in + column;
                take_larger(best, index + first, image + pixel * p->c + first, count, (int32_t)pixel);
            }
        if (y) memcpy(y + first, best, (size_t)count * sizeof *y);
    }
}

void host_max_pool(const struct kernels *kernels, float *y, int32_t *index, const float *x,
                   const struct kernel_pool *p)
{
    const int64_t area = p->side_out * p->side_out;
#pragma omp parallel for schedule(static) num_threads((int)kernels->threads) if (p->b * area * p->c > HOST_SERIAL)
    for (int64_t i = 0; i < p->b * area; i++) {
        const int64_t sample = i / area, row = i % area / p->side_out, column = i % p->side_out;
        pool_window(p, y ? y + i * p->c : NULL, index + i * p->c, x + sample * p->side_in * p->side_in * p->c,
                    max_window(p, row), max_window(p, column));
    }
}

static void clear(float *dx, int64_t n, bool adds)
{
    if (!adds) memset(dx, 0, (size_t)n * sizeof *dx);
}

void host_max_pool_backward(const struct kernels *kernels, float *dx, const float *dy, const int32_t *index,
                            const struct kernel_pool *p, bool adds)
{
    const int64_t in = p->side_in * p->side_in * p->c, out = p->side_out * p->side_out * p->c;
#pragma omp parallel for schedule(static) num_threads((int)kernels->threads) if (p->b * in > HOST_SERIAL)
    for (int64_t sample = 0; sample < p->b; sample++) {
        float *const own = dx + sample * in;
        clear(own, in, adds);
        for (int64_t i = sample * out; i < (sample + 1) * out; i += p->c)
            for (int64_t l = 0; l < p->c; l++) own[index[i + l] * p->c + l] += dy[i + l];
    }
}

/* --- the mean --------------------------------------------------------------------------------- */

CLONES static void add_scaled(float *y, const float *x, float factor, int64_t c)
{
    for (int64_t l = 0; l < c; l++) y[l] += factor * x[l];
}

/* Goes over the pixels of a window of the mean: y += factor * x, or the reverse. */
static void mean_of_window(const struct kernel_pool *p, float *y, const float *dy, const float *image, float *d_image,
                           struct window rows, struct window columns)
{
    const float factor = 1 / (float)((rows.end - rows.begin) * (columns.end - columns.begin));
    for (int64_t row = rows.begin; row < rows.end; row++)
        for (int64_t column = columns.begin; column < columns.end; column++) {
            const int64_t pixel = (row * p->side_in + column) * p->c;
            if (y) add_scaled(y, image + pixel, factor, p->c);
            else add_scaled(d_image + pixel, dy, factor, p->c);
        }
}

void host_mean_pool(const struct kernels *kernels, float *y, const float *x, const struct kernel_pool *p)
{
    const int64_t area = p->side_out * p->side_out, in = p->side_in * p->side_in * p->c;
#pragma omp parallel for schedule(static) num_threads((int)kernels->threads) if (p->b * in > HOST_SERIAL)
    for (int64_t i = 0; i < p->b * area; i++) {
        memset(y + i * p->c, 0, (size_t)p->c * sizeof *y);
        mean_of_window(p, y + i * p->c, NULL, x + i / area * in, NULL, mean_window(p, i % area / p->side_out),
                       mean_window(p, i % p->side_out));
    }
}

void host_mean_pool_backward(const struct kernels *kernels, float *dx, const float *dy, const struct kernel_pool *p,
                             bool adds)
{
    const int64_t area = p->side_out * p->side_out, in = p->side_in * p->side_in * p->c;
#pragma omp parallel for schedule(static) num_threads((int)kernels->threads) if (p->b * in > HOST_SERIAL)
    for (int64_t sample = 0; sample < p->b; sample++) {
        clear(dx + sample * in, in, adds);
        for (int64_t i = 0; i < area; i++)
            mean_of_window(p, NULL, dy + (sample * area + i) * p->c, NULL, dx + sample * in,
                           mean_window(p, i / p->side_out), mean_window(p, i % p->side_out));
    }
}
