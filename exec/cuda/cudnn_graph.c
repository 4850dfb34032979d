/*
 * Graphs for cuDNN, and the choice of a plan.
 *
 * The library's heuristics propose engine configurations, best first. Making a plan shows whether the library supports
 * the graph (it then compiles code). The first plan is taken that is deterministic and fits into the workspace.
 *
 * The choice depends only on the library, the device, the graph and the workspace.
 */
#include "exec/cuda/cudnn_graph.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"

/* --- what went wrong ------------------------------------------------------------------------------ */

static bool failed(const struct cudnn_graph *graph)
{
    return graph->failure[0] != '\0';
}

static bool worked(struct cudnn_graph *graph, const char *what, cudnnStatus_t status)
{
    if (status == CUDNN_STATUS_SUCCESS) return true;
    char reason[CUDNN_GRAPH_REASON - 64];
    cudnn_library_reason(graph->library, status, reason, sizeof reason);
    if (!failed(graph)) snprintf(graph->failure, sizeof graph->failure, "%.60s: %s", what, reason);
    return false;
}

/* --- descriptors ---------------------------------------------------------------------------------- */

static cudnnBackendDescriptor_t cudnn_descriptor(struct cudnn_graph *graph,
                                                 cudnnBackendDescriptorType_t type)
{
    cudnnBackendDescriptor_t descriptor = NULL;
    if (failed(graph)) return NULL;
    assert(graph->owned_count < CUDNN_GRAPH_DESCRIPTORS);
    if (!worked(graph, "a descriptor", graph->library->create_descriptor(type, &descriptor)))
        return NULL;
    graph->owned[graph->owned_count++] = descriptor;
    return descriptor;
}

void cudnn_graph_release(struct cudnn_graph *graph)
{
    while (graph->owned_count > 0)
        graph->library->destroy_descriptor(graph->owned[--graph->owned_count]);
    graph->operation_count = 0;
}

static void set(struct cudnn_graph *graph, cudnnBackendDescriptor_t descriptor,
                cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                const void *values, const char *what)
{
    if (!failed(graph))
        worked(graph, what,
               graph->library->set_attribute(descriptor, name, type, count, values));
}

static void set_descriptor(struct cudnn_graph *graph, cudnnBackendDescriptor_t descriptor,
                           cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t value,
                           const char *what)
{
    set(graph, descriptor, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value, what);
}

static void finalize(struct cudnn_graph *graph, cudnnBackendDescriptor_t descriptor,
                     const char *what)
{
    if (!failed(graph)) worked(graph, what, graph->library->finalize(descriptor));
}

/* --- tensors -------------------------------------------------------------------------------------- */

enum { TENSOR_REAL, TENSOR_VIRTUAL, TENSOR_BY_VALUE };
/* Rows of bf16 whose width is a multiple of 8 have it too. */
enum { TENSOR_ALIGNMENT = 16 };
enum { FIRST_VIRTUAL = 1000 };

