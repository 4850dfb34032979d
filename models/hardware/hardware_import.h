/*
 * Measurements of other tools, laid over a machine that is known otherwise: a measured value takes the place of a
 * datasheet's, and says which tool it is from.
 *
 *   nvbandwidth -j JSON     or what it prints without -j. host_to_device_memcpy_ce and device_to_host_memcpy_ce: each device's
 *                           PCIe link, and of the type a point of the curves; device_to_device_memcpy_read_ce and
 *                           ..._write_ce: links of the innermost network that a device has for itself, and a point of "p2p".
 *                           Medians of rows or of devices, with half the range of their middle half as spread. The rest of a
 *                           file is not used.
 *   nccl-tests -J JSON      or its table: out of place, of all-reduce, all-gather or reduce-scatter, which one the two
 *                           bandwidths tell. A ring of n does 2 (n - 1) or n - 1 steps with messages of size / n: what a step
 *                           takes by the size of its message is the type's "ring" (models/hardware/hardware.h), which collectives
 *                           inside of a node go by (models/cost/collective_group.h). Of two ranks a broadcast looks like an
 *                           all-reduce.
 *
 * Cells of nvbandwidth are strings, "N/A" where there is none, GB/s of 10^9; times of nccl-tests are microseconds.
 *
 * Sources: nvbandwidth's README; nccl-tests' doc/PERFORMANCE.md for the factors between its bandwidths.
 */
#ifndef SPILLWAY_MODELS_HARDWARE_IMPORT_H
#define SPILLWAY_MODELS_HARDWARE_IMPORT_H

#include "models/hardware/hardware.h"

enum { IMPORT_LINES_MAX = 32, IMPORT_LINE_BYTES = 160 };

struct import_report {
    char lines[IMPORT_LINES_MAX][IMPORT_LINE_BYTES]; /* what was taken, and what was not */
    uint32_t count;
};

/*
 * Change `machine` by the file, whose kind its beginning tells. as_of: when it was measured, for the figures; borrowed
 * texts are copied to the machine's arena.
 * Errors: STATUS_BAD_INPUT with file, line and column for what is none of these, for another number of devices, and where
 * nothing could be used; STATUS_IO, STATUS_NO_MEMORY.
 */
MUST_CHECK enum status hardware_import(const char *path, const char *as_of, struct hardware *machine,
                                       struct import_report *report, struct error *err);

/* The same of a text, `name` being for messages. */
MUST_CHECK enum status hardware_import_text(const char *name, const char *text, size_t length, const char *as_of,
                                            struct hardware *machine, struct import_report *report, struct error *err);

#endif
