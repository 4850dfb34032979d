#include "cli/reports/cli_reservations.h"

#include <inttypes.h>

#include "base/text/quantity.h"
#include "base/try.h"
#include "cli/common/cli_table.h"
#include "cli/common/cli_trace.h"

enum { DEVICES_SHOWN = 8, DEVICES_TEXT_BYTES = 96 };

uint32_t cli_persistent_shards(const struct plan *plan, uint32_t job)
{
    uint32_t count = 0;
    for (uint32_t u = 0; u < plan->unit_count; u++)
        if (plan->units[u].job == job && plan->units[u].pass == PLAN_LOAD) count++;
    return count;
}

static const char *cli_runs_as(const struct plan *plan, uint32_t job, char text[CLI_RUNS_AS_BYTES])
{
    const struct parallel *p = &plan->jobs.jobs[job].parallel;
    char degrees[PARALLEL_TEXT_BYTES];
    if (!parallel_is_set(p)) {
        uint32_t shards = plan_job_shards(plan, job);
        uint32_t stay = cli_persistent_shards(plan, job);
        int used = snprintf(text, CLI_RUNS_AS_BYTES, "%s, %s", stay == shards ? "resident" : "spilled",
                            CLI_COUNT(shards, "shard"));
        if (stay > 0 && stay < shards)
            snprintf(text + used, CLI_RUNS_AS_BYTES - (size_t)used, ", %" PRIu32 " stay", stay);
        return text;
    }
    snprintf(text, CLI_RUNS_AS_BYTES, "%s%s%s%s%s", parallel_text(p, degrees), p->pipeline > 1 ? " " : "",
             p->pipeline > 1 ? pipeline_schedule_names[p->schedule] : "",
             p->recompute > 0 ? ", recompute " : "", p->recompute > 0 ? recompute_names[p->recompute] : "");
    return text;
}

/* Returns "0 to 3" or "0, 2, 5". */
static const char *devices_text(const struct plan *plan, uint32_t reservation, char text[DEVICES_TEXT_BYTES])
{
    uint32_t count = plan->reservations[reservation].device_count, run = 1;
    const uint32_t *devices = plan_reservation_devices(plan, reservation);
    while (run < count && devices[run] == devices[run - 1] + 1) run++;
    if (run == count && count > 2) {
        snprintf(text, DEVICES_TEXT_BYTES, "%" PRIu32 " to %" PRIu32, devices[0], devices[count - 1]);
        return text;
    }
    size_t used = 0;
    for (uint32_t i = 0; i < count && i < DEVICES_SHOWN; i++)
        used += (size_t)snprintf(text + used, DEVICES_TEXT_BYTES - used, "%s%" PRIu32, i > 0 ? ", " : "", devices[i]);
    if (count > DEVICES_SHOWN) snprintf(text + used, DEVICES_TEXT_BYTES - used, ", ...");
    return text;
}

enum status cli_reservations_text(FILE *out, const struct plan *plan, struct error *err)
{
    struct cli_table table;
    char text[QUANTITY_TEXT_BYTES], how[CLI_RUNS_AS_BYTES], devices[DEVICES_TEXT_BYTES];
    uint32_t shown = plan->jobs.count < CLI_ROWS_MAX ? plan->jobs.count : CLI_ROWS_MAX;
    cli_table_begin(&table, (const char *const[]){"JOB", "NETWORK", ">PARAMETERS", ">MINIBATCHES", "RUNS AS",
                                                  "ON DEVICES", ">FROM", ">TO", NULL});
    for (uint32_t j = 0; j < shown; j++) {
        const struct job *job = &plan->jobs.jobs[j];
        const struct plan_reservation *reservation = &plan->reservations[plan->job_reservation[j]];
        cli_table_cell(&table, "%s", job->name);
        cli_table_cell(&table, "%s", cli_network_label(job->network.name));
        cli_table_cell(&table, "%s",
                       quantity_text((double)network_parameters(&job->network), DIMENSION_COUNT_OF, text));
        cli_table_cell(&table, "%" PRIu64, job->minibatches);
        cli_table_cell(&table, "%s", cli_runs_as(plan, j, how));
        cli_table_cell(&table, "%s", devices_text(plan, plan->job_reservation[j], devices));
        cli_table_cell(&table, "%s", quantity_text(reservation->begin_s, DIMENSION_SECONDS, text));
        cli_table_cell(&table, "%s", quantity_text(reservation->end_s, DIMENSION_SECONDS, text));
    }
    TRY(cli_table_end(&table, out, err));
    cli_more_rows(out, shown, plan->jobs.count);
    return STATUS_OK;
}

void cli_reservations_json(struct json_out *json, const struct plan *plan)
{
    char how[CLI_RUNS_AS_BYTES];
    if (plan->reservation_count == 0) return;
    json_out_array_begin(json, "reservations", false);
    for (uint32_t l = 0; l < plan->reservation_count; l++) {
        const struct plan_reservation *reservation = &plan->reservations[l];
        json_out_object_begin(json, NULL, true);
        json_out_array_begin(json, "devices", true);
        for (uint32_t i = 0; i < reservation->device_count; i++)
            json_out_u64(json, NULL, plan_reservation_devices(plan, l)[i]);
        json_out_array_end(json);
        json_out_array_begin(json, "jobs", true);
        for (uint32_t j = 0; j < plan->jobs.count; j++) {
            if (plan->job_reservation[j] != l) continue;
            json_out_object_begin(json, NULL, true);
            json_out_string(json, "name", plan->jobs.jobs[j].name);
            json_out_string(json, "runs_as", cli_runs_as(plan, j, how));
            json_out_object_end(json);
        }
        json_out_array_end(json);
        json_out_double(json, "begin_s", reservation->begin_s);
        json_out_double(json, "end_s", reservation->end_s);
        json_out_object_end(json);
    }
    json_out_array_end(json);
}
