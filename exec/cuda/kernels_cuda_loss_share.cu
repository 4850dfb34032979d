/*
 * The loss where each device of a tensor group has the logits of some words: kernels_loss_share.c in three launches,
 * between which the devices combine a few numbers for each row.
 *
 * A block takes a row, as in kernels_cuda_rows.cu. Each launch reads and writes the logits once.
 */
#include "exec/cuda/kernels_cuda_device.cuh"

#include "exec/cuda/kernels_cuda_launch.h"

enum { THREADS = 512 };

__device__ static inline int64_t label_at(const struct cuda_loss_share &s, int64_t place)
{
    return s.labels[place / s.t * s.label_stride + place % s.t];
}

/* Returns the target's place among the device's words; negative: it is not there. */
__device__ static inline int64_t own_word(const struct cuda_loss_share &s, int64_t label)
{
    const int64_t word = label - s.first_word;
    return label >= 0 && word >= 0 && word < s.v ? word : -1;
}

__global__ static void find_largest(struct cuda_loss_share s)
{
    const int64_t row = blockIdx.x;
    const float *const z = s.logits + row * s.v;
    float largest = -INFINITY;
    for (int64_t j = threadIdx.x; j < s.v; j += THREADS) largest = fmaxf(largest, z[j]);
    largest = block_max<THREADS>(largest);
    if (threadIdx.x == 0) s.largest[row] = largest;
}

/* Replaces the logits by their exponentials. */
__global__ static void sum_exponentials(struct cuda_loss_share s)
{
    const int64_t row = blockIdx.x, word = own_word(s, label_at(s, s.first + row));
    float *const z = s.logits + row * s.v;
    const float largest = s.largest[row];
    float sum = 0;
    if (threadIdx.x == 0 && word < 0) s.at_target[row] = 0.0f;
    for (int64_t j = threadIdx.x; j < s.v; j += THREADS) {
        const float less = z[j] - largest;
        if (j == word) s.at_target[row] = less;
        z[j] = expf(less);
        sum += z[j];
    }
    sum = block_sum<THREADS>(sum);
    if (threadIdx.x == 0) s.sums[row] = sum;
}

/* Writes the number of targets that the loss is a mean over. */
__global__ static void count_targets(double *counted, struct cuda_loss_share s)
{
    int64_t count = 0;
    for (int64_t first = 0; s.masked && first < s.b * s.t; first += THREADS) {
        const int64_t place = first + threadIdx.x;
        count += __syncthreads_count(place < s.b * s.t && label_at(s, place) >= 0);
    }
    if (!s.masked) count = s.b * s.t;
    if (count < 1) count = 1;
    if (threadIdx.x == 0) *counted = s.targets > 0 ? (double)s.targets : (double)count * s.parts;
}

__global__ static void make_gradient(struct cuda_loss_share s, const double *counted)
{
    const int64_t row = blockIdx.x, label = label_at(s, s.first + row), word = own_word(s, label);
    float *const z = s.logits + row * s.v;
    const float scale = 1.0f / (float)*counted;
    const float factor = label >= 0 ? scale / s.sums[row] : 0.0f;
    for (int64_t j = threadIdx.x; j < s.v; j += THREADS) z[j] = z[j] * factor - (j == word ? scale : 0.0f);
}

/* Computes *loss = (or +=) the mean over the rows' targets. */
__global__ static void mean_loss(double *loss, struct cuda_loss_share s, const double *counted)
{
    __shared__ double sums[THREADS];
    double total = 0;
    for (int64_t row = threadIdx.x; row < s.count; row += THREADS)
        if (label_at(s, s.first + row) >= 0) total += log((double)s.sums[row]) - (double)s.at_target[row];
    sums[threadIdx.x] = total;
    __syncthreads();
    if (threadIdx.x > 0) return;
    for (int i = 1; i < THREADS; i++) total += sums[i];
    *loss = (s.part == 0 && s.first == 0 ? 0 : *loss) + total / *counted;
}

/* --- launchers ------------------------------------------------------------------------------------ */

extern "C" cudaError_t cuda_loss_largest(cudaStream_t stream, const struct cuda_loss_share *share)
{
    return launch(find_largest, share->count, dim3(THREADS), 0, stream, *share);
}

extern "C" cudaError_t cuda_loss_sums(cudaStream_t stream, const struct cuda_loss_share *share)
{
    return launch(sum_exponentials, share->count, dim3(THREADS), 0, stream, *share);
}

extern "C" cudaError_t cuda_loss_gradient(cudaStream_t stream, double *loss, const struct cuda_loss_share *share,
                                          void *workspace)
{
    double *const counted = (double *)workspace;
    cudaError_t failed = launch(count_targets, 1, dim3(THREADS), 0, stream, counted, *share);
    if (failed == cudaSuccess && share->v > 0)
        failed = launch(make_gradient, share->count, dim3(THREADS), 0, stream, *share, (const double *)counted);
    if (failed != cudaSuccess) return failed;
    return launch(mean_loss, 1, dim3(THREADS), 0, stream, loss, *share, (const double *)counted);
}

extern "C" cudaError_t cuda_loss_share_load(void)
{
    const void *const kernels[] = {(const void *)find_largest, (const void *)sum_exponentials,
                                   (const void *)count_targets, (const void *)make_gradient, (const void *)mean_loss};
    return cuda_load_kernels(kernels);
}
