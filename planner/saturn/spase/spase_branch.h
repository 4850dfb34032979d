/*
 * Is there a schedule of a small SPASE instance that ends by a given time? Depth-first search with
 * slack budgets, for proofs of optimality and for lower bounds by refutation.
 *
 * Time goes forward: at the next time at which a node has free devices, a set of gangs starts there;
 * what stays idle is idle until the node's next gang ends. A partial schedule is given up when a job no
 * longer fits, when the devices cannot hold what is left (spase_stack.h), when the scaled rows of spase_bound.h
 * say so, when idle devices could have been used, or when one that was looked at before had the same jobs left
 * and was nowhere later (whole states are compared, so nothing rests on hashes).
 */
#ifndef SPILLWAY_PLANNER_SPASE_BRANCH_H
#define SPILLWAY_PLANNER_SPASE_BRANCH_H

#include "planner/saturn/spase/spase_schedule.h"

enum { SPASE_BRANCH_JOBS_MAX = 64, SPASE_BRANCH_DEVICES_MAX = 64 };
#define SPASE_BRANCH_TICKS_MAX (INT64_C(1) << 30)

struct spase_branch_options {
    uint64_t nodes_max;  /* 0: no limit */
    double until_s;      /* on the clock of base/process/progress.h; HUGE_VAL: none */
    size_t memory_bytes; /* for states to compare with; 0: 256 MiB. When it is full the search goes
                            on, slower */
};

enum spase_answer { SPASE_YES, SPASE_NO, SPASE_UNKNOWN };

/*
 * *answer SPASE_YES: steps[] (in->job_count) is the order, with nodes, of a schedule of at most `limit`.
 * SPASE_NO: there is none. SPASE_UNKNOWN: stopped by a limit. *nodes: partial schedules looked at, added
 * to what is there. Deterministic but for `until_s`.
 * Errors: STATUS_LIMIT for an instance that spase_branch_takes() refuses; STATUS_NO_MEMORY.
 */
MUST_CHECK enum status spase_branch(const struct spase *in, int64_t limit,
                                    const struct spase_branch_options *options, enum spase_answer *answer,
                                    struct spase_step *steps, uint64_t *nodes, struct error *err);

/* Few enough jobs, devices and ticks, and no gang that spans? */
bool spase_branch_takes(const struct spase *in, int64_t limit);

#endif
