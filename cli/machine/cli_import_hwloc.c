/*
 * hwloc reads XML in a child process: a broken file (an object without its complete_cpuset) makes it read from address
 * 0.
 */
#include "cli/machine/cli_import_hwloc.h"

#include <hwloc.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/process/contain.h"
#include "base/text/quantity.h"
#include "base/try.h"

enum { VENDOR_NVIDIA = 0x10de, CLASS_DISPLAY = 0x03 };

/* 26.0 of 31.5 GB/s on PCIe 4 x16 (nvbandwidth's README). */
static const double reached = 0.8, reached_spread = 0.05;

/* Larger values are errors. */
static const double host_bytes_max = 0x1p60, link_rate_max = 1e15;

static void say(struct import_report *report, const char *what, const char *value)
{
    if (report->count < IMPORT_LINES_MAX)
        snprintf(report->lines[report->count++], IMPORT_LINE_BYTES, "%s: %s", what, value);
}

/* --- in the child ----------------------------------------------------------------------------- */

struct facts {
    double memory_bytes;
    int cores, nodes;
    uint32_t gpus;                 /* beyond the array without speed */
    double link_speed[HARDWARE_DEVICES_MAX]; /* GB/s; 0: unknown */
};

/* Loads a topology; hwloc prints no message. */
static bool load(const char *path, hwloc_topology_t *out)
{
    setenv("HWLOC_HIDE_ERRORS", "2", 0);
    if (hwloc_topology_init(out) != 0) return false;
    if (hwloc_topology_set_io_types_filter(*out, HWLOC_TYPE_FILTER_KEEP_ALL) == 0 &&
        hwloc_topology_set_xml(*out, path) == 0 && hwloc_topology_load(*out) == 0)
        return true;
    hwloc_topology_destroy(*out);
    return false;
}

static bool is_gpu(hwloc_obj_t pci)
{
    return pci->attr->pcidev.vendor_id == VENDOR_NVIDIA && pci->attr->pcidev.class_id >> 8 == CLASS_DISPLAY;
}

/* Writes the facts of the file `context`; nothing if it cannot be loaded. */
static void read_facts(void *context, struct contain_sink *sink)
{
    static struct facts facts;
    hwloc_topology_t topology;
    if (!load(*(const char **)context, &topology)) return;
    facts.memory_bytes = (double)hwloc_get_root_obj(topology)->total_memory;
    facts.cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
    facts.nodes = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE);
    for (hwloc_obj_t pci = NULL; (pci = hwloc_get_next_pcidev(topology, pci)) != NULL;) {
        if (!is_gpu(pci)) continue;
        if (facts.gpus < HARDWARE_DEVICES_MAX) facts.link_speed[facts.gpus] = (double)pci->attr->pcidev.linkspeed;
        facts.gpus++;
    }
    hwloc_topology_destroy(topology);
    contain_write(sink, &facts, sizeof facts);
}

/* --- in this process -------------------------------------------------------------------------- */

/* Gets the child's facts; the caller frees *out. */
static enum status ask(const char *path, struct facts **out, struct error *err)
{
    const struct contain_limits limits = {.seconds = 60, .memory_bytes = UINT64_C(4) << 30};
    struct contain_end end;
    size_t length = 0;
    void *result = NULL;
    TRY(contain_run(read_facts, &path, &limits, sizeof(struct facts), &result, &length, &end, err));
    *out = result;
    if (result && length == sizeof(struct facts)) return STATUS_OK;
    free(result);
    *out = NULL;
    return error_set(err, STATUS_BAD_INPUT, "%s: no topology that hwloc can load (expected XML of 'lstopo --of xml')",
                     path);
}

static struct sourced_value sourced_of(double value, double spread, enum source_kind kind, const char *source,
                                       const char *as_of)
{
    return (struct sourced_value){.value = value, .spread = spread, .kind = kind, .source = source, .as_of = as_of};
}

static void set_host(const struct facts *facts, const char *as_of, struct hardware *machine,
                     struct import_report *report)
{
    char text[QUANTITY_TEXT_BYTES];
    double bytes = facts->memory_bytes;
    if (bytes > 0 && bytes <= host_bytes_max) {
        machine->host_bytes = sourced_of(bytes, 0, SOURCE_MEASURED, "hwloc, memory of all NUMA nodes", as_of);
        say(report, "host memory", quantity_text(bytes, DIMENSION_BYTES, text));
    }
    if (facts->cores > 0 && facts->cores <= HARDWARE_HOST_CORES_MAX) machine->host_cores = (uint32_t)facts->cores;
    snprintf(text, sizeof text, "%d on %d NUMA nodes", facts->cores, facts->nodes);
    say(report, "cores", text);
}

/* Sets links. hwloc has GB/s of the whole link, as negotiated. */
static void set_links(const struct facts *facts, const char *as_of, struct hardware *machine,
                      struct import_report *report)
{
    for (uint32_t d = 0; d < facts->gpus; d++) {
        struct hardware_device *device = &machine->devices[d];
        double rate = facts->link_speed[d] * 1e9 * reached;
        if (!(rate >= 1 && rate <= link_rate_max)) continue;
        machine->links[device->path[device->path_count - 1]].bandwidth =
            sourced_of(rate, reached_spread, SOURCE_DERIVED, "0.8 of the PCIe link's speed by hwloc", as_of);
        char what[64], text[QUANTITY_TEXT_BYTES];
        snprintf(what, sizeof what, "PCIe link of device %" PRIu32, d);
        say(report, what, quantity_text(rate, DIMENSION_BYTES_PER_S, text));
    }
}

enum status cli_import_hwloc(const char *path, const char *as_of, struct hardware *machine,
                             struct import_report *report, struct error *err)
{
    struct facts *facts = NULL;
    const char *date;
    TRY(arena_string(&machine->arena, as_of, &date, err));
    TRY(ask(path, &facts, err));
    uint32_t gpus = facts->gpus;
    enum status status = STATUS_OK;
    if (gpus > 0 && gpus != machine->device_count)
        status = error_set(err, STATUS_BAD_INPUT,
                           "%s: the topology has %" PRIu32 " GPUs (expected %" PRIu32 ", as '%s')", path, gpus,
                           machine->device_count, machine->name);
    if (!status) {
        set_host(facts, date, machine, report);
        set_links(facts, date, machine, report);
        status = hardware_check(machine, err);
    }
    free(facts);
    return status;
}
