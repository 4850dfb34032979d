#include "cli/run/cli_run_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/try.h"
#include "cli/common/cli_table.h"
#include "cli/common/cli_trace.h"
#include "cli/process/cli_load.h"
#include "cli/run/cli_run_memory.h"
#include "models/hardware/hardware_dilate.h"

bool cli_run_is_complete(const struct cli_run_report *report)
{
    bool complete = !report->measured->stopped;
    for (uint32_t j = 0; j < report->plan->jobs.count; j++)
        complete = complete && !report->measured->jobs[j].failure;
    return complete;
}

/* Returns true for a job of the whole plan. */
static bool was_complete(const struct cli_run_report *report, uint32_t j)
{
    const struct job *job = &report->whole->jobs.jobs[j];
    return report->resume->jobs[j].minibatches >= job->first_minibatch + job->minibatches;
}

/* Computes predicted / measured - 1; false if nothing was measured to its end. */
static bool throughput_error(const struct cli_run_report *report, double *out)
{
    if (!cli_run_is_complete(report) || !(report->measured->tokens_per_s > 0)) return false;
    *out = report->prediction->tokens_per_s / report->measured->tokens_per_s - 1;
    return true;
}

/* --- text ------------------------------------------------------------------------------------ */

static void pair_cells(struct cli_table *table, const char *what, const char *predicted,
                       const char *measured, bool known, double error)
{
    char text[CLI_PERCENT_BYTES];
    cli_table_cell(table, "%s", what);
    cli_table_cell(table, "%s", predicted);
    cli_table_cell(table, "%s", measured);
    cli_table_cell(table, "%s", known ? cli_signed_percent(error, text) : "-");
}

/* Returns the longest predicted time: no plan of these operations ends before. */
static uint32_t busiest_stream(const struct cli_run_report *report)
{
    const struct sim_result *result = &report->prediction->result;
    uint32_t busiest = 0;
    for (uint32_t s = 1; s < plan_stream_count(report->plan); s++)
        if (result->streams[s].busy_s > result->streams[busiest].busy_s) busiest = s;
    return busiest;
}

static enum status print_whole(FILE *out, const struct cli_run_report *report, struct error *err)
{
    const struct cli_measured *measured = report->measured;
    double predicted_s = report->prediction->result.makespan_s;
    double error = 0;
    bool known = throughput_error(report, &error);
    char predicted[QUANTITY_TEXT_BYTES], actual[QUANTITY_TEXT_BYTES];
    struct cli_table table;
    cli_table_begin(&table, (const char *const[]){"", ">PREDICTED", ">MEASURED", ">ERROR", NULL});
    pair_cells(&table, "makespan", quantity_text(predicted_s, DIMENSION_SECONDS, predicted),
               quantity_text(measured->makespan_s, DIMENSION_SECONDS, actual), known,
               measured->makespan_s > 0 ? predicted_s / measured->makespan_s - 1 : 0);
    uint32_t busiest = busiest_stream(report);
    double floor_s = report->prediction->result.streams[busiest].busy_s;
    double busy_s = measured->busy_s[busiest];
    pair_cells(&table, report->prediction->trace.streams[busiest].name,
               quantity_text(floor_s, DIMENSION_SECONDS, predicted),
               quantity_text(busy_s, DIMENSION_SECONDS, actual), known && busy_s > 0,
               busy_s > 0 ? floor_s / busy_s - 1 : 0);
    enum job_unit unit = cli_unit_of(&report->plan->jobs);
    double predicted_rate = report->prediction->tokens_per_s;
    double samples_share = predicted_rate > 0 ? report->prediction->samples_per_s / predicted_rate : 0;
    double scale = unit == JOB_TOKENS ? 1 : samples_share; /* a job's samples have equal numbers of tokens */
    snprintf(predicted, sizeof predicted, "%.5g", scale * predicted_rate);
    snprintf(actual, sizeof actual, "%.5g", scale * measured->tokens_per_s);
    pair_cells(&table, cli_unit_rates[unit], predicted, actual, known, error);
    return cli_table_end(&table, out, err);
}

/* Returns true if load explains the longer time; sets the makespan predicted with it. */
static bool is_slowed(const struct cli_run_report *report, double *slowed_s)
{
    const struct cli_measured *measured = report->measured;
    if (hardware_dilation(&report->plan->hardware) > 1) return false; /* print_dilation() */
    return cli_load_slows(load_taken(&measured->load), measured->makespan_s, report->prediction->result.makespan_s,
                          slowed_s);
}

