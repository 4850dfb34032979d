#include "sim/engine/counters.h"

#include <assert.h>
#include <string.h>

static_assert(sizeof(double) == sizeof(uint64_t), "a counter is 64 bits, whatever it shows");

static void *number_at(const struct sim_counter *counter, size_t index)
{
    return (char *)counter->first + index * counter->stride_bytes;
}

void sim_counters_read(const struct sim_counter *counters, size_t counter_count, uint64_t *before)
{
    for (size_t m = 0; m < counter_count; m++)
        for (size_t i = 0; i < counters[m].count; i++, before++)
            memcpy(before, number_at(&counters[m], i), sizeof *before);
}

static void repeat_real(void *number, uint64_t before, uint64_t times)
{
    double shown, shown_before;
    memcpy(&shown, number, sizeof shown);
    memcpy(&shown_before, &before, sizeof shown_before);
    shown += (double)times * (shown - shown_before);
    memcpy(number, &shown, sizeof shown);
}

static void repeat_count(void *number, uint64_t before, uint64_t times)
{
    uint64_t shown;
    memcpy(&shown, number, sizeof shown);
    shown += times * (shown - before); /* modulo 2^64, for counters that count down */
    memcpy(number, &shown, sizeof shown);
}

void sim_counters_repeat(const struct sim_counter *counters, size_t counter_count, const uint64_t *before,
                         uint64_t times)
{
    for (size_t m = 0; m < counter_count; m++)
        for (size_t i = 0; i < counters[m].count; i++, before++) {
            void *number = number_at(&counters[m], i);
            if (counters[m].kind == SIM_COUNTER_REAL) repeat_real(number, *before, times);
            else repeat_count(number, *before, times);
        }
}
