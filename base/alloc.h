/*
 * Memory that is in no arena is allocated here, so that a test can make an allocation fail. Exceptions: CUDA, policies
 * of users.
 *
 * The caller frees the memory with free(). NULL means that no memory is left, or that a test asked
 * this call to fail. Callers treat both cases alike.
 */
#ifndef SPILLWAY_BASE_ALLOC_H
#define SPILLWAY_BASE_ALLOC_H

#include <stddef.h>
#include <stdint.h>

/* Returns `count` zeroed elements of `size` bytes. Returns NULL also when the product overflows. */
void *alloc_zeroed(size_t count, size_t size);

/* Works as realloc(); `bytes` > 0. */
void *alloc_resize(void *memory, size_t bytes);

/*
 * For tests: makes the n-th call from now on fail once (1 is the next call); 0 switches this off.
 * Returns the number of calls since the previous alloc_test_fail_at(), so that a loop over n knows
 * where to stop.
 */
uint64_t alloc_test_fail_at(uint64_t n);

#endif