static void print_load(FILE *out, const struct cli_run_report *report)
{
    const struct load *load = &report->measured->load;
    char idle[QUANTITY_TEXT_BYTES], busy[QUANTITY_TEXT_BYTES];
    double slowed_s;
    if (!is_slowed(report, &slowed_s)) return;
    fprintf(out, "\nother programs took %.0f %% of the processors during the run", 100 * load_taken(load));
    if (load->stolen > 0.01) fprintf(out, " (other machines %.0f %%)", 100 * load->stolen);
    fprintf(out,
            ", and its threads waited %.2g s per second for one:\non an equally busy machine, %s to %s are predicted\n",
            load->waited, quantity_text(report->prediction->result.makespan_s, DIMENSION_SECONDS, idle),
            quantity_text(slowed_s, DIMENSION_SECONDS, busy));
}

/* Says how busy the cores were that stand for more devices, and whether they sufficed. */
static void print_dilation(FILE *out, const struct cli_run_report *report)
{
    const double dilation = hardware_dilation(&report->plan->hardware), late = report->measured->late;
    if (!(dilation > 1)) return;
    fprintf(out, "\ndilated %g times: the cores were busy for %.0f %% of the time, "
                 "and work was late by %.2g %% of its time\n",
            dilation, 100 * (report->measured->load.own + load_taken(&report->measured->load)), 100 * late);
    if (cli_load_limited(late))
        fprintf(out, "NOT a valid measurement: the cores were the limit (use a larger --dilate, or fewer devices)\n");
}

/* Counts jobs that were complete before too. */
static enum job_unit jobs_unit(const struct cli_run_report *report)
{
    return cli_unit_of(report->whole ? &report->whole->jobs : &report->plan->jobs);
}

/* Returns units per token: a job's samples have equal numbers of tokens. */
static double units_per_token(const struct cli_run_report *report, uint32_t j)
{
    const struct trace_job *job = &report->prediction->trace.jobs[j];
    return jobs_unit(report) == JOB_TOKENS ? 1 : (double)job->samples / (double)job->tokens;
}

/* Must live as long as the table. */
struct job_headings {
    char predicted[32];
    const char *all[7];
};

static void jobs_table_begin(struct cli_table *table, const struct cli_run_report *report,
                             struct job_headings *headings)
{
    snprintf(headings->predicted, sizeof headings->predicted, ">PREDICTED %s", cli_unit_headings[jobs_unit(report)]);
    const char *const all[] = {"JOB", ">MINIBATCHES", headings->predicted, ">MEASURED", ">FIRST LOSS", ">LAST LOSS",
                               NULL};
    memcpy(headings->all, all, sizeof all);
    cli_table_begin(table, headings->all);
}

/* `lost`: the loss is not finite; else there is none where it is not known. */
static void loss_cell(struct cli_table *table, bool known, double loss, bool lost)
{
    if (known) cli_table_cell(table, "%.4f", loss);
    else cli_table_cell(table, lost ? "not finite" : "-");
}

static void complete_rows(struct cli_table *table, const struct cli_run_report *report)
{
    for (uint32_t j = 0, shown = 0; report->whole && j < report->whole->jobs.count; j++) {
        const struct cli_resume_job *job = &report->resume->jobs[j];
        if (!was_complete(report, j) || shown++ == CLI_ROWS_MAX) continue;
        cli_table_cell(table, "%s", report->whole->jobs.jobs[j].name);
        cli_table_cell(table, "%" PRIu64 " of %" PRIu64, job->minibatches, job->minibatches);
        cli_table_cell(table, "-");
        cli_table_cell(table, "before");
        loss_cell(table, job->has_first_loss, job->first_loss, true);
        loss_cell(table, job->has_loss, job->final_loss, true);
    }
}

