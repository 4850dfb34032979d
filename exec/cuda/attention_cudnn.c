/*
 * Attention as a graph of small operations, which cuDNN recognizes and runs as one kernel.
 *
 * Letters: B samples of T tokens, H heads of queries, K of keys and values, D numbers each; bf16 without gaps:
 * (B,H,T,D) with strides (T H D, D, H D, 1). The caller's arrays are fp32 with another layout: inputs are rounded into
 * the scratch, results widened afterwards.
 *
 *     forward   S = Q K^T scale;  S(i,j) = -inf where j > i, if causal
 *               M = max S, E = exp(S - M), Z = sum E;   P = E / Z, stats = M + log Z;   O = P V
 *     backward  R = sum over D of dO O                  (B,H,T) in fp32, real: two kernels share it
 *               P = exp(S - stats)
 *               dV = P^T dO                             heads that share values: summed over the group
 *               dS = (dO V^T - R) P scale
 *               dK = dS^T Q, likewise                   dQ = dS K
 *
 * P, dS and the results are bf16, all intermediate values fp32 (models/kernel/precision.h). A transpose is a "reshape"
 * with exchanged strides. The graph has the shape that NVIDIA's cudnn-frontend makes
 * (scaled_dot_product_flash_attention.h lists the recognized patterns), with its choices for a deterministic backward
 * pass: dQ is the direct result of its product instead of a sum over blocks that finish in any order.
 *
 * The scratch (models/job/memory.h), forward and back:
 *
 *     | q | k | v | out |                        the library's workspace |
 *     | q | k | v | out | dout | dq | dk | dv | R | the library's workspace |
 *
 * The planner fixes the size of that workspace before the library can be asked. In the backward pass the library may
 * need a number per weight. If it needs more than there is, it gets the samples, then the groups of heads, in equal
 * pieces one after the other. Pieces depend only on the shape and the library.
 */
#include "exec/cuda/attention_cudnn.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bf16.h"
#include "exec/cuda/gpu_library.h"
#include "exec/cuda/kernels_cuda_launch.h"
#include "models/job/memory.h"

enum direction { FORWARD, BACKWARD, DIRECTIONS };

/* Numbers of the real tensors. */
enum operand { Q = 1, K, V, OUT, DOUT, DQ, DK, DV, ROW_SUMS, STATS, SCALE, HIDDEN, ONE, OPERANDS };

struct way {
    cudnnBackendDescriptor_t plan;
    uint64_t workspace_bytes;
    int64_t samples, groups; /* of a piece */
};

struct settled {
    struct kernel_attention shape; /* pointers are NULL */
    struct way ways[DIRECTIONS];
    bool loaded[DIRECTIONS]; /* its kernels, at the first execution */
    char why[CUDNN_GRAPH_REASON + 32]; /* "": cuDNN does it */
};

enum { SHAPES_MAX = 64 };

struct attention_cudnn {
    struct cudnn_library library;
    cudnnHandle_t handle;
    cudaStream_t stream;
    struct settled *shapes;
    int shape_count;
    char failure[CUDNN_GRAPH_REASON];
};

/* --- the graph ------------------------------------------------------------------------------------ */

/* Sizes of a piece, and rows that a token's heads make. */
struct attention_cudnn_piece {
    int64_t samples, heads, groups, t, d;
    int64_t row, row_kv;
    bool causal;
};

static struct attention_cudnn_piece piece_of(const struct kernel_attention *shape, int64_t samples, int64_t groups)
{
    return (struct attention_cudnn_piece){.samples = samples,
                                          .heads = groups * (shape->h / shape->kv),
                                          .groups = groups,
                                          .t = shape->t,
                                          .d = shape->d,
                                          .row = shape->h * shape->d,
                                          .row_kv = shape->kv * shape->d,
                                          .causal = shape->causal};
}

/* Returns (B,heads,T,D) in bf16. */
static struct cudnn_tensor rows(struct cudnn_graph *graph, const struct attention_cudnn_piece *p, int64_t number,
                                bool kv)
{
    const int64_t row = kv ? p->row_kv : p->row;
    return cudnn_array(graph, number, CUDNN_DATA_BFLOAT16,
                       (int64_t[]){p->samples, kv ? p->groups : p->heads, p->t, p->d},
                       (int64_t[]){p->t * row, p->d, row, 1});
}

