/*
 * GPUs of one name are built like the catalogue's, with detected values in place: free memory, width of the PCIe link,
 * direct copies. NVLink's rate is the datasheet's.
 *
 * A host is a roughly assumed roofline: half of its memory, the most that its cores can multiply and add, and 5 GB/s
 * of DRAM per core.
 */
#include "models/hardware/hardware_detect.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/try.h"
#include "models/hardware/hardware_build.h"
#include "models/hardware/hardware_catalogue.h"
#include "models/hardware/hardware_mix.h"

static struct sourced_value told(const struct hardware_detected *found, double value, const char *source)
{
    return (struct sourced_value){.value = value, .kind = SOURCE_DERIVED, .source = source, .as_of = found->as_of};
}

/* --- the host as a device ------------------------------------------------------------------------- */

static const double core_bandwidth = 5 * HW_GB, host_bandwidth_most = 200 * HW_GB;

static struct sourced_value host_bandwidth(const struct hardware_detected *found)
{
    return sourced_assumed(fmin(core_bandwidth * found->cores, host_bandwidth_most), 0.5,
                           "5 GB/s for each core, 200 GB/s at most");
}

static enum status build_host(const struct hardware_detected *found, struct hardware *out, struct error *err)
{
    TRY(ARENA_NEW(&out->arena, 1, out->types, err));
    TRY(ARENA_NEW(&out->arena, 1, out->links, err));
    TRY(ARENA_NEW(&out->arena, 1, out->devices, err));
    const double clock_hz = found->clock_hz > 0 ? found->clock_hz : 2.5e9;
    const double memory = floor((double)found->host_bytes / 2);
    const struct sourced_value bandwidth = host_bandwidth(found);
    out->name = "detected-host";
    out->backend = "host";
    out->threads = found->cores;
    out->types[0] = (struct device_type){
        .name = found->cpu,
        .memory_bytes = told(found, memory, "half of the available host memory"),
        .usable_bytes = told(found, memory, "half of the available host memory"),
        .peak_fp32 = sourced_assumed(clock_hz * found->flops_per_cycle * found->cores, 0.5,
                                     found->clock_hz > 0 ? "cores, clock and the widest instructions of /proc/cpuinfo"
                                                         : "cores at 2.5 GHz and the widest instructions of "
                                                           "/proc/cpuinfo"),
        .memory_bandwidth = bandwidth,
        .matmul_efficiency = sourced_assumed(0.7, 0.3, "a matrix library's share of that peak"),
        .memory_efficiency = sourced_assumed(0.9, 0.1, "of that bandwidth"),
        .launch_latency = sourced_assumed(2e-6, 0.5, "waking a team of threads"),
    };
    out->links[0] = (struct hardware_link){
        .name = "memory",
        .bandwidth = sourced_assumed(bandwidth.value / 2, 0.5, "a copy reads and writes host memory"),
        .latency = sourced_assumed(2e-6, 0.5, "waking a thread"),
        .duplex = true,
    };
    out->devices[0] = (struct hardware_device){.memory_bytes = (uint64_t)memory, .path_count = 1};
    out->type_count = out->link_count = out->device_count = 1;
    return STATUS_OK;
}

/* --- GPUs --------------------------------------------------------------------------------------- */

/* Finds the nearest size of memory among cards of one name. */
static const struct hardware_gpu *find_gpu(const struct hardware_detected_gpu *wanted)
{
    const struct hardware_gpu *best = NULL;
    double least = INFINITY;
    for (uint32_t i = 0; catalogue_gpu(i); i++) {
        const struct hardware_gpu *gpu = catalogue_gpu(i);
        double off = fabs(gpu->memory.value - (double)wanted->total_bytes);
        if (strcmp(gpu->driver_name, wanted->name) != 0 || off >= least) continue;
        best = gpu;
        least = off;
    }
    return best;
}

/* Returns a small card's values, with a source that says so. */
static struct hardware_gpu unknown_gpu(const struct hardware_detected *found,
                                       const struct hardware_detected_gpu *told_of, const char *name)
{
    return (struct hardware_gpu){
        .name = name,
        .driver_name = name,
        .memory = told(found, (double)told_of->total_bytes, "the driver's total"),
        .total = told(found, (double)told_of->total_bytes, "the driver's total"),
        .bandwidth = told_of->memory_bytes_per_s > 0
                         ? told(found, told_of->memory_bytes_per_s,
                                "clock and width of the memory's bus, by the driver")
                         : sourced_assumed(300 * HW_GB, 1, "nothing is known of this GPU's memory"),
        .fp32 = told_of->fp32_flops_per_s > 0
                    ? told(found, told_of->fp32_flops_per_s, "multiprocessors and clock, by the driver")
                    : sourced_assumed(8 * HW_TFLOP, 1, "nothing is known of this GPU's speed"),
        .pcie = 3,
    };
}

