/* Measures attention in bf16 on a GPU. */
#ifndef SPILLWAY_EXEC_CUDA_GPU_ATTENTION_H
#define SPILLWAY_EXEC_CUDA_GPU_ATTENTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct json_out;

struct gpu_attention_shape {
    int64_t b, t, h, kv, d;
    bool causal;
    bool beside_host; /* small shape, also computed by the host */
};

/*
 * Writes an array with one object per shape: its sizes, "usual" (what a job gets) and "own" (our kernels), each with
 * the implementation, the FLOP/s of both directions by models/kernel/work.h, and, if the host computes the shape, the
 * largest difference of out, dq, dk and dv relative to the host's largest number; and the host's FLOP/s. "usual" is
 * the implementation that a job gets, cuDNN if it supports the shape; "own" are our kernels.
 *
 * Errors: STATUS_DEVICE. Only in a program built with CUDA.
 */
MUST_CHECK enum status gpu_attention_write(struct json_out *json, const char *key,
                                           const struct gpu_attention_shape *shapes,
                                           uint32_t count, struct error *err);

#endif
