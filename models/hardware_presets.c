/*
 * Machines by name.
 *
 * A row per GPU holds its datasheet; a topology is built around as many of them as are asked for:
 *
 *     host bridge          simplex: H2D and D2H of all devices together
 *      |        |
 *     switch-0  switch-1   duplex, one link's width each; only where there are several devices
 *      |   |     |   |
 *     gpu0 gpu1 gpu2 gpu3  duplex
 *
 * and beside it, where the GPU has NVLink and there are several, a duplex link of each to one switch
 * in the middle. Bridges between pairs are left out, and so is PCIe from device to device, which
 * drivers forbid for most cards that have no NVLink.
 *
 * The reason for the bridge: both directions at once do not give twice the rate of one.
 * nvbandwidth's own example has 26.0 GB/s one way and 18 to 19 GB/s each way together on PCIe 4,
 * 1.42 times one way; a report of an A100 has 25 alone and 24 + 11. A simplex link of 1.42 times the
 * device link says just that, for every generation, until someone measures. Two GPUs to a switch and
 * the switches' full width to the host are assumptions as well: machines differ, and a measured file
 * overrides all of it.
 *
 * Rates are dense and accumulate in fp32: tables that list sparse rates, or half-precision sums of
 * GeForce cards, are twice too high. Memory is what nvidia-smi calls total, less what a process
 * loses to its driver context. Where sources disagree or none was seen, the kind is "assumed".
 */
#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "base/suggest.h"
#include "models/hardware.h"
#include "models/try.h"

static const char as_of[] = "2026-11";

#define SEEN(v, s) {.value = (v), .kind = FIGURE_DATASHEET, .source = (s), .as_of = as_of}
#define GUESS(v, s) \
    {.value = (v), .spread = 0.1, .kind = FIGURE_ASSUMED, .source = (s), .as_of = as_of}
#define NONE {.value = 0}

#define GIB 0x1p30
#define MIB 0x1p20
#define GB 1e9
#define TFLOP 1e12

/* --- GPUs ----------------------------------------------------------------------------------- */

struct gpu {
    const char *name;
    const char *driver_name; /* as nvidia-smi prints it */
    const char *summary;
    struct figure memory, total; /* nominal, and what nvidia-smi reports */
    struct figure bandwidth, fp32, tf32, bf16;
    uint32_t pcie; /* generation */
    struct figure nvlink; /* each way, to a switch that all devices of a machine are at; 0: none */
};

#define SMI "nvidia-smi, total memory"
#define SMI_RECALLED "nvidia-smi, total memory, as recalled"
#define VENDOR "NVIDIA datasheet"
#define NVLINK_3 GUESS(250 * GB, "NVLink 3 to a switch: copies reach 0.83 of 300 GB/s each way")
#define NVLINK_4 GUESS(375 * GB, "NVLink 4 to a switch: copies reach 0.83 of 450 GB/s each way")
#define VENDOR_RECALLED "NVIDIA datasheet, as recalled"
#define SHADERS "shaders x 2 x boost clock, as in llm.c mfu.h"
#define DISAGREE "sources disagree: 31.5 to 35 TFLOP/s fp32, 62.5 to 70 half precision"

