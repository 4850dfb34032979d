/*
 * ViT's kernels other than norms, products and attention: moving rows.
 *
 *     patches          pixels(B,channels,side P,side P) -> (B,side^2,channels P P), so that
 *                      embedding them (a convolution whose stride is its size) is one product
 *     join             class token, patches and positions become the first block's input
 *     first            the class tokens leave the last block; in the backward pass all other tokens
 *                      have no gradient
 *
 * Each is bound by memory: two accesses of 4 bytes per number (join: three). Gradients of positions
 * are column sums over the samples; the class token's gradient equals its position's.
 */
#include "exec/kernels/kernels_host.h"

void host_patches(const struct kernels *kernels, float *out, const float *images, int64_t b,
                  int64_t channels, int64_t image, int64_t patch)
{
    int64_t side = image / patch, area = patch * patch;
#pragma omp parallel for schedule(static) num_threads((int)kernels->threads) \
    if (b * channels * image * image > HOST_SERIAL)
    for (int64_t index = 0; index < b * side * side; index++) {
        int64_t sample = index / (side * side), place = index % (side * side);
        const float *corner = images + sample * channels * image * image +
                              place / side * patch * image + place % side * patch;
        for (int64_t channel = 0; channel < channels; channel++)
            for (int64_t row = 0; row < patch; row++)
                memcpy(out + (index * channels + channel) * area + row * patch,
                       corner + (channel * image + row) * image, (size_t)patch * sizeof *out);
    }
}

CLONES static void add_rows(float *restrict sum, const float *x, const float *y, int64_t c)
{
    for (int64_t i = 0; i < c; i++) sum[i] = x[i] + y[i];
}

void host_join_forward(const struct kernels *kernels, float *x, const float *patches,
                       const float *class_token, const float *positions, int64_t b, int64_t t,
                       int64_t c)
{
#pragma omp parallel for schedule(static) num_threads((int)kernels->threads) \
    if (b * t * c > HOST_SERIAL)
    for (int64_t row = 0; row < b * t; row++) {
        int64_t sample = row / t, token = row % t;
        const float *from =
            token == 0 ? class_token : patches + (sample * (t - 1) + token - 1) * c;
        add_rows(x + row * c, from, positions + token * c, c);
    }
}

void host_join_backward(const struct kernels *kernels, float *dpatches, float *dclass_token,
                        float *dpositions, const float *dx, int64_t b, int64_t t, int64_t c)
{
    size_t bytes = (size_t)((t - 1) * c) * sizeof *dx;
#pragma omp parallel for schedule(static) num_threads((int)kernels->threads) \
    if (b * t * c > HOST_SERIAL)
    for (int64_t sample = 0; sample < b; sample++)
        memcpy(dpatches + sample * (t - 1) * c, dx + (sample * t + 1) * c, bytes);
    host_column_sums(kernels, dpositions, dx, b, t * c, false);
    memcpy(dclass_token, dpositions, (size_t)c * sizeof *dx);
}

void host_first_forward(const struct kernels *kernels, float *out, const float *x, int64_t b,
                        int64_t t, int64_t c)
{
    (void)kernels;
    for (int64_t sample = 0; sample < b; sample++)
        memcpy(out + sample * c, x + sample * t * c, (size_t)c * sizeof *x);
}

void host_first_backward(const struct kernels *kernels, float *dx, const float *dout, int64_t b,
                         int64_t t, int64_t c)
{
#pragma omp parallel for schedule(static) num_threads((int)kernels->threads) \
    if (b * t * c > HOST_SERIAL)
    for (int64_t sample = 0; sample < b; sample++) {
        memcpy(dx + sample * t * c, dout + sample * c, (size_t)c * sizeof *dx);
        memset(dx + (sample * t + 1) * c, 0, (size_t)((t - 1) * c) * sizeof *dx);
    }
}
