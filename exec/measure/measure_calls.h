/* One call of each kernel class, with operands where a training step has them. For measure_*.c alone. */
#ifndef SPILLWAY_EXEC_MEASURE_CALLS_H
#define SPILLWAY_EXEC_MEASURE_CALLS_H

#include "exec/kernels/kernels.h"
#include "exec/measure/measure_bench.h"

/* One call of a kernel; m, n, k as models/kernel/work.h defines them for its class. */
struct call {
    const struct bench *bench;
    const struct kernels *kernels;
    int64_t m, n, k;
    uint64_t turn; /* chooses operands */
};

typedef void (*call_function)(const struct call *call);

struct kernel_class {
    call_function call, less;       /* NULL: not measured; less: what is subtracted, the same sizes */
    size_t need;                    /* offset in struct kernels of what a back end may lack; 0: none */
    bool gpu_only;                  /* models/cost/cost.c puts the host's together from what is measured */
};
extern const struct kernel_class kernel_classes[KERNEL_COUNT];

#endif