/* Returns (B,heads,D,T): the transpose of the same memory. */
static struct cudnn_tensor columns(struct cudnn_graph *graph, const struct attention_cudnn_piece *p, int64_t number)
{
    return cudnn_array(graph, number, CUDNN_DATA_BFLOAT16,
                       (int64_t[]){p->samples, p->groups, p->d, p->t},
                       (int64_t[]){p->t * p->row_kv, p->d, 1, p->row_kv});
}

/* Returns (B,heads,T,1) in fp32; all heads of a sample are adjacent, also of other pieces. */
static struct cudnn_tensor sums(struct cudnn_graph *graph, const struct attention_cudnn_piece *p, int64_t number)
{
    const int64_t heads = p->row / p->d;
    return cudnn_array(graph, number, CUDNN_DATA_FLOAT,
                       (int64_t[]){p->samples, p->heads, p->t, 1},
                       (int64_t[]){heads * p->t, p->t, 1, 1});
}

static struct cudnn_tensor between(struct cudnn_graph *graph, const struct attention_cudnn_piece *p,
                                   cudnnDataType_t type, int64_t width)
{
    return cudnn_virtual(graph, type, (int64_t[]){p->samples, p->heads, p->t, width});
}

/* Returns mode(x, b) in fp32, as wide as x; b may be NULL. */
static struct cudnn_tensor apply(struct cudnn_graph *graph, const struct attention_cudnn_piece *p,
                                 cudnnPointwiseMode_t mode, struct cudnn_tensor x,
                                 const struct cudnn_tensor *b)
{
    const struct cudnn_tensor y = between(graph, p, CUDNN_DATA_FLOAT, x.sizes[3]);
    cudnn_pointwise(
        graph,
        &(struct cudnn_pointwise){.mode = mode, .precision = CUDNN_DATA_FLOAT, .x = &x, .b = b}, y);
    return y;
}

static void apply_to(struct cudnn_graph *graph, cudnnPointwiseMode_t mode, struct cudnn_tensor x,
                     struct cudnn_tensor b, struct cudnn_tensor y)
{
    cudnn_pointwise(
        graph,
        &(struct cudnn_pointwise){.mode = mode, .precision = CUDNN_DATA_FLOAT, .x = &x, .b = &b},
        y);
}

/* Returns the index of each row (axis 2) or column (axis 3). */
static struct cudnn_tensor index_along(struct cudnn_graph *graph, const struct attention_cudnn_piece *p,
                                       struct cudnn_tensor scores, int64_t axis)
{
    const struct cudnn_tensor y = between(graph, p, CUDNN_DATA_INT32, p->t);
    cudnn_pointwise(graph,
                    &(struct cudnn_pointwise){.mode = CUDNN_POINTWISE_GEN_INDEX,
                                              .precision = CUDNN_DATA_FLOAT,
                                              .x = &scores,
                                              .axis = axis},
                    y);
    return y;
}

static struct cudnn_tensor hide(struct cudnn_graph *graph, const struct attention_cudnn_piece *p,
                                struct cudnn_tensor scores)
{
    if (!p->causal) return scores;
    const struct cudnn_tensor row = index_along(graph, p, scores, 2);
    const struct cudnn_tensor column = index_along(graph, p, scores, 3);
    const struct cudnn_tensor seen = between(graph, p, CUDNN_DATA_BOOLEAN, p->t);
    const struct cudnn_tensor hidden = cudnn_scalar(graph, HIDDEN);
    const struct cudnn_tensor y = between(graph, p, CUDNN_DATA_FLOAT, p->t);
    cudnn_pointwise(graph,
                    &(struct cudnn_pointwise){.mode = CUDNN_POINTWISE_CMP_GE,
                                              .precision = CUDNN_DATA_BOOLEAN,
                                              .x = &row,
                                              .b = &column},
                    seen);
    cudnn_pointwise(graph,
                    &(struct cudnn_pointwise){.mode = CUDNN_POINTWISE_BINARY_SELECT,
                                              .precision = CUDNN_DATA_FLOAT,
                                              .x = &scores,
                                              .b = &hidden,
                                              .t = &seen},
                    y);
    return y;
}

