/* Reports of a trace's jobs and places. */
#ifndef SPILLWAY_CLI_COMMON_CLI_TRACE_H
#define SPILLWAY_CLI_COMMON_CLI_TRACE_H

#include "cli/common/cli.h"
#include "traces/trace.h"

/* Tables show at most CLI_ROWS_MAX rows; cli_more_rows() prints how many are left out. */
enum { CLI_ROWS_MAX = 40 };
void cli_more_rows(FILE *out, uint32_t shown, uint32_t count);

/* Jobs of images or profiles have no tokens a second. */
MUST_CHECK enum status cli_trace_jobs(FILE *out, const struct trace *trace, struct error *err);
MUST_CHECK enum status cli_trace_places(FILE *out, const struct trace *trace, struct error *err);

/* Prints where the trace is and how to look at it; nothing if `path` is NULL. */
void cli_trace_written(struct cli *cli, const char *path);

/* Writes the array "jobs"; "places": trace_writer_places(). */
void cli_trace_jobs_json(struct json_out *json, const struct trace *trace);

/* Returns all jobs' rate over the makespan; 0 when nothing ran. */
double cli_samples_per_s(const struct trace *trace);

#endif
