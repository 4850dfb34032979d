/*
 * Persistent shards: what a device's arena has to spare, once weight buffers, edges and scratch are taken
 * off, keeps the states of some shards from their job's first minibatch to its last. They are updated
 * where they are, and nothing of them crosses a link in between.
 *
 * Each byte that stays saves the same traffic whichever shard it belongs to, so every job keeps the
 * same share of its shards. They are spread evenly over the network, beginning with the first: it is
 * what a minibatch ends with and the next one begins with, so its state need not go out and come
 * back while nothing else can run; and while a persistent shard computes, the next spilled one has
 * that much longer to come in. An embedding, which is cut into rows, does not stay.
 *
 * A job with persistent shards runs on one device from its first unit to its last; so there are none
 * where a policy moves jobs between devices.
 *
 * Source: the persistent parameters of DeepSpeed's ZeRO-3 and of chunk-based memory management
 * (Colossal-AI's Gemini, arXiv 2108.05818), whose small or hot parameters are not offloaded.
 */
#ifndef SPILLWAY_PLANNER_PARTITION_PERSISTENT_H
#define SPILLWAY_PLANNER_PARTITION_PERSISTENT_H

#include "planner/spill/cut/partition_estimate.h"

/*
 * Mark persistent shards in the cuts (indexed by job; those of jobs that are their own twins are
 * filled), if that is estimated to save time. `room` is for workspace, kept activations (`keep`) and
 * persistent states together; *workspace is what the cuts need and grows where persistent shards need
 * more. Errors: STATUS_NO_MEMORY.
 */
MUST_CHECK enum status persistent_choose(const struct cutter *cutter, const struct candidate *c,
                                         struct job_cut *cuts, uint64_t room, uint64_t keep,
                                         uint64_t *workspace, struct error *err);

#endif
