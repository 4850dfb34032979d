/* How fast a GPU copies and computes, for exec/cuda/gpu-check: plain rates, no profile. */
#ifndef SPILLWAY_EXEC_GPU_RATES_H
#define SPILLWAY_EXEC_GPU_RATES_H

#include "base/error.h"

struct json_out;

/* One object: the device, driver, clocks; copies from and to pinned memory, alone and both at once;
 * memory; optimizer steps and rounding; matrix products in fp32, tf32 and bf16; attention in fp32, and in
 * bf16 by cuDNN beside our own kernels beside the host's (exec/cuda/gpu_attention.h). Takes some thirty seconds and up to 4 GiB of device memory. Errors: STATUS_DEVICE, STATUS_NO_MEMORY. Only in a
 * program that was built with CUDA. */
MUST_CHECK enum status gpu_rates_write(struct json_out *json, struct error *err);

#endif
