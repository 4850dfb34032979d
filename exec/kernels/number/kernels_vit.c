/*
 * ViT's kernels other than norms, products and attention: moving rows.
 *
 *     patches          pixels(B,channels,side P,side P) -> (B,side^2,channels P P), so that
 *                      embedding them (a convolution whose stride is its size) is one product
 *     join             class token, patches and positions become the first block's input
 *     first            the class tokens leave the last block; in the backward pass all other tokens
 *                      have no gradient
 *
 * Compiled for fp32 and for bf16 (kernels_host.h). Each is bound by memory: two accesses per number (join: three).
 * Gradients of positions are column sums over the samples; the class token's gradient equals its position's.
 */
#include "exec/kernels/kernels_host.h"

CLONES static void store_row(kernel_number *restrict out, const float *restrict x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) out[i] = host_stored(x[i]);
}

void HOST(patches)(const struct kernels *kernels, kernel_number *out, const float *images, int64_t b,
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
                store_row(out + (index * channels + channel) * area + row * patch,
                          corner + (channel * image + row) * image, patch);
    }
}

CLONES static void add_rows(kernel_number *restrict sum, const kernel_number *x, const kernel_number *y, int64_t c)
{
    for (int64_t i = 0; i < c; i++) sum[i] = host_stored(host_wide(x[i]) + host_wide(y[i]));
}

void HOST(join_forward)(const struct kernels *kernels, kernel_number *x, const kernel_number *patches,
                       const kernel_number *class_token, const kernel_number *positions, int64_t b, int64_t t,
                       int64_t c)
{
#pragma omp parallel for schedule(static) num_threads((int)kernels->threads) \
    if (b * t * c > HOST_SERIAL)
    for (int64_t row = 0; row < b * t; row++) {
        int64_t sample = row / t, token = row % t;
        const kernel_number *from =
            token == 0 ? class_token : patches + (sample * (t - 1) + token - 1) * c;
        add_rows(x + row * c, from, positions + token * c, c);
    }
}

void HOST(join_backward)(const struct kernels *kernels, kernel_number *dpatches, float *dclass_token,
                        float *dpositions, const kernel_number *dx, int64_t b, int64_t t, int64_t c)
{
    size_t bytes = (size_t)((t - 1) * c) * sizeof *dx;
#pragma omp parallel for schedule(static) num_threads((int)kernels->threads) \
    if (b * t * c > HOST_SERIAL)
    for (int64_t sample = 0; sample < b; sample++)
        memcpy(dpatches + sample * (t - 1) * c, dx + (sample * t + 1) * c, bytes);
    HOST(column_sums)(kernels, dpositions, dx, b, t * c, false);
    memcpy(dclass_token, dpositions, (size_t)c * sizeof *dclass_token);
}

void HOST(first_forward)(const struct kernels *kernels, kernel_number *out, const kernel_number *x, int64_t b,
                        int64_t t, int64_t c)
{
    (void)kernels;
    for (int64_t sample = 0; sample < b; sample++)
        memcpy(out + sample * c, x + sample * t * c, (size_t)c * sizeof *x);
}

void HOST(first_backward)(const struct kernels *kernels, kernel_number *dx, const kernel_number *dout, int64_t b,
                         int64_t t, int64_t c)
{
#pragma omp parallel for schedule(static) num_threads((int)kernels->threads) \
    if (b * t * c > HOST_SERIAL)
    for (int64_t sample = 0; sample < b; sample++) {
        memcpy(dx + sample * t * c, dout + sample * c, (size_t)c * sizeof *dx);
        memset(dx + (sample * t + 1) * c, 0, (size_t)((t - 1) * c) * sizeof *dx);
    }
}
