/* `trace simulate`: MLCommons Chakra on a machine (sim/chakra/chakra_import.h). */
#include <string.h>

#include "base/process/progress.h"
#include "base/size.h"
#include "base/try.h"
#include "cli/common/cli_machine.h"
#include "cli/document/cli_document.h"
#include "cli/history/cli_history.h"
#include "cli/reports/cli_simulated.h"
#include "sim/chakra/chakra_import.h"

struct trace_simulate_request {
    const char *prefix, *trace_path; /* trace_path may be NULL */
    struct cli_machine machine;
};

struct trace_simulate_report {
    const struct trace_simulate_request *request;
    const struct chakra_trace *chakra;
    struct cli_simulated simulated;
    double compute_share; /* of the ranks' time */
};

static enum status print_text(struct cli *cli, const struct trace_simulate_report *report, struct error *err)
{
    const struct trace_simulate_request *request = report->request;
    fprintf(cli->out, "%s: execution traces of %u ranks\n\n", request->prefix, report->chakra->rank_count);
    return cli_simulated_print(cli, &report->simulated, report->compute_share, request->trace_path, err);
}

static enum status print_json(struct cli *cli, const struct trace_simulate_report *report, struct error *err)
{
    const struct cli_simulated *s = &report->simulated;
    struct json_out *json;
    TRY(cli_report_begin(cli, "trace-simulate", &json, err));
    json_out_string(json, "chakra_prefix", report->request->prefix);
    if (report->request->trace_path) json_out_string(json, "trace_file", report->request->trace_path);
    json_out_u64(json, "ranks", report->chakra->rank_count);
    json_out_string(json, "hardware", s->hardware->name);
    json_out_double(json, "makespan_s", s->result->makespan_s);
    json_out_double(json, "compute_utilisation", report->compute_share);
    json_out_string(json, "binds", s->result->binds);
    cli_simulated_json(json, s);
    cli_simulated_speed_json(json, s);
    return cli_report_end(cli, json, err);
}

static enum status simulate(const struct trace_simulate_report *report, bool spans, struct sim_result *result,
                            struct trace *trace, struct error *err)
{
    struct progress progress;
    const struct sim_graph_options options = {.record_spans = spans,
                                              .on_progress = progress_show,
                                              .context = &progress};
    progress_begin(&progress, "simulating", 1);
    enum status status =
        sim_chakra_run(report->chakra, report->simulated.hardware, &options, result, trace, err);
    progress_end(&progress);
    return status;
}

static enum status read_and_simulate(struct cli *cli, const struct trace_simulate_request *request, struct error *err)
{
    struct chakra_trace chakra = {0};
    struct hardware hardware = {0};
    struct sim_result result = {0};
    struct trace trace = {0};
    struct trace_simulate_report report = {.request = request,
                                           .chakra = &chakra,
                                           .simulated = {.hardware = &hardware, .result = &result, .trace = &trace}};
    enum status status = chakra_trace_read(request->prefix, &chakra, err);
    if (status == STATUS_OK) {
        struct cli_machine wanted = request->machine;
        wanted.devices = chakra.rank_count;
        status = cli_machine_read(&wanted, &hardware, err);
    }
    if (status == STATUS_OK) status = simulate(&report, request->trace_path || cli->document, &result, &trace, err);
    if (status == STATUS_OK)
        status = cli_simulated_check(&report.simulated, chakra.rank_count, &report.compute_share, err);
    if (status == STATUS_OK && request->trace_path) status = trace_write(&trace, request->trace_path, err);
    if (status == STATUS_OK)
        cli_history_keep(cli, &(struct cli_outcome){.file = request->prefix, .hardware = &hardware,
                                                    .predicted_s = result.makespan_s});
    if (status == STATUS_OK) {
        cli_document_traces(cli, &trace, NULL);
        cli_document_simulated(cli, &hardware);
        status = cli->json ? print_json(cli, &report, err) : print_text(cli, &report, err);
    }
    sim_result_release(&result);
    trace_release(&trace);
    hardware_release(&hardware);
    chakra_trace_release(&chakra);
    return status;
}

enum status verb_trace_simulate(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct trace_simulate_request request = {.machine = CLI_MACHINE_NONE};
    const struct option_spec specs[] = {
        CLI_MACHINE_OPTION(&request.machine.name, "machine that the ranks run on (required): a name or a file"),
        CLI_MACHINE_SPEEDS(&request.machine),
        CLI_MACHINE_STACK(&request.machine),
        OPTION_OUTPUT("trace", 0, "FILE", FILE_KIND_TRACE, &request.trace_path,
                      "predicted trace to write, compressed if it ends in .gz"),
        CLI_HISTORY_OPTION(cli),
        CLI_ANSWER_OPTIONS(cli),
    };
    struct options options = {
        OPTIONS_TABLE(specs, 1, 1),
        .examples = (const char *const[]){"spillway trace simulate traces/llama --hw '8x a100-sxm4-80gb'", NULL},
        .details = "Reads PREFIX.0.et, PREFIX.1.et and so on, a file per rank, and the process groups of "
                   "PREFIX.groups.json. Each rank is a device of the machine. 'spillway trace chakra' writes such "
                   "traces of a plan.",
    };
    CLI_PARSE(cli, &options, argc, argv, err);
    request.prefix = options.operands[0];
    if (!request.machine.name)
        return error_set(err, STATUS_BAD_INPUT, "option '--hw' is missing: the machine that the ranks run on");
    TRY(cli_refuse_dash("trace", request.trace_path, err));
    return read_and_simulate(cli, &request, err);
}
