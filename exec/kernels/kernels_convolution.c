/*
 * Convolutions by oneDNN (exec/kernels/kernels_convolution_library.h), and what goes with them: biases, and copies of
 * rows and of transposed images.
 *
 * The library fails only without memory for its code or scratch. The result is then not a number, and so the loss or a
 * step, which stops the job.
 */
#include "exec/kernels/kernels_host.h"

#include <math.h>

#include "exec/kernels/kernels_convolution_library.h"

static void fill(float *out, int64_t n, float value)
{
    for (int64_t i = 0; i < n; i++) out[i] = value;
}

static struct kernels_convolution_library *library_of(const struct kernels *kernels)
{
    const struct host_context *const context = kernels->context;
    return context->convolutions;
}

static void host_add_bias(const struct kernels *kernels, float *y, const float *bias, int64_t rows, int64_t c)
{
#pragma omp parallel for schedule(static) num_threads((int)kernels->threads) if (rows * c > HOST_SERIAL)
    for (int64_t row = 0; row < rows; row++) host_add_row(y + row * c, y + row * c, bias, c);
}

static void host_convolve(const struct kernels *kernels, float *y, const float *x, const float *w, const float *bias,
                          const struct kernel_convolution *c)
{
    const struct kernels_convolution_operands operands = {CONVOLUTION_FORWARD, x, w, y};
    const int64_t pixels = c->b * c->side_out * c->side_out;
    if (!kernels_convolution_library_compute(library_of(kernels), c, &operands)) fill(y, pixels * c->out, NAN);
    if (bias) host_add_bias(kernels, y, bias, pixels, c->out);
}

static void host_convolve_input(const struct kernels *kernels, float *dx, const float *dy, const float *w,
                                const struct kernel_convolution *c)
{
    const struct kernels_convolution_operands operands = {CONVOLUTION_INPUT, dx, w, dy};
    if (!kernels_convolution_library_compute(library_of(kernels), c, &operands))
        fill(dx, c->b * c->side_in * c->side_in * c->in, NAN);
}

static void host_convolve_weight(const struct kernels *kernels, float *dw, const float *dy, const float *x,
                                 const struct kernel_convolution *c)
{
    const struct kernels_convolution_operands operands = {CONVOLUTION_WEIGHT, x, dw, dy};
    if (!kernels_convolution_library_compute(library_of(kernels), c, &operands))
        fill(dw, c->out * (c->in / c->groups) * c->kernel * c->kernel, NAN);
}

static void host_move_rows(const struct kernels *kernels, float *to, int64_t to_row, const float *from,
                           int64_t from_row, int64_t rows, int64_t width, bool adds)
{
#pragma omp parallel for schedule(static) num_threads((int)kernels->threads) if (rows * width > HOST_SERIAL)
    for (int64_t row = 0; row < rows; row++) {
        float *const at = to + row * to_row;
        const float *const of = from + row * from_row;
        if (adds) host_add_row(at, at, of, width);
        else memcpy(at, of, (size_t)width * sizeof *to);
    }
}

static void host_transpose(const struct kernels *kernels, float *to, const float *from, int64_t b, int64_t rows,
                           int64_t columns, bool adds)
{
#pragma omp parallel for schedule(static) num_threads((int)kernels->threads) if (b * rows * columns > HOST_SERIAL)
    for (int64_t sample = 0; sample < b; sample++) {
        float *const out = to + sample * rows * columns;
        const float *const in = from + sample * rows * columns;
        for (int64_t column = 0; column < columns; column++)
            for (int64_t row = 0; row < rows; row++)
                out[column * rows + row] = (adds ? out[column * rows + row] : 0) + in[row * columns + column];
    }
}

const struct kernels_images host_images = {
    .convolve = host_convolve,
    .convolve_input = host_convolve_input,
    .convolve_weight = host_convolve_weight,
    .add_bias = host_add_bias,
    .bias_backward = host_bias_backward,
    .batch_norm = host_batch_norm,
    .batch_norm_apply = host_batch_norm_apply,
    .batch_norm_backward = host_batch_norm_backward,
    .batch_norm_means = host_batch_norm_means,
    .max_pool = host_max_pool,
    .max_pool_backward = host_max_pool_backward,
    .mean_pool = host_mean_pool,
    .mean_pool_backward = host_mean_pool_backward,
    .move_rows = host_move_rows,
    .transpose = host_transpose,
};
