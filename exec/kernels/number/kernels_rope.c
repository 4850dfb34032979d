/*
 * Rotary positions: rotates the pairs (i, i + W/2) of the first W numbers of each head, or the pairs (2 i, 2 i + 1), by
 * position * frequency(i), in place.
 *
 *     first'  = first cos - second sin           back: the same by the opposite angle, which is
 *     second' = second cos + first sin           also the way of the gradients
 *
 * Angles are rounded to single precision like Hugging Face's (a frequency, then its product with the position), since
 * weights were trained with those. They are computed once per position for all samples and heads, unless positions of
 * packed rows differ between samples.
 *
 * Cost, in fp32: 16 bytes per pair, and per position W/2 sines and cosines of about 20 ns each.
 * Source: Su et al., "RoFormer", arXiv 2104.09864; the pairing is as in modeling_llama.py, or modeling_gptj.py.
 */
#include "exec/kernels/kernels_host.h"

#include <math.h>

enum { PAIRS = 128 }; /* of a head at a time */

/* --- leaves ----------------------------------------------------------------------------------- */

CLONES static void rotate_pairs(kernel_number *restrict first, kernel_number *restrict second,
                                const float *restrict cosines, const float *restrict sines, int64_t pairs)
{
    for (int64_t i = 0; i < pairs; i++) {
        const float x = host_wide(first[i]), y = host_wide(second[i]);
        first[i] = host_stored(x * cosines[i] - y * sines[i]);
        second[i] = host_stored(y * cosines[i] + x * sines[i]);
    }
}

CLONES static void rotate_adjacent(kernel_number *x, const float *restrict cosines, const float *restrict sines,
                                   int64_t pairs)
{
    for (int64_t i = 0; i < pairs; i++, x += 2) {
        const float first = host_wide(x[0]), second = host_wide(x[1]);
        x[0] = host_stored(first * cosines[i] - second * sines[i]);
        x[1] = host_stored(second * cosines[i] + first * sines[i]);
    }
}

/* --- driver ----------------------------------------------------------------------------------- */

struct kernels_rope_rotation {
    float cosines[PAIRS], sines[PAIRS];
    int64_t first, count; /* of each head */
};

/* Rotates one token's heads. */
static void rotate_heads(kernel_number *x, const struct kernels_rope_rotation *rotation, int64_t heads,
                         const struct kernel_rope *rope)
{
    for (int64_t head = 0; head < heads; head++) {
        kernel_number *const pairs = x + head * rope->d + (rope->adjacent ? 2 : 1) * rotation->first;
        if (rope->adjacent) rotate_adjacent(pairs, rotation->cosines, rotation->sines, rotation->count);
        else rotate_pairs(pairs, pairs + rope->turned / 2, rotation->cosines, rotation->sines, rotation->count);
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

void HOST(rope)(const struct kernels *kernels, const struct kernel_rope *rope)
{
    const int64_t pairs = rope->turned / 2;
    for (int64_t first = 0; first < pairs; first += PAIRS) {
        int64_t count = host_min(PAIRS, pairs - first);
        float frequencies[PAIRS];
        for (int64_t i = 0; i < count; i++)
            frequencies[i] = (float)rope_frequency(rope->rope, (uint64_t)(first + i), (uint64_t)rope->turned);
#pragma omp parallel for schedule(static) num_threads((int)kernels->threads) \
    if (rope->b * rope->t * (rope->h + rope->kv) * count > HOST_SERIAL)
        for (int64_t position = 0; position < rope->t; position++) {
            struct kernels_rope_rotation rotation = {.first = first, .count = count};
            int64_t found = -1; /* its position */
            for (int64_t sample = 0; sample < rope->b; sample++) {
                const int64_t token = sample * rope->t + position;
                const int64_t own = rope->begins ? position - rope->begins[token] : rope->begin + position;
                if (own != found) find_rotation(&rotation, frequencies, own, rope->back);
                found = own;
                rotate_heads(rope->q + token * rope->row_q, &rotation, rope->h, rope);
                rotate_heads(rope->k + token * rope->row_k, &rotation, rope->kv, rope);
            }
        }
    }
}
