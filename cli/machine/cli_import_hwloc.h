/* A machine's topology as `lstopo --of xml` writes it, laid over a machine that is known otherwise. */
#ifndef SPILLWAY_CLI_IMPORT_HWLOC_H
#define SPILLWAY_CLI_IMPORT_HWLOC_H

#include "models/hardware/hardware_import.h"

/*
 * Host memory (all NUMA nodes together), cores, and of each GPU the speed of its PCIe link as it is negotiated, of which
 * copies are taken to reach 0.8. GPUs are NVIDIA's PCI devices that display or compute, in the order of the file.
 * Errors: STATUS_BAD_INPUT for what hwloc cannot load, which says no line, and for another number of GPUs than the
 * machine has (none is none said); STATUS_NO_MEMORY.
 */
MUST_CHECK enum status cli_import_hwloc(const char *path, const char *as_of, struct hardware *machine,
                                        struct import_report *report, struct error *err);

#endif
