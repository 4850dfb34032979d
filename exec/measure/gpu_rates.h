/* A GPU's plain rates of copies and computations, for exec/cuda/gpu-check. */
#ifndef SPILLWAY_EXEC_MEASURE_GPU_RATES_H
#define SPILLWAY_EXEC_MEASURE_GPU_RATES_H

#include "base/error.h"

struct json_out;

/* Writes an object: device, driver, clocks; copies from and to pinned memory, separately and at once; memory;
 * optimizer steps and rounding; products in fp32, tf32 and bf16; attention in fp32 and bf16. Takes some thirty
 * seconds and up to 4 GiB of device memory.
 * Errors: STATUS_DEVICE. Only in a program built with CUDA. */
MUST_CHECK enum status gpu_rates_write(struct json_out *json, struct error *err);

#endif
