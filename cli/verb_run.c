/*
 * `run`: carry a plan out with spillway-exec, and print the prediction beside the measurement.
 *
 * In this order: read and check the plan; hold it against what the command line says about the
 * machine; with --resume, look how far its jobs are and plan the rest; simulate it; start the
 * executor and wait; read its result, which it leaves in a temporary file. An interrupted run has a
 * result too: what every job has kept. A crash has none, and is told with the name of the signal.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/json_in.h"
#include "base/size.h"
#include "cli/cli.h"
#include "cli/cli_child.h"
#include "cli/cli_machine.h"
#include "cli/cli_predict.h"
#include "cli/cli_resume.h"
#include "cli/cli_results.h"
#include "cli/cli_run_memory.h"
#include "cli/cli_table.h"
#include "cli/cli_trace.h"
#include "planner/plan_io.h"
#include "planner/planner.h"
#include "planner/policies.h"

static const char *const nan_choices[] = {"continue", "stop", "skip", NULL};

struct request {
    const char *plan_path, *trace_path, *log_path;
    const char *checkpoint, *checkpoint_every; /* a folder, how often; NULL: not given */
    const char *storage;                       /* a folder; NULL: not given */
    uint64_t keep; /* 0: not given */
    size_t on_nan; /* index into nan_choices */
    bool no_weights, tf32, keep_going, resume;
    uint64_t devices;           /* 0: not given */
    double device_memory_bytes; /* or CLI_NOT_GIVEN */
};

/* What the executor says of a job. */
struct measured_job {
    uint64_t minibatches;
    double tokens_per_s, first_loss, final_loss, seconds;
    bool has_loss;        /* it completed a minibatch, with a finite loss */
    uint64_t nonfinite_losses, skipped_steps;
    const char *weights_path; /* NULL: not written */
    uint64_t checkpoint;      /* minibatches in its newest one; 0: none */
    const char *failure, *checkpoint_failure; /* NULL: none */
    struct cli_evaluation evaluation;
};

struct measured {
    struct json_input *in; /* owns the strings */
    bool stopped;
    uint32_t failed;       /* jobs that failed, or whose checkpoints did */
    double makespan_s, setup_s, tokens_per_s;
    double *busy_s;        /* per stream; in `arena` */
    const char *libraries;
    struct measured_job *jobs; /* as many as the plan has; in `arena` */
    struct arena arena;
};

/* --- the result file ------------------------------------------------------------------------- */

static enum status read_job(const struct json_input *in, const json_t *array, size_t index,
                            struct measured_job *out, struct error *err)
{
    struct json_object object;
    if (json_object_open_at(&object, in, array, index, "a job", err) != STATUS_OK ||
        json_take_u64(&object, "minibatches", JSON_REQUIRED, 0, INT64_MAX, &out->minibatches,
                      err) != STATUS_OK ||
        json_take_double(&object, "tokens_per_s", JSON_REQUIRED, 0, 1e18, &out->tokens_per_s,
                         err) != STATUS_OK ||
        json_take_double(&object, "first_loss", JSON_OPTIONAL, -1e300, 1e300, &out->first_loss,
                         err) != STATUS_OK ||
        json_take_double(&object, "final_loss", JSON_OPTIONAL, -1e300, 1e300, &out->final_loss,
                         err) != STATUS_OK ||
        json_take_double(&object, "time_s", JSON_OPTIONAL, 0, 1e15, &out->seconds, err) !=
            STATUS_OK ||
        json_take_u64(&object, "nonfinite_losses", JSON_OPTIONAL, 0, INT64_MAX,
                      &out->nonfinite_losses, err) != STATUS_OK ||
        json_take_u64(&object, "skipped_steps", JSON_OPTIONAL, 0, INT64_MAX, &out->skipped_steps,
                      err) != STATUS_OK ||
        json_take_string(&object, "weights_path", JSON_OPTIONAL, &out->weights_path, err) !=
            STATUS_OK ||
        json_take_u64(&object, "checkpoint", JSON_OPTIONAL, 0, INT64_MAX, &out->checkpoint, err) !=
            STATUS_OK ||
        json_take_string(&object, "failure", JSON_OPTIONAL, &out->failure, err) != STATUS_OK ||
        json_take_string(&object, "checkpoint_failure", JSON_OPTIONAL, &out->checkpoint_failure,
                         err) != STATUS_OK ||
        cli_take_evaluation(&object, &out->evaluation, err) != STATUS_OK)
        return err->status;
    out->has_loss = json_has(&object, "first_loss") && json_has(&object, "final_loss");
    return STATUS_OK;
}

