/*
 * Carry out a plan: open its devices, place its host buffers, walk it in plan order and enqueue
 * every operation with the events it waits for.
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
    const volatile bool *stop;   /* set by a signal: finish what is enqueued and end; may be NULL */
    void (*on_progress)(void *context, double done, double total, uint32_t job, double loss);
    void *context;
};

struct run_job_result {
    uint64_t minibatches;  /* completed */
    double first_loss, final_loss;
    double *losses;        /* minibatches entries; in the result's arena */
    uint64_t weights_fingerprint;
    const char *weights_path; /* where they were written; NULL: not */
};

struct run_result {
    struct arena arena;
    double makespan_s;     /* first start to last end, initialisation excluded */
    double setup_s;        /* opening, allocating, initial weights */
    struct run_job_result *jobs;
    bool stopped;
    const char *libraries; /* what computed */
};

/* Release both outputs, also after an error. Errors: STATUS_NO_MEMORY with the budget, STATUS_DEVICE
 * (a NaN loss is reported in the log and does not stop the run), STATUS_BAD_INPUT for data and
 * weights, STATUS_IO, STATUS_INTERRUPTED never: stopping is result->stopped. */
MUST_CHECK enum status run_plan(const struct plan *plan, const struct run_options *options,
                                struct run_result *result, struct trace *trace,
                                struct error *err);
void run_result_release(struct run_result *result);

#endif
