/*
 * The part of CUDA C++ that our kernels use, for a compiler of plain C++; see emulator.cpp.
 */
#ifndef SPILLWAY_TESTS_EMULATOR_CUDA_RUNTIME_H
#define SPILLWAY_TESTS_EMULATOR_CUDA_RUNTIME_H

#include <functional>

#include <math.h>
#include <stdint.h>

#include "cuda_runtime_api.h"

struct dim3 {
    unsigned x, y, z;
    explicit dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
extern struct dim3 threadIdx, blockIdx, blockDim, gridDim;

#define __global__
#define __device__
#define __shared__ static /* blocks run one after the other */
#define __launch_bounds__(threads)
#define DYNAMIC_SHARED(name) float *const name = emulator_shared()

/* On the stream, in its turn; at once where there is no stream. */
cudaError_t emulator_enqueue(cudaStream_t stream, const std::function<void()> &work);
float *emulator_shared();
void emulator_run(int64_t blocks, struct dim3 threads, size_t shared_bytes,
                  const std::function<void()> &thread);

/* All threads of a block must come to the same barrier, and all lanes of a warp to an exchange; the
 * program is aborted when they do not. */
void __syncthreads();
int __syncthreads_count(int predicate);
float __shfl_xor_sync(unsigned mask, float value, int distance);
static inline void __nanosleep(unsigned) {}
static inline float __fmul_rn(float x, float y)
{
    return x * y;
}

template <typename... Parameters, typename... Arguments>
static cudaError_t launch(void (*kernel)(Parameters...), int64_t blocks, struct dim3 threads,
                          size_t shared_bytes, cudaStream_t stream, Arguments... arguments)
{
    if (blocks < 1 || blocks > INT32_MAX) return cudaErrorInvalidConfiguration;
    const std::function<void()> thread = [=]() { kernel(Parameters(arguments)...); };
    const cudaError_t failed = emulator_enqueue(
        stream, [=]() { emulator_run(blocks, threads, shared_bytes, thread); });
    const cudaError_t before = cudaGetLastError(); /* as launches of kernels are asked for */
    return failed != cudaSuccess ? failed : before;
}

struct cudaFuncAttributes {
    int sharedSizeBytes;
};
enum { cudaFuncAttributeMaxDynamicSharedMemorySize };
static inline cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *, const void *)
{
    return cudaSuccess;
}
static inline cudaError_t cudaFuncSetAttribute(const void *, int, int)
{
    return cudaSuccess;
}

#endif
