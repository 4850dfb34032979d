/*
 * A cuDNN that carries out a graph operation by operation on the host, in the order in which it was given.
 *
 * Descriptors are lists of attributes in the given order; finalizing checks shapes as the real library does. A virtual
 * tensor is memory of its own with its strides, in fp32, with values rounded to its type; a "reshape" is the same
 * memory with other strides. Products and sums are in double. So the result of a graph is computed only from its
 * descriptors, by code without knowledge of attention.
 *
 * A plan wants 256 bytes of workspace; with more than two products, as in a backward pass of the real library, 2 bytes
 * more for each element of the largest tensor. A running plan fills all of the workspace with NaN. It runs in its turn
 * on the stream of the emulated runtime.
 */
#include "tests/emulator/cudnn/emulated_cudnn.h"

#include <cudnn_graph.h>
#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bf16.h"

enum { ATTRIBUTES_MAX = 16, VALUES_BYTES = 320, TENSORS_MAX = 96, ENGINES = 2, WORKSPACE_MIN = 256 };

struct attribute {
    int name, type;
    int64_t count;
    unsigned char values[VALUES_BYTES]; /* of a descriptor: pointers, which are counted */
};

struct descriptor {
    int type;
    atomic_int references;
    bool finalized;
    int attribute_count;
    struct attribute attributes[ATTRIBUTES_MAX];
};

struct cudnnContext {
    cudaStream_t stream;
};

static atomic_int refusal;
static atomic_uint_fast64_t executions;
static _Thread_local char message[256];

void emulated_cudnn_refuse(int next);
uint64_t emulated_cudnn_executions(void);

void emulated_cudnn_refuse(int next)
{
    refusal = next;
}

uint64_t emulated_cudnn_executions(void)
{
    return atomic_exchange(&executions, 0);
}

static cudnnStatus_t fail(cudnnStatus_t status, const char *why)
{
    snprintf(message, sizeof message, "%s", why);
    return status;
}

static cudnnStatus_t refuse(int what)
{
    return refusal == what ? fail(CUDNN_STATUS_NOT_SUPPORTED, "it was told to refuse") : 0;
}

size_t cudnnGetVersion(void)
{
    return refusal == REFUSE_VERSION ? 8907 : 91900;
}

