/*
 * Memory as PyTorch's caching allocator hands it out: what it reserves of a device, beside what is in use.
 *
 *   sizes      rounded up to 512 B
 *   pools      small for at most 1 MiB, large for the rest; nothing passes from one to the other
 *   segments   reserved whole: 2 MiB in the small pool; 20 MiB for less than 10 MiB; else the size, rounded up to 2 MiB
 *   a request  takes the smallest free block of its pool that is large enough (the oldest, of equals), and splits it
 *              where more than 1 MiB would be left over (small: 512 B or more); else a new segment is reserved
 *   a block    that is free again is joined with free neighbours of its segment; the segment stays reserved
 *   at the     segments without a block in use are given back, all of them, and then more is reserved; beyond the
 *   capacity   capacity if need be: a real run would have ended there ("short")
 *
 * One stream; no expandable segments, no max_split_size, and what libraries allocate by themselves is not in it.
 *
 * Source: PyTorch 2, c10/cuda/CUDACachingAllocator.cpp and the notes on memory management in its documentation.
 */
#ifndef SPILLWAY_SIM_CACHING_H
#define SPILLWAY_SIM_CACHING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct sim_caching; /* opaque: one device's */

struct sim_reserved {
    uint64_t allocated_bytes; /* in use, rounded; now */
    uint64_t reserved_bytes;  /* in segments; now */
    uint64_t allocated_peak_bytes, reserved_peak_bytes;
    uint64_t segments;        /* reserved in all */
    uint64_t given_back;      /* times that the capacity made it give segments back */
    uint64_t short_bytes;     /* the most that was reserved beyond the capacity */
};

/* The caller frees it with sim_caching_destroy(). NULL: no memory. */
struct sim_caching *sim_caching_create(uint64_t capacity_bytes);
void sim_caching_destroy(struct sim_caching *caching); /* NULL is fine */

/* False when the host has no memory for the books. */
bool sim_caching_take(struct sim_caching *caching, uint64_t bytes, uint32_t *block);
void sim_caching_give(struct sim_caching *caching, uint32_t block);

const struct sim_reserved *sim_caching_reserved(const struct sim_caching *caching);

#endif