static struct cudnn_tensor scores_of(struct cudnn_graph *graph, const struct attention_cudnn_piece *p,
                                     struct cudnn_tensor q, struct cudnn_tensor k_columns,
                                     struct cudnn_tensor scale)
{
    const struct cudnn_tensor products = between(graph, p, CUDNN_DATA_FLOAT, p->t);
    cudnn_matmul(graph, q, k_columns, products);
    return apply(graph, p, CUDNN_POINTWISE_MUL, products, &scale);
}

static void make_forward(struct cudnn_graph *graph, const struct attention_cudnn_piece *p)
{
    const struct cudnn_tensor q = rows(graph, p, Q, false), k = columns(graph, p, K);
    const struct cudnn_tensor scale = cudnn_scalar(graph, SCALE);
    const struct cudnn_tensor s = hide(graph, p, scores_of(graph, p, q, k, scale));

    const struct cudnn_tensor largest = between(graph, p, CUDNN_DATA_FLOAT, 1);
    cudnn_reduce(graph, CUDNN_REDUCE_TENSOR_MAX, s, largest);
    const struct cudnn_tensor below = apply(graph, p, CUDNN_POINTWISE_SUB, s, &largest);
    const struct cudnn_tensor e = apply(graph, p, CUDNN_POINTWISE_EXP, below, NULL);
    const struct cudnn_tensor total = between(graph, p, CUDNN_DATA_FLOAT, 1);
    cudnn_reduce(graph, CUDNN_REDUCE_TENSOR_ADD, e, total);
    const struct cudnn_tensor logarithm = apply(graph, p, CUDNN_POINTWISE_LOG, total, NULL);
    apply_to(graph, CUDNN_POINTWISE_ADD, largest, logarithm, sums(graph, p, STATS));

    const struct cudnn_tensor weights = between(graph, p, CUDNN_DATA_BFLOAT16, p->t);
    apply_to(graph, CUDNN_POINTWISE_DIV, e, total, weights);
    cudnn_matmul(graph, weights, rows(graph, p, V, true), rows(graph, p, OUT, false));
}

static void matmul_to_groups(struct cudnn_graph *graph, const struct attention_cudnn_piece *p,
                             struct cudnn_tensor a, struct cudnn_tensor b, struct cudnn_tensor c)
{
    if (p->heads == p->groups) {
        cudnn_matmul(graph, a, b, c);
        return;
    }
    const struct cudnn_tensor each = between(graph, p, CUDNN_DATA_BFLOAT16, p->d);
    cudnn_matmul(graph, a, b, each);
    cudnn_reduce(graph, CUDNN_REDUCE_TENSOR_ADD, each, c);
}

static void make_backward(struct cudnn_graph *graph, const struct attention_cudnn_piece *p)
{
    const struct cudnn_tensor q = rows(graph, p, Q, false), dout = rows(graph, p, DOUT, false);
    const struct cudnn_tensor k = columns(graph, p, K), v = columns(graph, p, V);
    const struct cudnn_tensor scale = cudnn_scalar(graph, SCALE), one = cudnn_scalar(graph, ONE);

    const struct cudnn_tensor out = rows(graph, p, OUT, false);
    const struct cudnn_tensor dout_out = apply(graph, p, CUDNN_POINTWISE_MUL, dout, &out);
    const struct cudnn_tensor row_sums = between(graph, p, CUDNN_DATA_FLOAT, 1);
    const struct cudnn_tensor kept_sums = sums(graph, p, ROW_SUMS);
    cudnn_reduce(graph, CUDNN_REDUCE_TENSOR_ADD, dout_out, row_sums);
    apply_to(graph, CUDNN_POINTWISE_MUL, row_sums, one, kept_sums);

    const struct cudnn_tensor stats = sums(graph, p, STATS);
    const struct cudnn_tensor s = scores_of(graph, p, q, k, scale);
    const struct cudnn_tensor below = apply(graph, p, CUDNN_POINTWISE_SUB, s, &stats);
    const struct cudnn_tensor weights =
        apply(graph, p, CUDNN_POINTWISE_EXP, hide(graph, p, below), NULL);
    matmul_to_groups(graph, p, cudnn_transposed(graph, weights, CUDNN_DATA_BFLOAT16), dout,
                     rows(graph, p, DV, true));

    const struct cudnn_tensor dp = between(graph, p, CUDNN_DATA_FLOAT, p->t);
    cudnn_matmul(graph, dout, v, dp);
    const struct cudnn_tensor less = apply(graph, p, CUDNN_POINTWISE_SUB, dp, &kept_sums);
    const struct cudnn_tensor product = apply(graph, p, CUDNN_POINTWISE_MUL, less, &weights);
    const struct cudnn_tensor ds = between(graph, p, CUDNN_DATA_BFLOAT16, p->t);
    apply_to(graph, CUDNN_POINTWISE_MUL, product, scale, ds);
    matmul_to_groups(graph, p, cudnn_transposed(graph, ds, CUDNN_DATA_BFLOAT16), q,
                     rows(graph, p, DK, true));
    cudnn_matmul(graph, ds, cudnn_transposed(graph, k, CUDNN_DATA_BFLOAT16),
                 rows(graph, p, DQ, false));
}

