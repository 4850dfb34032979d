/*
 * Links are numbered by kind: bridges, switches, PCIe, NVLink, NICs, leaves. A device's networks are its node's (group
 * 1 + node), then the network of all nodes.
 *
 * The reason for the bridge: both directions at once do not reach twice the rate of one. nvbandwidth's example on PCIe
 * 4 has 26.0 GB/s one way and 18 to 19 GB/s each way together, 1.42 times one way; a report of an A100 has 25 GB/s and
 * 24 + 11. A simplex link of 1.42 times the device link models this. Two GPUs per switch and the switches' full width
 * are assumptions too.
 *
 * A message shares its device's PCIe link with copies to the host; latencies of link and NIC add up.
 *
 *     leaf-1, of nodes 20 to 39 and the NICs at place 1, 2:1: 20 NICs of 25 GB/s, 250 GB/s up
 */
#include "models/hardware/hardware_build.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/try.h"

static const char as_of[] = HARDWARE_AS_OF;

enum { PCIE_OLDEST = 3, PCIE_NEWEST = 5 };
static const struct sourced_value pcie_rates[] = {
    [3] = {.value = 12.5 * HW_GB, .spread = 0.05, .kind = SOURCE_ASSUMED, .as_of = as_of,
           .source = "pinned copies on PCIe 3 x16 reach 12 to 13 GB/s"},
    [4] = {.value = 26.0 * HW_GB, .spread = 0.05, .kind = SOURCE_MEASURED, .as_of = as_of,
           .source = "nvbandwidth's README, host_to_device_memcpy_ce on PCIe 4 x16"},
    [5] = {.value = 52.0 * HW_GB, .spread = 0.05, .kind = SOURCE_MEASURED, .as_of = as_of,
           .source = "pinned copies of H100 machines, 50 to 55 GB/s on PCIe 5 x16"},
};

/* Both directions at once, relative to one; see above. */
static const double both_over_one = 1.42;

/* Memory of a process's context and other users of the card. */
static const double context_bytes = 512 * HW_MIB;

static struct sourced_value sourced_derived(double value, const char *source)
{
    return (struct sourced_value){.value = value, .kind = SOURCE_DERIVED, .source = source,
                                  .as_of = as_of};
}

struct sourced_value sourced_assumed(double value, double spread, const char *source)
{
    return (struct sourced_value){.value = value, .spread = spread, .kind = SOURCE_ASSUMED,
                                  .source = source, .as_of = as_of};
}

struct sourced_value sourced_measured(double value, double spread, const char *source)
{
    return (struct sourced_value){.value = value, .spread = spread, .kind = SOURCE_MEASURED,
                                  .source = source, .as_of = as_of};
}

/* --- parts ---------------------------------------------------------------------------------- */

static void set_fitted(struct sourced_value *sourced, struct sourced_value fitted)
{
    if (fitted.value > 0) *sourced = fitted;
}

static void apply_fit(struct device_type *type, const struct hardware_gpu_fit *fit)
{
    set_fitted(&type->fp32_efficiency, fit->fp32_efficiency);
    set_fitted(&type->matmul_efficiency, fit->matmul_efficiency);
    set_fitted(&type->memory_efficiency, fit->memory_efficiency);
    set_fitted(&type->launch_latency, fit->launch_latency);
    set_fitted(&type->collective_latency, fit->collective_latency);
    if (fit->kernel_model.multiprocessors.value > 0) type->kernel_model = fit->kernel_model;
}

static enum status build_type(const struct hardware_gpu *gpu, const struct hardware_node *node, struct hardware *out,
                              struct error *err)
{
    TRY(ARENA_NEW(&out->arena, 1, out->types, err));
    struct device_type *type = out->types;
    out->type_count = 1;
    double total = gpu->total.value < gpu->memory.value ? gpu->total.value : gpu->memory.value;
    type->name = gpu->name;
    type->memory_bytes = gpu->memory;
    type->usable_bytes = sourced_derived(total - context_bytes,
                                         "nvidia-smi's total less 512 MiB for the driver's context");
    type->peak_fp32 = gpu->fp32;
    type->peak_tf32 = gpu->tf32;
    type->peak_bf16 = gpu->bf16;
    type->board_power = gpu->power;
    type->memory_bandwidth = gpu->bandwidth;
    type->matmul_efficiency = hardware_default_matmul_efficiency;
    type->memory_efficiency = hardware_default_memory_efficiency;
    type->launch_latency = sourced_assumed(5e-6, 0.5, "a kernel launch takes 3 to 8 us");
    if (gpu->fit) apply_fit(type, gpu->fit);
    if (node->fit) apply_fit(type, node->fit); /* precedes its GPU's */
    return STATUS_OK;
}

static uint32_t switch_devices(const struct hardware_node *node)
{
    return node->switch_devices > 0 ? node->switch_devices : 2;
}

