/* Options and results of carrying out a plan (run.h). */
#ifndef SPILLWAY_EXEC_RUN_OPTIONS_H
#define SPILLWAY_EXEC_RUN_OPTIONS_H

#include "base/process/load.h"
#include "exec/device/device.h"
#include "exec/device/storage.h"
#include "models/job/evaluation.h"
#include "planner/plan.h"
#include "planner/plan_memory.h"
#include "traces/trace.h"

/*
 * Checkpoints, see checkpoint.h. A job gets one when it is complete, when the run is stopped, and
 * whenever its minibatches pass a multiple of every_steps or every_s have gone by since its last one.
 * The state is copied aside (which takes as much host memory as the state of the largest job) and
 * written while training goes on; one that comes due meanwhile is taken at the job's next minibatch.
 * A job whose checkpoint cannot be written goes on without.
 */
struct run_checkpoints {
    const char *folder;
    uint64_t every_steps; /* 0: no matter */
    double every_s;       /* 0: no matter */
    uint64_t keep;        /* per job */
    struct disk *disk;    /* tests; NULL: the real one */
    bool each;            /* tests: wait for the one before, and pass none over */
};

enum run_on_nan {
    RUN_NAN_CONTINUE, /* a loss that is not finite is told in the log and stops nothing */
    RUN_NAN_STOP,     /* the job ends with that minibatch, whose step is left out, and counts as failed; its weights are
                         those of the minibatch before. On GPUs steps may be made before the loss is known: weights
                         that are not finite are not written */
    RUN_NAN_SKIP      /* the optimizer's step is left out, of jobs that clip: they know in time */
};

struct policy_process; /* planner/policy/policy_process.h */

struct run_options {
    struct policy_process *live;     /* asked what comes next, of a plan with choices (run_live.h); borrowed;
                                    NULL: the plan's order */
    uint64_t live_seed;
    bool record_order;           /* live: result->order; always with record_spans */
    const char *log_path;        /* JSON lines per minibatch; NULL: none; "-": standard output */
    bool log_goes_on;            /* add to the log, as if a job began in its middle, instead of beginning
                                    a new one: other jobs may have done so */
    bool save_weights;           /* write each job's weights_out, or its partial path (models/job/job_files.h) when
                                    the job has not come to its end */
    const struct run_checkpoints *checkpoints; /* NULL: none; needed when a job begins in its middle */
    struct storage_options storage; /* its folder, NULL: there is none; bytes and lanes do not matter */
    enum run_on_nan on_nan;
    bool keep_going;             /* a job that fails does not end the others */
    bool record_spans;
    bool tf32;                   /* see device_options */
    bool poison;                 /* tests, see device_options */
    uint64_t delay_seed;
    double stall_s;              /* tests: give up when nothing ends for so long; 0: the larger of a
                                    minute and 20 times the longest predicted operation */
    const volatile bool *stop;   /* set by a signal; may be NULL */
    /* From the calling thread, ten times a second: predicted seconds of computation. `job` is that
     * of the last loss, PLAN_NONE before there is one. */
    void (*on_progress)(void *context, double done, double total, uint32_t job, double loss);
    /* From the calling thread: a line about something that ends nothing. May be NULL. */
    void (*on_note)(void *context, const char *text);
    void *context;
};

struct run_job_result {
    uint64_t minibatches;  /* completed since the training began, first_minibatch included */
    uint64_t first_minibatch; /* completed before this run */
    double first_loss, final_loss; /* 0 when minibatches is 0; may be NaN or infinite */
    double *losses;        /* minibatches entries; in the result's arena */
    uint64_t nonfinite;    /* how many of them are NaN or infinite */
    uint64_t skipped;      /* minibatches of this run whose steps were left out */
    struct evaluated *evaluations; /* in the result's arena */
    uint64_t evaluation_count;
    uint64_t best_evaluation;  /* the first with the lowest loss, or EVALUATION_NONE */
    uint64_t weights_fingerprint;
    const char *weights_path; /* where they were written; NULL: not. After a stop only those of jobs
                                 that completed a minibatch are. In the result's arena. */
    uint64_t checkpoint;         /* minibatches in its newest checkpoint; 0: none, or as before */
    const char *checkpoint_failure; /* why there are no more; NULL: nothing is wrong */
    const char *failure;         /* why it ended early; NULL: it did not, or all were stopped */
    uint64_t kept_fingerprint; /* of the best weights; 0: none were kept */
    const char *kept_path;     /* where they were written; as above */
};

/* Memory that a device has, and what of its arena was handed out for what: but for what was never
 * reached, the table of plan_memory_planned(). */
struct run_device_memory {
    struct device_memory taken;
    struct plan_memory memory;
};

struct run_result {
    struct arena arena;
    double makespan_s;     /* first start to last end, initialisation excluded */
    double setup_s;        /* opening, allocating, initial weights */
    struct load load;      /* of the machine during the run */
    double *busy_s;        /* per stream (plan_stream()): its operations */
    struct run_device_memory *devices; /* per device */
    uint64_t host_bytes;   /* of host buffers, with a snapshot for checkpoints and padding */
    bool pinned;           /* those are: CUDA */
    struct run_job_result *jobs;
    uint64_t decisions;    /* live: of the policy */
    struct plan_instance *order; /* live, when asked for: as it came about (plan_carried.h); in the arena */
    uint64_t order_count;
    bool stopped;
    bool log_failed;       /* the log is not complete */
    char unwritten[768];   /* weights and logs that could not be written, and why; "": all were */
    uint32_t failed;       /* jobs with a failure or a checkpoint_failure */
    uint32_t threads;      /* of each device */
    const char *libraries; /* what computed */
};

#endif
