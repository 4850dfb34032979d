/*
 * Attention of each head over tiles of queries and keys, forward and backward, in fp32.
 *
 * Letters: q, k, v rows of D numbers for each of T tokens, found where exec/kernels/kernels_attention.h says.
 *
 *     s(i,j) = q(i) . k(j) / sqrt(D);  p = softmax over j (causal: j <= i);  out(i) = sum p(i,j) v(j)
 *
 * The T x T weights never reach memory. Forward, a block holds a tile of queries and iterates over the tiles of keys
 * that they may see. For each query it keeps the largest score so far, the sum of exponentials and the weighted sum of
 * values, and rescales both sums when the largest grows. Only the log of the sum (lse) is stored. Backward recomputes
 * the weights from scores and lse, in two kernels. Each sum is made by one block in one order without atomics, and
 * scores are computed twice:
 *
 *     keys:     a block holds a tile of keys and goes through the queries that see them
 *                   dV += P^T dO,   dK += dS^T Q
 *     queries:  a block holds a tile of queries and goes through the keys they see
 *                   dQ += dS K
 *     with  P = exp(S - lse),  dP = dO V^T,  dS = P (dP - delta),  delta(i) = dout(i) . out(i)
 *
 * Heads may share keys and values, in groups: a block that holds a tile of keys processes the queries of all heads of
 * the group in turn, and so adds up their dK and dV.
 *
 * Queries may follow earlier tokens of their sample: keys are numbered from the first of these, and the keys kernel
 * adds to what later queries have made.
 *
 * delta is recomputed by every block that needs it: one dot product of D.
 *
 * A block is SIDE x SIDE threads, SIDE = TILE / EACH; a thread makes EACH x EACH results, SIDE apart: it reads 2 EACH
 * numbers of shared memory for EACH^2 multiplications. Rows in shared memory are D + 1 long, so that rows that a warp
 * reads together lie in different banks. D is the head width rounded up to 32, 64, 128 or 256, filled with zeros. A
 * block needs at most 49 KiB, which every GPU since sm_75 has:
 *
 *     D              32     64    128    256
 *     forward TILE   64     64     32     16
 *     backward TILE  32     32     16      8
 *
 * FLOPs per head, causal: forward 2 T^2 D, backward 7 T^2 D. This is fp32 on the plain cores.
 *
 * Source of the idea: Dao et al., "FlashAttention", NeurIPS 2022; Milakov and Gimelshein, "Online
 * normalizer calculation for softmax", 2018.
 */
#include "exec/cuda/kernels_cuda_device.cuh"

#include "exec/cuda/kernels_cuda_launch.h"

/* Starts of rows in q and dq, in k, v, dk and dv, and in out. */
struct head {
    int64_t q, kv, out;
    int64_t width; /* of a row of out */
    int t, d;
    int earlier, keys; /* tokens before the first query; keys that count */
    float scale;
};

/* index: sample H + head of queries */
__device__ static inline struct head head_of(const struct kernel_attention &a, int64_t index)
{
    const int64_t sample = index / a.h, number = index % a.h;
    struct head head;
    head.width = a.h * a.d;
    head.q = sample * a.t * a.row_q + number * a.d;
    head.kv = sample * (a.held > 0 ? a.held : a.t) * a.row_kv + number / (a.h / a.kv) * a.d;
    head.out = sample * a.t * head.width + number * a.d;
    head.t = (int)a.t;
    head.d = (int)a.d;
    head.earlier = (int)a.earlier;
    head.keys = (int)(a.earlier + a.t);
    head.scale = (float)(1.0 / sqrt((double)a.d));
    return head;
}

/* Returns the end of the keys that the query sees. */
__device__ static inline int seen_by(const struct kernel_attention &a, const struct head &head, int query)
{
    return a.causal && query < head.t ? head.earlier + query + 1 : head.keys;
}

/* Returns the number of tiles of keys that a tile of queries sees. */
template <int TILE> __device__ static inline int seen_tiles(const struct kernel_attention &a, const struct head &head,
                                                            int first)
{
    return (seen_by(a, head, first + TILE - 1) - 1) / TILE + 1;
}

/* --- tiles ---------------------------------------------------------------------------------------------- */

