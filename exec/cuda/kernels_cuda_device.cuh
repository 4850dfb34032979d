/*
 * Shared code of the .cu files: launching, and sums over a warp and a block in a fixed order.
 *
 * A warp's sum uses butterfly exchange: all lanes end with equal bits, since a + b equals b + a. A block adds its
 * warps' sums in order. No result depends on timing.
 *
 * launch() takes a kernel's address so that tests can replace it by a function on the host
 * (tests/emulator/cuda_runtime.h).
 */
#ifndef SPILLWAY_EXEC_CUDA_KERNELS_CUDA_DEVICE_CUH
#define SPILLWAY_EXEC_CUDA_KERNELS_CUDA_DEVICE_CUH

#include <cuda_runtime.h>
#include <stdint.h>

enum { WARP = 32 };

#ifdef __CUDACC__

#define DYNAMIC_SHARED(name) extern __shared__ float name[]

template <typename... Parameters, typename... Arguments>
static cudaError_t launch(void (*kernel)(Parameters...), int64_t blocks, dim3 threads,
                          size_t shared_bytes, cudaStream_t stream, Arguments... arguments)
{
    if (blocks > INT32_MAX) return cudaErrorInvalidConfiguration;
    kernel<<<dim3((unsigned)blocks), threads, shared_bytes, stream>>>(Parameters(arguments)...);
    return cudaGetLastError();
}

#endif

/* Loads kernels now rather than at their first launch. */
template <size_t COUNT>
static cudaError_t cuda_load_kernels(const void *const (&kernels)[COUNT])
{
    struct cudaFuncAttributes attributes;
    for (const void *kernel : kernels) {
        const cudaError_t failed = cudaFuncGetAttributes(&attributes, kernel);
        if (failed != cudaSuccess) return failed;
    }
    return cudaSuccess;
}

static inline int64_t blocks_for(int64_t count, int64_t size)
{
    return (count + size - 1) / size;
}

__device__ static inline float warp_sum(float x)
{
    for (int distance = WARP / 2; distance > 0; distance /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, distance);
    return x;
}

__device__ static inline float warp_max(float x)
{
    for (int distance = WARP / 2; distance > 0; distance /= 2)
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, distance));
    return x;
}

/* Returns the sum to every thread; all threads of a block of THREADS must call it. */
template <int THREADS> __device__ static inline float block_sum(float x)
{
    __shared__ float sums[THREADS / WARP];
    x = warp_sum(x);
    __syncthreads(); /* all threads have read the previous call's sums */
    if (threadIdx.x % WARP == 0) sums[threadIdx.x / WARP] = x;
    __syncthreads();
    float sum = 0;
    for (int w = 0; w < THREADS / WARP; w++) sum += sums[w];
    return sum;
}

/* Returns the maximum. It may miss a NaN, as fmaxf() does; later sums keep it. */
template <int THREADS> __device__ static inline float block_max(float x)
{
    __shared__ float largest[THREADS / WARP];
    x = warp_max(x);
    __syncthreads();
    if (threadIdx.x % WARP == 0) largest[threadIdx.x / WARP] = x;
    __syncthreads();
    float result = largest[0];
    for (int w = 1; w < THREADS / WARP; w++) result = fmaxf(result, largest[w]);
    return result;
}

#endif
