/*
 * Dropout of rows (exec/kernels/kernels_dropout.h). 64 random bits serve two neighbouring numbers, each with 32: the
 * n-th state of a row's stream is mixed as in base/random.h, which vectorises. A row of scores counts from the sample's
 * first key.
 *
 * Compiled for fp32 and for bf16 (kernels_host.h). Cost, in fp32: 8 bytes per number, and a mixing of three
 * multiplications for two.
 */
#include "exec/kernels/kernels_host.h"

#include "base/random.h"

/* Returns how many of 2^32 numbers are dropped. */
static uint64_t threshold_of(float p)
{
    return (uint64_t)llrint((double)p * 0x1p32);
}

static float factor_of(float p)
{
    return p < 1.0f ? (float)(1.0 / (1.0 - (double)p)) : 0.0f;
}

CLONES_PART uint64_t bits_of(uint64_t key, uint64_t pair)
{
    return random_mix(key + (pair - 1) * 0x9e3779b97f4a7c15u); /* random_mix() steps once */
}

/* Numbers [first, first + n) of a row; y may be x. */
CLONES static void drop_row(kernel_number *y, const kernel_number *x, int64_t first, int64_t n, uint64_t key,
                            uint64_t threshold, float factor)
{
    for (int64_t i = 0; i < n; i++) {
        const uint64_t place = (uint64_t)(first + i), bits = bits_of(key, place / 2) >> (place % 2 * 32) & UINT32_MAX;
        y[i] = host_stored(bits < threshold ? 0.0f : host_wide(x[i]) * factor);
    }
}

void HOST(dropout)(const struct kernels *kernels, kernel_number *y, const kernel_number *x, int64_t rows, int64_t t,
                   int64_t c, const struct kernel_dropout *dropout)
{
    const uint64_t threshold = threshold_of(dropout->p);
    const float factor = factor_of(dropout->p);
#pragma omp parallel for schedule(static) num_threads((int)kernels->threads) if (rows * c > HOST_SERIAL)
    for (int64_t row = 0; row < rows; row++) {
        const int64_t place = dropout->rows + row;
        const uint64_t sample = (uint64_t)(dropout->samples + place / t),
                       token = (uint64_t)(dropout->begin + place % t);
        drop_row(y + row * c, x + row * c, 0, c, random_u64(random_u64(dropout->key, sample), token), threshold,
                 factor);
    }
}

#ifndef HOST_HALF /* scores are fp32 */
void host_drop_scores(float *s, const struct host_scores *at, const struct kernel_dropout *dropout)
{
    const uint64_t threshold = threshold_of(dropout->p),
                   head = random_u64(random_u64(dropout->key, (uint64_t)at->sample), (uint64_t)at->head);
    const float factor = factor_of(dropout->p);
    for (int64_t i = 0; i < at->rows; i++, s += at->keys)
        drop_row(s, s, at->first_key, at->keys, random_u64(head, (uint64_t)(at->first_query + i)), threshold, factor);
}
#endif
