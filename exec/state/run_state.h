/* What the files of a run share: the loop (run_loop.h), run_setup.c (before and after it), run_calls.c
 * (on the streams' threads), run_saver.c (checkpoints meanwhile), run_faults.c (jobs that fail). */
#ifndef SPILLWAY_EXEC_RUN_STATE_H
#define SPILLWAY_EXEC_RUN_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "exec/checkpoint/checkpoint.h"
#include "exec/device/backend.h"
#include "exec/device/device.h"
#include "exec/files/data.h"
#include "exec/network/unit.h"
#include "exec/state/run_log.h"
#include "exec/state/run_options.h"

/* What the threads of the streams and the enqueueing one tell each other about a job; changed under
 * run.lock. */
struct run_progress {
    uint64_t begun;   /* minibatches of which a computation has started */
    atomic_uint_fast64_t limit; /* those from here on are left out; lowered once, by a stop */
    uint64_t losses;  /* on the host */
    double last_loss_s;
    bool diverged;    /* a loss or gradient is not finite and the job stops for that */
    struct unit_guard guard;
    bool damaged;     /* a part of its state is lost, or of several steps: nothing of it is kept */
    bool home;        /* it is complete, and its state on the host; see run_note_lost_devices() */
    uint64_t nonfinite;   /* minibatches up to the last one whose loss is not finite; 0: none */
    bool half_logged;     /* of a job that clips: loss or norm of a minibatch is there, and the ... */
    struct run_log_entry half; /* ... other is not */
    struct error failure; /* why it ended early; zero: it did not, or was stopped */
    double held_out_sum;  /* of the losses of the evaluation that is on its way, ... */
    uint64_t held_out;    /* ... and how many they are */
    bool held_out_failed; /* its data could not be read: there is no evaluation any more */
    uint64_t improved;    /* minibatches up to the one of the best evaluation; 0: of an earlier run, or
                             there is none */
    bool kept;            /* the best weights were kept at least once */
    bool opened, closed;  /* of a job with a range of host memory: its state is, or was, there; it was kept */
};

struct run_storage; /* run_storage.h */

/* State of a shard, or of a slice of one, on a device. */
struct device_state {
    uint64_t address, bytes;
    uint64_t first_row, row_count;
    uint64_t arrived;       /* the minibatch in which it was acquired */
    uint64_t changed_bytes; /* newer than on the host */
};

struct run {
    const struct plan *plan;
    const struct run_options *options;
    struct run_result *result;
    struct arena arena;

    const struct backend *backend;
    uint32_t threads;            /* of a device; 0 for GPUs */
    char attention_by[640];      /* what computes attention of jobs in bf16; "": there is one way */
    bool pinned;                 /* the host buffers, for the GPUs' copies */
    uint64_t host_bytes;
    char *host;                  /* all host buffers in one block */
    uint64_t *host_offset;       /* per buffer; device buffers: 0 */
    struct device **devices;
    bool *uses_device;           /* [job][device] */
    uint8_t *slot_uses;          /* per device and slot: what it was handed out for; a sum of 1 << enum
                                    plan_memory_use. The walking thread's */
    bool *device_noted;          /* per device: that it is lost is known; the walking thread's */
    struct device *cpu;          /* the host's processor, without an arena; NULL: the plan has no use */
    struct kernels gather;       /* the processor's, for one thread: what the host stream computes */
    struct device_stream **streams; /* by plan_stream() */
    struct unit_tables *tables;  /* per shard */
    struct state_tables *state_tables; /* per shard: tables[i].state, as weights.h wants them ... */
    struct state_tables *value_tables; /* ... and of its values alone, as they are kept */
    float **states;              /* per shard: its state on the host; NULL: it is on storage */
    struct run_storage *storage; /* NULL: no state is */
    uint64_t stage_offset, stage_bytes; /* in `host`: the arena of staged states */
    uint64_t ranges_offset;      /* in `host`: where the jobs' ranges begin */
    struct device *files;        /* the stream of OPENs and CLOSEs; NULL: the plan has no ranges */
    struct data_source **sources; /* per job */
    struct data_source **held_out; /* per job; NULL: it is not evaluated */
    float **kept;                /* per shard: its best values on the host; NULL: not kept */
    struct run_log *log;
    struct run_saver *saver;     /* NULL: no checkpoints */
    uint64_t snapshot_offset;    /* in `host`: room for the state of the largest job, for the saver */

    pthread_mutex_t lock;
    struct run_progress *jobs;
    uint32_t last_job;           /* whose loss came last; PLAN_NONE */
    double last_loss;
    struct error fatal;          /* a job failed, and with it the run */
    char notes[2048];            /* for the user, a line each */
    double start_s;              /* clock_s() when the first operation was enqueued */
};

static inline char *run_host_buffer(const struct run *run, uint32_t buffer)
{
    return run->host + run->host_offset[buffer];
}

/* Copy what is newer on a device than on the host to where a shard's whole state goes, on the D2H
 * stream; left out when its guard is shut. */
void run_bring_state(struct run *run, uint32_t device, uint32_t buffer,
                     const struct device_state *state, char *to, struct device_guard guard);

/* A job's state as a checkpoint has it, from the host or where `states` says, per shard of the job. */
struct checkpoint_subject run_checkpoint_subject(const struct run *run, uint32_t job,
                                                 float *const *states);

/* The steps of run_setup() up to the first memory of the plan's sizes, after run_check_machine(). Storage is opened between
 * the two. */
MUST_CHECK enum status run_prepare(struct run *run, struct error *err);     /* jobs, outputs, tables, the layout of host memory */
MUST_CHECK enum status run_open_inputs(struct run *run, struct error *err); /* memory, data, heads of weights */

/* Everything before the clock starts: checks, memory, devices, data, initial weights, the log. */
MUST_CHECK enum status run_setup(struct run *run, struct error *err);

/* Make the states of a job's shards [first_shard, + shard_count), numbered as in the plan: all of a job that comes from a
 * file. From one thread at a time per job. */
MUST_CHECK enum status run_fill_shards(struct run *run, uint32_t job, uint32_t first_shard, uint32_t shard_count,
                                       struct error *err);

/* Note how many minibatches the job has completed. */
void run_count_minibatches(struct run *run, uint32_t job);

/* Fingerprint and weights of a job that has ended, from any thread. What fails is told in the result. */
void run_keep_job(struct run *run, uint32_t job);

/* The same of all jobs that are in host memory: the weights of those that completed a minibatch. */
void run_keep_weights(struct run *run);

/* Fine on a half-built one. */
void run_teardown(struct run *run);

#endif