static bool mutual(const struct hardware_detected *found, uint32_t a, uint32_t b)
{
    return found->reaches[(size_t)a * found->gpu_count + b] && found->reaches[(size_t)b * found->gpu_count + a];
}

/* Returns the first device from `first` on with which `device` copies both ways, or `device`. */
static uint32_t group_of(const struct hardware_detected *found, uint32_t first, uint32_t device)
{
    uint32_t other = first;
    while (other < device && !mutual(found, device, other)) other++;
    return other;
}

/* Returns true if each group's members reach exactly each other. */
static bool is_grouped(const struct hardware_detected *found, uint32_t first, uint32_t count)
{
    for (uint32_t a = first; a < first + count; a++)
        for (uint32_t b = first; b < a; b++)
            if (mutual(found, a, b) != (group_of(found, first, a) == group_of(found, first, b))) return false;
    return true;
}

static bool any_reaches(const struct hardware_detected *found, uint32_t first, uint32_t count)
{
    for (uint32_t a = first; a < first + count; a++)
        for (uint32_t b = first; b < a; b++)
            if (mutual(found, a, b)) return true;
    return false;
}

/* Groups of two and more devices whose copies work become networks. */
static void place_networks(const struct hardware_detected *found, uint32_t first, bool grouped, struct hardware *part)
{
    for (uint32_t d = 0; d < part->device_count; d++) {
        struct hardware_device *device = &part->devices[d];
        uint32_t group = group_of(found, first, first + d) - first, members = 0;
        for (uint32_t other = 0; other < part->device_count; other++)
            members += group_of(found, first, first + other) - first == group;
        if (!grouped || members < 2) device->network_count = 0;
        else if (device->network_count > 0) device->networks[0].group = 1 + group;
    }
    hardware_note_p2p(part);
}

/* Returns the link relative to one of 16 lanes of generation `built`. */
static double link_share(const struct hardware_detected_gpu *gpu, uint32_t built)
{
    double share = gpu->lanes > 0 && gpu->lanes < 16 ? gpu->lanes / 16.0 : 1;
    return gpu->pcie > 0 && gpu->pcie < built ? share * exp2((double)gpu->pcie - built) : share;
}

static enum status place_devices(const struct hardware_detected *found, uint32_t first, uint32_t built,
                                 struct arena *texts, struct hardware *part, struct error *err)
{
    for (uint32_t d = 0; d < part->device_count; d++) {
        const struct hardware_detected_gpu *gpu = &found->gpus[first + d];
        struct hardware_device *device = &part->devices[d];
        struct hardware_link *link = &part->links[device->path[device->path_count - 1]];
        char text[96];
        device->memory_bytes = (uint64_t)part->types[0].usable_bytes.value;
        if (gpu->pcie == 0) continue;
        snprintf(text, sizeof text,
                 "the kernel's PCIe %" PRIu32 " x%" PRIu32 ", of which x16 of %" PRIu32 " has %.3g GB/s",
                 gpu->pcie, gpu->lanes, built, link->bandwidth.value / HW_GB);
        link->bandwidth = told(found, link->bandwidth.value * link_share(gpu, built), NULL);
        link->bandwidth.spread = 0.1;
        TRY(arena_string(texts, text, &link->bandwidth.source, err));
    }
    return STATUS_OK;
}

