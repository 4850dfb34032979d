/* Adds a topology of `lstopo --of xml` to a known machine. */
#ifndef SPILLWAY_CLI_MACHINE_CLI_IMPORT_HWLOC_H
#define SPILLWAY_CLI_MACHINE_CLI_IMPORT_HWLOC_H

#include "models/hardware/import/hardware_import.h"

/*
 * Takes host memory (all NUMA nodes), cores, and the negotiated speed of GPUs' PCIe links, 0.8 of which copies are
 * assumed to reach. GPUs are NVIDIA's PCI devices that display or compute, in the file's order. Errors:
 * STATUS_BAD_INPUT, without a line, if hwloc cannot load the file, and if the number of GPUs differs (none are
 * accepted).
 */
MUST_CHECK enum status cli_import_hwloc(const char *path, const char *as_of, struct hardware *machine,
                                        struct import_report *report, struct error *err);

#endif
