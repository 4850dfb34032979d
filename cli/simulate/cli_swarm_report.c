/* Rates and bounds are samples per second. */
#include "cli/simulate/cli_swarm_report.h"

#include <inttypes.h>

#include "base/try.h"
#include "cli/common/cli_table.h"
#include "cli/common/cli_trace.h"

/* Counts gradients that steps used. */
static double throughput(const struct swarm_report *r, const struct swarm_trial *trial)
{
    double samples = (double)trial->result.steps * (double)r->in->batch * (double)r->in->microbatch;
    return trial->result.elapsed_s > 0 ? samples / trial->result.elapsed_s : 0;
}

static double bound(const struct swarm_report *r, const struct swarm_trial *trial)
{
    return trial->bound.per_s * (double)r->in->microbatch;
}

static double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

struct peers_time {
    double present_s, busy_s;
};

static struct peers_time time_of(const struct swarm_result *result, uint32_t first, uint32_t count)
{
    struct peers_time sum = {0};
    for (uint32_t p = first; p < first + count; p++) {
        sum.present_s += result->peers[p].present_s;
        sum.busy_s += result->peers[p].busy_s;
    }
    return sum;
}

/* --- text ------------------------------------------------------------------------------------- */

static enum status print_trials(const struct swarm_report *r, FILE *out, struct error *err)
{
    struct cli_table table;
    char text[CLI_PERCENT_BYTES];
    cli_table_begin(&table, (const char *const[]){"WIRING", "REBALANCED", ">STEPS", ">SAMPLES/S", ">BOUND", ">BUSY",
                                                  ">LOST", ">REPEATED", ">GIVEN UP", ">MOVES", NULL});
    for (uint32_t i = 0; i < r->trial_count; i++) {
        const struct swarm_trial *trial = &r->trials[i];
        struct peers_time sum = time_of(&trial->result, 0, r->in->peer_count);
        cli_table_cell(&table, "%s", swarm_wiring_names[trial->wiring]);
        cli_table_cell(&table, "%s", trial->rebalanced ? "yes" : "no");
        cli_table_cell(&table, "%u", trial->result.steps);
        cli_table_cell(&table, "%.4g", throughput(r, trial));
        cli_table_cell(&table, "%.4g", bound(r, trial));
        cli_table_cell(&table, "%s", cli_percent(share(sum.busy_s, sum.present_s), text));
        cli_table_cell(&table, "%s", cli_percent(share(trial->result.lost_s, sum.busy_s), text));
        cli_table_cell(&table, "%" PRIu64, trial->result.repeated);
        cli_table_cell(&table, "%" PRIu64, trial->result.given_up);
        cli_table_cell(&table, "%" PRIu64, trial->result.moves);
    }
    return cli_table_end(&table, out, err);
}

static enum status print_stages(const struct swarm_report *r, FILE *out, struct error *err)
{
    const struct swarm_result *result = &r->trials->result;
    struct cli_table table;
    char text[QUANTITY_TEXT_BYTES];
    cli_table_begin(&table, (const char *const[]){"STAGE", ">PEERS", ">PASSES", ">BUSY", ">BOUNDARY", ">STATE", NULL});
    for (uint32_t s = 0; s < r->in->stage_count; s++) {
        const struct swarm_stage_result *stage = &result->stages[s];
        cli_table_cell(&table, "%u", s);
        cli_table_cell(&table, "%.1f", share(stage->present_s, result->elapsed_s));
        cli_table_cell(&table, "%" PRIu64, stage->passes);
        cli_table_cell(&table, "%s", cli_percent(share(stage->busy_s, stage->present_s), text));
        cli_table_cell(&table, "%s", quantity_text(r->in->stages[s].boundary_bytes, DIMENSION_BYTES, text));
        cli_table_cell(&table, "%s", quantity_text(r->in->stages[s].state_bytes, DIMENSION_BYTES, text));
    }
    return cli_table_end(&table, out, err);
}

