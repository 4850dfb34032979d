/*
 * The one door through which memory of `base` is asked for, so that a test can shut it.
 *
 * What these return is freed with free(). NULL means that there is no memory, or that a test asked
 * for this very call to fail; callers cannot tell and must not care.
 */
#ifndef SPILLWAY_BASE_ALLOC_H
#define SPILLWAY_BASE_ALLOC_H

#include <stddef.h>
#include <stdint.h>

/* `count` zeroed elements of `size` bytes; NULL also when the product overflows. */
void *alloc_zeroed(size_t count, size_t size);

/* As realloc(); `bytes` > 0. */
void *alloc_resize(void *memory, size_t bytes);

/*
 * For tests: the n-th call from now on fails (1 is the next one), once; 0 switches it off. Returns
 * how many calls were made since the last time, so that a sweep over n knows where to stop.
 */
uint64_t alloc_test_fail_at(uint64_t n);

#endif
