/*
 * What the kernels' launchers need of the CUDA runtime, for a host without it; see emulator.cpp.
 * Device memory is host memory and everything has happened when a call returns.
 */
#ifndef SPILLWAY_TESTS_EMULATOR_RUNTIME_API_H
#define SPILLWAY_TESTS_EMULATOR_RUNTIME_API_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cudaError {
    cudaSuccess,
    cudaErrorInvalidValue,
    cudaErrorMemoryAllocation,
    cudaErrorInvalidConfiguration
} cudaError_t;
typedef struct emulated_stream *cudaStream_t;

cudaError_t cudaMalloc(void **out, size_t bytes);
cudaError_t cudaFree(void *memory);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
const char *cudaGetErrorString(cudaError_t error);

#ifdef __cplusplus
}
#endif

#endif
