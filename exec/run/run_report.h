/* What a run has come to, as JSON for programs and as text for a reader. */
#ifndef SPILLWAY_EXEC_RUN_REPORT_H
#define SPILLWAY_EXEC_RUN_REPORT_H

#include "base/json/json_out.h"
#include "exec/run/run.h"

struct run_report {
    const struct plan *plan;
    const struct run_result *result;
    const struct trace *trace;
    bool live;                                       /* was a policy asked while it ran? */
    const char *trace_path, *log_path, *carried_path; /* where these were written; NULL: they were not */
};

/* To a file, or ("-") to standard output. Errors: STATUS_IO, STATUS_NO_MEMORY. */
MUST_CHECK enum status run_report_write(const struct run_report *report, const char *path, struct error *err);

/* On standard output. */
void run_report_print(const struct run_report *report);

/* Of a run that was stopped, on standard error: how far each job came, and what is kept of it. */
void run_report_print_kept(const struct run_report *report);

/* A loss that is not finite is null. */
void run_report_put_loss(struct json_out *json, const char *key, double loss);

#endif
