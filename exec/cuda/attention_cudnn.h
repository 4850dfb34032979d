/*
 * Attention of bf16 jobs by cuDNN, if it is installed and supports the shape.
 *
 * The choice is made for a shape before its first computation, for both directions, and stays: bits must not change
 * between steps.
 */
#ifndef SPILLWAY_EXEC_CUDA_ATTENTION_CUDNN_H
#define SPILLWAY_EXEC_CUDA_ATTENTION_CUDNN_H

#include "exec/cuda/cudnn_graph.h"
#include "exec/kernels/kernels_attention.h"

struct attention_cudnn;

/* Creates attention for a stream of the current device. The caller destroys it when the stream is idle. Errors:
 * STATUS_DEVICE when cuDNN is not available, after which callers continue without it. */
MUST_CHECK enum status attention_cudnn_create(cudaStream_t stream, struct attention_cudnn **out,
                                              struct error *err);
void attention_cudnn_destroy(struct attention_cudnn *cudnn); /* NULL does nothing */

/* 91900 is 9.19.0. */
size_t attention_cudnn_version(const struct attention_cudnn *cudnn);

/* Makes the choice for this shape; pointers are ignored. Returns NULL when cuDNN computes it, else the reason,
 * which never changes. Borrowed. */
const char *attention_cudnn_settle(struct attention_cudnn *cudnn, const struct kernel_attention *shape);

/* Enqueue attention of a shape that cuDNN computes. `attention` is rounded. Return NULL, or a borrowed error text. */
const char *attention_cudnn_forward(struct attention_cudnn *cudnn,
                                    const struct kernel_attention *attention);
const char *attention_cudnn_backward(struct attention_cudnn *cudnn,
                                     const struct kernel_attention *attention);

/*
 * Describes attention of a shape on a device that need not exist: descriptors, graph, choice of engine, plan. All
 * outputs have two entries, forward and backward.
 *
 * device           CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, finalized; NULL: only descriptors are made
 *   wants_bytes      out: smallest workspace that fits the planner's grant; UINT64_MAX: no plan
 *   why              out: reason of a failure; "" on success
 */
void attention_cudnn_describe(const struct cudnn_library *library,
                              cudnnBackendDescriptor_t device, const struct kernel_attention *shape,
                              uint64_t wants_bytes[2], char why[2][CUDNN_GRAPH_REASON]);

#endif
