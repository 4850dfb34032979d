/*
 * Meters: sums that a simulation accumulates and that do not affect it (busy seconds of streams and links, operations,
 * bytes). If a period repeats a thousand times, its contribution counts a thousand times.
 */
#ifndef SPILLWAY_SIM_METER_H
#define SPILLWAY_SIM_METER_H

#include <stddef.h>
#include <stdint.h>

/* Addresses `count` numbers, `stride_bytes` apart: doubles, or unsigned integers that may count down. */
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

/* Reads all meters into before[sim_meters_size()]. */
void sim_meters_read(const struct sim_meter *meters, size_t meter_count, uint64_t *before);

/* Adds `times` times the change since `before`. */
void sim_meters_repeat(const struct sim_meter *meters, size_t meter_count, const uint64_t *before, uint64_t times);

#endif
