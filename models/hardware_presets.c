/*
 * Machines by name: a row per GPU holds its datasheet, a row per node what is around its GPUs;
 * models/hardware_build.h puts them together.
 *
 *     "a100-sxm4-40gb", "4x a100-sxm4-40gb"       devices in one machine, memory and cores assumed
 *     "dgx-a100-80gb", "384x dgx-a100-80gb"       a node; nodes of a cluster
 *     "64x dgx-a100-80gb 2:1"                     the same with leaf switches that are oversubscribed
 *
 * Machines of one GPU have bridges between pairs left out, and PCIe from device to device too, which
 * drivers forbid for most cards that have no NVLink. NVLink between the V100s of a node is a cube of
 * single links, not a switch: rings over all of them, which is what collectives are, see no difference.
 *
 * Rates are dense and accumulate in fp32: tables that list sparse rates, or half-precision sums of
 * GeForce cards, are twice too high. Memory is what nvidia-smi calls total, less what a process
 * loses to its driver context. Where sources disagree or none was seen, the kind is "assumed".
 */
#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/size.h"
#include "base/suggest.h"
#include "models/hardware_build.h"
#include "models/hardware_mix.h"
#include "models/try.h"

/* --- GPUs ----------------------------------------------------------------------------------- */

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
    {"v100-pcie-16gb", "Tesla V100-PCIE-16GB", "Volta, fp16 tensor cores, PCIe 3 card",
     SEEN(16 * GIB, VENDOR), GUESS(16160 * MIB, SMI_RECALLED), SEEN(900 * GB, VENDOR),
     SEEN(14.0 * TFLOP, VENDOR), NONE, NONE, 3, NONE},
    {"v100-sxm2-32gb", "Tesla V100-SXM2-32GB", "Volta, fp16 tensor cores, PCIe 3",
     SEEN(32 * GIB, VENDOR), GUESS(32510 * MIB, SMI_RECALLED), SEEN(900 * GB, VENDOR),
     SEEN(15.7 * TFLOP, VENDOR), NONE, NONE, 3, NONE},
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

/* --- machines ------------------------------------------------------------------------------- */

#define HYDRA_NOTE                                                                               \
    "the paper states GPUs, memory and cores; assumed: GPUs in pairs behind PCIe 3 switches, one " \
    "host bridge, efficiencies; NVLink is not used"

#define NVLINK_2                                                                                    \
    {.value = 135 * GB, .spread = 0.1, .kind = FIGURE_MEASURED, .as_of = FIGURES_AS_OF,             \
     .source = "NVLink 2, six links of 25 GB/s each way: all-reduce of 8 V100 reaches 135 (vTrain's " \
               "traces)"}
#define DGX_NOTE                                                                                  \
    "datasheet figures; efficiencies and latencies are assumed. Nodes meet in a fat tree, 20 to a leaf " \
    "switch of each rail, oversubscribed as the machine's name says, else not at all"
#define CLOUD_NOTE                                                                                \
    "datasheet figures; efficiencies, latencies and PCIe are assumed. Nodes meet in one switch"
#define IB_LATENCY GUESS(0, "counted at the PCIe links: 20 us in all, as Calculon's InfiniBand")
#define TCP_LATENCY GUESS(15e-6, "a message over TCP takes about 50 us")
#define EFA_LATENCY GUESS(5e-6, "a message over EFA takes about 30 us")