static enum status read_streams(struct json_object *result, uint32_t count, struct measured *out,
                                struct error *err)
{
    const json_t *streams;
    void *memory = NULL;
    if (json_take_array(result, "streams", JSON_REQUIRED, &streams, err) != STATUS_OK ||
        arena_array(&out->arena, count, sizeof *out->busy_s, &memory, err) != STATUS_OK)
        return err->status;
    out->busy_s = memory;
    if (json_array_size(streams) != count)
        return json_fail_key(out->in, result->value, "streams", err,
                             "the result has %zu streams and the plan %" PRIu32,
                             json_array_size(streams), count);
    for (uint32_t s = 0; s < count; s++) {
        struct json_object stream;
        if (json_object_open_at(&stream, out->in, streams, s, "a stream", err) != STATUS_OK ||
            json_take_double(&stream, "busy_s", JSON_REQUIRED, 0, 1e15, &out->busy_s[s], err) !=
                STATUS_OK)
            return err->status;
    }
    return STATUS_OK;
}

/* The executor is a program of its own, perhaps of another version: keys that are not needed are
 * passed over, and those that are needed must be there. */
static enum status read_measured(const char *path, const struct plan *plan, struct measured *out,
                                 struct error *err)
{
    const uint32_t job_count = plan->jobs.count;
    struct json_object object;
    const json_t *jobs;
    uint64_t version;
    if (json_input_read(path, &out->in, err) != STATUS_OK ||
        json_object_open(&object, out->in, json_input_root(out->in), "the result of a run", err) !=
            STATUS_OK ||
        json_take_u64(&object, "spillway_run", JSON_REQUIRED, 1, 1, &version, err) != STATUS_OK ||
        json_take_bool(&object, "stopped", JSON_REQUIRED, &out->stopped, err) != STATUS_OK ||
        json_take_double(&object, "makespan_s", JSON_REQUIRED, 0, 1e15, &out->makespan_s, err) !=
            STATUS_OK ||
        json_take_double(&object, "setup_s", JSON_REQUIRED, 0, 1e15, &out->setup_s, err) !=
            STATUS_OK ||
        json_take_double(&object, "tokens_per_s", JSON_REQUIRED, 0, 1e18, &out->tokens_per_s,
                         err) != STATUS_OK ||
        json_take_string(&object, "libraries", JSON_REQUIRED, &out->libraries, err) != STATUS_OK ||
        read_streams(&object, plan_stream_count(plan), out, err) != STATUS_OK ||
        json_take_array(&object, "jobs", JSON_REQUIRED, &jobs, err) != STATUS_OK)
        return err->status;
    if (json_array_size(jobs) != job_count)
        return json_fail_key(out->in, object.value, "jobs", err,
                             "the result has %zu jobs and the plan %" PRIu32,
                             json_array_size(jobs), job_count);
    void *memory = NULL;
    if (arena_array(&out->arena, job_count, sizeof *out->jobs, &memory, err) != STATUS_OK)
        return err->status;
    out->jobs = memory;
    for (uint32_t j = 0; j < job_count; j++)
        if (read_job(out->in, jobs, j, &out->jobs[j], err) != STATUS_OK)
            return err->status;
        else
            out->failed += out->jobs[j].failure || out->jobs[j].checkpoint_failure;
    return STATUS_OK;
}

static void measured_release(struct measured *measured)
{
    json_input_destroy(measured->in);
    arena_release(&measured->arena);
    *measured = (struct measured){0};
}

/* --- reports --------------------------------------------------------------------------------- */

struct report {
    const struct request *request;
    const struct plan *plan;
    const struct cli_prediction *prediction;
    const struct measured *measured;
    /* what a resumed run went on from: all jobs, of which `plan` has those with something left */
    const struct plan *whole;         /* NULL: it began anew */
    const struct cli_resume *resume;
};

/* Did every job come to its end? */
static bool is_complete(const struct report *report)
{
    bool complete = !report->measured->stopped;
    for (uint32_t j = 0; j < report->plan->jobs.count; j++)
        complete = complete && !report->measured->jobs[j].failure;
    return complete;
}