struct build {
    const struct hardware_node *node;
    uint32_t nodes;
    uint32_t each;     /* of a node */
    uint32_t switches; /* likewise */
    struct sourced_value pcie, nvlink, nvlink_latency;
    double oversubscription;
    bool networked;    /* between nodes */
    bool peers;        /* struct hardware_gpu */
    uint32_t first_switch, first_pcie, first_nvlink, first_nic, first_leaf;
    struct hardware *out;
};

/* Adds a link; its number among its kind is its index minus `first`. */
static enum status add_link(struct build *b, const char *what, uint32_t first, struct sourced_value bandwidth,
                            struct sourced_value latency, struct error *err)
{
    struct hardware *out = b->out;
    uint32_t index = out->link_count++;
    char text[32];
    snprintf(text, sizeof text, "%s-%" PRIu32, what, index - first);
    out->links[index] = (struct hardware_link){.bandwidth = bandwidth, .latency = latency, .duplex = true};
    return arena_string(&out->arena, text, &out->links[index].name, err);
}

static uint32_t leaf_count(const struct build *b)
{
    if (!(b->oversubscription > 1) || !b->networked) return 0;
    return (b->nodes + b->node->leaf_nodes - 1) / b->node->leaf_nodes * b->node->nic_count;
}

static enum status add_host_links(struct build *b, struct error *err)
{
    const struct sourced_value once = sourced_assumed(0, 0, "counted once, at the device's link");
    const struct sourced_value start = sourced_assumed(1e-5, 0.5, "a copy starts in 5 to 15 us");
    const struct sourced_value bridge =
        sourced_assumed((b->switches ? b->switches : 1) * both_over_one * b->pcie.value, 0.1,
                        "both directions at once carry 1.42 times one (nvbandwidth's README: 18 to 19 "
                        "GB/s each way, 26.0 one way only)");
    const struct sourced_value uplink =
        sourced_assumed(b->pcie.value, 0.1, "a switch has one x16 link to the host");
    for (uint32_t i = 0; i < b->nodes; i++) {
        TRY(add_link(b, "bridge", 0, bridge, once, err));
        b->out->links[i].duplex = false;
    }
    b->first_switch = b->out->link_count;
    for (uint32_t i = 0; i < b->nodes * b->switches; i++)
        TRY(add_link(b, "switch", b->first_switch, uplink, once, err));
    b->first_pcie = b->out->link_count;
    for (uint32_t i = 0; i < b->out->device_count; i++)
        TRY(add_link(b, "pcie", b->first_pcie, b->pcie, start, err));
    return STATUS_OK;
}

static enum status add_networks(struct build *b, struct error *err)
{
    const struct hardware_node *node = b->node;
    const struct sourced_value once = sourced_assumed(0, 0, "counted once, at the NICs");
    b->first_nvlink = b->out->link_count;
    for (uint32_t i = 0; i < b->out->device_count && b->each > 1 && b->nvlink.value > 0; i++)
        TRY(add_link(b, "nvlink", b->first_nvlink, b->nvlink, b->nvlink_latency, err));
    b->first_nic = b->out->link_count;
    for (uint32_t i = 0; i < b->nodes * node->nic_count && b->networked; i++)
        TRY(add_link(b, "nic", b->first_nic, node->nic, node->nic_latency, err));
    b->first_leaf = b->out->link_count;
    const struct sourced_value uplink =
        sourced_assumed(node->leaf_nodes * node->nic.value / b->oversubscription, 0,
                        "the NICs of a leaf over the oversubscription that was asked for");
    for (uint32_t i = 0; i < leaf_count(b); i++) TRY(add_link(b, "leaf", b->first_leaf, uplink, once, err));
    return STATUS_OK;
}

/* --- devices -------------------------------------------------------------------------------- */

static void join_node(const struct build *b, uint32_t index, struct hardware_device *device)
{
    if (b->each == 1 || (b->nvlink.value <= 0 && !b->peers)) return;
    struct hardware_network *network = hardware_join(device, 1 + index / b->each);
    if (b->nvlink.value > 0) {
        network->path[network->path_count++] = b->first_nvlink + index;
        return;
    }
    for (uint32_t i = 1; i < device->path_count; i++) network->path[network->path_count++] = device->path[i];
}

static void join_cluster(const struct build *b, uint32_t index, struct hardware_device *device)
{
    if (!b->networked) return;
    uint32_t nics = b->node->nic_count, node = index / b->each;
    uint32_t place = index % b->each * nics / b->each;
    struct hardware_network *network = hardware_join(device, 1 + b->nodes);
    if (leaf_count(b) > 0)
        network->path[network->path_count++] = b->first_leaf + node / b->node->leaf_nodes * nics + place;
    network->path[network->path_count++] = b->first_nic + node * nics + place;
    network->path[network->path_count++] = b->first_pcie + index;
}

