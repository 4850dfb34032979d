/*
 * Machines: memories, devices, links, and how fast kernels run on them.
 *
 * One file format serves for datasheet presets and for what `spillway measure` writes. Every figure
 * carries its source, date and kind; a measured table for a kernel overrides the datasheet's peak
 * times efficiency. Link bandwidths are per direction on a duplex link, in all on a simplex one.
 *
 * Each node has a host: memory, cores and storage that its devices alone use. What a file says of the host is of all
 * nodes together, in equal shares; without "nodes" there is one. Place 0 is the memory of host 0, place 1 + d that of
 * device d; those of the other hosts come behind the devices'. A copy between host and device d
 * crosses the links of devices[d].path; H2D and D2H use opposite directions.
 *
 * A device is in networks, the innermost first: NVLink in its node, say, then the one between nodes.
 * Devices that are in a network of the same group copy directly to each other (P2P), over the innermost
 * such. Networks nest: devices of one group are in the same groups from there on. A network's path leads
 * from where the group meets to the device, so a copy from a to b goes up a's and down b's, without the
 * links that both have and what is in front of them:
 *
 *     NVLink to a switch        [nvlink-3]               a link of its own per device
 *     PCIe                      [switch-1, pcie-3]       the rest of `path` from the bridge on
 *     fat tree                  [leaf-0, nic-1, pcie-3]  the leaf's uplink to the spine, with as much less
 *                               than its NICs' bandwidth as it is oversubscribed; a NIC, of one device
 *                               or of several
 *     memory of one machine     []                       costs nothing but the copy itself
 *
 * Devices of one host that share no network exchange data through host memory, as NCCL's shared memory transport and
 * cudaMemcpyPeer without peer access do: a staged copy goes up all of a's `path` and down all of b's, piece by piece, so
 * that both halves run at the same time and share the host's links with offloading. A link that both paths have is
 * crossed twice, a simplex one at twice the rate.
 *
 * In files (F: a figure, see below; optional keys in parentheses):
 *
 *     {"spillway_hardware": 1, "name": "...", "backend": "cuda",
 *      ("note": "...", "measured_on": "...", "stack": "frameworks", "load": {"others": F, "stolen": F, "disturbed": F},)
 *      "host": {"memory": F, "cores": 16, ("threads": 0, "memory_bandwidth": F,
 *                "nodes": 4, "node_devices": 8)},
 *      ("storage": {"capacity": F, "read": F, "write": F, ("both": F, "latency": F)},)
 *      "device_types": [{"name": "...", "memory": F, ("usable": F,) "peak_fp32": F,
 *          ("peak_tf32": F, "peak_bf16": F,) "memory_bandwidth": F,
 *          ("matmul_efficiency": F, "fp32_efficiency": F, "memory_efficiency": F, "launch_latency": F,
 *           "collective_latency": F, "board_power": F, "speed": F,)
 *          ("kernel_model": {"multiprocessors": F, ("matmul_depth": F, "score_bytes_forward": F,
 *                            "score_bytes_backward": F, "loss_passes": F, "elementwise_passes": F,
 *                            "matmul_sustained": F, "misaligned_rate": F, "kernel_gap": F, "dispatch_latency": F)},)
 *          ("profiles": [{"threads": 2,
 *                         "kernels": {"matmul_forward": [[m, n, k, seconds, spread]]},
 *                         "interference": {"compute_by_copy": F, ...}}],
 *           "h2d": [[bytes, seconds, spread]], "d2h": [...], "p2p": [...], "ring": [...])}],
 *      "links": [{"name": "...", "bandwidth": F, ("latency": F,) "duplex": true,
 *                 ("paced": false)}],
 *      "devices": [{"type": "...", "path": ["link", ...], ("memory_bytes": n,
 *                   "networks": [{"group": 1, "path": ["link", ...]}])}]}
 *
 * A number without a unit is refused, as is any unknown key.
 */
#ifndef SPILLWAY_MODELS_HARDWARE_H
#define SPILLWAY_MODELS_HARDWARE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/json/json_in.h"
#include "models/kernel/work.h"

struct json_out;

/* 3072 nodes of eight devices, as the largest published clusters have (24 576 H100 of Llama 3's, arXiv 2407.21783), with links
 * of their own and some shared ones; a network of their own for each, and of theirs for all. */