static enum status print_jobs(FILE *out, const struct cli_run_report *report, struct error *err)
{
    const struct plan *plan = report->plan;
    struct cli_table table;
    struct job_headings headings;
    jobs_table_begin(&table, report, &headings);
    uint32_t shown = plan->jobs.count < CLI_ROWS_MAX ? plan->jobs.count : CLI_ROWS_MAX;
    complete_rows(&table, report);
    for (uint32_t j = 0; j < shown; j++) {
        const struct cli_measured_job *job = &report->measured->jobs[j];
        cli_table_cell(&table, "%s", plan->jobs.jobs[j].name);
        cli_table_cell(&table, "%" PRIu64 " of %" PRIu64, job->minibatches,
                       plan->jobs.jobs[j].first_minibatch + plan->jobs.jobs[j].minibatches);
        cli_table_cell(&table, "%.4g",
                       units_per_token(report, j) * trace_job_tokens_per_s(&report->prediction->trace, j));
        cli_table_cell(&table, "%.4g", units_per_token(report, j) * job->tokens_per_s);
        loss_cell(&table, job->has_first_loss, job->first_loss, job->nonfinite_losses > 0);
        loss_cell(&table, job->has_loss, job->final_loss, job->nonfinite_losses > 0);
    }
    TRY(cli_table_end(&table, out, err));
    cli_more_rows(out, shown, plan->jobs.count);
    for (uint32_t j = 0; j < shown; j++)
        if (report->measured->jobs[j].skipped_steps > 0)
            fprintf(out, "%s: %s skipped, because loss or gradients were not finite\n", plan->jobs.jobs[j].name,
                    CLI_COUNT(report->measured->jobs[j].skipped_steps, "step"));
    return STATUS_OK;
}

static struct cli_result result_of(const struct cli_run_report *report, uint32_t j)
{
    const struct cli_measured_job *job = &report->measured->jobs[j];
    return (struct cli_result){
        .name = report->plan->jobs.jobs[j].name,
        .has_loss = job->has_loss,
        .nonfinite = job->nonfinite_losses > 0,
        .final_loss = job->final_loss,
        .tokens_per_s = job->tokens_per_s,
        .rate = units_per_token(report, j) * job->tokens_per_s,
        .seconds = job->seconds,
        .weights_path = job->weights_path,
        .evaluation = job->evaluation,
    };
}

/* Returns the result of a job that was complete before. */
static struct cli_result result_before(const struct cli_run_report *report, uint32_t j)
{
    const struct cli_resume_job *job = &report->resume->jobs[j];
    return (struct cli_result){
        .name = report->whole->jobs.jobs[j].name,
        .complete_before = true,
        .has_loss = job->has_loss,
        .nonfinite = !job->has_loss,
        .final_loss = job->final_loss,
        .evaluation = job->evaluation,
        .weights_path = job->weights_path,
    };
}

/* Writes by rank, as text or (`json`) as data. */
static enum status put_results(const struct cli_run_report *report, FILE *out, struct json_out *json,
                               struct error *err)
{
    const struct job_set *jobs = report->whole ? &report->whole->jobs : &report->plan->jobs;
    uint32_t count = jobs->count;
    while (count > 0 && job_makes_outputs(&jobs->jobs[count - 1])) count--; /* they are not compared */
    struct cli_result *results = alloc_zeroed(count, sizeof *results);
    if (!results) return error_memory(err, "the results of jobs", count * sizeof *results);
    for (uint32_t j = 0, left = 0; j < count; j++)
        results[j] = report->whole && was_complete(report, j) ? result_before(report, j)
                                                              : result_of(report, left++);
    enum status status = json ? cli_results_json(json, results, count, err)
                              : cli_results_print(out, results, count, jobs_unit(report), err);
    free(results);
    return status;
}

/* NULL: not written. */
struct written {
    const char *trace, *log, *executed;
};

static struct written what_was_written(const struct cli_run_report *report)
{
    const struct cli_run_request *request = report->request;
    const struct cli_measured *measured = report->measured;
    return (struct written){.trace = measured->trace_path ? request->trace_path : NULL,
                            .log = measured->log_path ? request->log_path : NULL,
                            .executed = measured->executed_order_path &&
                            cli_run_is_complete(report) ? request->executed_order : NULL};
}

static void print_next(struct cli *cli, const struct cli_run_report *report)
{
    const struct written written = what_was_written(report);
    const char *plan = report->request->plan_path, *trace = written.trace;
    const char *folder = report->request->checkpoint, *executed = written.executed;
    const char *live = report->request->dispatch ? "--dispatch" : NULL, *when = live ? "live" : NULL;
    const char *hosts = report->request->hosts, *over = hosts ? "--hosts" : NULL;
    if (live && trace && executed)
        cli_next(cli, (const char *const[]){"simulate", executed, "--trace", "predicted.json.gz", "&&", "spillway",
                                            "compare", "predicted.json.gz", trace, NULL});
    else if (live && !(folder && (report->measured->stopped || report->measured->failed > 0)))
        cli_next(cli, (const char *const[]){"run", plan, live, when, "--trace", "measured.json.gz", "--executed-order",
                                            "executed.json", over, hosts, NULL});
    else if (folder && (report->measured->stopped || report->measured->failed > 0))
        cli_next(cli, (const char *const[]){"run", plan, "--checkpoint", folder, "--resume", live ? live : over,
                                            live ? when : hosts, live ? over : NULL, hosts, NULL});
    else if (report->measured->stopped)
        cli_next(cli, (const char *const[]){"run", plan, over, hosts, NULL});
    else if (trace)
        cli_next(cli, (const char *const[]){"simulate", plan, "--trace", "predicted.json.gz", "&&",
                                            "spillway", "compare", "predicted.json.gz", trace,
                                            NULL});
    else
        cli_next(cli, (const char *const[]){"run", plan, "--trace", "measured.json.gz", over, hosts, NULL});
}