void cudnnGetLastErrorString(char *text, size_t size)
{
    snprintf(text, size, "%s", message);
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
    if (refusal == REFUSE_HANDLE) return refuse(REFUSE_HANDLE);
    *handle = calloc(1, sizeof **handle);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    free(handle);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

/* --- descriptors ------------------------------------------------------------------------------- */

static const struct attribute *find(const struct descriptor *d, int name)
{
    for (int i = 0; d && i < d->attribute_count; i++)
        if (d->attributes[i].name == name) return &d->attributes[i];
    return NULL;
}

static struct descriptor *part(const struct descriptor *d, int name, int64_t index)
{
    const struct attribute *const a = find(d, name);
    struct descriptor *out = NULL;
    if (a && index < a->count) memcpy(&out, a->values + index * (int64_t)sizeof out, sizeof out);
    return out;
}

static int64_t number(const struct descriptor *d, int name, int64_t index)
{
    const struct attribute *const a = find(d, name);
    int64_t out = 0;
    if (a) memcpy(&out, a->values + index * (int64_t)sizeof out, sizeof out);
    return out;
}

/* Returns true for an enumeration or a boolean. */
static int small(const struct descriptor *d, int name)
{
    const struct attribute *const a = find(d, name);
    int out = 0;
    if (a && a->type == CUDNN_TYPE_BOOLEAN) return a->values[0];
    if (a) memcpy(&out, a->values, sizeof out);
    return out;
}

static size_t size_of(int type)
{
    switch (type) {
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
    case CUDNN_TYPE_INT64: return 8;
    case CUDNN_TYPE_BOOLEAN: return 1;
    default: return 4;
    }
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t *out)
{
    struct descriptor *const d = calloc(1, sizeof *d);
    d->type = (int)type;
    d->references = 1;
    *out = d;
    return CUDNN_STATUS_SUCCESS;
}

static void let_go(struct descriptor *d)
{
    if (!d || atomic_fetch_sub(&d->references, 1) > 1) return;
    for (int i = 0; i < d->attribute_count; i++)
        if (d->attributes[i].type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
            for (int64_t j = 0; j < d->attributes[i].count; j++)
                let_go(part(d, d->attributes[i].name, j));
    free(d);
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor)
{
    let_go(descriptor);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void *values)
{
    struct descriptor *const d = descriptor;
    const size_t bytes = size_of((int)type) * (size_t)count;
    if (!d || d->finalized) return fail(CUDNN_STATUS_BAD_PARAM, "it was finalized");
    if (bytes > VALUES_BYTES || d->attribute_count == ATTRIBUTES_MAX)
        return fail(CUDNN_STATUS_BAD_PARAM, "too many values");
    struct attribute *const a = &d->attributes[d->attribute_count++];
    *a = (struct attribute){.name = (int)name, .type = (int)type, .count = count};
    memcpy(a->values, values, bytes);
    for (int64_t i = 0; type == CUDNN_TYPE_BACKEND_DESCRIPTOR && i < count; i++) {
        struct descriptor *const other = part(d, (int)name, i);
        if (!other || !other->finalized) {
            d->attribute_count--;
            return fail(CUDNN_STATUS_BAD_PARAM, "a part was not finalized");
        }
        other->references++;
    }
    return CUDNN_STATUS_SUCCESS;
}

/* --- finalizing -------------------------------------------------------------------------------- */

static int64_t size(const struct descriptor *tensor, int axis)
{
    return number(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, axis);
}

static int64_t stride(const struct descriptor *tensor, int axis)
{
    return number(tensor, CUDNN_ATTR_TENSOR_STRIDES, axis);
}

static cudnnStatus_t check_tensor(const struct descriptor *d)
{
    static const int needs[] = {CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_ATTR_TENSOR_DIMENSIONS,
                                CUDNN_ATTR_TENSOR_STRIDES, CUDNN_ATTR_TENSOR_UNIQUE_ID,
                                CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT};
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++)
        if (!find(d, needs[i])) return fail(CUDNN_STATUS_BAD_PARAM, "a tensor lacks something");
    for (int axis = 0; axis < 4; axis++)
        if (size(d, axis) < 1 || stride(d, axis) < 1)
            return fail(CUDNN_STATUS_BAD_PARAM, "a tensor's sizes are not positive");
    return refuse(REFUSE_TENSORS);
}

static cudnnStatus_t check_matmul(const struct descriptor *d)
{
    const struct descriptor *const a = part(d, CUDNN_ATTR_OPERATION_MATMUL_ADESC, 0);
    const struct descriptor *const b = part(d, CUDNN_ATTR_OPERATION_MATMUL_BDESC, 0);
    const struct descriptor *const c = part(d, CUDNN_ATTR_OPERATION_MATMUL_CDESC, 0);
    if (!a || !b || !c || !part(d, CUDNN_ATTR_OPERATION_MATMUL_DESC, 0) ||
        size(a, 3) != size(b, 2) || size(a, 2) != size(c, 2) || size(b, 3) != size(c, 3) ||
        size(a, 0) != size(b, 0) || size(a, 0) != size(c, 0) || size(a, 1) != size(c, 1) ||
        size(a, 1) % size(b, 1) != 0)
        return fail(CUDNN_STATUS_BAD_PARAM, "sizes of a product do not fit");
    return refuse(REFUSE_OPERATIONS);
}

static cudnnStatus_t check_pointwise(const struct descriptor *d)
{
    const struct descriptor *const x = part(d, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, 0);
    const struct descriptor *const b = part(d, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, 0);
    const struct descriptor *const y = part(d, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, 0);
    const struct descriptor *const mode = part(d, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, 0);
    if (!x || !y || !mode || !find(mode, CUDNN_ATTR_POINTWISE_MATH_PREC))
        return fail(CUDNN_STATUS_BAD_PARAM, "a pointwise operation lacks something");
    for (int axis = 0; axis < 4; axis++)
        if (size(x, axis) != size(y, axis) ||
            (b && size(b, axis) != 1 && size(b, axis) != size(y, axis)))
            return fail(CUDNN_STATUS_BAD_PARAM, "sizes of a pointwise operation do not fit");
    return refuse(REFUSE_OPERATIONS);
}

static cudnnStatus_t check_reduction(const struct descriptor *d)
{
    const struct descriptor *const x = part(d, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, 0);
    const struct descriptor *const y = part(d, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, 0);
    if (!x || !y || !part(d, CUDNN_ATTR_OPERATION_REDUCTION_DESC, 0))
        return fail(CUDNN_STATUS_BAD_PARAM, "a reduction lacks something");
    for (int axis = 0; axis < 4; axis++)
        if (size(x, axis) % size(y, axis) != 0)
            return fail(CUDNN_STATUS_BAD_PARAM, "sizes of a reduction do not fit");
    return refuse(REFUSE_OPERATIONS);
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor)
{
    struct descriptor *const d = descriptor;
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    if (d->finalized) return fail(CUDNN_STATUS_BAD_PARAM, "it was finalized");
    switch (d->type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR: status = check_tensor(d); break;
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR: status = check_matmul(d); break;
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR: status = check_pointwise(d); break;
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR: status = check_reduction(d); break;
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR: status = refuse(REFUSE_GRAPH); break;
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR: status = refuse(REFUSE_ENGINES); break;
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR: status = refuse(REFUSE_PLANS); break;
    default: break;
    }
    d->finalized = status == CUDNN_STATUS_SUCCESS;
    return status;
}

/* --- asking ------------------------------------------------------------------------------------ */

static const struct descriptor *graph_of(const struct descriptor *plan)
{
    const struct descriptor *const config =
        part(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, 0);
    return part(config, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, 0);
}

static int64_t operation_count(const struct descriptor *graph)
{
    return find(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS)->count;
}

static int64_t workspace_of(const struct descriptor *plan)
{
    const struct descriptor *const graph = graph_of(plan);
    int64_t products = 0, largest = 0;
    for (int64_t i = 0; i < operation_count(graph); i++) {
        const struct descriptor *const op = part(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, i);
        const struct descriptor *const c = part(op, CUDNN_ATTR_OPERATION_MATMUL_CDESC, 0);
        if (!c) continue;
        const int64_t elements = size(c, 0) * size(c, 1) * size(c, 2) * size(c, 3);
        products++;
        largest = elements > largest ? elements : largest;
    }
    if (products > 2 && refusal == REFUSE_LITTLE) return (int64_t)16 << 30;
    return WORKSPACE_MIN + (products > 2 ? 2 * largest : 0);
}

/* A configuration keeps the graph that it is for. */
static void propose(const struct descriptor *question, struct descriptor *config)
{
    struct descriptor *const graph = part(question, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, 0);
    cudnnBackendSetAttribute(config, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
                             CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph);
    config->finalized = true;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t room,
                                       int64_t *count, void *values)
{
    (void)type;
    switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
        *count = room < ENGINES ? room : ENGINES;
        for (int64_t i = 0; i < *count; i++) propose(descriptor, ((struct descriptor **)values)[i]);
        return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINECFG_ENGINE: *count = 1; return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
        *count = refusal == REFUSE_STEADINESS;
        *(cudnnBackendNumericalNote_t *)values = CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
        return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
        *count = 1;
        *(int64_t *)values = workspace_of(descriptor);
        return CUDNN_STATUS_SUCCESS;
    default: return fail(CUDNN_STATUS_NOT_SUPPORTED, "an unknown attribute");
    }
}