/* Of the whole plan's jobs: was it complete before this run? */
static bool was_complete(const struct report *report, uint32_t j)
{
    const struct job *job = &report->whole->jobs.jobs[j];
    return report->resume->jobs[j].minibatches >= job->first_minibatch + job->minibatches;
}

/* Predicted over measured, minus one; false when nothing was measured to its end. */
static bool throughput_error(const struct report *report, double *out)
{
    if (!is_complete(report) || !(report->measured->tokens_per_s > 0)) return false;
    *out = report->prediction->tokens_per_s / report->measured->tokens_per_s - 1;
    return true;
}

static void pair_cells(struct cli_table *table, const char *what, const char *predicted,
                       const char *measured, bool known, double error)
{
    char text[CLI_PERCENT_BYTES];
    cli_table_cell(table, "%s", what);
    cli_table_cell(table, "%s", predicted);
    cli_table_cell(table, "%s", measured);
    cli_table_cell(table, "%s", known ? cli_signed_percent(error, text) : "-");
}

/* The stream that is predicted to run longest: no plan of these operations ends before it does. */
static uint32_t busiest_stream(const struct report *report)
{
    const struct sim_result *result = &report->prediction->result;
    uint32_t busiest = 0;
    for (uint32_t s = 1; s < plan_stream_count(report->plan); s++)
        if (result->streams[s].busy_s > result->streams[busiest].busy_s) busiest = s;
    return busiest;
}

static enum status print_whole(FILE *out, const struct report *report, struct error *err)
{
    const struct measured *measured = report->measured;
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
    snprintf(predicted, sizeof predicted, "%.5g", report->prediction->tokens_per_s);
    snprintf(actual, sizeof actual, "%.5g", measured->tokens_per_s);
    pair_cells(&table, "tokens/s", predicted, actual, known, error);
    return cli_table_end(&table, out, err);
}

static const char *const job_columns[] = {"JOB", ">MINIBATCHES", ">PREDICTED TOKENS/S", ">MEASURED",
                                          ">FIRST LOSS", ">LAST LOSS", NULL};

/* Rows of jobs that were complete before. */
static void complete_rows(struct cli_table *table, const struct report *report)
{
    for (uint32_t j = 0, shown = 0; report->whole && j < report->whole->jobs.count; j++) {
        const struct cli_resume_job *job = &report->resume->jobs[j];
        if (!was_complete(report, j) || shown++ == CLI_ROWS_MAX) continue;
        cli_table_cell(table, "%s", report->whole->jobs.jobs[j].name);
        cli_table_cell(table, "%" PRIu64 " of %" PRIu64, job->minibatches, job->minibatches);
        cli_table_cell(table, "-");
        cli_table_cell(table, "before");
        if (job->has_loss) {
            cli_table_cell(table, "%.4f", job->first_loss);
            cli_table_cell(table, "%.4f", job->final_loss);
        } else {
            cli_table_cell(table, "-");
            cli_table_cell(table, "-");
        }
    }
}

static enum status print_jobs(FILE *out, const struct report *report, struct error *err)
{
    const struct plan *plan = report->plan;
    struct cli_table table;
    cli_table_begin(&table, job_columns);
    uint32_t shown = plan->jobs.count < CLI_ROWS_MAX ? plan->jobs.count : CLI_ROWS_MAX;
    complete_rows(&table, report);
    for (uint32_t j = 0; j < shown; j++) {
        const struct measured_job *job = &report->measured->jobs[j];
        cli_table_cell(&table, "%s", plan->jobs.jobs[j].name);
        cli_table_cell(&table, "%" PRIu64 " of %" PRIu64, job->minibatches,
                       plan->jobs.jobs[j].first_minibatch + plan->jobs.jobs[j].minibatches);
        cli_table_cell(&table, "%.4g", trace_job_tokens_per_s(&report->prediction->trace, j));
        cli_table_cell(&table, "%.4g", job->tokens_per_s);
        if (job->has_loss) {
            cli_table_cell(&table, "%.4f", job->first_loss);
            cli_table_cell(&table, "%.4f", job->final_loss);
        } else {
            cli_table_cell(&table, "-");
            cli_table_cell(&table, job->nonfinite_losses > 0 ? "not finite" : "-");
        }
    }
    if (cli_table_end(&table, out, err) != STATUS_OK) return err->status;
    cli_more_rows(out, shown, plan->jobs.count);
    for (uint32_t j = 0; j < shown; j++)
        if (report->measured->jobs[j].skipped_steps > 0)
            fprintf(out, "%s: %" PRIu64 " steps left out, their loss or gradients are not finite\n",
                    plan->jobs.jobs[j].name, report->measured->jobs[j].skipped_steps);
    return STATUS_OK;
}

