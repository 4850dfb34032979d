#include "cli/reports/cli_breakdown.h"

#include <inttypes.h>

#include "base/try.h"
#include "cli/common/cli_table.h"

enum status cli_breakdown_find(const struct plan *plan, const struct trace *trace, struct cli_breakdown *out,
                               struct error *err)
{
    char text[PLAN_MOMENT_BYTES];
    out->fullest = 0;
    for (uint32_t d = 1; d < plan->hardware.device_count; d++) /* the host comes first */
        if (trace->places[1 + d].peak_bytes > trace->places[1 + out->fullest].peak_bytes) out->fullest = d;
    TRY(memory_breakdown_of_device(plan, out->fullest, &out->device, err));
    out->host = memory_breakdown_of_host(plan);
    snprintf(out->moment, sizeof out->moment, "%s", memory_breakdown_moment(plan, &out->device, text));
    return STATUS_OK;
}

static uint64_t sum_of(const struct memory_breakdown *parts)
{
    uint64_t bytes = 0;
    for (uint32_t p = 0; p < MEMORY_PART_COUNT; p++) bytes += parts->bytes[p];
    return bytes;
}

enum status cli_breakdown_table(FILE *out, const struct memory_breakdown *device, const struct memory_breakdown *host,
                                struct error *err)
{
    struct cli_table table;
    cli_table_begin(&table, (const char *const[]){"FOR", ">DEVICE", ">HOST", NULL});
    for (uint32_t p = 0; p < MEMORY_PART_COUNT; p++) {
        if (device->bytes[p] == 0 && host->bytes[p] == 0) continue;
        cli_table_cell(&table, "%s", memory_part_names[p]);
        cli_table_bytes(&table, device->bytes[p]);
        cli_table_bytes(&table, host->bytes[p]);
    }
    cli_table_cell(&table, "all");
    cli_table_bytes(&table, sum_of(device));
    cli_table_bytes(&table, sum_of(host));
    return cli_table_end(&table, out, err);
}

enum status cli_breakdown_text(FILE *out, const struct cli_breakdown *parts, struct error *err)
{
    fprintf(out, "at the peak of device %" PRIu32 ", the fullest: %s\n", parts->fullest, parts->moment);
    return cli_breakdown_table(out, &parts->device, &parts->host, err);
}

void cli_breakdown_object(struct json_out *json, const char *key, const struct memory_breakdown *parts)
{
    char name[64];
    json_out_object_begin(json, key, false);
    for (uint32_t p = 0; p < MEMORY_PART_COUNT; p++) {
        snprintf(name, sizeof name, "%s_bytes", memory_part_names[p]);
        for (char *c = name; *c; c++)
            if (*c == ' ') *c = '_';
        json_out_u64(json, name, parts->bytes[p]);
    }
    json_out_object_end(json);
}

void cli_breakdown_json(struct json_out *json, const struct cli_breakdown *parts)
{
    json_out_object_begin(json, "contents", false);
    json_out_u64(json, "fullest", parts->fullest);
    json_out_string(json, "peak", parts->moment);
    cli_breakdown_object(json, "device", &parts->device);
    cli_breakdown_object(json, "host", &parts->host);
    json_out_object_end(json);
}