static const struct gpu gpus[] = {
    {"gtx-1080-ti-11gb", "NVIDIA GeForce GTX 1080 Ti", "Pascal, no tensor cores, PCIe 3",
     SEEN(11 * GIB, VENDOR), GUESS(11178 * MIB, SMI_RECALLED), SEEN(484 * GB, VENDOR),
     SEEN(11.3 * TFLOP, VENDOR), NONE, NONE, 3, NONE},
    {"v100-sxm2-16gb", "Tesla V100-SXM2-16GB", "Volta, fp16 tensor cores, PCIe 3",
     SEEN(16 * GIB, VENDOR), GUESS(16160 * MIB, SMI_RECALLED), SEEN(900 * GB, VENDOR),
     SEEN(15.7 * TFLOP, VENDOR), NONE, NONE, 3, NONE},
    {"rtx-2080-ti-11gb", "NVIDIA GeForce RTX 2080 Ti", "Turing, fp16 tensor cores, PCIe 3",
     SEEN(11 * GIB, VENDOR), SEEN(11012 * MIB, SMI), SEEN(616 * GB, VENDOR),
     SEEN(13.4 * TFLOP, "NVIDIA datasheet; a GEMM was measured at 12.7 TFLOP/s"), NONE, NONE, 3, NONE},
    {"t4-16gb", "Tesla T4", "Turing, fp16 tensor cores, PCIe 3", SEEN(16 * GIB, VENDOR),
     SEEN(15360 * MIB, SMI), SEEN(320 * GB, VENDOR), SEEN(8.1 * TFLOP, VENDOR), NONE, NONE, 3, NONE},
    {"rtx-3090-24gb", "NVIDIA GeForce RTX 3090", "Ampere, PCIe 4", SEEN(24 * GIB, VENDOR),
     SEEN(24576 * MIB, SMI), SEEN(936 * GB, VENDOR), SEEN(35.6 * TFLOP, SHADERS),
     SEEN(35.6 * TFLOP, SHADERS), SEEN(71.2 * TFLOP, SHADERS), 4, NONE},
    {"a10g-24gb", "NVIDIA A10G", "Ampere, of AWS g5 machines, PCIe 4", SEEN(24 * GIB, VENDOR),
     GUESS(23028 * MIB, "nvidia-smi of the A10, its sibling"), SEEN(600 * GB, VENDOR),
     GUESS(35 * TFLOP, DISAGREE), GUESS(35 * TFLOP, DISAGREE), GUESS(70 * TFLOP, DISAGREE), 4, NONE},
    {"a100-sxm4-40gb", "NVIDIA A100-SXM4-40GB", "Ampere, HBM2, PCIe 4", SEEN(40 * GIB, VENDOR),
     SEEN(40960 * MIB, SMI), SEEN(1555 * GB, VENDOR), SEEN(19.5 * TFLOP, VENDOR),
     SEEN(156 * TFLOP, VENDOR), SEEN(312 * TFLOP, VENDOR), 4, NVLINK_3},
    {"a100-sxm4-80gb", "NVIDIA A100-SXM4-80GB", "Ampere, HBM2e, PCIe 4", SEEN(80 * GIB, VENDOR),
     SEEN(81920 * MIB, SMI), SEEN(2039 * GB, VENDOR), SEEN(19.5 * TFLOP, VENDOR),
     SEEN(156 * TFLOP, VENDOR), SEEN(312 * TFLOP, VENDOR), 4, NVLINK_3},
    {"rtx-4090-24gb", "NVIDIA GeForce RTX 4090", "Ada, PCIe 4", SEEN(24 * GIB, VENDOR),
     GUESS(24564 * MIB, SMI_RECALLED), SEEN(1008 * GB, VENDOR), SEEN(82.6 * TFLOP, SHADERS),
     SEEN(82.6 * TFLOP, SHADERS), SEEN(165.2 * TFLOP, SHADERS), 4, NONE},
    {"l4-24gb", "NVIDIA L4", "Ada, of AWS g6 machines, PCIe 4", SEEN(24 * GIB, VENDOR),
     SEEN(23034 * MIB, SMI), SEEN(300 * GB, VENDOR), SEEN(30.3 * TFLOP, VENDOR),
     SEEN(60 * TFLOP, VENDOR), SEEN(121 * TFLOP, VENDOR), 4, NONE},
    {"l40s-48gb", "NVIDIA L40S", "Ada, PCIe 4", SEEN(48 * GIB, VENDOR), SEEN(46068 * MIB, SMI),
     SEEN(864 * GB, VENDOR), SEEN(91.6 * TFLOP, VENDOR), SEEN(183 * TFLOP, VENDOR),
     SEEN(362 * TFLOP, VENDOR), 4, NONE},
    {"h100-sxm5-80gb", "NVIDIA H100 80GB HBM3", "Hopper, HBM3, PCIe 5", SEEN(80 * GIB, VENDOR),
     SEEN(81559 * MIB, SMI), SEEN(3350 * GB, VENDOR), SEEN(67 * TFLOP, VENDOR),
     GUESS(494.7 * TFLOP, "half of the bf16 rate"), SEEN(989.4 * TFLOP, VENDOR), 5, NVLINK_4},
    {"h200-sxm-141gb", "NVIDIA H200", "Hopper, HBM3e, PCIe 5", SEEN(141 * GIB, VENDOR),
     GUESS(143771 * MIB, SMI_RECALLED), GUESS(4800 * GB, VENDOR_RECALLED),
     GUESS(67 * TFLOP, VENDOR_RECALLED), GUESS(494.7 * TFLOP, "half of the bf16 rate"),
     SEEN(989.4 * TFLOP, VENDOR), 5, NVLINK_4},
};