static struct cli_result result_of(const struct report *report, uint32_t j)
{
    const struct measured_job *job = &report->measured->jobs[j];
    return (struct cli_result){
        .name = report->plan->jobs.jobs[j].name,
        .has_loss = job->has_loss,
        .nonfinite = job->nonfinite_losses > 0,
        .final_loss = job->final_loss,
        .tokens_per_s = job->tokens_per_s,
        .seconds = job->seconds,
        .weights_path = job->weights_path,
        .evaluation = job->evaluation,
    };
}

/* Of a job of the whole plan that was complete before. */
static struct cli_result result_before(const struct report *report, uint32_t j)
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

/* All jobs by rank, as text or (with `json`) as data. */
static enum status put_results(const struct report *report, FILE *out, struct json_out *json,
                               struct error *err)
{
    const uint32_t count = report->whole ? report->whole->jobs.count : report->plan->jobs.count;
    struct cli_result *results = alloc_zeroed(count, sizeof *results);
    if (!results) return error_memory(err, "the results of jobs", count * sizeof *results);
    for (uint32_t j = 0, left = 0; j < count; j++)
        results[j] = report->whole && was_complete(report, j) ? result_before(report, j)
                                                              : result_of(report, left++);
    enum status status = json ? cli_results_json(json, results, count, err)
                              : cli_results_print(out, results, count, err);
    free(results);
    return status;
}

static void print_next(struct cli *cli, const struct report *report)
{
    const char *plan = report->request->plan_path, *trace = report->request->trace_path;
    const char *folder = report->request->checkpoint;
    if (folder && (report->measured->stopped || report->measured->failed > 0))
        cli_next(cli, (const char *const[]){"run", plan, "--checkpoint", folder, "--resume", NULL});
    else if (report->measured->stopped)
        cli_next(cli, (const char *const[]){"run", plan, NULL});
    else if (trace)
        cli_next(cli, (const char *const[]){"simulate", plan, "--trace", "predicted.json.gz", "&&",
                                            "spillway", "compare", "predicted.json.gz", trace,
                                            NULL});
    else
        cli_next(cli, (const char *const[]){"run", plan, "--trace", "measured.json.gz", NULL});
}

static enum status report_text(struct cli *cli, const struct report *report, struct error *err)
{
    FILE *out = cli->out;
    const struct request *request = report->request;
    char text[QUANTITY_TEXT_BYTES];
    fprintf(out, "%s: %s with %s, after %s of preparation\n\n", request->plan_path,
            is_complete(report) ? "done"
            : report->measured->stopped ? "stopped before its end" : "done but for jobs that failed",
            report->measured->libraries,
            quantity_text(report->measured->setup_s, DIMENSION_SECONDS, text));
    if (print_whole(out, report, err) != STATUS_OK) return err->status;
    fputc('\n', out);
    if (print_jobs(out, report, err) != STATUS_OK) return err->status;
    fputc('\n', out);
    if (put_results(report, out, NULL, err) != STATUS_OK) return err->status;
    if (request->trace_path) fprintf(out, "\ntrace written to %s\n", request->trace_path);
    if (request->log_path)
        fprintf(out, "%slog written to %s\n", request->trace_path ? "" : "\n", request->log_path);
    print_next(cli, report);
    return STATUS_OK;
}

static void complete_json(struct json_out *json, const struct report *report)
{
    for (uint32_t j = 0; report->whole && j < report->whole->jobs.count; j++) {
        const struct cli_resume_job *job = &report->resume->jobs[j];
        if (!was_complete(report, j)) continue;
        json_out_object_begin(json, NULL, true);
        json_out_string(json, "name", report->whole->jobs.jobs[j].name);
        json_out_u64(json, "minibatches", job->minibatches);
        json_out_u64(json, "planned_minibatches", job->minibatches);
        json_out_bool(json, "complete_before", true);
        if (job->has_loss) {
            json_out_double(json, "first_loss", job->first_loss);
            json_out_double(json, "final_loss", job->final_loss);
        }
        if (job->weights_path) json_out_string(json, "weights_file", job->weights_path);
        json_out_object_end(json);
    }
}

