/* A device to measure kernels on, and operands in its arena. For measure_*.c alone. */
#ifndef SPILLWAY_EXEC_MEASURE_BENCH_H
#define SPILLWAY_EXEC_MEASURE_BENCH_H

#include "exec/measure/measure_state.h"
#include "models/kernel/work.h"

enum { HOT_SLOTS = 4, TOKENS = 8192, FEW_WORDS = 256, MANY_WORDS = 8192 };

enum region { HOT, KEPT, WEIGHTS, STATE, COPIES, REGION_COUNT };

/* Copies come from and go to COPIES. Everything lies in the arena, or in that of another bench. */
struct bench {
    const struct backend *backend;
    enum bench_size size;
    uint32_t threads;
    struct device *device;
    float *regions[REGION_COUNT];
    uint64_t floats[REGION_COUNT];
    const int32_t *few, *many; /* TOKENS tokens below FEW_WORDS, MANY_WORDS */
    double *loss;
    struct work_item step[2 * LAYER_WORK_MAX]; /* see bench_compute_step() */
    uint32_t step_count;
};

#endif
