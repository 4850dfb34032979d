/*
 * How many updates old the weights of passes are, in jobs that train differently from one device
 * (models/job/parallel.h); other plans have no such lines.
 */
#ifndef SPILLWAY_CLI_REPORTS_CLI_STALENESS_H
#define SPILLWAY_CLI_REPORTS_CLI_STALENESS_H

#include <stdio.h>

#include "base/json/json_out.h"
#include "planner/plan.h"

/* Prints a line for each staleness, with the first such job; `width`: columns of the words before. */
void cli_staleness_print(FILE *out, const struct plan *plan, int width);

/* Writes "stale": [{"job", "least", "most"}, ...], in updates, of those jobs. */
void cli_staleness_json(struct json_out *json, const struct plan *plan);

#endif
