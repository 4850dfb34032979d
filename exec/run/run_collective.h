/*
 * Collectives over the memory of a process: each member's stream calls run_collective_join(), waits for all others, and
 * computes its share of the result from all members' memory.
 *
 * Order of sums: by member, ((x0 + x1) + x2) + ..., whatever the timing.
 */
#ifndef SPILLWAY_EXEC_RUN_RUN_COLLECTIVE_H
#define SPILLWAY_EXEC_RUN_RUN_COLLECTIVE_H

#include "exec/state/run_state.h"
#include "planner/walk/plan_walk.h"

/*
 * Enqueues a member's part of an all-reduce of fp32 sums: `values` of `count` numbers, replaced by the sums over all
 * members. The members of a collective follow each other (plan_walk.h). Beyond its job's limit it does nothing, for all
 * members alike, and *omitted is set. *timing begins when the last member has come.
 */
MUST_CHECK enum status run_collective_enqueue(struct run *run, const struct plan_walk_op *op, float *values,
                                              uint64_t count, bool *omitted, struct device_timing *timing,
                                              struct error *err);

/* Wakes all streams that wait for members, before devices are stopped. */
void run_collective_cancel(struct run *run);

/* Frees what is left after devices were stopped. */
void run_collective_release(struct run *run);

#endif
