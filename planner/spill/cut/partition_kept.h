/*
 * Activations that stay on the device though those of other shards of their job do not: where the
 * arena has bytes to spare, a shard need not be run forward again, nor its activations cross the link.
 *
 * Which ones is the choice between keep and recompute of a chain (chain_keep.h), exact by dynamic
 * programming: most time saved for the bytes that are there. It is taken only if the minibatch is
 * estimated to be shorter. Shards that keep nothing on a device whose units are spilled take the bytes
 * as they come; each shard's bytes are its own from one pass to the other, so that the order of passes
 * does not matter. Only on plans whose jobs stay on one device.
 */
#ifndef SPILLWAY_PLANNER_PARTITION_KEPT_H
#define SPILLWAY_PLANNER_PARTITION_KEPT_H

#include "planner/spill/cut/partition_estimate.h"

/* May shards keep what others do not, when these do as `c` says? */
bool kept_possible(const struct cutter *cutter, const struct candidate *c);

/*
 * Mark kept shards in the cuts (indexed by job; those of jobs that are their own twins are filled).
 * `room` is for workspace, kept activations and `persistent` bytes together; *keep is 0 and becomes the
 * bytes of all that is kept, *workspace grows where a shard that keeps needs more.
 * Errors: STATUS_NO_MEMORY.
 */
MUST_CHECK enum status kept_choose(const struct cutter *cutter, const struct candidate *c,
                                   struct job_cut *cuts, uint64_t room, uint64_t persistent,
                                   uint64_t *workspace, uint64_t *keep, struct error *err);

#endif
