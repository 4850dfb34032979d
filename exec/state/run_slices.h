/*
 * States of which the devices of a tensor group have slices (models/network/tensor_share.h): run_shares.h's functions for
 * such shards.
 */
#ifndef SPILLWAY_EXEC_STATE_RUN_SLICES_H
#define SPILLWAY_EXEC_STATE_RUN_SLICES_H

#include "exec/state/run_state.h"

/* Returns the members of the shard's tensor group; 1: there is none. */
uint32_t run_slices_members(const struct run *run, uint32_t shard);

/* Counts the ranks whose states make up the whole one. */
uint32_t run_slices_ranks(const struct run *run, uint32_t shard);

void run_slices_gather(const struct run *run, uint32_t shard, void *whole, uint64_t bytes);
void run_slices_scatter(const struct run *run, uint32_t shard, const void *whole);
void run_slices_fill_table(const struct run *run, uint32_t job);
void run_slices_bring(struct run *run, uint32_t device, uint32_t shard, const struct run_device_state *state, char *to,
                      struct device_guard guard);

#endif
