/* `trace replay`: a recorded trace with changed durations (sim/replay.h). */
#include <inttypes.h>
#include <string.h>

#include "base/size.h"
#include "base/try.h"
#include "cli/common/cli_factors.h"
#include "cli/common/cli_machine.h"
#include "cli/common/cli_other_machine.h"
#include "cli/common/cli_table.h"
#include "cli/common/cli_trace.h"
#include "cli/document/cli_document.h"
#include "cli/history/cli_history.h"
#include "cli/ways/cli_predict.h"
#include "planner/files/plan_io.h"
#include "sim/replay.h"

struct trace_replay_request {
    const char *plan_path, *record_path;
    const char *trace_path, *scale, *slow; /* may be NULL */
    struct cli_machine machine;            /* without name: the plan's */
};

struct trace_replay_report {
    const struct trace_replay_request *request;
    const struct plan *plan;
    const struct hardware *hardware;
    const struct trace *record, *trace;
    const struct sim_replay *unchanged, *changed; /* equal if nothing is changed */
    bool some; /* something is changed */
};

static double relative(double value, double to)
{
    return to > 0 ? value / to - 1 : 0;
}

/* --- the options ----------------------------------------------------------------------------- */

static enum status read_scale(const char *list, struct sim_replay_change *change, struct error *err)
{
    while (list) {
        struct cli_factor one;
        uint32_t k = 0;
        TRY(cli_factor_parse(&list, "scale", "KIND", true, &one, err));
        while (k < STREAM_KIND_COUNT && strcmp(plan_stream_names[k], one.name) != 0) k++;
        bool gaps = strcmp(one.name, "gaps") == 0;
        if (k == STREAM_KIND_COUNT && !gaps)
            return error_set(err, STATUS_BAD_INPUT,
                             "option '--scale' names '%s' (expected compute, h2d, d2h, p2p, group, "
                             "data, host, cpu, read, write or gaps)",
                             one.name);
        *(gaps ? &change->gap_scale : &change->scale[k]) = one.factor;
    }
    return STATUS_OK;
}

/* --- reports --------------------------------------------------------------------------------- */

static enum status print_path(FILE *out, const struct sim_replay *replay, struct error *err)
{
    struct cli_table table;
    char text[QUANTITY_TEXT_BYTES];
    cli_table_begin(&table, (const char *const[]){"CHAIN THAT ENDS LAST", ">TIME", ">SHARE", NULL});
    for (uint32_t k = 0; k <= STREAM_KIND_COUNT; k++) {
        double seconds = k < STREAM_KIND_COUNT ? replay->path_s[k] : replay->path_gap_s;
        if (!(seconds > 0)) continue;
        cli_table_cell(&table, "%s", k < STREAM_KIND_COUNT ? plan_stream_names[k] : "gaps");
        cli_table_cell(&table, "%s", quantity_text(seconds, DIMENSION_SECONDS, text));
        cli_table_cell(&table, "%.1f %%", 100 * (relative(seconds, replay->makespan_s) + 1));
    }
    return cli_table_end(&table, out, err);
}

static void print_times(FILE *out, const struct trace_replay_report *report)
{
    const struct sim_replay *same = report->unchanged, *changed = report->changed;
    char text[QUANTITY_TEXT_BYTES], other[QUANTITY_TEXT_BYTES], percent[CLI_PERCENT_BYTES];
    double recorded_s = report->record->makespan_s;
    fprintf(out, "recorded    %s on '%s' (%s)\n", quantity_text(recorded_s, DIMENSION_SECONDS, text),
            report->record->hardware, trace_source_names[report->record->source]);
    fprintf(out, "unchanged   %s replayed, %s of the record\n",
            quantity_text(same->makespan_s, DIMENSION_SECONDS, text),
            cli_signed_percent(relative(same->makespan_s, recorded_s), percent));
    if (report->some)
        fprintf(out, "changed     %s on '%s', %s\n", quantity_text(changed->makespan_s, DIMENSION_SECONDS, text),
                report->hardware->name, cli_signed_percent(relative(changed->makespan_s, same->makespan_s), percent));
    fprintf(out, "gaps        %s before %" PRIu64 " of %s, which began later than possible\n",
            quantity_text(same->gap_s, DIMENSION_SECONDS, text), same->gap_count,
            CLI_COUNT(report->record->span_count, "operation"));
    if (same->early_count > 0)
        fprintf(out, "too early   %s by the record's clocks, %s at most: replayed without a gap\n",
                CLI_COUNT(same->early_count, "operation"), quantity_text(same->early_s, DIMENSION_SECONDS, other));
    fputs("links       contention is not recomputed: a copy that another one slowed keeps its time\n", out);
}

static enum status print_text(struct cli *cli, const struct trace_replay_report *report, struct error *err)
{
    FILE *out = cli->out;
    const struct trace_replay_request *request = report->request;
    fprintf(out, "%s: replay of '%s'\n\n", request->plan_path, request->record_path);
    TRY(cli_trace_jobs(out, report->trace, err));
    fputc('\n', out);
    TRY(print_path(out, report->changed, err));
    fputc('\n', out);
    print_times(out, report);
    cli_trace_written(cli, request->trace_path);
    return STATUS_OK;
}

