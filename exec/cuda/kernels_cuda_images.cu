/*
 * ViT's kernels other than norms, products and attention: moving rows, as in kernels_vit.c.
 *
 * Each is bound by memory. A thread makes one number of the result; patches are read in runs of their width. Gradients
 * of positions are column sums (kernels_cuda_rows.cu); the class token's gradient equals its position's.
 */
#include "exec/cuda/kernels_cuda_device.cuh"

#include "exec/cuda/kernels_cuda_launch.h"

enum { THREADS = 256 };

__device__ static inline int64_t element()
{
    return (int64_t)blockIdx.x * THREADS + threadIdx.x;
}

/* Computes out(B,N,channels,patch,patch) from images(B,channels,image,image) */
__global__ static void cut_patches(float *out, const float *images, int64_t n, int64_t channels,
                                   int64_t image, int64_t patch)
{
    const int64_t i = element(), side = image / patch;
    if (i >= n) return;
    const int64_t column = i % patch, row = i / patch % patch;
    const int64_t channel = i / (patch * patch) % channels;
    const int64_t place = i / (patch * patch * channels), sample = place / (side * side);
    const int64_t y = place / side % side * patch + row, x = place % side * patch + column;
    out[i] = images[((sample * channels + channel) * image + y) * image + x];
}

__global__ static void join(float *x, const float *patches, const float *class_token,
                            const float *positions, int64_t n, int64_t t, int64_t c)
{
    const int64_t i = element();
    if (i >= n) return;
    const int64_t column = i % c, token = i / c % t, sample = i / (c * t);
    const float from = token == 0 ? class_token[column]
                                  : patches[(sample * (t - 1) + token - 1) * c + column];
    x[i] = from + positions[token * c + column];
}

/* Computes dpatches(B,T-1,C) from dx(B,T,C) */
__global__ static void without_class(float *dpatches, const float *dx, int64_t n, int64_t t,
                                     int64_t c)
{
    const int64_t i = element(), rest = (t - 1) * c;
    if (i < n) dpatches[i] = dx[i / rest * t * c + c + i % rest];
}

__global__ static void take_first(float *out, const float *x, int64_t n, int64_t t, int64_t c)
{
    const int64_t i = element();
    if (i < n) out[i] = x[i / c * t * c + i % c];
}

__global__ static void give_first(float *dx, const float *dout, int64_t n, int64_t t, int64_t c)
{
    const int64_t i = element();
    if (i < n) dx[i] = i / c % t == 0 ? dout[i / (c * t) * c + i % c] : 0.0f;
}

/* --- launchers ------------------------------------------------------------------------------------ */

extern "C" cudaError_t cuda_patches(cudaStream_t stream, float *out, const float *images,
                                    int64_t b, int64_t channels, int64_t image, int64_t patch)
{
    const int64_t n = b * channels * image * image;
    return launch(cut_patches, blocks_for(n, THREADS), dim3(THREADS), 0, stream, out, images, n,
                  channels, image, patch);
}

extern "C" cudaError_t cuda_join_forward(cudaStream_t stream, float *x, const float *patches,
                                         const float *class_token, const float *positions,
                                         int64_t b, int64_t t, int64_t c)
{
    return launch(join, blocks_for(b * t * c, THREADS), dim3(THREADS), 0, stream, x, patches,
                  class_token, positions, b * t * c, t, c);
}

extern "C" cudaError_t cuda_join_backward(cudaStream_t stream, float *dpatches,
                                          float *dclass_token, float *dpositions, const float *dx,
                                          int64_t b, int64_t t, int64_t c, void *workspace)
{
    cudaError_t failed = cudaSuccess;
    if (t > 1) {
        const int64_t n = b * (t - 1) * c;
        failed = launch(without_class, blocks_for(n, THREADS), dim3(THREADS), 0, stream, dpatches,
                        dx, n, t, c);
    }
    if (failed == cudaSuccess)
        failed = cuda_column_sums(stream, dpositions, dx, b, t * c, false, workspace);
    if (failed == cudaSuccess)
        failed = cudaMemcpyAsync(dclass_token, dpositions, (size_t)c * sizeof *dpositions,
                                 cudaMemcpyDeviceToDevice, stream);
    return failed;
}

extern "C" cudaError_t cuda_first_forward(cudaStream_t stream, float *out, const float *x,
                                          int64_t b, int64_t t, int64_t c)
{
    return launch(take_first, blocks_for(b * c, THREADS), dim3(THREADS), 0, stream, out, x, b * c,
                  t, c);
}

extern "C" cudaError_t cuda_first_backward(cudaStream_t stream, float *dx, const float *dout,
                                           int64_t b, int64_t t, int64_t c)
{
    return launch(give_first, blocks_for(b * t * c, THREADS), dim3(THREADS), 0, stream, dx, dout,
                  b * t * c, t, c);
}

extern "C" cudaError_t cuda_images_load(void)
{
    const void *const kernels[] = {(const void *)cut_patches, (const void *)join,
                                   (const void *)without_class, (const void *)take_first,
                                   (const void *)give_first};
    return cuda_load_kernels(kernels);
}
