/*
 * Machines: memories, devices, links, and the speed of kernels.
 *
 * Presets and `spillway measure` share the file format. Every value has source, date and kind. A kernel's measured
 * table overrides peak times efficiency. A duplex link's bandwidth counts per direction, a simplex link's for both
 * together.
 *
 * Each node has a host: memory, cores and storage for its own devices. Host values count for all nodes together, in
 * equal shares. Place 0 is the memory of host 0, place 1 + d the memory of device d; memories of other hosts follow. A
 * copy between host and device d crosses devices[d].path; H2D and D2H use opposite directions.
 *
 * A device belongs to networks, innermost first: NVLink in its node, then the network between nodes. Devices in the
 * same group of a network copy directly (P2P), over the innermost shared network. Networks nest: two devices that
 * share a group share all groups further out. A network's path leads from the group's meeting point to the device. A
 * copy from a to b goes up a's path and down b's, without the links that both begin with:
 *
 *     NVLink to a switch        [nvlink-3]               one link per device
 *     PCIe                      [switch-1, pcie-3]       the rest of `path` after the host bridge
 *     fat tree                  [leaf-0, nic-1, pcie-3]  the leaf's uplink to the spine, with the bandwidth of
 *                               its NICs divided by the oversubscription; a NIC of one or several devices
 *     memory of one machine     []                       costs only the copy itself
 *
 * Devices of one host without a shared network exchange data through host memory, as NCCL does. Such a staged copy
 * goes up all of a's `path` and down b's, both halves at the same time. A link on both paths is crossed twice, a
 * simplex link at twice the rate.
 *
 * File format (F: a sourced value, see below; optional keys in parentheses):
 *
 *     {"spillway_hardware": 1, "name": "...", "backend": "cuda",
 *      ("note": "...", "measured_on": "...", "stack": "frameworks", "load": {"others": F, "stolen": F, "disturbed":
 *      F},) "host": {"memory": F, "cores": 16, ("threads": 0, "memory_bandwidth": F,
 *                "nodes": 4, "node_devices": 8, "dilation": F)},
 *      ("storage": {"capacity": F, "read": F, "write": F, ("both": F, "latency": F)},)
 *      "device_types": [{"name": "...", "memory": F, ("usable": F,) "peak_fp32": F,
 *          ("peak_tf32": F, "peak_bf16": F,) "memory_bandwidth": F,
 *          ("matmul_efficiency": F, "fp32_efficiency": F, "memory_efficiency": F, "launch_latency": F,
 *           "collective_latency": F, "board_power": F, "speed": F,)
 *          ("kernel_model": {"multiprocessors": F, ("matmul_depth": F, "score_bytes_forward": F,
 *                            "score_bytes_backward": F, "loss_passes": F, "elementwise_passes": F,
 *                            "matmul_sustained": F, "misaligned_rate": F, "kernel_gap": F, "dispatch_latency": F,
 *                            "attention_efficiency": F)},)
 *          ("profiles": [{"threads": 2,
 *                         "kernels": {"matmul_forward": [[m, n, k, seconds, spread]]},
 *                         "interference": {"compute_by_copy": F, ...}}],
 *           "h2d": [[bytes, seconds, spread]], "d2h": [...], "p2p": [...], "ring": [...])}],
 *      "links": [{"name": "...", "bandwidth": F, ("latency": F,) "duplex": true,
 *                 ("paced": false)}],
 *      "devices": [{"type": "...", "path": ["link", ...], ("memory_bytes": n,
 *                   "networks": [{"group": 1, "path": ["link", ...]}])}]}
 *
 * A value without a unit is refused, as is any unknown key.
 */
#ifndef SPILLWAY_MODELS_HARDWARE_HARDWARE_H
#define SPILLWAY_MODELS_HARDWARE_HARDWARE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/json/json_in.h"
#include "models/kernel/work.h"

struct collective_rate;
struct json_out;

/* The largest published cluster (24 576 H100 of Llama 3, arXiv 2407.21783): 3072 nodes of eight devices with links; a
 * network inside each node, and one of all nodes. */