static enum status print_json(struct cli *cli, const struct trace_replay_report *report, struct error *err)
{
    const struct sim_replay *same = report->unchanged, *changed = report->changed;
    struct json_out *json;
    TRY(cli_report_begin(cli, "trace-replay", &json, err));
    json_out_string(json, "plan_file", report->request->plan_path);
    json_out_string(json, "replayed_file", report->request->record_path);
    if (report->request->trace_path) json_out_string(json, "trace_file", report->request->trace_path);
    cli_fingerprint(json, report->record->plan_fingerprint);
    json_out_string(json, "hardware", report->hardware->name);
    json_out_string(json, "recorded", trace_source_names[report->record->source]);
    json_out_double(json, "recorded_makespan_s", report->record->makespan_s);
    json_out_double(json, "unchanged_makespan_s", same->makespan_s);
    json_out_double(json, "makespan_s", changed->makespan_s);
    json_out_double(json, "gap_s", same->gap_s);
    json_out_u64(json, "gaps", same->gap_count);
    json_out_double(json, "early_max_s", same->early_s);
    json_out_u64(json, "early", same->early_count);
    json_out_object_begin(json, "path", false);
    for (uint32_t k = 0; k < STREAM_KIND_COUNT; k++) json_out_double(json, plan_stream_names[k], changed->path_s[k]);
    json_out_double(json, "gaps", changed->path_gap_s);
    json_out_u64(json, "operations", changed->path_count);
    json_out_object_end(json);
    cli_trace_jobs_json(json, report->trace);
    return cli_report_end(cli, json, err);
}

/* --- the verb -------------------------------------------------------------------------------- */

static enum status replay(struct cli *cli, struct trace_replay_report *report, const struct sim_replay_change *change,
                          struct error *err)
{
    struct sim_replay unchanged, changed;
    struct trace same = {0}, trace = {0};
    const struct sim_replay_change none = sim_replay_unchanged();
    enum status status = sim_replay_run(report->plan, report->record, &none, &same, &unchanged, err);
    if (status == STATUS_OK && report->some)
        status = sim_replay_run(report->plan, report->record, change, &trace, &changed, err);
    if (status != STATUS_OK) status = error_add(err, "%s", report->request->record_path);
    report->trace = report->some ? &trace : &same;
    report->unchanged = &unchanged;
    report->changed = report->some ? &changed : &unchanged;
    if (status == STATUS_OK && report->request->trace_path)
        status = trace_write(report->trace, report->request->trace_path, err);
    if (status == STATUS_OK)
        cli_history_keep(cli, &(struct cli_outcome){.file = report->request->plan_path, .policy = report->plan->policy,
                                                    .plan = report->plan, .hardware = report->hardware,
                                                    .predicted_s = report->trace->makespan_s});
    if (status == STATUS_OK) {
        cli_document_traces(cli, report->trace, report->record->source == TRACE_MEASURED ? report->record : NULL);
        status = cli->json ? print_json(cli, report, err) : print_text(cli, report, err);
    }
    trace_release(&same);
    trace_release(&trace);
    return status;
}

static enum status read_and_replay(struct cli *cli, const struct trace_replay_request *request, struct error *err)
{
    struct plan plan = {0};
    struct trace record = {0};
    struct cli_other_machine other = {0};
    struct arena arena = {0};
    struct sim_replay_change change = sim_replay_unchanged();
    struct trace_replay_report report = {.request = request, .plan = &plan, .record = &record};
    enum status status = plan_read(request->plan_path, &plan, err);
    if (status == STATUS_OK) status = trace_read(request->record_path, &record, err);
    if (status == STATUS_OK) status = cli_other_machine_find(&request->machine, request->plan_path, &plan, &other, err);
    if (status == STATUS_OK)
        status = cli_device_factors(request->slow, "slow", plan.hardware.device_count, &arena, &change.slow, err);
    if (status == STATUS_OK) status = read_scale(request->scale, &change, err);
    if (status == STATUS_OK) {
        change.hardware = other.hardware;
        report.hardware = other.hardware ? other.hardware : &plan.hardware;
        report.some = other.hardware || request->slow || request->scale;
        status = replay(cli, &report, &change, err);
    }
    cli_other_machine_release(&other);
    arena_release(&arena);
    trace_release(&record);
    plan_release(&plan);
    return status;
}

enum status verb_trace_replay(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct trace_replay_request request = {.machine = CLI_MACHINE_NONE};
    const struct option_spec specs[] = {
        OPTION_STRING("scale", 0, "KIND=FACTOR,...", &request.scale,
                      "scale the times of compute, h2d, d2h, p2p, ... streams, or of gaps"),
        OPTION_STRING("slow", 0, "DEVICE=FACTOR,...", &request.slow,
                      "slow down computations of these devices by a factor each"),
        CLI_MACHINE_OPTION(&request.machine.name, "other machine for the plan: a name or a file"),
        CLI_MACHINE_SPEEDS(&request.machine),
        CLI_MACHINE_STACK(&request.machine),
        OPTION_OUTPUT("trace", 0, "FILE", FILE_KIND_TRACE, &request.trace_path,
                      "replayed trace to write, compressed if it ends in .gz"),
        CLI_HISTORY_OPTION(cli),
        CLI_ANSWER_OPTIONS(cli),
    };
    struct options options = {
        OPTIONS_TABLE(specs, 2, 2),
        .examples = (const char *const[]){"spillway trace replay plan.json measured.json.gz",
                                          "spillway trace replay plan.json measured.json.gz --scale h2d=0.5",
                                          "spillway trace replay plan.json measured.json.gz --link-rate 4GB/s", NULL},
        .details = "Durations and gaps come from TRACE, measured or predicted; dependencies come from the plan. "
                   "Another machine or other rates scale the recorded times by the cost model's ratio. Without "
                   "a change, the replay takes as long as the record.",
    };
    CLI_PARSE(cli, &options, argc, argv, err);
    request.plan_path = options.operands[0];
    request.record_path = options.operands[1];
    TRY(cli_refuse_dash("trace", request.trace_path, err));
    return read_and_replay(cli, &request, err);
}