enum { DEVICES_MAX = 24576, LINKS_MAX = 8 * DEVICES_MAX, PATH_LINKS_MAX = 8, DEVICE_TYPES_MAX = 1024 };
enum { NETWORKS_MAX = 4, NETWORK_GROUPS_MAX = 2 * DEVICES_MAX };
enum { PROFILES_MAX = 256, COPY_POINTS_MAX = 256, HOST_CORES_MAX = 1 << 20 };

enum figure_kind {
    FIGURE_DATASHEET,
    FIGURE_MEASURED,
    FIGURE_DERIVED,
    FIGURE_ASSUMED,
    FIGURE_FITTED, /* such that what is predicted is what was measured (spillway calibrate) */
    FIGURE_KIND_COUNT
};
extern const char *const figure_kind_names[FIGURE_KIND_COUNT];

/* A number that says where it comes from. In files:
 * {"value": 616, "unit": "GB/s", "kind": "datasheet", "source": "...", "as_of": "2026-11"};
 * "spread" (relative, half the range of the middle half of the measurements) where measured. The
 * unit of a plain ratio is "ratio". */
struct figure {
    double value;       /* SI base: bytes, bytes/s, seconds, FLOP/s, or a plain ratio */
    double spread;      /* relative; 0 when unknown */
    uint32_t kind;      /* enum figure_kind */
    const char *source; /* may be NULL only in a zero figure */
    const char *as_of;
};

/* Of a standard normal error the middle half reaches so far on either side: a figure's spread in standard deviations. */
#define FIGURE_SPREAD_DEVIATIONS 0.67448975019608171

/* Used where a machine states no efficiency of its own. */
extern const struct figure hardware_default_matmul_efficiency, hardware_default_memory_efficiency;

enum { RATE_POINTS_MAX = 512 };

/* One measured point of a kernel class: `seconds` for one execution at these sizes. */
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
 * How work that runs at the same time slows each other down, measured. Devices whose domain is the
 * same share cores and memory (all host devices of a machine do; a GPU is alone in its domain).
 *   compute speed = 1 / (1 + compute_by_compute * (other computing devices of the domain)
 *                          + compute_by_copy * sum over copies of rate / copy_reference_rate
 *                          + compute_by_collective * collectives under way that the device takes part in)
 *   a copy's own cap = copy_reference_rate / (1 + copy_by_compute * computing devices
 *                                               + copy_by_copy * other copies)
 * Zero: no effect.
 */
struct interference {
    struct figure compute_by_compute, compute_by_copy, compute_by_collective, copy_by_compute, copy_by_copy;
    struct figure copy_reference_rate; /* bytes/s of one copy alone */
};

/*
 * A way of running a device: how many threads (host devices) and how fast each kernel then is. GPU
 * types have one profile with threads = 0.
 */
struct compute_profile {
    uint32_t threads;
    struct kernel_rate kernels[KERNEL_COUNT];
    struct interference interference; /* with every device that has this many threads */
};

/*
 * The software that drives the devices of a machine. Its overheads count for every way of running a job alike: spilled,
 * resident or spread over devices.
 *
 *   spillway     the executor here: attention and what goes over activations are one kernel each, kernels follow each
 *                other without gaps, and the states of a job come from host memory and go back there
 *   frameworks   PyTorch, Megatron-LM and the like as published runs used them: the second part of struct kernel_model
 *                counts, and states are on the devices from the start, as where iterations are timed
 */
enum hardware_stack { STACK_SPILLWAY, STACK_FRAMEWORKS, STACK_COUNT };
extern const char *const hardware_stack_names[STACK_COUNT + 1]; /* ends with NULL */

/*
 * How a type's kernels fall short of peak and bandwidth: models/cost/kernel_model.h.
 * Without `multiprocessors` there is none, and kernels take launch latency plus the roofline.
 */
struct kernel_model {
    struct figure multiprocessors;      /* that take tiles of a product at the same time */
    struct figure matmul_depth;         /* k at which a product has half of its rate */
    struct figure matmul_sustained;     /* of the peak, what products reach however large they are; 0: no such limit */
    struct figure misaligned_rate;      /* of its rate, what a product has whose rows are no whole 16 bytes; 0: all */
    /* Figures of the frameworks that launch kernels: */
    struct figure score_bytes_forward;  /* bytes that attention moves for each score, the products' own apart; */
    struct figure score_bytes_backward; /* 0: it is one kernel that keeps them to itself */
    struct figure loss_passes;          /* how often the loss reads and writes the logits; 0: once */
    struct figure elementwise_passes;   /* how often what goes over activations does so; 0: once */
    struct figure kernel_gap;           /* seconds between kernels, on the device */
    struct figure dispatch_latency;     /* seconds of the host for each kernel that it launches */
};

