/*
 * `simulate`: a plan in virtual time, on its own machine or on another one of as many devices.
 *
 * On another machine the plan stays what it is (its order, its places in memory), only the clock
 * changes, so this answers "how long would this take over there", not "what should I do there".
 */
#include <inttypes.h>
#include <string.h>

#include "base/size.h"
#include "cli/cli.h"
#include "cli/cli_machine.h"
#include "cli/cli_parallel.h"
#include "cli/cli_predict.h"
#include "cli/cli_table.h"
#include "cli/cli_trace.h"
#include "planner/plan_io.h"
#include "planner/planner.h"

struct report {
    const char *plan_path, *trace_path;
    const struct plan *plan;
    const struct hardware *hardware;
    const struct cli_prediction *prediction;
};

static double ratio(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

static double operations_per_s(const struct sim_result *result)
{
    return ratio((double)result->operations, result->wall_s);
}

/* --- text ------------------------------------------------------------------------------------ */

static enum status print_streams(FILE *out, const struct report *report, struct error *err)
{
    const struct trace *trace = &report->prediction->trace;
    const struct sim_result *result = &report->prediction->result;
    struct cli_table table;
    char text[QUANTITY_TEXT_BYTES];
    cli_table_begin(&table, (const char *const[]){"STREAM", ">BUSY", ">OF THE TIME",
                                                  ">OPERATIONS", NULL});
    uint32_t shown = trace->stream_count < CLI_ROWS_MAX ? trace->stream_count : CLI_ROWS_MAX;
    for (uint32_t s = 0; s < shown; s++) {
        const struct sim_stream_use *use = &result->streams[s];
        cli_table_cell(&table, "%s", trace->streams[s].name);
        cli_table_cell(&table, "%s", quantity_text(use->busy_s, DIMENSION_SECONDS, text));
        cli_table_cell(&table, "%.1f %%", 100 * ratio(use->busy_s, result->makespan_s));
        cli_table_cell(&table, "%" PRIu64, use->operations);
    }
    if (cli_table_end(&table, out, err) != STATUS_OK) return err->status;
    cli_more_rows(out, shown, trace->stream_count);
    return STATUS_OK;
}

/* Storage is shown as one more link. */
static uint32_t link_count(const struct hardware *hardware)
{
    return hardware->link_count + hardware_has_storage(hardware);
}

static struct hardware_link link_at(const struct hardware *hardware, uint32_t index)
{
    if (index < hardware->link_count) return hardware->links[index];
    return (struct hardware_link){.name = "storage",
                                  .bandwidth = {.value = hardware_storage_rate(hardware)}};
}

static enum status print_links(FILE *out, const struct report *report, struct error *err)
{
    const struct sim_result *result = &report->prediction->result;
    struct cli_table table;
    char text[QUANTITY_TEXT_BYTES];
    cli_table_begin(&table, (const char *const[]){"LINK", ">BANDWIDTH", ">TO DEVICES", ">BACK",
                                                  ">IN USE", ">SATURATED", NULL});
    uint32_t links = link_count(report->hardware), shown = links < CLI_ROWS_MAX ? links : CLI_ROWS_MAX;
    for (uint32_t l = 0; l < shown; l++) {
        const struct hardware_link link = link_at(report->hardware, l);
        const struct sim_link_use *use = &result->links[l];
        cli_table_cell(&table, "%s", link.name);
        cli_table_cell(&table, "%s", quantity_text(link.bandwidth.value, DIMENSION_BYTES_PER_S,
                                                   text));
        cli_table_cell(&table, "%s", quantity_text(use->bytes[0], DIMENSION_BYTES, text));
        cli_table_cell(&table, "%s", quantity_text(use->bytes[1], DIMENSION_BYTES, text));
        cli_table_cell(&table, "%.1f %%", 100 * ratio(use->busy_s, result->makespan_s));
        cli_table_cell(&table, "%.1f %%", 100 * ratio(use->saturated_s, result->makespan_s));
    }
    if (cli_table_end(&table, out, err) != STATUS_OK) return err->status;
    cli_more_rows(out, shown, links);
    return STATUS_OK;
}

static void print_times(FILE *out, const struct report *report)
{
    const struct cli_prediction *prediction = report->prediction;
    const struct sim_result *result = &prediction->result;
    char text[QUANTITY_TEXT_BYTES], other[QUANTITY_TEXT_BYTES];
    fprintf(out, "makespan    %s on '%s' (predicted)\n",
            quantity_text(result->makespan_s, DIMENSION_SECONDS, text), report->hardware->name);
    fprintf(out, "throughput  %.5g tokens/s, %.4g samples/s; compute %.1f %% busy\n",
            prediction->tokens_per_s, prediction->samples_per_s, 100 * prediction->compute_share);
    if (prediction->model_flops > 0 && result->makespan_s > 0) {
        double speed = prediction->model_flops / result->makespan_s;
        fprintf(out, "model FLOPs %s", quantity_text(speed, DIMENSION_FLOP_PER_S, text));
        if (prediction->peak_flops_per_s > 0)
            fprintf(out, ", MFU %.1f %% of %s", 100 * speed / prediction->peak_flops_per_s,
                    quantity_text(prediction->peak_flops_per_s, DIMENSION_FLOP_PER_S, other));
        fputs(" (recomputation not counted)\n", out);
    }
    fprintf(out, "bound by    %s\n", result->binds);
    fprintf(out, "simulated   %s operations in %s, %.3g operations/s\n",
            quantity_text((double)result->operations, DIMENSION_COUNT_OF, text),
            quantity_text(result->wall_s, DIMENSION_SECONDS, other), operations_per_s(result));
}

static enum status print_text(struct cli *cli, const struct report *report, struct error *err)
{
    FILE *out = cli->out;
    const struct trace *trace = &report->prediction->trace;
    fprintf(out, "%s: %u jobs by %s\n\n", report->plan_path, report->plan->jobs.count,
            report->plan->policy);
    if (cli_trace_jobs(out, trace, err) != STATUS_OK) return err->status;
    fputc('\n', out);
    if (print_streams(out, report, err) != STATUS_OK) return err->status;
    fputc('\n', out);
    if (print_links(out, report, err) != STATUS_OK) return err->status;
    if (report->hardware->link_count > 0) fputc('\n', out);
    if (cli_trace_places(out, trace, err) != STATUS_OK) return err->status;
    fputc('\n', out);
    print_times(out, report);
    if (report->trace_path) {
        fprintf(out, "written to  %s\n", report->trace_path);
        cli_next(cli, (const char *const[]){"plot", "timeline", report->trace_path, "-o",
                                            "timeline.svg", NULL});
    } else {
        if (report->plan->gang_count == 0)
            cli_next(cli, (const char *const[]){"run", report->plan_path, NULL});
    }
    return STATUS_OK;
}

/* --- JSON ------------------------------------------------------------------------------------ */

static void streams_json(struct json_out *json, const struct report *report)
{
    const struct sim_result *result = &report->prediction->result;
    const struct trace *trace = &report->prediction->trace;
    json_out_array_begin(json, "streams", false);
    for (uint32_t s = 0; s < trace->stream_count; s++) {
        json_out_object_begin(json, NULL, true);
        json_out_string(json, "name", trace->streams[s].name);
        json_out_double(json, "busy_s", result->streams[s].busy_s);
        json_out_double(json, "utilisation", ratio(result->streams[s].busy_s, result->makespan_s));
        json_out_u64(json, "operations", result->streams[s].operations);
        json_out_object_end(json);
    }
    json_out_array_end(json);
    json_out_array_begin(json, "links", false);
    for (uint32_t l = 0; l < link_count(report->hardware); l++) {
        const struct hardware_link link = link_at(report->hardware, l);
        const struct sim_link_use *use = &result->links[l];
        json_out_object_begin(json, NULL, true);
        json_out_string(json, "name", link.name);
        json_out_double(json, "bandwidth_bytes_per_s", link.bandwidth.value);
        json_out_double(json, "to_device_bytes", use->bytes[0]);
        json_out_double(json, "to_host_bytes", use->bytes[1]);
        json_out_double(json, "busy_s", use->busy_s);
        json_out_double(json, "saturated_s", use->saturated_s);
        json_out_object_end(json);
    }
    json_out_array_end(json);
}

static enum status print_json(struct cli *cli, const struct report *report, struct error *err)
{
    const struct cli_prediction *prediction = report->prediction;
    const struct sim_result *result = &prediction->result;
    struct json_out *json;
    if (cli_report_begin(cli, "simulate", &json, err) != STATUS_OK) return err->status;
    json_out_string(json, "plan_file", report->plan_path);
    if (report->trace_path) json_out_string(json, "trace_file", report->trace_path);
    cli_fingerprint(json, plan_fingerprint(report->plan));
    json_out_string(json, "hardware", report->hardware->name);
    json_out_string(json, "policy", report->plan->policy);
    json_out_double(json, "makespan_s", result->makespan_s);
    json_out_double(json, "tokens_per_s", prediction->tokens_per_s);
    json_out_double(json, "samples_per_s", prediction->samples_per_s);
    json_out_double(json, "compute_utilisation", prediction->compute_share);
    json_out_double(json, "model_flops", prediction->model_flops);
    json_out_string(json, "binds", result->binds);
    cli_trace_jobs_json(json, &prediction->trace);
    cli_trace_places_json(json, &prediction->trace);
    streams_json(json, report);
    json_out_u64(json, "operations", result->operations);
    json_out_double(json, "wall_s", result->wall_s);
    json_out_double(json, "operations_per_s", operations_per_s(result));
    return cli_report_end(cli, json, err);
}

/* --- the verb -------------------------------------------------------------------------------- */

/* The plan's devices have to exist on the other machine, with the memory that the plan uses. */
static enum status fit_machine(const struct cli_machine *machine, const struct plan *plan,
                               struct hardware *hardware, struct error *err)
{
    struct cli_machine wanted = *machine;
    wanted.devices = plan->hardware.device_count;
    if (cli_machine_read(&wanted, hardware, err) != STATUS_OK) return err->status;
    for (uint32_t d = 0; d < plan->hardware.device_count; d++) {
        char need[QUANTITY_TEXT_BYTES], have[QUANTITY_TEXT_BYTES];
        if (plan_device_bytes(plan, d) <= hardware->devices[d].memory_bytes) continue;
        return error_set(err, STATUS_INFEASIBLE,
                         "the plan uses %s of device %u, and those of '%s' have %s",
                         quantity_text((double)plan_device_bytes(plan, d), DIMENSION_BYTES, need),
                         d, hardware->name,
                         quantity_text((double)hardware->devices[d].memory_bytes, DIMENSION_BYTES,
                                       have));
    }
    return STATUS_OK;
}

/* Jobs, spread as asked for, on the machine. */
static enum status plan_jobs(const char *path, const struct cli_machine *machine,
                             const struct cli_parallel *parallel, struct plan *plan, struct error *err)
{
    struct hardware hardware = {0};
    struct job_set jobs = {0};
    const struct planner_options options = {.activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO};
    enum status status = cli_machine_read(machine, &hardware, err);
    if (status == STATUS_OK) status = job_set_read(path, &jobs, err);
    if (status == STATUS_OK) status = cli_parallel_apply(parallel, &jobs, err);
    if (status == STATUS_OK) status = planner_plan(&hardware, &jobs, &options, plan, err);
    hardware_release(&hardware);
    job_set_release(&jobs);
    return status;
}

enum status verb_simulate(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct cli_machine machine = CLI_MACHINE_NONE;
    struct cli_parallel parallel = CLI_PARALLEL_NONE;
    struct report report = {0};
    bool no_fold = false;
    const struct option_spec specs[] = {
        OPTION_STRING("trace", 0, "FILE", &report.trace_path,
                      "write the predicted trace there, compressed when it ends in .gz"),
        OPTION_STRING("hw", 0, "MACHINE", &machine.name,
                      "time the plan on another machine: a name or a hardware file"),
        CLI_MACHINE_SIZES(&machine),
        CLI_MACHINE_SPEEDS(&machine),
        CLI_PARALLEL(&parallel),
        OPTION_FLAG("no-fold", 0, &no_fold, "simulate every device, also those that do what another does"),
        CLI_COMMON_OPTIONS(cli),
    };
    struct options options = {
        .specs = specs,
        .spec_count = ARRAY_COUNT(specs),
        .argument_min = 1,
        .argument_max = 1,
        .examples = (const char *const[]){"spillway simulate plan.json --trace predicted.json.gz",
                                          "spillway simulate plan.json --hw a100-sxm4-40gb",
                                          "spillway simulate jobs.json --hw '8x a100-sxm4-80gb' --parallel tp=2,pp=4",
                                          NULL},
        .details = "With --parallel (or --schedule, --recompute) FILE is a jobs file, whose jobs are planned "
                   "like that on the machine of --hw and its options. Else FILE is a plan: --link-rate, --p2p-rate, --no-p2p and --threads change the machine that --hw names; "
                   "without --hw the plan's own machine is used as the plan holds it.",
    };
    bool go_on;
    if (cli_parse(cli, &options, argc, argv, &go_on, err) != STATUS_OK || !go_on)
        return err->status;
    bool sizes = machine.devices > 0 || machine.device_memory_bytes >= 0 || machine.host_memory_bytes >= 0;
    if (sizes && !cli_parallel_given(&parallel))
        return error_set(err, STATUS_BAD_INPUT, "--devices, --device-memory and --host-memory are the machine's "
                         "that jobs are planned for (--parallel); a plan has its own");
    if (!machine.name && !cli_parallel_given(&parallel) && (machine.link_bytes_per_s >= 0 || machine.p2p_bytes_per_s >= 0 ||
                          machine.no_p2p || machine.threads > 0))
        return error_set(err, STATUS_BAD_INPUT, "--link-rate, --p2p-rate, --no-p2p and --threads change "
                         "the machine of --hw, which is missing");
    if (report.trace_path && strcmp(report.trace_path, "-") == 0)
        return error_set(err, STATUS_BAD_INPUT,
                         "option '--trace' needs a file: standard output gets the report");

    struct plan plan = {0};
    struct hardware hardware = {0};
    struct cli_prediction prediction = {0};
    report.plan_path = options.operands[0];
    report.plan = &plan;
    report.prediction = &prediction;
    bool spread = cli_parallel_given(&parallel), other = machine.name && !spread;
    report.hardware = other ? &hardware : &plan.hardware;
    enum status status = spread ? plan_jobs(report.plan_path, &machine, &parallel, &plan, err)
                                : plan_read(report.plan_path, &plan, err);
    if (status == STATUS_OK && other)
        status = fit_machine(&machine, &plan, &hardware, err);
    if (status == STATUS_OK)
        status = cli_predict(&plan, other ? &hardware : NULL,
                             (report.trace_path ? PREDICT_SPANS : 0) | (no_fold ? PREDICT_EVERY_DEVICE : 0),
                             &prediction, err);
    if (status == STATUS_OK && report.trace_path)
        status = trace_write(&prediction.trace, report.trace_path, err);
    if (status == STATUS_OK)
        status = cli->json ? print_json(cli, &report, err) : print_text(cli, &report, err);
    cli_prediction_release(&prediction);
    hardware_release(&hardware);
    plan_release(&plan);
    return status;
}
