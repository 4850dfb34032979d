/*
 * One table, so that an option has the same heading everywhere. A name with another meaning in one verb has its own
 * row ("mem optimizer").
 */
#include "cli/common/cli_option_groups.h"

#include <stddef.h>

#define NAMES(...) (const char *const[]){__VA_ARGS__, NULL}

const struct option_group cli_option_groups[] = {
    {"network", NAMES("microbatch", "mem microbatches", "gradient-accumulation-steps", "global-batch", "sequence",
                      "decoder-sequence", "image-size", "precision", "gradients", "mem optimizer",
                      "jobs new microbatches", "jobs new optimizer", "lora-rank", "lora-targets",
                      "jobs new minibatches", "jobs new data", "models show optimizer", "tokens", "way", "largest",
                      "job")},
    {"text", NAMES("tokenizer", "documents", "rows", "field", "template", "end", "bare", "skip-bad-lines",
                   "tokenize threads")},
    {"policy and search", NAMES("policy", "policies", "dispatch", "schedule-from", "runnable", "iterations",
                                "time-limit", "seed", "solver", "interval", "threshold", "restart", "placement",
                                "shape")},
    {"machine", NAMES("hw", "devices", "device-memory", "host-memory", "storage-memory", "storage-rate", "link-rate",
                      "p2p-rate", "nic-rate", "no-p2p", "threads", "dilate", "matmul-efficiency", "no-tf32", "stack")},
    {"parallelism", NAMES("parallel", "schedule", "recompute", "collective", "partition", "compress", "levels", "by",
                          "memory", "microbatches")},
    {"memory", NAMES("activations", "rule", "optimizer", "stored", "keep-outputs", "weight-buffers", "cuts", "shards",
                     "no-double-buffer", "no-persistence")},
    {"simulation", NAMES("scale", "slow", "noise", "simulate seeds", "failures", "runs", "collectives",
                         "demand-first", "no-fold", "caching-allocator", "contents", "rate-scale", "objective-scale",
                         "cv", "batch", "admit-all")},
    {"swarm", NAMES("wiring", "rebalance", "no-rebalance", "swarm link-rate", "latency", "steps", "alone")},
    {"time and price", NAMES("deadline", "max-cost", "prices", "price", "usd-per-gpu-hour", "watt-price", "basis",
                             "today")},
    {"execution", NAMES("on-nan", "keep-going", "tf32", "nccl-sums", "run storage", "resume", "hosts")},
    {"checkpoints", NAMES("checkpoint", "checkpoint-every", "keep")},
    {"measurement", NAMES("budget", "backend", "storage", "as-of")},
    {"fit", NAMES("half", "hold-out", "folds", "weight", "calibrate keep")},
    {"cases", NAMES("workloads", "family", "seeds", "bench noise", "bench real", "limit", "cases", "policy test memory",
                    "policy test seed", "policy test keep", "counterfactual", "library", "bench time-limit")},
    {"grid", NAMES("vary", "figure", "processes")},
    {"set-up", NAMES("real", "repro run steps", "set", "check", "workers", "repro run time-limit",
                     "repro all time-limit", "papers")},
    {"rows", NAMES("last", "verb", "history policy", "history hw", "since", "error-by", "file")},
    {"pictures", NAMES("plot", "sensitivity", "curves", "heat", "front", "script", "title", "width", "from", "to",
                       "measured", "keep-script")},
    {"output", NAMES("output", "trace", "log", "executed-order", "no-weights", "write-instance", "network",
                     "partition scale", "write-lp", "write-mps", "timeline", "layers", "route", "minibatches",
                     "max-error", "worst", "more", "no-purchases", "no-memory", "csv", "markdown", "verbose",
                     "history", "report", "force", "json", "quiet", "help")},
    {NULL, NULL},
};
