/* The log of a run (exec/run/run.h). Thread-safe. */
#ifndef SPILLWAY_EXEC_STATE_RUN_LOG_H
#define SPILLWAY_EXEC_STATE_RUN_LOG_H

#include "planner/plan.h"

struct run_log; /* opaque */

/* Values of the first line that are not in the plan. */
struct run_log_head {
    bool goes_on;            /* append */
    bool live;               /* the policy is asked during the run */
    const char *policy;
    uint64_t seed;
    uint32_t threads;
    const char *libraries;
};

/* Writes the first line. `path` may be NULL. The caller ends it with run_log_close(). */
MUST_CHECK enum status run_log_open(const char *path, const struct plan *plan, const struct run_log_head *head,
                                    struct run_log **out, struct error *err);

struct run_log_entry {
    uint32_t job;
    uint64_t step; /* from 1 */
    double loss;   /* may be NaN or infinite */
    double learning_rate;
    bool clips;
    double norm;   /* of all gradients, if the job clips; may be NaN or infinite */
    bool skipped;  /* no step was made */
    double tokens_per_s, elapsed_s;
};
struct run_log_evaluation {
    uint64_t step; /* from 1 */
    double loss;   /* may be NaN or infinite */
    bool best;     /* so far */
    double elapsed_s;
};
void run_log_minibatch(struct run_log *log, const struct run_log_entry *entry);

void run_log_evaluation(struct run_log *log, uint32_t job, const struct run_log_evaluation *entry);

/* Writes the minibatches that a stopped run keeps, and the path of its weights. */
void run_log_kept(struct run_log *log, uint32_t job, uint64_t minibatches, const char *weights_path);

/* Writes the last line. `end`: "complete", "stopped" or the text of an error. NULL does nothing. Errors: STATUS_IO
 * when any write failed. */
MUST_CHECK enum status run_log_close(struct run_log *log, const char *end, double elapsed_s,
                                     struct error *err);

#endif
