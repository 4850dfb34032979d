/* A machine's topology, as `lstopo --of xml` writes it, added to a machine whose other values are known. */
#ifndef SPILLWAY_CLI_MACHINE_CLI_IMPORT_HWLOC_H
#define SPILLWAY_CLI_MACHINE_CLI_IMPORT_HWLOC_H

#include "models/hardware/hardware_import.h"

/*
 * Takes from the file host memory (the sum of all NUMA nodes), cores, and the negotiated speed of each GPU's PCIe link;
 * copies are assumed to reach 0.8 of it. GPUs are NVIDIA's PCI devices that display or compute, in the order of the
 * file. Errors: STATUS_BAD_INPUT, without a line, if hwloc cannot load the file, and if the number of GPUs differs from
 * the machine's (a file without GPUs is accepted).
 */
MUST_CHECK enum status cli_import_hwloc(const char *path, const char *as_of, struct hardware *machine,
                                        struct import_report *report, struct error *err);

#endif
