/*
 * `simulate`: a plan, or jobs that are planned first, in virtual time. On another machine with the same number of
 * devices the plan keeps order and places; only times change. No other plan is sought.
 */
#include <inttypes.h>
#include <string.h>

#include "base/size.h"
#include "base/try.h"
#include "cli/common/cli.h"
#include "cli/common/cli_factors.h"
#include "cli/common/cli_machine.h"
#include "cli/common/cli_trace.h"
#include "cli/document/cli_document.h"
#include "cli/history/cli_history.h"
#include "cli/reports/cli_breakdown.h"
#include "cli/reports/cli_simulated.h"
#include "cli/reports/cli_staleness.h"
#include "cli/simulate/cli_interval.h"
#include "cli/simulate/cli_simulate.h"
#include "cli/ways/cli_predict.h"
#include "cli/ways/cli_predict_live.h"
#include "cli/ways/cli_runnable.h"
#include "planner/files/plan_io.h"
#include "planner/plan_runnable.h"
#include "traces/trace_writer.h"

struct simulate_report {
    const char *plan_path, *trace_path;
    const struct cli_simulate_request *request;
    const struct plan *plan;
    const struct swap_report *swap; /* without jobs if no layers are swapped */
    const struct hardware *hardware;
    const struct cli_prediction *prediction;
    const struct cli_predict_options *how;
    struct cli_simulated simulated;
    struct cli_breakdown parts;          /* with --contents */
    const struct cli_failure_outcome *outcome; /* NULL: no failures */
    struct cli_interval interval;        /* seeds 0: none */
};

/* --- text ------------------------------------------------------------------------------------ */

/* Prints each storage's use, which is constant during the run. */
static void print_stored(FILE *out, const struct simulate_report *report)
{
    const double stored = (double)plan_stored_bytes(report->plan);
    char text[QUANTITY_TEXT_BYTES], most[QUANTITY_TEXT_BYTES];
    if (stored > 0)
        fprintf(out, "storage     %s of %s\n", quantity_text(stored, DIMENSION_BYTES, text),
                quantity_text(report->hardware->storage.capacity_bytes.value, DIMENSION_BYTES, most));
}

static void print_slowness(FILE *out, const struct simulate_report *report)
{
    const struct cli_predict_options *how = report->how;
    char text[CLI_PERCENT_BYTES];
    for (uint32_t d = 0; how->slow && d < report->hardware->device_count; d++)
        if (how->slow[d] < 1 || how->slow[d] > 1)
            fprintf(out, "slow        computations of device %" PRIu32 " take %g times their time\n", d, how->slow[d]);
    if (how->noise > 0)
        fprintf(out, "noise       computations take up to %s less or more by chance (seed %" PRIu64 ")\n",
                cli_percent(how->noise, text), how->seed);
}

/* Prints the speed. Model FLOPs may exceed the peak if convolutions need fewer; then no MFU is printed. */
static void print_speed(FILE *out, const struct cli_prediction *prediction)
{
    double speed = prediction->model_flops / prediction->result.makespan_s, peak = prediction->peak_flops_per_s;
    char text[QUANTITY_TEXT_BYTES], other[QUANTITY_TEXT_BYTES];
    fprintf(out, "model FLOPs %s", quantity_text(speed, DIMENSION_FLOP_PER_S, text));
    if (peak > 0 && speed > peak)
        fprintf(out, ", above the peak of %s: 3 x 3 convolutions by minimal filtering need fewer",
                quantity_text(peak, DIMENSION_FLOP_PER_S, other));
    else if (peak > 0)
        fprintf(out, ", MFU %.1f %% of %s", 100 * speed / peak, quantity_text(peak, DIMENSION_FLOP_PER_S, other));
    fputs(" (recomputation not counted)\n", out);
}

/* Prints the speed with recomputation, where there is some. */
static void print_hardware_speed(FILE *out, const struct cli_prediction *prediction)
{
    const double speed = prediction->hardware_flops / prediction->result.makespan_s;
    char text[QUANTITY_TEXT_BYTES];
    if (!(prediction->hardware_flops > 1.001 * prediction->model_flops)) return;
    fprintf(out, "all FLOPs   %s", quantity_text(speed, DIMENSION_FLOP_PER_S, text));
    if (prediction->peak_flops_per_s > 0) fprintf(out, ", HFU %.1f %%", 100 * speed / prediction->peak_flops_per_s);
    fputs(" (with recomputation)\n", out);
}

