/*
 * As on the host (kernels_embed.c), a row's gradient is the sum of dx of every occurrence of the row's token, in the
 * order of the tokens, plus the tied head's, if any. The tokens of a row are found by sorting pairs (row, token's
 * place), with the row in the upper half of 64 bits. CUB's radix sort is stable: equal rows keep the order of the
 * tokens. Tokens outside the range, and the padding token, get the row after the vocabulary and end up last.
 *
 * Then a block takes a row. Its threads find the row's first pair together: each checks one of THREADS evenly spaced
 * pairs.
 *
 * One thread per column adds in the same order for every cut of the table, without atomics. The same kernel can write
 * the gradient instead of stepping, or continue a gradient's sums with more tokens, and add up the sums of equal parts
 * of the tokens as a tree, as on the host.
 */
#include "exec/cuda/kernels_cuda_device.cuh"

#include <cub/device/device_radix_sort.cuh>

#include "exec/cuda/kernels_cuda_launch.h"
#include "exec/cuda/kernels_cuda_step.cuh"

enum { THREADS = 256, UNROLL = 4, LEVELS_MAX = 31 };

/* --- forward ---------------------------------------------------------------------------------------- */

__device__ static inline float number_of(float x)
{
    return x;
}

__device__ static inline float number_of(bf16 x)
{
    return bf16_widen(x);
}

/* The slice with row 0 comes first and writes, others add. */
template <typename Number>
__global__ static void embed_forward(float *x, const Number *rows, const int32_t *tokens,
                                     int64_t token_stride, int64_t t, int64_t c, int64_t v,
                                     int64_t first_row, int64_t row_count)
{
    const int64_t r = blockIdx.x, end_row = first_row + row_count;
    const int64_t token = tokens[r / t * token_stride + r % t], position = v + r % t;
    const bool has_token = token >= first_row && token < end_row && token < v;
    const bool has_position = position >= first_row && position < end_row;
    if (first_row > 0 && !has_token && !has_position) return;
    for (int64_t i = threadIdx.x; i < c; i += THREADS) {
        float sum = first_row == 0 ? 0.0f : x[r * c + i];
        if (has_token) sum += number_of(rows[(token - first_row) * c + i]);
        if (has_position) sum += number_of(rows[(position - first_row) * c + i]);
        x[r * c + i] = sum;
    }
}

/* --- which tokens are in which row --------------------------------------------------------------------- */

__global__ static void make_pairs(unsigned long long *pairs, struct cuda_embed e)
{
    const int64_t r = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (r >= e.b * e.t) return;
    const int64_t token = e.tokens[r / e.t * e.token_stride + r % e.t];
    const bool inside = token >= e.first_row && token < e.first_row + e.row_count &&
                        token < e.vocabulary && token + 1 != e.rows.padded;
    pairs[r] = (unsigned long long)(inside ? token : e.vocabulary) << 32 | (unsigned long long)r;
}

/* Returns the first pair whose row is at least `row`; all threads of the block must call it. */
__device__ static int64_t find_pair(const unsigned long long *pairs, int64_t count, int64_t row)
{
    int64_t low = 0, high = count;
    while (low < high) {
        const int64_t width = (high - low + THREADS - 1) / THREADS;
        const int64_t probe = low + threadIdx.x * width;
        const bool in_front = probe < high && (int64_t)(pairs[probe] >> 32) < row;
        const int64_t passed = __syncthreads_count(in_front);
        if (passed == 0) return low;
        const int64_t end = low + passed * width;
        low += (passed - 1) * width + 1;
        if (end < high) high = end;
    }
    return low;
}

/* --- update ----------------------------------------------------------------------------------------------- */

/* The terms of a row's gradient. */
struct terms {
    const unsigned long long *pairs; /* nullptr: of a position, one token of each sample */
    int64_t position, count;
};

__device__ static int64_t term_place(const struct cuda_embed &e, const struct terms &t, int64_t k)
{
    return t.pairs ? (int64_t)(t.pairs[k] & 0xffffffffu) : k * e.t + t.position;
}

__device__ static float sum_in_order(const struct cuda_embed &e, const struct terms &t, int64_t i, float g)
{
    for (int64_t k = 0; k < t.count; k += UNROLL) {
        float loaded[UNROLL];
        for (int u = 0; u < UNROLL; u++) {
            if (k + u >= t.count) break;
            loaded[u] = e.dx[term_place(e, t, k + u) * e.c + i];
        }
        for (int u = 0; u < UNROLL; u++)
            if (k + u < t.count) g += loaded[u];
    }
    return g;
}

/* A part's sum, when it is complete, is carried up the tree to where the next part with terms is in the other branch,
 * and waits there; the last one to the top. Parts without terms are left out. */
