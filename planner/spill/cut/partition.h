/*
 * Cuts jobs into shards, and a device's memory into areas, for out-of-core training: a device holds only the shards
 * that compute.
 *
 * Spilled state: each device's arena is
 *
 *     [ workspace | edge 0 .. edge e-1 | keep | persistent | table | weight buffer 0 | weight buffer 1 | ... ]
 *
 * `workspace` is the scratch of the current computation. An *edge* holds a unit's small data: batch, loss, boundaries
 * and their gradients, in and out. A *weight buffer* holds its large data: state, parameters, table, spilled
 * activations. Units take turns in both, so that copies for the next unit and of the last one run during a computation:
 * two weight buffers are Hydra's double buffer, three use both directions of a duplex link at once. `keep` holds
 * activations between passes, `persistent` the states of shards that stay (partition_persistent.h), `table` the token
 * table and its gradient while a head computes, one at a time: weight buffers can be smaller than a vocabulary.
 *
 * Resident state: `keep` is cut into seats. From LOAD to STORE a job has one on each of its devices, with the state and
 * kept activations of its shards. Each seat has a weight buffer for the token table and its gradient.
 *
 * Source: greedy maximal shards, Hydra, arXiv 2110.08633, Algorithm 1; here the weight buffer size is searched for.
 */
#ifndef SPILLWAY_PLANNER_SPILL_CUT_PARTITION_H
#define SPILLWAY_PLANNER_SPILL_CUT_PARTITION_H

#include "planner/planner_options.h"
#include "planner/spill/cut/footprint.h"

enum { PARTITION_WEIGHT_BUFFERS_MAX = 8, PARTITION_ARENA_ALIGNMENT = 256 };

/* States on storage, and the arena of staged states (partition_storage.h). */
struct partition_storage {
    bool *stored;             /* per shard; NULL: no state is stored */
    uint64_t transient_bytes, held_bytes; /* of a slot */
    uint32_t turns;           /* slots of each kind, per device */
    uint64_t stored_bytes;
};

/* Host memory in which jobs take turns (host_need.h). */
struct partition_host {
    uint64_t *need;            /* per job: bytes of its range; NULL: all jobs are in host memory throughout */
    double *open_s, *close_s;  /* per job: opening it from its files, and writing its weights */
    uint64_t room;             /* bytes of each host */
};

/* Frozen weights that jobs share (planner/spill/shared). They come after the weight buffers: first those that stay on
 * their device from their first use to their last, then `turns` places for the others. */
struct partition_base {
    uint32_t *owner;             /* per job: the job that has the buffers; NULL: no job shares any */
    uint32_t *device;            /* per shard of the plan: the only device that computes it */
    bool *stays;                 /* likewise, of owners' shards ... */
    uint64_t *offset;            /* ... and its place among those that stay */
    uint64_t stay_bytes, turn_bytes;
    uint32_t turns;
};

struct partition {
    struct arena arena;
    struct plan_shard *shards;
    uint32_t *job_first_shard;   /* job count + 1 entries */
    uint32_t *job_frozen;        /* per job: its first shards of which nothing is trained, which have no backward
                                    pass */
    uint32_t *shard_device;      /* resident only, else NULL */
    uint64_t *slice_rows;        /* per job: rows of an embedding slice; 0: not sliced */
    bool *on_cpu;                /* per shard: the host's processor updates it; also an embedding's passes */
    bool *trains;                /* per shard: its state has more than frozen weights */
    bool *persistent;            /* per shard: its state is on its device from LOAD to STORE; resident: all */
    struct partition_storage storage;
    struct partition_host host;
    struct partition_base base;
    uint32_t shard_count;
    bool resident;
    bool apart;                  /* a job's boundaries go through host memory (planner_options.live): nothing stays on a
                                  * device between units */
    bool interleaved;            /* several jobs may be within a minibatch */
    uint32_t activations;        /* enum plan_activations, for shards that are not `kept` */
    bool *kept;                  /* per shard: its activations stay (partition_kept.h) */
    uint64_t workspace_bytes;
    uint64_t edge_bytes;
    uint32_t edge_count;
    uint64_t weight_buffer_bytes;
    uint32_t weight_buffer_count;
    uint64_t keep_bytes;         /* spilled: the whole area; resident: one seat */
    uint64_t persistent_bytes;   /* spilled: of all persistent states */
    uint64_t table_bytes;        /* spilled: the largest token table and its gradient */
    uint64_t *keep_offset;       /* per shard: its activations (spilled), within `keep` */
    uint64_t *state_offset;      /* per persistent shard: within the seat (resident) or `persistent` */
    uint32_t seat_count;
    double contention;           /* slowdown of copies when all devices copy at once */
    double objective_s;          /* estimated, all minibatches on one device; resident: see partition_resident.c */
};

