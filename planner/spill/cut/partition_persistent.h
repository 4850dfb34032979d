/*
 * Persistent shards: spare memory of a device's arena keeps the states of some shards from their job's first minibatch
 * to its last. They are updated in place and cross no link in between.
 *
 * Each staying byte saves the same traffic, so every job keeps the same share of its shards, spread evenly, beginning
 * with the first. A minibatch ends with the first shard and the next begins with it, so its state need not go out and
 * back while nothing else can run. While a persistent shard computes, the next spilled one comes in. An embedding cut
 * into rows does not stay.
 *
 * A job with persistent shards stays on one device; so there are none when a policy moves jobs between devices.
 *
 * Source: the persistent parameters of DeepSpeed's ZeRO-3 and of chunk-based memory management (Colossal-AI's Gemini,
 * arXiv 2108.05818).
 */
#ifndef SPILLWAY_PLANNER_SPILL_CUT_PARTITION_PERSISTENT_H
#define SPILLWAY_PLANNER_SPILL_CUT_PARTITION_PERSISTENT_H

#include "planner/spill/cut/partition_estimate.h"

/*
 * Marks persistent shards in the cuts (by job; only twins' cuts are filled), if the estimate says that this saves time.
 * `room`: bytes for workspace, kept activations (`keep`) and persistent states together. *workspace grows with the need
 * of persistent shards.
 */
MUST_CHECK enum status persistent_choose(const struct partition_cutter *cutter, const struct partition_candidate *c,
                                         struct partition_job_cut *cuts, uint64_t room, uint64_t keep,
                                         uint64_t *workspace, struct error *err);

#endif
