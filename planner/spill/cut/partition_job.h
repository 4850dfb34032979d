/*
 * Cutting one job for one weight buffer size; nobody but partition_spilled.c includes this.
 *
 * Greedily: each shard as large as fits, which makes the fewest. Balanced: at the boundaries with which
 * the estimated times of the shards add up to the least, transfers of boundaries included, and of equal
 * sums the one with the fewest shards, the most even ones (boundaries.h). Both obey the same limits: a
 * shard's state fits a weight buffer, and scratch and kept activations what is left beside the weight buffers. An
 * embedding is a shard of its own either way.
 */
#ifndef SPILLWAY_PLANNER_PARTITION_JOB_H
#define SPILLWAY_PLANNER_PARTITION_JOB_H

#include "planner/spill/cut/partition_estimate.h"

/* Bytes of the weight buffer for the greediest unit of this shard, which is not an embedding. */
uint64_t partition_weight_buffer_need(const struct footprint *f, const struct job *job, bool last, uint32_t activations,
                                      uint32_t place);

/* Bytes of the smallest weight buffer for an embedding: a row of it at a time, if it may be cut; all of it; nothing. */
uint64_t partition_embedding_need(const struct footprint *f, const struct job *job, uint32_t place);

/* How the greediest unit of a shard computes. */
uint32_t partition_unit_way(const struct candidate *c, const struct job *job, bool last);

/* Cut one job greedily. *fits false: it does not. `room` is what is left for workspace and kept
 * activations together. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status partition_cut_greedy(const struct cutter *cutter, const struct candidate *c,
                                            uint32_t j, uint64_t room, struct job_cut *cut, bool *fits,
                                            struct error *err);

/* What a job shares with others that are cut already. */
struct partition_room {
    uint64_t bytes;           /* for workspace and kept activations together */
    uint64_t workspace_bytes; /* the most that others need */
    uint64_t keep_bytes;      /* of others; they have them in turn with this job */
    uint32_t copies;          /* jobs alike that keep activations at the same time, this one included */
};

/* Cut a job anew that was cut greedily and fits this room, if its minibatch is estimated to take no longer
 * so; else the cut stays as it is.
 * Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status partition_cut_balanced(const struct cutter *cutter, const struct candidate *c,
                                              uint32_t j, const struct partition_room *room,
                                              struct job_cut *cut, struct error *err);

/* The smallest weight buffer that this cut can do with. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status partition_weight_buffer_used(const struct cutter *cutter, const struct candidate *c,
                                                    uint32_t j, const struct job_cut *cut, uint64_t *bytes,
                                                    struct error *err);

#endif
