/*
 * Breakages of plans, for the tests of the judge: each changes one thing in a correct plan and expects one exact
 * message.
 *
 * The network of the drafts is a GPT-2 of width 8, 96 words, 32 positions; microbatch 2, sequence 16, so a boundary has
 * 2 * 16 * 8 * 4 = 1024 bytes, the token table 96 * 8 * 4 = 3072, the embedding (96 + 32) * 32 = 4096 per part of its
 * state.
 */
#ifndef SPILLWAY_TESTS_SUPPORT_PLANNER_SUPPORT_BREAKAGE_H
#define SPILLWAY_TESTS_SUPPORT_PLANNER_SUPPORT_BREAKAGE_H

#include "tests/support/planner/support_plan.h"

/* One job of three shards (embedding, block, head), two minibatches, on one device: tasks
 *   0 forward 0   1 forward 1   2 loss   3 backward 1   4 backward 0   5 forward 0 ... */
#define SPILLED {.devices = 1, .jobs = 1, .middle = 1, .minibatches = 2}
#define SLICED {.devices = 1, .jobs = 1, .middle = 1, .minibatches = 2, .slices = 3}
#define RESIDENT {.devices = 1, .jobs = 1, .middle = 1, .minibatches = 2, .resident = true}

struct breakage {
    struct draft_shape shape;
    void (*in_draft)(struct draft *d);
    void (*in_plan)(struct plan *plan);
    const char *complaint; /* or how it begins, up to a blank, where the number of a table's kinds follows */
};

/* Builds a plan with each breakage, and fails unless plan_check() makes its complaint. */
void breakages_run(const struct breakage *breakages, size_t count);

/* Returns the operation of job 0 that accesses a buffer of this kind. */
struct draft_op *breakage_op(struct draft *d, uint32_t shard, uint32_t pass, uint32_t stream, uint32_t kind);

/* Returns the access of `kind` in the computation. */
struct draft_access *breakage_compute(struct draft *d, uint32_t shard, uint32_t pass, uint32_t kind);

/* Returns the device's end of the copy of `kind`. */
struct draft_access *breakage_copy(struct draft *d, uint32_t shard, uint32_t pass, uint32_t stream, uint32_t kind);

/* Removes the operation that breakage_op() returns. */
void breakage_drop(struct draft *d, uint32_t shard, uint32_t pass, uint32_t stream, uint32_t kind);

#endif
