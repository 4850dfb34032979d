/*
 * bfloat16, a storage format: the upper half of a float. Conversion rounds to nearest or at random.
 *
 * To nearest, ties to even: the bits below the cut decide. A carry into the exponent gives the next power of two (or
 * infinity), which is the right result. At random: a number rounds up with probability (distance to its lower
 * neighbour) / (distance between both neighbours). The mean of many roundings is then the number itself, and a number
 * that bf16 can represent does not change. Adding 16 random bits below the cut does this:
 *
 *     up  <=>  low + random >= 2^16,  random uniform in [0, 2^16)   =>   P(up) = low / 2^16
 *
 * The bits are drawn by counter (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): they are a
 * function of a key and the number's place. They do not depend on threads, cuts or devices. Two rounds of a 32-bit
 * finalizer (xor, shift, multiply: C. Wellons, "lowbias32") compile to eight-fold vector code on every processor
 * since 2013; 64-bit products would not.
 *
 * The CUDA kernels include this file too, so it is plain C.
 */
#ifndef SPILLWAY_BASE_BF16_H
#define SPILLWAY_BASE_BF16_H

#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define BF16_INLINE __host__ __device__ static inline
#else
#define BF16_INLINE static inline
#endif

typedef uint16_t bf16; /* the bits, not a number */

BF16_INLINE uint32_t bf16_bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

BF16_INLINE float bf16_widen(bf16 x)
{
    const uint32_t bits = (uint32_t)x << 16;
    float wide;
    memcpy(&wide, &bits, sizeof wide);
    return wide;
}

/* Keeps NaN a NaN: rounding could carry it to infinity. */
BF16_INLINE bf16 bf16_nan(uint32_t bits)
{
    return (bf16)(bits >> 16 | 0x40u);
}

BF16_INLINE bf16 bf16_nearest(float x)
{
    const uint32_t bits = bf16_bits_of(x);
    const uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    return (bits & 0x7fffffffu) > 0x7f800000u ? bf16_nan(bits) : (bf16)rounded;
}

/* Rounds at random; `random` holds 16 uniform bits. Infinity does not change. */
BF16_INLINE bf16 bf16_random(float x, uint32_t random)
{
    const uint32_t bits = bf16_bits_of(x);
    return (bits & 0x7fffffffu) > 0x7f800000u ? bf16_nan(bits) : (bf16)((bits + random) >> 16);
}

BF16_INLINE uint32_t bf16_mix(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    return x ^ x >> 16;
}

/* Returns 32 random bits for a place, enough for two roundings. */
BF16_INLINE uint32_t bf16_draw(uint64_t key, uint64_t place)
{
    const uint32_t once = bf16_mix((uint32_t)place ^ (uint32_t)key);
    return bf16_mix(once + (uint32_t)(key >> 32) + 0x9e3779b9u * (uint32_t)(place >> 32));
}

#endif
