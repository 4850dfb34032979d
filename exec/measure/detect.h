/* What this machine has, by its kernel and its driver, with nothing measured: the executor's part of
 * `hardware detect`. */
#ifndef SPILLWAY_EXEC_DETECT_H
#define SPILLWAY_EXEC_DETECT_H

#include <stdio.h>

#include "models/hardware/hardware_detect.h"

/*
 * The machine as a hardware file has it. GPUs where this program was built with CUDA and there are some,
 * else the host. Each pair of GPUs is tried by copying a pattern both ways (exec/device/device_p2p.h), which
 * takes 4 MiB of each.
 *
 * notes    what stands in the way of knowing more, a line each; NULL: nobody asks
 * *out is zeroed and released by the caller also after an error. Errors: STATUS_DEVICE, STATUS_NO_MEMORY,
 * STATUS_LIMIT.
 */
MUST_CHECK enum status detect_machine(FILE *notes, struct hardware *out, struct error *err);

/* --- for detect*.c and its tests --------------------------------------------------------- */

/* The link of the device at that address ("0000:3b:00.0"), as far as it and the port above can go; what idle devices
 * have gone down to does not count. Zeros where nothing is told. root: "" or a folder that stands for "/". */
void detect_pcie(const char *root, const char *address, uint32_t *generation, uint32_t *lanes);

#ifdef SPILLWAY_CUDA
enum { DETECT_GPUS_MAX = 64, DETECT_NAME_BYTES = 256 };

struct detected_gpus {
    struct detected_gpu all[DETECT_GPUS_MAX];
    char names[DETECT_GPUS_MAX][DETECT_NAME_BYTES];
    bool reaches[DETECT_GPUS_MAX * DETECT_GPUS_MAX]; /* (count, count) */
    uint32_t count;
};

/* Errors: STATUS_DEVICE where a GPU does not answer. None is no error. */
MUST_CHECK enum status detect_gpus(const char *root, FILE *notes, struct detected_gpus *out, struct error *err);

/* FLOP/s by multiprocessors, what each starts in a cycle, and the clock; 0 where the driver does not tell. */
double gpu_peak_fp32(int device);
#endif

#endif
