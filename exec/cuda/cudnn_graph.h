/*
 * A graph of operations for cuDNN's backend interface.
 *
 * Tensors have four dimensions. Real tensors have a number, under which memory is given later; virtual tensors exist
 * only between operations. The first error is kept, later calls do nothing, and
 */
#ifndef SPILLWAY_EXEC_CUDA_CUDNN_GRAPH_H
#define SPILLWAY_EXEC_CUDA_CUDNN_GRAPH_H

#include <stdbool.h>

#include "exec/cuda/cudnn_library.h"

enum { CUDNN_GRAPH_DESCRIPTORS = 160, CUDNN_GRAPH_OPERATIONS = 32, CUDNN_GRAPH_REASON = 320 };

struct cudnn_graph {
    const struct cudnn_library *library;
    cudnnBackendDescriptor_t owned[CUDNN_GRAPH_DESCRIPTORS];
    cudnnBackendDescriptor_t operations[CUDNN_GRAPH_OPERATIONS];
    int owned_count, operation_count;
    int64_t virtual_count;
    char failure[CUDNN_GRAPH_REASON]; /* "": no error so far */
};

struct cudnn_tensor {
    cudnnBackendDescriptor_t descriptor;
    int64_t sizes[4], strides[4];
};

/* Releases the graph's descriptors; plans made of it stay valid. A zeroed graph with `library` set is empty. */
void cudnn_graph_release(struct cudnn_graph *graph);

/* --- tensors; numbers are positive ------------------------------------------------------------- */

struct cudnn_tensor cudnn_array(struct cudnn_graph *graph, int64_t number, cudnnDataType_t type,
                                const int64_t sizes[4], const int64_t strides[4]);
/* Returns a float in host memory, read when the graph is carried out. */
struct cudnn_tensor cudnn_scalar(struct cudnn_graph *graph, int64_t number);
/* Returns a tensor without gaps, the last dimension innermost. */
struct cudnn_tensor cudnn_virtual(struct cudnn_graph *graph, cudnnDataType_t type,
                                  const int64_t sizes[4]);

/* --- operations -------------------------------------------------------------------------------- */

/* Adds c = a b over the last two dimensions, accumulated in fp32; groups of heads of a may share a head of b. */
void cudnn_matmul(struct cudnn_graph *graph, struct cudnn_tensor a, struct cudnn_tensor b,
                  struct cudnn_tensor c);

struct cudnn_pointwise {
    cudnnPointwiseMode_t mode;
    cudnnDataType_t precision;
    const struct cudnn_tensor *x, *b, *t; /* t: the selector of CUDNN_POINTWISE_BINARY_SELECT; NULL: none */
    int64_t axis;              /* for CUDNN_POINTWISE_GEN_INDEX */
};
void cudnn_pointwise(struct cudnn_graph *graph, const struct cudnn_pointwise *operation,
                     struct cudnn_tensor y);

/* Reduces in fp32 over the dimensions in which y is smaller. */
void cudnn_reduce(struct cudnn_graph *graph, cudnnReduceTensorOp_t mode, struct cudnn_tensor x,
                  struct cudnn_tensor y);

/* Returns a virtual tensor: x with its last two dimensions exchanged. */
struct cudnn_tensor cudnn_transposed(struct cudnn_graph *graph, struct cudnn_tensor x,
                                     cudnnDataType_t type);

/* --- plans ------------------------------------------------------------------------------------- */

/* Either a handle of the current device, or a finalized CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR; the other is NULL. */
struct cudnn_target {
    cudnnHandle_t handle;
    cudnnBackendDescriptor_t device;
};

/*
 * Returns the first plan proposed by the library that gives equal bits for equal calls and needs at most
 * `workspace_bytes`. *least_bytes is the smallest workspace of any plan, also on failure; UINT64_MAX: no plan. NULL on
 * failure, with graph->failure set. The caller destroys the plan.
 */
cudnnBackendDescriptor_t cudnn_graph_plan(struct cudnn_graph *graph,
                                          const struct cudnn_target *target,
                                          uint64_t workspace_bytes, uint64_t *least_bytes);

#endif