struct copy_point {
    uint64_t bytes;
    double seconds;
    double spread;
};

struct device_type {
    const char *name;
    struct figure memory_bytes;        /* nominal */
    struct figure usable_bytes;        /* what the driver reports free on an idle device */
    struct figure peak_fp32, peak_tf32, peak_bf16; /* dense FLOP/s, fp32 accumulation; 0: none */
    struct figure memory_bandwidth;    /* bytes/s */
    struct figure matmul_efficiency;   /* of the peak, used where nothing was measured */
    struct figure fp32_efficiency;     /* the same of peak_fp32, where products in fp32 have no matrix cores, shapes
                                          included: waves and depth of a kernel_model are not taken off; 0: that */
    struct figure memory_efficiency;   /* of memory_bandwidth, likewise */
    struct figure launch_latency;      /* seconds per kernel */
    struct figure board_power;         /* watts of a board at its limit; 0: unknown */
    struct figure collective_latency;  /* seconds before the first step of a collective */
    struct figure speed;               /* against its own measurements: 1, and the spread of that from one moment to another,
                                          of all kernels and copies alike; 0: unknown */
    struct kernel_model kernel_model;
    const struct compute_profile *profiles;
    uint32_t profile_count;
    /* measured copies, pinned, one direction at a time: seconds for `bytes`, latency included */
    const struct copy_point *h2d, *d2h, *p2p; /* p2p: from another device of the type */
    uint32_t h2d_count, d2h_count, p2p_count;
    const struct copy_point *ring; /* a step of a ring inside of a node by its message, while all others do so too */
    uint32_t ring_count;
};

struct hardware_link {
    const char *name;
    struct figure bandwidth; /* bytes/s, each way when duplex */
    struct figure latency;   /* seconds */
    bool duplex;
    bool paced;              /* the executor slows copies down to this bandwidth */
};

/* Of a device. */
struct hardware_network {
    uint32_t group; /* at least 1 */
    uint32_t path[PATH_LINKS_MAX]; /* links from where the group meets, in order; may be none */
    uint32_t path_count;
};

struct hardware_device {
    uint32_t type;    /* index into types */
    uint32_t host;    /* below hardware_host_count() */
    uint64_t memory_bytes; /* what a plan may use: usable_bytes, or --device-memory */
    uint32_t path[PATH_LINKS_MAX]; /* links from host memory to the device, in order */
    uint32_t path_count;
    struct hardware_network networks[NETWORKS_MAX]; /* innermost first */
    uint32_t network_count; /* 0: other devices of the host are reached through its memory */
};

/* The device's next network, without links yet. Borrowed from the device. */
static inline struct hardware_network *hardware_join(struct hardware_device *device, uint32_t group)
{
    assert(device->network_count < NETWORKS_MAX && group > 0);
    struct hardware_network *network = &device->networks[device->network_count++];
    network->group = group;
    network->path_count = 0;
    return network;
}

/* A disk that states may live on where host memory is too small for them; of all hosts together. */
struct hardware_storage {
    struct figure capacity_bytes;  /* 0: there is none */
    struct figure read_rate, write_rate; /* bytes/s, each alone */
    struct figure both_rate;       /* bytes/s of both at the same time, added up; 0: unknown, taken
                                      to be the larger of the two */
    struct figure latency;         /* seconds before the first byte */
};

/* The load of the machine while it was measured. Figures without a source where nothing was measured. */
struct hardware_load {
    struct figure others;    /* share of the processors' time that other programs used */
    struct figure stolen;    /* share of it that the hypervisor gave to other machines */
    struct figure disturbed; /* share of the samples that were disturbed */
};

struct hardware {
    struct arena arena;
    const char *name;
    const char *backend;       /* "host" or "cuda" */
    uint32_t stack;            /* enum hardware_stack */
    const char *note;          /* may be NULL: what is assumed */
    struct figure host_bytes;  /* DRAM that plans may use, of all hosts */
    struct figure host_bandwidth; /* bytes/s of all cores of all hosts; 0: unknown, see hardware_cpu() */
    struct figure file_read, file_write; /* bytes/s of files, of all hosts; 0: unknown (models/job/host_files.h) */
    uint32_t host_cores;       /* of all hosts */
    uint32_t host_nodes, node_devices; /* how many hosts that is, and devices of each, in order; 0, 0: one */
    uint32_t threads;          /* per host device; 0 for GPUs */
    struct hardware_storage storage;
    struct device_type *types;
    uint32_t type_count;
    struct hardware_device *devices;
    uint32_t device_count;
    bool p2p;                  /* some two devices are in one network; hardware_note_p2p() sets it */
    struct hardware_link *links;
    uint32_t link_count;
    const char *measured_on;   /* cpu or gpu model, library versions; NULL for a datasheet */
    struct hardware_load load;
};

