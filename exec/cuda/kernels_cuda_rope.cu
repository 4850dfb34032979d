/*
 * Rotary positions: rotates the pairs (i, i + D/2) of each head by position * frequency(i), in place, with the angles
 * of kernels_rope.c.
 *
 * A block takes a token. A thread computes the sine and cosine of one pair once, for all its heads; if there are fewer
 * pairs than threads, rows of threads share the heads.
 *
 * Bytes: 16 per pair. Two functions in double per token and pair are little for some 40 heads even at 1/64 of the
 * rate.
 */
#include "exec/cuda/kernels_cuda_device.cuh"

#include "exec/cuda/kernels_cuda_launch.h"

enum { THREADS = CUDA_ROPE_PAIRS };

__device__ static void turn_heads(float *x, int64_t heads, int64_t d, int first_head, int step,
                                  float cosine, float sine)
{
    for (int64_t head = first_head; head < heads; head += step) {
        float *const pair = x + head * d;
        const float first = pair[0], second = pair[d / 2];
        pair[0] = first * cosine - second * sine;
        pair[d / 2] = second * cosine + first * sine;
    }
}

__global__ static void rope(struct cuda_rope a)
{
    const int rows = THREADS / a.count, row = (int)threadIdx.x / a.count;
    const int pair = (int)threadIdx.x % a.count;
    if (row >= rows) return;
    const int64_t token = blockIdx.x;
    const float angle = (float)(a.begin + token % a.t) * a.frequencies[pair];
    const double sign = a.back ? -1.0 : 1.0;
    const float cosine = (float)cos((double)angle), sine = (float)(sign * sin((double)angle));
    const int64_t at = a.first + pair;
    turn_heads(a.q + token * a.h * a.d + at, a.h, a.d, row, rows, cosine, sine);
    turn_heads(a.k + token * a.kv * a.d + at, a.kv, a.d, row, rows, cosine, sine);
}

/* --- launchers ------------------------------------------------------------------------------------ */

extern "C" cudaError_t cuda_rope(cudaStream_t stream, const struct cuda_rope *arguments)
{
    return launch(rope, arguments->tokens, dim3(THREADS), 0, stream, *arguments);
}

extern "C" cudaError_t cuda_rope_load(void)
{
    struct cudaFuncAttributes attributes;
    return cudaFuncGetAttributes(&attributes, (const void *)rope);
}
