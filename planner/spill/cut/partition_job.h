/*
 * Greedy cuts have the largest shards that fit. Balanced cuts have the least sum of estimated times, transfers of
 * boundaries included; then the fewest shards, then the most even ones (boundaries.h). In both, a shard's state fits a
 * weight buffer, and scratch and kept activations fit the rest. An embedding is a shard of its own.
 */
#ifndef SPILLWAY_PLANNER_SPILL_CUT_PARTITION_JOB_H
#define SPILLWAY_PLANNER_SPILL_CUT_PARTITION_JOB_H

#include "planner/spill/cut/partition_estimate.h"

/* Returns the weight buffer that a shard without embedding needs at most. */
uint64_t partition_weight_buffer_need(const struct footprint *f, const struct job *job, bool last, uint32_t activations,
                                      uint32_t place);

/* Returns an embedding's smallest weight buffer: one row, if it may be cut; all of it; 0. */
uint64_t partition_embedding_need(const struct footprint *f, const struct job *job, uint32_t place);

/* Returns the way of computing with the shard's largest need. */
uint32_t partition_unit_way(const struct partition_candidate *c, const struct job *job, bool last);

/* Cuts one job greedily. *fits false: it does not fit. `room`: bytes for workspace and kept activations. */
MUST_CHECK enum status partition_cut_greedy(const struct partition_cutter *cutter, const struct partition_candidate *c,
                                            uint32_t j, uint64_t room, struct partition_job_cut *cut, bool *fits,
                                            struct error *err);

/* Memory shared with jobs cut already. */
struct partition_room {
    uint64_t bytes;           /* for workspace and kept activations together */
    uint64_t workspace_bytes; /* largest need of the others */
    uint64_t keep_bytes;      /* kept by the others; this job takes turns in them */
    uint32_t copies;          /* equal jobs that keep activations at once, with this one */
};

/* Cuts a greedily cut job again within this room, if its minibatch is estimated to take no longer; else the cut
 * stays. */
MUST_CHECK enum status partition_cut_balanced(const struct partition_cutter *cutter,
                                              const struct partition_candidate *c,
                                              uint32_t j, const struct partition_room *room,
                                              struct partition_job_cut *cut, struct error *err);

/* Finds the smallest weight buffer for this cut. */
MUST_CHECK enum status partition_weight_buffer_used(const struct partition_cutter *cutter,
                                                    const struct partition_candidate *c,
                                                    uint32_t j, const struct partition_job_cut *cut, uint64_t *bytes,
                                                    struct error *err);

#endif
