/* See cli_import_hwloc.h. hwloc reads its own XML. */
#include "cli/cli_import_hwloc.h"

#include <hwloc.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/quantity.h"
#include "models/try.h"

enum { VENDOR_NVIDIA = 0x10de, CLASS_DISPLAY = 0x03 };

/* Of a link's raw bandwidth, what copies reach: 26.0 of 31.5 GB/s on PCIe 4 x16 (nvbandwidth's README). */
static const double reached = 0.8, reached_spread = 0.05;

static void say(struct import_report *report, const char *what, const char *value)
{
    if (report->count < IMPORT_LINES_MAX)
        snprintf(report->lines[report->count++], IMPORT_LINE_BYTES, "%s: %s", what, value);
}

static enum status load(const char *path, hwloc_topology_t *out, struct error *err)
{
    if (hwloc_topology_init(out) != 0) return error_memory(err, "a topology", 1);
    if (hwloc_topology_set_io_types_filter(*out, HWLOC_TYPE_FILTER_KEEP_ALL) == 0 &&
        hwloc_topology_set_xml(*out, path) == 0 && hwloc_topology_load(*out) == 0)
        return STATUS_OK;
    hwloc_topology_destroy(*out);
    return error_set(err, STATUS_BAD_INPUT, "%s: no topology that hwloc can load (expected XML of 'lstopo --of xml')", path);
}

static bool is_gpu(hwloc_obj_t pci)
{
    return pci->attr->pcidev.vendor_id == VENDOR_NVIDIA && pci->attr->pcidev.class_id >> 8 == CLASS_DISPLAY;
}

static uint32_t count_gpus(hwloc_topology_t topology)
{
    uint32_t count = 0;
    for (hwloc_obj_t pci = NULL; (pci = hwloc_get_next_pcidev(topology, pci)) != NULL;) count += is_gpu(pci);
    return count;
}

static struct figure figure_of(double value, double spread, enum figure_kind kind, const char *source, const char *as_of)
{
    return (struct figure){.value = value, .spread = spread, .kind = kind, .source = source, .as_of = as_of};
}

static void take_host(hwloc_topology_t topology, const char *as_of, struct hardware *machine, struct import_report *report)
{
    char text[QUANTITY_TEXT_BYTES];
    double bytes = (double)hwloc_get_root_obj(topology)->total_memory;
    int cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE), nodes = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE);
    if (bytes > 0) {
        machine->host_bytes = figure_of(bytes, 0, FIGURE_MEASURED, "hwloc, memory of all NUMA nodes", as_of);
        say(report, "host memory", quantity_text(bytes, DIMENSION_BYTES, text));
    }
    if (cores > 0) machine->host_cores = (uint32_t)cores;
    snprintf(text, sizeof text, "%d on %d NUMA nodes", cores, nodes);
    say(report, "cores", text);
}

/* hwloc's link speed is GB/s of the whole link, as it was when the topology was written. */
static void take_links(hwloc_topology_t topology, const char *as_of, struct hardware *machine, struct import_report *report)
{
    uint32_t d = 0;
    for (hwloc_obj_t pci = NULL; (pci = hwloc_get_next_pcidev(topology, pci)) != NULL;) {
        if (!is_gpu(pci)) continue;
        struct hardware_device *device = &machine->devices[d++];
        double speed = (double)pci->attr->pcidev.linkspeed * 1e9;
        if (!(speed > 0)) continue;
        machine->links[device->path[device->path_count - 1]].bandwidth =
            figure_of(speed * reached, reached_spread, FIGURE_DERIVED, "0.8 of the PCIe link's speed by hwloc", as_of);
        char what[64], text[QUANTITY_TEXT_BYTES];
        snprintf(what, sizeof what, "PCIe link of device %" PRIu32, d - 1);
        say(report, what, quantity_text(speed * reached, DIMENSION_BYTES_PER_S, text));
    }
}

enum status cli_import_hwloc(const char *path, const char *as_of, struct hardware *machine,
                             struct import_report *report, struct error *err)
{
    hwloc_topology_t topology;
    const char *date;
    TRY(arena_string(&machine->arena, as_of, &date, err));
    TRY(load(path, &topology, err));
    uint32_t gpus = count_gpus(topology);
    enum status status = STATUS_OK;
    if (gpus > 0 && gpus != machine->device_count)
        status = error_set(err, STATUS_BAD_INPUT, "%s: the topology has %" PRIu32 " GPUs (expected %" PRIu32 ", as '%s')", path,
                           gpus, machine->device_count, machine->name);
    if (!status) {
        take_host(topology, date, machine, report);
        if (gpus > 0) take_links(topology, date, machine, report);
        status = hardware_check(machine, err);
    }
    hwloc_topology_destroy(topology);
    return status;
}
