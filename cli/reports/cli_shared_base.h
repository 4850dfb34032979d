/* Bases that jobs share (models/jobs/job_base.h): what crosses, and what sharing gains; other plans have no such
 * lines. */
#ifndef SPILLWAY_CLI_REPORTS_CLI_SHARED_BASE_H
#define SPILLWAY_CLI_REPORTS_CLI_SHARED_BASE_H

#include <stdio.h>

#include "base/json/json_out.h"
#include "planner/plan.h"

/* Print a line for each base; write "bases": [{"job", "jobs", "bytes", ...}, ...]. `width`: columns of the words
 * before. */
void cli_shared_base_print(FILE *out, const struct plan *plan, int width);
void cli_shared_base_json(struct json_out *json, const struct plan *plan);

#endif