enum { HARDWARE_DEVICES_MAX = 24576, HARDWARE_LINKS_MAX = 8 * HARDWARE_DEVICES_MAX, HARDWARE_PATH_LINKS_MAX = 8,
      HARDWARE_DEVICE_TYPES_MAX = 1024 };
enum { HARDWARE_NETWORKS_MAX = 4, HARDWARE_NETWORK_GROUPS_MAX = 2 * HARDWARE_DEVICES_MAX };
enum { HARDWARE_DILATION_MAX = 1000000 };
enum { HARDWARE_PROFILES_MAX = 256, HARDWARE_COPY_POINTS_MAX = 256, HARDWARE_HOST_CORES_MAX = 1 << 20 };

enum source_kind {
    SOURCE_DATASHEET,
    SOURCE_MEASURED,
    SOURCE_DERIVED,
    SOURCE_ASSUMED,
    SOURCE_FITTED, /* predictions match measurements (spillway calibrate) */
    SOURCE_KIND_COUNT
};
extern const char *const source_kind_names[SOURCE_KIND_COUNT];

/* A number with its origin. In files: {"value": 616, "unit": "GB/s", "kind": "datasheet", "source": "...", "as_of":
 * "2026-11"}; measured values also have "spread" (relative, half the interquartile range). A plain ratio's unit is
 * "ratio". */
struct sourced_value {
    double value;       /* SI: bytes, bytes/s, seconds, FLOP/s, or a ratio */
    double spread;      /* relative; 0 when unknown */
    uint32_t kind;      /* enum source_kind */
    const char *source; /* NULL only in a zero value */
    const char *as_of;
};

/* Converts a spread into standard deviations: half the interquartile range of a normal distribution. */
#define SOURCED_SPREAD_DEVIATIONS 0.67448975019608171

/* Machines without efficiencies of their own use these. */
extern const struct sourced_value hardware_default_matmul_efficiency, hardware_default_memory_efficiency;

enum { HARDWARE_RATE_POINTS_MAX = 512 };

/* Seconds of one execution of a kernel at these sizes. */
struct rate_point {
    uint64_t m, n, k;
    double seconds;
    double spread; /* relative */
};

struct kernel_rate {
    const struct rate_point *points; /* measured, sorted by (m, n, k); NULL: use the datasheet */
    uint32_t point_count;
};

/*
 * Measured slowdown of simultaneous work. A domain's devices share cores and memory (all host devices of a machine;
 * each GPU has its own).
 *   compute speed = 1 / (1 + compute_by_compute * (other computing devices of the domain)
 *                          + compute_by_copy * sum over copies of rate / copy_reference_rate
 *                          + compute_by_collective * collectives under way that the device takes part in)
 *   a copy's own cap = copy_reference_rate / (1 + copy_by_compute * computing devices
 *                                               + copy_by_copy * other copies)
 * Zero: no effect.
 */
struct hardware_interference {
    struct sourced_value compute_by_compute, compute_by_copy, compute_by_collective, copy_by_compute, copy_by_copy;
    struct sourced_value copy_reference_rate; /* with nothing else running */
};

/* The speed of a device's kernels by its threads; GPU types have one profile with threads = 0. */
struct compute_profile {
    uint32_t threads;
    struct kernel_rate kernels[KERNEL_COUNT];
    struct hardware_interference interference; /* with devices of the same number of threads */
};

/*
 * The software of a machine (models/hardware/software_stack.h). Its overheads apply to every kind of job.
 *
 *   spillway       this project's executor: attention and each elementwise operation on activations are one kernel,
 *                  kernels follow each other without gaps, and a job's states come from host memory and return to it
 *   frameworks     PyTorch, Megatron-LM and the like until 2022, as published runs used them: the second part of struct
 *                  kernel_model applies with the device's own values, and states are on the devices from the start, as
 *                  in timings of iterations
 *   megatron-core  Megatron-Core of 2024 with Transformer Engine: likewise, with the stack's values; attention is one
 *                  kernel
 */
