/* Products and sums of sizes that report overflow. */
#ifndef SPILLWAY_BASE_SIZE_H
#define SPILLWAY_BASE_SIZE_H

#include <stdbool.h>
#include <stdint.h>

#define ARRAY_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Sets *out to a * b. Returns false and leaves *out untouched when the product overflows. */
static inline bool size_mul(uint64_t a, uint64_t b, uint64_t *out)
{
    uint64_t product;
    if (__builtin_mul_overflow(a, b, &product)) return false;
    *out = product;
    return true;
}

/* Sets *out to a + b. Returns false and leaves *out untouched when the sum overflows. */
static inline bool size_add(uint64_t a, uint64_t b, uint64_t *out)
{
    uint64_t sum;
    if (__builtin_add_overflow(a, b, &sum)) return false;
    *out = sum;
    return true;
}

/* Returns the smallest multiple of `alignment` (a power of two) that is at least `value`. */
static inline uint64_t size_align(uint64_t value, uint64_t alignment)
{
    return (value + alignment - 1) & ~(alignment - 1);
}

#endif
