#include "models/rows/rows_order.h"

#include <assert.h>

#include "base/random.h"

enum { ROUNDS = 8, HALF_MIN = 3 };

static uint64_t feistel(uint64_t key, uint32_t half, uint64_t x)
{
    const uint64_t mask = (UINT64_C(1) << half) - 1;
    uint64_t left = x >> half, right = x & mask;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        const uint64_t mixed = left ^ (random_u64(key + round, right) & mask);
        left = right;
        right = mixed;
    }
    return left << half | right;
}

uint64_t rows_order_at(uint64_t key, uint64_t count, uint64_t place)
{
    uint32_t half = HALF_MIN;
    assert(place < count && count <= UINT64_C(1) << 62);
    while (UINT64_C(1) << 2 * half < count) half++;
    do place = feistel(key, half, place);
    while (place >= count);
    return place;
}
