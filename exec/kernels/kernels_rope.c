/*
 * Rotary positions: rotates the pairs (i, i + D/2) of each head by position * frequency(i), in
 * place.
 *
 *     first'  = first cos - second sin           back: the same by the opposite angle, which is
 *     second' = second cos + first sin           also the way of the gradients
 *
 * Angles are rounded to single precision like Hugging Face's (a frequency, then its product with the position), since
 * weights were trained with those. They are computed once per position for all samples and heads.
 *
 * Cost: 16 bytes per pair, and per position D/2 sines and cosines of about 20 ns each.
 * Source: Su et al., "RoFormer", arXiv 2104.09864; the pairing is as in modeling_llama.py.
 */
#include "exec/kernels/kernels_host.h"

#include <math.h>

enum { PAIRS = 128 }; /* of a head at a time */

/* --- leaves ----------------------------------------------------------------------------------- */

CLONES static void rotate_pairs(float *restrict first, float *restrict second,
                              const float *restrict cosines, const float *restrict sines,
                              int64_t pairs)
{
    for (int64_t i = 0; i < pairs; i++) {
        float x = first[i], y = second[i];
        first[i] = x * cosines[i] - y * sines[i];
        second[i] = y * cosines[i] + x * sines[i];
    }
}

/* --- driver ----------------------------------------------------------------------------------- */

struct kernels_rope_rotation {
    float cosines[PAIRS], sines[PAIRS];
    int64_t first, count; /* of each head */
};

/* Rotates one token's heads, D elements each. */
static void rotate_heads(float *x, const struct kernels_rope_rotation *rotation, int64_t heads, int64_t d)
{
    for (int64_t head = 0; head < heads; head++) {
        float *pairs = x + head * d + rotation->first;
        rotate_pairs(pairs, pairs + d / 2, rotation->cosines, rotation->sines, rotation->count);
    }
}

static void find_rotation(struct kernels_rope_rotation *rotation, const float *frequencies, int64_t position, bool back)
{
    for (int64_t i = 0; i < rotation->count; i++) {
        float angle = (float)position * frequencies[i];
        rotation->cosines[i] = (float)cos((double)angle);
        rotation->sines[i] = (float)(back ? -sin((double)angle) : sin((double)angle));
    }
}

void host_rope(const struct kernels *kernels, float *q, float *k, int64_t b, int64_t t, int64_t begin, int64_t h,
               int64_t kv, int64_t d, const struct network_rope *rope, bool back)
{
    for (int64_t first = 0; first < d / 2; first += PAIRS) {
        int64_t count = host_min(PAIRS, d / 2 - first);
        float frequencies[PAIRS];
        for (int64_t i = 0; i < count; i++)
            frequencies[i] = (float)rope_frequency(rope, (uint64_t)(first + i), (uint64_t)d);
#pragma omp parallel for schedule(static) num_threads((int)kernels->threads) \
    if (b * t * (h + kv) * count > HOST_SERIAL)
        for (int64_t position = 0; position < t; position++) {
            struct kernels_rope_rotation rotation = {.first = first, .count = count};
            find_rotation(&rotation, frequencies, begin + position, back);
            for (int64_t sample = 0; sample < b; sample++) {
                rotate_heads(q + (sample * t + position) * h * d, &rotation, h, d);
                rotate_heads(k + (sample * t + position) * kv * d, &rotation, kv, d);
            }
        }
    }
}