static enum status report_text(struct cli *cli, const struct cli_run_report *report, struct error *err)
{
    FILE *out = cli->out;
    const struct cli_run_request *request = report->request;
    char text[QUANTITY_TEXT_BYTES];
    fprintf(out, "%s: %s with %s, after %s of preparation\n\n", request->plan_path,
            cli_run_is_complete(report) ? "done"
            : report->measured->stopped ? "stopped before its end" : "done except for failed jobs",
            report->measured->libraries,
            quantity_text(report->measured->setup_s, DIMENSION_SECONDS, text));
    if (request->dispatch) fprintf(out, "dispatched live by %s\n\n", report->prediction->trace.policy);
    TRY(print_whole(out, report, err));
    print_load(out, report);
    print_dilation(out, report);
    fputc('\n', out);
    TRY(print_jobs(out, report, err));
    fputc('\n', out);
    TRY(put_results(report, out, NULL, err));
    const struct written written = what_was_written(report);
    if (written.trace || written.executed || written.log) fputc('\n', out);
    if (written.trace) fprintf(out, "trace written to %s\n", written.trace);
    if (written.executed) fprintf(out, "plan with the order of this run written to %s\n", written.executed);
    if (written.log) fprintf(out, "log written to %s\n", written.log);
    print_next(cli, report);
    return STATUS_OK;
}

/* --- JSON ------------------------------------------------------------------------------------ */

static void complete_json(struct json_out *json, const struct cli_run_report *report)
{
    for (uint32_t j = 0; report->whole && j < report->whole->jobs.count; j++) {
        const struct cli_resume_job *job = &report->resume->jobs[j];
        if (!was_complete(report, j)) continue;
        json_out_object_begin(json, NULL, true);
        json_out_string(json, "name", report->whole->jobs.jobs[j].name);
        json_out_u64(json, "minibatches", job->minibatches);
        json_out_u64(json, "planned_minibatches", job->minibatches);
        json_out_bool(json, "complete_before", true);
        if (job->has_first_loss) json_out_double(json, "first_loss", job->first_loss);
        if (job->has_loss) json_out_double(json, "final_loss", job->final_loss);
        if (job->weights_path) json_out_string(json, "weights_file", job->weights_path);
        json_out_object_end(json);
    }
}

static void jobs_json(struct json_out *json, const struct cli_run_report *report)
{
    json_out_array_begin(json, "jobs", false);
    complete_json(json, report);
    for (uint32_t j = 0; j < report->plan->jobs.count; j++) {
        const struct cli_measured_job *job = &report->measured->jobs[j];
        json_out_object_begin(json, NULL, true);
        json_out_string(json, "name", report->plan->jobs.jobs[j].name);
        json_out_u64(json, "minibatches", job->minibatches);
        const struct job *planned = &report->plan->jobs.jobs[j];
        json_out_u64(json, "planned_minibatches", planned->first_minibatch + planned->minibatches);
        if (planned->first_minibatch > 0)
            json_out_u64(json, "first_minibatch", planned->first_minibatch);
        json_out_double(json, "predicted_tokens_per_s",
                        trace_job_tokens_per_s(&report->prediction->trace, j));
        json_out_double(json, "measured_tokens_per_s", job->tokens_per_s);
        if (job->has_first_loss) json_out_double(json, "first_loss", job->first_loss);
        if (job->has_loss) json_out_double(json, "final_loss", job->final_loss);
        json_out_u64(json, "nonfinite_losses", job->nonfinite_losses);
        json_out_u64(json, "skipped_steps", job->skipped_steps);
        if (job->weights_path) json_out_string(json, "weights_file", job->weights_path);
        if (job->checkpoint > 0) json_out_u64(json, "checkpoint", job->checkpoint);
        if (job->failure) json_out_string(json, "failure", job->failure);
        if (job->checkpoint_failure)
            json_out_string(json, "checkpoint_failure", job->checkpoint_failure);
        json_out_object_end(json);
    }
    json_out_array_end(json);
}

