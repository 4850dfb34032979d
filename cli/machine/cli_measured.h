/* What the executor leaves as the result of a run. */
#ifndef SPILLWAY_CLI_CLI_MEASURED_H
#define SPILLWAY_CLI_CLI_MEASURED_H

#include "base/json/json_in.h"
#include "base/process/load.h"
#include "cli/reports/cli_results.h"
#include "planner/plan.h"

/* What the executor says of a job. */
struct cli_measured_job {
    uint64_t minibatches;
    double tokens_per_s, first_loss, final_loss, seconds;
    bool has_loss;        /* it completed a minibatch, with a finite loss */
    uint64_t nonfinite_losses, skipped_steps;
    const char *weights_path; /* NULL: not written */
    uint64_t checkpoint;      /* minibatches in its newest one; 0: none */
    const char *failure, *checkpoint_failure; /* NULL: none */
    struct cli_evaluation evaluation;
};

struct cli_measured {
    struct json_input *in; /* owns the strings */
    bool stopped;
    const char *trace_path, *log_path, *carried_path; /* NULL: not asked for, or not written */
    const char *unwritten; /* files that could not be written, and why; NULL: all were */
    uint32_t failed;       /* jobs that failed, or whose checkpoints did */
    double makespan_s, setup_s, tokens_per_s;
    struct load load;      /* of the machine during the run */
    double *busy_s;        /* per stream; in `arena` */
    const char *libraries;
    struct cli_measured_job *jobs; /* as many as the plan has; in `arena` */
    struct arena arena;
};

/*
 * The file at `path`, of a run of `plan`. Zeroed struct in; release it, also after an error. The
 * executor is a program of its own, perhaps of another version: keys that are not needed are passed
 * over, and those that are needed must be there.
 * Errors: STATUS_BAD_INPUT, STATUS_IO, STATUS_NO_MEMORY.
 */
MUST_CHECK enum status cli_measured_read(const char *path, const struct plan *plan,
                                         struct cli_measured *out, struct error *err);
void cli_measured_release(struct cli_measured *measured);

#endif
