/* See meter.h. */
#include "sim/engine/meter.h"

#include <assert.h>
#include <string.h>

static_assert(sizeof(double) == sizeof(uint64_t), "a meter is 64 bits, whatever it shows");

static void *number_at(const struct sim_meter *meter, size_t index)
{
    return (char *)meter->first + index * meter->stride_bytes;
}

void sim_meters_read(const struct sim_meter *meters, size_t meter_count, uint64_t *before)
{
    for (size_t m = 0; m < meter_count; m++)
        for (size_t i = 0; i < meters[m].count; i++, before++) memcpy(before, number_at(&meters[m], i), sizeof *before);
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

void sim_meters_repeat(const struct sim_meter *meters, size_t meter_count, const uint64_t *before, uint64_t times)
{
    for (size_t m = 0; m < meter_count; m++)
        for (size_t i = 0; i < meters[m].count; i++, before++) {
            void *number = number_at(&meters[m], i);
            if (meters[m].kind == SIM_METER_REAL) repeat_real(number, *before, times);
            else repeat_count(number, *before, times);
        }
}
