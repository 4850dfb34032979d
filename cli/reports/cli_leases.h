/* Jobs that have devices for themselves, in reports: how each runs, where and when. */
#ifndef SPILLWAY_CLI_LEASES_H
#define SPILLWAY_CLI_LEASES_H

#include <stdio.h>

#include "base/json/json_out.h"
#include "planner/plan.h"

/* Shards of a job that is not spread whose states stay on a device from its first minibatch to its last. */
uint32_t cli_persistent_shards(const struct plan *plan, uint32_t job);

/* How a job runs: "pp=4 1f1b", "dp=2,zero=3", "streamed, 13 shards, 4 stay", "resident, 2 shards". */
enum { CLI_RUNS_AS_BYTES = PARALLEL_TEXT_BYTES + 64 };
const char *cli_runs_as(const struct plan *plan, uint32_t job, char text[CLI_RUNS_AS_BYTES]);

/* A table, where the plan has leases. */
MUST_CHECK enum status cli_leases_text(FILE *out, const struct plan *plan, struct error *err);

/* "leases": an object each, or nothing. */
void cli_leases_json(struct json_out *json, const struct plan *plan);

#endif
