/* Options and results of a run (run.h). */
#ifndef SPILLWAY_EXEC_STATE_RUN_OPTIONS_H
#define SPILLWAY_EXEC_STATE_RUN_OPTIONS_H

#include "base/process/load.h"
#include "exec/device/device.h"
#include "exec/device/storage.h"
#include "models/job/evaluation.h"
#include "planner/plan.h"
#include "planner/plan_memory.h"
#include "traces/trace.h"

/*
 * Checkpoints (checkpoint.h): when a job is complete, when the run is stopped, and when minibatches pass a multiple of
 * every_steps or every_s have passed. The state is copied to a snapshot (host memory of the size of the largest job's
 * state) and written while training continues. A checkpoint that becomes due meanwhile is taken at the next minibatch.
 * A job whose checkpoint cannot be written continues without.
 */
struct run_checkpoints {
    const char *folder;
    uint64_t every_steps; /* 0: no matter */
    double every_s;       /* 0: no matter */
    uint64_t keep;        /* per job */
    struct disk *disk;    /* for tests; NULL: the real disk */
    bool each;            /* for tests: waits for the previous checkpoint and skips none */
};

enum run_on_nan {
    RUN_NAN_CONTINUE, /* a loss that is not finite is logged */
    RUN_NAN_STOP,     /* that minibatch's step is skipped, and the job ends as failed with the weights of the one
                         before. GPUs may make steps before the loss is known: weights that are not finite are not
                         written */
    RUN_NAN_SKIP      /* the step is skipped; only for jobs that clip */
};

struct ranks;          /* exec/ranks/rank_mesh.h */
struct policy_process; /* planner/policy/policy_process.h */

struct run_options {
    struct ranks *ranks;             /* other processes with the same plan; run_plan() takes leave of them; borrowed;
                                        NULL: none */
    struct policy_process *live;     /* policy of a plan with choices (run_live.h); borrowed; NULL: the plan's order */
    bool live_elsewhere;             /* rank of several: rank 0 asks such a policy, and tells the order */
    uint64_t live_seed;
    bool record_order;           /* live: fill result->order; implied by record_spans or a writer */
    const char *log_path;        /* NULL: none; "-": standard output */
    bool log_goes_on;            /* append, even if no job continues from a checkpoint */
    bool save_weights;           /* to weights_out, or to its partial path (models/jobs/job_files.h) if the job is
                                    unfinished */
    const struct run_checkpoints *checkpoints; /* may be NULL; required when a job continues from a checkpoint */
    struct storage_options storage; /* only the folder is used; NULL: no storage */
    enum run_on_nan on_nan;
    bool keep_going;             /* a failed job does not end the others */
    bool record_spans;           /* in the trace */
    struct trace_writer *writer; /* gets spans and levels; the caller commits it; may be NULL */
    bool tf32;                   /* see device_options */
    bool nccl_sums;              /* sums over three GPUs and more by NCCL, in its own order (run_library.h) */
    bool poison;                 /* for tests, see device_options */
    uint64_t delay_seed;
    double stall_s;              /* for tests: seconds without progress until a run gives up; 0: the larger of a
                                    minute and 20 times the longest predicted operation */
    const volatile bool *stop;   /* set by a signal; may be NULL */
    /* From the calling thread, ten times a second, with predicted seconds of computation. `job`: of the last loss,
     * or PLAN_NONE. */
    void (*on_progress)(void *context, double done, double total, uint32_t job, double loss);
    /* Gets notes, from the calling thread. May be NULL. */
    void (*on_note)(void *context, const char *text);
    void *context;
};

/* Returns true if a policy decides the order while the run goes on. */
static inline bool run_is_live(const struct run_options *options)
{
    return options->live || options->live_elsewhere;
}

struct run_job_result {
    uint64_t minibatches;  /* since the training began, including first_minibatch */
    uint64_t first_minibatch;                /* before this run */
    double first_loss, final_loss;           /* 0 without minibatches; may be NaN or infinite */
    double *losses;        /* per minibatch; in the result's arena */
    uint64_t nonfinite;    /* losses that are NaN or infinite */
    uint64_t skipped;      /* minibatches of this run without a step */
    struct evaluation_progress *evaluations; /* in the result's arena */
    uint64_t evaluation_count;
    uint64_t best_evaluation;  /* the first with the lowest loss; or EVALUATION_NONE */
    uint64_t weights_fingerprint;
    const char *weights_path; /* NULL: not written. After a stop only jobs that completed a minibatch write weights.
                                 In the result's arena */
    uint64_t checkpoint;         /* minibatches in its newest checkpoint; 0: none, or unchanged */
    const char *checkpoint_failure; /* why no further checkpoints were written; may be NULL */
    const char *failure;         /* why it ended early; NULL: it did not, or all jobs were stopped */
    uint64_t kept_fingerprint; /* of the best weights; 0: none kept */
    const char *kept_path;     /* the best weights; as weights_path */
};

/* A device's memory, as plan_memory_planned() except for operations that were never reached. */
struct run_device_memory {
    struct device_memory taken;
    struct plan_memory memory;
};

struct run_result {
    struct arena arena;
    double makespan_s;     /* without initialisation */
    double setup_s;        /* opening, allocating, initial weights */
    struct load load;      /* during the run */
    struct device_pacing pacing; /* of all devices */
    double *busy_s;        /* per stream (plan_stream()) */
    struct run_device_memory *devices; /* per device */
    uint64_t host_bytes;   /* including the snapshot for checkpoints and padding */
    bool pinned;           /* CUDA: host buffers are pinned */
    struct run_job_result *jobs;
    uint64_t decisions;          /* live: of the policy */
    struct plan_task *order; /* live, if requested: the order in which units ran (plan_executed.h); in the arena */
    uint64_t order_count;
    bool stopped;
    bool log_failed;       /* incomplete */
    char unwritten[768];   /* weights, checkpoints and logs that could not be written, with reasons; or "" */
    uint32_t failed;       /* jobs with a failure */
    uint32_t threads;      /* of each device */
    const char *libraries; /* what computed */
};

#endif
