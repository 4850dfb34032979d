/*
 * Staleness: how many updates old the weights are that passes compute with, in jobs whose training therefore differs
 * from training on one device (models/job/parallel.h). Plans without such jobs have no such lines.
 */
#ifndef SPILLWAY_CLI_REPORTS_CLI_STALENESS_H
#define SPILLWAY_CLI_REPORTS_CLI_STALENESS_H

#include <stdio.h>

#include "base/json/json_out.h"
#include "planner/plan.h"

/* Prints a line for each staleness, beginning with the first such job's name; `width`: columns of the words before the
 * text. */
void cli_staleness_print(FILE *out, const struct plan *plan, int width);

/* Writes "stale": [{"job", "least", "most"}, ...], in updates, only of those jobs. */
void cli_staleness_json(struct json_out *json, const struct plan *plan);

#endif