static bool has_collectives(const struct simulate_report *report)
{
    const struct trace *trace = &report->prediction->trace;
    for (uint32_t s = 0; s < trace->stream_count; s++) {
        bool of_groups = trace->streams[s].kind == STREAM_GROUP || trace->streams[s].kind == STREAM_DATA;
        if (of_groups && report->prediction->result.streams[s].operations > 0) return true;
    }
    return false;
}

static void print_times(FILE *out, const struct simulate_report *report)
{
    const struct cli_prediction *prediction = report->prediction;
    const struct sim_result *result = &prediction->result;
    char text[QUANTITY_TEXT_BYTES];
    fprintf(out, "makespan    %s on '%s' (predicted)\n",
            quantity_text(result->makespan_s, DIMENSION_SECONDS, text), report->hardware->name);
    enum job_unit unit = cli_unit_of(&report->plan->jobs);
    fputs("throughput  ", out);
    if (unit == JOB_TOKENS)
        fprintf(out, "%.5g tokens/s, %.4g samples/s", prediction->tokens_per_s, prediction->samples_per_s);
    else fprintf(out, "%.5g %s", prediction->samples_per_s, cli_unit_rates[unit]);
    fprintf(out, "; compute %.1f %% busy\n", 100 * prediction->compute_share);
    if (prediction->model_flops > 0 && result->makespan_s > 0) {
        print_speed(out, prediction);
        print_hardware_speed(out, prediction);
    }
    if (result->collective_paths > 0)
        fprintf(out, "collectives share links with other traffic%s\n",
                report->how->collectives == SIM_COLLECTIVES_AUTO ? ", or take closed forms if there is none" : "");
    else if (report->how->collectives != SIM_COLLECTIVES_CLOSED)
        fputs("collectives take closed forms: their links have no other traffic; "
              "the table of links leaves their bytes out\n",
              out);
    else if (has_collectives(report))
        fputs("collectives take closed forms; the table of links leaves their bytes out (--collectives flows: "
              "they share links)\n",
              out);
    if (report->how->demand_first)
        fputs("copies      on demand first; copies during computations and copies out share the rest\n", out);
    cli_simulated_end(out, &report->simulated);
}

static enum status print_text(struct cli *cli, const struct simulate_report *report, struct error *err)
{
    FILE *out = cli->out;
    const struct trace *trace = &report->prediction->trace;
    fprintf(out, "%s: %s%s, policy %s\n\n", report->plan_path, CLI_COUNT(report->plan->jobs.count, "job"),
            report->request->live ? ", dispatched live" : "", trace->policy);
    enum job_unit unit = cli_unit_of(&report->plan->jobs);
    TRY(cli_trace_jobs(out, trace, err));
    fputc('\n', out);
    TRY(cli_simulated_tables(out, &report->simulated, err));
    TRY(cli_trace_places(out, trace, err));
    fputc('\n', out);
    if (report->request->contents) TRY(cli_breakdown_text(out, &report->parts, err));
    if (report->request->contents) fputc('\n', out);
    if (report->swap->job_count > 0) TRY(cli_swap_text(out, report->plan, report->swap, err));
    if (report->swap->job_count > 0) fputc('\n', out);
    print_stored(out, report);
    cli_staleness_print(out, report->plan, 12);
    print_slowness(out, report);
    print_times(out, report);
    const struct cli_prediction *prediction = report->prediction;
    cli_interval_print(out, &report->interval, unit,
                       unit == JOB_TOKENS ? 1 : prediction->samples_per_s / prediction->tokens_per_s);
    cli_simulated_reserved(out, &report->simulated);
    if (report->outcome) cli_failures_print(out, report->outcome);
    cli_trace_written(cli, report->trace_path);
    if (report->trace_path || report->request->subject != SIMULATE_PLAN) return STATUS_OK;
    struct error refused = {0};
    const bool runs = cli_runs_here(&report->plan->hardware) && plan_runnable(report->plan, &refused) == STATUS_OK;
    if (!runs && report->plan->gang_count > 0) return STATUS_OK;
    if (!runs)
        cli_next(cli, (const char *const[]){"explain", report->plan_path, NULL});
    else if (report->request->live)
        cli_next(cli, (const char *const[]){"run", report->plan_path, "--dispatch", "live", "--policy",
                                            report->request->policy, NULL});
    else
        cli_next(cli, (const char *const[]){"run", report->plan_path, NULL});
    return STATUS_OK;
}