enum hardware_stack { STACK_SPILLWAY, STACK_FRAMEWORKS, STACK_MEGATRON_CORE, STACK_COUNT };
extern const char *const hardware_stack_names[STACK_COUNT + 1]; /* ends with NULL */

/*
 * How kernels fall short of peak and bandwidth: models/cost/kernel_model.h. Without `multiprocessors` there is no
 * model, and kernels take launch latency plus the roofline.
 */
struct kernel_model {
    struct sourced_value multiprocessors; /* each takes one tile of a product */
    struct sourced_value matmul_depth;  /* inner dimension k of half the rate */
    struct sourced_value matmul_sustained; /* highest fraction of the peak of any product; 0: no limit */
    struct sourced_value misaligned_rate; /* fraction of the rate if rows are not a multiple of 16 bytes; 0: all of
                                             it */
    /* Values of frameworks: */
    struct sourced_value score_bytes_forward; /* that attention moves per score, without its products; */
    struct sourced_value score_bytes_backward; /* 0: attention is one kernel that keeps scores on chip */
    struct sourced_value loss_passes;   /* of the loss over the logits, each read and write; 0: one */
    struct sourced_value elementwise_passes; /* of elementwise work over activations; 0: one */
    struct sourced_value kernel_gap;    /* between kernels on the device, seconds */
    struct sourced_value dispatch_latency; /* of the host, per kernel, seconds */
    struct sourced_value attention_efficiency; /* of the peak, for attention in one kernel; 0: as a product */
};

struct copy_point {
    uint64_t bytes;
    double seconds;
    double spread;
};

struct device_type {
    const char *name;
    struct sourced_value memory_bytes; /* nominal */
    struct sourced_value usable_bytes; /* reported by the driver on an idle device */
    struct sourced_value peak_fp32, peak_tf32, peak_bf16; /* dense FLOP/s, fp32 accumulation; 0: none */
    struct sourced_value memory_bandwidth; /* bytes/s */
    struct sourced_value matmul_efficiency; /* of the peak, without measurements */
    struct sourced_value fp32_efficiency; /* of peak_fp32 for products without matrix cores, with effects of shapes;
                                             0: matmul_efficiency */
    struct sourced_value memory_efficiency; /* of memory_bandwidth, likewise */
    struct sourced_value launch_latency; /* seconds per kernel */
    struct sourced_value board_power;  /* power limit, watts; 0: unknown */
    struct sourced_value collective_latency; /* before the first step of a collective */
    struct sourced_value speed;        /* relative to its measurements: 1, with its spread between moments; 0:
                                          unknown */
    struct kernel_model kernel_model;
    const struct compute_profile *profiles;
    uint32_t profile_count;
    /* measured copies, pinned, one direction at a time, with latency */
    const struct copy_point *h2d, *d2h, *p2p; /* p2p: within the type */
    uint32_t h2d_count, d2h_count, p2p_count;
    const struct copy_point *ring; /* ring step inside a node by message size, while all members send */
    uint32_t ring_count;
    const struct collective_rate *collectives; /* measured collectives; collective_rate.h */
    uint32_t collective_count;
};

struct hardware_link {
    const char *name;
    struct sourced_value bandwidth; /* per direction if duplex */
    struct sourced_value latency; /* seconds */
    bool duplex;
    bool paced;              /* the executor slows copies down to it */
};

/* A network that a device belongs to. */
struct hardware_network {
    uint32_t group; /* at least 1 */
    uint32_t path[HARDWARE_PATH_LINKS_MAX]; /* from the group's meeting point to the device; may be empty */
    uint32_t path_count;
};

struct hardware_device {
    uint32_t type;    /* index into types */
    uint32_t host;    /* below hardware_host_count() */
    uint64_t memory_bytes; /* usable_bytes, or --device-memory */
    uint32_t path[HARDWARE_PATH_LINKS_MAX]; /* from host memory to the device */
    uint32_t path_count;
    struct hardware_network networks[HARDWARE_NETWORKS_MAX]; /* innermost first */
    uint32_t network_count; /* 0: only host memory reaches other devices */
};

