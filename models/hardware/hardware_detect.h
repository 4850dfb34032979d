/*
 * Describes a machine from data of its driver and kernel, without measurements, as `spillway hardware detect` writes
 * it. Datasheets supply missing values for GPUs whose driver name the catalogue knows.
 *
 *     from the driver     name, memory, free memory, pairs of devices that were seen to copy directly
 *     from the kernel     cores, host memory, generation and lanes of each PCIe link
 *     from datasheets     peaks, bandwidths, NVLink; for unknown GPUs computed from multiprocessors, clocks and bus
 *                         width
 *     assumed             efficiencies, latencies, links between PCIe and host memory, a processor's peak
 */
#ifndef SPILLWAY_MODELS_HARDWARE_HARDWARE_DETECT_H
#define SPILLWAY_MODELS_HARDWARE_HARDWARE_DETECT_H

#include "models/hardware/hardware.h"

struct hardware_detected_gpu {
    const char *name;          /* as the driver prints it */
    uint64_t total_bytes, free_bytes;
    double fp32_flops_per_s;   /* multiprocessors times operations per cycle times clock; 0: unknown */
    double memory_bytes_per_s; /* memory clock times bus width; 0: unknown */
    uint32_t pcie, lanes;      /* generation and width of its PCIe link; 0: unknown */
};

struct hardware_detected {
    const char *cpu;
    uint32_t cores;            /* usable cores; at least 1 */
    uint64_t host_bytes;       /* available host memory */
    double clock_hz;           /* of a core; 0: unknown */
    uint32_t flops_per_cycle;  /* fp32 operations of a core per cycle, with its widest instructions */
    const struct hardware_detected_gpu *gpus;
    uint32_t gpu_count;        /* 0: the host is the device */
    const bool *reaches;       /* (gpu_count, gpu_count): true if `row` fetched data directly from `column` */
    const char *as_of;         /* date of the values */
};

/*
 * Builds *out from detected values; texts are copied. Adjacent GPUs of the same name become one device type. GPUs that
 * all reach each other form a network. If the pairs do not divide the GPUs into such groups, no GPU gets a network, and
 * the machine's note says so. The caller zeroes *out, and releases it also after an error. Errors: STATUS_LIMIT.
 */
MUST_CHECK enum status hardware_from_detected(const struct hardware_detected *found, struct hardware *out, struct error *err);

#endif
