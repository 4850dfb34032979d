/* What the readers of models/hardware/hardware_import.h share. */
#ifndef SPILLWAY_MODELS_HARDWARE_IMPORT_PARTS_H
#define SPILLWAY_MODELS_HARDWARE_IMPORT_PARTS_H

#include "models/hardware/hardware_import.h"

struct import {
    const char *name, *as_of; /* of the file; of its figures */
    struct hardware *machine;
    struct import_report *report;
};

void import_say(struct import *import, const char *format, ...) PRINTF_LIKE(2, 3);

/* Median, and half the range of the middle half over it; sorts. count > 0. */
struct import_middle {
    double value, spread;
};
struct import_middle import_middle(double *values, uint32_t count);

/* A measured figure of the machine's; `source` is borrowed from whoever lives as long. */
struct figure import_figure(const struct import *import, double value, double spread, const char *source);

/* One message size of a ring's step, from one result of nccl-tests. */
struct nccl_row {
    uint64_t bytes;
    double time_us, alg_bw, bus_bw;
};

/* Rows become the type's ring; `line` is where the first stands. Errors: STATUS_BAD_INPUT, STATUS_NO_MEMORY. */
MUST_CHECK enum status import_ring(struct import *import, const struct nccl_row *rows, uint32_t count, uint32_t ranks,
                                   unsigned long line, struct error *err);

/* Rows of the matrix that a test of nvbandwidth has: one for the host or one for each device; 0: it is not used. */
uint32_t import_bandwidth_rows(const struct import *import, const char *name);

/* Such a matrix onto the machine. cells: (rows, devices) GB/s, 0 where there is none, with devices^2 of scratch behind
 * the first devices^2. */
MUST_CHECK enum status import_bandwidths(struct import *import, const char *name, double *cells, struct error *err);

MUST_CHECK enum status import_nvbandwidth(struct import *import, const struct json_input *in, struct error *err);
MUST_CHECK enum status import_nvbandwidth_text(struct import *import, const char *text, size_t length, struct error *err);
MUST_CHECK enum status import_nccl_json(struct import *import, const struct json_input *in, struct error *err);
MUST_CHECK enum status import_nccl_table(struct import *import, const char *text, size_t length, struct error *err);

#endif