static enum status print_groups(const struct swarm_report *r, FILE *out, struct error *err)
{
    const struct swarm_result *result = &r->trials->result;
    struct cli_table table;
    char text[CLI_PERCENT_BYTES];
    uint32_t shown = r->in->group_count < CLI_ROWS_MAX ? r->in->group_count : CLI_ROWS_MAX;
    cli_table_begin(&table, (const char *const[]){"PEERS", ">COUNT", ">THERE", ">BUSY", NULL});
    for (uint32_t g = 0; g < shown; g++) {
        const struct swarm_group *group = &r->in->groups[g];
        struct peers_time sum = time_of(result, group->first, group->count);
        cli_table_cell(&table, "%.40s", group->name);
        cli_table_cell(&table, "%u", group->count);
        cli_table_cell(&table, "%s", cli_percent(share(sum.present_s, group->count * result->elapsed_s), text));
        cli_table_cell(&table, "%s", cli_percent(share(sum.busy_s, sum.present_s), text));
    }
    TRY(cli_table_end(&table, out, err));
    cli_more_rows(out, shown, r->in->group_count);
    return STATUS_OK;
}

static void print_bound(const struct swarm_report *r, FILE *out)
{
    const struct swarm_trial *trial = r->trials;
    double did = throughput(r, trial), most = bound(r, trial);
    char text[CLI_PERCENT_BYTES];
    fprintf(out, "throughput  %.4g samples/s (simulated); no routing exceeds %.4g with these averagings", did, most);
    if (did > 0) fprintf(out, ", gap %s", cli_percent(most / did - 1, text));
    switch ((enum swarm_bound_kind)trial->bound.kind) {
    case SWARM_BOUND_STAGE:
        fprintf(out, "\nproof       capacity of the peers of stage %u\n", trial->bound.stage);
        break;
    case SWARM_BOUND_PEERS: fputs("\nproof       capacity of all peers, in any stages\n", out); break;
    case SWARM_BOUND_LATENCY:
        fputs("\nproof       latency of the microbatches under way, forward and back\n", out);
        break;
    }
}

static void print_totals(const struct swarm_report *r, FILE *out)
{
    const struct swarm_result *result = &r->trials->result;
    struct peers_time sum = time_of(result, 0, r->in->peer_count);
    char a[CLI_PERCENT_BYTES], b[CLI_PERCENT_BYTES], c[CLI_PERCENT_BYTES], text[QUANTITY_TEXT_BYTES];
    print_bound(r, out);
    fprintf(out, "time        %s, of which averaging takes %s\n",
            quantity_text(result->elapsed_s, DIMENSION_SECONDS, text),
            cli_percent(share(result->averaging_s, result->elapsed_s), a));
    fprintf(out, "peers' time useful %s, lost %s, idle %s\n", cli_percent(share(result->useful_s, sum.present_s), a),
            cli_percent(share(result->lost_s, sum.present_s), b),
            cli_percent(1 - share(sum.busy_s, sum.present_s), c));
    fprintf(out, "failures    %" PRIu64 ", and %" PRIu64 " requests without an answer\n", result->failures,
            result->unanswered);
}

enum status swarm_report_text(struct cli *cli, const struct swarm_report *r, struct error *err)
{
    FILE *out = cli->out;
    char batch[QUANTITY_TEXT_BYTES];
    fprintf(out, "%s: %s in %s, %s; steps of %s samples\n\n", r->in->name, CLI_COUNT(r->in->peer_count, "peer"),
            CLI_COUNT(r->in->stage_count, "stage"), CLI_COUNT(r->in->trainers, "trainer"),
            quantity_text((double)r->in->batch * (double)r->in->microbatch, DIMENSION_COUNT_OF, batch));
    TRY(print_trials(r, out, err));
    fprintf(out, "\n%s%s:\n", swarm_wiring_names[r->trials->wiring], r->trials->rebalanced ? ", rebalanced" : "");
    TRY(print_stages(r, out, err));
    fputc('\n', out);
    TRY(print_groups(r, out, err));
    fputc('\n', out);
    print_totals(r, out);
    if (r->timeline) fprintf(out, "written to  %s\n", r->timeline);
    return STATUS_OK;
}

