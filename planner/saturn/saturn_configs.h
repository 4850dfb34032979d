/*
 * The configurations of a job from which Saturn chooses (planner/saturn/saturn.h).
 *
 *     way         devices   parallelism                                kept activations
 *     one device     1      resident                                   all; where that does not fit, inputs
 *     data           k      replicas, gradients in chunks of a block     likewise
 *     fsdp           k      the same, weights, gradients and states split (ZeRO-3)
 *     pipeline       k      one forward, one backward (1F1B)
 *     tensor         k      Megatron's, with sequence parallelism where tokens divide; on hosts without it, too
 *     spilled        1      shards through one device (planner/spill/cut/partition.h)
 *
 * k is each number of devices up to eight, then the numbers that divide a node or are a power of two. Samples and their
 * microbatches are the job's: data parallelism and pipelines need several.
 *
 * Source: Saturn, PVLDB 17(4), sec. 2: DDP, FSDP, GPipe and spilling; tensor parallelism is our addition.
 */
#ifndef SPILLWAY_PLANNER_SATURN_SATURN_CONFIGS_H
#define SPILLWAY_PLANNER_SATURN_SATURN_CONFIGS_H

#include "models/job/job.h"

enum saturn_way {
    SATURN_ONE_DEVICE,
    SATURN_DATA,
    SATURN_FSDP,
    SATURN_PIPELINE,
    SATURN_TENSOR,
    SATURN_SPILLED,
    SATURN_AS_GIVEN, /* the job gives its own parallelism */
    SATURN_WAYS
};
extern const char *const saturn_way_names[SATURN_WAYS]; /* "one-device", "data", ... */

enum { SATURN_CONFIGS_MAX = 128 };

struct saturn_config {
    enum saturn_way way;
    uint32_t devices;
    struct parallel parallel; /* not set for SATURN_SPILLED */
};

/* Lists the configurations of a job on a node of `devices` that parallel_check() accepts; they may still not fit. `out`
 * has room for SATURN_CONFIGS_MAX. Tensor groups have sequence parallelism where tokens divide; those that host devices
 * of `hardware` carry out are listed without it, too. NULL: a machine that is only simulated. */
uint32_t saturn_configs(const struct job *job, uint32_t devices, const struct hardware *hardware,
                        struct saturn_config *out);

/* Keeps less for backward passes. Returns false when the configuration already keeps the least. */
bool saturn_config_keep_less(struct saturn_config *config);

#endif