static struct cudnn_tensor make_tensor(struct cudnn_graph *graph, int64_t number, int kind,
                                       cudnnDataType_t type, const int64_t sizes[4],
                                       const int64_t strides[4])
{
    static const char what[] = "a tensor";
    const int64_t alignment = TENSOR_ALIGNMENT;
    const bool yes = true;
    struct cudnn_tensor tensor;
    memcpy(tensor.sizes, sizes, sizeof tensor.sizes);
    memcpy(tensor.strides, strides, sizeof tensor.strides);
    tensor.descriptor = cudnn_descriptor(graph, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    cudnnBackendDescriptor_t const d = tensor.descriptor;
    set(graph, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type, what);
    set(graph, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, sizes, what);
    set(graph, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides, what);
    set(graph, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &number, what);
    set(graph, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment, what);
    if (kind == TENSOR_VIRTUAL)
        set(graph, d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &yes, what);
    if (kind == TENSOR_BY_VALUE)
        set(graph, d, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &yes, what);
    finalize(graph, d, what);
    return tensor;
}

struct cudnn_tensor cudnn_array(struct cudnn_graph *graph, int64_t number, cudnnDataType_t type,
                                const int64_t sizes[4], const int64_t strides[4])
{
    assert(number > 0 && number < FIRST_VIRTUAL);
    return make_tensor(graph, number, TENSOR_REAL, type, sizes, strides);
}

struct cudnn_tensor cudnn_scalar(struct cudnn_graph *graph, int64_t number)
{
    static const int64_t ones[4] = {1, 1, 1, 1};
    assert(number > 0 && number < FIRST_VIRTUAL);
    return make_tensor(graph, number, TENSOR_BY_VALUE, CUDNN_DATA_FLOAT, ones, ones);
}

struct cudnn_tensor cudnn_virtual(struct cudnn_graph *graph, cudnnDataType_t type,
                                  const int64_t sizes[4])
{
    const int64_t strides[4] = {sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1};
    return make_tensor(graph, FIRST_VIRTUAL + graph->virtual_count++, TENSOR_VIRTUAL, type, sizes,
                       strides);
}

/* --- operations ----------------------------------------------------------------------------------- */

static void add_operation(struct cudnn_graph *graph, cudnnBackendDescriptor_t operation,
                          const char *what)
{
    finalize(graph, operation, what);
    if (failed(graph)) return;
    assert(graph->operation_count < CUDNN_GRAPH_OPERATIONS);
    graph->operations[graph->operation_count++] = operation;
}

void cudnn_matmul(struct cudnn_graph *graph, struct cudnn_tensor a, struct cudnn_tensor b,
                  struct cudnn_tensor c)
{
    static const char what[] = "a product";
    const cudnnDataType_t sums = CUDNN_DATA_FLOAT;
    cudnnBackendDescriptor_t const matmul =
        cudnn_descriptor(graph, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    set(graph, matmul, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sums, what);
    finalize(graph, matmul, what);
    cudnnBackendDescriptor_t const operation =
        cudnn_descriptor(graph, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    set_descriptor(graph, operation, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a.descriptor, what);
    set_descriptor(graph, operation, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b.descriptor, what);
    set_descriptor(graph, operation, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c.descriptor, what);
    set_descriptor(graph, operation, CUDNN_ATTR_OPERATION_MATMUL_DESC, matmul, what);
    add_operation(graph, operation, what);
}

void cudnn_pointwise(struct cudnn_graph *graph, const struct cudnn_pointwise *p,
                     struct cudnn_tensor y)
{
    static const char what[] = "a pointwise operation";
    cudnnBackendDescriptor_t const mode =
        cudnn_descriptor(graph, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    set(graph, mode, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &p->mode, what);
    set(graph, mode, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &p->precision, what);
    if (p->mode == CUDNN_POINTWISE_GEN_INDEX)
        set(graph, mode, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &p->axis, what);
    finalize(graph, mode, what);
    cudnnBackendDescriptor_t const operation =
        cudnn_descriptor(graph, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    set_descriptor(graph, operation, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, mode, what);
    set_descriptor(graph, operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, p->x->descriptor, what);
    if (p->b)
        set_descriptor(graph, operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, p->b->descriptor,
                       what);
    if (p->t)
        set_descriptor(graph, operation, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, p->t->descriptor,
                       what);
    set_descriptor(graph, operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y.descriptor, what);
    add_operation(graph, operation, what);
}

void cudnn_reduce(struct cudnn_graph *graph, cudnnReduceTensorOp_t mode, struct cudnn_tensor x,
                  struct cudnn_tensor y)
{
    static const char what[] = "a reduction";
    const cudnnDataType_t sums = CUDNN_DATA_FLOAT;
    cudnnBackendDescriptor_t const reduction =
        cudnn_descriptor(graph, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    set(graph, reduction, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1,
        &mode, what);
    set(graph, reduction, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sums, what);
    finalize(graph, reduction, what);
    cudnnBackendDescriptor_t const operation =
        cudnn_descriptor(graph, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    set_descriptor(graph, operation, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x.descriptor, what);
    set_descriptor(graph, operation, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y.descriptor, what);
    set_descriptor(graph, operation, CUDNN_ATTR_OPERATION_REDUCTION_DESC, reduction, what);
    add_operation(graph, operation, what);
}

struct cudnn_tensor cudnn_transposed(struct cudnn_graph *graph, struct cudnn_tensor x,
                                     cudnnDataType_t type)
{
    static const char what[] = "a transposition";
    const int64_t sizes[4] = {x.sizes[0], x.sizes[1], x.sizes[3], x.sizes[2]};
    const int64_t strides[4] = {x.strides[0], x.strides[1], x.strides[3], x.strides[2]};
    const struct cudnn_tensor y = make_tensor(graph, FIRST_VIRTUAL + graph->virtual_count++,
                                              TENSOR_VIRTUAL, type, sizes, strides);
    cudnnBackendDescriptor_t const operation =
        cudnn_descriptor(graph, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    set_descriptor(graph, operation, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x.descriptor, what);
    set_descriptor(graph, operation, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y.descriptor, what);
    add_operation(graph, operation, what);
    return y;
}

/* --- plans ---------------------------------------------------------------------------------------- */

static cudnnBackendDescriptor_t whole_graph(struct cudnn_graph *graph,
                                            const struct cudnn_target *target)
{
    static const char what[] = "the graph";
    cudnnBackendDescriptor_t const all =
        cudnn_descriptor(graph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    set(graph, all, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
        graph->operation_count, graph->operations, what);
    if (target->handle)
        set(graph, all, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &target->handle,
            what);
    finalize(graph, all, what);
    return all;
}

static bool is_unsteady(struct cudnn_graph *graph, cudnnBackendDescriptor_t config)
{
    const struct cudnn_library *const library = graph->library;
    cudnnBackendDescriptor_t engine =
        cudnn_descriptor(graph, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    int64_t count = 0;
    if (!engine ||
        library->get_attribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                               1, &count, &engine) != CUDNN_STATUS_SUCCESS ||
        library->get_attribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                               ARRAY_COUNT(notes), &count, notes) != CUDNN_STATUS_SUCCESS)
        return true; /* what cannot be asked is not trusted */
    for (int64_t i = 0; i < count; i++)
        if (notes[i] == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) return true;
    return false;
}

/* Returns NULL if the library cannot make the plan. *bytes: its workspace. */
static cudnnBackendDescriptor_t plan_of(struct cudnn_graph *graph,
                                        const struct cudnn_target *target,
                                        cudnnBackendDescriptor_t config, uint64_t *bytes)
{
    const struct cudnn_library *const library = graph->library;
    cudnnBackendDescriptor_t plan = NULL;
    int64_t size = 0, count = 0;
    cudnnStatus_t status =
        library->create_descriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &plan);
    if (status != CUDNN_STATUS_SUCCESS) return NULL;
    status = library->set_attribute(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                                    CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config);
    if (status == CUDNN_STATUS_SUCCESS && target->handle)
        status = library->set_attribute(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE,
                                        1, &target->handle);
    if (status == CUDNN_STATUS_SUCCESS && target->device)
        status = library->set_attribute(plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP,
                                        CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &target->device);
    if (status == CUDNN_STATUS_SUCCESS) status = library->finalize(plan);
    if (status == CUDNN_STATUS_SUCCESS)
        status = library->get_attribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                        CUDNN_TYPE_INT64, 1, &count, &size);
    if (status == CUDNN_STATUS_SUCCESS && size >= 0) {
        *bytes = (uint64_t)size;
        return plan;
    }
    library->destroy_descriptor(plan);
    return NULL;
}

enum { CONFIGS_MAX = 8 };

/* An empty list is not a failure of the graph. */
static int64_t configurations(struct cudnn_graph *graph, const struct cudnn_target *target,
                              cudnnBackendDescriptor_t all, cudnnBackendHeurMode_t way,
                              cudnnBackendDescriptor_t configs[CONFIGS_MAX])
{
    static const char what[] = "a question for engines";
    const struct cudnn_library *const library = graph->library;
    int64_t count = 0;
    cudnnBackendDescriptor_t const question =
        cudnn_descriptor(graph, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    set_descriptor(graph, question, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, all, what);
    set(graph, question, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &way, what);
    if (target->device)
        set_descriptor(graph, question, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, target->device, what);
    for (int i = 0; i < CONFIGS_MAX; i++)
        configs[i] = cudnn_descriptor(graph, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    if (failed(graph) || library->finalize(question) != CUDNN_STATUS_SUCCESS ||
        library->get_attribute(question, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                               CUDNN_TYPE_BACKEND_DESCRIPTOR, CONFIGS_MAX, &count, configs) !=
            CUDNN_STATUS_SUCCESS)
        return 0;
    return count < CONFIGS_MAX ? count : CONFIGS_MAX;
}

cudnnBackendDescriptor_t cudnn_graph_plan(struct cudnn_graph *graph,
                                          const struct cudnn_target *target,
                                          uint64_t workspace_bytes, uint64_t *least_bytes)
{
    static const cudnnBackendHeurMode_t ways[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};
    cudnnBackendDescriptor_t const all = whole_graph(graph, target);
    int64_t proposed = 0, unsteady = 0;
    *least_bytes = UINT64_MAX;
    for (size_t way = 0; way < ARRAY_COUNT(ways) && !failed(graph); way++) {
        cudnnBackendDescriptor_t configs[CONFIGS_MAX];
        const int64_t count = configurations(graph, target, all, ways[way], configs);
        proposed += count;
        for (int64_t i = 0; i < count && !failed(graph); i++) {
            uint64_t bytes = 0;
            if (is_unsteady(graph, configs[i])) {
                unsteady++;
                continue;
            }
            cudnnBackendDescriptor_t const plan = plan_of(graph, target, configs[i], &bytes);
            if (!plan) continue;
            if (bytes < *least_bytes) *least_bytes = bytes;
            if (bytes <= workspace_bytes) return plan;
            graph->library->destroy_descriptor(plan);
        }
    }
    if (failed(graph)) return NULL;
    if (*least_bytes < UINT64_MAX)
        snprintf(graph->failure, sizeof graph->failure,
                 "it wants %llu bytes of workspace, and the plan grants %llu",
                 (unsigned long long)*least_bytes, (unsigned long long)workspace_bytes);
    else
        snprintf(graph->failure, sizeof graph->failure,
                 "no engine for the graph (%lld proposed, %lld of them with bits that differ from "
                 "call to call)",
                 (long long)proposed, (long long)unsteady);
    return NULL;
}
