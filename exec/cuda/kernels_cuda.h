/*
 * The kernels of a CUDA device, with the interface of exec/kernels/kernels.h.
 *
 * Operands are in device memory. Unlike there, bits may depend on the alignment of linear layers' operands up to
 * CUDA_OPERAND_ALIGNMENT bytes, if their sizes do not determine it (kernels_cuda_products.c). Equal bits hold for one
 * model of GPU and one version of the library.
 */
#ifndef SPILLWAY_EXEC_CUDA_KERNELS_CUDA_H
#define SPILLWAY_EXEC_CUDA_KERNELS_CUDA_H

#include <cuda_runtime_api.h>

#include "exec/kernels/kernels.h"

enum { CUDA_OPERAND_ALIGNMENT = 64 };

/* Creates kernels. `tf32`: products round their operands to 10 bits of mantissa and run on tensor cores. All
 * kernels are loaded when it returns. The caller frees them with kernels_cuda_destroy() when the stream is idle.
 * Errors: STATUS_DEVICE. */
MUST_CHECK enum status kernels_cuda_create(cudaStream_t stream, bool tf32, struct kernels **out,
                                           struct error *err);
void kernels_cuda_destroy(struct kernels *kernels);

/* Returns the table without context, which must not be called. */
const struct kernels *kernels_cuda_table(void);

/* Switches cuDNN off for comparisons, before any kernel is called. */
void kernels_cuda_leave_out_cudnn(struct kernels *kernels);

/* Returns the first error or NULL. Only on the thread that calls the kernels; borrowed. */
const char *kernels_cuda_failure(const struct kernels *kernels);

#endif
