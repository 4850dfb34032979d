/* Which sizes of each kernel class are measured. For measure_*.c alone. */
#ifndef SPILLWAY_EXEC_MEASURE_SIZES_H
#define SPILLWAY_EXEC_MEASURE_SIZES_H

#include "exec/measure/measure_state.h"
#include "models/kernel/work.h"

/* All sizes of a class (m, n and k of items), in the order that files have them. Returns how many. */
uint32_t measure_sizes(enum kernel kernel, enum bench_size size,
                       struct work_item items[RATE_POINTS_MAX]);

#endif
