/*
 * Carry out a plan: open its devices, place its host buffers, walk it in plan order and enqueue
 * every operation with the events it waits for.
 *
 * The log is JSON lines. The first says what the run is made of; then one for each minibatch of a
 * job, as soon as its loss is on the host:
 *     {"job":"a","step":12,"loss":3.21,"tokens_per_s":2085.1,"elapsed_s":4.67}
 * with "loss":null,"nonfinite":true where it is NaN or infinite; the last one says how it ended.
 *
 * Stopping early keeps whole minibatches: when *stop is seen, each job that has begun a minibatch
 * ends it, nothing more is started, and state that lies on a device is brought back to the host.
 * Every job then stands at the end of its last completed minibatch.
 */
#ifndef SPILLWAY_EXEC_RUN_H
#define SPILLWAY_EXEC_RUN_H

#include "planner/plan.h"
#include "traces/trace.h"

struct run_options {
    const char *log_path;        /* JSON lines per minibatch; NULL: none; "-": standard output */
    bool save_weights;           /* write each job's weights_out */
    bool record_spans;
    bool poison;                 /* tests, see device_options */
    uint64_t delay_seed;
    double stall_s;              /* tests: give up when nothing ends for so long; 0: the larger of a
                                    minute and 20 times the longest predicted operation */
    const volatile bool *stop;   /* set by a signal; may be NULL */
    /* From the calling thread, ten times a second: predicted seconds of computation. `job` is that
     * of the last loss, PLAN_NONE before there is one. */
    void (*on_progress)(void *context, double done, double total, uint32_t job, double loss);
    void *context;
};

struct run_job_result {
    uint64_t minibatches;  /* completed */
    double first_loss, final_loss; /* 0 when minibatches is 0; may be NaN or infinite */
    double *losses;        /* minibatches entries; in the result's arena */
    uint64_t nonfinite;    /* how many of them are NaN or infinite */
    uint64_t weights_fingerprint;
    const char *weights_path; /* where they were written; NULL: not. After a stop only those of jobs
                                 that completed a minibatch are. In the result's arena. */
};

struct run_result {
    struct arena arena;
    double makespan_s;     /* first start to last end, initialisation excluded */
    double setup_s;        /* opening, allocating, initial weights */
    struct run_job_result *jobs;
    bool stopped;
    uint32_t threads;      /* of each device */
    const char *libraries; /* what computed */
};

/*
 * `plan` must have passed plan_check(). Zeroed outputs in; release both, also after an error.
 * Errors: STATUS_NO_MEMORY with what is needed and what there is; STATUS_DEVICE, also when nothing
 * ends any more, with what waits for what; STATUS_BAD_INPUT for networks that cannot be trained
 * here, data and weights; STATUS_IO. STATUS_INTERRUPTED never: stopping is result->stopped. A loss
 * that is not finite is reported in the log and stops nothing.
 */
MUST_CHECK enum status run_plan(const struct plan *plan, const struct run_options *options,
                                struct run_result *result, struct trace *trace,
                                struct error *err);
void run_result_release(struct run_result *result);

#endif
