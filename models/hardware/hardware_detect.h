/*
 * A machine from what its driver and its kernel say of it, with nothing measured: what `spillway hardware detect`
 * writes. Datasheets fill in what these do not tell, of GPUs that the catalogue knows by the driver's name for them.
 *
 *     of the driver    name, memory, free memory, which pairs were seen to copy directly
 *     of the kernel    cores, host memory, generation and lanes of each PCIe link
 *     of datasheets    peaks, bandwidths, NVLink; of other GPUs by multiprocessors, clocks and bus width
 *     assumed          efficiencies, latencies, what lies between PCIe links and host memory, a processor's peak
 */
#ifndef SPILLWAY_MODELS_HARDWARE_DETECT_H
#define SPILLWAY_MODELS_HARDWARE_DETECT_H

#include "models/hardware/hardware.h"

struct detected_gpu {
    const char *name;          /* as the driver prints it */
    uint64_t total_bytes, free_bytes;
    double fp32_flops_per_s;   /* multiprocessors, what each does in a cycle, and clock; 0: not told */
    double memory_bytes_per_s; /* clock and width of its memory's bus; 0: not told */
    uint32_t pcie, lanes;      /* generation and width of its link; 0: not told */
};

struct detected {
    const char *cpu;
    uint32_t cores;            /* that may be used; at least 1 */
    uint64_t host_bytes;       /* that can be had */
    double clock_hz;           /* of a core; 0: not told */
    uint32_t flops_per_cycle;  /* of a core in fp32, by the widest instructions that it has */
    const struct detected_gpu *gpus;
    uint32_t gpu_count;        /* 0: the host is the device */
    const bool *reaches;       /* (gpu_count, gpu_count): what `row` fetched directly from `column` has arrived */
    const char *as_of;         /* day, for the figures */
};

/*
 * Texts are copied. GPUs of one name that stand beside each other become one kind. Those that all reach
 * each other are in one network; where that is no relation of whole groups nobody is, and the machine's
 * note says so. *out is zeroed and released by the caller also after an error. Errors: STATUS_NO_MEMORY,
 * STATUS_LIMIT.
 */
MUST_CHECK enum status hardware_from_detected(const struct detected *found, struct hardware *out, struct error *err);

#endif