template <int D, int TILE, int EACH> struct shape {
    static constexpr int SIDE = TILE / EACH;
    static constexpr int THREADS = SIDE * SIDE;
    static constexpr int ROW = D + 1;         /* of a tile of q, k, v, out */
    static constexpr int WEIGHT_ROW = TILE + 1;
    static constexpr int COLUMNS = D / SIDE;  /* that a thread has of a TILE x D result */
    static constexpr int TILE_FLOATS = TILE * ROW;
    static constexpr int WEIGHT_FLOATS = TILE * WEIGHT_ROW;
};

/* Rounds for a bf16 job (models/kernel/precision.h). */
__device__ static inline float as_stored(float x, bool rounded)
{
    return rounded ? bf16_widen(bf16_nearest(x)) : x;
}

/* Fills with zeros past T and past d. */
template <int D, int TILE, int EACH>
__device__ static inline void load_tile(float *tile, const float *from, int64_t stride, int first,
                                        int t, int d, bool rounded)
{
    typedef struct shape<D, TILE, EACH> S;
    for (int i = threadIdx.x; i < TILE * D; i += S::THREADS) {
        const int row = i / D, column = i % D;
        const float x =
            first + row < t && column < d ? from[(int64_t)(first + row) * stride + column] : 0.0f;
        tile[row * S::ROW + column] = as_stored(x, rounded);
    }
}

/* result(r,c) = row (ty + SIDE r) of a . row (tx + SIDE c) of b */
template <int D, int TILE, int EACH>
__device__ static inline void multiply_rows(float result[EACH][EACH], const float *a,
                                            const float *b)
{
    typedef struct shape<D, TILE, EACH> S;
    const int tx = threadIdx.x % S::SIDE, ty = threadIdx.x / S::SIDE;
    for (int r = 0; r < EACH; r++)
        for (int c = 0; c < EACH; c++) result[r][c] = 0;
#pragma unroll 8
    for (int k = 0; k < D; k++) {
        float left[EACH], right[EACH];
        for (int r = 0; r < EACH; r++) left[r] = a[(ty + S::SIDE * r) * S::ROW + k];
        for (int c = 0; c < EACH; c++) right[c] = b[(tx + S::SIDE * c) * S::ROW + k];
        for (int r = 0; r < EACH; r++)
            for (int c = 0; c < EACH; c++) result[r][c] = fmaf(left[r], right[c], result[r][c]);
    }
}

/* sum(r,c) += over j: weight(row r of this thread, j) * b(j, column c of this thread); TRANSPOSED:
 * weight(j, row r). */
template <int D, int TILE, int EACH, bool TRANSPOSED>
__device__ static inline void
add_product(float sum[EACH][shape<D, TILE, EACH>::COLUMNS], const float *weights, const float *b)
{
    typedef struct shape<D, TILE, EACH> S;
    const int tx = threadIdx.x % S::SIDE, ty = threadIdx.x / S::SIDE;
    for (int j = 0; j < TILE; j++) {
        float left[EACH];
        for (int r = 0; r < EACH; r++) {
            const int row = ty + S::SIDE * r;
            left[r] = TRANSPOSED ? weights[j * S::WEIGHT_ROW + row] : weights[row * S::WEIGHT_ROW + j];
        }
#pragma unroll
        for (int c = 0; c < S::COLUMNS; c++) {
            const float right = b[j * S::ROW + tx + S::SIDE * c];
            for (int r = 0; r < EACH; r++) sum[r][c] = fmaf(left[r], right, sum[r][c]);
        }
    }
}

/* Writes a thread's part, times a factor, or adds it; for a bf16 job rows from `complete` on are rounded. */
template <int D, int TILE, int EACH>
__device__ static inline void store_tile(float *to, int64_t stride, int first, int t, int d,
                                         const float sum[EACH][shape<D, TILE, EACH>::COLUMNS],
                                         const float factor[EACH], bool rounded, bool adds = false, int complete = 0)
{
    typedef struct shape<D, TILE, EACH> S;
    const int tx = threadIdx.x % S::SIDE, ty = threadIdx.x / S::SIDE;
    for (int r = 0; r < EACH; r++) {
        const int row = first + ty + S::SIDE * r;
        if (row >= t) continue;
        for (int c = 0; c < S::COLUMNS; c++) {
            const int column = tx + S::SIDE * c;
            if (column >= d) continue;
            float *const at = to + (int64_t)row * stride + column;
            const float own = sum[r][c] * factor[r];
            *at = as_stored(adds ? *at + own : own, rounded && row >= complete);
        }
    }
}

