/* The measured sizes. Only for measure_*.c. */
#ifndef SPILLWAY_EXEC_MEASURE_MEASURE_SIZES_H
#define SPILLWAY_EXEC_MEASURE_MEASURE_SIZES_H

#include "exec/measure/measure_state.h"
#include "models/kernel/work.h"

/* Writes all sizes of a class in the order of files; returns their number. */
uint32_t measure_sizes(enum kernel kernel, enum measure_bench_size size,
                       struct work_item items[HARDWARE_RATE_POINTS_MAX]);

#endif
