/* One call of each kernel class. Only for measure_*.c. */
#ifndef SPILLWAY_EXEC_MEASURE_MEASURE_CALLS_H
#define SPILLWAY_EXEC_MEASURE_MEASURE_CALLS_H

#include "exec/kernels/kernels.h"
#include "exec/measure/measure_bench.h"

/* m, n, k as in models/kernel/work.h */
struct measure_call {
    const struct measure_bench *bench;
    const struct kernels *kernels;
    int64_t m, n, k;
    uint64_t operands; /* number of its operands, which take turns */
};

typedef void (*measure_call_function)(const struct measure_call *call);

struct measure_kernel_class {
    measure_call_function call, less;       /* call NULL: not measured. less: its time is subtracted */
    size_t need;                    /* offset in struct kernels of an optional kernel; 0: none */
    bool gpu_only;                  /* on the host, models/cost/cost.c computes it */
};
extern const struct measure_kernel_class measure_kernel_classes[KERNEL_COUNT];

#endif