static const struct node nodes[] = {
    {.name = "hydra-8x2080ti",
     .summary = "the machine of Hydra's 2022 report: 8 RTX 2080 Ti, 500 GB, 80 cores",
     .note = HYDRA_NOTE, .gpu = "rtx-2080-ti-11gb", .device_count = 8,
     .host_bytes = SEEN(500 * GB, "Hydra technical report, April 2022, experimental setup"),
     .host_cores = 80},
    {.name = "hydra-8x1080ti",
     .summary = "the machine of Hydra's 2021 report: 8 GTX 1080 Ti, 512 GB, 10 cores",
     .note = HYDRA_NOTE, .gpu = "gtx-1080-ti-11gb", .device_count = 8,
     .host_bytes = SEEN(512 * GB, "Hydra technical report, July 2021, experimental setup"),
     .host_cores = 10},
    {.name = "dgx-a100-80gb", .summary = "8 A100 80 GB, NVSwitch, 8 NICs of 200 Gb/s; Selene's node",
     .note = DGX_NOTE, .gpu = "a100-sxm4-80gb", .device_count = 8,
     .host_bytes = SEEN(2048 * GIB, "NVIDIA DGX A100 datasheet, 640 GB version"), .host_cores = 128,
     .nic_count = 8, .nic = SEEN(25 * GB, "HDR InfiniBand, 200 Gb/s each way; arXiv 2104.04473, section 5"),
     .nic_latency = IB_LATENCY, .leaf_nodes = 20},
    {.name = "dgx-h100", .summary = "8 H100, NVSwitch, 8 NICs of 400 Gb/s", .note = DGX_NOTE,
     .gpu = "h100-sxm5-80gb", .device_count = 8,
     .host_bytes = SEEN(2048 * GIB, "NVIDIA DGX H100 datasheet"), .host_cores = 112,
     .nic_count = 8, .nic = SEEN(50 * GB, "NDR InfiniBand, 400 Gb/s each way; NVIDIA DGX H100 datasheet"),
     .nic_latency = IB_LATENCY, .leaf_nodes = 20},
    {.name = "p4d.24xlarge", .summary = "AWS: 8 A100 40 GB, NVSwitch, 4 NICs of 100 Gb/s", .note = CLOUD_NOTE,
     .gpu = "a100-sxm4-40gb", .device_count = 8,
     .host_bytes = SEEN(1152 * GIB, "AWS, p4d.24xlarge"), .host_cores = 96,
     .pcie = 3, /* of its Cascade Lake processors */
     .nic_count = 4, .nic = SEEN(12.5 * GB, "AWS, p4d.24xlarge: 400 Gb/s each way, a quarter of it"),
     .nic_latency = EFA_LATENCY, .leaf_nodes = 1},
    {.name = "p3dn.24xlarge", .summary = "AWS: 8 V100 32 GB, NVLink, one NIC of 100 Gb/s", .note = CLOUD_NOTE,
     .gpu = "v100-sxm2-32gb", .device_count = 8,
     .host_bytes = SEEN(768 * GIB, "AWS, p3dn.24xlarge"), .host_cores = 96, .nvlink = NVLINK_2,
     .nic_count = 1, .nic = SEEN(12.5 * GB, "AWS, p3dn.24xlarge: 100 Gb/s each way"),
     .nic_latency = EFA_LATENCY, .leaf_nodes = 1},
    {.name = "p3.16xlarge", .summary = "AWS, PipeDream's cluster B: 8 V100 16 GB, NVLink, one NIC of 25 Gb/s",
     .note = CLOUD_NOTE, .gpu = "v100-sxm2-16gb", .device_count = 8,
     .host_bytes = SEEN(488 * GIB, "AWS, p3.16xlarge"), .host_cores = 64, .nvlink = NVLINK_2,
     .nic_count = 1, .nic = SEEN(3.125 * GB, "25 Gb/s each way; arXiv 1806.03377, cluster B"),
     .nic_latency = TCP_LATENCY, .leaf_nodes = 1},
    {.name = "nc24v3", .summary = "Azure, PipeDream's cluster A: 4 V100 16 GB, PCIe, one NIC of 10 Gb/s",
     .note = CLOUD_NOTE, .gpu = "v100-pcie-16gb", .device_count = 4,
     .host_bytes = GUESS(448 * GIB, "Azure, NC24s v3, as recalled"), .host_cores = 24, .pcie_p2p = true,
     .nic_count = 1, .nic = SEEN(1.25 * GB, "10 Gb/s Ethernet; arXiv 1806.03377, cluster A"),
     .nic_latency = TCP_LATENCY, .leaf_nodes = 1},
};

