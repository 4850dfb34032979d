/* `simulate --chakra`: execution traces of MLCommons Chakra on a machine. */
#include <inttypes.h>

#include "base/progress.h"
#include "cli/cli_document.h"
#include "cli/cli_history.h"
#include "cli/cli_predict.h"
#include "cli/cli_simulate.h"
#include "cli/cli_simulated.h"
#include "planner/plan.h"
#include "sim/chakra_import.h"

struct report {
    const struct cli_simulate_request *request;
    const struct chakra_trace *chakra;
    struct cli_simulated simulated;
    double compute_share; /* of the ranks' time that they compute */
};

static enum status print_text(struct cli *cli, const struct report *report, struct error *err)
{
    const struct cli_simulate_request *request = report->request;
    fprintf(cli->out, "%s: execution traces of %u ranks\n\n", request->path, report->chakra->rank_count);
    return cli_simulated_print(cli, &report->simulated, report->compute_share, request->trace_path, err);
}

static enum status print_json(struct cli *cli, const struct report *report, struct error *err)
{
    const struct cli_simulated *s = &report->simulated;
    struct json_out *json;
    if (cli_report_begin(cli, "simulate", &json, err) != STATUS_OK) return err->status;
    json_out_string(json, "chakra_prefix", report->request->path);
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

static enum status simulate(const struct report *report, bool spans, struct sim_result *result, struct trace *trace,
                            struct error *err)
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

enum status simulate_chakra(struct cli *cli, const struct cli_simulate_request *request, struct error *err)
{
    struct chakra_trace chakra = {0};
    struct hardware hardware = {0};
    struct sim_result result = {0};
    struct trace trace = {0};
    struct report report = {.request = request,
                            .chakra = &chakra,
                            .simulated = {.hardware = &hardware, .result = &result, .trace = &trace}};
    enum status status = chakra_trace_read(request->path, &chakra, err);
    if (status == STATUS_OK) {
        struct cli_machine wanted = request->machine;
        wanted.devices = chakra.rank_count;
        status = cli_machine_read(&wanted, &hardware, err);
    }
    if (status == STATUS_OK) status = simulate(&report, request->trace_path || cli->document, &result, &trace, err);
    if (status == STATUS_OK) status = cli_simulated_check(&report.simulated, chakra.rank_count, &report.compute_share, err);
    if (status == STATUS_OK && request->trace_path) status = trace_write(&trace, request->trace_path, err);
    if (status == STATUS_OK)
        cli_history_keep(cli, &(struct cli_outcome){.file = request->path, .hardware = &hardware,
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
