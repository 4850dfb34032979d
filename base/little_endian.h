/* Little-endian numbers in files, at any address. */
#ifndef SPILLWAY_BASE_LITTLE_ENDIAN_H
#define SPILLWAY_BASE_LITTLE_ENDIAN_H

#include <stdint.h>

static inline uint32_t little_u16(const unsigned char *at)
{
    return at[0] | (uint32_t)at[1] << 8;
}

static inline uint32_t little_u32(const unsigned char *at)
{
    return little_u16(at) | little_u16(at + 2) << 16;
}

static inline uint64_t little_u64(const unsigned char *at)
{
    return little_u32(at) | (uint64_t)little_u32(at + 4) << 32;
}

#endif