enum { PCIE_OLDEST = 3, PCIE_NEWEST = 5 };
static const struct figure pcie_rates[] = {
    [3] = {.value = 12.5 * GB, .spread = 0.05, .kind = FIGURE_ASSUMED, .as_of = as_of,
           .source = "pinned copies on PCIe 3 x16 reach 12 to 13 GB/s"},
    [4] = {.value = 26.0 * GB, .spread = 0.05, .kind = FIGURE_MEASURED, .as_of = as_of,
           .source = "nvbandwidth's README, host_to_device_memcpy_ce on PCIe 4 x16"},
    [5] = {.value = 52.0 * GB, .spread = 0.05, .kind = FIGURE_MEASURED, .as_of = as_of,
           .source = "pinned copies of H100 machines, 50 to 55 GB/s on PCIe 5 x16"},
};

/* Both directions at once over one direction alone, see above. */
static const double both_over_one = 1.42;

/* What a process cannot use of the total: its context, and what others on the card hold. */
static const double context_bytes = 512 * MIB;

/* --- machines ------------------------------------------------------------------------------- */

struct machine {
    const char *name, *summary, *note;
    const char *gpu;
    uint32_t device_count;
    struct figure host_bytes;
    uint32_t host_cores;
};

#define HYDRA_NOTE                                                                               \
    "the paper states GPUs, memory and cores; assumed: GPUs in pairs behind PCIe 3 switches, one " \
    "host bridge, efficiencies; NVLink is not used"

static const struct machine machines[] = {
    {"hydra-8x2080ti", "the machine of Hydra's 2022 report: 8 RTX 2080 Ti, 500 GB, 80 cores",
     HYDRA_NOTE, "rtx-2080-ti-11gb", 8,
     SEEN(500 * GB, "Hydra technical report, April 2022, experimental setup"), 80},
    {"hydra-8x1080ti", "the machine of Hydra's 2021 report: 8 GTX 1080 Ti, 512 GB, 10 cores",
     HYDRA_NOTE, "gtx-1080-ti-11gb", 8,
     SEEN(512 * GB, "Hydra technical report, July 2021, experimental setup"), 10},
};

static const char host_name[] = "host-2-cores";
static const char host_summary[] =
    "a 2-core Xeon (Emerald Rapids) as its own device: for trying things without a GPU";

enum { GPU_COUNT = ARRAY_COUNT(gpus), MACHINE_COUNT = ARRAY_COUNT(machines) };
enum { PRESET_COUNT = GPU_COUNT + MACHINE_COUNT + 1 };

const char *hardware_preset_name(uint32_t index)
{
    if (index < GPU_COUNT) return gpus[index].name;
    if (index < GPU_COUNT + MACHINE_COUNT) return machines[index - GPU_COUNT].name;
    return index < PRESET_COUNT ? host_name : NULL;
}

const char *hardware_preset_summary(uint32_t index)
{
    assert(index < PRESET_COUNT);
    if (index < GPU_COUNT) return gpus[index].summary;
    if (index < GPU_COUNT + MACHINE_COUNT) return machines[index - GPU_COUNT].summary;
    return host_summary;
}

