/* The result file that the executor writes after a run. */
#ifndef SPILLWAY_CLI_MACHINE_CLI_MEASURED_H
#define SPILLWAY_CLI_MACHINE_CLI_MEASURED_H

#include "base/json/json_in.h"
#include "base/process/load.h"
#include "cli/reports/cli_results.h"
#include "planner/plan.h"

/* The result of a job. */
struct cli_measured_job {
    uint64_t minibatches;
    double tokens_per_s, first_loss, final_loss, seconds;
    bool has_loss;        /* the job completed a minibatch, with a finite loss */
    uint64_t nonfinite_losses, skipped_steps;
    const char *weights_path; /* NULL: not written */
    uint64_t checkpoint;      /* minibatches done in its newest checkpoint; 0: it has none */
    const char *failure, *checkpoint_failure; /* NULL: none */
    struct cli_evaluation evaluation;
};

struct cli_measured {
    struct json_input *in; /* owns the strings */
    bool stopped;
    const char *trace_path, *log_path, *carried_path; /* NULL: not asked for, or not written */
    const char *unwritten; /* files that could not be written, with the reason; NULL: none */
    uint32_t failed;       /* jobs that failed, or whose checkpoints failed */
    double makespan_s, setup_s, tokens_per_s;
    struct load load;      /* of the machine during the run */
    double *busy_s;        /* per stream; in `arena` */
    const char *libraries;
    struct cli_measured_job *jobs; /* one for each job of the plan; in `arena` */
    struct arena arena;
};

/*
 * Reads the file at `path`, the result of a run of `plan`. `out` is zeroed before; the caller releases it, also after
 * an error. The executor may be of another version: unknown keys are ignored, and required keys must be there. Errors:
 * STATUS_BAD_INPUT, STATUS_IO.
 */
MUST_CHECK enum status cli_measured_read(const char *path, const struct plan *plan,
                                         struct cli_measured *out, struct error *err);
void cli_measured_release(struct cli_measured *measured);

#endif