/* Adds a network without links to the device and returns it, borrowed. */
static inline struct hardware_network *hardware_join(struct hardware_device *device, uint32_t group)
{
    assert(device->network_count < HARDWARE_NETWORKS_MAX && group > 0);
    struct hardware_network *network = &device->networks[device->network_count++];
    network->group = group;
    network->path_count = 0;
    return network;
}

/* Storage for states; values count for all hosts together. */
struct hardware_storage {
    struct sourced_value capacity_bytes; /* 0: no storage */
    struct sourced_value read_rate, write_rate; /* one direction at a time */
    struct sourced_value both_rate; /* both directions at once, bytes/s; 0: unknown, the larger of read_rate and
                                       write_rate */
    struct sourced_value latency;  /* seconds before the first byte */
};

/* Load during the measurement; values without source were not measured. */
struct hardware_load {
    struct sourced_value others; /* processor time of other programs */
    struct sourced_value stolen; /* processor time of other machines, by the hypervisor */
    struct sourced_value disturbed; /* share of disturbed samples */
};

struct hardware {
    struct arena arena;
    const char *name;
    const char *backend;       /* "host" or "cuda" */
    uint32_t stack;            /* enum hardware_stack */
    const char *note;          /* assumptions; may be NULL */
    struct sourced_value host_bytes; /* DRAM for plans, all hosts together */
    struct sourced_value host_bandwidth; /* of all cores of all hosts; 0: unknown, see hardware_cpu() */
    struct sourced_value file_read, file_write; /* all hosts together; 0: unknown (models/job/host_files.h) */
    uint32_t host_cores;       /* all hosts together */
    uint32_t host_nodes, node_devices; /* hosts, and devices per host, in order; 0, 0: one host */
    uint32_t threads;          /* per host device; 0 for GPUs */
    struct sourced_value dilation; /* factor by which host devices are slower; hardware_dilate.h */
    struct hardware_storage storage;
    struct device_type *types;
    uint32_t type_count;
    struct hardware_device *devices;
    uint32_t device_count;
    bool p2p;                  /* some devices share a network; set by hardware_note_p2p() */
    struct hardware_link *links;
    uint32_t link_count;
    const char *measured_on;   /* cpu or gpu model, library versions; NULL: a datasheet */
    struct hardware_load load;
};

/* Counts hosts, one per node. */
static inline uint32_t hardware_host_count(const struct hardware *hardware)
{
    return hardware->host_nodes > 1 ? hardware->host_nodes : 1;
}

/* Returns one host's share of all. */
static inline double hardware_of_host(const struct hardware *hardware, double of_all)
{
    return of_all / hardware_host_count(hardware);
}

/* Returns one host's DRAM for plans. */
static inline uint64_t hardware_host_bytes(const struct hardware *hardware)
{
    return (uint64_t)hardware_of_host(hardware, hardware->host_bytes.value);
}

/*
 * Returns the "device" number of a host's processor in models/cost/cost.h, which can do optimizers and embeddings on
 * host memory. Host devices share their cores with it and have its profile for all cores; elsewhere host memory bounds
 * its rate.
 */
static inline uint32_t hardware_cpu(const struct hardware *hardware)
{
    return hardware->device_count;
}
/* Returns true for devices that are parts of a host. */
bool hardware_is_host(const struct hardware *hardware);
/* Returns true if its speed is known. */
bool hardware_has_cpu(const struct hardware *hardware);

/*
 * Writes the load as a clause ("other programs used 31 % of its processors while it was measured"). Returns false when
 * the machine was idle enough or not measured.
 */
enum { HARDWARE_LOAD_TEXT_BYTES = 160 };
bool hardware_load_text(const struct hardware *hardware, char text[HARDWARE_LOAD_TEXT_BYTES]);

