/* Products and sums of sizes that say when they overflow instead of wrapping round. */
#ifndef SPILLWAY_BASE_SIZE_H
#define SPILLWAY_BASE_SIZE_H

#include <stdbool.h>
#include <stdint.h>

#define ARRAY_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* *out = a * b; false, and *out untouched, when the product does not fit. */
static inline bool size_mul(uint64_t a, uint64_t b, uint64_t *out)
{
    uint64_t product;
    if (__builtin_mul_overflow(a, b, &product)) return false;
    *out = product;
    return true;
}

/* *out = a + b; false, and *out untouched, when the sum does not fit. */
static inline bool size_add(uint64_t a, uint64_t b, uint64_t *out)
{
    uint64_t sum;
    if (__builtin_add_overflow(a, b, &sum)) return false;
    *out = sum;
    return true;
}

/* The smallest multiple of `alignment` (a power of two) that is at least `value`. */
static inline uint64_t size_align(uint64_t value, uint64_t alignment)
{
    return (value + alignment - 1) & ~(alignment - 1);
}

#endif