/* Adds over the SIDE threads of a row: neighbours in a warp. */
template <int SIDE> __device__ static inline float row_sum(float x)
{
    for (int distance = SIDE / 2; distance > 0; distance /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, distance);
    return x;
}

template <int SIDE> __device__ static inline float row_max(float x)
{
    for (int distance = SIDE / 2; distance > 0; distance /= 2)
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, distance));
    return x;
}

/* --- forward ---------------------------------------------------------------------------------------------- */

/* Turns scores into weights relative to the largest so far; keys from `seen` on are not seen. Returns the factor of
 * the earlier sums. */
template <int SIDE, int EACH>
__device__ static inline float weigh_row(float *score, int seen, float scale, bool rounded, float *largest,
                                         float *total, float *weights)
{
    float top = *largest;
    for (int c = 0; c < EACH; c++) {
        score[c] = SIDE * c < seen ? score[c] * scale : -INFINITY;
        top = fmaxf(top, score[c]);
    }
    top = row_max<SIDE>(top);
    const float rescale = expf(*largest - top);
    float added = 0;
    for (int c = 0; c < EACH; c++) {
        const float weight = expf(score[c] - top);
        weights[SIDE * c] = as_stored(weight, rounded);
        added += weight;
    }
    *total = *total * rescale + row_sum<SIDE>(added);
    *largest = top;
    return rescale;
}

template <int D, int TILE, int EACH>
__global__ static void __launch_bounds__((TILE / EACH) * (TILE / EACH))
    attention_forward(struct kernel_attention a, int64_t tiles)
{
    typedef struct shape<D, TILE, EACH> S;
    DYNAMIC_SHARED(shared);
    float *const queries = shared, *const other = queries + S::TILE_FLOATS;
    float *const weights = other + S::TILE_FLOATS;
    const int64_t index = blockIdx.x / tiles;
    const int tile = (int)(tiles - 1 - blockIdx.x % tiles); /* tiles with the most keys first */
    const int first = tile * TILE;
    const struct head head = head_of(a, index);
    const int tx = threadIdx.x % S::SIDE, ty = threadIdx.x / S::SIDE;

    float largest[EACH], total[EACH], sum[EACH][S::COLUMNS];
    for (int r = 0; r < EACH; r++) {
        largest[r] = -INFINITY;
        total[r] = 0;
        for (int c = 0; c < S::COLUMNS; c++) sum[r][c] = 0;
    }
    load_tile<D, TILE, EACH>(queries, a.q + head.q, a.row_q, first, head.t, head.d, a.rounded);
    const int end = seen_tiles<TILE>(a, head, first);
    for (int key_tile = 0; key_tile < end; key_tile++) {
        const int key = key_tile * TILE;
        __syncthreads(); /* the values of the tile before have been read */
        load_tile<D, TILE, EACH>(other, a.k + head.kv, a.row_kv, key, head.keys, head.d, a.rounded);
        __syncthreads();
        float score[EACH][EACH];
        multiply_rows<D, TILE, EACH>(score, queries, other);
        for (int r = 0; r < EACH; r++) {
            const int query = first + ty + S::SIDE * r;
            /* rows past T: finite, never stored */
            const int seen = seen_by(a, head, query);
            const float rescale =
                weigh_row<S::SIDE, EACH>(score[r], seen - key - tx, head.scale, a.rounded, &largest[r], &total[r],
                                         weights + (ty + S::SIDE * r) * S::WEIGHT_ROW + tx);
            for (int c = 0; c < S::COLUMNS; c++) sum[r][c] *= rescale;
        }
        __syncthreads(); /* the keys have been read, the weights are there */
        load_tile<D, TILE, EACH>(other, a.v + head.kv, a.row_kv, key, head.keys, head.d, a.rounded);
        __syncthreads();
        add_product<D, TILE, EACH, false>(sum, weights, other);
    }
    float inverse[EACH];
    for (int r = 0; r < EACH; r++) {
        inverse[r] = 1.0f / total[r];
        const int query = first + ty + S::SIDE * r;
        if (tx == 0 && query < head.t) a.stats[index * a.t + query] = largest[r] + logf(total[r]);
    }
    store_tile<D, TILE, EACH>(a.out + head.out, head.width, first, head.t, head.d, sum, inverse, a.rounded);
}

