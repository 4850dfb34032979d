/*
 * Estimates a minibatch's time to compare cuts; it is not a simulation.
 *
 * A spilled unit takes the largest of computation, copies in and copies out (with two weight buffers, in and out
 * alternate; with one, all three do). While persistent shards compute, the next spilled one comes in: they count as one
 * unit. A job by itself on its device also waits for its own copies (partition_estimate.c).
 */
#ifndef SPILLWAY_PLANNER_SPILL_CUT_PARTITION_ESTIMATE_H
#define SPILLWAY_PLANNER_SPILL_CUT_PARTITION_ESTIMATE_H

#include "planner/spill/cut/partition_cutter.h"

/* Parameters that are tried for all jobs alike. */
struct partition_candidate {
    uint32_t weight_buffer_count;
    uint64_t weight_buffer_bytes;
    uint32_t activations;
    bool loss_inputs; /* last shards hold only inputs of layers */
    uint32_t place; /* enum planner_place */
    bool keeps_first; /* spare bytes go to activations before states */
};

/* A minibatch's passes on a device and on the host's processor. */
struct partition_seconds {
    double device, cpu;
};

/* The cut of one job. */
struct partition_job_cut {
    struct plan_shard *shards; /* room for layer_count shards */
    bool *on_cpu;              /* per shard: the optimizer, unless the shard is persistent */
    bool *persistent;          /* per shard */
    bool *kept;                /* per shard: its activations stay, whatever the others do */
    uint32_t count;
    uint64_t slice_rows;
    uint64_t workspace_bytes;
    uint64_t keep_bytes;
    uint64_t spilled_bytes;    /* activations in host memory */
    uint64_t persistent_bytes;                                /* bytes of their states */
    struct partition_seconds minibatch, persistent_minibatch; /* without and with persistent shards */
    double *ready_s;           /* scratch of the estimate: per shard */
};

/* Returns the place of this job's optimizers when others' are at `place`: a job that clips has no choice. */
uint32_t estimate_place(const struct job *job, uint32_t place);

/* Returns true if the host's processor may have some shard's optimizer. */
bool estimate_uses_cpu(const struct job *job, uint32_t place);

/* Returns true if the host's processor computes the embedding. */
bool estimate_embedding_on_cpu(const struct job *job, uint32_t place);

/* Returns the time of a spilled shard's passes only. */
struct partition_seconds estimate_shard(const struct partition_cutter *cutter, const struct partition_candidate *c,
                                        uint32_t job, const struct plan_shard *shard, const struct footprint *f,
                                        bool on_cpu);

/* Estimates all passes of a cut in order. */
MUST_CHECK enum status estimate_minibatch(const struct partition_cutter *cutter, const struct partition_candidate *c,
                                          uint32_t job, const struct partition_job_cut *cut,
                                          struct partition_seconds *out, struct error *err);

/* Returns a minibatch's time while devices and processor work in parallel, or share cores. */
double estimate_together(const struct partition_cutter *cutter, struct partition_seconds s);

/* Returns true if `seconds` is longer by more than rounding. */
static inline bool estimate_longer(double seconds, double than_s)
{
    return seconds > than_s * (1 + 1e-9);
}

#endif
