/*
 * Sums of columns, such as the gradient of a bias. Compiled for fp32 and for bf16 (kernels_host.h).
 *
 * Threads share out the columns: each is summed from top to bottom by one thread, without partial sums of others.
 * Blocks of 64 rows keep the rounding error near the error of 64 + m / 64 additions in a row. One read of x, mostly
 * from cache.
 */
#include "exec/kernels/kernels_host.h"

enum { COLUMNS = 128, ROWS = 64 };

/* sums[0 .. COLUMNS) of x(m, ...), whose rows are `stride` floats apart; `add`: adds */
CLONES static void sum_full_columns(float *sums, const kernel_number *x, int64_t m, int64_t stride,
                                    bool add)
{
    float total[COLUMNS] = {0};
    for (int64_t first = 0; first < m; first += ROWS) {
        float partial[COLUMNS] = {0};
        int64_t end = host_min(first + ROWS, m);
        for (int64_t row = first; row < end; row++)
            for (int l = 0; l < COLUMNS; l++) partial[l] += host_wide(x[row * stride + l]);
        for (int l = 0; l < COLUMNS; l++) total[l] += partial[l];
    }
    for (int l = 0; l < COLUMNS; l++) sums[l] = add ? sums[l] + total[l] : total[l];
}

/* Sums the last, narrower block. */
static void sum_some_columns(float *sums, const kernel_number *x, int64_t m, int64_t stride, int64_t count,
                             bool add)
{
    for (int64_t l = 0; l < count; l++) {
        float total = 0;
        for (int64_t first = 0; first < m; first += ROWS) {
            float partial = 0;
            int64_t end = host_min(first + ROWS, m);
            for (int64_t row = first; row < end; row++) partial += host_wide(x[row * stride + l]);
            total += partial;
        }
        sums[l] = add ? sums[l] + total : total;
    }
}

void HOST(column_sums)(const struct kernels *kernels, float *sums, const kernel_number *x, int64_t m, int64_t n,
                       bool add)
{
    int64_t blocks = host_blocks(n, COLUMNS);
#pragma omp parallel for schedule(static) num_threads((int)kernels->threads) \
    if (m * n > HOST_SERIAL)
    for (int64_t block = 0; block < blocks; block++) {
        int64_t column = block * COLUMNS;
        if (column + COLUMNS <= n)
            sum_full_columns(sums + column, x + column, m, n, add);
        else
            sum_some_columns(sums + column, x + column, m, n, n - column, add);
    }
}
