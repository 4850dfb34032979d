#include "exec/run_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/text/quantity.h"
#include "base/try.h"
#include "models/hardware/hardware_dilate.h"
#include "planner/files/plan_io.h"

enum { RESULT_VERSION = 1 };

/* --- as JSON --------------------------------------------------------------------------------- */

static double job_tokens_per_s(const struct trace *trace, uint32_t job, bool samples)
{
    const struct trace_job *const j = &trace->jobs[job];
    const double seconds = j->end_s - j->start_s;
    return seconds > 0 ? (double)(samples ? j->samples : j->tokens) / seconds : 0;
}

void run_report_put_loss(struct json_out *json, const char *key, double loss)
{
    if (isfinite(loss)) json_out_double(json, key, loss);
    else json_out_null(json, key);
}

/* Evaluations as [step, loss], and the best and the last. */
static void put_evaluations(struct json_out *json, const struct run_job_result *job)
{
    if (job->evaluation_count == 0) return;
    json_out_array_begin(json, "evaluations", true);
    for (uint64_t i = 0; i < job->evaluation_count; i++) {
        json_out_array_begin(json, NULL, true);
        json_out_u64(json, NULL, job->evaluations[i].step);
        run_report_put_loss(json, NULL, job->evaluations[i].loss);
        json_out_array_end(json);
    }
    json_out_array_end(json);
    run_report_put_loss(json, "last_evaluation", job->evaluations[job->evaluation_count - 1].loss);
    if (job->best_evaluation == EVALUATION_NONE) return;
    const struct evaluation_progress *const best = &job->evaluations[job->best_evaluation];
    json_out_double(json, "best_evaluation", best->loss);
    json_out_u64(json, "best_step", best->step);
}

static void put_job(struct json_out *json, const struct run_report *report, uint32_t j)
{
    const struct run_job_result *const job = &report->result->jobs[j];
    const struct plan *const plan = report->plan;
    const struct trace *const trace = report->trace;
    char fingerprint[17];
    snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, job->weights_fingerprint);
    json_out_object_begin(json, NULL, false);
    json_out_string(json, "name", plan->jobs.jobs[j].name);
    json_out_u64(json, "minibatches", job->minibatches);
    if (job->first_minibatch > 0) json_out_u64(json, "first_minibatch", job->first_minibatch);
    json_out_u64(json, "tokens", trace->jobs[j].tokens);
    json_out_double(json, "tokens_per_s", job_tokens_per_s(trace, j, false));
    json_out_double(json, "samples_per_s", job_tokens_per_s(trace, j, true));
    json_out_double(json, "time_s", trace->jobs[j].end_s - trace->jobs[j].start_s);
    if (job->minibatches > 0 && !job_makes_outputs(&plan->jobs.jobs[j])) {
        run_report_put_loss(json, "first_loss", job->first_loss);
        run_report_put_loss(json, "final_loss", job->final_loss);
    }
    if (job->nonfinite > 0) json_out_u64(json, "nonfinite_losses", job->nonfinite);
    if (job->skipped > 0) json_out_u64(json, "skipped_steps", job->skipped);
    put_evaluations(json, job);
    json_out_string(json, "weights_fingerprint", fingerprint);
    if (job->weights_path) json_out_string(json, "weights_path", job->weights_path);
    if (job->checkpoint > 0) json_out_u64(json, "checkpoint", job->checkpoint);
    if (job->checkpoint_failure) json_out_string(json, "checkpoint_failure", job->checkpoint_failure);
    if (job->failure) json_out_string(json, "failure", job->failure);
    if (job->kept_fingerprint != 0) {
        snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, job->kept_fingerprint);
        json_out_string(json, "best_weights_fingerprint", fingerprint);
    }
    if (job->kept_path) json_out_string(json, "best_weights_path", job->kept_path);
    json_out_object_end(json);
}

static void put_memory(struct json_out *json, const struct run_device_memory *device)
{
    char text[PLAN_MEMORY_TEXT_BYTES];
    json_out_u64(json, "arena_bytes", device->taken.arena_bytes);
    json_out_u64(json, "workspace_bytes", device->taken.workspace_bytes);
    json_out_u64(json, "driver_bytes", device->taken.driver_bytes);
    json_out_array_begin(json, "memory", false);
    for (uint32_t i = 0; i < device->memory.count; i++) {
        const struct plan_memory_line *const line = &device->memory.lines[i];
        json_out_object_begin(json, NULL, true);
        json_out_string(json, "for", plan_memory_text(line->uses, text));
        json_out_u64(json, "bytes", line->bytes);
        json_out_object_end(json);
    }
    json_out_array_end(json);
}

static void put_devices(struct json_out *json, const struct run_report *report)
{
    json_out_array_begin(json, "devices", false);
    for (uint32_t d = 0; d < report->plan->hardware.device_count; d++) {
        json_out_object_begin(json, NULL, true);
        json_out_string(json, "name", report->trace->places[1 + d].name);
        json_out_u64(json, "threads", report->result->threads);
        put_memory(json, &report->result->devices[d]);
        json_out_object_end(json);
    }
    json_out_array_end(json);
}

static void put_streams(struct json_out *json, const struct run_report *report)
{
    json_out_array_begin(json, "streams", false);
    for (uint32_t s = 0; s < plan_stream_count(report->plan); s++) {
        json_out_object_begin(json, NULL, true);
        json_out_string(json, "name", report->trace->streams[s].name);
        json_out_double(json, "busy_s", report->result->busy_s[s]);
        json_out_object_end(json);
    }
    json_out_array_end(json);
}

