/* Shared declarations of a run's files. */
#ifndef SPILLWAY_EXEC_STATE_RUN_STATE_H
#define SPILLWAY_EXEC_STATE_RUN_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/files/disk.h"
#include "base/size.h"
#include "exec/checkpoint/checkpoint.h"
#include "exec/device/backend.h"
#include "exec/device/device.h"
#include "exec/files/data.h"
#include "exec/network/chunk.h"
#include "exec/state/run_log.h"
#include "exec/state/run_options.h"

/* A job's progress, changed under run.lock. */
struct run_progress {
    uint64_t begun;   /* minibatches with a started computation */
    atomic_uint_fast64_t frozen; /* fingerprint of frozen weights, of the shards filled so far */
    atomic_uint_fast64_t limit; /* later minibatches are skipped; lowered once, by a stop */
    uint64_t losses;  /* on the host */
    double last_loss_s;
    bool diverged;    /* a loss or gradient is not finite and the job stops */
    struct unit_guard guard;
    bool damaged;     /* state is lost or mixes several steps: nothing is kept */
    bool home;        /* complete, with its state on the host; see run_note_lost_devices() */
    uint64_t nonfinite;   /* minibatches up to the last loss that is not finite; 0: none */
    struct run_log_entry *halves; /* with clipping, by step, in turn: either loss or norm is known, the other is not;
                                     step 0:
                                   * none */
    struct error failure; /* zero: no early end, or stopped */
    double held_out_sum;  /* losses of the current evaluation, ... */
    uint64_t held_out;    /* ... and their number */
    double *held_out_parts; /* of replicas, for the held-out minibatches of two evaluations; and how many have come */
    uint32_t *held_out_count;
    bool held_out_failed; /* no data: no further evaluations */
    uint64_t improved;    /* minibatches up to the best evaluation of this run; 0: none */
    uint64_t judged;      /* minibatches up to the last evaluation of which this rank knows whether it is the best */
    bool kept;            /* the best weights were kept */
    double *partial_losses; /* of replicas, for run_minibatches_ahead() minibatches in turn; and how many have come */
    uint32_t *partial_count;
    bool taken;           /* the state came from the job that it goes on from */
    bool opened, closed;  /* for a job with a range of host memory: loaded; written and released */
};

struct run_storage; /* run_storage.h */
struct run_collective; /* run_collective.c */
struct run_peers; /* run_peers.h */
struct run_moves; /* run_moves.c */

/* The state of a shard or slice on a device. */
struct run_device_state {
    uint64_t address, bytes;
    uint64_t first_row, row_count;
    uint32_t rank;          /* of the replica whose share it is */
    uint64_t arrived;       /* minibatch in which it was acquired */
    uint64_t changed_bytes; /* newer than on the host */
};

struct run {
    const struct plan *plan;
    const struct run_options *options;
    struct run_result *result;
    struct arena arena;

    const struct backend *backend;
    uint32_t threads;            /* 0 for GPUs */
    char attention_by[640];      /* of bf16 jobs; "": there is no choice */
    bool pinned;                 /* host buffers, for the GPUs' copies */
    uint64_t host_bytes;
    char *host;                  /* all host buffers */
    uint64_t *host_offset;       /* per buffer; device buffers: 0 */
    struct device **devices;
    bool *uses_device;           /* [job][device] */
    uint8_t *slot_uses;          /* per device and slot: a sum of 1 << enum plan_memory_use; only for the walking
                                    thread */
    bool *device_noted;          /* per device: lost; only for the walking thread */
    struct device *cpu;          /* the host's processor, without an arena; may be NULL */
    struct kernels gather, gather_half; /* of the processor, for one thread: computations of the host stream */
    struct device_stream **streams; /* by plan_stream() */
    struct unit_tables *tables;  /* per shard, of the whole network; of a chunk only states and parameters */
    struct chunk_tables *chunks; /* per shard: of parallel jobs */
    struct unit_split **splits;  /* per shard: of each rank; NULL: no tensor group */
    struct state_tables *state_tables; /* per shard, in the form of weights.h ... */
    struct state_tables *whole_tables; /* ... with frozen weights in a shared base (run_base.h) ... */
    struct state_tables *value_tables; /* ... and of only its values, for kept weights */
    float **states;              /* per shard, on the host; NULL: on storage, or split (run_shares.h) */
    uint32_t *state_buffers;     /* per shard: its host buffer; PLAN_NONE: it is on storage */
    struct run_storage *storage; /* may be NULL; then so are ... */
    uint32_t *stored_buffers;    /* ... the plan's buffers of states on storage, per shard ... */
    char **stored_aside;         /* ... and all ranks' states of a shard, while they are in memory (run_storage.c) */
    uint64_t stage_offset, stage_bytes; /* in `host`: staged states */
    uint64_t ranges_offset;      /* in `host`: the jobs' ranges */
    struct device *files;        /* OPENs and CLOSEs; NULL: no ranges */
    struct data_source **sources; /* per job */
    struct data_source **held_out; /* per job; NULL: not evaluated */
    int32_t **row_begins;        /* per stream, of packed rows (run_rows.h); may be NULL */
    float **kept;                /* per shard: best values on the host; NULL: not kept */
    struct run_log *log;
    struct run_saver *saver;     /* NULL: no checkpoints */
    uint64_t snapshot_offset;    /* in `host`: room for the largest job's state */

