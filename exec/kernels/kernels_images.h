/*
 * Kernels of convolutional networks, on hosts and in fp32.
 *
 * Images are stored pixel by pixel: (b, side, side, channels). Sums over pixels and samples have an order that depends
 * only on the shape. Those inside the library's convolutions may depend on the number of threads, too: with an equal
 * number, equal calls give equal bits.
 */
#ifndef SPILLWAY_EXEC_KERNELS_KERNELS_IMAGES_H
#define SPILLWAY_EXEC_KERNELS_KERNELS_IMAGES_H

#include <stdbool.h>
#include <stdint.h>

struct kernels;

/* x(b, side_in, side_in, in) and y(b, side_out, side_out, out); the weight is (out, in / groups, kernel, kernel). */
struct kernel_convolution {
    int64_t b, in, out, side_in, side_out, kernel, stride, padding, groups;
};

/* x(b, side_in, side_in, c) and y(b, side_out, side_out, c). */
struct kernel_pool {
    int64_t b, c, side_in, side_out, kernel, stride, padding;
};

/* Most channels of a batch norm. */
enum { KERNEL_CHANNELS_MAX = 1 << 16 };

struct kernels_images {
    /* y = x * w, plus bias(out) unless that is NULL */
    void (*convolve)(const struct kernels *kernels, float *y, const float *x, const float *w, const float *bias,
                     const struct kernel_convolution *shape);
    /* The gradient of x. */
    void (*convolve_input)(const struct kernels *kernels, float *dx, const float *dy, const float *w,
                           const struct kernel_convolution *shape);
    /* The gradient of the weight. */
    void (*convolve_weight)(const struct kernels *kernels, float *dw, const float *dy, const float *x,
                            const struct kernel_convolution *shape);
    /* y(rows, c) += bias(c), and dbias(c) = sums of the rows of dy */
    void (*add_bias)(const struct kernels *kernels, float *y, const float *bias, int64_t rows, int64_t c);
    void (*bias_backward)(const struct kernels *kernels, float *dbias, const float *dy, int64_t rows, int64_t c);

    /* stats(2, c) = mean and 1 / std of each column of x(rows, c); y = (x - mean) / std * w + b, unless y is NULL */
    void (*batch_norm)(const struct kernels *kernels, float *y, float *stats, const float *x, const float *w,
                       const float *b, int64_t rows, int64_t c, float epsilon);
    /* y, from given means and variances */
    void (*batch_norm_apply)(const struct kernels *kernels, float *y, const float *x, const float *mean,
                             const float *variance, const float *w, const float *b, int64_t rows, int64_t c,
                             float epsilon);
    /* dx (adds: +=) the gradient through the norm, unless dx is NULL; it may be dy. dw, db: written */
    void (*batch_norm_backward)(const struct kernels *kernels, float *dx, float *dw, float *db, const float *dy,
                                const float *x, const float *stats, const float *w, int64_t rows, int64_t c, bool adds);
    /* Writes the means, and the unbiased variances, of which stats has 1 / std. */
    void (*batch_norm_means)(const struct kernels *kernels, float *mean, float *variance, const float *stats,
                             int64_t rows, int64_t c, float epsilon);

    /* The largest pixel of a window, the first of equal ones; y may be NULL. `index`: which pixel of the image. */
    void (*max_pool)(const struct kernels *kernels, float *y, int32_t *index, const float *x,
                     const struct kernel_pool *shape);
    void (*max_pool_backward)(const struct kernels *kernels, float *dx, const float *dy, const int32_t *index,
                              const struct kernel_pool *shape, bool adds);
    /* The means of side_out x side_out windows that cover the image: torch.nn.AdaptiveAvgPool2d's. */
    void (*mean_pool)(const struct kernels *kernels, float *y, const float *x, const struct kernel_pool *shape);
    void (*mean_pool_backward)(const struct kernels *kernels, float *dx, const float *dy,
                               const struct kernel_pool *shape, bool adds);

    /* to = (adds: +=) rows of `width` numbers, to_row and from_row numbers apart. */
    void (*move_rows)(const struct kernels *kernels, float *to, int64_t to_row, const float *from, int64_t from_row,
                      int64_t rows, int64_t width, bool adds);
    /* to(b, columns, rows) = (adds: +=) each sample's from(b, rows, columns) transposed */
    void (*transpose)(const struct kernels *kernels, float *to, const float *from, int64_t b, int64_t rows,
                      int64_t columns, bool adds);
};

#endif
