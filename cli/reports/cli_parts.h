/* What is in the memory of a plan's fullest device, and of the host: as a table and as JSON. */
#ifndef SPILLWAY_CLI_PARTS_H
#define SPILLWAY_CLI_PARTS_H

#include <stdio.h>

#include "base/json/json_out.h"
#include "planner/walk/plan_parts.h"
#include "traces/trace.h"

struct cli_parts {
    struct plan_parts device, host;
    uint32_t fullest; /* which device */
    char moment[PLAN_MOMENT_BYTES]; /* when most of it is in use */
};

/* Of the device with the highest peak in the trace, the first of equal ones. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status cli_parts_find(const struct plan *plan, const struct trace *trace, struct cli_parts *out,
                                      struct error *err);

/* A row for each part that there is in one of them, and their sums. */
MUST_CHECK enum status cli_parts_table(FILE *out, const struct plan_parts *device, const struct plan_parts *host,
                                       struct error *err);

/* The moment, and the table. */
MUST_CHECK enum status cli_parts_text(FILE *out, const struct cli_parts *parts, struct error *err);

/* {"weights_bytes": ...} */
void cli_parts_object(struct json_out *json, const char *key, const struct plan_parts *parts);

/* "contents": {"fullest", "peak", "device": {...}, "host": {...}} */
void cli_parts_json(struct json_out *json, const struct cli_parts *parts);

#endif