/* One for each node. */
static inline uint32_t hardware_host_count(const struct hardware *hardware)
{
    return hardware->host_nodes > 1 ? hardware->host_nodes : 1;
}

/* Of something that all hosts together have, in equal shares. */
static inline double hardware_of_host(const struct hardware *hardware, double of_all)
{
    return of_all / hardware_host_count(hardware);
}

/* DRAM that plans may use on each. */
static inline uint64_t hardware_host_bytes(const struct hardware *hardware)
{
    return (uint64_t)hardware_of_host(hardware, hardware->host_bytes.value);
}

/*
 * The processor of a host, one of several that are alike, where models/cost/cost.h is asked about a device. It can do the
 * work of optimizers and embeddings on host memory. On a machine whose devices are the host it has their
 * profile at all cores (and shares the cores with them); elsewhere its rate is that of host memory.
 */
static inline uint32_t hardware_cpu(const struct hardware *hardware)
{
    return hardware->device_count;
}
/* Is it known how fast that is? */
bool hardware_has_cpu(const struct hardware *hardware);

/*
 * Writes how busy the machine was while it was measured, as a clause ("other programs used 31 % of its processors while
 * it was measured"). Returns false, and writes nothing, when it was idle enough, or is not known to have been measured.
 */
enum { HARDWARE_LOAD_TEXT_BYTES = 160 };
bool hardware_load_text(const struct hardware *hardware, char text[HARDWARE_LOAD_TEXT_BYTES]);

/* The share of the processors' time that others took while it was measured; 0 where nothing was measured. */
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
/* Are there devices that copy directly to each other? */
static inline bool hardware_has_p2p(const struct hardware *hardware)
{
    return hardware->p2p;
}
/* To be called where devices were made or changed. */
void hardware_note_p2p(struct hardware *hardware);

/* The innermost network that both devices are in, as the first has it; NULL where there is none. */
static inline const struct hardware_network *hardware_network_of(const struct hardware *hardware,
                                                                 uint32_t of, uint32_t with)
{
    const struct hardware_device *a = &hardware->devices[of], *b = &hardware->devices[with];
    for (uint32_t i = 0; i < a->network_count; i++)
        for (uint32_t k = 0; k < b->network_count; k++)
            if (a->networks[i].group == b->networks[k].group) return &a->networks[i];
    return NULL;
}

/* Can `to` fetch from `from` directly? */
static inline bool hardware_p2p_pair(const struct hardware *hardware, uint32_t from, uint32_t to)
{
    return from != to && hardware_network_of(hardware, from, to);
}

/* True where data gets from `from` to `to` directly, or staged through the memory of the host that both have. */
static inline bool hardware_reaches(const struct hardware *hardware, uint32_t from, uint32_t to)
{
    return from != to && (hardware->devices[from].host == hardware->devices[to].host ||
                          hardware_network_of(hardware, from, to));
}

/* The links of a copy between devices, in order: `up_count` in the direction that leads away from a device (as a
 * D2H copy crosses them), then `down_count` towards one. */
struct p2p_route {
    uint32_t links[2 * PATH_LINKS_MAX];
    uint32_t up_count, down_count;
    bool innermost; /* over the first network of both */
    bool staged;    /* through host memory */
};

/* Direct where there is a direct route, else staged; hardware_reaches() is true. */
struct p2p_route hardware_p2p_route(const struct hardware *hardware, uint32_t from, uint32_t to);

/* Number of the lane of the route's hop: 2 * link, + 1 for the direction away from devices of a duplex link. */
static inline uint32_t hardware_route_lane(const struct hardware *hardware, const struct p2p_route *route, uint32_t hop)
{
    return 2 * route->links[hop] + (hardware->links[route->links[hop]].duplex && hop < route->up_count);
}

/* Counts the hops of the route that cross the same lane as `hop`: 2 where a staged copy uses a simplex link twice. */
uint32_t hardware_route_crossings(const struct hardware *hardware, const struct p2p_route *route, uint32_t hop);

/* What a staged copy reaches of the rate of the slower of its two halves. */
extern const struct figure hardware_staged_efficiency;

/* Bytes/s that reading and writing at the same time share, of each host. */
double hardware_storage_rate(const struct hardware *hardware);

