/*
 * States that replicas split (models/job/chunk_share.h), or of which devices of a tensor group have slices
 * (models/network/tensor_share.h; run_slices.c). Each rank's host buffer has its share, laid out as on its device.
 * Files and checkpoints have whole states, which do not show how they were split.
 */
#ifndef SPILLWAY_EXEC_STATE_RUN_SHARES_H
#define SPILLWAY_EXEC_STATE_RUN_SHARES_H

#include "base/size.h"
#include "exec/device/storage.h"
#include "exec/state/run_state.h"

/* Returns true for such a shard, by its index in the plan. */
bool run_is_split(const struct run *run, uint32_t shard);

/* Returns the members of the shard's tensor group; 1: there is none. */
static inline uint32_t run_slices_members(const struct run *run, uint32_t shard)
{
    const uint32_t tensor = run->plan->jobs.jobs[run->plan->shards[shard].job].parallel.tensor;
    return tensor > 1 ? tensor : 1;
}

/* Returns true if devices have slices of the shard's tensors. */
static inline bool run_has_slices(const struct run *run, uint32_t shard)
{
    return parallel_has_slices(&run->plan->jobs.jobs[run->plan->shards[shard].job].parallel);
}

/* Counts the ranks that have shares; equal replicas follow them. 1: a rank has all. */
static inline uint32_t run_shares_ranks(const struct run *run, uint32_t shard)
{
    const struct chunk_tables *const tables = &run->chunks[shard];
    return run_slices_members(run, shard) * (tables->shares ? tables->memory.ranks : 1);
}

/* Returns the bytes of each rank's state of a stored shard, in the file. */
static inline uint64_t run_stored_bytes(const struct run *run, uint32_t shard)
{
    return size_align(run->plan->buffers[run->stored_buffers[shard]].bytes, STORAGE_BLOCK);
}

/* Counts the ranks' states of a stored shard. */
static inline uint32_t run_stored_ranks(const struct run *run, uint32_t shard)
{
    return plan_buffer_ranks(run->plan, &run->plan->buffers[run->stored_buffers[shard]]);
}

/* Returns a rank's share that is on storage, while it is in memory; else NULL. */
static inline char *run_stored_at(const struct run *run, uint32_t shard, uint32_t rank)
{
    char *const first = run->stored_aside ? run->stored_aside[shard] : NULL;
    return first ? first + rank % run_stored_ranks(run, shard) * run_stored_bytes(run, shard) : NULL;
}

/* Counts the states of all ranks, equal replicas included, on the host or on storage. */
static inline uint32_t run_shares_copies(const struct run *run, uint32_t shard)
{
    const uint32_t buffer = run->state_buffers[shard];
    return buffer == PLAN_NONE
           ? run_stored_ranks(run, shard) : plan_buffer_ranks(run->plan, &run->plan->buffers[buffer]);
}

/* Returns a rank's share on the host, or where it was brought from storage. */
static inline char *run_shares_at(const struct run *run, uint32_t shard, uint32_t rank)
{
    char *const aside = run_stored_at(run, shard, rank);
    if (aside) return aside;
    return run_host_buffer_of(run, run->state_buffers[shard], rank);
}

/* Copies all shares to a whole state, or only its first `bytes`. What is frozen, of which no rank has a share, stays as
 * it is. */
void run_shares_gather(const struct run *run, uint32_t shard, void *whole, uint64_t bytes);

/* Copies the frozen weights to a whole state. */
void run_shares_copy_frozen(const struct run *run, uint32_t shard, void *whole);

/* Copy a rank's share, laid out as on its device, to a whole state of which only its first `bytes` are wanted, or back.
 * A copy of a tied table is left out. */
void run_shares_join(const struct run *run, uint32_t shard, uint32_t rank, const char *share, void *whole,
                     uint64_t bytes);
void run_shares_cut(const struct run *run, uint32_t shard, uint32_t rank, const void *whole, char *share);

/* Copies a whole state to all shares. A copy of a tied table is left out. */
void run_shares_scatter(const struct run *run, uint32_t shard, const void *whole);

/* Copies the shares of a tied table to the last chunk's copy, if the job has one. */
void run_shares_fill_table(const struct run *run, uint32_t job);

/* Returns the part of the state that has a tensor's values in full precision. */
static inline uint32_t run_shares_value_part(const struct state_tables *tables, uint32_t tensor)
{
    return tables->parts[STATE_MASTER].count > 0 && tables->parts[STATE_MASTER].entries[tensor].bytes > 0 ? STATE_MASTER
                                                                                                       : STATE_WEIGHTS;
}

/* Copies the values of a rank's share to their places in the whole shard at `values`, laid out as its parameters. */
void run_shares_keep(const struct run *run, uint32_t shard, uint32_t rank, float *values);

/* Copies a rank's share from its device to a whole state at `to`, on the D2H stream. */
void run_shares_bring(struct run *run, uint32_t device, uint32_t shard, const struct run_device_state *state, char *to,
                      struct device_guard guard);

/* The functions above, for shards of which devices have slices. */
void run_slices_join(const struct run *run, uint32_t shard, uint32_t rank, const char *share, void *whole,
                     uint64_t bytes);
void run_slices_cut(const struct run *run, uint32_t shard, uint32_t rank, const void *whole, char *share);
void run_slices_copy_frozen(const struct run *run, uint32_t shard, void *whole);
void run_slices_keep(const struct run *run, uint32_t shard, uint32_t rank, float *values);
void run_slices_fill_table(const struct run *run, uint32_t job);
void run_slices_bring(struct run *run, uint32_t device, uint32_t shard, const struct run_device_state *state, char *to,
                      struct device_guard guard);

#endif