static void place_device(const struct build *b, uint32_t index)
{
    struct hardware_device *device = &b->out->devices[index];
    uint32_t node = index / b->each;
    device->host = node;
    device->memory_bytes = (uint64_t)b->out->types[0].usable_bytes.value;
    device->path[device->path_count++] = node;
    if (b->switches > 0)
        device->path[device->path_count++] = b->first_switch + node * b->switches +
                                             index % b->each / switch_devices(b->node);
    device->path[device->path_count++] = b->first_pcie + index;
    join_node(b, index, device);
    join_cluster(b, index, device);
}

static enum status build_topology(struct build *b, struct error *err)
{
    struct hardware *out = b->out;
    uint32_t count = b->nodes * b->each;
    size_t most = (size_t)b->nodes * (1 + b->switches + b->node->nic_count) + 2 * (size_t)count + leaf_count(b);
    TRY(ARENA_NEW(&out->arena, most, out->links, err));
    TRY(ARENA_NEW(&out->arena, count, out->devices, err));
    out->device_count = count;
    TRY(add_host_links(b, err));
    TRY(add_networks(b, err));
    assert(out->link_count <= most && out->link_count <= HARDWARE_LINKS_MAX);
    for (uint32_t i = 0; i < count; i++) place_device(b, i);
    hardware_note_p2p(out);
    return STATUS_OK;
}

static struct sourced_value several(struct sourced_value of_one, uint32_t nodes)
{
    of_one.value *= nodes;
    return of_one;
}

/* Returns the bandwidth, at most as two sockets' channels (eight each) allow. */
static struct sourced_value host_bandwidth(const struct hardware_node *node, uint32_t nodes)
{
    double each = 5 * HW_GB * node->host_cores, most = 200 * HW_GB;
    if (node->host_bandwidth.value > 0) return several(node->host_bandwidth, nodes);
    return sourced_assumed(nodes * (each < most ? each : most), 0.5,
                           "5 GB/s for each core, 200 GB/s at most for each host");
}

static void add_storage(const struct hardware_node *node, uint32_t nodes, struct hardware_storage *out)
{
    if (node->storage.value <= 0) return;
    out->capacity_bytes = several(node->storage, nodes);
    out->read_rate = out->write_rate = several(node->storage_rate, nodes);
    out->latency = sourced_assumed(1e-4, 0.5, "an NVMe drive answers in 0.1 ms");
}

static enum status name_machine(const struct hardware_gpu *gpu, const struct hardware_node *node, uint32_t count,
                                double oversubscription, struct hardware *out, struct error *err)
{
    const char *base = node->name ? node->name : gpu->name;
    uint32_t several = node->name ? count : node->device_count;
    char name[96], ratio[32] = "";
    if (oversubscription > 1) snprintf(ratio, sizeof ratio, " %g:1", oversubscription);
    if (several == 1) snprintf(name, sizeof name, "%s", base);
    else snprintf(name, sizeof name, "%" PRIu32 "x %s%s", several, base, ratio);
    return arena_string(&out->arena, name, &out->name, err);
}

enum status hardware_build(const struct hardware_gpu *gpu, const struct hardware_node *node, uint32_t count,
                           double oversubscription, bool joins, struct hardware *out, struct error *err)
{
    uint32_t pcie = node->pcie > 0 ? node->pcie : gpu->pcie, each = node->device_count;
    uint32_t behind = switch_devices(node), switches = each > 1 ? (each + behind - 1) / behind : 0;
    assert(pcie >= PCIE_OLDEST && pcie <= PCIE_NEWEST);
    assert(count > 0 && each > 0 && (size_t)count * each <= HARDWARE_DEVICES_MAX);
    assert((count == 1 && !joins) || (node->nic_count > 0 && each % node->nic_count == 0));
    TRY(name_machine(gpu, node, count, oversubscription, out, err));
    out->backend = "cuda";
    out->note = node->note ? node->note
                           : "datasheet values; host memory, PCIe topology and efficiencies are assumed";
    out->host_bytes = node->host_bytes;
    out->host_bytes.value *= count;
    out->host_cores = node->host_cores * count;
    if (count > 1) out->host_nodes = count, out->node_devices = node->device_count;
    out->host_bandwidth = host_bandwidth(node, count);
    add_storage(node, count, &out->storage);
    TRY(build_type(gpu, node, out, err));
    struct sourced_value start = sourced_assumed(5e-6, 0.5, "a copy starts in 5 to 15 us"); /* two of them */
    if (gpu->fit) set_fitted(&start, gpu->fit->nvlink_latency);
    if (node->fit) set_fitted(&start, node->fit->nvlink_latency);
    struct build b = {.node = node, .nodes = count, .each = each, .switches = switches,
                      .pcie = pcie_rates[pcie], .nvlink = node->nvlink.value > 0 ? node->nvlink : gpu->nvlink,
                      .nvlink_latency = start, .peers = gpu->peers,
                      .oversubscription = oversubscription, .networked = count > 1 || joins, .out = out};
    return build_topology(&b, err);
}