static const char host_name[] = "host-2-cores";
static const char host_summary[] =
    "a 2-core Xeon (Emerald Rapids) as its own device: for trying things without a GPU";

enum { GPU_COUNT = ARRAY_COUNT(gpus), NODE_COUNT = ARRAY_COUNT(nodes) };
enum { PRESET_COUNT = GPU_COUNT + NODE_COUNT + 1 };

const char *hardware_preset_name(uint32_t index)
{
    if (index < GPU_COUNT) return gpus[index].name;
    if (index < GPU_COUNT + NODE_COUNT) return nodes[index - GPU_COUNT].name;
    return index < PRESET_COUNT ? host_name : NULL;
}

const char *hardware_preset_summary(uint32_t index)
{
    assert(index < PRESET_COUNT);
    if (index < GPU_COUNT) return gpus[index].summary;
    if (index < GPU_COUNT + NODE_COUNT) return nodes[index - GPU_COUNT].summary;
    return host_summary;
}

/* --- the host -------------------------------------------------------------------------------- */

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
    out->host_bytes = figure_assumed(16 * GIB, 0, "of 24 GiB");
    out->host_cores = out->threads = 2;
    out->types = type;
    out->types[0] = (struct device_type){
        .name = host_name,
        .memory_bytes = figure_assumed(8 * GIB, 0, "a part of host memory"),
        .usable_bytes = figure_assumed(8 * GIB, 0, "a part of host memory"),
        .peak_fp32 = figure_measured(0.4 * TFLOP, 0.04, "AVX-512 multiply-adds on both cores"),
        .memory_bandwidth = figure_measured(29 * GB, 0.05, "triad on both cores"),
        .matmul_efficiency = figure_measured(0.82, 0.05, "oneDNN's sgemm over the shapes of GPT-2"),
        .memory_efficiency = figure_assumed(0.9, 0.1, "of the triad"),
        .launch_latency = figure_assumed(2e-6, 0.5, "waking a team of threads"),
    };
    out->links = links;
    out->links[0] = (struct hardware_link){
        .name = "memory",
        .bandwidth = figure_measured(11.4 * GB, 0.05, "memcpy of 1 GiB by one thread"),
        .latency = figure_assumed(2e-6, 0.5, "waking a thread"),
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

static const struct node *find_node(const char *name)
{
    for (size_t i = 0; i < NODE_COUNT; i++)
        if (strcmp(nodes[i].name, name) == 0) return &nodes[i];
    return NULL;
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

/* "NAME 2:1" is cut at the blank; 1 and left as it is where there is no such. */
static double cut_oversubscription(char *name)
{
    char *blank = strrchr(name, ' ');
    const char *end;
    double ratio;
    if (!blank || !number_read(blank + 1, &end, &ratio) || strcmp(end, ":1") != 0) return 1;
    if (!(ratio >= 1 && ratio <= 1e6)) return 1;
    *blank = '\0';
    return ratio;
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
                     "rtx-3090-24gb', '2x dgx-a100-80gb', or the path of a hardware file)",
                     name);
}

static enum status check_count(const char *text, uint64_t count, uint32_t most, const char *what,
                               struct error *err)
{
    if (count > 0 && count <= most) return STATUS_OK;
    return error_set(err, count ? STATUS_LIMIT : STATUS_BAD_INPUT,
                     "'%.100s' has %" PRIu64 " %s (expected 1 to %" PRIu32 ")", text, count, what, most);
}

/* Of a machine of several kinds: all parts are of one. */
enum part_kind { PART_ALONE, PART_DEVICES, PART_NODES };

static enum status find_nodes(const char *text, const struct node *node, uint64_t count, double oversubscription,
                              bool joins, struct hardware *out, struct error *err)
{
    if (joins && node->nic_count == 0)
        return error_set(err, STATUS_BAD_INPUT, "'%.100s' has no NIC: nothing joins it to other nodes", node->name);
    uint32_t most = node->nic_count > 0 ? DEVICES_MAX / node->device_count : 1;
    TRY(check_count(text, count, most, "nodes", err));
    if (oversubscription > 1 && node->leaf_nodes < 2)
        return error_set(err, STATUS_BAD_INPUT,
                         "'%.100s': nodes '%s' meet in one switch, which nothing is oversubscribed behind", text,
                         node->name);
    return hardware_build(find_gpu(node->gpu), node, (uint32_t)count, oversubscription, joins, out, err);
}

static enum status fail_kind(const char *text, enum part_kind kind, struct error *err)
{
    return error_set(err, STATUS_BAD_INPUT,
                     "'%.100s' is no %s: a machine of several kinds has either GPUs of one host or nodes of a cluster",
                     text, kind == PART_NODES ? "node" : "GPU");
}

static enum status find_part(const char *text, enum part_kind kind, struct hardware *out, struct error *err)
{
    uint64_t count;
    char name[128];
    if (strcmp(text, host_name) == 0) return kind == PART_ALONE ? build_host(out, err) : fail_kind(text, kind, err);
    if ((size_t)snprintf(name, sizeof name, "%s", split_count(text, &count)) >= sizeof name)
        return fail_unknown(text, err);
    if (find_gpu(name)) {
        if (kind == PART_NODES) return fail_kind(text, kind, err);
        TRY(check_count(text, count, DEVICES_MAX, "devices", err));
        const struct node node = {.device_count = (uint32_t)count,
                                  .host_bytes = figure_assumed(128 * GIB * (double)count, 0,
                                                               "128 GiB for each device"),
                                  .host_cores = 16 * (uint32_t)count};
        return hardware_build(find_gpu(name), &node, 1, 1, false, out, err);
    }
    double oversubscription = cut_oversubscription(name);
    const struct node *node = find_node(name);
    if (node && kind == PART_DEVICES) return fail_kind(text, kind, err);
    if (!node) return fail_unknown(name, err);
    return find_nodes(text, node, count, oversubscription, kind == PART_NODES, out, err);
}

/* What is between this place and the next '+', without blanks around it; where that '+' is, or the end. */
static const char *take_part(const char *text, char part[128], bool *fits)
{
    size_t blanks = strspn(text, " "), length = strcspn(text, "+");
    size_t begin = blanks < length ? blanks : length, end = length;
    while (end > begin && text[end - 1] == ' ') end--;
    *fits = end - begin < 128;
    snprintf(part, 128, "%.*s", (int)(*fits ? end - begin : 127), text + begin);
    return text + length;
}

static enum status find_mix(const char *text, struct hardware *parts, struct hardware *out, struct error *err)
{
    uint32_t count = 0;
    enum part_kind kind = PART_ALONE;
    char name[HARDWARE_PARTS_MAX * 40] = "";
    size_t used = 0;
    for (const char *rest = text;; rest++, count++) {
        char part[128];
        bool fits;
        uint64_t several;
        rest = take_part(rest, part, &fits);
        if (!fits) return fail_unknown(part, err);
        if (count == HARDWARE_PARTS_MAX)
            return error_set(err, STATUS_LIMIT, "machine '%.100s' has too many parts (limit is %d)", text,
                             HARDWARE_PARTS_MAX);
        if (count == 0) kind = find_gpu(split_count(part, &several)) ? PART_DEVICES : PART_NODES;
        TRY(find_part(part, kind, &parts[count], err));
        int length = snprintf(name + used, sizeof name - used, "%s%s", count ? " + " : "", parts[count].name);
        used += (size_t)length < sizeof name - used ? (size_t)length : sizeof name - used - 1;
        if (*rest == '\0') break;
    }
    return hardware_mix(parts, count + 1, name, kind == PART_NODES, out, err);
}

static enum status find_preset(const char *text, struct hardware *out, struct error *err)
{
    struct hardware parts[HARDWARE_PARTS_MAX] = {0};
    if (!strchr(text, '+')) return find_part(text, PART_ALONE, out, err);
    enum status status = find_mix(text, parts, out, err);
    for (uint32_t p = 0; p < HARDWARE_PARTS_MAX; p++) hardware_release(&parts[p]);
    return status;
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
