/*
 * Decides whether a schedule of a small SPASE instance ends by a given time: depth-first search with slack budgets, for
 * proofs of optimality and bounds by refutation.
 *
 * Time goes forward: when a node next has free devices, a set of gangs starts there; others idle until its next gang
 * ends. A partial schedule is dropped when a job no longer fits, when the devices cannot hold the remaining jobs
 * (spase_stack.h), when spase_bound.h's rows refute it, when idle devices could have been used, or when an earlier one
 * had the same jobs left and was nowhere later (whole states are compared, not hashes).
 */
#ifndef SPILLWAY_PLANNER_SATURN_SPASE_SPASE_BRANCH_H
#define SPILLWAY_PLANNER_SATURN_SPASE_SPASE_BRANCH_H

#include "planner/saturn/spase/spase_schedule.h"

enum { SPASE_BRANCH_JOBS_MAX = 64, SPASE_BRANCH_DEVICES_MAX = 64 };
#define SPASE_BRANCH_TICKS_MAX (INT64_C(1) << 30)

struct spase_branch_options {
    uint64_t nodes_max;  /* 0: no limit */
    double until_s;      /* on the clock of base/process/clock.h; HUGE_VAL: none */
    size_t memory_bytes; /* for states to compare with; 0: 256 MiB. When full the search is slower */
};

enum spase_answer { SPASE_YES, SPASE_NO, SPASE_UNKNOWN };

/*
 * *answer SPASE_YES: steps[] (in->job_count) is the order, with nodes, of a schedule of at most `limit`. SPASE_NO: none
 * exists. SPASE_UNKNOWN: stopped by a limit. *nodes: number of partial schedules, added to its value. Deterministic
 * unless `until_s` ends it. Errors: STATUS_LIMIT for an instance that spase_branch_takes() refuses.
 */
MUST_CHECK enum status spase_branch(const struct spase *in, int64_t limit,
                                    const struct spase_branch_options *options, enum spase_answer *answer,
                                    struct spase_step *steps, uint64_t *nodes, struct error *err);

/* Returns true for few jobs, devices and ticks, without gangs that span. */
bool spase_branch_takes(const struct spase *in, int64_t limit);

#endif
