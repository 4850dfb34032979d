/*
 * Describes a machine from data of its driver and kernel, without measurements. Datasheets supply missing values of
 * GPUs in the catalogue.
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
    const char *name;          /* as in the driver */
    uint64_t total_bytes, free_bytes;
    double fp32_flops_per_s;   /* multiprocessors, operations per cycle and clock; 0: unknown */
    double memory_bytes_per_s; /* clock times bus width; 0: unknown */
    uint32_t pcie, lanes;      /* of its PCIe link; 0: unknown */
};

struct hardware_detected {
    const char *cpu;
    uint32_t cores;            /* usable; at least 1 */
    uint64_t host_bytes;       /* available host memory */
    double clock_hz;           /* 0: unknown */
    uint32_t flops_per_cycle;  /* fp32, of a core, with its widest instructions */
    const struct hardware_detected_gpu *gpus;
    uint32_t gpu_count;        /* 0: the device is the host */
    const bool *reaches;       /* (gpu_count, gpu_count): `row` fetched data directly from `column` */
    const char *as_of;         /* of the values */
};

/* Builds *out; texts are copied. Adjacent GPUs of the same name become one device type. GPUs that all reach each
 * other form a network; if pairs do not divide into such groups, no GPU gets one, and the machine's note says so.
 * Errors: STATUS_LIMIT. */
MUST_CHECK enum status hardware_from_detected(const struct hardware_detected *found, struct hardware *out,
                                              struct error *err);

#endif
