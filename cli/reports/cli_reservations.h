/* Jobs with devices of their own, in reports: how, where and when each runs. */
#ifndef SPILLWAY_CLI_REPORTS_CLI_RESERVATIONS_H
#define SPILLWAY_CLI_REPORTS_CLI_RESERVATIONS_H

#include <stdio.h>

#include "base/json/json_out.h"
#include "planner/plan.h"

/* Returns the number of shards of a job without parallelism whose states stay on a device from its first to its last
 * minibatch. */
uint32_t cli_persistent_shards(const struct plan *plan, uint32_t job);

/* Returns how a job runs: "pp=4 1f1b", "dp=2,zero=3", "spilled, 13 shards, 4 stay", "resident, 2 shards". */
enum { CLI_RUNS_AS_BYTES = PARALLEL_TEXT_BYTES + 64 };

/* Prints a table if the plan has reservations. */
MUST_CHECK enum status cli_reservations_text(FILE *out, const struct plan *plan, struct error *err);

/* Writes the array "reservations", or nothing if there are none. */
void cli_reservations_json(struct json_out *json, const struct plan *plan);

#endif