/* Builds devices of one name; `texts` outlives the part. */
static enum status build_part(const struct hardware_detected *found, uint32_t first, uint32_t count,
                              struct arena *texts, bool *grouped, struct hardware *out, struct error *err)
{
    enum { PCIE_OLDEST = 3, PCIE_NEWEST = 5 };
    const struct hardware_detected_gpu *gpu = &found->gpus[first];
    const struct hardware_gpu *known = find_gpu(gpu);
    const char *name;
    TRY(arena_string(texts, gpu->name, &name, err));
    struct hardware_gpu built = known ? *known : unknown_gpu(found, gpu, name);
    uint32_t pcie = gpu->pcie > 0 ? gpu->pcie : built.pcie;
    pcie = pcie < PCIE_OLDEST ? PCIE_OLDEST : pcie > PCIE_NEWEST ? PCIE_NEWEST : pcie;
    uint64_t least = gpu->free_bytes;
    for (uint32_t d = 0; d < found->gpu_count; d++) /* of one name and type */
        if (strcmp(found->gpus[d].name, gpu->name) == 0 && found->gpus[d].free_bytes < least)
            least = found->gpus[d].free_bytes;
    const struct hardware_node node = {.device_count = count,
                              .host_bytes = told(found, (double)found->host_bytes, "available memory, by the kernel"),
                              .host_cores = found->cores,
                              .pcie = pcie};
    built.peers = any_reaches(found, first, count);
    TRY(hardware_build(&built, &node, 1, 1, false, out, err));
    struct device_type *type = &out->types[0];
    type->usable_bytes = told(found, fmin((double)least, type->memory_bytes.value),
                              "the least free memory, by the driver");
    *grouped = is_grouped(found, first, count);
    place_networks(found, first, *grouped, out);
    return place_devices(found, first, pcie, texts, out, err);
}

static uint32_t run_length(const struct hardware_detected *found, uint32_t first)
{
    uint32_t count = 1;
    while (first + count < found->gpu_count &&
           strcmp(found->gpus[first].name, found->gpus[first + count].name) == 0)
        count++;
    return count;
}

static enum status name_parts(const struct hardware_detected *found, char *name, size_t size, uint32_t *parts,
                              struct error *err)
{
    size_t used = 0;
    *parts = 0;
    name[0] = '\0';
    for (uint32_t first = 0, count; first < found->gpu_count; first += count, ++*parts) {
        const struct hardware_gpu *known = find_gpu(&found->gpus[first]);
        count = run_length(found, first);
        if (*parts == HARDWARE_PARTS_MAX)
            return error_set(err, STATUS_LIMIT, "GPUs of more than %d alternating kinds", (int)HARDWARE_PARTS_MAX);
        int length = snprintf(name + used, size - used, "%s%" PRIu32 "x %s", *parts ? " + " : "", count,
                              known ? known->name : found->gpus[first].name);
        if (length < 0 || (size_t)length >= size - used)
            return error_set(err, STATUS_LIMIT, "names of GPUs are too long");
        used += (size_t)length;
    }
    return STATUS_OK;
}

static enum status build_gpus(const struct hardware_detected *found, bool *grouped, struct hardware *out,
                              struct error *err)
{
    struct hardware parts[HARDWARE_PARTS_MAX] = {{.name = NULL}};
    char name[1024];
    uint32_t count;
    *grouped = true;
    TRY(name_parts(found, name, sizeof name, &count, err));
    if (count == 1) return build_part(found, 0, found->gpu_count, &out->arena, grouped, out, err);
    enum status status = STATUS_OK;
    for (uint32_t p = 0, first = 0; p < count && status == STATUS_OK; p++) {
        bool whole;
        uint32_t length = run_length(found, first);
        status = build_part(found, first, length, &out->arena, &whole, &parts[p], err);
        *grouped = *grouped && whole;
        first += length;
    }
    if (status == STATUS_OK) status = hardware_mix(parts, count, name, false, out, err);
    for (uint32_t p = 0; p < count; p++) hardware_release(&parts[p]);
    return status;
}

/* --- public --------------------------------------------------------------------------------------- */

enum status hardware_from_detected(const struct hardware_detected *told_of, struct hardware *out, struct error *err)
{
    char note[512];
    bool grouped = true;
    struct hardware_detected copy = *told_of;
    const struct hardware_detected *found = &copy;
    TRY(arena_string(&out->arena, told_of->as_of, &copy.as_of, err));
    TRY(arena_string(&out->arena, told_of->cpu, &copy.cpu, err));
    TRY(found->gpu_count > 0 ? build_gpus(found, &grouped, out, err) : build_host(found, out, err));
    /* one host for all kinds of GPUs */
    out->host_bytes = told(found, (double)found->host_bytes, "available memory, by the kernel");
    out->host_cores = found->cores;
    out->host_bandwidth = host_bandwidth(found);
    snprintf(note, sizeof note, "found, not measured: %s, %" PRIu32 " core%s; %s", found->cpu, found->cores,
             found->cores == 1 ? "" : "s",
             !grouped ? "some pairs of GPUs copy directly and some do not, in no groups: planned without "
                        "direct copies"
             : found->gpu_count > 0 ? "efficiencies and the paths between GPUs' PCIe links and host memory are "
                                      "assumed"
                                    : "its speeds are assumed ('spillway measure' finds them)");
    return arena_string(&out->arena, note, &out->note, err);
}
