/* The executor's result file. */
#ifndef SPILLWAY_CLI_MACHINE_CLI_MEASURED_H
#define SPILLWAY_CLI_MACHINE_CLI_MEASURED_H

#include "base/json/json_in.h"
#include "base/process/load.h"
#include "cli/reports/cli_results.h"
#include "planner/plan.h"

struct cli_measured_job {
    uint64_t minibatches;
    double tokens_per_s, first_loss, final_loss, seconds;
    bool has_first_loss, has_loss; /* the first loss is finite; the final one */
    uint64_t nonfinite_losses, skipped_steps;
    const char *weights_path; /* NULL: not written */
    uint64_t checkpoint;      /* minibatches; 0: none */
    const char *failure, *checkpoint_failure; /* NULL: none */
    struct cli_evaluation evaluation;
};

struct cli_measured {
    struct json_input *in; /* owns the strings */
    bool stopped;
    const char *trace_path, *log_path, *executed_order_path; /* may be NULL */
    const char *unwritten; /* files that could not be written; may be NULL */
    uint32_t failed;       /* jobs that ended early */
    double makespan_s, setup_s, tokens_per_s;
    struct load load;      /* during the run */
    double late;           /* of dilated devices: share by which their work was late */
    double *busy_s;        /* per stream; in `arena` */
    const char *libraries;
    struct cli_measured_job *jobs; /* per job of the plan; in `arena` */
    struct arena arena;
};

/*
 * Reads a result of `plan`. `out` is zeroed before; the caller releases it, also after an error.
 * Unknown keys of another version are ignored; required keys must be there. Errors:
 * STATUS_BAD_INPUT, STATUS_IO.
 */
MUST_CHECK enum status cli_measured_read(const char *path, const struct plan *plan,
                                         struct cli_measured *out, struct error *err);
void cli_measured_release(struct cli_measured *measured);

#endif