static void put_times(struct json_out *json, const struct run_report *report)
{
    const struct run_result *const result = report->result;
    uint64_t tokens = 0;
    for (uint32_t j = 0; j < report->trace->job_count; j++) tokens += report->trace->jobs[j].tokens;
    json_out_double(json, "makespan_s", result->makespan_s);
    json_out_double(json, "predicted_makespan_s", report->plan->estimated_makespan_s);
    json_out_double(json, "setup_s", result->setup_s);
    json_out_object_begin(json, "load", true);
    json_out_double(json, "others", result->load.others);
    json_out_double(json, "stolen", result->load.stolen);
    json_out_double(json, "waited", result->load.waited);
    json_out_double(json, "own", result->load.own);
    json_out_object_end(json);
    if (hardware_dilation(&report->plan->hardware) > 1)
        json_out_double(json, "late", device_pacing_late(&result->pacing));
    json_out_double(json, "tokens_per_s", result->makespan_s > 0 ? (double)tokens / result->makespan_s : 0);
}

static void put_result(struct json_out *json, const struct run_report *report)
{
    const struct run_result *const result = report->result;
    char fingerprint[17];
    snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, plan_fingerprint(report->plan));
    json_out_object_begin(json, NULL, false);
    json_out_u64(json, "spillway_run", RESULT_VERSION);
    json_out_string(json, "version", SPILLWAY_VERSION);
    json_out_string(json, "plan", fingerprint);
    json_out_string(json, "policy", report->trace->policy);
    if (report->live) {
        json_out_string(json, "dispatch", "live");
        json_out_u64(json, "decisions", result->decisions);
        if (report->executed_order_path) json_out_string(json, "executed_order", report->executed_order_path);
    }
    json_out_string(json, "hardware", report->plan->hardware.name);
    json_out_string(json, "libraries", result->libraries);
    json_out_bool(json, "stopped", result->stopped);
    put_times(json, report);
    put_devices(json, report);
    json_out_u64(json, "host_bytes", result->host_bytes);
    json_out_bool(json, "pinned", result->pinned);
    put_streams(json, report);
    json_out_array_begin(json, "jobs", false);
    for (uint32_t j = 0; j < report->plan->jobs.count; j++) put_job(json, report, j);
    json_out_array_end(json);
    if (report->trace_path) json_out_string(json, "trace", report->trace_path);
    if (report->log_path) json_out_string(json, "log", report->log_path);
    if (result->unwritten[0]) json_out_string(json, "unwritten", result->unwritten);
    json_out_object_end(json);
}

enum status run_report_write(const struct run_report *report, const char *path, struct error *err)
{
    struct json_file file;
    TRY(json_file_begin(&file, path, "the result", err));
    put_result(file.out, report);
    return json_file_end(&file, err);
}

/* --- for a reader ---------------------------------------------------------------------------- */

void run_report_print(const struct run_report *report)
{
    const struct plan *const plan = report->plan;
    const struct run_result *const result = report->result;
    char text[2][QUANTITY_TEXT_BYTES];
    printf("%s in %s (predicted %s), after %.2g s of preparation\n",
           result->stopped ? "stopped" : "done",
           quantity_text(result->makespan_s, DIMENSION_SECONDS, text[0]),
           quantity_text(plan->estimated_makespan_s, DIMENSION_SECONDS, text[1]), result->setup_s);
    printf("%s; %" PRIu32 " device%s", result->libraries, plan->hardware.device_count,
           plan->hardware.device_count == 1 ? "" : "s");
    if (result->threads > 0)
        printf(" with %" PRIu32 " thread%s", result->threads, result->threads == 1 ? "" : "s each");
    printf("\n\n");
    printf("%-24s %12s %12s %12s %12s\n", "JOB", "MINIBATCHES", "TOKENS/S", "FIRST LOSS", "LAST LOSS");
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        const struct run_job_result *const job = &result->jobs[j];
        printf("%-24s %12" PRIu64 " %12.1f %12.6g %12.6g", plan->jobs.jobs[j].name,
               job->minibatches, job_tokens_per_s(report->trace, j, false), job->first_loss,
               job->final_loss);
        if (job->nonfinite > 0)
            printf("  (%" PRIu64 " loss%s not finite)", job->nonfinite, job->nonfinite == 1 ? "" : "es");
        if (job->skipped > 0) printf("  (%" PRIu64 " step%s skipped)", job->skipped, job->skipped == 1 ? "" : "s");
        if (job->best_evaluation != EVALUATION_NONE) {
            const struct evaluation_progress *const best = &job->evaluations[job->best_evaluation];
            printf("  best evaluation %.6g after step %" PRIu64, best->loss, best->step);
        }
        if (job->weights_path) printf("  %s", job->weights_path);
        if (job->kept_path) printf("  %s", job->kept_path);
        printf("\n");
    }
}

void run_report_print_kept(const struct run_report *report)
{
    const struct plan *const plan = report->plan;
    const struct run_result *const result = report->result;
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        const struct run_job_result *const job = &result->jobs[j];
        const struct job *const asked = &plan->jobs.jobs[j];
        fprintf(stderr, "%s: %" PRIu64 " of %" PRIu64 " minibatches", asked->name, job->minibatches,
                asked->first_minibatch + asked->minibatches);
        if (job->checkpoint > 0) fprintf(stderr, ", checkpoint after %" PRIu64, job->checkpoint);
        if (job->weights_path)
            fprintf(stderr, ", weights in %s", job->weights_path);
        else if (asked->weights_out)
            fprintf(stderr, ", weights not written");
        fprintf(stderr, "\n");
    }
}
