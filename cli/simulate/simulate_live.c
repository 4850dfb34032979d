/* `simulate --dispatch live`: a policy is asked as devices become free. */
#include <inttypes.h>

#include "base/process/progress.h"
#include "base/try.h"
#include "cli/common/cli_table.h"
#include "cli/common/cli_trace.h"
#include "cli/document/cli_document.h"
#include "cli/history/cli_history.h"
#include "cli/reports/cli_simulated.h"
#include "cli/simulate/cli_simulate.h"
#include "planner/policy/policy_process.h"
#include "planner/solve/instance/instance_io.h"
#include "sim/live/live.h"

struct simulate_live_report {
    const struct cli_simulate_request *request;
    const struct instance *instance;
    const struct policy *policy;
    struct cli_simulated simulated;
    double compute_share; /* of the devices' time */
};

static enum status print_jobs(FILE *out, const struct trace *trace, struct error *err)
{
    struct cli_table table;
    char text[QUANTITY_TEXT_BYTES];
    uint32_t shown = trace->job_count < CLI_ROWS_MAX ? trace->job_count : CLI_ROWS_MAX;
    cli_table_begin(&table, (const char *const[]){"JOB", ">START", ">END", ">REPEATS", NULL});
    for (uint32_t j = 0; j < shown; j++) {
        const struct trace_job *job = &trace->jobs[j];
        cli_table_cell(&table, "%s", job->name);
        cli_table_cell(&table, "%s", quantity_text(job->start_s, DIMENSION_SECONDS, text));
        cli_table_cell(&table, "%s", quantity_text(job->end_s, DIMENSION_SECONDS, text));
        cli_table_cell(&table, "%" PRIu64, job->minibatches);
    }
    TRY(cli_table_end(&table, out, err));
    cli_more_rows(out, shown, trace->job_count);
    return STATUS_OK;
}

static enum status print_text(struct cli *cli, const struct simulate_live_report *report, struct error *err)
{
    FILE *out = cli->out;
    const struct cli_simulated *s = &report->simulated;
    const struct cli_simulate_request *request = report->request;
    fprintf(out, "%s: %s on %s, dispatched live by %s\n\n", request->path,
            CLI_COUNT(report->instance->job_count, "job"), CLI_COUNT(report->instance->device_count, "device"),
            report->policy->name);
    TRY(print_jobs(out, s->trace, err));
    fputc('\n', out);
    return cli_simulated_print(cli, s, report->compute_share, request->trace_path, err);
}

static enum status print_json(struct cli *cli, const struct simulate_live_report *report, struct error *err)
{
    const struct cli_simulated *s = &report->simulated;
    struct json_out *json;
    TRY(cli_report_begin(cli, "simulate", &json, err));
    json_out_string(json, "instance_file", report->request->path);
    if (report->request->trace_path) json_out_string(json, "trace_file", report->request->trace_path);
    json_out_string(json, "hardware", s->hardware->name);
    json_out_string(json, "dispatch", "live");
    json_out_string(json, "policy", report->policy->name);
    json_out_u64(json, "seed", report->request->seed);
    json_out_double(json, "makespan_s", s->result->makespan_s);
    json_out_double(json, "compute_utilisation", report->compute_share);
    json_out_string(json, "binds", s->result->binds);
    cli_trace_jobs_json(json, s->trace);
    cli_simulated_json(json, s);
    cli_simulated_speed_json(json, s);
    return cli_report_end(cli, json, err);
}

static enum status simulate(const struct instance *in, const struct cli_simulate_request *request, bool spans,
                            struct policy_process *process, struct cli_simulated *out, struct sim_result *result,
                            struct trace *trace, struct error *err)
{
    struct progress progress;
    struct error why = {0};
    const struct plan_dispatch_options asked = policy_process_dispatch(process, request->seed);
    struct sim_live_options options = {
        .hardware = out->hardware,
        .policy = asked.policy,
        .state = asked.state,
        .seed = asked.seed,
        .timed_copies = !request->machine.name,
        .record_spans = spans,
        .on_progress = progress_show,
        .context = &progress,
    };
    progress_begin(&progress, "simulating", in->task_count);
    const enum status status = sim_live_run(in, &options, result, trace, &why);
    progress_end(&progress);
    TRY(policy_process_failed(process, err)); /* the cause of `why` */
    return status == STATUS_OK ? STATUS_OK : error_set(err, status, "%s", why.text);
}

static enum status find_machine(const struct cli_simulate_request *request, const struct instance *in,
                                struct hardware *out, struct error *err)
{
    struct cli_machine wanted = request->machine;
    if (!wanted.name) return sim_live_machine(in, out, err);
    wanted.devices = in->device_count;
    return cli_machine_read(&wanted, out, err);
}

enum status simulate_live(struct cli *cli, const struct cli_simulate_request *request, struct error *err)
{
    struct instance in = {0};
    struct hardware hardware = {0};
    struct policy_process *process = NULL;
    struct sim_result result = {0};
    struct trace trace = {0};
    struct simulate_live_report report = {.request = request,
                                          .instance = &in,
                                          .simulated = {.hardware = &hardware, .result = &result, .trace = &trace}};
    enum status status = instance_read(request->path, &in, err);
    if (status == STATUS_OK) status = find_machine(request, &in, &hardware, err);
    if (status == STATUS_OK) status = policy_process_open(request->policy, 0, &process, err);
    if (status == STATUS_OK) {
        report.policy = policy_process_dispatch(process, 0).policy;
        status = simulate(&in, request, request->trace_path || cli->document, process, &report.simulated, &result,
                          &trace, err);
    }
    if (status == STATUS_OK)
        status = cli_simulated_check(&report.simulated, in.device_count, &report.compute_share, err);
    if (status == STATUS_OK && request->trace_path) status = trace_write(&trace, request->trace_path, err);
    if (status == STATUS_OK)
        cli_history_keep(cli, &(struct cli_outcome){.file = request->path, .policy = report.policy->name,
                                                    .hardware = &hardware, .job_count = trace.job_count,
                                                    .predicted_s = result.makespan_s});
    if (status == STATUS_OK) {
        cli_document_traces(cli, &trace, NULL);
        cli_document_simulated(cli, &hardware);
        status = cli->json ? print_json(cli, &report, err) : print_text(cli, &report, err);
    }
    sim_result_release(&result);
    trace_release(&trace);
    policy_process_close(process);
    hardware_release(&hardware);
    instance_release(&in);
    return status;
}
