#include "cli/common/cli_synonyms.h"

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
    {"train-micro-batch-size-per-gpu", "microbatch"},
    {"grad-accum", "gradient-accumulation-steps"},
    {"global-batch-size", "global-batch"},
    {"train-batch-size", "global-batch"},
    {"dtype", "precision"},
    {"recompute-granularity", "recompute"},
    {"history", "file"}, /* only of `history` */
    {NULL, NULL},
};

const struct option_synonym cli_former_names[] = {
    {"regions", "weight-buffers"},
    {"carried", "executed-order"},
    {NULL, NULL},
};