/* --- JSON ------------------------------------------------------------------------------------ */

static enum status print_json(struct cli *cli, const struct simulate_report *report, struct error *err)
{
    const struct cli_prediction *prediction = report->prediction;
    const struct sim_result *result = &prediction->result;
    struct json_out *json;
    TRY(cli_report_begin(cli, "simulate", &json, err));
    json_out_string(json, "plan_file", report->plan_path);
    if (report->trace_path) json_out_string(json, "trace_file", report->trace_path);
    cli_fingerprint(json, plan_fingerprint(report->plan));
    json_out_string(json, "hardware", report->hardware->name);
    if (report->request->live) json_out_string(json, "dispatch", "live");
    json_out_string(json, "policy", prediction->trace.policy);
    json_out_double(json, "makespan_s", result->makespan_s);
    json_out_double(json, "tokens_per_s", prediction->tokens_per_s);
    json_out_double(json, "samples_per_s", prediction->samples_per_s);
    json_out_double(json, "compute_utilisation", prediction->compute_share);
    json_out_double(json, "model_flops", prediction->model_flops);
    if (prediction->hardware_flops > 0) json_out_double(json, "hardware_flops", prediction->hardware_flops);
    json_out_double(json, "peak_flops_per_s", prediction->peak_flops_per_s);
    json_out_string(json, "binds", result->binds);
    if (report->how->slow) {
        json_out_array_begin(json, "slow", true);
        for (uint32_t d = 0; d < report->hardware->device_count; d++) json_out_double(json, NULL, report->how->slow[d]);
        json_out_array_end(json);
    }
    if (report->how->demand_first) json_out_bool(json, "demand_first", true);
    if (report->how->noise > 0) {
        json_out_double(json, "noise", report->how->noise);
        json_out_u64(json, "seed", report->how->seed);
    }
    if (report->how->collectives != SIM_COLLECTIVES_CLOSED)
        json_out_bool(json, "collectives_share_links", result->collective_paths > 0);
    cli_interval_json(json, &report->interval);
    cli_trace_jobs_json(json, &prediction->trace);
    cli_staleness_json(json, report->plan);
    trace_writer_places(&prediction->trace, json);
    if (report->request->contents) cli_breakdown_json(json, &report->parts);
    if (hardware_has_storage(report->hardware)) json_out_u64(json, "stored_bytes", plan_stored_bytes(report->plan));
    cli_simulated_json(json, &report->simulated);
    cli_simulated_reserved_json(json, &report->simulated);
    if (report->outcome) cli_failures_json(json, report->outcome);
    cli_simulated_speed_json(json, &report->simulated);
    if (report->swap->job_count > 0) cli_swap_json(json, report->plan, report->swap);
    return cli_report_end(cli, json, err);
}

/* --- the verb -------------------------------------------------------------------------------- */

static enum status read_plan(const struct cli_simulate_request *request, struct plan *plan, struct error *err)
{
    enum status status = plan_read(request->path, plan, err);
    if (status != STATUS_OK || !request->live || plan_is_open(plan)) return status;
    return error_set(err, STATUS_BAD_INPUT,
                     "'%s' has only one order (make another plan with 'spillway plan --dispatch live')", request->path);
}

static enum status read_noise(const char *text, double *out, struct error *err)
{
    TRY(cli_ratio(text, "noise", out, err));
    if (*out > 0 && *out <= 0.9) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT, "option '--noise' is '%s' (expected more than 0%% and at most 90%%)", text);
}

static enum status find_interval(struct simulate_report *report, struct error *err)
{
    const struct sim_options options = cli_predict_sim_options(report->hardware, report->how);
    report->interval = (struct cli_interval){.seeds = report->request->seeds, .seed = report->request->seed};
    return cli_interval_find(report->plan, report->hardware, &options, report->prediction->result.makespan_s,
                             report->prediction->tokens_per_s, &report->interval, err);
}

