/* What the executor's result says of the memory that it took and handed out, for the report of a run. */
#ifndef SPILLWAY_CLI_RUN_MEMORY_H
#define SPILLWAY_CLI_RUN_MEMORY_H

#include "base/json/json_in.h"
#include "base/json/json_out.h"

/* Write "devices", "host_bytes" and "pinned" as the result `in` has them; nothing of what it lacks, for
 * the executor may be another version's. */
MUST_CHECK enum status cli_run_memory_json(const struct json_input *in, struct json_out *json,
                                           struct error *err);

#endif
