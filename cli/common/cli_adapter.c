#include "cli/common/cli_adapter.h"

#include <stdio.h>
#include <string.h>

enum { TARGET_BYTES = 256 };

enum status cli_adapter_check(const struct cli_adapter *adapter, struct error *err)
{
    if (adapter->targets && adapter->rank == 0)
        return error_set(err, STATUS_BAD_INPUT, "option '--lora-targets' is without '--lora-rank'");
    for (const char *at = adapter->targets; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strcspn(at, ",") == 0 || strcspn(at, ",") >= TARGET_BYTES)
            return error_set(err, STATUS_BAD_INPUT,
                             "option '--lora-targets' is '%.64s' (expected names separated by ',')", adapter->targets);
    return STATUS_OK;
}

static void write_targets(const char *targets, struct json_out *json)
{
    char target[TARGET_BYTES];
    json_out_array_begin(json, "targets", true);
    for (const char *at = targets; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        snprintf(target, sizeof target, "%.*s", (int)strcspn(at, ","), at);
        json_out_string(json, NULL, target);
    }
    json_out_array_end(json);
}

void cli_adapter_write(const struct cli_adapter *adapter, struct json_out *json)
{
    if (adapter->rank == 0) return;
    json_out_object_begin(json, "adapter", true);
    json_out_u64(json, "rank", adapter->rank);
    if (adapter->targets && strcmp(adapter->targets, "all-linear") == 0)
        json_out_string(json, "targets", adapter->targets);
    else if (adapter->targets) write_targets(adapter->targets, json);
    json_out_object_end(json);
}