/* Zeroed struct in; release with hardware_release(), also after an error. */
MUST_CHECK enum status hardware_read(const char *path, struct hardware *out, struct error *err);
MUST_CHECK enum status hardware_parse(const struct json_input *in, const json_t *value,
                                      struct hardware *out, struct error *err);

/*
 * By preset name ("hydra-8x2080ti", "a100-sxm4-40gb"), a name the driver prints ("NVIDIA
 * A100-SXM4-40GB"), several of one device in one machine ("4x rtx-3090-24gb"), several nodes ("384x
 * dgx-a100-80gb", "64x dgx-a100-80gb 2:1" with leaf switches whose uplinks have half of their NICs'
 * bandwidth), either of several kinds ("2x a100-sxm4-80gb + 2x v100-sxm2-32gb", "dgx-h100 + 2x dgx-a100-80gb"), or
 * path (has a slash or ends in .json). A name that could be several presets ("a100") is an error that lists them; one that
 * could be one only ("rtx3090", "RTX 4090") is taken (hardware_name_completed() says so). Nodes of AWS may have "aws:" in
 * front.
 *
 * Several devices sit in pairs behind PCIe switches, and these behind one host bridge, which
 * carries both directions of all together at 0.71 of their sum: what was measured of both
 * directions at once. Host memory (128 GiB each) and cores (16 each) are assumed. Of several kinds each has a
 * bridge of its own, and no direct links to the others; nodes of several kinds are joined by their NICs.
 */
MUST_CHECK enum status hardware_find(const char *name_or_path, struct hardware *out,
                                     struct error *err);

/* True when hardware_find() takes a name for a preset's: "machine 'rtx3090' is taken for 'rtx-3090-24gb'" for the first. */
enum { HARDWARE_SAID_BYTES = 320 };
bool hardware_name_completed(const char *text, char said[HARDWARE_SAID_BYTES]);

const char *hardware_preset_name(uint32_t index); /* NULL past the end */
const char *hardware_preset_summary(uint32_t index);

/* What the command line changes on a machine. Zero fields change nothing. */
struct hardware_options {
    uint32_t device_count;        /* fewer anywhere; more on a host machine, all like the first */
    uint64_t device_memory_bytes; /* larger than usable memory: an error */
    /* On a host machine each device gets a link of its own, paced to this rate, and stands in for one
     * that reaches others through the host alone. Elsewhere the last link of each path is set to it,
     * and the links above are scaled alike; links that only P2P copies cross stay as they are. */
    double link_bytes_per_s;
    /* All devices copy directly, each over a link of its own of this rate; paced on a host machine. */
    double p2p_bytes_per_s;
    bool no_p2p;                  /* direct links are left out */
    /* Of each NIC, on a machine of several nodes; links between nodes that NICs share are scaled alike. */
    double nic_bytes_per_s;
    uint64_t host_memory_bytes;
    uint64_t storage_bytes;       /* with storage_bytes_per_s on a machine that has none: a new one */
    double storage_bytes_per_s;   /* both ways */
    uint32_t threads;             /* per host device; default cores / devices */
    double matmul_efficiency;     /* of all device types, at most 1 */
    bool no_tf32;                 /* products in fp32 do without matrix cores, at as large a share of that peak */
    uint32_t stack;               /* 1 + enum hardware_stack; 0: as it is */
};
MUST_CHECK enum status hardware_adjust(struct hardware *hardware,
                                       const struct hardware_options *options, struct error *err);

/* Physical sense: positive bandwidths, usable <= nominal, measured <= peak. STATUS_CHECK. */
MUST_CHECK enum status hardware_check(const struct hardware *hardware, struct error *err);

/* The profile that device `device` runs with: that of hardware->threads, or the nearest there is;
 * that of all cores for hardware_cpu(). NULL when its type has none. Borrowed. */
const struct compute_profile *hardware_profile(const struct hardware *hardware, uint32_t device);

/* How many of devices first to first + count - 1 the host has that has most of them. */
uint32_t hardware_most_on_host(const struct hardware *hardware, uint32_t first, uint32_t count);

/* Hosts that have a device: fewer than hardware_host_count() of a part of a machine. */
uint32_t hardware_hosts_in_use(const struct hardware *hardware);

/* Bytes that each of devices first to first + count - 1 has at least; count is not 0. */
uint64_t hardware_least_memory(const struct hardware *hardware, uint32_t first, uint64_t count);

void hardware_write(const struct hardware *hardware, struct json_out *out, const char *key);
void hardware_release(struct hardware *hardware);

#endif