static enum status simulate_plan(struct cli *cli, const struct cli_simulate_request *request,
                                 struct error *err)
{
    struct plan plan = {0};
    struct cli_other_machine other = {0};
    struct cli_prediction prediction = {0};
    struct cli_failure_outcome outcome = {0};
    struct swap_report swap = {0};
    bool jobs = request->subject == SIMULATE_JOBS;
    struct arena arena = {0};
    struct cli_predict_options how = {.every_device = request->no_fold, .caching = request->caching,
                                      .demand_first = request->demand_first,
                                      .collectives = (enum sim_collectives_by)request->collectives,
                                      .seed = request->seed};
    struct simulate_report report = {.plan_path = request->path, .request = request, .swap = &swap, .plan = &plan,
                                     .trace_path = request->trace_path, .prediction = &prediction, .how = &how};
    enum status status = jobs ? simulate_plan_jobs(request, &plan, &swap, err) : read_plan(request, &plan, err);
    if (status == STATUS_OK && !jobs)
        status = cli_other_machine_find(&request->machine, report.plan_path, &plan, &other, err);
    report.hardware = other.hardware ? other.hardware : &plan.hardware;
    report.simulated = (struct cli_simulated){
        .hardware = report.hardware, .result = &prediction.result, .trace = &prediction.trace};
    if (status == STATUS_OK)
        status = cli_device_factors(request->slow, "slow", plan.hardware.device_count, &arena, &how.slow, err);
    if (status == STATUS_OK && request->noise) status = read_noise(request->noise, &how.noise, err);
    if (status == STATUS_OK && cli_document_wants_spans(cli, plan_operations(&plan))) how.spans = true;
    if (status == STATUS_OK && report.trace_path) status = trace_writer_create(report.trace_path, &how.writer, err);
    if (status == STATUS_OK)
        status = request->live ? cli_predict_live(&plan, other.hardware, request->policy, &how, &prediction, err)
                               : cli_predict(&plan, other.hardware, &how, &prediction, err);
    if (status == STATUS_OK && request->contents)
        status = cli_breakdown_find(&plan, &prediction.trace, &report.parts, err);
    if (status == STATUS_OK && request->seeds > 0) status = find_interval(&report, err);
    if (status == STATUS_OK && request->failures.path) {
        status = cli_failures_run(&request->failures, plan.hardware.device_count, prediction.result.makespan_s,
                                  &outcome, err);
        report.outcome = &outcome;
    }
    if (how.writer && status == STATUS_OK) status = trace_writer_commit(how.writer, &prediction.trace, err);
    else trace_writer_discard(how.writer);
    if (status == STATUS_OK)
        cli_history_keep(cli, &(struct cli_outcome){.file = report.plan_path, .policy = plan.policy, .plan = &plan,
                                                    .plan_fingerprint = prediction.trace.plan_fingerprint,
                                                    .hardware = report.hardware,
                                                    .predicted_s = prediction.result.makespan_s,
                                                    .predicted_tokens_per_s = prediction.tokens_per_s});
    if (status == STATUS_OK) {
        cli_document_traces(cli, &prediction.trace, NULL);
        cli_document_simulated(cli, report.hardware);
        status = cli->json ? print_json(cli, &report, err) : print_text(cli, &report, err);
    }
    cli_failures_release(&outcome);
    cli_prediction_release(&prediction);
    cli_other_machine_release(&other);
    swap_report_release(&swap);
    arena_release(&arena);
    plan_release(&plan);
    return status;
}

static enum status check_live(const struct cli_simulate_request *request, struct error *err)
{
    bool instance = request->subject == SIMULATE_INSTANCE;
    if (cli_simulate_swaps(request))
        return error_set(err, STATUS_BAD_INPUT, "--dispatch live asks a policy about spilled or parallel jobs and "
                         "cannot be used with --activations");
    if (request->collectives != SIM_COLLECTIVES_CLOSED)
        return error_set(err, STATUS_BAD_INPUT, "--collectives is for plans in their own order and cannot be used with "
                         "--dispatch live");
    if (request->caching)
        return error_set(err, STATUS_BAD_INPUT, "option '--caching-allocator' is for plans in their own order");
    if (request->no_fold)
        return error_set(err, STATUS_BAD_INPUT,
                         "option '--no-fold' is for plans in their own order: live dispatch never folds "
                         "devices");
    if (request->failures.path)
        return error_set(err, STATUS_BAD_INPUT, "--failures is for plans in their own order and cannot be used with "
                         "--dispatch live");
    if (!request->policy)
        return error_set(err, STATUS_BAD_INPUT, "option '--policy' is missing: the policy that --dispatch live asks");
    if (instance && !request->machine.name && cli_machine_speeds_given(&request->machine))
        return error_set(err, STATUS_BAD_INPUT, "--link-rate, --p2p-rate, --nic-rate, --no-p2p, --threads and "
                         "--dilate change the machine of --hw, which is missing");
    if (instance && (request->slow || request->noise || request->demand_first))
        return error_set(err, STATUS_BAD_INPUT, "--slow, --noise and --demand-first are for plans and jobs, and "
                         "'%s' is an instance", request->path);
    return STATUS_OK;
}

