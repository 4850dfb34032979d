/*
 * Kernels over rows and columns of a matrix: layer norm, column sums, the loss.
 *
 * Rows. A block takes a row: THREADS partial sums of numbers THREADS apart, then those of the block
 * in a fixed order. The row is read from DRAM once and from the caches afterwards.
 *
 * Columns (gradients of norm weights and of biases) are summed in two stages, because one block per
 * 32 columns would leave most of the machine idle: the rows are cut into at most CHUNKS_MAX pieces
 * by a rule that knows the shape alone; each piece writes its sums to the workspace, and a second
 * kernel adds the pieces from first to last.
 *
 *                 columns ->                            workspace (chunks, C)
 *        rows  [ 32 x 8 threads ][ ... ]   chunk 0  ->  row 0   \
 *          |   [ 32 x 8 threads ][ ... ]   chunk 1  ->  row 1    > second stage
 *
 * The loss. One sweep finds a row's largest logit and the sum of exponentials together: each thread
 * keeps both for the numbers it has seen and rescales its sum when the largest changes. A second sweep
 * writes the gradient. 8 bytes per logit from and to DRAM when a row (200 KB) stays in the second
 * cache. A block takes every LOSS_BLOCKS-th row and adds up their losses in double.
 */
#include "exec/kernels_cuda_device.cuh"

#include "exec/kernels_cuda_launch.h"

enum { THREADS = 256, LOSS_THREADS = 512, LOSS_BLOCKS = 65536 };
enum { COLUMNS = 32, LANES = 8, CHUNKS_MAX = 64, CHUNK_ROWS_MIN = 64 };

/* --- layer norm --------------------------------------------------------------------------------------- */

/* x + y -> sum (y may be NULL; sum may be y), then the norm of it. A thread reads back only what it
 * wrote itself. */
__global__ static void norm_forward(float *out, float *sum, float *stats, const float *x,
                                    const float *y, const float *w, const float *b, int64_t c,
                                    float epsilon)
{
    const int64_t row = blockIdx.x;
    const float *in = x + row * c;
    float total = 0;
    if (y) {
        float *const added = sum + row * c;
        for (int64_t j = threadIdx.x; j < c; j += THREADS) {
            const float value = in[j] + y[row * c + j];
            added[j] = value;
            total += value;
        }
        in = added;
    } else {
        for (int64_t j = threadIdx.x; j < c; j += THREADS) total += in[j];
    }
    const float mean = block_sum<THREADS>(total) / (float)c;
    float squares = 0;
    for (int64_t j = threadIdx.x; j < c; j += THREADS) squares += (in[j] - mean) * (in[j] - mean);
    const float inverse = 1.0f / sqrtf(block_sum<THREADS>(squares) / (float)c + epsilon);
    for (int64_t j = threadIdx.x; j < c; j += THREADS)
        out[row * c + j] = (in[j] - mean) * inverse * w[j] + b[j];
    if (threadIdx.x == 0) {
        stats[2 * row] = mean;
        stats[2 * row + 1] = inverse;
    }
}

/* dx of a row; `added` may be NULL, or dx. */
__global__ static void norm_input(float *dx, const float *dout, const float *x,
                                  const float *stats, const float *w, const float *added,
                                  int64_t c)
{
    const int64_t row = blockIdx.x, at = row * c;
    const float mean = stats[2 * row], inverse = stats[2 * row + 1];
    float plain = 0, weighted = 0;
    for (int64_t j = threadIdx.x; j < c; j += THREADS) {
        const float g = dout[at + j] * w[j];
        plain += g;
        weighted += g * ((x[at + j] - mean) * inverse);
    }
    const float average = block_sum<THREADS>(plain) / (float)c;
    const float slope = block_sum<THREADS>(weighted) / (float)c;
    for (int64_t j = threadIdx.x; j < c; j += THREADS) {
        const float g =
            (dout[at + j] * w[j] - average - (x[at + j] - mean) * inverse * slope) * inverse;
        dx[at + j] = added ? added[at + j] + g : g;
    }
}

/* --- columns ------------------------------------------------------------------------------------------- */

/* Sums of COLUMNS columns over one chunk of rows. NORM: sums[0] of x times the normed input as well,
 * in front of the plain ones. A block has COLUMNS x LANES threads. */
