/*
 * Random numbers that depend only on a key and a counter (SplitMix64's finaliser over both). A
 * value therefore does not depend on the order in which other values are drawn.
 * Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
 */
#ifndef SPILLWAY_BASE_RANDOM_H
#define SPILLWAY_BASE_RANDOM_H

#include <math.h>
#include <stdint.h>

static inline uint64_t random_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Returns 64 random bits for element `counter` of the stream `key`. */
static inline uint64_t random_u64(uint64_t key, uint64_t counter)
{
    return random_mix(random_mix(key) ^ random_mix(counter ^ 0x6a09e667f3bcc909u));
}

/* Returns a uniform number in [0, 1). */
static inline double random_unit(uint64_t key, uint64_t counter)
{
    return (double)(random_u64(key, counter) >> 11) * 0x1p-53;
}

/* Returns an exponential number with mean 1. */
static inline double random_exponential(uint64_t key, uint64_t counter)
{
    return -log1p(-random_unit(key, counter));
}

/* Returns a uniform number in [0, bound); bound > 0. The bias is below bound / 2^64. */
static inline uint64_t random_below(uint64_t key, uint64_t counter, uint64_t bound)
{
    return (uint64_t)(((unsigned __int128)random_u64(key, counter) * bound) >> 64);
}

#endif
