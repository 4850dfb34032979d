/* Topologies of hwloc on any bytes: refused with a message, or a machine whose figures are figures. */
#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include <hwloc.h>

#include "cli/machine/cli_import_hwloc.h"
#include "tests/support/fuzz_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static hwloc_topology_t first; /* while there is one, hwloc does not load its plugins again */
    static struct import_report report;
    if (!first && hwloc_topology_init(&first) != 0) abort();
    struct hardware machine = {0};
    struct error err = {0};
    struct fuzz_file file = fuzz_file_make(data, size);
    if (hardware_find("2x a100-sxm4-40gb", &machine, &err) != STATUS_OK) abort();
    report.count = 0;
    enum status status = cli_import_hwloc(file.path, "2026-11-22", &machine, &report, &err);
    assert(status == STATUS_OK || err.text[0]);
    assert(report.count <= IMPORT_LINES_MAX);
    for (uint32_t l = 0; l < machine.link_count; l++)
        assert(isfinite(machine.links[l].bandwidth.value) && machine.links[l].bandwidth.value > 0);
    assert(isfinite(machine.host_bytes.value) && machine.host_bytes.value > 0);
    hardware_release(&machine);
    close(file.descriptor);
    return 0;
}
