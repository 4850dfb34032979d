/* The parts of a report that are about a trace, predicted or measured: its jobs and its places. */
#ifndef SPILLWAY_CLI_TRACE_H
#define SPILLWAY_CLI_TRACE_H

#include "cli/common/cli.h"
#include "traces/trace.h"

/* Tables in text show so many rows and then say how many more there are. */
enum { CLI_ROWS_MAX = 40 };
void cli_more_rows(FILE *out, uint32_t shown, uint32_t count);

MUST_CHECK enum status cli_trace_jobs(FILE *out, const struct trace *trace, struct error *err);
MUST_CHECK enum status cli_trace_places(FILE *out, const struct trace *trace, struct error *err);

/* Where the trace was written, and how to look at it. Nothing where `path` is NULL. */
void cli_trace_written(struct cli *cli, const char *path);

/* The arrays "jobs" and "places". */
void cli_trace_jobs_json(struct json_out *json, const struct trace *trace);
void cli_trace_places_json(struct json_out *json, const struct trace *trace);

/* Tokens (or samples) of all jobs per second of the makespan; 0 when nothing ran. */
double cli_tokens_per_s(const struct trace *trace);
double cli_samples_per_s(const struct trace *trace);

#endif
