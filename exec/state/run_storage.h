/*
 * States on storage during a run: the file and the streams that read and write it; and, before the
 * clock starts and when all has ended, a job's states in memory for those who want them there.
 *
 * All of this is about the shards that the plan has stored, and does nothing where it has none.
 */
#ifndef SPILLWAY_EXEC_RUN_STORAGE_H
#define SPILLWAY_EXEC_RUN_STORAGE_H

#include "exec/state/run_state.h"
#include "planner/walk/plan_walk.h"

/* Open the file. Errors: STATUS_BAD_INPUT when the plan has states on storage and the options no
 * folder; those of storage_open(). */
MUST_CHECK enum status run_storage_open(struct run *run, struct error *err);

/* Start its streams, which go into run->streams. */
MUST_CHECK enum status run_storage_start(struct run *run, struct error *err);

/* End the streams, before any device is closed; then close the rest. NULL is fine. */
void run_storage_stop(struct run_storage *storage);
void run_storage_close(struct run_storage *storage);

/* Is a shard, by its index in the plan, on storage? */
bool run_is_stored(const struct run *run, uint32_t shard);

/* The most that run_states_borrow() will ask for beyond what is mapped already. */
uint64_t run_storage_bytes_aside(const struct run *run);

/* Enqueue a copy of the read or write stream. Left out when, at its turn, minibatch >= the job's limit;
 * *omitted says so. When it fails, the job does (run_fail_damaged()). `staged`: its place in memory. */
void run_storage_enqueue(struct run *run, const struct plan_walk_op *op, char *staged,
                         uint64_t minibatch, bool *omitted, struct device_timing *timing);

/* A shard's state, or the first bytes of it, from storage to memory. From any thread. */
MUST_CHECK enum status run_storage_load(struct run *run, uint32_t shard, void *to, uint64_t bytes,
                                        struct error *err);

/* States of shards [first, first + count) in memory: where they live, or in a place that is lent. One
 * at a time: others wait. */
struct run_states {
    uint32_t first, count;
    float **states;   /* per shard */
    char *memory;     /* what is lent; NULL: nothing */
    uint64_t mapped_bytes; /* of it, mapped for this alone */
    bool locked;
};

enum run_states_use {
    RUN_STATES_FILL,       /* undefined until they are filled; saved in the end */
    RUN_STATES_WHOLE,      /* as they are; to be changed and saved */
    RUN_STATES_PARAMETERS  /* the parameters of them, as they are; not saved */
};

/* The caller gives them back, also after an error. Errors: STATUS_NO_MEMORY, STATUS_IO. */
MUST_CHECK enum status run_states_borrow(struct run *run, uint32_t first, uint32_t count,
                                         enum run_states_use use, struct run_states *out,
                                         struct error *err);
/* With `save`, what was filled goes to storage. */
MUST_CHECK enum status run_states_give_back(struct run *run, struct run_states *states, bool save,
                                            struct error *err);

#endif
