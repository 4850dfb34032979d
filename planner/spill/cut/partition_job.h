/*
 * Cuts one job for one weight buffer size.
 *
 * Greedy: the largest shards that fit, which makes the fewest. Balanced: boundaries with the least sum of the shards'
 * estimated times, transfers of boundaries included; of equal sums the fewest shards, and of these the most even ones
 * (boundaries.h). Both obey the same limits: a shard's state fits a weight buffer; scratch and kept activations fit the
 * memory that the weight buffers leave. An embedding is always a shard of its own.
 */
#ifndef SPILLWAY_PLANNER_SPILL_CUT_PARTITION_JOB_H
#define SPILLWAY_PLANNER_SPILL_CUT_PARTITION_JOB_H

#include "planner/spill/cut/partition_estimate.h"

/* Returns the bytes of the weight buffer that this shard, not an embedding, needs at most. */
uint64_t partition_weight_buffer_need(const struct footprint *f, const struct job *job, bool last, uint32_t activations,
                                      uint32_t place);

/* Returns the bytes of the smallest weight buffer for an embedding: one row, if it may be cut; all of it; 0. */
uint64_t partition_embedding_need(const struct footprint *f, const struct job *job, uint32_t place);

/* Returns the way of computing of a shard's unit with the largest need. */
uint32_t partition_unit_way(const struct partition_candidate *c, const struct job *job, bool last);

/* Cuts one job greedily. *fits false: it does not fit. `room`: bytes for workspace and kept activations together. */
MUST_CHECK enum status partition_cut_greedy(const struct partition_cutter *cutter, const struct partition_candidate *c,
                                            uint32_t j, uint64_t room, struct partition_job_cut *cut, bool *fits,
                                            struct error *err);

/* Memory that a job shares with jobs that are cut already. */
struct partition_room {
    uint64_t bytes;           /* for workspace and kept activations together */
    uint64_t workspace_bytes; /* largest need of the others */
    uint64_t keep_bytes;      /* kept by the others, which use it in turn with this job */
    uint32_t copies;          /* equal jobs that keep activations at the same time, this one included */
};

/* Cuts a job again that was cut greedily and fits this room, if its minibatch is estimated to take no longer; else
 * the cut stays as it is. */
MUST_CHECK enum status partition_cut_balanced(const struct partition_cutter *cutter, const struct partition_candidate *c,
                                              uint32_t j, const struct partition_room *room,
                                              struct partition_job_cut *cut, struct error *err);

/* Finds the smallest weight buffer for this cut. */
MUST_CHECK enum status partition_weight_buffer_used(const struct partition_cutter *cutter, const struct partition_candidate *c,
                                                    uint32_t j, const struct partition_job_cut *cut, uint64_t *bytes,
                                                    struct error *err);

#endif
