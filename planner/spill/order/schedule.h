/*
 * A schedule: which unit of which job on which device, in order.
 *
 * The units of a minibatch are numbered by position: 0 .. S-2 the forward passes, S-1 the loss, S .. 2S-2-F the
 * backward passes of shards S-2 .. F, if the first F are frozen. When an evaluation follows, the units of its first
 * held-out minibatch are the next S, and so on. A job that makes kept outputs has all its shards frozen, and only its
 * forward passes, 0 .. S-1. Updates of jobs that clip have no position: they follow the last
 * backward pass without a decision.
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
    uint32_t next_here; /* index of the job's next unit when its input stays on this device; else PLAN_NONE */
    bool first, last; /* first and last unit of its job */
    bool ends;        /* last unit of its minibatch */
    bool fetches;     /* the input comes directly from the device of the job's previous unit */
    bool fetched;     /* likewise the output goes to the next unit */
};

/* What a unit does with a base that its job shares, on its device. */
struct schedule_base {
    bool fetches, releases;             /* the base of its shard, whole; it is the last to use it there */
    bool fetches_table, releases_table; /* likewise the base's token table */
    uint32_t ahead;                     /* a shard of the base, of which it fetches a piece for later units; PLAN_NONE:
                                         * none */
    uint64_t ahead_offset, ahead_bytes;
};

/* The units [first, end) are carried out `times` times more, after the last of them. */
struct schedule_loop {
    uint32_t first, end;
    uint64_t times;
};

struct schedule {
    struct schedule_unit *units;
    uint32_t count;
    struct schedule_base *bases; /* per unit; NULL: no jobs share a base */
    struct schedule_loop *cycles; /* in order, apart from each other */
    uint32_t cycle_count;
    uint32_t *joints; /* numbers of units, rising: none of the outputs before a joint stays on a device for a unit after
                       * it, and the turns of the devices' buffers begin anew */
    uint32_t joint_count;
    size_t capacity, cycle_capacity, joint_capacity;
    double makespan_s; /* by the scheduler's clock ... */
    double repeated_s; /* ... of which its cycles' repetitions take this; of jobs that share a base */
    uint64_t *ranges;  /* per job: offset of its range of host memory; NULL: jobs do not take turns there */
};

/* Returns true for a job that makes kept outputs: all its shards are frozen. */
static inline bool schedule_makes_outputs(struct partition_units units) { return units.frozen == units.shards; }
static inline uint32_t schedule_unit_count(struct partition_units units)
{
    return 2 * units.shards - units.frozen - (schedule_makes_outputs(units) ? 0 : 1);
}
static inline enum plan_pass schedule_unit_pass(struct partition_units units, uint32_t position)
{
    if (position + 1 < units.shards || schedule_makes_outputs(units)) return PLAN_FORWARD;
    if (position + 1 == units.shards) return PLAN_LOSS;
    return position < schedule_unit_count(units) ? PLAN_BACKWARD : PLAN_EVALUATE;
}
static inline uint32_t schedule_unit_shard(struct partition_units units, uint32_t position)
{
    if (position < units.shards) return position;
    uint32_t count = schedule_unit_count(units);
    return position < count ? 2 * units.shards - 2 - position : (position - count) % units.shards;
}
/* Returns true when the position begins from a batch, and not from the output of the previous position. */
static inline bool schedule_unit_begins(struct partition_units units, uint32_t position)
{
    return schedule_unit_shard(units, position) == 0 && schedule_unit_pass(units, position) != PLAN_BACKWARD;
}
/* Returns the position of a shard's backward pass, the last one's loss; its shard must have one. */
static inline uint32_t schedule_unit_back(struct partition_units units, uint32_t shard)
{
    return 2 * units.shards - 2 - shard;
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
