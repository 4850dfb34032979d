/* The report of `run`: the prediction beside the measurement, and how the jobs ended. */
#ifndef SPILLWAY_CLI_CLI_RUN_REPORT_H
#define SPILLWAY_CLI_CLI_RUN_REPORT_H

#include "cli/common/cli.h"
#include "cli/machine/cli_measured.h"
#include "cli/run/cli_resume.h"
#include "cli/ways/cli_predict.h"

/* What the command line says. */
struct cli_run_request {
    const char *plan_path, *trace_path, *log_path;
    const char *scratch_trace; /* without a trace_path: for the pictures of --report; may be NULL */
    const char *checkpoint, *checkpoint_every; /* a folder, how often; NULL: not given */
    const char *storage;                       /* a folder; NULL: not given */
    const char *output;                        /* a folder for weights; NULL: where the plan has them */
    const char *policy, *carried;              /* live; NULL: not given */
    uint64_t seed;
    size_t dispatch;                           /* index into cli_dispatches */
    uint64_t keep; /* 0: not given */
    size_t on_nan; /* index into the option's choices */
    bool no_weights, tf32, keep_going, resume;
    uint64_t devices;           /* 0: not given */
    double device_memory_bytes; /* or CLI_NOT_GIVEN */
};

struct cli_run_report {
    const struct cli_run_request *request;
    const struct plan *plan;
    const struct cli_prediction *prediction;
    const struct cli_measured *measured;
    /* what a resumed run went on from: all jobs, of which `plan` has those with something left */
    const struct plan *whole;         /* NULL: it began anew */
    const struct cli_resume *resume;
};

/* Did every job come to its end? */
bool cli_run_is_complete(const struct cli_run_report *report);

/* As text or JSON. Errors: STATUS_NO_MEMORY, STATUS_IO, STATUS_BAD_INPUT of figures in the result. */
MUST_CHECK enum status cli_run_report(struct cli *cli, const struct cli_run_report *report,
                                      struct error *err);

/* The same when all jobs of report->whole were complete before. */
MUST_CHECK enum status cli_run_report_nothing_left(struct cli *cli,
                                                   const struct cli_run_report *report,
                                                   struct error *err);

#endif