/* Refuses a policy without live dispatch, except for jobs. */
static enum status check_not_live(const struct cli_simulate_request *request, struct error *err)
{
    bool jobs = request->subject == SIMULATE_JOBS;
    if (request->policy && !jobs)
        return error_set(err, STATUS_BAD_INPUT,
                         "a plan has its own order: --policy is for jobs and for --dispatch live");
    if (request->policy && cli_simulate_swaps(request))
        return error_set(err, STATUS_BAD_INPUT,
                         "with --activations swap there is no --policy (a job's layers run in their "
                         "order)");
    if (request->policy && (strcmp(request->policy, "all") == 0 || strcmp(request->policy, "optimal") == 0))
        return error_set(err, STATUS_BAD_INPUT,
                         "policy '%s' compares plans, as 'spillway plan' does (expected one that makes "
                         "a plan)",
                         request->policy);
    if (request->seed > 0 && !request->policy && !request->failures.path && !request->noise && request->seeds == 0)
        return error_set(err, STATUS_BAD_INPUT, "nothing here is random: --seed is for --policy, "
                         "--failures, --noise and --seeds");
    return STATUS_OK;
}

static enum status check_request(const struct cli_simulate_request *request, struct error *err)
{
    const struct cli_machine *machine = &request->machine;
    bool parallel = cli_parallel_given(&request->parallel), jobs = request->subject == SIMULATE_JOBS;
    bool sizes = machine->devices > 0 || machine->device_memory_bytes >= 0 || machine->host_memory_bytes >= 0 ||
                 machine->storage_bytes >= 0 || machine->storage_bytes_per_s >= 0;
    if (sizes && !jobs)
        return error_set(err, STATUS_BAD_INPUT, "--devices, --device-memory, --host-memory, --storage-memory and "
                         "--storage-rate are for planning jobs; a plan has its own machine");
    if (parallel && cli_simulate_swaps(request))
        return error_set(err, STATUS_BAD_INPUT, "parallel jobs (--parallel) keep their "
                         "activations on their devices: --activations is not for them");
    if (request->rule != CLI_SWAP_RULE_NONE && !cli_simulate_swaps(request))
        return error_set(err, STATUS_BAD_INPUT, "option '--rule' is for --activations swap");
    if (request->contents && request->subject == SIMULATE_INSTANCE)
        return error_set(err, STATUS_BAD_INPUT, "option '--contents' is for plans and jobs, whose buffers are known");
    TRY(cli_refuse_dash("trace", request->trace_path, err));
    if (request->seeds > 0 && request->live)
        return error_set(err, STATUS_BAD_INPUT, "option '--seeds' is for plans in their own order");
    if (request->failures.runs > 0 && !request->failures.path)
        return error_set(err, STATUS_BAD_INPUT, "option '--runs' is for --failures");
    return request->live ? check_live(request, err) : check_not_live(request, err);
}

