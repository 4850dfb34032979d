/*
 * A schedule: which unit of which job on which device, in order.
 *
 * The units of a minibatch are numbered by position: 0 .. S-2 the forward passes, S-1 the loss,
 * S .. 2S-2 the backward passes of shards S-2 .. 0.
 */
#ifndef SPILLWAY_PLANNER_SCHEDULE_H
#define SPILLWAY_PLANNER_SCHEDULE_H

#include "planner/partition.h"
#include "planner/policy.h"

struct scheduled_unit {
    uint32_t job;
    uint32_t position;
    uint32_t device;
    uint32_t seat;    /* resident; else 0 */
    uint32_t next_on_device; /* index of the next unit on this device; PLAN_NONE: none */
    bool first, last; /* of its job */
};

struct schedule {
    struct scheduled_unit *units;
    uint32_t count;
    double makespan_s; /* by the scheduler's clock */
};

static inline uint32_t unit_count_of(uint32_t shards) { return 2 * shards - 1; }
static inline uint32_t unit_shard(uint32_t shards, uint32_t position)
{
    return position < shards ? position : 2 * shards - 2 - position;
}

/*
 * Drive a policy with estimated durations. Source of the estimates: models/cost.h, no contention.
 * Errors: STATUS_NO_MEMORY, STATUS_LIMIT.
 */
MUST_CHECK enum status schedule_make(const struct hardware *hardware, const struct job_set *jobs,
                                     struct footprints *footprints,
                                     const struct partition *partition,
                                     const struct policy *policy, uint64_t seed,
                                     struct schedule *out, struct error *err);
void schedule_release(struct schedule *schedule);

#endif
