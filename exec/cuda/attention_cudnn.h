/*
 * Attention of jobs in bf16 by cuDNN, where it is there and can.
 *
 * Whether it does is settled for a shape before it is computed for the first time, for both directions
 * at once and for as long as the device is open: bits must not change between two steps.
 */
#ifndef SPILLWAY_EXEC_ATTENTION_CUDNN_H
#define SPILLWAY_EXEC_ATTENTION_CUDNN_H

#include "exec/cuda/cudnn_graph.h"
#include "exec/kernels/kernels_attention.h"

struct attention_cudnn;

/* Of a stream of the current device. The caller destroys it when the stream is idle. Errors:
 * STATUS_NO_MEMORY; STATUS_DEVICE with why there is no cuDNN, which is no reason not to go on without. */
MUST_CHECK enum status attention_cudnn_create(cudaStream_t stream, struct attention_cudnn **out,
                                              struct error *err);
void attention_cudnn_destroy(struct attention_cudnn *cudnn); /* NULL is fine */

/* 91900 is 9.19.0. */
size_t attention_cudnn_version(const struct attention_cudnn *cudnn);

/* Settle it for attention of this shape, whose pointers do not matter. NULL: cuDNN does it; else why not,
 * the same each time. Borrowed. */
const char *attention_cudnn_settle(struct attention_cudnn *cudnn, const struct attention *shape);

/* Of a shape that cuDNN does: enqueue. `attention` is rounded. NULL, or what went wrong. Borrowed. */
const char *attention_cudnn_forward(struct attention_cudnn *cudnn,
                                    const struct attention *attention);
const char *attention_cudnn_backward(struct attention_cudnn *cudnn,
                                     const struct attention *attention);

/*
 * What a shape would come to on a device that need not be there, in both directions: descriptors, graph,
 * choice of engine, plan. Fills two of everything, forward and back.
 *
 * device           CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, finalized; NULL: only descriptors are made
 * wants_bytes      out: workspace of what fits into what the planner grants; UINT64_MAX: there is no plan
 * why              out: "" where it worked
 */
void attention_cudnn_describe(const struct cudnn_library *library,
                              cudnnBackendDescriptor_t device, const struct attention *shape,
                              uint64_t wants_bytes[2], char why[2][CUDNN_GRAPH_REASON]);

#endif
