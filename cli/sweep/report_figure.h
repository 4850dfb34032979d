/*
 * A figure of a JSON report: "makespan_s", "jobs[0].tokens_per_s", "places[gpu0].peak_bytes" (of the element named
 * gpu0).
 */
#ifndef SPILLWAY_CLI_SWEEP_REPORT_FIGURE_H
#define SPILLWAY_CLI_SWEEP_REPORT_FIGURE_H

#include <jansson.h>

#include "base/error.h"

/* Checks a path's syntax. Errors: STATUS_BAD_INPUT. */
MUST_CHECK enum status sweep_figure_check(const char *path, struct error *err);

/* Reads true as 1 and false as 0; NAN if missing or of another type. */
double sweep_figure_read(const json_t *report, const char *path);

#endif
