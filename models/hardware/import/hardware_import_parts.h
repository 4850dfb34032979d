/* Shared by the readers of models/hardware/import/hardware_import.h. */
#ifndef SPILLWAY_MODELS_HARDWARE_IMPORT_HARDWARE_IMPORT_PARTS_H
#define SPILLWAY_MODELS_HARDWARE_IMPORT_HARDWARE_IMPORT_PARTS_H

#include "models/hardware/import/hardware_import.h"

struct import {
    const char *name, *as_of; /* the file; the date of its values */
    struct hardware *machine;
    struct import_report *report;
};

void import_say(struct import *import, const char *format, ...) PRINTF_LIKE(2, 3);

/* The median and the spread (half the interquartile range over the median). Sorts `values`; count > 0. */
struct import_middle {
    double value, spread;
};
struct import_middle import_middle(double *values, uint32_t count);

/* Makes a value; `source` is borrowed and must live as long as the machine. */
struct sourced_value import_sourced(const struct import *import, double value, double spread, const char *source);

/* One message size of a ring's step. */
struct import_nccl_row {
    uint64_t bytes;
    double time_us, alg_bw, bus_bw;
};

/* Returns the rows of an nvbandwidth test: 1 for the host, or one per device; 0: not used. */
uint32_t import_bandwidth_rows(const struct import *import, const char *name);

/* Imports cells: (rows, devices) in GB/s, 0 for missing values; devices^2 cells of scratch follow after the first
 * devices^2. */
MUST_CHECK enum status import_bandwidths(struct import *import, const char *name, double *cells, struct error *err);

MUST_CHECK enum status import_nvbandwidth(struct import *import, const struct json_input *in, struct error *err);
MUST_CHECK enum status import_nvbandwidth_text(struct import *import, const char *text, size_t length,
                                               struct error *err);
MUST_CHECK enum status import_nccl_json(struct import *import, const struct json_input *in, struct error *err);
MUST_CHECK enum status import_nccl_table(struct import *import, const char *text, size_t length, struct error *err);

#endif