/* Returns the processor time that others took, as a share; 0 if not measured. */
static inline double hardware_load_taken(const struct hardware *hardware)
{
    return hardware->load.others.value + hardware->load.stolen.value;
}

static inline bool hardware_has_storage(const struct hardware *hardware)
{
    return hardware->storage.capacity_bytes.value > 0;
}
static inline uint32_t hardware_storage_count(const struct hardware *hardware)
{
    return hardware_has_storage(hardware) ? hardware_host_count(hardware) : 0;
}
static inline uint64_t hardware_storage_bytes(const struct hardware *hardware)
{
    return (uint64_t)hardware_of_host(hardware, hardware->storage.capacity_bytes.value);
}
static inline bool hardware_has_p2p(const struct hardware *hardware)
{
    return hardware->p2p;
}
/* Call it after devices changed: sets hardware->p2p. */
void hardware_note_p2p(struct hardware *hardware);

/* Returns the innermost shared network, with the path of device `of`, or NULL. */
static inline const struct hardware_network *hardware_network_of(const struct hardware *hardware,
                                                                 uint32_t of, uint32_t with)
{
    const struct hardware_device *a = &hardware->devices[of], *b = &hardware->devices[with];
    for (uint32_t i = 0; i < a->network_count; i++)
        for (uint32_t k = 0; k < b->network_count; k++)
            if (a->networks[i].group == b->networks[k].group) return &a->networks[i];
    return NULL;
}

/* Returns true if `to` can fetch directly from `from`. */
static inline bool hardware_p2p_pair(const struct hardware *hardware, uint32_t from, uint32_t to)
{
    return from != to && hardware_network_of(hardware, from, to);
}

/* Returns true if data can go directly, or through the memory of a common host. */
static inline bool hardware_reaches(const struct hardware *hardware, uint32_t from, uint32_t to)
{
    return from != to && (hardware->devices[from].host == hardware->devices[to].host ||
                          hardware_network_of(hardware, from, to));
}

/* The links of a copy between devices: first `up_count` away from a device (like D2H), then `down_count` towards
 * one. */
struct p2p_route {
    uint32_t links[2 * HARDWARE_PATH_LINKS_MAX];
    uint32_t up_count, down_count;
    bool innermost; /* of both devices */
    bool staged;    /* through host memory */
};

/* Returns the direct route, else the staged one. hardware_reaches() must be true. */
struct p2p_route hardware_p2p_route(const struct hardware *hardware, uint32_t from, uint32_t to);

/* Returns the hop's link direction: 2 * link, plus 1 for away from devices on a duplex link. */
static inline uint32_t hardware_route_link_dir(const struct hardware *hardware, const struct p2p_route *route,
                                               uint32_t hop)
{
    return 2 * route->links[hop] + (hardware->links[route->links[hop]].duplex && hop < route->up_count);
}

/* Counts hops on the same link direction: 2 when a staged copy uses a simplex link twice. */
uint32_t hardware_route_crossings(const struct hardware *hardware, const struct p2p_route *route, uint32_t hop);

/* Relative to its slower half. */
extern const struct sourced_value hardware_staged_efficiency;

/* Returns the bytes/s of each host that simultaneous reading and writing share. */
double hardware_storage_rate(const struct hardware *hardware);

MUST_CHECK enum status hardware_read(const char *path, struct hardware *out, struct error *err);
MUST_CHECK enum status hardware_parse(const struct json_input *in, const json_t *value,
                                      struct hardware *out, struct error *err);

