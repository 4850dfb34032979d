/*
 * Estimated seconds of the parts of a partition's units: copies, computation, work on the host's processor and on
 * storage. By models/cost/cost.h, without contention except for the average over shared links; the simulator has it.
 */
#ifndef SPILLWAY_PLANNER_SPILL_ORDER_COST_TABLE_H
#define SPILLWAY_PLANNER_SPILL_ORDER_COST_TABLE_H

#include "planner/spill/cut/partition.h"
#include "planner/spill/order/schedule.h"

/* Passes with different durations. */
enum cost_pass { COST_PASS_FORWARD, COST_PASS_BACK, COST_PASS_EVALUATE, COST_PASSES };

struct cost_unit {
    double in_s;       /* state, parameters, table, spilled activations */
    double edge_in_s;  /* boundary or gradient, unless it is on the device already */
    double compute_s;
    double edge_out_s;
    double out_s;
    bool out_apart;    /* outgoing data have memory of their own, and the memory of incoming data is free earlier */
    bool in_apart;     /* some of the incoming data are in that memory too */
    double load_s;     /* once, for a persistent shard's state */
    double read_s, write_s; /* for states on storage */
    double cpu_s;      /* update on the host's processor, or norm ... */
    bool cpu_alone;    /* ... or the whole unit */
    bool gathers;      /* the unit gathers on the host stream */
    double update_s;   /* for jobs that clip: once all norms are known */
};

/* Borrows everything that it points to. */
struct cost_table {
    const struct hardware *hardware;
    const struct job_set *jobs;
    const struct partition *partition;
    struct cost_unit *of; /* (type_count, shard_count, COST_PASSES) */
    uint32_t *kinds;      /* for each type of a device, the first such device */
    uint32_t kind_count;
};

/* Makes the table. Release it with cost_table_release(). */
MUST_CHECK enum status cost_table_make(const struct hardware *hardware, const struct job_set *jobs,
                                       struct footprints *footprints,
                                       const struct partition *partition, struct cost_table *out,
                                       struct error *err);
void cost_table_release(struct cost_table *times);

/* Returns the cost of a shard's forward pass, by its index in the plan; its other passes follow. */
static inline const struct cost_unit *cost_table_shard(const struct cost_table *t, uint32_t device,
                                                       uint32_t shard)
{
    size_t type = t->hardware->devices[device].type;
    return &t->of[(type * t->partition->shard_count + shard) * COST_PASSES];
}

static inline const struct cost_unit *cost_table_at(const struct cost_table *t, uint32_t device,
                                                    uint32_t job, uint32_t position)
{
    const struct partition_units units = partition_job_units(t->partition, job);
    enum plan_pass pass = schedule_unit_pass(units, position);
    return cost_table_shard(t, device,
                            t->partition->job_first_shard[job] + schedule_unit_shard(units, position)) +
           (pass == PLAN_FORWARD    ? COST_PASS_FORWARD
            : pass == PLAN_EVALUATE ? COST_PASS_EVALUATE
                                    : COST_PASS_BACK);
}

/* Returns the number of positions of a job's minibatch, and of the evaluation after it. */
uint32_t cost_table_positions(const struct cost_table *times, uint32_t job, uint64_t minibatch);

/* Returns the number of all units of a job. */
uint64_t cost_table_unit_count(const struct cost_table *times, uint32_t job);

#endif