/* --- building ------------------------------------------------------------------------------- */

static struct figure derived(double value, const char *source)
{
    return (struct figure){.value = value, .kind = FIGURE_DERIVED, .source = source,
                           .as_of = as_of};
}

static struct figure assumed(double value, double spread, const char *source)
{
    return (struct figure){.value = value, .spread = spread, .kind = FIGURE_ASSUMED,
                           .source = source, .as_of = as_of};
}

static struct figure measured(double value, double spread, const char *source)
{
    return (struct figure){.value = value, .spread = spread, .kind = FIGURE_MEASURED,
                           .source = source, .as_of = as_of};
}

static enum status build_type(const struct gpu *gpu, struct hardware *out, struct error *err)
{
    void *memory;
    TRY(arena_array(&out->arena, 1, sizeof *out->types, &memory, err));
    struct device_type *type = out->types = memory;
    out->type_count = 1;
    double total = gpu->total.value < gpu->memory.value ? gpu->total.value : gpu->memory.value;
    type->name = gpu->name;
    type->memory_bytes = gpu->memory;
    type->usable_bytes = derived(total - context_bytes,
                                 "nvidia-smi's total less 512 MiB for the driver's context");
    type->peak_fp32 = gpu->fp32;
    type->peak_tf32 = gpu->tf32;
    type->peak_bf16 = gpu->bf16;
    type->memory_bandwidth = gpu->bandwidth;
    type->matmul_efficiency = hardware_default_matmul_efficiency;
    type->memory_efficiency = hardware_default_memory_efficiency;
    type->launch_latency = assumed(5e-6, 0.5, "a kernel launch takes 3 to 8 us");
    return STATUS_OK;
}

static enum status name_link(struct hardware *out, const char *format, uint32_t index,
                             const char **name, struct error *err)
{
    char text[32];
    snprintf(text, sizeof text, "%s-%" PRIu32, format, index);
    return arena_string(&out->arena, text, name, err);
}

static enum status add_link(struct hardware *out, const char *what, uint32_t index,
                            struct figure bandwidth, bool duplex, struct error *err)
{
    struct hardware_link *link = &out->links[out->link_count++];
    link->bandwidth = bandwidth;
    link->duplex = duplex;
    link->latency = assumed(0, 0, "counted once, at the device's link");
    return name_link(out, what, index, &link->name, err);
}

static enum status add_nvlinks(const struct gpu *gpu, struct hardware *out, struct error *err)
{
    for (uint32_t i = 0; i < out->device_count; i++) {
        struct hardware_device *device = &out->devices[i];
        device->p2p_group = 1;
        device->p2p_path[device->p2p_path_count++] = out->link_count;
        TRY(add_link(out, "nvlink", i, gpu->nvlink, true, err));
        /* a copy crosses two */
        out->links[out->link_count - 1].latency = assumed(5e-6, 0.5, "a copy starts in 5 to 15 us");
    }
    return STATUS_OK;
}

/* Links: the bridge, then a switch for each pair (if there are several devices), then devices, then
 * their NVLinks. */
static enum status build_topology(const struct gpu *gpu, uint32_t count, struct hardware *out,
                                  struct error *err)
{
    void *links, *devices;
    uint32_t switches = count > 1 ? (count + 1) / 2 : 0;
    TRY(arena_array(&out->arena, 1 + switches + 2 * count, sizeof *out->links, &links, err));
    TRY(arena_array(&out->arena, count, sizeof *out->devices, &devices, err));
    out->links = links;
    out->devices = devices;
    out->device_count = count;