    struct run_moves *moves;            /* NULL: no job goes on from another */
    struct run_peers *peers;            /* other processes; NULL: none */
    struct run_library *library;        /* that carries out collectives of GPUs (run_library.h); NULL: none */
    char collectives_by[320];           /* of GPUs: who carries them out; "": there are none */
    struct run_collective *collectives; /* in flight; under lock, like `cancelled` */
    struct run_collective *joining;     /* whose members are being enqueued; only for the walking thread */
    bool cancelled;                     /* no member waits for others any longer */

    uint64_t *staged_offset;     /* of GPUs, by stream: in `host`, room for data of collectives (run_staged.h) */

    pthread_mutex_t lock;
    struct run_progress *jobs;
    uint32_t last_job;           /* of the last loss; or PLAN_NONE */
    double last_loss;
    struct error fatal;          /* the failure that ended the run */
    char notes[2048];            /* for the user, one per line */
    double start_s;              /* clock_s() of the first operation */
};

/* Returns true if the job's state is in host memory, after all work has ended. */
static inline bool run_job_is_open(const struct run *run, uint32_t job)
{
    return !plan_has_range(run->plan, job) || (run->jobs[job].opened && !run->jobs[job].closed);
}

/* Counts the replicas that each have a part of a minibatch's loss: the last stage's. */
static inline uint32_t run_loss_replicas(const struct job *job)
{
    return parallel_is_set(&job->parallel) ? parallel_replicas(&job->parallel, job->parallel.pipeline - 1) : 1;
}

/* Returns the minibatches that may have begun beyond the last one with a loss in several processes: in a synchronous
 * schedule the next one and one more; in an asynchronous one those in flight, too, and those of replicas whose losses
 * come together. */
static inline uint64_t run_minibatches_ahead(const struct job *job)
{
    const struct parallel *const p = &job->parallel;
    if (!parallel_is_set(p) || !pipeline_is_asynchronous(p->schedule)) return 2;
    const uint64_t each = job->microbatches / p->data;
    const uint64_t in_flight = p->replicated > 0 ? parallel_devices(p) / p->tensor : p->pipeline;
    return 2 + (in_flight + each - 1) / each + (p->replicated > 0 ? run_loss_replicas(job) : 0);
}

/* Returns the entries of run_progress.halves: losses may be ahead of norms by more than a minibatch. */
static inline uint64_t run_halves(const struct job *job)
{
    return 2 + run_minibatches_ahead(job);
}

static inline char *run_host_buffer(const struct run *run, uint32_t buffer)
{
    return run->host + run->host_offset[buffer];
}

/* Returns the buffer of a rank of a parallel job, whose ranks have one each. */
enum { RUN_HOST_ALIGNMENT = 4096 };
static inline char *run_host_buffer_of(const struct run *run, uint32_t buffer, uint32_t rank)
{
    return run_host_buffer(run, buffer) + rank * size_align(run->plan->buffers[buffer].bytes, RUN_HOST_ALIGNMENT);
}

/* Copies the newer part of a device's state to the shard's whole state at `to`, on the D2H stream; skipped when its
 * guard is closed. */
void run_bring_state(struct run *run, uint32_t device, uint32_t buffer,
                     const struct run_device_state *state, char *to, struct device_guard guard);

/* Returns the disk with the run's checkpoints. */
static inline struct disk *run_checkpoint_disk(const struct run *run)
{
    struct disk *const disk = run->options->checkpoints->disk;
    return disk ? disk : &disk_real;
}

/* Takes the job's state from the host or from `states`, per shard of the job. */
struct checkpoint_subject run_checkpoint_subject(const struct run *run, uint32_t job,
                                                 float *const *states);

/* Steps of run_setup() before and after storage is opened. */
MUST_CHECK enum status run_prepare(struct run *run, struct error *err);     /* jobs, outputs, tables, layout of host
                                                                               memory */
MUST_CHECK enum status run_open_inputs(struct run *run, struct error *err); /* memory, data, heads of weights */

/* Does all work before the clock starts. */
MUST_CHECK enum status run_setup(struct run *run, struct error *err);

/* Makes states of shards [first_shard, first_shard + shard_count), numbered as in the plan. A job with weights from
 * a file is filled as a whole. One thread at a time per job. */
MUST_CHECK enum status run_fill_shards(struct run *run, uint32_t job, uint32_t first_shard, uint32_t shard_count,
                                       struct error *err);

/* Fills the states of all jobs that continue or start with the run, several shards at a time. A job that cannot be
 * filled fails early, or the run does. */
MUST_CHECK enum status run_fill_all(struct run *run, struct error *err);

/* Fills a parallel job's copies of its states: of tied tables, and of replicas. */
void run_fill_copies(struct run *run, uint32_t job);

void run_count_minibatches(struct run *run, uint32_t job);

/* Computes the fingerprint of an ended job and writes its weights, from any thread. Failures go into the result. */
void run_keep_job(struct run *run, uint32_t job);

/* Does the same for all jobs in host memory, if they completed a minibatch. */
void run_keep_weights(struct run *run);

/* Frees a run, perhaps only partly set up. */
void run_teardown(struct run *run);

#endif
