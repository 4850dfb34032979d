/*
 * FNV-1a, 64 bits: distinguishes values that are not chosen to collide. Start with HASH_BEGIN.
 *
 * Source: Fowler, Noll and Vo, http://www.isthe.com/chongo/tech/comp/fnv/
 */
#ifndef SPILLWAY_BASE_HASH_H
#define SPILLWAY_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_BEGIN UINT64_C(0xcbf29ce484222325)

static inline uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t length)
{
    const unsigned char *at = bytes;
    for (size_t b = 0; b < length; b++) hash = (hash ^ at[b]) * UINT64_C(0x100000001b3);
    return hash;
}

#endif