/* --- settling ------------------------------------------------------------------------------------- */

/* memory_attention_copies() guarantees it. */
enum { WORKSPACE_ALIGNMENT = 256 };

static struct attention_sizes sizes_of(const struct kernel_attention *a)
{
    return (struct attention_sizes){.samples = (uint64_t)a->b,
                                    .tokens = (uint64_t)a->t,
                                    .heads = (uint64_t)a->h,
                                    .kv_heads = (uint64_t)a->kv,
                                    .head_width = (uint64_t)a->d};
}

static uint64_t granted_bytes(const struct kernel_attention *shape, enum direction direction)
{
    const uint64_t bytes =
        memory_attention_workspace(sizes_of(shape), direction == BACKWARD) * sizeof(float);
    return bytes > WORKSPACE_ALIGNMENT ? bytes - WORKSPACE_ALIGNMENT : 0;
}

static int64_t next_divisor(int64_t n)
{
    int64_t factor = 2;
    while (n % factor != 0) factor++;
    return n / factor;
}

/* The plan is NULL when no piece's workspace fits. */
static struct way find_way(const struct cudnn_library *library, const struct cudnn_target *target,
                           const struct kernel_attention *shape, enum direction direction,
                           uint64_t granted, uint64_t *wants, char why[CUDNN_GRAPH_REASON])
{
    struct way way = {.samples = shape->b, .groups = shape->kv};
    for (;;) {
        const struct attention_cudnn_piece piece = piece_of(shape, way.samples, way.groups);
        struct cudnn_graph graph = {.library = library};
        (direction == FORWARD ? make_forward : make_backward)(&graph, &piece);
        *wants = UINT64_MAX;
        if (target->handle || target->device)
            way.plan = cudnn_graph_plan(&graph, target, granted, wants);
        memcpy(why, graph.failure, CUDNN_GRAPH_REASON);
        cudnn_graph_release(&graph);
        way.workspace_bytes = *wants;
        if (way.plan || *wants == UINT64_MAX || (way.samples == 1 && way.groups == 1)) return way;
        if (way.samples > 1)
            way.samples = next_divisor(way.samples);
        else
            way.groups = next_divisor(way.groups);
    }
}

void attention_cudnn_describe(const struct cudnn_library *library,
                              cudnnBackendDescriptor_t device, const struct kernel_attention *shape,
                              uint64_t wants_bytes[2], char why[2][CUDNN_GRAPH_REASON])
{
    const struct cudnn_target target = {.device = device};
    for (enum direction d = FORWARD; d < DIRECTIONS; d++) {
        const struct way way =
            find_way(library, &target, shape, d, granted_bytes(shape, d), &wants_bytes[d], why[d]);
        if (way.plan) library->destroy_descriptor(way.plan);
    }
}

static bool same_shape(const struct kernel_attention *a, const struct kernel_attention *b)
{
    return a->b == b->b && a->t == b->t && a->h == b->h && a->kv == b->kv && a->d == b->d &&
           a->causal == b->causal;
}