    assert(gpu->pcie >= PCIE_OLDEST && gpu->pcie <= PCIE_NEWEST);
    struct figure rate = pcie_rates[gpu->pcie];
    struct figure bridge = assumed((switches ? switches : 1) * both_over_one * rate.value, 0.1,
                                   "both directions at once carry 1.42 times one (nvbandwidth's "
                                   "README: 18 to 19 GB/s each way, 26.0 alone)");
    struct figure uplink = assumed(rate.value, 0.1, "a switch has one x16 link to the host");
    TRY(add_link(out, "bridge", 0, bridge, false, err));
    for (uint32_t i = 0; i < switches; i++) TRY(add_link(out, "switch", i, uplink, true, err));
    for (uint32_t i = 0; i < count; i++) {
        struct hardware_device *device = &out->devices[i];
        device->memory_bytes = (uint64_t)out->types[0].usable_bytes.value;
        device->path[device->path_count++] = 0;
        if (switches) device->path[device->path_count++] = 1 + i / 2;
        device->path[device->path_count++] = out->link_count;
        TRY(add_link(out, "pcie", i, rate, true, err));
        out->links[out->link_count - 1].latency = assumed(1e-5, 0.5, "a copy starts in 5 to 15 us");
    }
    if (count > 1 && gpu->nvlink.value > 0) TRY(add_nvlinks(gpu, out, err));
    hardware_note_p2p(out);
    return STATUS_OK;
}

/* Memory channels end where cores do not: two sockets of eight channels at most. */
static struct figure host_bandwidth(uint32_t cores)
{
    double each = 5 * GB * cores, most = 200 * GB;
    return assumed(each < most ? each : most, 0.5, "5 GB/s for each core, 200 GB/s at most");
}

static enum status build(const struct gpu *gpu, uint32_t count, struct hardware *out,
                         struct error *err)
{
    char name[96];
    if (count == 1)
        snprintf(name, sizeof name, "%s", gpu->name);
    else
        snprintf(name, sizeof name, "%" PRIu32 "x %s", count, gpu->name);
    TRY(arena_string(&out->arena, name, &out->name, err));
    out->backend = "cuda";
    out->note = "datasheet figures; host memory, PCIe topology and efficiencies are assumed";
    out->host_bytes = assumed(128 * GIB * count, 0, "128 GiB for each device");
    out->host_cores = 16 * count;
    out->host_bandwidth = host_bandwidth(out->host_cores);
    TRY(build_type(gpu, out, err));
    return build_topology(gpu, count, out, err);
}

/* Measured in 2026-11 on two cores of an Emerald Rapids Xeon; each figure says how. */
static enum status build_host(struct hardware *out, struct error *err)
{
    void *type, *links, *devices;
    TRY(arena_array(&out->arena, 1, sizeof *out->types, &type, err));
    TRY(arena_array(&out->arena, 1, sizeof *out->links, &links, err));
    TRY(arena_array(&out->arena, 1, sizeof *out->devices, &devices, err));
    out->name = host_name;
    out->backend = "host";
    out->note = "measure your own machine: this one stands in for it";
    out->host_bytes = assumed(16 * GIB, 0, "of 24 GiB");
    out->host_cores = out->threads = 2;
    out->types = type;
    out->types[0] = (struct device_type){
        .name = host_name,
        .memory_bytes = assumed(8 * GIB, 0, "a part of host memory"),
        .usable_bytes = assumed(8 * GIB, 0, "a part of host memory"),
        .peak_fp32 = measured(0.4 * TFLOP, 0.04, "AVX-512 multiply-adds on both cores"),
        .memory_bandwidth = measured(29 * GB, 0.05, "triad on both cores"),
        .matmul_efficiency = measured(0.82, 0.05, "oneDNN's sgemm over the shapes of GPT-2"),
        .memory_efficiency = assumed(0.9, 0.1, "of the triad"),
        .launch_latency = assumed(2e-6, 0.5, "waking a team of threads"),
    };
    out->links = links;
    out->links[0] = (struct hardware_link){
        .name = "memory",
        .bandwidth = measured(11.4 * GB, 0.05, "memcpy of 1 GiB by one thread"),
        .latency = assumed(2e-6, 0.5, "waking a thread"),
        .duplex = true,
    };
    out->devices = devices;
    out->devices[0].memory_bytes = (uint64_t)(8 * GIB);
    out->devices[0].path_count = 1;
    out->type_count = out->link_count = out->device_count = 1;
    return STATUS_OK;
}

