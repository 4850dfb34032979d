/*
 * Proves that a plan cannot go wrong, without code of the planner, the walk or the interpreters.
 *
 * It names the first broken rule (STATUS_CHECK) with its place ("task 12, operation 3 (job-a shard 2 backward)"):
 *
 *     form       indexes in range; streams fit operations; a copy has one host and one device end, in the
 *                direction of its stream, and stays within both buffers; an operation accesses only buffers that
 *                it uses, each once; buffers have different names; slots are on 64-byte boundaries
 *     memory     host buffers within host memory; slots within every device that uses them; no two live buffers
 *                overlap; buffers fit their slots and are as large as their use needs
 *     lifetimes  no buffer is read or released that is not live, or was never written; no buffer is acquired
 *                twice, and none is live at the end
 *     waiting    "after" points backward to an existing operation (else: deadlock)
 *     training   each job does each unit of each minibatch once, in order (2 S - 1 of them; forward, loss,
 *                backward; S updates more where it clips), LOAD once before and STORE once after; slices cover all
 *                rows, in order; a compute reads the current state, batch and boundaries of its minibatch -
 *                versions are followed through every copy - and writes the data that others need; each loss
 *                reaches the host; at the end every state on the host is the last version
 *     layers     the shards of a job partition its layers, with the embedding as a shard of its own
 *     work       each compute carries the work that models/ computes for it
 *
 * Cost: linear in the operations, where like repetitions of a segment count once (plan_check_repeat.c); memory in the
 * size of the tables.
 */
#ifndef SPILLWAY_PLANNER_CHECK_PLAN_CHECK_H
#define SPILLWAY_PLANNER_CHECK_PLAN_CHECK_H

#include "planner/plan.h"

MUST_CHECK enum status plan_check(const struct plan *plan, struct error *err);

#endif