static void settle(struct attention_cudnn *cudnn, struct settled *settled)
{
    static const char *const names[] = {"attention forward", "attention backward"};
    const struct kernel_attention *const shape = &settled->shape;
    const struct cudnn_target target = {.handle = cudnn->handle};
    if (shape->d % 8 != 0) {
        snprintf(settled->why, sizeof settled->why,
                 "heads are %lld numbers wide (expected a multiple of 8)", (long long)shape->d);
        return;
    }
    for (enum direction d = FORWARD; d < DIRECTIONS; d++) {
        uint64_t wants;
        char why[CUDNN_GRAPH_REASON];
        settled->ways[d] =
            find_way(&cudnn->library, &target, shape, d, granted_bytes(shape, d), &wants, why);
        if (settled->ways[d].plan) continue;
        snprintf(settled->why, sizeof settled->why, "%s: %s", names[d], why);
        return;
    }
}

static struct settled *find_settled(struct attention_cudnn *cudnn, const struct kernel_attention *shape)
{
    for (int i = 0; i < cudnn->shape_count; i++)
        if (same_shape(&cudnn->shapes[i].shape, shape)) return &cudnn->shapes[i];
    return NULL;
}

const char *attention_cudnn_settle(struct attention_cudnn *cudnn, const struct kernel_attention *shape)
{
    struct settled *settled = find_settled(cudnn, shape);
    if (!settled && cudnn->shape_count == SHAPES_MAX) return "there are too many shapes (limit is 64)";
    if (!settled) {
        settled = &cudnn->shapes[cudnn->shape_count++];
        settled->shape = (struct kernel_attention){.b = shape->b,
                                                   .t = shape->t,
                                                   .h = shape->h,
                                                   .kv = shape->kv,
                                                   .d = shape->d,
                                                   .causal = shape->causal};
        settle(cudnn, settled);
    }
    return settled->why[0] ? settled->why : NULL;
}

/* --- computing ------------------------------------------------------------------------------------ */

struct attention_cudnn_copies {
    bf16 *q, *k, *v, *out, *dout, *dq, *dk, *dv;
    float *row_sums;
    void *workspace;
};

static struct attention_cudnn_copies copies_of(const struct kernel_attention *a, bool back)
{
    const int64_t queries = a->b * a->t * a->h * a->d, keys = a->b * a->t * a->kv * a->d;
    struct attention_cudnn_copies c = {.q = (bf16 *)(void *)a->scratch};
    c.k = c.q + queries;
    c.v = c.k + keys;
    c.out = c.v + keys;
    c.dout = c.out + queries;
    c.dq = c.dout + queries;
    c.dk = c.dq + queries;
    c.dv = c.dk + keys;
    c.row_sums = (float *)(void *)(c.dv + keys);
    const uint64_t copied = memory_attention_copies(sizes_of(a), back) * sizeof(float);
    const uintptr_t behind = (uintptr_t)a->scratch + copied + WORKSPACE_ALIGNMENT - 1;
    c.workspace = (void *)(behind - behind % WORKSPACE_ALIGNMENT);
    return c;
}

struct attention_cudnn_place {
    int64_t row, row_kv, sum; /* numbers to be passed over */
};

static cudnnStatus_t execute(struct attention_cudnn *cudnn, const struct way *way,
                             const int64_t *numbers, void *const *pointers, int64_t count,
                             void *workspace)
{
    const struct cudnn_library *const library = &cudnn->library;
    cudnnBackendDescriptor_t pack = NULL;
    cudnnStatus_t status = library->create_descriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    status = library->set_attribute(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64,
                                    count, numbers);
    if (status == CUDNN_STATUS_SUCCESS)
        status = library->set_attribute(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
                                        CUDNN_TYPE_VOID_PTR, count, pointers);
    if (status == CUDNN_STATUS_SUCCESS)
        status = library->set_attribute(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE,
                                        CUDNN_TYPE_VOID_PTR, 1, &workspace);
    if (status == CUDNN_STATUS_SUCCESS) status = library->finalize(pack);
    if (status == CUDNN_STATUS_SUCCESS) status = library->execute(cudnn->handle, way->plan, pack);
    library->destroy_descriptor(pack);
    return status;
}

