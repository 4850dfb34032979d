/*
 * Kernels over rows and columns of a matrix: layer norm and RMS norm, column sums, the loss. Also sums of squares.
 *
 * Rows: a block takes a row, which is read from DRAM once. Threads sum numbers THREADS apart, then the block adds in a
 * fixed order.
 *
 * Columns are summed in two stages, because one block per 32 columns would leave most of the machine idle. A rule that
 * depends only on the shape cuts the rows into at most CHUNKS_MAX pieces; a second kernel adds their sums from first
 * to last.
 *
 *                 columns ->                            workspace (chunks, C)
 *        rows  [ 32 x 8 threads ][ ... ]   chunk 0  ->  row 0   \
 *          |   [ 32 x 8 threads ][ ... ]   chunk 1  ->  row 1    > second stage
 *
 * The loss. One sweep finds a row's largest logit and the sum of exponentials, rescaled when the largest grows; a
 * second writes the gradient: 8 bytes per logit from and to DRAM when a row (200 KB) stays in the second-level cache.
 * A block takes every LOSS_BLOCKS-th row and adds up losses in double. Rows with a target are counted on the device
 * before each piece.
 */
#include "exec/cuda/kernels_cuda_device.cuh"

#include "exec/cuda/kernels_cuda_launch.h"

enum { THREADS = 256, LOSS_THREADS = 512, LOSS_BLOCKS = 65536 };
enum { SQUARE_BLOCKS = 1024, SQUARE_RANGE_MIN = 2048 };
enum { COLUMNS = 32, LANES = 8, CHUNKS_MAX = 64, CHUNK_ROWS_MIN = 64 };

/* --- layer norm --------------------------------------------------------------------------------------- */

/* Computes x + y -> sum (y may be NULL; sum may be y), then its norm. */
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

/* added: NULL, or dx */
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

/* --- RMS norm ----------------------------------------------------------------------------------------- */

/* There is no mean and no bias. */
__global__ static void rms_norm_forward(float *out, float *sum, float *stats, const float *x,
                                        const float *y, const float *w, int64_t c, float epsilon)
{
    const int64_t row = blockIdx.x;
    const float *in = x + row * c;
    float squares = 0;
    if (y) {
        float *const added = sum + row * c;
        for (int64_t j = threadIdx.x; j < c; j += THREADS) {
            const float value = in[j] + y[row * c + j];
            added[j] = value;
            squares += value * value;
        }
        in = added;
    } else {
        for (int64_t j = threadIdx.x; j < c; j += THREADS) squares += in[j] * in[j];
    }
    const float inverse = 1.0f / sqrtf(block_sum<THREADS>(squares) / (float)c + epsilon);
    for (int64_t j = threadIdx.x; j < c; j += THREADS) out[row * c + j] = in[j] * inverse * w[j];
    if (threadIdx.x == 0) stats[row] = inverse;
}

/* added: NULL, or dx */
__global__ static void rms_norm_input(float *dx, const float *dout, const float *x,
                                      const float *stats, const float *w, const float *added,
                                      int64_t c)
{
    const int64_t row = blockIdx.x, at = row * c;
    const float inverse = stats[row];
    float weighted = 0;
    for (int64_t j = threadIdx.x; j < c; j += THREADS)
        weighted += dout[at + j] * w[j] * (x[at + j] * inverse);
    const float slope = block_sum<THREADS>(weighted) / (float)c;
    for (int64_t j = threadIdx.x; j < c; j += THREADS) {
        const float g = (dout[at + j] * w[j] - x[at + j] * inverse * slope) * inverse;
        dx[at + j] = added ? added[at + j] + g : g;
    }
}

/* --- columns ------------------------------------------------------------------------------------------- */

enum sums { SUMS_PLAIN, SUMS_NORM, SUMS_RMS_NORM };

