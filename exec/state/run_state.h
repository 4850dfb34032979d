/* Shared declarations of a run's files: the loop (run_loop.h), run_setup.c (before and after it), run_callbacks.c (on
 * the streams' threads), run_saver.c (checkpoints meanwhile), run_faults.c (jobs that fail). */
#ifndef SPILLWAY_EXEC_STATE_RUN_STATE_H
#define SPILLWAY_EXEC_STATE_RUN_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "exec/checkpoint/checkpoint.h"
#include "exec/device/backend.h"
#include "exec/device/device.h"
#include "exec/files/data.h"
#include "exec/network/unit.h"
#include "exec/state/run_log.h"
#include "exec/state/run_options.h"

/* Data on a job that the streams' threads and the enqueueing thread exchange; changed under run.lock. */
struct run_progress {
    uint64_t begun;   /* minibatches with a started computation */
    atomic_uint_fast64_t limit; /* minibatches from here on are skipped; lowered once, by a stop */
    uint64_t losses;  /* on the host */
    double last_loss_s;
    bool diverged;    /* a loss or gradient is not finite and the job stops for that reason */
    struct unit_guard guard;
    bool damaged;     /* part of its state is lost or mixes several steps: nothing of it is kept */
    bool home;        /* the job is complete and its state is on the host; see run_note_lost_devices() */
    uint64_t nonfinite;   /* minibatches up to the last one whose loss is not finite; 0: none */
    bool half_logged;     /* for a job that clips: either loss or norm of a minibatch is known, and ... */
    struct run_log_entry half; /* ... the other is not */
    struct error failure; /* reason of an early end; zero: no early end, or stopped */
    double held_out_sum;  /* sum of the losses of the current evaluation, ... */
    uint64_t held_out;    /* ... and their number */
    bool held_out_failed; /* its data could not be read: no further evaluations */
    uint64_t improved;    /* minibatches up to the best evaluation; 0: it was in an earlier run, or there is none */
    bool kept;            /* the best weights were kept at least once */
    bool opened, closed;  /* for a job with a range of host memory: its state was loaded; it was written and
                             released */
};

struct run_storage; /* run_storage.h */

/* The state of a shard or slice on a device. */
struct device_state {
    uint64_t address, bytes;
    uint64_t first_row, row_count;
    uint64_t arrived;       /* the minibatch in which it was acquired */
    uint64_t changed_bytes; /* bytes that are newer than on the host */
};

struct run {
    const struct plan *plan;
    const struct run_options *options;
    struct run_result *result;
    struct arena arena;

    const struct backend *backend;
    uint32_t threads;            /* of a device; 0 for GPUs */
    char attention_by[640];      /* implementations of attention for bf16 jobs; "": only one exists */
    bool pinned;                 /* host buffers are pinned, for the GPUs' copies */
    uint64_t host_bytes;
    char *host;                  /* all host buffers in one block */
    uint64_t *host_offset;       /* per buffer; device buffers: 0 */
    struct device **devices;
    bool *uses_device;           /* [job][device] */
    uint8_t *slot_uses;          /* per device and slot: its uses, a sum of 1 << enum plan_memory_use. Only for the
                                    walking thread */
    bool *device_noted;          /* per device: its loss is known; only for the walking thread */
    struct device *cpu;          /* the host's processor, without an arena; NULL: the plan does not use it */
    struct kernels gather;       /* the processor's kernels for one thread: computations of the host stream */
    struct device_stream **streams; /* by plan_stream() */
    struct unit_tables *tables;  /* per shard */
    struct state_tables *state_tables; /* per shard: tables[i].state, in the form of weights.h ... */
    struct state_tables *value_tables; /* ... and tables of only its values, for kept weights */
    float **states;              /* per shard: its state on the host; NULL: on storage */
    struct run_storage *storage; /* NULL: no state is on storage */
    uint64_t stage_offset, stage_bytes; /* in `host`: the arena of staged states */
    uint64_t ranges_offset;      /* in `host`: start of the jobs' ranges */
    struct device *files;        /* the stream of OPENs and CLOSEs; NULL: the plan has no ranges */
    struct data_source **sources; /* per job */
    struct data_source **held_out; /* per job; NULL: it is not evaluated */
    float **kept;                /* per shard: its best values on the host; NULL: not kept */
    struct run_log *log;
    struct run_saver *saver;     /* NULL: no checkpoints */
    uint64_t snapshot_offset;    /* in `host`: the saver's room for the state of the largest job */

    pthread_mutex_t lock;
    struct run_progress *jobs;
    uint32_t last_job;           /* job of the last loss; PLAN_NONE */
    double last_loss;
    struct error fatal;          /* the failure of a job that ended the run */
    char notes[2048];            /* notes for the user, one per line */
    double start_s;              /* clock_s() when the first operation was enqueued */
};

static inline char *run_host_buffer(const struct run *run, uint32_t buffer)
{
    return run->host + run->host_offset[buffer];
}

/* Copies the part of the state that is newer on a device than on the host to the shard's whole state at `to`, on the
 * D2H stream; skipped when its guard is closed. */
void run_bring_state(struct run *run, uint32_t device, uint32_t buffer,
                     const struct device_state *state, char *to, struct device_guard guard);

/* Returns a job's state in the form of a checkpoint, from the host or from `states`, per shard of the job. */
struct checkpoint_subject run_checkpoint_subject(const struct run *run, uint32_t job,
                                                 float *const *states);

/* The steps of run_setup() before the first memory of the plan's sizes, after run_check_machine(). Storage is opened
 * between the two. */
MUST_CHECK enum status run_prepare(struct run *run, struct error *err);     /* jobs, outputs, tables, the layout of
                                                                               host memory */
MUST_CHECK enum status run_open_inputs(struct run *run, struct error *err); /* memory, data, heads of weights */

/* Does all work before the clock starts: checks, memory, devices, data, initial weights, the log. */
MUST_CHECK enum status run_setup(struct run *run, struct error *err);

/* Makes the states of a job's shards [first_shard, first_shard + shard_count), numbered as in the plan. A job whose
 * weights come from a file must be filled as a whole. Only one thread at a time per job. */
MUST_CHECK enum status run_fill_shards(struct run *run, uint32_t job, uint32_t first_shard, uint32_t shard_count,
                                       struct error *err);

/* Notes the number of minibatches that the job has completed. */
void run_count_minibatches(struct run *run, uint32_t job);

/* Computes the fingerprint of a job that has ended and writes its weights, from any thread. Failures go into the
 * result. */
void run_keep_job(struct run *run, uint32_t job);

/* Does the same for all jobs in host memory; writes weights only of jobs that completed a minibatch. */
void run_keep_weights(struct run *run);

/* Frees a run, also one that is only partly set up. */
void run_teardown(struct run *run);

#endif
