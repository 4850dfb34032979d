/*
 * Estimated seconds of the parts of each unit that a partition makes: its copies, computation, work
 * on the host's processor and on storage. By models/cost/cost.h, so what is left out is contention but for
 * the average over shared links; the simulator knows about it.
 */
#ifndef SPILLWAY_PLANNER_UNIT_TIMES_H
#define SPILLWAY_PLANNER_UNIT_TIMES_H

#include "planner/spill/cut/partition.h"
#include "planner/spill/order/schedule.h"

/* What durations are distinguished by. */
enum timed_pass { TIMED_FORWARD, TIMED_BACK, TIMED_EVALUATE, TIMED_PASSES };

struct unit_time {
    double in_s;       /* state, parameters, table, spilled activations */
    double edge_in_s;  /* boundary or gradient, unless it is already there */
    double compute_s;
    double edge_out_s;
    double out_s;
    bool out_apart;    /* what goes out lies behind what came in, whose room is free before */
    bool in_apart;     /* some of what comes in lies there too */
    double load_s;     /* of a persistent shard's state, once */
    double read_s, write_s; /* of states on storage */
    double cpu_s;      /* the update on the host's processor, or the norm ... */
    bool cpu_alone;    /* ... or all of the unit */
    bool gathers;      /* it does so on the host stream */
    double update_s;   /* where the job clips: once all norms are known */
};

/* Borrows all that it points to. */
struct unit_times {
    const struct hardware *hardware;
    const struct job_set *jobs;
    const struct partition *partition;
    struct unit_time *of; /* (type_count, shard_count, TIMED_PASSES) */
    uint32_t *kinds;      /* for each type that some device is of, the first such device */
    uint32_t kind_count;
};

/* Release it with unit_times_release(). Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status unit_times_make(const struct hardware *hardware, const struct job_set *jobs,
                                       struct footprints *footprints,
                                       const struct partition *partition, struct unit_times *out,
                                       struct error *err);
void unit_times_release(struct unit_times *times);

/* The forward pass of a shard, by its index in the plan; its other passes are behind it. */
static inline const struct unit_time *shard_time(const struct unit_times *t, uint32_t device,
                                                 uint32_t shard)
{
    size_t type = t->hardware->devices[device].type;
    return &t->of[(type * t->partition->shard_count + shard) * TIMED_PASSES];
}

static inline uint32_t job_shard_count(const struct partition *p, uint32_t job)
{
    return p->job_first_shard[job + 1] - p->job_first_shard[job];
}

static inline const struct unit_time *unit_time_at(const struct unit_times *t, uint32_t device,
                                                   uint32_t job, uint32_t position)
{
    uint32_t shards = job_shard_count(t->partition, job);
    enum plan_pass pass = unit_pass_of(shards, position);
    return shard_time(t, device,
                      t->partition->job_first_shard[job] + unit_shard(shards, position)) +
           (pass == PLAN_FORWARD    ? TIMED_FORWARD
            : pass == PLAN_EVALUATE ? TIMED_EVALUATE
                                    : TIMED_BACK);
}

/* Units of a job's minibatch, by how many came before it, and of the evaluation behind it. */
uint32_t unit_times_positions(const struct unit_times *times, uint32_t job, uint64_t minibatch);

/* All units of a job. */
uint64_t unit_times_count(const struct unit_times *times, uint32_t job);

#endif