/* --- backward ---------------------------------------------------------------------------------------------- */

/* Loads rows by 8 threads each; `gradients` is the tile of dout. */
template <int D, int TILE, int EACH>
__device__ static inline void load_rows(float *lse, float *delta, const float *gradients,
                                        const struct kernel_attention &a, const struct head &head,
                                        int64_t index, int first)
{
    typedef struct shape<D, TILE, EACH> S;
    enum { LANES = 8 };
    static_assert(S::THREADS % WARP == 0 && TILE * LANES % S::THREADS == 0, "whole warps");
    const float *const out = a.out + head.out;
    for (int i = threadIdx.x; i < TILE * LANES; i += S::THREADS) {
        const int row = i / LANES, lane = i % LANES;
        float sum = 0;
        if (first + row < head.t)
            for (int column = lane; column < head.d; column += LANES)
                sum = fmaf(gradients[row * S::ROW + column],
                           out[(int64_t)(first + row) * head.width + column], sum);
        sum = row_sum<LANES>(sum);
        if (lane == 0) {
            delta[row] = sum;
            lse[row] = first + row < head.t ? a.stats[index * a.t + first + row] : 0.0f;
        }
    }
}

/* Computes P and dS of a tile. */
template <int D, int TILE, int EACH>
__device__ static inline void make_weights(float *weights, float *slopes, const float *queries,
                                           const float *keys, const float *gradients,
                                           const float *values, const float *lse,
                                           const float *delta, const struct head &head, int first,
                                           int key, const struct kernel_attention &a)
{
    typedef struct shape<D, TILE, EACH> S;
    const int tx = threadIdx.x % S::SIDE, ty = threadIdx.x / S::SIDE;
    float score[EACH][EACH], gradient[EACH][EACH];
    multiply_rows<D, TILE, EACH>(score, queries, keys);
    multiply_rows<D, TILE, EACH>(gradient, gradients, values);
    for (int r = 0; r < EACH; r++) {
        const int row = ty + S::SIDE * r, query = first + row;
        const int seen = query >= head.t ? 0 : seen_by(a, head, query);
        for (int c = 0; c < EACH; c++) {
            const int column = tx + S::SIDE * c;
            const float weight =
                key + column < seen ? expf(score[r][c] * head.scale - lse[row]) : 0.0f;
            if (weights) weights[row * S::WEIGHT_ROW + column] = as_stored(weight, a.rounded);
            slopes[row * S::WEIGHT_ROW + column] =
                as_stored(weight * (gradient[r][c] - delta[row]) * head.scale, a.rounded);
        }
    }
}

/* Four tiles, two of weights, two rows. */
template <int D, int TILE, int EACH> struct backward_memory {
    float *queries, *gradients, *keys, *values, *weights, *slopes, *lse, *delta;
    static constexpr int FLOATS = 4 * shape<D, TILE, EACH>::TILE_FLOATS +
                                  2 * shape<D, TILE, EACH>::WEIGHT_FLOATS + 2 * TILE;

    __device__ explicit backward_memory(float *shared)
    {
        typedef struct shape<D, TILE, EACH> S;
        queries = shared;
        gradients = queries + S::TILE_FLOATS;
        keys = gradients + S::TILE_FLOATS;
        values = keys + S::TILE_FLOATS;
        weights = values + S::TILE_FLOATS;
        slopes = weights + S::WEIGHT_FLOATS;
        lse = slopes + S::WEIGHT_FLOATS;
        delta = lse + TILE;
    }
};

