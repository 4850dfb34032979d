/* Sizes of each kernel class that are measured. Only for measure_*.c. */
#ifndef SPILLWAY_EXEC_MEASURE_MEASURE_SIZES_H
#define SPILLWAY_EXEC_MEASURE_MEASURE_SIZES_H

#include "exec/measure/measure_state.h"
#include "models/kernel/work.h"

/* Writes all sizes of a class (m, n and k of items) in the order of files. Returns their number. */
uint32_t measure_sizes(enum kernel kernel, enum measure_bench_size size,
                       struct work_item items[RATE_POINTS_MAX]);

#endif
