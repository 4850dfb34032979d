/*
 * States on storage during a run, which are provided in memory before the clock starts and after
 * all work has ended. For shards that the plan stores; does nothing for others. States that replicas split
 * (run_shares.h) are borrowed likewise.
 */
#ifndef SPILLWAY_EXEC_STATE_RUN_STORAGE_H
#define SPILLWAY_EXEC_STATE_RUN_STORAGE_H

#include "exec/state/run_state.h"
#include "planner/walk/plan_walk.h"

/* Opens the file. Errors: STATUS_BAD_INPUT when the options have no folder; as storage_open(). */
MUST_CHECK enum status run_storage_open(struct run *run, struct error *err);

/* Adds its streams to run->streams. */
MUST_CHECK enum status run_storage_start(struct run *run, struct error *err);

/* End the streams, before any device is closed; close the rest. NULL does nothing. */
void run_storage_stop(struct run_storage *storage);
void run_storage_close(struct run_storage *storage);

/* Returns true for a stored shard, by its index in the plan. */
bool run_is_stored(const struct run *run, uint32_t shard);

/* Returns the most that run_states_borrow() will map. */
uint64_t run_storage_bytes_aside(const struct run *run);

/* Returns where an operation's staged buffers begin in the arena of staged states: a rank of a parallel job has its
 * own. */
uint64_t run_storage_staged(const struct run *run, const struct plan_walk_op *op);

/* Enqueues a copy on the read or write stream. It is skipped if, at its turn, minibatch >= the
 * job's limit; *omitted says so. A failure fails the job (run_fail_damaged()). `staged` is its
 * place in memory. */
void run_storage_enqueue(struct run *run, const struct plan_walk_op *op, char *staged,
                         uint64_t minibatch, bool *omitted, struct device_timing *timing);

/* Fills the copy of a tied table of a parallel job whose states are on storage, if it has one. */
MUST_CHECK enum status run_storage_fill_table(struct run *run, uint32_t job, struct error *err);

/* Loads bytes of a shard's state, from byte `from` on. From any thread. */
MUST_CHECK enum status run_storage_load(struct run *run, uint32_t shard, void *to, uint64_t from, uint64_t bytes,
                                        struct error *err);

/* Loads a rank's state of a stored shard, run_stored_bytes() at `at`, or saves it. From the main thread, before or
 * after the run's operations. */
MUST_CHECK enum status run_storage_move(struct run *run, uint32_t shard, uint32_t rank, bool save, void *at,
                                        struct error *err);

/* Several processes: returns memory for one of these, which outlives the run's messages. */
void *run_storage_passing(const struct run *run);

/* States of shards [first, first + count), in their home or in borrowed memory. Only one user at
 * a time; others wait. */
struct run_states {
    uint32_t first, count;
    float **states;   /* per shard */
    char *memory;     /* may be NULL */
    uint64_t mapped_bytes; /* of `memory`, mapped only for this */
    bool locked, during_run;
};

enum run_states_use {
    RUN_STATES_FILL,       /* undefined; saved at the end */
    RUN_STATES_WHOLE,      /* loaded; changed states are saved */
    RUN_STATES_PARAMETERS  /* only parameters; not saved */
};

/* Borrows states. The caller gives them back, also after an error. Errors: STATUS_IO. */
MUST_CHECK enum status run_states_borrow(struct run *run, uint32_t first, uint32_t count,
                                         enum run_states_use use, struct run_states *out,
                                         struct error *err);
/* Does the same while operations of the run use the arena of staged states. */
MUST_CHECK enum status run_states_borrow_during(struct run *run, uint32_t first, uint32_t count,
                                                enum run_states_use use, struct run_states *out, struct error *err);
/* Gives states back; with `save`, writes them to storage. */
MUST_CHECK enum status run_states_give_back(struct run *run, struct run_states *states, bool save,
                                            struct error *err);

#endif
