/* This machine's hardware profile, measured with the executor's own kernels and copies. */
#ifndef SPILLWAY_EXEC_MEASURE_H
#define SPILLWAY_EXEC_MEASURE_H

#include <stdio.h>

#include "models/hardware/hardware.h"

struct measure_options {
    double budget_s;   /* how long all of it may take; 0: 45 s */
    const char *storage; /* a folder: the disk there is measured as well; NULL: none */
    const volatile bool *stop; /* may be NULL: ends it with STATUS_INTERRUPTED */
    FILE *notes;       /* what computes, and what looks wrong with this machine; NULL: none */
    void (*on_progress)(void *context, double done, double total, const char *what);
    void *context;
};

/* Zeroed struct in; release with hardware_release(). */
MUST_CHECK enum status measure_host(const struct measure_options *options, struct hardware *out,
                                    struct error *err);

/* The first GPU; further ones are taken to be like it. Only in a program that was built with CUDA. */
MUST_CHECK enum status measure_cuda(const struct measure_options *options, struct hardware *out,
                                    struct error *err);

#endif
