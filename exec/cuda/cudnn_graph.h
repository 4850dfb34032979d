/*
 * A graph of operations as cuDNN's backend interface takes it: tensors, products, pointwise operations,
 * reductions and transpositions, each a descriptor.
 *
 * Tensors have four dimensions. Real ones have a number, under which memory is given when the graph is
 * carried out; virtual ones exist between operations only. The first thing that goes wrong is kept and
 * later calls do nothing, so that a graph can be written down without a check after each line; who asks for
 * the graph is told.
 */
#ifndef SPILLWAY_EXEC_CUDNN_GRAPH_H
#define SPILLWAY_EXEC_CUDNN_GRAPH_H

#include <stdbool.h>

#include "exec/cuda/cudnn_library.h"

enum { CUDNN_GRAPH_DESCRIPTORS = 160, CUDNN_GRAPH_OPERATIONS = 32, CUDNN_GRAPH_REASON = 320 };

struct cudnn_graph {
    const struct cudnn_library *library;
    cudnnBackendDescriptor_t owned[CUDNN_GRAPH_DESCRIPTORS];
    cudnnBackendDescriptor_t operations[CUDNN_GRAPH_OPERATIONS];
    int owned_count, operation_count;
    int64_t virtual_count;
    char failure[CUDNN_GRAPH_REASON]; /* "": none so far */
};

struct cudnn_tensor {
    cudnnBackendDescriptor_t descriptor;
    int64_t sizes[4], strides[4];
};

/* A zeroed graph with `library` is empty. Releases its descriptors; plans made of it live on. */
void cudnn_graph_release(struct cudnn_graph *graph);

/* --- tensors; numbers are positive ------------------------------------------------------------- */

struct cudnn_tensor cudnn_array(struct cudnn_graph *graph, int64_t number, cudnnDataType_t type,
                                const int64_t sizes[4], const int64_t strides[4]);
/* One float in the host's memory, read when the graph is carried out. */
struct cudnn_tensor cudnn_scalar(struct cudnn_graph *graph, int64_t number);
/* Without gaps, the last dimension innermost. */
struct cudnn_tensor cudnn_virtual(struct cudnn_graph *graph, cudnnDataType_t type,
                                  const int64_t sizes[4]);

/* --- operations -------------------------------------------------------------------------------- */

/* c = a b over the last two dimensions, added up in fp32; heads of b may be fewer: shared in groups. */
void cudnn_matmul(struct cudnn_graph *graph, struct cudnn_tensor a, struct cudnn_tensor b,
                  struct cudnn_tensor c);

struct cudnn_pointwise {
    cudnnPointwiseMode_t mode;
    cudnnDataType_t precision; /* computed in */
    const struct cudnn_tensor *x, *b, *t; /* t: what CUDNN_POINTWISE_BINARY_SELECT goes by; NULL: none */
    int64_t axis;              /* of CUDNN_POINTWISE_GEN_INDEX */
};
void cudnn_pointwise(struct cudnn_graph *graph, const struct cudnn_pointwise *operation,
                     struct cudnn_tensor y);

/* In fp32, over the dimensions in which y is smaller: to 1, or from heads to those that share. */
void cudnn_reduce(struct cudnn_graph *graph, cudnnReduceTensorOp_t mode, struct cudnn_tensor x,
                  struct cudnn_tensor y);

/* A virtual tensor with the last two dimensions of x exchanged, in `type`. */
struct cudnn_tensor cudnn_transposed(struct cudnn_graph *graph, struct cudnn_tensor x,
                                     cudnnDataType_t type);

/* --- plans ------------------------------------------------------------------------------------- */

/* What a plan is for: a handle of the current device, or the description of one that need not be there (a
 * finalized CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR); the other is NULL. */
struct cudnn_target {
    cudnnHandle_t handle;
    cudnnBackendDescriptor_t device;
};

/*
 * The first plan that the library proposes for the graph, gives equal bits for equal calls, and takes at
 * most `workspace_bytes`. *least_bytes: what the one with the least would take, also on failure;
 * UINT64_MAX: there was none. NULL on failure, with the reason in graph->failure. The caller destroys it.
 */
cudnnBackendDescriptor_t cudnn_graph_plan(struct cudnn_graph *graph,
                                          const struct cudnn_target *target,
                                          uint64_t workspace_bytes, uint64_t *least_bytes);

/* A descriptor of the graph that has not been finalized; NULL when something is wrong. */
cudnnBackendDescriptor_t cudnn_descriptor(struct cudnn_graph *graph,
                                          cudnnBackendDescriptorType_t type);

#endif
