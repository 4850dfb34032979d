/* The result of a run as JSON and as text. */
#ifndef SPILLWAY_EXEC_RUN_REPORT_H
#define SPILLWAY_EXEC_RUN_REPORT_H

#include "base/json/json_out.h"
#include "exec/run/run.h"

struct run_report {
    const struct plan *plan;
    const struct run_result *result;
    const struct trace *trace;
    bool live;                                       /* a policy was asked during the run */
    const char *trace_path, *log_path, *executed_order_path; /* written files; may be NULL */
};

/* Writes JSON to a file or ("-") standard output. Errors: STATUS_IO. */
MUST_CHECK enum status run_report_write(const struct run_report *report, const char *path, struct error *err);

/* Prints on standard output. */
void run_report_print(const struct run_report *report);

/* Prints a stopped run's progress and the results kept, on standard error. */
void run_report_print_kept(const struct run_report *report);

/* Writes a loss; null if it is not finite. */
void run_report_put_loss(struct json_out *json, const char *key, double loss);

#endif