__device__ static float sum_as_tree(const struct cuda_embed &e, const struct terms &t, int64_t i)
{
    const int64_t part_rows = e.b / e.parts * e.t;
    float waiting[LEVELS_MAX] = {0}, own = 0;
    unsigned int waits = 0;
    int64_t part = t.count > 0 ? term_place(e, t, 0) / part_rows : 0;
    for (int64_t k = 0; k < t.count; k++) {
        const int64_t place = term_place(e, t, k);
        own += e.dx[place * e.c + i];
        const bool last = k + 1 == t.count;
        const int64_t next = last ? part : term_place(e, t, k + 1) / part_rows;
        if (!last && next == part) continue;
        for (int level = 0; level < LEVELS_MAX; level++) {
            if (!last && part >> (level + 1) == next >> (level + 1)) {
                waiting[level] = own;
                waits |= 1u << level;
                break;
            }
            if (waits >> level & 1) own += waiting[level];
            waits &= ~(1u << level);
        }
        if (last) break;
        own = 0;
        part = next;
    }
    return own;
}

__global__ static void update_rows(struct cuda_embed e, const unsigned long long *pairs)
{
    const int64_t row = blockIdx.x, global = e.first_row + row;
    const bool is_position = global >= e.vocabulary;
    const int64_t position = global - e.vocabulary;
    int64_t first = 0, count = 0;
    if (is_position) {
        count = position < e.t ? e.b : 0; /* one token of each sample */
    } else {
        first = find_pair(pairs, e.b * e.t, global);
        while (first + count < e.b * e.t && (int64_t)(pairs[first + count] >> 32) == global)
            count++;
    }
    const bool has_head = e.head && !is_position;
    if ((e.skip_idle || e.continues) && !has_head && count == 0) return;
    const struct terms own = {is_position ? nullptr : pairs + first, position, count};
    for (int64_t i = threadIdx.x; i < e.c; i += THREADS) {
        float g = e.continues ? e.gradient[row * e.c + i] : 0.0f;
        g = e.parts > 1 ? sum_as_tree(e, own, i) : sum_in_order(e, own, i, g);
        if (has_head) g += e.head[row * e.c + i];
        if (e.gradient) {
            e.gradient[row * e.c + i] = g;
            continue;
        }
        struct step_numbers numbers = step_load(e.rows, row * e.c + i, e.step);
        step_apply(&numbers, g, e.rows.m != nullptr, e.rows.v != nullptr, e.step);
        step_store(e.rows, row * e.c + i, numbers, e.step);
    }
}

/* --- launchers ---------------------------------------------------------------------------------------------- */

extern "C" cudaError_t cuda_embed_forward(cudaStream_t stream, float *x, const float *rows,
                                          const int32_t *tokens, int64_t token_stride, int64_t b,
                                          int64_t t, int64_t c, int64_t v, int64_t first_row,
                                          int64_t row_count)
{
    return launch(embed_forward<float>, b * t, dim3(THREADS), 0, stream, x, rows, tokens, token_stride, t,
                  c, v, first_row, row_count);
}

extern "C" cudaError_t cuda_embed_forward_bf16(cudaStream_t stream, float *x, const bf16 *rows,
                                               const int32_t *tokens, int64_t token_stride,
                                               int64_t b, int64_t t, int64_t c, int64_t v,
                                               int64_t first_row, int64_t row_count)
{
    return launch(embed_forward<bf16>, b * t, dim3(THREADS), 0, stream, x, rows, tokens,
                  token_stride, t, c, v, first_row, row_count);
}

extern "C" cudaError_t cuda_embed_update(cudaStream_t stream, const struct cuda_embed *embed,
                                         unsigned long long *pairs, void *workspace)
{
    const int64_t tokens = embed->b * embed->t;
    if (tokens > INT32_MAX) return cudaErrorInvalidValue;
    int row_bits = 1;
    while (embed->vocabulary >> row_bits > 0) row_bits++;
    cudaError_t failed = launch(make_pairs, blocks_for(tokens, THREADS), dim3(THREADS), 0, stream,
                                pairs, *embed);
    if (failed != cudaSuccess) return failed;

    cub::DoubleBuffer<unsigned long long> both(pairs, pairs + tokens);
    size_t bytes = 0;
    failed = cub::DeviceRadixSort::SortKeys(nullptr, bytes, both, (int)tokens, 32, 32 + row_bits,
                                            stream);
    if (failed != cudaSuccess) return failed;
    if (bytes > CUDA_WORKSPACE_BYTES) return cudaErrorMemoryAllocation;
    bytes = CUDA_WORKSPACE_BYTES;
    failed = cub::DeviceRadixSort::SortKeys(workspace, bytes, both, (int)tokens, 32, 32 + row_bits,
                                            stream);
    if (failed != cudaSuccess) return failed;
    return launch(update_rows, embed->row_count, dim3(THREADS), 0, stream, *embed,
                  (const unsigned long long *)both.Current());
}

extern "C" cudaError_t cuda_embed_load(void)
{
    const void *const kernels[] = {(const void *)embed_forward<float>,
                                   (const void *)embed_forward<bf16>, (const void *)make_pairs,
                                   (const void *)update_rows};
    return cuda_load_kernels(kernels);
}