/* A block has COLUMNS x LANES threads. `add` only if `partial` is the result. */
template <enum sums SUMS>
__global__ static void sum_chunk(float *partial, const float *x, const float *in,
                                 const float *stats, int64_t rows, int64_t columns,
                                 int64_t chunk_rows, int64_t column_blocks, bool add)
{
    __shared__ float plain_sums[LANES][COLUMNS], weighted_sums[LANES][COLUMNS];
    const int64_t chunk = blockIdx.x / column_blocks;
    const int64_t column = blockIdx.x % column_blocks * COLUMNS + threadIdx.x;
    const int64_t end = (chunk + 1) * chunk_rows < rows ? (chunk + 1) * chunk_rows : rows;
    float plain = 0, weighted = 0;
    if (column < columns)
        for (int64_t row = chunk * chunk_rows + threadIdx.y; row < end; row += LANES) {
            const float value = x[row * columns + column];
            plain += SUMS == SUMS_RMS_NORM ? value * (in[row * columns + column] * stats[row])
                                           : value;
            if (SUMS == SUMS_NORM)
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
    float *const out = partial + chunk * columns * (SUMS == SUMS_NORM ? 2 : 1) + column;
    out[0] = add ? out[0] + plain : plain;
    if (SUMS == SUMS_NORM) out[columns] = weighted;
}

/* weighted, or with it plain, may be NULL; `add` is for plain. */
__global__ static void sum_chunks(float *plain, float *weighted, const float *partial,
                                  int64_t columns, int64_t chunks, bool add)
{
    const int64_t column = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (column >= columns) return;
    const int64_t step = columns * (weighted ? 2 : 1);
    float total = 0, total_weighted = 0;
    for (int64_t chunk = 0; chunk < chunks; chunk++) {
        total += partial[chunk * step + column];
        if (weighted) total_weighted += partial[chunk * step + columns + column];
    }
    if (plain) plain[column] = add ? plain[column] + total : total;
    if (weighted) weighted[column] = total_weighted;
}

/* The room in the workspace limits a chunk. */
static int64_t chunk_rows_of(int64_t rows, int64_t floats_per_chunk)
{
    int64_t chunks = (int64_t)(CUDA_WORKSPACE_BYTES / sizeof(float)) / floats_per_chunk;
    if (chunks > CHUNKS_MAX) chunks = CHUNKS_MAX;
    if (chunks < 1) return rows;
    const int64_t each = blocks_for(rows, chunks);
    return each > CHUNK_ROWS_MIN ? each : (int64_t)CHUNK_ROWS_MIN;
}

/* weighted: NULL unless SUMS_NORM */
template <enum sums SUMS>
static cudaError_t sum_columns(cudaStream_t stream, float *plain, float *weighted, const float *x,
                               const float *in, const float *stats, int64_t rows, int64_t columns,
                               bool add, float *workspace)
{
    const int64_t chunk_rows = chunk_rows_of(rows, columns * (weighted ? 2 : 1));
    const int64_t chunks = blocks_for(rows, chunk_rows);
    const int64_t column_blocks = blocks_for(columns, COLUMNS);
    const bool direct = chunks == 1 && !weighted; /* there is nothing to add up */
    if (!direct && columns * (weighted ? 2 : 1) > (int64_t)(CUDA_WORKSPACE_BYTES / sizeof(float)))
        return cudaErrorInvalidValue; /* a norm of four million columns */
    const cudaError_t failed =
        launch(sum_chunk<SUMS>, chunks * column_blocks, dim3(COLUMNS, LANES), 0, stream,
               direct ? plain : workspace, x, in, stats, rows, columns, chunk_rows, column_blocks,
               direct && add);
    if (failed != cudaSuccess || direct) return failed;
    return launch(sum_chunks, blocks_for(columns, THREADS), dim3(THREADS), 0, stream, plain,
                  weighted, (const float *)workspace, columns, chunks, add);
}

/* --- the loss --------------------------------------------------------------------------------------------- */

/* labels[r / t * stride + r % t]; negative: none */
__device__ static inline int64_t target_of(const struct cuda_loss &a, int64_t row)
{
    return a.labels[row / a.t * a.label_stride + row % a.t];
}

/* Returns at least one, as a divisor. */
__global__ static void count_targets(int64_t *out, struct cuda_loss a)
{
    int64_t count = 0;
    for (int64_t first = 0; first < a.b * a.t; first += LOSS_THREADS) {
        const int64_t row = first + threadIdx.x;
        count += __syncthreads_count(row < a.b * a.t && target_of(a, row) >= 0);
    }
    if (threadIdx.x == 0) *out = a.targets > 0 ? a.targets : count > 0 ? count : 1;
}

__global__ static void loss_rows(double *partials, struct cuda_loss a, const int64_t *counted)
{
    double total = 0;
    const int64_t v = a.v;
    const float scale = 1.0f / ((float)*counted * (float)a.parts);
    for (int64_t row = blockIdx.x; row < a.count; row += gridDim.x) {
        float *const z = a.logits + row * v;
        const int64_t target = target_of(a, a.first + row);
        if (target < 0) {
            for (int64_t j = threadIdx.x; j < v; j += LOSS_THREADS) z[j] = 0.0f;
            continue;
        }
        /* an invalid token shows as NaN */
        const float at_target = target < v ? z[target] : NAN;
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

/* Computes *loss = (or +=) sum of the partials / (counted parts) */
__global__ static void loss_mean(double *loss, const double *partials, int64_t count,
                                 const int64_t *counted, uint32_t parts, bool more)
{
    __shared__ double sums[THREADS];
    double sum = 0;
    for (int64_t i = threadIdx.x; i < count; i += THREADS) sum += partials[i];
    sums[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x > 0) return;
    for (int i = 1; i < THREADS; i++) sum += sums[i];
    const double mean = sum / ((double)*counted * parts);
    *loss = more ? *loss + mean : mean;
}

/* --- sums of squares ---------------------------------------------------------------------------------------- */

/* Adds up doubles in the order of threads. Only thread 0 gets the sum. */
__device__ static inline double sum_in_order(double x)
{
    __shared__ double sums[THREADS];
    sums[threadIdx.x] = x;
    __syncthreads();
    double sum = 0;
    for (int i = 0; threadIdx.x == 0 && i < THREADS; i++) sum += sums[i];
    return sum;
}

/* A block takes `range` numbers. */
__global__ static void square_range(double *partials, const float *g, int64_t n, int64_t range)
{
    const int64_t begin = (int64_t)blockIdx.x * range, end = begin + range < n ? begin + range : n;
    double sum = 0;
    for (int64_t i = begin + threadIdx.x; i < end; i += THREADS) sum += (double)g[i] * (double)g[i];
    sum = sum_in_order(sum);
    if (threadIdx.x == 0) partials[blockIdx.x] = sum;
}

__global__ static void add_squares(double *sum, const double *partials, int64_t count, bool adds)
{
    double own = 0;
    for (int64_t i = threadIdx.x; i < count; i += THREADS) own += partials[i];
    own = sum_in_order(own);
    if (threadIdx.x == 0) *sum = adds ? *sum + own : own;
}

__global__ static void add_double(double *sum, const double *x)
{
    *sum += *x;
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
    if (failed != cudaSuccess || (!dw && !db)) return failed;
    if (!dw)
        return sum_columns<SUMS_PLAIN>(stream, db, nullptr, dout, nullptr, nullptr, r, c, false, (float *)workspace);
    return sum_columns<SUMS_NORM>(stream, db, dw, dout, x, stats, r, c, false, (float *)workspace);
}

extern "C" cudaError_t cuda_rms_norm_forward(cudaStream_t stream, float *out, float *sum,
                                             float *stats, const float *x, const float *y,
                                             const float *w, int64_t r, int64_t c, float epsilon)
{
    return launch(rms_norm_forward, r, dim3(THREADS), 0, stream, out, sum, stats, x, y, w, c,
                  epsilon);
}

extern "C" cudaError_t cuda_rms_norm_backward(cudaStream_t stream, float *dx, float *dw,
                                              const float *dout, const float *x,
                                              const float *stats, const float *w,
                                              const float *added, int64_t r, int64_t c,
                                              void *workspace)
{
    /* the sums first: dx may be dout */
    const cudaError_t failed = dw ? sum_columns<SUMS_RMS_NORM>(stream, dw, nullptr, dout, x, stats, r, c, false,
                                                               (float *)workspace)
                                  : cudaSuccess;
    if (failed != cudaSuccess) return failed;
    return launch(rms_norm_input, r, dim3(THREADS), 0, stream, dx, dout, x, stats, w, added, c);
}

extern "C" cudaError_t cuda_column_sums(cudaStream_t stream, float *sums, const float *x,
                                        int64_t m, int64_t n, bool add, void *workspace)
{
    return sum_columns<SUMS_PLAIN>(stream, sums, nullptr, x, nullptr, nullptr, m, n, add,
                                   (float *)workspace);
}

extern "C" cudaError_t cuda_loss(cudaStream_t stream, const struct cuda_loss *arguments,
                                 void *workspace)
{
    const struct cuda_loss a = *arguments;
    int64_t *const counted = (int64_t *)workspace;
    double *const partials = (double *)workspace + 1;
    const int64_t blocks = a.count < LOSS_BLOCKS ? a.count : (int64_t)LOSS_BLOCKS;
    const bool more = a.part > 0 || a.first > 0 || a.continues;
    cudaError_t failed =
        launch(count_targets, 1, dim3(LOSS_THREADS), 0, stream, counted, a);
    if (failed == cudaSuccess)
        failed = launch(loss_rows, blocks, dim3(LOSS_THREADS), 0, stream, partials, a,
                        (const int64_t *)counted);
    if (failed != cudaSuccess) return failed;
    return launch(loss_mean, 1, dim3(THREADS), 0, stream, a.loss, (const double *)partials, blocks,
                  (const int64_t *)counted, a.parts, more);
}

extern "C" cudaError_t cuda_squares(cudaStream_t stream, double *sum, const float *g, int64_t n, bool adds,
                                    void *workspace)
{
    double *const partials = (double *)workspace;
    int64_t range = blocks_for(n, SQUARE_BLOCKS);
    if (range < SQUARE_RANGE_MIN) range = SQUARE_RANGE_MIN;
    const int64_t blocks = n > 0 ? blocks_for(n, range) : 1;
    const cudaError_t failed = launch(square_range, blocks, dim3(THREADS), 0, stream, partials, g, n, range);
    if (failed != cudaSuccess) return failed;
    return launch(add_squares, 1, dim3(THREADS), 0, stream, sum, (const double *)partials, blocks, adds);
}

extern "C" cudaError_t cuda_add_double(cudaStream_t stream, double *sum, const double *x)
{
    return launch(add_double, 1, dim3(1), 0, stream, sum, x);
}

extern "C" cudaError_t cuda_rows_load(void)
{
    const void *const kernels[] = {
        (const void *)norm_forward,
        (const void *)norm_input,
        (const void *)rms_norm_forward,
        (const void *)rms_norm_input,
        (const void *)sum_chunk<SUMS_PLAIN>,
        (const void *)sum_chunk<SUMS_NORM>,
        (const void *)sum_chunk<SUMS_RMS_NORM>,
        (const void *)sum_chunks,
        (const void *)count_targets,
        (const void *)loss_rows,
        (const void *)loss_mean,
        (const void *)square_range,
        (const void *)add_squares,
        (const void *)add_double,
    };
    return cuda_load_kernels(kernels);
}
