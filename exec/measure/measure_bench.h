/* A device with operands in its arena. Only for measure_*.c. */
#ifndef SPILLWAY_EXEC_MEASURE_MEASURE_BENCH_H
#define SPILLWAY_EXEC_MEASURE_MEASURE_BENCH_H

#include "exec/measure/measure_state.h"
#include "models/kernel/work.h"

enum { MEASURE_HOT_SLOTS = 4, MEASURE_TOKENS = 8192, MEASURE_FEW_WORDS = 256, MEASURE_MANY_WORDS = 8192 };

enum measure_region { MEASURE_HOT, MEASURE_KEPT, MEASURE_WEIGHTS, MEASURE_STATE, MEASURE_COPIES, MEASURE_REGION_COUNT };

/* MEASURE_COPIES is for copies. Memory is in the arena, or in another bench's. */
struct measure_bench {
    const struct backend *backend;
    enum measure_bench_size size;
    uint32_t threads;
    struct device *device;
    float *regions[MEASURE_REGION_COUNT];
    uint64_t floats[MEASURE_REGION_COUNT];
    const int32_t *few, *many; /* MEASURE_TOKENS tokens below MEASURE_FEW_WORDS, MEASURE_MANY_WORDS */
    double *loss;
    struct work_item step[2 * LAYER_WORK_MAX]; /* see measure_bench_compute_step() */
    uint32_t step_count;
};

#endif