template <int D, int TILE, int EACH>
__global__ static void __launch_bounds__((TILE / EACH) * (TILE / EACH))
    attention_keys(struct kernel_attention a, int64_t tiles)
{
    typedef struct shape<D, TILE, EACH> S;
    DYNAMIC_SHARED(shared);
    const backward_memory<D, TILE, EACH> memory(shared);
    const int64_t group = a.h / a.kv, first_index = blockIdx.x / tiles * group;
    const int tile = (int)(blockIdx.x % tiles), key = tile * TILE;
    struct head head = head_of(a, first_index);

    float d_keys[EACH][S::COLUMNS], d_values[EACH][S::COLUMNS], one[EACH];
    for (int r = 0; r < EACH; r++) {
        one[r] = 1.0f;
        for (int c = 0; c < S::COLUMNS; c++) d_keys[r][c] = d_values[r][c] = 0;
    }
    load_tile<D, TILE, EACH>(memory.keys, a.k + head.kv, a.row_kv, key, head.keys, head.d, a.rounded);
    load_tile<D, TILE, EACH>(memory.values, a.v + head.kv, a.row_kv, key, head.keys, head.d, a.rounded);
    const int64_t begin = a.causal && key > head.earlier ? (key - head.earlier) / TILE : 0;
    const int64_t each = (head.t + TILE - 1) / TILE - begin;
    for (int64_t round = 0; round < group * each; round++) { /* a head's tiles, then the next head's */
        const int64_t index = first_index + round / each;
        const int first = (int)(begin + round % each) * TILE;
        head = head_of(a, index);
        __syncthreads(); /* the tiles of the round before have been read */
        load_tile<D, TILE, EACH>(memory.queries, a.q + head.q, a.row_q, first, head.t, head.d, a.rounded);
        load_tile<D, TILE, EACH>(memory.gradients, a.dout + head.out, head.width, first, head.t,
                                 head.d, a.rounded);
        __syncthreads();
        load_rows<D, TILE, EACH>(memory.lse, memory.delta, memory.gradients, a, head, index, first);
        __syncthreads();
        make_weights<D, TILE, EACH>(memory.weights, memory.slopes, memory.queries, memory.keys,
                                    memory.gradients, memory.values, memory.lse, memory.delta,
                                    head, first, key, a);
        __syncthreads();
        add_product<D, TILE, EACH, true>(d_values, memory.weights, memory.gradients);
        add_product<D, TILE, EACH, true>(d_keys, memory.slopes, memory.queries);
    }
    store_tile<D, TILE, EACH>(a.dk + head.kv, a.row_kv, key, head.keys, head.d, d_keys, one, a.rounded, a.adds,
                              head.earlier);
    store_tile<D, TILE, EACH>(a.dv + head.kv, a.row_kv, key, head.keys, head.d, d_values, one, a.rounded, a.adds,
                              head.earlier);
}

template <int D, int TILE, int EACH>
__global__ static void __launch_bounds__((TILE / EACH) * (TILE / EACH))
    attention_queries(struct kernel_attention a, int64_t tiles)
{
    typedef struct shape<D, TILE, EACH> S;
    DYNAMIC_SHARED(shared);
    const backward_memory<D, TILE, EACH> memory(shared);
    const int64_t index = blockIdx.x / tiles;
    const int tile = (int)(tiles - 1 - blockIdx.x % tiles), first = tile * TILE;
    const struct head head = head_of(a, index);

    float d_queries[EACH][S::COLUMNS], one[EACH];
    for (int r = 0; r < EACH; r++) {
        one[r] = 1.0f;
        for (int c = 0; c < S::COLUMNS; c++) d_queries[r][c] = 0;
    }
    load_tile<D, TILE, EACH>(memory.queries, a.q + head.q, a.row_q, first, head.t, head.d, a.rounded);
    load_tile<D, TILE, EACH>(memory.gradients, a.dout + head.out, head.width, first, head.t,
                             head.d, a.rounded);
    __syncthreads();
    load_rows<D, TILE, EACH>(memory.lse, memory.delta, memory.gradients, a, head, index, first);
    const int end = seen_tiles<TILE>(a, head, first);
    for (int key_tile = 0; key_tile < end; key_tile++) {
        const int key = key_tile * TILE;
        __syncthreads(); /* the keys and slopes of the round before have been read */
        load_tile<D, TILE, EACH>(memory.keys, a.k + head.kv, a.row_kv, key, head.keys, head.d, a.rounded);
        load_tile<D, TILE, EACH>(memory.values, a.v + head.kv, a.row_kv, key, head.keys, head.d, a.rounded);
        __syncthreads();
        make_weights<D, TILE, EACH>(nullptr, memory.slopes, memory.queries, memory.keys,
                                    memory.gradients, memory.values, memory.lse, memory.delta,
                                    head, first, key, a);
        __syncthreads();
        add_product<D, TILE, EACH, false>(d_queries, memory.slopes, memory.keys);
    }
    store_tile<D, TILE, EACH>(a.dq + head.q, a.row_q, first, head.t, head.d, d_queries, one, a.rounded);
}