/*
 * Finds a machine by one of:
 * - the name of a preset ("hydra-8x2080ti", "a100-sxm4-40gb");
 * - a name that the driver prints ("NVIDIA A100-SXM4-40GB");
 * - several devices of a kind in one machine ("4x rtx-3090-24gb"; "4 NAME", "4*NAME", "NAME*4" and the like mean the
 *   same);
 * - several nodes ("384x dgx-a100-80gb"), also with an oversubscription ("64x dgx-a100-80gb 2:1": leaf switches whose
 *   uplinks have half of the NICs' bandwidth);
 * - several kinds of devices or nodes ("2x a100-sxm4-80gb + 2x v100-sxm2-32gb", "dgx-h100 + 2x dgx-a100-80gb");
 * - the path of a file (has a slash or ends in .json). Nodes of AWS may have the prefix "aws:". A name that fits
 *   several presets ("a100") is an error; one that fits a single preset ("rtx3090") is accepted:
 *   hardware_name_completed().
 *
 * Several devices are placed in pairs at PCIe switches, and these at one host bridge, which carries both directions of
 * all devices together at 0.71 of their sum, as measured. Host memory (128 GiB per device) and cores (16 per device)
 * are assumed. Each kind of device has its own bridge; nodes of several kinds are joined by their NICs.
 */
MUST_CHECK enum status hardware_find(const char *name_or_path, struct hardware *out,
                                     struct error *err);

/* Returns true when hardware_find() completes a name to a preset, and writes for the first such name "using
 * 'rtx-3090-24gb' for 'rtx3090'". */
enum { HARDWARE_SAID_BYTES = 320 };
bool hardware_name_completed(const char *text, char said[HARDWARE_SAID_BYTES]);

const char *hardware_preset_name(uint32_t index); /* NULL past the end */
const char *hardware_preset_summary(uint32_t index);

/* Changes by the command line; zero fields change nothing. */
struct hardware_options {
    uint32_t device_count;        /* fewer on any machine; more on a host machine, like the first */
    uint64_t device_memory_bytes; /* at most usable memory */
    /* On a host machine each device gets a link of its own, paced to this rate, and reaches others only through the
     * host. Elsewhere the last link of each path gets this rate and links above are scaled alike, except for P2P
     * only. */
    double link_bytes_per_s;
    /* All devices copy directly over links of their own; paced on a host machine. */
    double p2p_bytes_per_s;
    bool no_p2p;                  /* removes direct links */
    /* With several nodes; shared links between nodes are scaled alike. */
    double nic_bytes_per_s;
    uint64_t host_memory_bytes;
    uint64_t storage_bytes;       /* with storage_bytes_per_s, adds storage */
    double storage_bytes_per_s;   /* both ways */
    uint32_t threads;             /* per host device; default cores / devices */
    double matmul_efficiency;     /* of all device types, at most 1 */
    bool no_tf32;                 /* no matrix cores for fp32 products; the efficiency stays the same fraction of
                                     the fp32 peak */
    uint32_t stack;               /* 1 + enum hardware_stack; 0: unchanged */
    double dilation;              /* at least 1: host devices are slower (hardware_dilate.h); 0: unchanged */
};
MUST_CHECK enum status hardware_adjust(struct hardware *hardware,
                                       const struct hardware_options *options, struct error *err);

/* Checks plausibility: positive bandwidths, usable <= nominal, measured <= peak. Errors: STATUS_CHECK. */
MUST_CHECK enum status hardware_check(const struct hardware *hardware, struct error *err);

/* Returns the profile for hardware->threads or the nearest number, for hardware_cpu() the profile of all cores;
 * NULL when the type has none. Borrowed. */
const struct compute_profile *hardware_profile(const struct hardware *hardware, uint32_t device);

/* Returns the most of devices first to first + count - 1 on one host. */
uint32_t hardware_most_on_host(const struct hardware *hardware, uint32_t first, uint32_t count);

/* Counts hosts with devices: in a part of a machine possibly below hardware_host_count(). */
uint32_t hardware_hosts_in_use(const struct hardware *hardware);

/* Returns the smallest memory of devices first to first + count - 1; count is not 0. */
uint64_t hardware_least_memory(const struct hardware *hardware, uint32_t first, uint64_t count);

void hardware_write(const struct hardware *hardware, struct json_out *out, const char *key);
/* Writes a hardware file, whole or not at all; "-" is standard output. Errors: as json_file_begin(). */
MUST_CHECK enum status hardware_write_file(const struct hardware *hardware, const char *path, struct error *err);
void hardware_release(struct hardware *hardware);

#endif