static const char *run_piece(struct attention_cudnn *cudnn, const struct way *way, const struct kernel_attention *a,
                             const struct attention_cudnn_copies *c, struct attention_cudnn_place at,
                             enum direction direction)
{
    float scale = (float)(1.0 / sqrt((double)a->d)), one = 1;
    float hidden = cudnn->library.version < 91000 ? -3.402823466e38f : -INFINITY;
    const struct {
        int64_t number;
        void *pointer;
        bool forward, backward;
    } all[] = {{Q, c->q + at.row, true, true},
               {K, c->k + at.row_kv, true, true},
               {V, c->v + at.row_kv, true, true},
               {OUT, c->out + at.row, true, true},
               {STATS, a->stats + at.sum, true, true},
               {SCALE, &scale, true, true},
               {HIDDEN, &hidden, a->causal, a->causal},
               {DOUT, c->dout + at.row, false, true},
               {DQ, c->dq + at.row, false, true},
               {DK, c->dk + at.row_kv, false, true},
               {DV, c->dv + at.row_kv, false, true},
               {ROW_SUMS, c->row_sums + at.sum, false, true},
               {ONE, &one, false, true}};
    int64_t numbers[OPERANDS], count = 0;
    void *pointers[OPERANDS];
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (!(direction == FORWARD ? all[i].forward : all[i].backward)) continue;
        numbers[count] = all[i].number;
        pointers[count++] = all[i].pointer;
    }
    const cudnnStatus_t status = execute(cudnn, way, numbers, pointers, count, c->workspace);
    if (status == CUDNN_STATUS_SUCCESS) return NULL;
    cudnn_library_reason(&cudnn->library, status, cudnn->failure, sizeof cudnn->failure);
    return cudnn->failure;
}

static const char *run_all(struct attention_cudnn *cudnn, const struct way *way, const struct kernel_attention *a,
                           const struct attention_cudnn_copies *c, enum direction direction)
{
    const int64_t group = a->h / a->kv;
    for (int64_t sample = 0; sample < a->b; sample += way->samples)
        for (int64_t first = 0; first < a->kv; first += way->groups) {
            const struct attention_cudnn_place at = {
                .row = (sample * a->t * a->h + first * group) * a->d,
                .row_kv = (sample * a->t * a->kv + first) * a->d,
                .sum = (sample * a->h + first * group) * a->t,
            };
            const char *const failed = run_piece(cudnn, way, a, c, at, direction);
            if (failed) return failed;
        }
    return NULL;
}

static const char *run_pieces(struct attention_cudnn *cudnn, const struct kernel_attention *a,
                              const struct attention_cudnn_copies *c, enum direction direction)
{
    struct settled *const settled = find_settled(cudnn, a);
    assert(settled && settled->why[0] == '\0');
    const bool loads = !settled->loaded[direction];
    if (loads) pthread_mutex_lock(&gpu_library_launching);
    const char *const failed = run_all(cudnn, &settled->ways[direction], a, c, direction);
    if (loads) pthread_mutex_unlock(&gpu_library_launching);
    settled->loaded[direction] = true;
    return failed;
}

/* widen_out() is the way back. */
static cudaError_t round_in(cudaStream_t stream, const struct kernel_attention *a, bf16 *to,
                            const float *from, int64_t heads, int64_t row)
{
    return cuda_round_rows(stream, to, from, a->b * a->t, heads * a->d, row);
}

static cudaError_t widen_out(cudaStream_t stream, const struct kernel_attention *a, float *to,
                             const bf16 *from, int64_t heads, int64_t row)
{
    return cuda_widen_rows(stream, to, from, a->b * a->t, heads * a->d, row);
}

