/*
 * Imports measurements of other tools into a known machine. A measured value replaces the datasheet's and names its
 * tool.
 *
 *   nvbandwidth -j JSON     or its output without -j. host_to_device_memcpy_ce and device_to_host_memcpy_ce: each
 *                           device's PCIe link, and a point of the type's curves. device_to_device_memcpy_read_ce and
 *                           ..._write_ce: links of the innermost network that belong to a single device, and a point of
 *                           "p2p". Values are medians over rows or devices, the spread is half the interquartile range.
 *                           The rest of the file is ignored.
 *   nccl-tests -J JSON      or its table: out-of-place results of all-reduce, all-gather or reduce-scatter. The ratio
 *                           of the two bandwidths tells the operation. A ring of n takes 2 (n - 1) or n - 1 steps with
 *                           messages of size / n. The time of a step by message size becomes the type's "ring"
 *                           (models/hardware/hardware.h), which collectives inside a node use
 *                           (models/cost/collective_group.h). With two ranks, a broadcast cannot be told from an
 *                           all-reduce.
 *
 * Cells of nvbandwidth are strings in GB/s of 10^9, or "N/A". Times of nccl-tests are microseconds.
 *
 * Sources: nvbandwidth's README; nccl-tests' doc/PERFORMANCE.md for the factors between its bandwidths.
 */
#ifndef SPILLWAY_MODELS_HARDWARE_IMPORT_HARDWARE_IMPORT_H
#define SPILLWAY_MODELS_HARDWARE_IMPORT_HARDWARE_IMPORT_H

#include "models/hardware/hardware.h"

enum { IMPORT_LINES_MAX = 32, IMPORT_LINE_BYTES = 160 };

struct import_report {
    char lines[IMPORT_LINES_MAX][IMPORT_LINE_BYTES]; /* values imported, values ignored */
    uint32_t count;
};

/*
 * Imports a file, whose beginning tells its format. `as_of` is the date of the measurement. Borrowed texts are copied
 * to the machine's arena.
 * Errors: STATUS_BAD_INPUT with file, line and column for an unknown format, a different number of devices, and a file
 * with no usable value; STATUS_IO.
 */
MUST_CHECK enum status hardware_import(const char *path, const char *as_of, struct hardware *machine,
                                       struct import_report *report, struct error *err);

/* Works on a text; `name` is for messages. */
MUST_CHECK enum status hardware_import_text(const char *name, const char *text, size_t length, const char *as_of,
                                            struct hardware *machine, struct import_report *report, struct error *err);

#endif
