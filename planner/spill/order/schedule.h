/*
 * A schedule: which unit of which job on which device, in order.
 *
 * The units of a minibatch are numbered by position: 0 .. S-2 the forward passes, S-1 the loss, S .. 2S-2 the backward
 * passes of shards S-2 .. 0. When an evaluation follows, the units of its first held-out minibatch are 2S-1 .. 3S-2,
 * and so on. Updates of jobs that clip have no position: they follow the last backward pass without a decision.
 */
#ifndef SPILLWAY_PLANNER_SPILL_ORDER_SCHEDULE_H
#define SPILLWAY_PLANNER_SPILL_ORDER_SCHEDULE_H

#include "planner/policy/policy.h"
#include "planner/spill/cut/partition.h"

struct schedule_unit {
    uint32_t job;
    uint32_t position;
    uint32_t device;
    uint32_t seat;    /* resident; else 0 */
    uint32_t next_here; /* index of the job's next unit when it is also this device's next; else PLAN_NONE */
    bool first, last; /* first and last unit of its job */
    bool ends;        /* last unit of its minibatch */
    bool fetches;     /* the input comes directly from the device of the job's previous unit */
    bool fetched;     /* likewise the output goes to the next unit */
};

/* The units [first, end) are carried out `times` times more, after the last of them. */
struct schedule_loop {
    uint32_t first, end;
    uint64_t times;
};

struct schedule {
    struct schedule_unit *units;
    uint32_t count;
    struct schedule_loop *cycles; /* in order, apart from each other */
    uint32_t cycle_count;
    size_t capacity, cycle_capacity;
    double makespan_s; /* by the scheduler's clock */
    uint64_t *ranges;  /* per job: offset of its range of host memory; NULL: jobs do not take turns there */
};

static inline uint32_t schedule_unit_count(uint32_t shards) { return 2 * shards - 1; }
static inline enum plan_pass schedule_unit_pass(uint32_t shards, uint32_t position)
{
    if (position + 1 < shards) return PLAN_FORWARD;
    if (position + 1 == shards) return PLAN_LOSS;
    return position < schedule_unit_count(shards) ? PLAN_BACKWARD : PLAN_EVALUATE;
}
static inline uint32_t schedule_unit_shard(uint32_t shards, uint32_t position)
{
    if (position < shards) return position;
    uint32_t count = schedule_unit_count(shards);
    return position < count ? 2 * shards - 2 - position : (position - count) % shards;
}
/* Returns true when the position begins from a batch, and not from the output of the previous position. */
static inline bool schedule_unit_begins(uint32_t shards, uint32_t position)
{
    return schedule_unit_shard(shards, position) == 0 && schedule_unit_pass(shards, position) != PLAN_BACKWARD;
}

struct cost_table;

/* Makes a schedule by a policy, with estimated durations (cost_table.h). whole: all units, no cycles
 * (schedule_steady.h). Errors: STATUS_LIMIT; STATUS_BAD_INPUT when the policy breaks a rule (policy_ask.h). */
MUST_CHECK enum status schedule_make(const struct cost_table *times, const struct policy *policy,
                                     uint64_t seed, bool whole, struct schedule *out, struct error *err);

/* Allocates a schedule for all units of the jobs. Errors: STATUS_LIMIT. */
MUST_CHECK enum status schedule_init(struct schedule *schedule, const struct cost_table *times,
                                     struct error *err);

struct schedule_builder;

/* Copies the jobs' ranges of host memory, if they take turns there, after all units are placed. */
MUST_CHECK enum status schedule_copy_ranges(struct schedule *schedule, const struct schedule_builder *builder,
                                            struct error *err);

/* Fills in next_here and fetched. */
MUST_CHECK enum status schedule_link(struct schedule *schedule, uint32_t jobs, uint32_t devices,
                                     struct error *err);
void schedule_release(struct schedule *schedule);

#endif
