/*
 * Collectives over the memory of a process: each member's stream waits for all others, and computes its share of the
 * result from all members' memory. Sums with members of other processes: exec/ranks/rank_sum.h.
 *
 * Order of sums: by member, ((x0 + x1) + x2) + ..., or as a tree (models/job/parallel.h), whatever the timing.
 */
#ifndef SPILLWAY_EXEC_GROUP_RUN_COLLECTIVE_H
#define SPILLWAY_EXEC_GROUP_RUN_COLLECTIVE_H

#include "exec/state/run_state.h"
#include "planner/walk/plan_walk.h"

enum { RUN_COLLECTIVE_RANGES_MAX = 2 * CHUNK_SECTIONS_MAX };

/* A range of a member's share: in bytes from the beginning of whole data, and of its share alone. */
struct run_collective_range {
    uint64_t whole, share, bytes;
};

/*
 * A member's data, of which each member has a share:
 *
 *     all-reduce       `count` numbers at `to`, replaced by the sums over all members: fp32, norms fp64
 *     reduce-scatter   the member's share of the sums of whole data, `count` numbers at `from`, goes to its share at
 *                      `to`, or is added to it
 *     all-gather       all members' shares at their `from` go to the whole data at `to`
 *
 * `from` and `to` may be the same whole data, whose shares are in place.
 *
 * Where numbers to be added up are encoded (exec/kernels/kernels_code.h), their code is at the beginning of their
 * memory. Members decode each other's numbers and add them up in fp32. Each sum is rounded to the code, whether it is
 * sent or not, and decoded.
 */
struct run_collective_data {
    char *from, *to;
    bool adds;
    bool repeats; /* an all-reduce has an equal member's data already: these are left out of the sum. Not the first
                     member */
    enum compression_code code;
    uint64_t count;
    struct run_collective_range ranges[RUN_COLLECTIVE_RANGES_MAX];
    uint32_t range_count;
};

/*
 * Enqueues a member's part of a collective. The members of a collective follow each other (plan_walk.h). Beyond its
 * job's limit it does nothing, for all members alike, and *omitted is set. *timing begins when the last member has
 * come, and has the wait for it.
 */
MUST_CHECK enum status run_collective_enqueue(struct run *run, const struct plan_walk_op *op,
                                              const struct run_collective_data *data, bool *omitted,
                                              struct device_timing *timing, struct error *err);

/* Counts a member that another process has; its number in the collective is the operation's. Addresses in *data are not
 * used. */
MUST_CHECK enum status run_collective_enqueue_elsewhere(struct run *run, const struct plan_walk_op *op,
                                                        const struct run_collective_data *data, struct error *err);

/* Wakes all streams that wait for members, before devices are stopped. */
void run_collective_cancel(struct run *run);

/* Frees what is left after devices were stopped. */
void run_collective_release(struct run *run);

#endif
