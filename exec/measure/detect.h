/* Detects this machine by its kernel and driver, without measurements. */
#ifndef SPILLWAY_EXEC_MEASURE_DETECT_H
#define SPILLWAY_EXEC_MEASURE_DETECT_H

#include <stdio.h>

#include "models/hardware/hardware_detect.h"

/*
 * Detects GPUs if the program was built with CUDA and there are any, else the host. Each pair of GPUs is tested with a
 * pattern (exec/device/device_p2p.h), which takes 4 MiB of each.
 *
 * notes    receives one line per obstacle to detection; NULL: no notes The caller zeroes *out, and releases it also
 * after an error. Errors: STATUS_DEVICE, STATUS_LIMIT.
 */
MUST_CHECK enum status detect_machine(FILE *notes, struct hardware *out, struct error *err);

/* --- for detect*.c and its tests --------------------------------------------------------- */

/* Finds the PCIe link of a device ("0000:3b:00.0"): the best that it and the port above support, not an idle
 * device's. Zeros for unknown values. root: "" or a folder that replaces "/". */
void detect_pcie(const char *root, const char *address, uint32_t *generation, uint32_t *lanes);

#ifdef SPILLWAY_CUDA
enum { DETECT_GPUS_MAX = 64, DETECT_NAME_BYTES = 256 };

struct detect_gpu_list {
    struct hardware_detected_gpu all[DETECT_GPUS_MAX];
    char names[DETECT_GPUS_MAX][DETECT_NAME_BYTES];
    bool reaches[DETECT_GPUS_MAX * DETECT_GPUS_MAX]; /* (count, count) */
    uint32_t count;
};

/* Detects GPUs; there may be none. Errors: STATUS_DEVICE when a GPU does not answer. */
MUST_CHECK enum status detect_gpus(const char *root, FILE *notes, struct detect_gpu_list *out, struct error *err);

/* Computes FLOP/s from multiprocessors, operations per cycle and clock; 0 when unknown. */
double detect_gpu_peak_fp32(int device);
#endif

#endif
