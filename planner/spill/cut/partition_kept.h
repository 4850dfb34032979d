/*
 * Activations that stay on the device while other shards keep none: spare bytes save a forward pass or crossings of the
 * link.
 *
 * The choice along a chain (chain_keep.h) is exact by dynamic programming: most time saved within the available bytes.
 * It is taken only if the minibatch is estimated to be shorter. Among spilled units, shards that keep nothing use the
 * bytes in turn; each keeping shard has its own from one pass to the other, so that the order of passes does not
 * matter. Only in plans whose jobs stay on one device.
 */
#ifndef SPILLWAY_PLANNER_SPILL_CUT_PARTITION_KEPT_H
#define SPILLWAY_PLANNER_SPILL_CUT_PARTITION_KEPT_H

#include "planner/spill/cut/partition_estimate.h"

/* Returns true if shards may keep activations that others, by `c`, do not. */
bool kept_possible(const struct partition_cutter *cutter, const struct partition_candidate *c);

/*
 * Marks kept shards in the cuts (by job; only twins' cuts are filled). `room`: bytes for workspace, kept activations
 * and `persistent` bytes together. *keep is 0 and becomes the bytes of all kept activations; *workspace grows with a
 * keeping shard's need.
 */
MUST_CHECK enum status kept_choose(const struct partition_cutter *cutter, const struct partition_candidate *c,
                                   struct partition_job_cut *cuts, uint64_t room, uint64_t persistent,
                                   uint64_t *workspace, uint64_t *keep, struct error *err);

#endif