/* --- carrying out ------------------------------------------------------------------------------ */

/* A tensor while a graph is carried out. */
struct value {
    const struct descriptor *tensor;
    float *numbers; /* of a virtual tensor, and of one by value */
    void *memory;   /* of a real one */
};

struct execution {
    const struct descriptor *plan; /* counted */
    struct value values[TENSORS_MAX];
    int value_count;
    int64_t uids[TENSORS_MAX];
    void *pointers[TENSORS_MAX];
    float scalars[TENSORS_MAX];
    int64_t uid_count;
    void *workspace;
};

static float as_type(float x, int type)
{
    return type == CUDNN_DATA_BFLOAT16 ? bf16_widen(bf16_nearest(x)) : x;
}

static int64_t extent(const struct descriptor *tensor)
{
    int64_t end = 1;
    for (int axis = 0; axis < 4; axis++) end += (size(tensor, axis) - 1) * stride(tensor, axis);
    return end;
}

static struct value *value_of(struct execution *e, const struct descriptor *tensor)
{
    for (int i = 0; i < e->value_count; i++)
        if (e->values[i].tensor == tensor) return &e->values[i];
    if (e->value_count == TENSORS_MAX) abort();
    struct value *const v = &e->values[e->value_count++];
    *v = (struct value){.tensor = tensor};
    const int64_t uid = number(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, 0);
    if (small(tensor, CUDNN_ATTR_TENSOR_IS_VIRTUAL)) {
        const int64_t numbers = extent(tensor);
        v->numbers = malloc((size_t)numbers * sizeof *v->numbers);
        for (int64_t i = 0; i < numbers; i++) v->numbers[i] = NAN;
        return v;
    }
    for (int64_t i = 0; i < e->uid_count; i++) {
        if (e->uids[i] != uid) continue;
        v->memory = e->pointers[i];
        if (small(tensor, CUDNN_ATTR_TENSOR_IS_BY_VALUE)) v->memory = &e->scalars[i];
        return v;
    }
    fprintf(stderr, "no memory was given for tensor %lld\n", (long long)uid);
    abort();
}

