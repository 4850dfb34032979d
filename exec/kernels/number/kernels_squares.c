/*
 * Sums of squares, for clipping and to find what is not finite. Compiled for fp32 and for bf16 (kernels_host.h).
 *
 * A sum is a double whose order depends only on n.
 */
#include "exec/kernels/kernels_host.h"

#include <assert.h>

enum { SQUARE_RANGES = 512, SQUARE_LANES = 16 };

CLONES_PART double square(kernel_number x)
{
    return (double)host_wide(x) * (double)host_wide(x);
}

CLONES static double squares_of(const kernel_number *restrict g, int64_t n)
{
    double lanes[SQUARE_LANES] = {0};
    int64_t i = 0;
    for (; i + SQUARE_LANES <= n; i += SQUARE_LANES)
        for (int l = 0; l < SQUARE_LANES; l++) lanes[l] += square(g[i + l]);
    for (int l = 0; l < n - i; l++) lanes[l] += square(g[i + l]);
    for (int width = SQUARE_LANES / 2; width > 0; width /= 2)
        for (int l = 0; l < width; l++) lanes[l] += lanes[l + width];
    return lanes[0];
}

void HOST(squares)(const struct kernels *kernels, double *sum, const kernel_number *g, int64_t n, bool adds)
{
    double sums[SQUARE_RANGES], total = 0;
    int64_t range = host_blocks(n, SQUARE_RANGES);
    if (range < HOST_BLOCK) range = HOST_BLOCK;
    int64_t ranges = host_blocks(n, range);
    assert(ranges <= SQUARE_RANGES);
#pragma omp parallel for schedule(static) num_threads((int)kernels->threads) if (n > HOST_SERIAL)
    for (int64_t i = 0; i < ranges; i++)
        sums[i] = squares_of(g + i * range, host_min(range, n - i * range));
    for (int64_t i = 0; i < ranges; i++) total += sums[i];
    *sum = adds ? *sum + total : total;
}
