/*
 * The kernels of a CUDA device, behind the table of exec/kernels/kernels.h.
 *
 * Calls enqueue on one stream and return; operands are device memory. Beyond what exec/kernels/kernels.h
 * says: bits may depend on how the operands of linear layers are aligned, up to CUDA_OPERAND_ALIGNMENT
 * bytes, where their sizes do not settle it (kernels_cuda_products.c). Equal calls give equal bits on
 * one model of GPU with one version of the library,
 * not across those.
 */
#ifndef SPILLWAY_EXEC_KERNELS_CUDA_H
#define SPILLWAY_EXEC_KERNELS_CUDA_H

#include <cuda_runtime_api.h>

#include "exec/kernels/kernels.h"

enum { CUDA_OPERAND_ALIGNMENT = 64 };

/* For the current device; `tf32`: products round their operands to 10 bits of mantissa and run on
 * tensor cores. All kernels are loaded when it returns. The caller frees it with
 * kernels_cuda_destroy() when the stream is idle. Errors: STATUS_NO_MEMORY, STATUS_DEVICE. */
MUST_CHECK enum status kernels_cuda_create(cudaStream_t stream, bool tf32, struct kernels **out,
                                           struct error *err);
void kernels_cuda_destroy(struct kernels *kernels);

/* The table that created ones are copies of; without a context it must not be called. */
const struct kernels *kernels_cuda_table(void);

/* For comparisons, of kernels that have not been called: attention in bf16 is never given to cuDNN. */
void kernels_cuda_leave_out_cudnn(struct kernels *kernels);

/* What went wrong first: "cuda_norm_forward: invalid configuration argument". NULL: nothing so far.
 * To be asked on the thread that calls the kernels; borrowed. */
const char *kernels_cuda_failure(const struct kernels *kernels);

#endif
