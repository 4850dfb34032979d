/*
 * Machines from parts: GPUs of one kind in nodes of one kind. Used by models/hardware/hardware_presets.c.
 *
 *     host bridge          simplex, of a node: H2D and D2H of all its devices together
 *      |        |
 *     switch-0  switch-1   duplex, one link's width each; only where a node has several devices
 *      |   |     |   |
 *     pcie-0 ...           duplex; to the host, and to the NIC
 *
 *     nvlink-0 ...         duplex, of each device to a switch in the middle of its node; peers without NVLink
 *                          copy over switches and pcie links; others through host memory
 *     nic-0 ...            duplex, each of one device or of several; to the network between nodes
 *     leaf-0 ...           duplex, up to the spine; only where it is oversubscribed: of a tree that is not,
 *                          no link ever keeps a NIC waiting
 */
#ifndef SPILLWAY_MODELS_HARDWARE_BUILD_H
#define SPILLWAY_MODELS_HARDWARE_BUILD_H

#include "models/hardware/hardware.h"

/* What was fitted to measured runs in place of the defaults of hardware_build(); what is 0 stays as it is. */
struct gpu_fit {
    struct figure fp32_efficiency;
    struct figure matmul_efficiency, memory_efficiency, launch_latency, collective_latency;
    struct kernel_model kernel_model;
    struct figure nvlink_latency; /* of each of the two links that a message crosses */
};

struct gpu {
    const char *name;
    const char *driver_name; /* as nvidia-smi prints it */
    const char *summary;
    struct figure memory, total; /* nominal, and what nvidia-smi reports */
    struct figure bandwidth, fp32, tf32, bf16;
    uint32_t pcie; /* generation, 3 to 5 */
    struct figure nvlink; /* each way, to a switch that all devices of a machine are at; 0: none */
    struct figure power;  /* watts of a board */
    const struct gpu_fit *fit; /* NULL: nothing was */
    bool peers;            /* without NVLink: devices copy directly over PCIe, which drivers let data-centre cards alone */
};

/* What is outside of the GPUs. */
struct node {
    const char *name, *summary, *note; /* NULL where the machine is just several of a GPU */
    const char *gpu;
    uint32_t device_count;
    struct figure host_bytes;
    uint32_t host_cores;
    struct figure host_bandwidth; /* 0: assumed from its cores */
    struct figure storage, storage_rate; /* NVMe drives together, one way; 0: none */
    uint32_t pcie;        /* generation of the host; 0: the GPU's */
    uint32_t switch_devices; /* behind a PCIe switch; 0: two */
    const struct gpu_fit *fit; /* of its GPUs under the software that ran there; NULL: the GPU's */
    struct figure nvlink; /* 0: the GPU's */
    uint32_t nic_count;   /* divides device_count; 0: nodes cannot be joined */
    struct figure nic, nic_latency; /* of each; a message crosses two */
    uint32_t leaf_nodes;  /* with their NICs at the same place at one leaf switch */
};

/*
 * `count` nodes. oversubscription: of a leaf switch, its NICs' bandwidth over that of its uplinks; at least 1.
 * joins: there are other nodes beside these (models/hardware/hardware_mix.h), so also one alone has its NICs.
 * *out is zeroed and released by the caller also after an error. Errors: STATUS_NO_MEMORY.
 */
MUST_CHECK enum status hardware_build(const struct gpu *gpu, const struct node *node, uint32_t count,
                                      double oversubscription, bool joins, struct hardware *out, struct error *err);

/* For figures of presets. */
struct figure figure_assumed(double value, double spread, const char *source);
struct figure figure_measured(double value, double spread, const char *source);

#define FIGURES_AS_OF "2026-11"
#define SEEN(v, s) {.value = (v), .kind = FIGURE_DATASHEET, .source = (s), .as_of = FIGURES_AS_OF}
#define GUESS(v, s) \
    {.value = (v), .spread = 0.1, .kind = FIGURE_ASSUMED, .source = (s), .as_of = FIGURES_AS_OF}
#define PUBLISHED(v, s) {.value = (v), .spread = 0.1, .kind = FIGURE_MEASURED, .source = (s), .as_of = FIGURES_AS_OF}
#define NONE {.value = 0}

#define GIB 0x1p30
#define MIB 0x1p20
#define GB 1e9
#define TB 1e12
#define TFLOP 1e12

#endif
