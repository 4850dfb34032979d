/*
 * Sums that do not affect a simulation (busy seconds of streams and links, operations, bytes). If a period repeats a
 * thousand times, its contribution counts a thousand times.
 */
#ifndef SPILLWAY_SIM_ENGINE_COUNTERS_H
#define SPILLWAY_SIM_ENGINE_COUNTERS_H

#include <stddef.h>
#include <stdint.h>

/* Addresses `count` numbers, `stride_bytes` apart: doubles, or unsigned integers that may count down. */
struct sim_counter {
    void *first;
    size_t stride_bytes, count;
    enum { SIM_COUNTER_REAL, SIM_COUNTER_COUNT } kind;
};

static inline size_t sim_counters_size(const struct sim_counter *counters, size_t counter_count)
{
    size_t size = 0;
    for (size_t m = 0; m < counter_count; m++) size += counters[m].count;
    return size;
}

/* Reads all counters into before[sim_counters_size()]. */
void sim_counters_read(const struct sim_counter *counters, size_t counter_count, uint64_t *before);

/* Adds `times` times the change since `before`. */
void sim_counters_repeat(const struct sim_counter *counters, size_t counter_count, const uint64_t *before,
                         uint64_t times);

#endif