static inline uint32_t partition_job_shards(const struct partition *p, uint32_t job)
{
    return p->job_first_shard[job + 1] - p->job_first_shard[job];
}

/* A job's units in a minibatch follow from its shards, and from how many of the first have no backward pass. */
struct partition_units {
    uint32_t shards, frozen;
};
static inline struct partition_units partition_job_units(const struct partition *p, uint32_t job)
{
    return (struct partition_units){partition_job_shards(p, job), p->job_frozen[job]};
}

/* Returns the slowdown of copies, by the host's bandwidth, when `busy_devices` copy at once. */
double partition_contention(const struct hardware *hardware, uint32_t busy_devices);

/*
 * `interleaved`: all devices are used, and several jobs may be within a minibatch on one; else one job at a time on
 * device 0. Errors: STATUS_INFEASIBLE, with the first job and layer that fits nowhere and the missing bytes.
 */
MUST_CHECK enum status partition_spilled(const struct hardware *hardware,
                                         const struct job_set *jobs,
                                         struct footprints *footprints,
                                         const struct planner_options *options, bool interleaved,
                                         struct partition *out, struct error *err);

/* Cuts for residence, at most `seats_max` jobs at a time. */
MUST_CHECK enum status partition_resident(const struct hardware *hardware,
                                          const struct job_set *jobs,
                                          struct footprints *footprints,
                                          const struct planner_options *options,
                                          uint32_t seats_max, struct partition *out,
                                          struct error *err);

void partition_release(struct partition *partition);

/* Returns UNIT_KEEP and UNIT_INPUTS for a shard without embedding. `loss_inputs`: the last shard holds only inputs of
 * layers. */
static inline uint32_t partition_way(uint32_t activations, bool loss_inputs, bool last)
{
    return !last ? plan_activations_way(activations) : loss_inputs ? UNIT_INPUTS : 0;
}

/* Returns the enum plan_activations of keeping shards whose job otherwise recomputes or spills. */
static inline uint32_t partition_kept_way(uint32_t activations)
{
    return activations == ACTIVATIONS_SPILL_INPUTS ? ACTIVATIONS_KEEP_INPUTS : ACTIVATIONS_KEEP;
}

/* Returns the enum plan_activations of a shard. */
static inline uint32_t partition_activations(const struct partition *p, uint32_t shard)
{
    return p->kept[shard] ? partition_kept_way(p->activations) : p->activations;
}

/* Return offsets in a device's arena. */
static inline uint64_t partition_edge(const struct partition *p, uint32_t turn)
{
    return p->workspace_bytes + (turn % p->edge_count) * p->edge_bytes;
}
static inline uint64_t partition_keep(const struct partition *p, uint32_t seat)
{
    return p->workspace_bytes + p->edge_count * p->edge_bytes + seat * p->keep_bytes;
}
static inline uint64_t partition_persistent(const struct partition *p)
{
    return partition_keep(p, p->resident ? p->seat_count : 1);
}
static inline uint64_t partition_table(const struct partition *p)
{
    return partition_persistent(p) + p->persistent_bytes;
}
static inline uint64_t partition_base_stays(const struct partition *p)
{
    return partition_table(p) + p->table_bytes + p->weight_buffer_count * p->weight_buffer_bytes;
}
static inline uint64_t partition_base_turn(const struct partition *p, uint32_t turn)
{
    return partition_base_stays(p) + p->base.stay_bytes + (turn % p->base.turns) * p->base.turn_bytes;
}
static inline uint64_t partition_weight_buffer(const struct partition *p, uint32_t turn)
{
    return partition_table(p) + p->table_bytes + (turn % p->weight_buffer_count) * p->weight_buffer_bytes;
}

#endif
