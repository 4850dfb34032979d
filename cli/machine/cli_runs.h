/*
 * Measured training runs of GPT models from CSV. Empty lines and lines with "##" are skipped. The first line has the
 * columns in any order; unknown ones are errors.
 *
 *     required   # GPUs, global batch, micro batch, hidden size, attention heads, # layers, sequence length,
 *                tensor parallelism, data parallelism, pipeline parallelism, iteration time (ms)
 *     optional   recompute (none, selective, full or stage; else none), chunks (of the interleaved
 *                schedule; else 1), sequence parallelism (0 or 1), scatter (0 or 1), exposed (0 or 1),
 *                vocabulary (else 50257), zero (level 0 to 3; else 0), overlap (0 or 1), stack (frameworks or
 *                megatron-core; else frameworks), Parameters (billion), which is ignored
 *
 * Source of the names: VIA-Research/vTrain, data/ground_truth_single.csv (MIT licence).
 */
#ifndef SPILLWAY_CLI_MACHINE_CLI_RUNS_H
#define SPILLWAY_CLI_MACHINE_CLI_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

enum { MEASURED_RUNS_MAX = 1 << 16 };

enum run_column {
    RUN_DEVICES, RUN_BATCH, RUN_MICROBATCH, RUN_WIDTH, RUN_HEADS, RUN_LAYERS, RUN_SEQUENCE,
    RUN_TENSOR, RUN_DATA, RUN_PIPELINE,
    RUN_RECOMPUTE, /* enum parallel_recompute */
    RUN_CHUNKS, RUN_SEQUENCE_PARALLEL, RUN_SCATTER, RUN_EXPOSED, RUN_VOCABULARY, RUN_ZERO, RUN_OVERLAP,
    RUN_STACK, /* enum hardware_stack */
    RUN_COLUMNS
};

struct measured_run {
    uint32_t of[RUN_COLUMNS]; /* RUN_BATCH: of all replicas */
    double seconds;           /* per iteration, above 0 */
    uint32_t line;
};

struct measured_runs {
    const char *path; /* borrowed */
    struct measured_run *runs;
    uint32_t count;
};

/* Reads a file; *out lives as long as `arena`. Errors: STATUS_BAD_INPUT with file, line and column of the fault,
 * also if degrees and batches contradict each other; STATUS_IO, STATUS_LIMIT. */
MUST_CHECK enum status measured_runs_read(const char *path, struct arena *arena, struct measured_runs *out,
                                          struct error *err);

/* Convert columns and values; false for an unknown name or value. */
bool measured_runs_column(const char *name, enum run_column *out);
const char *measured_runs_column_name(enum run_column column);
bool measured_runs_value(enum run_column column, const char *text, uint32_t *out);
void measured_runs_value_text(enum run_column column, uint32_t value, char *text, size_t text_bytes);

#endif