/* --- JSON ------------------------------------------------------------------------------------- */

static void stages_json(const struct swarm_report *r, const struct swarm_result *result, struct json_out *json)
{
    json_out_array_begin(json, "stages", false);
    for (uint32_t s = 0; s < r->in->stage_count; s++) {
        const struct swarm_stage_result *stage = &result->stages[s];
        json_out_object_begin(json, NULL, true);
        json_out_double(json, "peers", share(stage->present_s, result->elapsed_s));
        json_out_u64(json, "passes", stage->passes);
        json_out_double(json, "busy", share(stage->busy_s, stage->present_s));
        json_out_object_end(json);
    }
    json_out_array_end(json);
}

static void peers_json(const struct swarm_report *r, const struct swarm_result *result, struct json_out *json)
{
    json_out_array_begin(json, "peers", false);
    for (uint32_t g = 0; g < r->in->group_count; g++) {
        const struct swarm_group *group = &r->in->groups[g];
        struct peers_time sum = time_of(result, group->first, group->count);
        json_out_object_begin(json, NULL, true);
        json_out_string(json, "name", group->name);
        json_out_u64(json, "count", group->count);
        json_out_double(json, "there", share(sum.present_s, group->count * result->elapsed_s));
        json_out_double(json, "busy", share(sum.busy_s, sum.present_s));
        json_out_object_end(json);
    }
    json_out_array_end(json);
}

static void trial_json(const struct swarm_report *r, const struct swarm_trial *trial, struct json_out *json)
{
    static const char *const kinds[] = {"stage", "peers", "latency"};
    const struct swarm_result *result = &trial->result;
    json_out_object_begin(json, NULL, false);
    json_out_string(json, "wiring", swarm_wiring_names[trial->wiring]);
    json_out_bool(json, "rebalanced", trial->rebalanced);
    json_out_u64(json, "steps", result->steps);
    json_out_double(json, "elapsed_s", result->elapsed_s);
    json_out_double(json, "samples_per_s", throughput(r, trial));
    json_out_double(json, "bound_samples_per_s", bound(r, trial));
    json_out_string(json, "bound_kind", kinds[trial->bound.kind]);
    json_out_double(json, "averaging_s", result->averaging_s);
    json_out_double(json, "useful_s", result->useful_s);
    json_out_double(json, "lost_s", result->lost_s);
    json_out_double(json, "open_s", result->open_s);
    json_out_u64(json, "failures", result->failures);
    json_out_u64(json, "unanswered", result->unanswered);
    json_out_u64(json, "repeated", result->repeated);
    json_out_u64(json, "given_up", result->given_up);
    json_out_u64(json, "moves", result->moves);
    stages_json(r, result, json);
    peers_json(r, result, json);
    json_out_object_end(json);
}

enum status swarm_report_json(struct cli *cli, const struct swarm_report *r, struct error *err)
{
    struct json_out *json;
    TRY(cli_report_begin(cli, "swarm", &json, err));
    json_out_string(json, "file", r->path);
    if (r->timeline) json_out_string(json, "timeline_file", r->timeline);
    json_out_string(json, "name", r->in->name);
    json_out_u64(json, "seed", r->seed);
    json_out_u64(json, "batch", (uint64_t)r->in->batch * r->in->microbatch);
    json_out_array_begin(json, "trials", false);
    for (uint32_t i = 0; i < r->trial_count; i++) trial_json(r, &r->trials[i], json);
    json_out_array_end(json);
    return cli_report_end(cli, json, err);
}
