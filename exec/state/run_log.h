/* The log of a run: JSON lines, see exec/run/run.h. Lines may come from several threads. */
#ifndef SPILLWAY_EXEC_RUN_LOG_H
#define SPILLWAY_EXEC_RUN_LOG_H

#include "planner/plan.h"

struct run_log; /* opaque */

/* What the first line says beside the plan. */
struct run_log_head {
    bool goes_on;            /* add to the file, instead of beginning it anew */
    bool live;               /* the policy is asked meanwhile */
    const char *policy;
    uint64_t seed;
    uint32_t threads;
    const char *libraries;
};

/* `path` NULL gives a log that writes nothing. Writes the first line. The caller ends it with
 * run_log_close(). */
MUST_CHECK enum status run_log_open(const char *path, const struct plan *plan, const struct run_log_head *head,
                                    struct run_log **out, struct error *err);

struct run_log_entry {
    uint32_t job;
    uint64_t step; /* from 1 */
    double loss;   /* may be NaN or infinite */
    double learning_rate;
    bool clips;
    double norm;   /* of all gradients, of a job that clips; may be NaN or infinite */
    bool skipped;  /* the step was left out */
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

/* What a stopped run keeps of a job: its minibatches, and where its weights were written. */
void run_log_kept(struct run_log *log, uint32_t job, uint64_t minibatches, const char *weights_path);

/* The last line. `end`: "complete", "stopped" or the text of an error. Errors of any write since
 * opening surface here (STATUS_IO). NULL is fine. */
MUST_CHECK enum status run_log_close(struct run_log *log, const char *end, double elapsed_s,
                                     struct error *err);

#endif