template <bool NORM>
__global__ static void sum_chunk(float *partial, const float *x, const float *in,
                                 const float *stats, int64_t rows, int64_t columns,
                                 int64_t chunk_rows, int64_t column_blocks)
{
    __shared__ float plain_sums[LANES][COLUMNS], weighted_sums[LANES][COLUMNS];
    const int64_t chunk = blockIdx.x / column_blocks;
    const int64_t column = blockIdx.x % column_blocks * COLUMNS + threadIdx.x;
    const int64_t end = (chunk + 1) * chunk_rows < rows ? (chunk + 1) * chunk_rows : rows;
    float plain = 0, weighted = 0;
    if (column < columns)
        for (int64_t row = chunk * chunk_rows + threadIdx.y; row < end; row += LANES) {
            const float value = x[row * columns + column];
            plain += value;
            if (NORM)
                weighted += value * ((in[row * columns + column] - stats[2 * row]) *
                                     stats[2 * row + 1]);
        }
    plain_sums[threadIdx.y][threadIdx.x] = plain;
    weighted_sums[threadIdx.y][threadIdx.x] = weighted;
    __syncthreads();
    if (threadIdx.y > 0 || column >= columns) return;
    plain = weighted = 0;
    for (int lane = 0; lane < LANES; lane++) {
        plain += plain_sums[lane][threadIdx.x];
        weighted += weighted_sums[lane][threadIdx.x];
    }
    float *const out = partial + chunk * columns * (NORM ? 2 : 1) + column;
    out[0] = plain;
    if (NORM) out[columns] = weighted;
}

/* plain(columns), and weighted(columns) unless that is NULL, from the chunks' sums */
__global__ static void sum_chunks(float *plain, float *weighted, const float *partial,
                                  int64_t columns, int64_t chunks)
{
    const int64_t column = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (column >= columns) return;
    const int64_t step = columns * (weighted ? 2 : 1);
    float total = 0, total_weighted = 0;
    for (int64_t chunk = 0; chunk < chunks; chunk++) {
        total += partial[chunk * step + column];
        if (weighted) total_weighted += partial[chunk * step + columns + column];
    }
    plain[column] = total;
    if (weighted) weighted[column] = total_weighted;
}

/* How rows are cut: at most so many chunks as have room in the workspace. */
static int64_t chunk_rows_of(int64_t rows, int64_t floats_per_chunk)
{
    int64_t chunks = (int64_t)(CUDA_WORKSPACE_BYTES / sizeof(float)) / floats_per_chunk;
    if (chunks > CHUNKS_MAX) chunks = CHUNKS_MAX;
    if (chunks < 1) return 0;
    const int64_t each = blocks_for(rows, chunks);
    return each > CHUNK_ROWS_MIN ? each : (int64_t)CHUNK_ROWS_MIN;
}

static cudaError_t sum_columns(cudaStream_t stream, float *plain, float *weighted, const float *x,
                               const float *in, const float *stats, int64_t rows, int64_t columns,
                               float *workspace)
{
    const int64_t chunk_rows = chunk_rows_of(rows, columns * (weighted ? 2 : 1));
    if (chunk_rows == 0) return cudaErrorInvalidValue;
    const int64_t chunks = blocks_for(rows, chunk_rows);
    const int64_t column_blocks = blocks_for(columns, COLUMNS);
    cudaError_t failed =
        launch(weighted ? sum_chunk<true> : sum_chunk<false>, chunks * column_blocks,
               dim3(COLUMNS, LANES), 0, stream, workspace, x, in, stats, rows, columns, chunk_rows,
               column_blocks);
    if (failed != cudaSuccess) return failed;
    return launch(sum_chunks, blocks_for(columns, THREADS), dim3(THREADS), 0, stream, plain,
                  weighted, (const float *)workspace, columns, chunks);
}

/* --- the loss --------------------------------------------------------------------------------------------- */

