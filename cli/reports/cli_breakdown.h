/* Memory contents of a plan's fullest device and of its host. */
#ifndef SPILLWAY_CLI_REPORTS_CLI_BREAKDOWN_H
#define SPILLWAY_CLI_REPORTS_CLI_BREAKDOWN_H

#include <stdio.h>

#include "base/json/json_out.h"
#include "planner/walk/memory_breakdown.h"
#include "traces/trace.h"

struct cli_breakdown {
    struct memory_breakdown device, host;
    uint32_t fullest;               /* device */
    char moment[PLAN_MOMENT_BYTES]; /* of its peak */
};

/* Finds the highest peak in the trace, the first of equal ones. */
MUST_CHECK enum status cli_breakdown_find(const struct plan *plan, const struct trace *trace, struct cli_breakdown *out,
                                          struct error *err);

/* Prints a row for each part, and sums. */
MUST_CHECK enum status cli_breakdown_table(FILE *out, const struct memory_breakdown *device,
                                           const struct memory_breakdown *host, struct error *err);

/* Prints moment and table. */
MUST_CHECK enum status cli_breakdown_text(FILE *out, const struct cli_breakdown *parts, struct error *err);

/* Writes {"weights_bytes": ...}. */
void cli_breakdown_object(struct json_out *json, const char *key, const struct memory_breakdown *parts);

/* Writes "contents": {"fullest", "peak", "device": {...}, "host": {...}}. */
void cli_breakdown_json(struct json_out *json, const struct cli_breakdown *parts);

#endif