/* --- launchers ------------------------------------------------------------------------------------------------ */

template <int D, int TILE, int EACH> static constexpr size_t forward_bytes()
{
    return (2 * shape<D, TILE, EACH>::TILE_FLOATS + shape<D, TILE, EACH>::WEIGHT_FLOATS) *
           sizeof(float);
}

template <int D, int TILE, int EACH> static constexpr size_t backward_bytes()
{
    return backward_memory<D, TILE, EACH>::FLOATS * sizeof(float);
}

template <int D, int TILE, int EACH>
static cudaError_t run_forward(cudaStream_t stream, const struct kernel_attention &a)
{
    const int64_t tiles = blocks_for(a.t, TILE);
    return launch(attention_forward<D, TILE, EACH>, tiles * a.b * a.h,
                  dim3(shape<D, TILE, EACH>::THREADS), forward_bytes<D, TILE, EACH>(), stream, a,
                  tiles);
}

template <int D, int TILE, int EACH>
static cudaError_t run_backward(cudaStream_t stream, const struct kernel_attention &a)
{
    const int64_t tiles = blocks_for(a.t, TILE), key_tiles = blocks_for(a.earlier + a.t, TILE);
    const dim3 threads(shape<D, TILE, EACH>::THREADS);
    const cudaError_t failed = launch(attention_keys<D, TILE, EACH>, key_tiles * a.b * a.kv, threads,
                                      backward_bytes<D, TILE, EACH>(), stream, a, key_tiles);
    if (failed != cudaSuccess) return failed;
    return launch(attention_queries<D, TILE, EACH>, tiles * a.b * a.h, threads,
                  backward_bytes<D, TILE, EACH>(), stream, a, tiles);
}

extern "C" cudaError_t cuda_attention_forward(cudaStream_t stream,
                                              const struct kernel_attention *attention)
{
    const int64_t d = attention->d;
    if (d > CUDA_HEAD_WIDTH_MAX || attention->earlier + attention->t > INT32_MAX / 2) return cudaErrorInvalidValue;
    if (d <= 32) return run_forward<32, 64, 4>(stream, *attention);
    if (d <= 64) return run_forward<64, 64, 4>(stream, *attention);
    if (d <= 128) return run_forward<128, 32, 4>(stream, *attention);
    return run_forward<256, 16, 2>(stream, *attention);
}

extern "C" cudaError_t cuda_attention_backward(cudaStream_t stream,
                                               const struct kernel_attention *attention)
{
    const int64_t d = attention->d;
    if (d > CUDA_HEAD_WIDTH_MAX || attention->earlier + attention->t > INT32_MAX / 2) return cudaErrorInvalidValue;
    if (d <= 32) return run_backward<32, 32, 4>(stream, *attention);
    if (d <= 64) return run_backward<64, 32, 4>(stream, *attention);
    if (d <= 128) return run_backward<128, 16, 2>(stream, *attention);
    return run_backward<256, 8, 1>(stream, *attention);
}

/* Shared memory above 48 KiB needs this attribute; setting it loads the kernel. */
static cudaError_t allow(const void *kernel, size_t bytes)
{
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
}

template <int D, int FORWARD, int FORWARD_EACH, int BACKWARD, int BACKWARD_EACH>
static cudaError_t load_width()
{
    cudaError_t failed = allow((const void *)attention_forward<D, FORWARD, FORWARD_EACH>,
                               forward_bytes<D, FORWARD, FORWARD_EACH>());
    if (failed == cudaSuccess)
        failed = allow((const void *)attention_keys<D, BACKWARD, BACKWARD_EACH>,
                       backward_bytes<D, BACKWARD, BACKWARD_EACH>());
    if (failed == cudaSuccess)
        failed = allow((const void *)attention_queries<D, BACKWARD, BACKWARD_EACH>,
                       backward_bytes<D, BACKWARD, BACKWARD_EACH>());
    return failed;
}

extern "C" cudaError_t cuda_attention_load(void)
{
    cudaError_t failed = load_width<32, 64, 4, 32, 4>();
    if (failed == cudaSuccess) failed = load_width<64, 64, 4, 32, 4>();
    if (failed == cudaSuccess) failed = load_width<128, 32, 4, 16, 2>();
    if (failed == cudaSuccess) failed = load_width<256, 16, 2, 8, 1>();
    return failed;
}