static void put_load(struct json_out *json, const struct cli_run_report *report)
{
    const struct load *load = &report->measured->load;
    double slowed_s;
    json_out_object_begin(json, "load", true);
    json_out_double(json, "others", load->others);
    json_out_double(json, "stolen", load->stolen);
    json_out_double(json, "waited", load->waited);
    json_out_double(json, "own", load->own);
    if (is_slowed(report, &slowed_s)) json_out_double(json, "predicted_makespan_s", slowed_s);
    json_out_object_end(json);
}

static void put_dilation(struct json_out *json, const struct cli_run_report *report)
{
    const double dilation = hardware_dilation(&report->plan->hardware);
    if (!(dilation > 1)) return;
    json_out_object_begin(json, "dilation", true);
    json_out_double(json, "factor", dilation);
    json_out_double(json, "late", report->measured->late);
    json_out_bool(json, "valid", !cli_load_limited(report->measured->late));
    json_out_object_end(json);
}

static enum status report_json(struct cli *cli, const struct cli_run_report *report, struct error *err)
{
    const struct cli_measured *measured = report->measured;
    const struct cli_run_request *request = report->request;
    struct json_out *json;
    double error = 0;
    TRY(cli_report_begin(cli, "run", &json, err));
    json_out_string(json, "plan_file", request->plan_path);
    const struct written written = what_was_written(report);
    if (written.trace) json_out_string(json, "trace_file", written.trace);
    if (written.log) json_out_string(json, "log_file", written.log);
    cli_fingerprint(json, plan_fingerprint(report->plan));
    json_out_string(json, "policy", report->prediction->trace.policy);
    if (request->dispatch) json_out_string(json, "dispatch", cli_dispatches[request->dispatch]);
    if (written.executed) json_out_string(json, "executed_order_file", written.executed);
    json_out_string(json, "libraries", measured->libraries);
    json_out_bool(json, "completed", cli_run_is_complete(report));
    if (measured->unwritten) json_out_string(json, "unwritten", measured->unwritten);
    json_out_double(json, "makespan_s", measured->makespan_s);
    json_out_double(json, "tokens_per_s", measured->tokens_per_s);
    json_out_double(json, "setup_s", measured->setup_s);
    put_load(json, report);
    put_dilation(json, report);
    json_out_double(json, "predicted_makespan_s", report->prediction->result.makespan_s);
    json_out_double(json, "predicted_tokens_per_s", report->prediction->tokens_per_s);
    json_out_object_begin(json, "busiest_stream", true);
    uint32_t busiest = busiest_stream(report);
    json_out_string(json, "name", report->prediction->trace.streams[busiest].name);
    json_out_double(json, "busy_s", measured->busy_s[busiest]);
    json_out_double(json, "predicted_busy_s", report->prediction->result.streams[busiest].busy_s);
    json_out_object_end(json);
    if (throughput_error(report, &error)) json_out_double(json, "throughput_error", error);
    else json_out_null(json, "throughput_error");
    jobs_json(json, report);
    if (cli_run_memory_json(measured->in, json, err) != STATUS_OK ||
        put_results(report, NULL, json, err) != STATUS_OK) {
        json_out_destroy(json);
        return err->status;
    }
    return cli_report_end(cli, json, err);
}

/* --- public ---------------------------------------------------------------------------------- */

enum status cli_run_report(struct cli *cli, const struct cli_run_report *report, struct error *err)
{
    return cli->json ? report_json(cli, report, err) : report_text(cli, report, err);
}

enum status cli_run_report_nothing_left(struct cli *cli, const struct cli_run_report *report,
                                        struct error *err)
{
    struct json_out *json;
    if (cli->json) {
        TRY(cli_report_begin(cli, "run", &json, err));
        json_out_string(json, "plan_file", report->request->plan_path);
        cli_fingerprint(json, plan_fingerprint(report->whole));
        json_out_bool(json, "completed", true);
        json_out_array_begin(json, "jobs", false);
        complete_json(json, report);
        json_out_array_end(json);
        if (put_results(report, NULL, json, err) != STATUS_OK) {
            json_out_destroy(json);
            return err->status;
        }
        return cli_report_end(cli, json, err);
    }
    fprintf(cli->out, "%s: all of its jobs were complete before\n\n", report->request->plan_path);
    struct cli_table table;
    struct job_headings headings;
    jobs_table_begin(&table, report, &headings);
    complete_rows(&table, report);
    TRY(cli_table_end(&table, cli->out, err));
    fputc('\n', cli->out);
    return put_results(report, cli->out, NULL, err);
}
