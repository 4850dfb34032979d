/* The report of `run`: prediction and measurement. */
#ifndef SPILLWAY_CLI_RUN_CLI_RUN_REPORT_H
#define SPILLWAY_CLI_RUN_CLI_RUN_REPORT_H

#include "cli/common/cli.h"
#include "cli/machine/cli_measured.h"
#include "cli/run/cli_resume.h"
#include "cli/ways/cli_predict.h"

/* The command line. */
struct cli_run_request {
    const char *plan_path, *trace_path, *log_path;
    const char *scratch_trace; /* for --report without trace_path; may be NULL */
    const char *checkpoint, *checkpoint_every; /* folder and interval; may be NULL */
    const char *storage;                       /* folder; may be NULL */
    const char *hosts;                         /* file; NULL: one process */
    const char *output;                        /* for weights; NULL: the plan's */
    const char *policy, *executed_order;              /* --dispatch live; may be NULL */
    uint64_t seed;
    size_t dispatch;                           /* index into cli_dispatches */
    uint64_t keep; /* 0: not given */
    size_t on_nan; /* in the option's choices */
    bool no_weights, tf32, nccl_sums, keep_going, resume;
    uint64_t devices;           /* 0: not given */
    double device_memory_bytes; /* or CLI_NOT_GIVEN */
};

struct cli_run_report {
    const struct cli_run_request *request;
    const struct plan *plan;
    const struct cli_prediction *prediction;
    const struct cli_measured *measured;
    /* All jobs of a resumed run; `plan` has those with remaining minibatches. */
    const struct plan *whole;         /* NULL: not resumed */
    const struct cli_resume *resume;
};

/* Returns true if every job ended. */
bool cli_run_is_complete(const struct cli_run_report *report);

/* Writes text or JSON. Errors: STATUS_IO, STATUS_BAD_INPUT for figures in the result. */
MUST_CHECK enum status cli_run_report(struct cli *cli, const struct cli_run_report *report,
                                      struct error *err);

/* Reports that all jobs of report->whole were complete before. */
MUST_CHECK enum status cli_run_report_nothing_left(struct cli *cli,
                                                   const struct cli_run_report *report,
                                                   struct error *err);

#endif
