/*
 * What a simulation adds up and does not act on: seconds that streams and links are busy, operations, bytes. Of a
 * stretch that is repeated a thousand times it is a thousand times the same.
 */
#ifndef SPILLWAY_SIM_METER_H
#define SPILLWAY_SIM_METER_H

#include <stddef.h>
#include <stdint.h>

/* `count` numbers, `stride_bytes` apart: doubles, or unsigned ones that may also count down. */
struct sim_meter {
    void *first;
    size_t stride_bytes, count;
    enum { SIM_METER_REAL, SIM_METER_COUNT } kind;
};

static inline size_t sim_meters_size(const struct sim_meter *meters, size_t meter_count)
{
    size_t size = 0;
    for (size_t m = 0; m < meter_count; m++) size += meters[m].count;
    return size;
}

/* What they show into before[sim_meters_size()]. */
void sim_meters_read(const struct sim_meter *meters, size_t meter_count, uint64_t *before);

/* What they have gone on by since `before`, `times` over, on top. */
void sim_meters_repeat(const struct sim_meter *meters, size_t meter_count, const uint64_t *before, uint64_t times);

#endif