static void jobs_json(struct json_out *json, const struct report *report)
{
    json_out_array_begin(json, "jobs", false);
    complete_json(json, report);
    for (uint32_t j = 0; j < report->plan->jobs.count; j++) {
        const struct measured_job *job = &report->measured->jobs[j];
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
        if (job->has_loss) {
            json_out_double(json, "first_loss", job->first_loss);
            json_out_double(json, "final_loss", job->final_loss);
        }
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

static enum status report_json(struct cli *cli, const struct report *report, struct error *err)
{
    const struct measured *measured = report->measured;
    const struct request *request = report->request;
    struct json_out *json;
    double error = 0;
    if (cli_report_begin(cli, "run", &json, err) != STATUS_OK) return err->status;
    json_out_string(json, "plan_file", request->plan_path);
    if (request->trace_path) json_out_string(json, "trace_file", request->trace_path);
    if (request->log_path) json_out_string(json, "log_file", request->log_path);
    cli_fingerprint(json, plan_fingerprint(report->plan));
    json_out_string(json, "policy", report->plan->policy);
    json_out_string(json, "libraries", measured->libraries);
    json_out_bool(json, "completed", is_complete(report));
    json_out_double(json, "makespan_s", measured->makespan_s);
    json_out_double(json, "tokens_per_s", measured->tokens_per_s);
    json_out_double(json, "setup_s", measured->setup_s);
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

/* --- before the run -------------------------------------------------------------------------- */

static enum status check_contradiction(const struct request *request, const struct plan *plan,
                                       struct error *err)
{
    uint64_t bytes = 0;
    if (cli_bytes(request->device_memory_bytes, "device-memory", &bytes, err) != STATUS_OK)
        return err->status;
    if (request->devices > 0 && request->devices != plan->hardware.device_count)
        return error_set(err, STATUS_BAD_INPUT,
                         "the plan was made for %" PRIu32 " devices and not %" PRIu64
                         " (make another with 'spillway plan --devices %" PRIu64 "')",
                         plan->hardware.device_count, request->devices, request->devices);
    for (uint32_t d = 0; d < plan->hardware.device_count && bytes > 0; d++) {
        uint64_t planned = plan->hardware.devices[d].memory_bytes;
        char made_for[QUANTITY_TEXT_BYTES], given[QUANTITY_TEXT_BYTES];
        if (planned == bytes) continue;
        return error_set(err, STATUS_BAD_INPUT,
                         "the plan was made for devices of %s and not %s (make another with "
                         "'spillway plan --device-memory')",
                         quantity_text((double)planned, DIMENSION_BYTES, made_for),
                         quantity_text((double)bytes, DIMENSION_BYTES, given));
    }
    return STATUS_OK;
}

/* "AMD EPYC, 2 cores; oneDNN ...": the part before the semicolon names the machine. */
static bool same_machine(const char *a, const char *b)
{
    size_t length = strcspn(a, ";");
    return length == strcspn(b, ";") && strncmp(a, b, length) == 0;
}

/* The profile of this machine, if it was measured, says whose figures the plan should have. */
static void warn_other_machine(struct cli *cli, const struct plan *plan)
{
    const char *made_for = plan->hardware.measured_on;
    char path[CLI_PATH_BYTES];
    struct hardware here = {0};
    struct error ignored = {0};
    if (!made_for) {
        cli_warn(cli, "the plan was made from figures that were not measured ('%s'): expect the "
                 "prediction to be off", plan->hardware.name);
        return;
    }
    if (cli_profile_path(path, &ignored) != STATUS_OK || access(path, F_OK) != 0) return;
    if (hardware_read(path, &here, &ignored) == STATUS_OK && here.measured_on &&
        !same_machine(here.measured_on, made_for))
        cli_warn(cli, "the plan was made for '%.*s' and this is '%.*s': expect the prediction to be "
                 "off", (int)strcspn(made_for, ";"), made_for, (int)strcspn(here.measured_on, ";"),
                 here.measured_on);
    hardware_release(&here);
}

/* A trace is written when everything else is done: hours of training must not end there. */
static enum status check_folder(const char *path, struct error *err)
{
    char folder[CLI_PATH_BYTES];
    const char *slash = path ? strrchr(path, '/') : NULL;
    if (!path) return STATUS_OK;
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path + 1) : 1, slash ? path : ".");
    if (access(folder, W_OK) == 0) return STATUS_OK;
    return error_io(err, "cannot write into the folder of '%s'", path);
}

/* --- the run --------------------------------------------------------------------------------- */

/* `plan_path` is what is carried out: that of the request, or (`rest`) what is left of it. */
static enum status start(const struct cli *cli, const struct request *request, const char *plan_path,
                         bool rest, const char *result_path, struct cli_child_end *end,
                         struct error *err)
{
    char program[CLI_PATH_BYTES];
    if (cli_child_find(program, err) != STATUS_OK) return err->status;
    const char *words[24];
    char keep[24];
    size_t count = 0;
    words[count++] = program;
    words[count++] = "run";
    words[count++] = "--result";
    words[count++] = result_path;
    if (request->trace_path) {
        words[count++] = "--trace";
        words[count++] = request->trace_path;
    }
    if (request->log_path) {
        words[count++] = "--log";
        words[count++] = request->log_path;
        if (rest) words[count++] = "--log-goes-on"; /* jobs that are complete are in it */
    }
    if (request->checkpoint) {
        words[count++] = "--checkpoint";
        words[count++] = request->checkpoint;
    }
    if (request->storage) {
        words[count++] = "--storage";
        words[count++] = request->storage;
    }
    if (request->checkpoint_every) {
        words[count++] = "--checkpoint-every";
        words[count++] = request->checkpoint_every;
    }
    if (request->keep > 0) {
        snprintf(keep, sizeof keep, "%" PRIu64, request->keep);
        words[count++] = "--keep";
        words[count++] = keep;
    }
    if (request->on_nan > 0) {
        words[count++] = "--on-nan";
        words[count++] = nan_choices[request->on_nan];
    }
    if (request->keep_going) words[count++] = "--keep-going";
    if (request->no_weights) words[count++] = "--no-weights";
    if (request->tf32) words[count++] = "--tf32";
    if (cli->quiet) words[count++] = "--quiet";
    words[count++] = "--";
    words[count++] = plan_path;
    words[count] = NULL;
    return cli_child_run(words, end, err);
}

/* A complete run cannot have computed faster than the machine's peak: then that figure is wrong, most
 * likely because the machine was busy when it was measured. The training is done all the same. */
static void warn_speed(struct cli *cli, const struct report *report)
{
    double peak = report->prediction->peak_flops_per_s, speed = report->prediction->model_flops;
    char text[QUANTITY_TEXT_BYTES], most[QUANTITY_TEXT_BYTES];
    if (!is_complete(report) || !(peak > 0) || !(report->measured->makespan_s > 0)) return;
    speed /= report->measured->makespan_s;
    if (speed > peak)
        cli_warn(cli, "the run computed at %s and the machine's peak is said to be %s: measure it "
                 "again when it is idle", quantity_text(speed, DIMENSION_FLOP_PER_S, text),
                 quantity_text(peak, DIMENSION_FLOP_PER_S, most));
}

/* A run with failed jobs has a result like any other. */
static enum status failed_status(const struct report *report, struct error *err)
{
    const struct measured *measured = report->measured;
    for (uint32_t j = 0; j < report->plan->jobs.count; j++) {
        const struct measured_job *job = &measured->jobs[j];
        const char *why = job->failure ? job->failure : job->checkpoint_failure;
        if (why)
            return error_set(err, STATUS_CHECK, "%" PRIu32 " of %" PRIu32 " jobs failed%s '%s'%s: %s",
                             measured->failed, report->plan->jobs.count,
                             measured->failed == 1 ? ":" : ", the first of them",
                             report->plan->jobs.jobs[j].name, job->failure ? "" : ", its checkpoints",
                             why);
    }
    return STATUS_OK;
}

static enum status carry_out(struct cli *cli, struct report *report, const char *plan_path,
                             const char *result_path, struct error *err)
{
    struct cli_child_end end;
    const struct plan *plan = report->plan;
    if (start(cli, report->request, plan_path, report->resume != NULL, result_path, &end, err) !=
        STATUS_OK)
        return err->status;
    struct error child_error = {0};
    enum status ended = cli_child_status(&end, "run", &child_error);
    if (ended != STATUS_OK && ended != STATUS_INTERRUPTED && ended != STATUS_CHECK)
        return error_set(err, ended, "%s", child_error.text);

    struct measured measured = {0};
    struct error result_error = {0};
    report->measured = &measured;
    enum status status = read_measured(result_path, plan, &measured, &result_error);
    if (status != STATUS_OK) {
        struct error why = result_error;
        result_error = (struct error){0};
        status = error_set(&result_error, STATUS_DEVICE, "the executor left no result: %s",
                           why.text);
    }
    if (status == STATUS_OK) warn_speed(cli, report);
    if (status == STATUS_OK)
        status = cli->json ? report_json(cli, report, &result_error)
                           : report_text(cli, report, &result_error);
    if (status == STATUS_OK && ended == STATUS_CHECK && failed_status(report, err) != STATUS_OK) {
        measured_release(&measured);
        return err->status;
    }
    measured_release(&measured);
    /* Stopped at once, there is no result, and the reason is the one to tell. */
    if (ended != STATUS_OK) return error_set(err, ended, "%s", child_error.text);
    if (status != STATUS_OK) return error_set(err, status, "%s", result_error.text);
    return STATUS_OK;
}

/* Predict, run, report what `report` has as its plan. */
static enum status run_plan_file(struct cli *cli, struct report *report, const char *plan_path,
                                 struct error *err)
{
    struct cli_prediction prediction = {0};
    char result_path[CLI_PATH_BYTES];
    enum status status = cli_predict(report->plan, NULL, 0, &prediction, err);
    report->prediction = &prediction;
    if (status == STATUS_OK) status = cli_child_file(result_path, err);
    if (status == STATUS_OK) {
        status = carry_out(cli, report, plan_path, result_path, err);
        unlink(result_path);
    }
    cli_prediction_release(&prediction);
    return status;
}

/* Nothing is left to run. */
static enum status report_nothing_left(struct cli *cli, const struct report *report,
                                       struct error *err)
{
    struct json_out *json;
    if (cli->json) {
        if (cli_report_begin(cli, "run", &json, err) != STATUS_OK) return err->status;
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
    cli_table_begin(&table, job_columns);
    complete_rows(&table, report);
    if (cli_table_end(&table, cli->out, err) != STATUS_OK) return err->status;
    fputc('\n', cli->out);
    return put_results(report, cli->out, NULL, err);
}

/* What is left of the plan, planned anew into a file of its own. */
static enum status run_rest(struct cli *cli, struct report *report, struct error *err)
{
    struct plan rest = {0};
    char path[CLI_PATH_BYTES];
    enum status status = cli_child_file(path, err);
    if (status != STATUS_OK) return status;
    if (!policy_find(report->whole->policy))
        cli_warn(cli, "the plan's policy '%s' is none of the built-in ones: what is left is planned by %s",
                 report->whole->policy, planner_policy_name(0));
    status = cli_resume_plan(report->request->plan_path, report->resume, &rest, err);
    if (status == STATUS_OK) status = plan_write(&rest, path, err);
    report->plan = &rest;
    if (status == STATUS_OK) status = run_plan_file(cli, report, path, err);
    unlink(path);
    plan_release(&rest);
    return status;
}

static enum status run_on(struct cli *cli, struct report *report, struct error *err)
{
    const struct request *request = report->request;
    struct cli_resume resume = {0};
    enum status status = cli_resume_look(cli, request->plan_path, report->plan, request->checkpoint,
                                         !request->no_weights, &resume, err);
    if (status == STATUS_OK && !resume.begun) {
        status = run_plan_file(cli, report, request->plan_path, err);
    } else if (status == STATUS_OK) {
        report->whole = report->plan;
        report->resume = &resume;
        status = resume.complete == report->plan->jobs.count ? report_nothing_left(cli, report, err)
                                                             : run_rest(cli, report, err);
    }
    cli_resume_release(&resume);
    return status;
}

static enum status run(struct cli *cli, const struct request *request, struct error *err)
{
    struct plan plan = {0};
    struct report report = {.request = request, .plan = &plan};
    enum status status = plan_read(request->plan_path, &plan, err);
    if (status == STATUS_OK && plan.gang_count > 0)
        status = error_set(err, STATUS_BAD_INPUT,
                           "'%s' spreads jobs over several devices at once, which can be simulated, not run",
                           request->plan_path);
    if (status == STATUS_OK) status = check_contradiction(request, &plan, err);
    if (status == STATUS_OK) status = check_folder(request->trace_path, err);
    if (status == STATUS_OK) warn_other_machine(cli, &plan);
    if (status == STATUS_OK)
        status = request->resume ? run_on(cli, &report, err)
                                 : run_plan_file(cli, &report, request->plan_path, err);
    plan_release(&plan);
    return status;
}

static enum status refuse_dash(const char *option, const char *path, struct error *err)
{
    if (!path || strcmp(path, "-") != 0) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT,
                     "option '--%s' needs a file: standard output gets the report", option);
}

enum status verb_run(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct request request = {.device_memory_bytes = CLI_NOT_GIVEN};
    const struct option_spec specs[] = {
        OPTION_STRING("trace", 0, "FILE", &request.trace_path,
                      "write the measured trace there, compressed when it ends in .gz"),
        OPTION_STRING("log", 0, "FILE", &request.log_path,
                      "write losses and speed of every minibatch there as JSON lines"),
        OPTION_FLAG("tf32", 0, &request.tf32,
                    "on GPUs, round the operands of matrix products to tf32, which is faster"),
        OPTION_FLAG("no-weights", 0, &request.no_weights,
                    "do not write the weights that jobs name in 'weights_out'"),
        OPTION_STRING("checkpoint", 0, "DIR", &request.checkpoint,
                      "keep checkpoints of every job there"),
        OPTION_STRING("checkpoint-every", 0, "N|TIME", &request.checkpoint_every,
                      "how often: minibatches (100) or a time (5min), default 10min"),
        OPTION_U64("keep", 0, "N", 1, 1000000, &request.keep,
                   "checkpoints kept of each job, default 2"),
        OPTION_STRING("storage", 0, "DIR", &request.storage,
                      "states that the plan has on storage go into a file there"),
        OPTION_FLAG("resume", 0, &request.resume,
                    "go on from the checkpoints; jobs that are complete are not run again"),
        OPTION_CHOICE("on-nan", 0, "WHAT", nan_choices, &request.on_nan,
                      "what a loss that is not finite does to its job, or its step; default continue"),
        OPTION_FLAG("keep-going", 0, &request.keep_going,
                    "a job that fails does not end the others"),
        OPTION_U64("devices", 0, "N", 1, DEVICES_MAX, &request.devices,
                   "refuse a plan that was made for another number of devices"),
        OPTION_QUANTITY("device-memory", 0, "SIZE", DIMENSION_BYTES, &request.device_memory_bytes,
                        "refuse a plan that was made for devices of another memory"),
        CLI_COMMON_OPTIONS(cli),
    };
    struct options options = {
        .specs = specs,
        .spec_count = ARRAY_COUNT(specs),
        .argument_min = 1,
        .argument_max = 1,
        .examples = (const char *const[]){"spillway run plan.json",
                                          "spillway run plan.json --trace measured.json.gz "
                                          "--log run.jsonl",
                                          "spillway run plan.json --checkpoint kept --resume", NULL},
        .details = "Ctrl-C ends the run after the minibatches that were begun and keeps what was "
                   "trained (exit code 130); a second one ends it at once. Exit code 1 when a job "
                   "failed while others went on. A run goes on to the same bits as if it had never "
                   "been stopped, also with another plan for the same jobs. The executor is the "
                   "program spillway-exec: $SPILLWAY_EXEC, beside this program, or on PATH.",
    };
    bool go_on;
    if (cli_parse(cli, &options, argc, argv, &go_on, err) != STATUS_OK || !go_on)
        return err->status;
    request.plan_path = options.operands[0];
    if (refuse_dash("trace", request.trace_path, err) != STATUS_OK ||
        refuse_dash("log", request.log_path, err) != STATUS_OK)
        return err->status;
    if (!request.checkpoint && (request.resume || request.checkpoint_every || request.keep > 0))
        return error_set(err, STATUS_BAD_INPUT, "option '--%s' needs '--checkpoint DIR'",
                         request.resume ? "resume"
                         : request.keep > 0 ? "keep" : "checkpoint-every");
    if (strcmp(request.plan_path, "-") == 0)
        return error_set(err, STATUS_BAD_INPUT, "a plan that is run must be a file: it is read twice");
    return run(cli, &request, err);
}
