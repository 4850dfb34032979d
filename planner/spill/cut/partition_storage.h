/*
 * Chooses the states on storage: those without room in host memory, at the least cost.
 *
 * Host memory then ends in an arena of staged states (plan.h) for each device:
 *
 *     [ transient 0 .. t-1 | held 0 .. t-1 ]    of a host's first device, then its second's ...
 *
 * A *transient* slot holds a state, parameters or an embedding slice on the way between storage and a device. A *held*
 * slot has a state that the host's processor updates, from read to write. Units take turns in both (partition.h).
 */
#ifndef SPILLWAY_PLANNER_SPILL_CUT_PARTITION_STORAGE_H
#define SPILLWAY_PLANNER_SPILL_CUT_PARTITION_STORAGE_H

#include "planner/spill/cut/partition.h"

/* Gradients of a job on the host: one arrives while another is applied, and one more so that neither waits. (All
 * shards' where it clips.) */
enum { PARTITION_GRADIENT_TURNS = 3 };

/*
 * Fills partition->storage; nothing is stored with PLANNER_STORAGE_NONE in options->storage, or without storage.
 * Errors: STATUS_INFEASIBLE if host memory is too small with everything on storage, or storage is; STATUS_BAD_INPUT for
 * PLANNER_STORAGE_ALL without storage.
 */
MUST_CHECK enum status storage_choose(const struct hardware *hardware, const struct job_set *jobs,
                                      struct footprints *footprints,
                                      const struct planner_options *options,
                                      struct partition *partition, struct error *err);

/* Returns true if the shard, by its index in the plan, has its state on storage. */
static inline bool storage_has(const struct partition *p, uint32_t shard)
{
    return p->storage.stored && p->storage.stored[shard];
}

/* Return bytes and offsets in the arena of staged states; `host_seat`: devices of the host before this one. */
static inline uint64_t storage_device_bytes(const struct partition *p)
{
    return p->storage.turns * (p->storage.transient_bytes + p->storage.held_bytes);
}
static inline uint64_t storage_transient(const struct partition *p, uint32_t host_seat, uint32_t turn)
{
    return host_seat * storage_device_bytes(p) + (turn % p->storage.turns) * p->storage.transient_bytes;
}
static inline uint64_t storage_held(const struct partition *p, uint32_t host_seat, uint32_t turn)
{
    return host_seat * storage_device_bytes(p) + p->storage.turns * p->storage.transient_bytes +
           (turn % p->storage.turns) * p->storage.held_bytes;
}

/* A stored shard's traffic in a minibatch: its forward pass reads parameters; its backward pass or loss reads and
 * writes the state. */
struct storage_traffic {
    uint64_t forward_read, back_read, back_written;
};
struct storage_traffic storage_traffic_of(const struct partition *p, const struct job *job,
                                          const struct footprint *f, uint32_t shard);

#endif