static float get(const struct value *v, int64_t offset)
{
    if (v->numbers) return v->numbers[offset];
    if (small(v->tensor, CUDNN_ATTR_TENSOR_DATA_TYPE) == CUDNN_DATA_BFLOAT16)
        return bf16_widen(((const bf16 *)v->memory)[offset]);
    return ((const float *)v->memory)[offset];
}

static void put(const struct value *v, int64_t offset, float x)
{
    const int type = small(v->tensor, CUDNN_ATTR_TENSOR_DATA_TYPE);
    if (v->numbers) v->numbers[offset] = as_type(x, type);
    else if (type == CUDNN_DATA_BFLOAT16) ((bf16 *)v->memory)[offset] = bf16_nearest(x);
    else ((float *)v->memory)[offset] = x;
}

/* Where element i is; of a size of 1 there is one for all. */
static int64_t at(const struct descriptor *tensor, const int64_t i[4])
{
    int64_t offset = 0;
    for (int axis = 0; axis < 4; axis++)
        if (size(tensor, axis) > 1) offset += i[axis] * stride(tensor, axis);
    return offset;
}

static bool next(const struct descriptor *tensor, int64_t i[4])
{
    for (int axis = 3; axis >= 0; axis--) {
        if (++i[axis] < size(tensor, axis)) return true;
        i[axis] = 0;
    }
    return false;
}

static void run_matmul(struct execution *e, const struct descriptor *op)
{
    const struct value *const a = value_of(e, part(op, CUDNN_ATTR_OPERATION_MATMUL_ADESC, 0));
    const struct value *const b = value_of(e, part(op, CUDNN_ATTR_OPERATION_MATMUL_BDESC, 0));
    const struct value *const c = value_of(e, part(op, CUDNN_ATTR_OPERATION_MATMUL_CDESC, 0));
    const int64_t group = size(a->tensor, 1) / size(b->tensor, 1), inner = size(a->tensor, 3);
    int64_t i[4] = {0};
    do {
        double sum = 0;
        for (int64_t k = 0; k < inner; k++)
            sum += (double)get(a, at(a->tensor, (int64_t[]){i[0], i[1], i[2], k})) *
                   (double)get(b, at(b->tensor, (int64_t[]){i[0], i[1] / group, k, i[3]}));
        put(c, at(c->tensor, i), (float)sum);
    } while (next(c->tensor, i));
}

static float pointwise(int mode, float x, float b, bool t, const int64_t i[4], int64_t axis)
{
    switch (mode) {
    case CUDNN_POINTWISE_ADD: return x + b;
    case CUDNN_POINTWISE_SUB: return x - b;
    case CUDNN_POINTWISE_MUL: return x * b;
    case CUDNN_POINTWISE_DIV: return x / b;
    case CUDNN_POINTWISE_EXP: return (float)exp((double)x);
    case CUDNN_POINTWISE_LOG: return (float)log((double)x);
    case CUDNN_POINTWISE_GEN_INDEX: return (float)i[axis];
    case CUDNN_POINTWISE_CMP_GE: return x >= b ? 1 : 0;
    case CUDNN_POINTWISE_BINARY_SELECT: return t ? x : b;
    default: abort();
    }
}

