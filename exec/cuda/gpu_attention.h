/* Attention in bf16 on a GPU: what computes it, how fast, and how far that is from the host's kernels. */
#ifndef SPILLWAY_EXEC_GPU_ATTENTION_H
#define SPILLWAY_EXEC_GPU_ATTENTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct json_out;

struct gpu_attention_shape {
    int64_t b, t, h, kv, d;
    bool causal;
    bool beside_host; /* is computed by the host's kernels too, on all cores: small ones */
};

/*
 * An array of objects, one for each shape: its sizes; "usual" and "own", each with who computes it, FLOP/s
 * there and back as models/kernel/work.h counts them, and, of those beside the host's, the largest difference of
 * out, dq, dk and dv from these, over the largest number there; and the host's FLOP/s. "usual" is what a
 * job gets, by cuDNN where that can; "own" are our own kernels.
 *
 * Errors: STATUS_DEVICE, STATUS_NO_MEMORY. Only in a program that was built with CUDA.
 */
MUST_CHECK enum status gpu_attention_write(struct json_out *json, const char *key,
                                           const struct gpu_attention_shape *shapes,
                                           uint32_t count, struct error *err);

#endif
