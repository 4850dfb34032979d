/* See cli_synonyms.h. */
#include "cli/cli_synonyms.h"

#include <stddef.h>

const struct option_synonym cli_synonyms[] = {
    {"out", "output"},
    {"hardware", "hw"},
    {"machine", "hw"},
    {"seq", "sequence"},
    {"seq-len", "sequence"},
    {"seq-length", "sequence"},
    {"sequence-length", "sequence"},
    {"max-seq-length", "sequence"},
    {"micro-batch", "microbatch"},
    {"micro-batch-size", "microbatch"},
    {"microbatch-size", "microbatch"},
    {"batch-size-per-gpu", "microbatch"},
    {"per-device-train-batch-size", "microbatch"},
    {"grad-accum", "microbatches"},
    {"gradient-accumulation-steps", "microbatches"},
    {"dtype", "precision"},
    {"precision", "dtype"},
    {"recompute-granularity", "recompute"},
    {"history", "file"}, /* of `history` itself */
    {NULL, NULL},
};
