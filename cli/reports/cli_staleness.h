/*
 * How many updates behind the weights are that a plan's jobs compute with: of those whose training is another than that of a
 * job alone on one device (models/job/parallel.h). Nothing is said of plans without such jobs.
 */
#ifndef SPILLWAY_CLI_STALENESS_H
#define SPILLWAY_CLI_STALENESS_H

#include <stdio.h>

#include "base/json/json_out.h"
#include "planner/plan.h"

/* A line for each way of being behind, the first such job's name in front; `width`: of the words in front of lines. */
void cli_staleness_print(FILE *out, const struct plan *plan, int width);

/* "stale": [{"job", "least", "most"}, ...], in updates, of those jobs alone. */
void cli_staleness_json(struct json_out *json, const struct plan *plan);

#endif
