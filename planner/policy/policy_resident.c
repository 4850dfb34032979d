/*
 * Policies whose shards stay on their devices.
 *
 * Model parallelism: a job's stages fill all devices, one job after the other; one device computes at a time. Shard
 * parallelism (arXiv 2107.06469): all fitting jobs are resident and their stages interleave; the longest remaining job
 * first.
 */
#include "planner/policy/policies.h"

const struct policy policy_model_parallel = {
    .version = SPILLWAY_POLICY_VERSION,
    .name = "model-parallel",
    .summary = "resident stages on all devices, one job after the other",
    .rank = policy_remaining,
    .resident = true,
    .seats_max = 1,
};

const struct policy policy_shard_parallel = {
    .version = SPILLWAY_POLICY_VERSION,
    .name = "shard-parallel",
    .summary = "resident stages of several jobs interleaved (arXiv 2107.06469)",
    .rank = policy_remaining,
    .resident = true,
    .seats_max = UINT32_MAX,
};