/* --- finding -------------------------------------------------------------------------------- */

static const struct gpu *find_gpu(const char *name)
{
    for (size_t i = 0; i < GPU_COUNT; i++)
        if (strcmp(gpus[i].name, name) == 0 || strcmp(gpus[i].driver_name, name) == 0)
            return &gpus[i];
    return NULL;
}

static enum status build_machine(const struct machine *machine, struct hardware *out,
                                 struct error *err)
{
    TRY(build(find_gpu(machine->gpu), machine->device_count, out, err));
    out->name = machine->name;
    out->note = machine->note;
    out->host_bytes = machine->host_bytes;
    out->host_cores = machine->host_cores;
    out->host_bandwidth = host_bandwidth(machine->host_cores);
    return STATUS_OK;
}

/* "4x NAME", "4xNAME": the count and the rest; count 1 and all of it where there is no such. */
static const char *split_count(const char *text, uint64_t *count)
{
    *count = 1;
    if (!isdigit((unsigned char)text[0])) return text;
    char *end;
    unsigned long long number = strtoull(text, &end, 10);
    if (*end != 'x') return text;
    *count = number;
    for (end++; *end == ' ';) end++;
    return end;
}

static enum status fail_unknown(const char *name, struct error *err)
{
    const char *names[PRESET_COUNT];
    char list[512] = "";
    size_t used = 0, candidates = 0;
    for (uint32_t i = 0; i < PRESET_COUNT; i++) {
        names[i] = hardware_preset_name(i);
        if (name[0] == '\0' || !strcasestr(names[i], name)) continue;
        candidates++;
        int length = snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", names[i]);
        used += (size_t)length < sizeof list - used ? (size_t)length : sizeof list - used - 1;
    }
    if (candidates > 0)
        return error_set(err, STATUS_BAD_INPUT,
                         "'%.100s' does not say which machine is meant (expected %s%s)", name,
                         candidates > 1 ? "one of " : "", list);
    const char *near = suggest(name, names, PRESET_COUNT);
    if (near)
        return error_set(err, STATUS_BAD_INPUT, "unknown machine '%.100s' (did you mean '%s'?)",
                         name, near);
    return error_set(err, STATUS_BAD_INPUT,
                     "unknown machine '%.100s' (expected a preset such as a100-sxm4-40gb, '4x "
                     "rtx-3090-24gb', or the path of a hardware file)",
                     name);
}

static enum status find_preset(const char *text, struct hardware *out, struct error *err)
{
    uint64_t count;
    const char *name = split_count(text, &count);
    for (size_t i = 0; i < MACHINE_COUNT; i++)
        if (strcmp(machines[i].name, text) == 0) return build_machine(&machines[i], out, err);
    if (strcmp(text, host_name) == 0) return build_host(out, err);
    const struct gpu *gpu = find_gpu(name);
    if (!gpu) return fail_unknown(name, err);
    if (count == 0 || count > DEVICES_MAX)
        return error_set(err, count ? STATUS_LIMIT : STATUS_BAD_INPUT,
                         "'%.100s' has %" PRIu64 " devices (expected 1 to %d)", text, count,
                         DEVICES_MAX);
    return build(gpu, (uint32_t)count, out, err);
}

static bool is_path(const char *name)
{
    size_t length = strlen(name);
    return strchr(name, '/') || (length > 5 && strcmp(name + length - 5, ".json") == 0) ||
           (length > 8 && strcmp(name + length - 8, ".json.gz") == 0);
}

enum status hardware_find(const char *name_or_path, struct hardware *out, struct error *err)
{
    if (is_path(name_or_path)) return hardware_read(name_or_path, out, err);
    struct hardware hardware = {0};
    enum status status = find_preset(name_or_path, &hardware, err);
    if (status == STATUS_OK)
        *out = hardware;
    else
        hardware_release(&hardware);
    return status;
}
