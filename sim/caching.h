/*
 * A model of PyTorch's caching allocator: the memory reserved on a device beyond the memory in use.
 *
 *   sizes      rounded up to 512 B
 *   pools      small for at most 1 MiB, large for larger requests; memory never changes its pool
 *   segments   reserved whole: 2 MiB in the small pool; 20 MiB for less than 10 MiB; else the size, rounded up to 2 MiB
 *   a request  takes the smallest free block of its pool that is large enough (the oldest of equal ones), and splits it
 *              if more than 1 MiB would be left over (small: 512 B or more); else a new segment is reserved
 *   a freed    block is joined with free neighbours of its segment; the segment stays reserved
 *   at the     all segments without a block in use are released, and then more is reserved, beyond the capacity if
 *   capacity   necessary: a real run would have failed there ("short")
 *
 * There is one stream. Expandable segments, max_split_size and libraries' allocations are not modelled.
 *
 * Source: PyTorch 2, c10/cuda/CUDACachingAllocator.cpp and the notes on memory management in its documentation.
 */
#ifndef SPILLWAY_SIM_CACHING_H
#define SPILLWAY_SIM_CACHING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct sim_caching; /* opaque: the allocator of one device */

struct sim_reserved {
    uint64_t allocated_bytes; /* in use, rounded; now */
    uint64_t reserved_bytes;  /* in segments; now */
    uint64_t allocated_peak_bytes, reserved_peak_bytes;
    uint64_t segments;        /* segments reserved so far */
    uint64_t given_back;      /* how often segments were released at the capacity */
    uint64_t short_bytes;     /* largest reservation beyond the capacity */
};

/* The caller frees it with sim_caching_destroy(). NULL: no memory. */
struct sim_caching *sim_caching_create(uint64_t capacity_bytes);
void sim_caching_destroy(struct sim_caching *caching); /* NULL is fine */

/* Returns false when the host's memory ends. */
bool sim_caching_allocate(struct sim_caching *caching, uint64_t bytes, uint32_t *block);
void sim_caching_give(struct sim_caching *caching, uint32_t block);

const struct sim_reserved *sim_caching_reserved(const struct sim_caching *caching);

#endif