enum status verb_simulate(struct cli *cli, int argc, char **argv, struct error *err)
{
    static const char *const activations[] = {"swap", NULL};
    struct cli_simulate_request request = {.machine = CLI_MACHINE_NONE,
                                           .parallel = CLI_PARALLEL_NONE,
                                           .activations = CLI_SWAP_RULE_NONE,
                                           .rule = CLI_SWAP_RULE_NONE};
    size_t dispatch = 0;
    const struct option_spec specs[] = {
        OPTION_OUTPUT("trace", 0, "FILE", FILE_KIND_TRACE, &request.trace_path,
                      "predicted trace to write, compressed if it ends in .gz"),
        OPTION_CHOICE("dispatch", 0, "WHEN", cli_dispatches, &dispatch,
                      "plan: in the plan's order; live: ask a policy (default plan)"),
        OPTION_STRING("policy", 'p', "POLICY", &request.policy,
                      "policy that orders jobs or is asked live: a name or ./mine.so"),
        OPTION_U64("seed", 0, "N", 0, UINT64_MAX, &request.seed,
                   "random seed of policy, failures, noise and --seeds (default 0)"),
        CLI_MACHINE_OPTION(&request.machine.name,
                           "machine for jobs, or another machine for a plan: a name or a file"),
        CLI_MACHINE_SIZES(&request.machine),
        CLI_MACHINE_SPEEDS(&request.machine),
        CLI_MACHINE_STACK(&request.machine),
        CLI_MACHINE_STORAGE(&request.machine),
        CLI_PARALLEL(&request.parallel),
        OPTION_CHOICE("activations", 0, "HOW", activations, &request.activations,
                      "swap: keep, swap or recompute the activations of each layer"),
        CLI_SWAP_RULE(&request.rule),
        OPTION_STRING("slow", 0, "DEVICE=FACTOR,...", &request.slow,
                      "slow down computations of these devices by a factor each"),
        OPTION_STRING("noise", 0, "PERCENT", &request.noise,
                      "vary the time of each computation at random by up to PERCENT"),
        OPTION_U64("seeds", 0, "N", 2, INTERVAL_SEEDS_MAX, &request.seeds,
                   "simulate N machines drawn within the spreads of its values, for an interval"),
        OPTION_STRING("failures", 0, "FILE", &request.failures.path,
                      "file of device failures, repairs and slow phases to simulate"),
        OPTION_U64("runs", 0, "N", 1, 1000000, &request.failures.runs, "simulations of random failures (default 200)"),
        OPTION_CHOICE("collectives", 0, "HOW", sim_collectives_by_names, &request.collectives,
                      "closed: by formula; flows: sharing links; auto: as needed (default closed)"),
        OPTION_FLAG("caching-allocator", 0, &request.caching,
                    "show the memory that PyTorch's allocator would reserve"),
        OPTION_FLAG("contents", 0, &request.contents,
                    "show the contents of the fullest device and of the host at their peaks"),
        OPTION_FLAG("demand-first", 0, &request.demand_first,
                    "give copies that a device waits for priority over other copies"),
        OPTION_FLAG("no-fold", 0, &request.no_fold,
                    "simulate every device and repetition, also equal ones"),
        CLI_HISTORY_OPTION(cli),
        CLI_ANSWER_OPTIONS(cli),
    };
    struct options options = {
        OPTIONS_TABLE(specs, 1, 1),
        .examples = (const char *const[]){"spillway simulate plan.json --trace predicted.json.gz",
                                          "spillway simulate plan.json --hw a100-sxm4-40gb",
                                          "spillway simulate jobs.json --hw '2x rtx-3090-24gb' --policy sharded-lrtf",
                                          "spillway simulate jobs.json --hw '8x a100-sxm4-80gb' --parallel tp=2,pp=4",
                                          "spillway simulate plan.json --seeds 200",
                                          "spillway simulate jobs.json --hw '2x rtx-3090-24gb' --dispatch live "
                                          "--policy srtf",
                                          "spillway simulate instance.json --dispatch live --policy srtf", NULL},
        .details =
            "FILE is a plan or jobs. Jobs are planned first, for the machine of --hw: over several devices where "
            "the jobs or --parallel say so, else spilled in the order of --policy, by default in the fastest "
            "way that 'plan' finds. With --dispatch live, the policy is asked whenever a device has room for a "
            "shard of a job that is ready, or for a parallel job's next minibatch; FILE is then jobs, a plan of "
            "'plan --dispatch live', or an instance. Copies of an instance take the time of its bytes on the links of "
            "--hw, or, without --hw, the time that the instance gives, on a link for each device. For a plan, "
            "--link-rate, --p2p-rate, --nic-rate, --no-p2p, --threads and --dilate change the machine of --hw, or "
            "without --hw the plan's own.",
    };
    CLI_PARSE(cli, &options, argc, argv, err);
    request.live = dispatch == 1;
    request.path = options.operands[0];
    request.failures.seed = request.seed;
    bool planned = cli_parallel_given(&request.parallel) || cli_simulate_swaps(&request);
    request.subject = planned ? SIMULATE_JOBS : SIMULATE_PLAN;
    if (!planned) TRY(simulate_find_subject(request.path, request.live, &request.subject, err));
    TRY(check_request(&request, err));
    if (request.failures.runs == 0) request.failures.runs = 200;
    if (request.subject == SIMULATE_INSTANCE) return simulate_live(cli, &request, err);
    return simulate_plan(cli, &request, err);
}