const char *attention_cudnn_forward(struct attention_cudnn *cudnn, const struct kernel_attention *a)
{
    cudaStream_t const stream = cudnn->stream;
    const struct attention_cudnn_copies c = copies_of(a, false);
    const int64_t row_out = a->h * a->d;
    cudaError_t failed = round_in(stream, a, c.q, a->q, a->h, a->row_q);
    if (failed == cudaSuccess) failed = round_in(stream, a, c.k, a->k, a->kv, a->row_kv);
    if (failed == cudaSuccess) failed = round_in(stream, a, c.v, a->v, a->kv, a->row_kv);
    if (failed != cudaSuccess) return cudaGetErrorString(failed);
    const char *const said = run_pieces(cudnn, a, &c, FORWARD);
    if (said) return said;
    failed = widen_out(stream, a, a->out, c.out, a->h, row_out);
    return failed == cudaSuccess ? NULL : cudaGetErrorString(failed);
}

const char *attention_cudnn_backward(struct attention_cudnn *cudnn, const struct kernel_attention *a)
{
    cudaStream_t const stream = cudnn->stream;
    const struct attention_cudnn_copies c = copies_of(a, true);
    const int64_t row_out = a->h * a->d;
    cudaError_t failed = round_in(stream, a, c.q, a->q, a->h, a->row_q);
    if (failed == cudaSuccess) failed = round_in(stream, a, c.k, a->k, a->kv, a->row_kv);
    if (failed == cudaSuccess) failed = round_in(stream, a, c.v, a->v, a->kv, a->row_kv);
    if (failed == cudaSuccess) failed = round_in(stream, a, c.out, a->out, a->h, row_out);
    if (failed == cudaSuccess) failed = round_in(stream, a, c.dout, a->dout, a->h, row_out);
    if (failed != cudaSuccess) return cudaGetErrorString(failed);
    const char *const said = run_pieces(cudnn, a, &c, BACKWARD);
    if (said) return said;
    failed = widen_out(stream, a, a->dq, c.dq, a->h, a->row_q);
    if (failed == cudaSuccess) failed = widen_out(stream, a, a->dk, c.dk, a->kv, a->row_kv);
    if (failed == cudaSuccess) failed = widen_out(stream, a, a->dv, c.dv, a->kv, a->row_kv);
    return failed == cudaSuccess ? NULL : cudaGetErrorString(failed);
}

/* --- public ---------------------------------------------------------------------------------------- */

enum status attention_cudnn_create(cudaStream_t stream, struct attention_cudnn **out,
                                   struct error *err)
{
    struct attention_cudnn *const cudnn = alloc_zeroed(1, sizeof *cudnn);
    struct settled *const shapes = alloc_zeroed(SHAPES_MAX, sizeof *shapes);
    if (!cudnn || !shapes) {
        free(cudnn);
        free(shapes);
        return error_memory(err, "attention by cuDNN", sizeof *cudnn + SHAPES_MAX * sizeof *shapes);
    }
    cudnn->stream = stream;
    cudnn->shapes = shapes;
    enum status status = cudnn_library_open(&cudnn->library, err);
    cudnnStatus_t said = CUDNN_STATUS_SUCCESS;
    if (status == STATUS_OK) said = cudnn->library.create(&cudnn->handle);
    if (status == STATUS_OK && said == CUDNN_STATUS_SUCCESS)
        said = cudnn->library.set_stream(cudnn->handle, stream);
    if (status == STATUS_OK && said != CUDNN_STATUS_SUCCESS) {
        char reason[CUDNN_GRAPH_REASON];
        cudnn_library_reason(&cudnn->library, said, reason, sizeof reason);
        status = error_set(err, STATUS_DEVICE, "cuDNN gives no handle: %s", reason);
    }
    if (status == STATUS_OK)
        *out = cudnn;
    else
        attention_cudnn_destroy(cudnn);
    return status;
}

void attention_cudnn_destroy(struct attention_cudnn *cudnn)
{
    if (!cudnn) return;
    for (int i = 0; i < cudnn->shape_count; i++)
        for (enum direction d = FORWARD; d < DIRECTIONS; d++)
            if (cudnn->shapes[i].ways[d].plan)
                cudnn->library.destroy_descriptor(cudnn->shapes[i].ways[d].plan);
    if (cudnn->handle) cudnn->library.destroy(cudnn->handle);
    cudnn_library_close(&cudnn->library);
    free(cudnn->shapes);
    free(cudnn);
}

size_t attention_cudnn_version(const struct attention_cudnn *cudnn)
{
    return cudnn->library.version;
}
