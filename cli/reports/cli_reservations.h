/* Jobs with devices of their own, in reports. */
#ifndef SPILLWAY_CLI_REPORTS_CLI_RESERVATIONS_H
#define SPILLWAY_CLI_REPORTS_CLI_RESERVATIONS_H

#include <stdio.h>

#include "base/json/json_out.h"
#include "planner/plan.h"

/* Counts shards of a job without parallelism whose states stay on a device. */
uint32_t cli_persistent_shards(const struct plan *plan, uint32_t job);

/* Returns "pp=4 1f1b", "dp=2,zero=3", "spilled, 13 shards, 4 stay", "resident, 2 shards". */
enum { CLI_RUNS_AS_BYTES = PARALLEL_TEXT_BYTES + 64 };

/* Prints nothing without reservations. */
MUST_CHECK enum status cli_reservations_text(FILE *out, const struct plan *plan, struct error *err);

/* Writes the array "reservations", if there are any. */
void cli_reservations_json(struct json_out *json, const struct plan *plan);

#endif
