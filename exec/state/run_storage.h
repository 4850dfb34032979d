/*
 * States on storage during a run: the file and the streams that read and write it. Before the clock
 * starts and after all work has ended, it provides a job's states in memory.
 *
 * These functions apply only to shards that the plan stores, and do nothing for plans without
 * stored shards.
 */
#ifndef SPILLWAY_EXEC_STATE_RUN_STORAGE_H
#define SPILLWAY_EXEC_STATE_RUN_STORAGE_H

#include "exec/state/run_state.h"
#include "planner/walk/plan_walk.h"

/* Opens the file. Errors: STATUS_BAD_INPUT when the plan has states on storage and the options have
 * no folder; as storage_open(). */
MUST_CHECK enum status run_storage_open(struct run *run, struct error *err);

/* Starts its streams and adds them to run->streams. */
MUST_CHECK enum status run_storage_start(struct run *run, struct error *err);

/* End the streams, before any device is closed; close the rest. NULL does nothing. */
void run_storage_stop(struct run_storage *storage);
void run_storage_close(struct run_storage *storage);

/* Returns true when a shard, by its index in the plan, is on storage. */
bool run_is_stored(const struct run *run, uint32_t shard);

/* Returns the most bytes that run_states_borrow() will map. */
uint64_t run_storage_bytes_aside(const struct run *run);

/* Enqueues a copy on the read or write stream. It is skipped if, at its turn, minibatch >= the
 * job's limit; *omitted says so. If it fails, the job fails (run_fail_damaged()). `staged` is its
 * place in memory. */
void run_storage_enqueue(struct run *run, const struct plan_walk_op *op, char *staged,
                         uint64_t minibatch, bool *omitted, struct device_timing *timing);

/* Loads a shard's state, or its first bytes, from storage into memory. From any thread. */
MUST_CHECK enum status run_storage_load(struct run *run, uint32_t shard, void *to, uint64_t bytes,
                                        struct error *err);

/* States of shards [first, first + count) in memory: in their home or in borrowed memory. Only one
 * user at a time; others wait. */
struct run_states {
    uint32_t first, count;
    float **states;   /* per shard */
    char *memory;     /* borrowed memory; NULL: none */
    uint64_t mapped_bytes; /* part of `memory` that was mapped only for this */
    bool locked;
};

enum run_states_use {
    RUN_STATES_FILL,       /* undefined until filled; saved at the end */
    RUN_STATES_WHOLE,      /* loaded; may be changed and are saved */
    RUN_STATES_PARAMETERS  /* only their parameters are loaded; not saved */
};

/* Borrows states. The caller gives them back, also after an error. Errors: STATUS_IO. */
MUST_CHECK enum status run_states_borrow(struct run *run, uint32_t first, uint32_t count,
                                         enum run_states_use use, struct run_states *out,
                                         struct error *err);
/* Gives states back. With `save`, writes them to storage. */
MUST_CHECK enum status run_states_give_back(struct run *run, struct run_states *states, bool save,
                                            struct error *err);

#endif
