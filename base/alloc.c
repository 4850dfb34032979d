/*
 * Running out of memory is the error path that never runs by itself and is therefore often wrong. A
 * sweep makes it run: count the allocations of a good run, then repeat the run with the first
 * allocation failing, then the second, and so on. Each run must end with STATUS_NO_MEMORY and leak
 * nothing.
 *
 * The counter is one atomic: threads may allocate at the same time, though a sweep is only useful
 * with a single thread. Without a test in progress the cost is one addition per call, and no
 * function here is called in a hot loop.
 */
#include "base/alloc.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

static atomic_uint_fast64_t call_count;
static atomic_uint_fast64_t failing_call; /* 0: none */

static bool must_fail(void)
{
    uint64_t call = atomic_fetch_add_explicit(&call_count, 1, memory_order_relaxed) + 1;
    return call == atomic_load_explicit(&failing_call, memory_order_relaxed);
}

void *alloc_zeroed(size_t count, size_t size)
{
    if (must_fail()) return NULL;
    return calloc(count > 0 ? count : 1, size > 0 ? size : 1);
}

void *alloc_resize(void *memory, size_t bytes)
{
    assert(bytes > 0);
    if (must_fail()) return NULL;
    return realloc(memory, bytes);
}

uint64_t alloc_test_fail_at(uint64_t n)
{
    atomic_store(&failing_call, n);
    return atomic_exchange(&call_count, 0);
}
