/*
 * How long would a minibatch take, cut like this? An estimate to compare cuts with, not a simulation;
 * nobody but the ways of cutting includes this.
 *
 * A spilled unit takes the largest of its computation, its copies in and its copies out (with two
 * weight buffers, in and out take turns; with one, everything does). While persistent shards compute, the
 * next spilled one comes in: they count as one unit with it. A job that is alone on its device waits
 * for its own copies besides; see partition_estimate.c.
 */
#ifndef SPILLWAY_PLANNER_PARTITION_ESTIMATE_H
#define SPILLWAY_PLANNER_PARTITION_ESTIMATE_H

#include "planner/spill/cut/partition_cutter.h"

/* What is tried for all jobs alike. */
struct candidate {
    uint32_t weight_buffer_count;
    uint64_t weight_buffer_bytes;
    uint32_t activations;
    bool loss_inputs; /* the last shards hold only the inputs of layers */
    uint32_t place; /* enum planner_place */
    bool keeps_first; /* bytes to spare go to activations before they go to states */
};

/* What passes of one minibatch take of a device and of the host's processor. */
struct seconds {
    double device, cpu;
};

/* What one job's cut comes to. */
struct job_cut {
    struct plan_shard *shards; /* room for layer_count of them */
    bool *on_cpu;              /* per shard: the optimizer, unless the shard is persistent */
    bool *persistent;          /* per shard */
    bool *kept;                /* per shard: its activations stay on the device, whatever the others' do */
    uint32_t count;
    uint64_t slice_rows;
    uint64_t workspace_bytes;
    uint64_t keep_bytes;
    uint64_t spilled_bytes;    /* activations in host memory */
    uint64_t persistent_bytes; /* of their states */
    struct seconds minibatch, persistent_minibatch; /* without and with persistent shards */
    double *ready_s;           /* scratch of the estimate: per shard */
};

/* Where the optimizers of this job are when the others' are at `place`: one that clips has no choice. */
uint32_t estimate_place(const struct job *job, uint32_t place);

/* May the host's processor have the optimizer of some shard of this job? */
bool estimate_uses_cpu(const struct job *job, uint32_t place);

/* An embedding of the host's processor needs nothing of a device. */
bool estimate_embedding_on_cpu(const struct job *job, uint32_t place);

/* A spilled shard's passes alone. `f` is its footprint. */
struct seconds estimate_shard(const struct cutter *cutter, const struct candidate *c, uint32_t job,
                              const struct plan_shard *shard, const struct footprint *f,
                              bool on_cpu);

/* All passes of a job's cut, in their order. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status estimate_minibatch(const struct cutter *cutter, const struct candidate *c,
                                          uint32_t job, const struct job_cut *cut,
                                          struct seconds *out, struct error *err);

/* The time of a minibatch while devices and processor work side by side, or share cores. */
double estimate_together(const struct cutter *cutter, struct seconds s);

/* By more than what adding up in another order makes of the same sum? */
static inline bool estimate_longer(double seconds, double than_s)
{
    return seconds > than_s * (1 + 1e-9);
}

#endif