static void run_pointwise(struct execution *e, const struct descriptor *op)
{
    const struct descriptor *const mode = part(op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, 0);
    const struct descriptor *const b_tensor = part(op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, 0);
    const struct descriptor *const t_tensor = part(op, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, 0);
    const struct value *const x = value_of(e, part(op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, 0));
    const struct value *const b = b_tensor ? value_of(e, b_tensor) : NULL;
    const struct value *const t = t_tensor ? value_of(e, t_tensor) : NULL;
    const struct value *const y = value_of(e, part(op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, 0));
    const int64_t axis = number(mode, CUDNN_ATTR_POINTWISE_AXIS, 0);
    int64_t i[4] = {0};
    do
        put(y, at(y->tensor, i),
            pointwise(small(mode, CUDNN_ATTR_POINTWISE_MODE), get(x, at(x->tensor, i)),
                      b ? get(b, at(b->tensor, i)) : 0, t && get(t, at(t->tensor, i)) != 0, i,
                      axis));
    while (next(y->tensor, i));
}

static void run_reduction(struct execution *e, const struct descriptor *op)
{
    const struct value *const x = value_of(e, part(op, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, 0));
    const struct value *const y = value_of(e, part(op, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, 0));
    const bool largest = small(part(op, CUDNN_ATTR_OPERATION_REDUCTION_DESC, 0),
                               CUDNN_ATTR_REDUCTION_OPERATOR) == CUDNN_REDUCE_TENSOR_MAX;
    int64_t i[4] = {0}, each[4];
    for (int axis = 0; axis < 4; axis++)
        each[axis] = size(x->tensor, axis) / size(y->tensor, axis);
    do {
        double sum = largest ? -INFINITY : 0;
        for (int64_t a = 0; a < each[0]; a++)
            for (int64_t b = 0; b < each[1]; b++)
                for (int64_t c = 0; c < each[2]; c++)
                    for (int64_t d = 0; d < each[3]; d++) {
                        const double term = (double)get(
                            x, at(x->tensor, (int64_t[]){i[0] * each[0] + a, i[1] * each[1] + b,
                                                         i[2] * each[2] + c, i[3] * each[3] + d}));
                        sum = largest ? fmax(sum, term) : sum + term;
                    }
        put(y, at(y->tensor, i), (float)sum);
    } while (next(y->tensor, i));
}

static void run_reshape(struct execution *e, const struct descriptor *op)
{
    const struct value *const x = value_of(e, part(op, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, 0));
    const struct value *const y = value_of(e, part(op, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, 0));
    const int type = small(y->tensor, CUDNN_ATTR_TENSOR_DATA_TYPE);
    if (extent(x->tensor) != extent(y->tensor)) abort();
    for (int64_t i = 0; i < extent(x->tensor); i++) y->numbers[i] = as_type(get(x, i), type);
}

static void run_graph(void *argument)
{
    struct execution *const e = argument;
    const struct descriptor *const graph = graph_of(e->plan);
    memset(e->workspace, 0xff, (size_t)workspace_of(e->plan));
    for (int64_t i = 0; i < operation_count(graph); i++) {
        const struct descriptor *const op = part(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, i);
        switch (op->type) {
        case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR: run_matmul(e, op); break;
        case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR: run_pointwise(e, op); break;
        case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR: run_reduction(e, op); break;
        case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR: run_reshape(e, op); break;
        default: abort();
        }
    }
    for (int i = 0; i < e->value_count; i++) free(e->values[i].numbers);
    let_go((struct descriptor *)(uintptr_t)e->plan);
    free(e);
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack)
{
    const struct descriptor *const p = pack;
    if (refusal == REFUSE_EXECUTION) return refuse(REFUSE_EXECUTION);
    struct execution *const e = calloc(1, sizeof *e);
    e->plan = plan;
    e->uid_count = find(p, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS)->count;
    memcpy(e->uids, find(p, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS)->values,
           (size_t)e->uid_count * sizeof *e->uids);
    memcpy(e->pointers, find(p, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)->values,
           (size_t)e->uid_count * sizeof *e->pointers);
    memcpy(&e->workspace, find(p, CUDNN_ATTR_VARIANT_PACK_WORKSPACE)->values, sizeof e->workspace);
    /* numbers by value are read now: they are the caller's */
    for (int64_t i = 0; i < e->uid_count; i++) memcpy(&e->scalars[i], e->pointers[i], sizeof(float));
    ((struct descriptor *)plan)->references++;
    executions++;
    return cudaLaunchHostFunc(handle->stream, run_graph, e) == cudaSuccess
               ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}