__global__ static void loss_rows(double *partials, float *logits, const int32_t *tokens,
                                 int64_t token_stride, int64_t t, int64_t rows, int64_t v,
                                 float scale)
{
    double total = 0;
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        float *const z = logits + row * v;
        const int64_t target = tokens[row / t * token_stride + row % t + 1];
        /* a word that is none would read out of bounds; NaN shows instead */
        const float at_target = target >= 0 && target < v ? z[target] : NAN;
        float largest = -INFINITY, sum = 0;
        for (int64_t j = threadIdx.x; j < v; j += LOSS_THREADS) {
            const float x = z[j];
            if (x > largest) {
                sum = sum * expf(largest - x) + 1.0f;
                largest = x;
            } else {
                sum += expf(x - largest);
            }
        }
        const float top = block_max<LOSS_THREADS>(largest);
        /* a thread without numbers has -inf and 0 */
        sum = block_sum<LOSS_THREADS>(sum * expf(largest - top));
        const float factor = scale / sum;
        for (int64_t j = threadIdx.x; j < v; j += LOSS_THREADS)
            z[j] = expf(z[j] - top) * factor - (j == target ? scale : 0.0f);
        if (threadIdx.x == 0) total += log((double)sum) - ((double)at_target - (double)top);
    }
    if (threadIdx.x == 0) partials[blockIdx.x] = total;
}

/* One block: *loss = sum of the partials / terms, or more by that */
__global__ static void loss_mean(double *loss, const double *partials, int64_t count,
                                 double terms, bool more)
{
    __shared__ double sums[THREADS];
    double sum = 0;
    for (int64_t i = threadIdx.x; i < count; i += THREADS) sum += partials[i];
    sums[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x > 0) return;
    for (int i = 1; i < THREADS; i++) sum += sums[i];
    *loss = more ? *loss + sum / terms : sum / terms;
}

/* --- launchers ---------------------------------------------------------------------------------------------- */

extern "C" cudaError_t cuda_norm_forward(cudaStream_t stream, float *out, float *sum, float *stats,
                                         const float *x, const float *y, const float *w,
                                         const float *b, int64_t r, int64_t c, float epsilon)
{
    return launch(norm_forward, r, dim3(THREADS), 0, stream, out, sum, stats, x, y, w, b, c,
                  epsilon);
}

extern "C" cudaError_t cuda_norm_backward(cudaStream_t stream, float *dx, float *dw, float *db,
                                          const float *dout, const float *x, const float *stats,
                                          const float *w, const float *added, int64_t r, int64_t c,
                                          void *workspace)
{
    const cudaError_t failed = launch(norm_input, r, dim3(THREADS), 0, stream, dx, dout, x, stats,
                                      w, added, c);
    if (failed != cudaSuccess) return failed;
    return sum_columns(stream, db, dw, dout, x, stats, r, c, (float *)workspace);
}

extern "C" cudaError_t cuda_column_sums(cudaStream_t stream, float *sums, const float *x,
                                        int64_t m, int64_t n, void *workspace)
{
    return sum_columns(stream, sums, nullptr, x, nullptr, nullptr, m, n, (float *)workspace);
}

extern "C" cudaError_t cuda_loss(cudaStream_t stream, double *loss, float *logits,
                                 const int32_t *tokens, int64_t token_stride, int64_t b, int64_t t,
                                 int64_t v, uint32_t part, uint32_t parts, void *workspace)
{
    double *const partials = (double *)workspace;
    const int64_t rows = b * t, blocks = rows < LOSS_BLOCKS ? rows : (int64_t)LOSS_BLOCKS;
    const cudaError_t failed =
        launch(loss_rows, blocks, dim3(LOSS_THREADS), 0, stream, partials, logits, tokens,
               token_stride, t, rows, v, 1.0f / ((float)rows * (float)parts));
    if (failed != cudaSuccess) return failed;
    return launch(loss_mean, 1, dim3(THREADS), 0, stream, loss, (const double *)partials, blocks,
                  (double)rows * parts, part > 0);
}

extern "C" cudaError_t cuda_rows_load(void)
{
    const void *const kernels[] = {
        (const void *)norm_forward,     (const void *)norm_input, (const void *)sum_chunk<false>,
        (const void *)sum_chunk<true>,  (const void *)sum_chunks, (const void *)loss_rows,
        (const void *)loss_mean,
    };
    struct cudaFuncAttributes attributes;
    for (const void *kernel : kernels) {
        const cudaError_t failed = cudaFuncGetAttributes(&attributes, kernel);
        if (failed != cudaSuccess) return failed;
    }
    return cudaSuccess;
}
