/*
 * Tensor groups of a run. Passes carry out their groups' collectives themselves (exec/network/unit_group.h), on the
 * compute streams of all members. The plan has these collectives after the pass, all of a size as one operation, which
 * tells what they took, and waits for the rest of their time on paced links.
 */
#ifndef SPILLWAY_EXEC_GROUP_RUN_SPLIT_H
#define SPILLWAY_EXEC_GROUP_RUN_SPLIT_H

#include "exec/state/run_loop.h"

/* Returns the part of the operation's rank; NULL without a tensor group. */
const struct unit_split *run_split_of(const struct run *run, const struct plan_walk_op *op);

/* Enqueues a collective of a tensor group after its pass. */
MUST_CHECK enum status run_split_enqueue(struct run *run, const struct plan_walk_op *op, struct run_flight *flight,
                                         struct error *err);

/* Divides the group of a shard's replica among processes; `first`: the place of its first member in the stage. Does
 * nothing without other ranks. */
MUST_CHECK enum status run_split_divide(struct run *run, uint32_t shard, uint32_t first, struct unit_group *group,
                                        struct error *err);

#endif
