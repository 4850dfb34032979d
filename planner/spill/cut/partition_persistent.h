/*
 * Persistent shards: the memory of a device's arena that weight buffers, edges and scratch leave keeps the states of
 * some shards from their job's first minibatch to its last. They are updated in place, and nothing of them crosses a
 * link in between.
 *
 * Each staying byte saves the same traffic for any shard, so every job keeps the same share of its shards. They are
 * spread evenly over the network, beginning with the first. A minibatch ends with the first shard and the next one
 * begins with it, so its state need not go out and come back while nothing else can run. While a persistent shard
 * computes, the next spilled one has more time to come in. An embedding that is cut into rows does not stay.
 *
 * A job with persistent shards runs on one device from its first unit to its last; so there are none when a policy
 * moves jobs between devices.
 *
 * Source: the persistent parameters of DeepSpeed's ZeRO-3 and of chunk-based memory management (Colossal-AI's Gemini,
 * arXiv 2108.05818), whose small or hot parameters are not offloaded.
 */
#ifndef SPILLWAY_PLANNER_SPILL_CUT_PARTITION_PERSISTENT_H
#define SPILLWAY_PLANNER_SPILL_CUT_PARTITION_PERSISTENT_H

#include "planner/spill/cut/partition_estimate.h"

/*
 * Marks persistent shards in the cuts (indexed by job; only cuts of jobs that are their own twins are filled), if the
 * estimate says that this saves time. `room`: bytes for workspace, kept activations (`keep`) and persistent states
 * together. *workspace is the need of the cuts and grows when persistent shards need more.
 */
MUST_CHECK enum status persistent_choose(const struct partition_cutter *cutter, const struct partition_candidate *c,
                                         struct partition_job_cut *cuts, uint64_t room, uint64_t keep,
                                         uint64_t *workspace, struct error *err);

#endif
