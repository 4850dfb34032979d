/*
 * Builds machines from GPUs of one kind in nodes of one kind.
 *
 *     host bridge          simplex, one per node: H2D and D2H of all its devices together
 *      |        |
 *     switch-0  switch-1   duplex, each as wide as one link; only in nodes with several devices
 *      |   |     |   |
 *     pcie-0 ...           duplex; to the host, and to the NIC
 *
 *     nvlink-0 ...         duplex, from each device to a central switch of its node. Peers without NVLink copy over
 *                          switches and pcie links, other devices through host memory
 *     nic-0 ...            duplex, one per device or shared; to the network between nodes
 *     leaf-0 ...           duplex, up to the spine; only with oversubscription. Without it, no link above a NIC
 *                          is ever a bottleneck
 */
#ifndef SPILLWAY_MODELS_HARDWARE_HARDWARE_BUILD_H
#define SPILLWAY_MODELS_HARDWARE_HARDWARE_BUILD_H

#include "models/hardware/hardware.h"

/* Values fitted to runs, which replace defaults unless 0. */
struct hardware_gpu_fit {
    struct sourced_value fp32_efficiency;
    struct sourced_value matmul_efficiency, memory_efficiency, launch_latency, collective_latency;
    struct kernel_model kernel_model;
    struct sourced_value nvlink_latency; /* of each of a message's two links */
};

struct hardware_gpu {
    const char *name;
    const char *driver_name; /* as in nvidia-smi */
    const char *summary;
    struct sourced_value memory, total; /* nominal, and nvidia-smi's */
    struct sourced_value bandwidth, fp32, tf32, bf16;
    uint32_t pcie;               /* generation */
    struct sourced_value nvlink;        /* per direction, to a switch of all devices; 0: none */
    struct sourced_value power;         /* of a board */
    const struct hardware_gpu_fit *fit; /* may be NULL */
    bool peers;            /* direct copies over PCIe; drivers allow them for data-centre cards */
};

/* A node outside its GPUs. */
struct hardware_node {
    const char *name, *summary, *note; /* NULL if it is only several of a GPU */
    const char *gpu;
    uint32_t device_count;
    struct sourced_value host_bytes;
    uint32_t host_cores;
    struct sourced_value host_bandwidth;        /* 0: assumed from cores */
    struct sourced_value storage, storage_rate; /* all NVMe drives, one direction; 0: none */
    uint32_t pcie;        /* of the host; 0: the GPU's */
    uint32_t switch_devices;                    /* per PCIe switch; 0: two */
    const struct hardware_gpu_fit *fit;         /* of its GPUs with its software; NULL: the GPU's */
    struct sourced_value nvlink;                /* 0: the GPU's */
    uint32_t nic_count;   /* divides device_count; 0: nodes cannot be joined */
    struct sourced_value nic, nic_latency;      /* per NIC; a message crosses two */
    uint32_t leaf_nodes;  /* per leaf switch, with NICs of the same place */
};

/* Builds `count` nodes. `oversubscription`, at least 1: bandwidth of a leaf switch's NICs divided by its uplinks'.
 * `joins`: further nodes are joined later (models/hardware/hardware_mix.h), so even a single node gets NICs. */
MUST_CHECK enum status hardware_build(const struct hardware_gpu *gpu, const struct hardware_node *node, uint32_t count,
                                      double oversubscription, bool joins, struct hardware *out, struct error *err);

struct sourced_value sourced_assumed(double value, double spread, const char *source);
struct sourced_value sourced_measured(double value, double spread, const char *source);

#define HARDWARE_AS_OF "2026-11"
#define HW_SEEN(v, s) {.value = (v), .kind = SOURCE_DATASHEET, .source = (s), .as_of = HARDWARE_AS_OF}
#define HW_GUESS(v, s) \
    {.value = (v), .spread = 0.1, .kind = SOURCE_ASSUMED, .source = (s), .as_of = HARDWARE_AS_OF}
#define HW_PUBLISHED(v, s) \
    {.value = (v), .spread = 0.1, .kind = SOURCE_MEASURED, .source = (s), .as_of = HARDWARE_AS_OF}
#define HW_NONE {.value = 0}

#define HW_GIB 0x1p30
#define HW_MIB 0x1p20
#define HW_GB 1e9
#define HW_TB 1e12
#define HW_TFLOP 1e12

#endif
