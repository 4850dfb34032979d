/* Memory of the executor, for the report of a run. */
#ifndef SPILLWAY_CLI_RUN_CLI_RUN_MEMORY_H
#define SPILLWAY_CLI_RUN_CLI_RUN_MEMORY_H

#include "base/json/json_in.h"
#include "base/json/json_out.h"

/* Writes "devices", "host_bytes" and "pinned" of `in`, if there: the executor may be of another version. */
MUST_CHECK enum status cli_run_memory_json(const struct json_input *in, struct json_out *json,
                                           struct error *err);

#endif
