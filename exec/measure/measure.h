/* Measures this machine's hardware profile. */
#ifndef SPILLWAY_EXEC_MEASURE_MEASURE_H
#define SPILLWAY_EXEC_MEASURE_MEASURE_H

#include <stdio.h>

#include "models/hardware/hardware.h"

struct measure_options {
    double budget_s;   /* 0: 45 s */
    const char *storage; /* its disk is measured too; may be NULL */
    const volatile bool *stop; /* ends with STATUS_INTERRUPTED; may be NULL */
    FILE *notes;       /* gets the software that computes, and faults of this machine; may be NULL */
    void (*on_progress)(void *context, double done, double total, const char *what);
    void *context;
};

/* Measures the host. The caller zeroes *out, and releases it with hardware_release(). */
MUST_CHECK enum status measure_host(const struct measure_options *options, struct hardware *out,
                                    struct error *err);

/* Measures the first GPU; others are assumed to be equal. Only in a program built with CUDA. */
MUST_CHECK enum status measure_cuda(const struct measure_options *options, struct hardware *out,
                                    struct error *err);

#endif
