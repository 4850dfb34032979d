/* Measures this machine's hardware profile with the executor's own kernels and copies. */
#ifndef SPILLWAY_EXEC_MEASURE_MEASURE_H
#define SPILLWAY_EXEC_MEASURE_MEASURE_H

#include <stdio.h>

#include "models/hardware/hardware.h"

struct measure_options {
    double budget_s;   /* time for the whole measurement; 0: 45 s */
    const char *storage; /* a folder whose disk is measured too; NULL: none */
    const volatile bool *stop; /* ends the measurement with STATUS_INTERRUPTED; may be NULL */
    FILE *notes;       /* receives the software that computes, and faults of this machine; NULL:
                          none */
    void (*on_progress)(void *context, double done, double total, const char *what);
    void *context;
};

/* Measures the host. The caller zeroes *out, and releases it with hardware_release(). */
MUST_CHECK enum status measure_host(const struct measure_options *options, struct hardware *out,
                                    struct error *err);

/* Measures the first GPU; further GPUs are assumed to be equal. Only in a program built with CUDA. */
MUST_CHECK enum status measure_cuda(const struct measure_options *options, struct hardware *out,
                                    struct error *err);

#endif
