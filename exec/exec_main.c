/*
 * main() of spillway-exec: `run` carries a plan out, `checkpoints` says where it could go on, `measure`
 * writes this machine's profile, `devices` says what there is to use.
 *
 * The program is usually started by `spillway run` and `spillway measure`, which share its terminal,
 * and can be used alone. Standard output gets the result in one piece at the end; progress, notes
 * and errors go to standard error.
 *
 * The first SIGINT or SIGTERM asks a run to end at the next sensible place; it exits with 130 and
 * says what was kept. The second one ends the program at once.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json_out.h"
#include "base/options.h"
#include "base/progress.h"
#include "base/size.h"
#include "exec/backend.h"
#include "exec/gpu_rates.h"
#include "exec/measure.h"
#include "exec/resume.h"
#include "exec/run.h"
#include "exec/run_policy.h"
#include "exec/wait_policy.h"
#include "planner/plan_carried.h"
#include "planner/plan_io.h"

enum { RESULT_VERSION = 1 };

static const double BUDGET_MIN_S = 1, BUDGET_MAX_S = 3600;

/* --- signals ----------------------------------------------------------------------------------- */

static volatile bool stop_asked;

static void on_signal(int number)
{
    static const char note[] =
        "\nstopping after the minibatches that have begun (again: at once, keeping nothing)\n";
    if (stop_asked) {
        file_remove_pending();
        _exit(128 + number);
    }
    stop_asked = true;
    if (write(STDERR_FILENO, note, sizeof note - 1) < 0) return;
}

static void watch_signals(void)
{
    /* On a stack of its own: the matrix library uses the stack pointer for other things, and a frame
     * would be written where that points to. Only this thread takes signals. */
    static char stack[64 << 10];
    const stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
    const bool has_stack = sigaltstack(&own, NULL) == 0;
    const struct sigaction action = {.sa_handler = on_signal,
                                     .sa_flags = SA_RESTART | (has_stack ? SA_ONSTACK : 0)};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN); /* write() then says EPIPE, reported like a full disk */
}

/* --- run: results ------------------------------------------------------------------------------ */

static const char *const nan_choices[] = {"continue", "stop", "skip", NULL};

static const char *const dispatch_choices[] = {"plan", "live", NULL};

struct run_command {
    size_t dispatch; /* 1: live */
    const char *policy, *carried;
    uint64_t seed;
    const char *trace, *log, *result, *checkpoint, *checkpoint_every, *storage;
    uint64_t keep;
    size_t on_nan; /* enum run_on_nan */
    bool json, log_goes_on, no_weights, tf32, quiet, keep_going;
};

static double job_tokens_per_s(const struct trace *trace, uint32_t job, bool samples)
{
    const struct trace_job *const j = &trace->jobs[job];
    const double seconds = j->end_s - j->start_s;
    return seconds > 0 ? (double)(samples ? j->samples : j->tokens) / seconds : 0;
}

static void put_loss(struct json_out *json, const char *key, double loss)
{
    if (isfinite(loss))
        json_out_double(json, key, loss);
    else
        json_out_null(json, key);
}

/* Each as [step, loss]; and the best and the last, when there are any. */
static void put_evaluations(struct json_out *json, const struct run_job_result *job)
{
    if (job->evaluation_count == 0) return;
    json_out_array_begin(json, "evaluations", true);
    for (uint64_t i = 0; i < job->evaluation_count; i++) {
        json_out_array_begin(json, NULL, true);
        json_out_u64(json, NULL, job->evaluations[i].step);
        put_loss(json, NULL, job->evaluations[i].loss);
        json_out_array_end(json);
    }
    json_out_array_end(json);
    put_loss(json, "last_evaluation", job->evaluations[job->evaluation_count - 1].loss);
    if (job->best_evaluation == EVALUATION_NONE) return;
    const struct evaluated *const best = &job->evaluations[job->best_evaluation];
    json_out_double(json, "best_evaluation", best->loss);
    json_out_u64(json, "best_step", best->step);
}

static void put_job(struct json_out *json, const struct plan *plan, const struct run_result *result,
                    const struct trace *trace, uint32_t j)
{
    const struct run_job_result *const job = &result->jobs[j];
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
    if (job->minibatches > 0) {
        put_loss(json, "first_loss", job->first_loss);
        put_loss(json, "final_loss", job->final_loss);
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

static void put_result(struct json_out *json, const struct run_command *command,
                       const struct plan *plan, const struct run_result *result,
                       const struct trace *trace)
{
    char fingerprint[17];
    snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, plan_fingerprint(plan));
    uint64_t tokens = 0;
    for (uint32_t j = 0; j < trace->job_count; j++) tokens += trace->jobs[j].tokens;
    json_out_object_begin(json, NULL, false);
    json_out_u64(json, "spillway_run", RESULT_VERSION);
    json_out_string(json, "version", SPILLWAY_VERSION);
    json_out_string(json, "plan", fingerprint);
    json_out_string(json, "policy", trace->policy);
    if (command->dispatch) {
        json_out_string(json, "dispatch", "live");
        json_out_u64(json, "decisions", result->decisions);
        if (command->carried) json_out_string(json, "carried", command->carried);
    }
    json_out_string(json, "hardware", plan->hardware.name);
    json_out_string(json, "libraries", result->libraries);
    json_out_bool(json, "stopped", result->stopped);
    json_out_double(json, "makespan_s", result->makespan_s);
    json_out_double(json, "predicted_makespan_s", plan->estimated_makespan_s);
    json_out_double(json, "setup_s", result->setup_s);
    json_out_double(json, "tokens_per_s",
                    result->makespan_s > 0 ? (double)tokens / result->makespan_s : 0);
    json_out_array_begin(json, "devices", false);
    for (uint32_t d = 0; d < plan->hardware.device_count; d++) {
        json_out_object_begin(json, NULL, true);
        json_out_string(json, "name", trace->places[1 + d].name);
        json_out_u64(json, "threads", result->threads);
        put_memory(json, &result->devices[d]);
        json_out_object_end(json);
    }
    json_out_array_end(json);
    json_out_u64(json, "host_bytes", result->host_bytes);
    json_out_bool(json, "pinned", result->pinned);
    json_out_array_begin(json, "streams", false);
    for (uint32_t s = 0; s < plan_stream_count(plan); s++) {
        json_out_object_begin(json, NULL, true);
        json_out_string(json, "name", trace->streams[s].name);
        json_out_double(json, "busy_s", result->busy_s[s]);
        json_out_object_end(json);
    }
    json_out_array_end(json);
    json_out_array_begin(json, "jobs", false);
    for (uint32_t j = 0; j < plan->jobs.count; j++) put_job(json, plan, result, trace, j);
    json_out_array_end(json);
    if (command->trace) json_out_string(json, "trace", command->trace);
    if (command->log) json_out_string(json, "log", command->log);
    json_out_object_end(json);
}

/* The result as JSON, to a file or ("-") to standard output. */
static enum status write_result(const char *path, const struct run_command *command,
                                const struct plan *plan, const struct run_result *result,
                                const struct trace *trace, struct error *err)
{
    struct file_out *file;
    enum status status = file_out_create(path, &file, err);
    if (status != STATUS_OK) return status;
    struct json_out *json = json_out_create(file);
    if (json) put_result(json, command, plan, result, trace);
    const bool complete = json && json_out_complete(json);
    json_out_destroy(json);
    if (complete) return file_out_commit(file, err);
    file_out_discard(file);
    return error_memory(err, "the result", 0);
}

static void print_result(const struct plan *plan, const struct run_result *result,
                         const struct trace *trace)
{
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
               job->minibatches, job_tokens_per_s(trace, j, false), job->first_loss,
               job->final_loss);
        if (job->nonfinite > 0) printf("  (%" PRIu64 " losses not finite)", job->nonfinite);
        if (job->skipped > 0) printf("  (%" PRIu64 " steps left out)", job->skipped);
        if (job->best_evaluation != EVALUATION_NONE) {
            const struct evaluated *const best = &job->evaluations[job->best_evaluation];
            printf("  best evaluation %.6g after step %" PRIu64, best->loss, best->step);
        }
        if (job->weights_path) printf("  %s", job->weights_path);
        if (job->kept_path) printf("  %s", job->kept_path);
        printf("\n");
    }
}

static void print_kept(const struct plan *plan, const struct run_result *result)
{
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

/* --- run --------------------------------------------------------------------------------------- */

struct run_bar {
    struct progress progress;
    const struct plan *plan;
};

static void show_run(void *context, double done, double total, uint32_t job, double loss)
{
    struct run_bar *const bar = context;
    char note[96] = "";
    if (job != PLAN_NONE)
        snprintf(note, sizeof note, "%.60s loss %.4g", bar->plan->jobs.jobs[job].name, loss);
    bar->progress.total = total;
    progress_update(&bar->progress, done, note);
}

/* Above the bar, which is drawn again a tenth of a second later. */
static void show_note(void *context, const char *text)
{
    (void)context;
    fprintf(stderr, "%swarning: %s\n", isatty(STDERR_FILENO) ? "\r\033[K" : "", text);
}

/* "a: why; b: why": the first few. */
static enum status tell_failures(const struct plan *plan, const struct run_result *result,
                                 struct error *err)
{
    char text[800] = "";
    size_t used = 0;
    for (uint32_t j = 0; j < plan->jobs.count && used < sizeof text - 1; j++) {
        const struct run_job_result *const job = &result->jobs[j];
        if (!job->failure && !job->checkpoint_failure) continue;
        used += (size_t)snprintf(text + used, sizeof text - used, "%s'%s': %s%s", used > 0 ? "; " : "",
                                 plan->jobs.jobs[j].name, job->failure ? "" : "no checkpoints: ",
                                 job->failure ? job->failure : job->checkpoint_failure);
        if (used > sizeof text - 1) used = sizeof text - 1;
    }
    return error_set(err, STATUS_CHECK, "%" PRIu32 " of %" PRIu32 " jobs failed: %s", result->failed,
                     plan->jobs.count, text);
}

/* "100": minibatches; "5min": a time. */
static enum status parse_every(const char *text, struct run_checkpoints *out, struct error *err)
{
    static const double default_s = 600, least_s = 0.1;
    if (!text) {
        out->every_s = default_s;
        return STATUS_OK;
    }
    char *end;
    errno = 0;
    const unsigned long long steps = strtoull(text, &end, 10);
    if (text[0] >= '0' && text[0] <= '9' && *end == '\0') {
        if (errno == 0 && steps >= 1 && steps <= JOB_MINIBATCHES_MAX) {
            out->every_steps = steps;
            return STATUS_OK;
        }
    } else {
        struct error why = {0};
        if (quantity_parse(text, DIMENSION_SECONDS, &out->every_s, &why) == STATUS_OK &&
            out->every_s >= least_s)
            return STATUS_OK;
    }
    return error_set(err, STATUS_BAD_INPUT,
                     "option '--checkpoint-every' is '%.60s' (expected a number of minibatches such as "
                     "100, or a time such as 5min)", text);
}

/* The plan that came about; its time is what it took. */
static enum status write_carried(const struct run_command *command, const struct plan *plan,
                                 const struct run_result *result, const struct trace *trace, struct error *err)
{
    struct plan_carried carried;
    if (!command->carried || !trace->complete) return STATUS_OK;
    enum status status = plan_carried_make(plan, result->order, (uint32_t)result->order_count, &carried, err);
    if (status != STATUS_OK) return status;
    carried.plan.policy = trace->policy;
    carried.plan.seed = command->seed;
    carried.plan.estimated_makespan_s = result->makespan_s;
    status = plan_write(&carried.plan, command->carried, err);
    plan_carried_release(&carried);
    return status;
}

static enum status carry_out(const struct run_command *command, const struct plan *plan,
                             struct error *err)
{
    struct run_bar bar = {.plan = plan};
    struct run_checkpoints checkpoints = {.folder = command->checkpoint, .keep = command->keep};
    if (parse_every(command->checkpoint_every, &checkpoints, err) != STATUS_OK) return err->status;
    struct run_result result = {0};
    struct trace trace = {0};
    struct run_policy *policy = NULL;
    if (command->dispatch && run_policy_open(command->policy ? command->policy : plan->policy, 0, &policy, err))
        return err->status;
    const struct run_options options = {
        .live = policy,
        .live_seed = command->seed,
        .record_order = command->carried != NULL,
        .log_path = command->log,
        .log_goes_on = command->log_goes_on,
        .save_weights = !command->no_weights,
        .record_spans = command->trace != NULL,
        .tf32 = command->tf32,
        .checkpoints = command->checkpoint ? &checkpoints : NULL,
        .storage = {.folder = command->storage},
        .on_nan = (enum run_on_nan)command->on_nan,
        .keep_going = command->keep_going,
        .on_note = show_note,
        .stop = &stop_asked,
        .on_progress = show_run,
        .context = &bar,
    };
    progress_begin(&bar.progress, "running", 0);
    enum status status = run_plan(plan, &options, &result, &trace, err);
    progress_end(&bar.progress);
    if (status == STATUS_OK && command->trace) status = trace_write(&trace, command->trace, err);
    if (status == STATUS_OK) status = write_carried(command, plan, &result, &trace, err);
    if (status == STATUS_OK && command->result)
        status = write_result(command->result, command, plan, &result, &trace, err);
    if (status == STATUS_OK && command->json)
        status = write_result("-", command, plan, &result, &trace, err);
    else if (status == STATUS_OK && !command->quiet)
        print_result(plan, &result, &trace);
    if (status == STATUS_OK && result.stopped) {
        print_kept(plan, &result);
        status = error_set(err, STATUS_INTERRUPTED, "stopped before the end of the plan");
    }
    if (status == STATUS_OK && result.failed > 0) status = tell_failures(plan, &result, err);
    run_policy_close(policy);
    trace_release(&trace);
    run_result_release(&result);
    return status;
}

static enum status command_run(int argc, char **argv, struct error *err)
{
    struct run_command command = {.keep = 2};
    const struct option_spec specs[] = {
        OPTION_STRING("trace", 't', "FILE", &command.trace, "write what ran, where and when"),
        OPTION_STRING("log", 'l', "FILE", &command.log,
                      "write a JSON line per minibatch ('-': standard output)"),
        OPTION_FLAG("log-goes-on", 0, &command.log_goes_on,
                    "add to the log instead of beginning a new one"),
        OPTION_CHOICE("dispatch", 0, "WHEN", dispatch_choices, &command.dispatch,
                      "the plan's order, or live: of a plan with choices, asking a policy; default plan"),
        OPTION_STRING("policy", 'p', "NAME", &command.policy,
                      "live: a built-in policy or a shared object, default the plan's"),
        OPTION_U64("seed", 0, "N", 0, INT64_MAX, &command.seed, "live: of the policy"),
        OPTION_STRING("carried", 0, "FILE", &command.carried,
                      "live: write the plan that came about, when it is complete"),
        OPTION_STRING("result", 0, "FILE", &command.result, "write the result as JSON"),
        OPTION_FLAG("json", 0, &command.json, "print the result as JSON"),
        OPTION_FLAG("no-weights", 0, &command.no_weights, "do not write the jobs' weights"),
        OPTION_STRING("checkpoint", 0, "DIR", &command.checkpoint,
                      "keep checkpoints of every job there, and take those of begun ones from there"),
        OPTION_STRING("checkpoint-every", 0, "N|TIME", &command.checkpoint_every,
                      "how often: minibatches (100) or a time (5min), default 10min"),
        OPTION_U64("keep", 0, "N", 1, CHECKPOINT_KEEP_MAX, &command.keep,
                   "checkpoints kept of each job, default 2"),
        OPTION_STRING("storage", 0, "DIR", &command.storage,
                      "states that the plan has on storage go into a file there"),
        OPTION_CHOICE("on-nan", 0, "WHAT", nan_choices, &command.on_nan,
                      "what a loss that is not finite does to its job, or its step; default continue"),
        OPTION_FLAG("keep-going", 0, &command.keep_going,
                    "a job that fails does not end the others"),
        OPTION_FLAG("tf32", 0, &command.tf32,
                    "on GPUs, round the operands of matrix products to tf32, which is faster"),
        OPTION_FLAG("quiet", 'q', &command.quiet, "no progress, no report"),
    };
    struct options options = {
        .command = "spillway-exec run",
        .arguments = "PLAN.json",
        .summary = "carry out a plan on this machine",
        .examples = (const char *const[]){"spillway-exec run plan.json --trace trace.json.gz", NULL},
        .details = "Interrupting it once ends the minibatches that have begun, keeps their weights "
                   "and checkpoints and exits with 130; interrupting it twice ends it at once. Exit "
                   "code 1 when a job failed, or its checkpoints did.",
        .specs = specs,
        .spec_count = ARRAY_COUNT(specs),
        .argument_min = 1,
        .argument_max = 1,
    };
    enum status status = options_parse(&options, argc, argv, err);
    if (status != STATUS_OK) return status;
    if (options.help) {
        options_print_help(&options, stdout);
        return STATUS_OK;
    }
    if (!command.dispatch && (command.policy || command.seed || command.carried))
        return error_set(err, STATUS_BAD_INPUT, "option '--%s' needs '--dispatch live'",
                         command.policy ? "policy" : command.seed ? "seed" : "carried");
    if (command.json && command.log && strcmp(command.log, "-") == 0)
        return error_set(err, STATUS_BAD_INPUT,
                         "'--log -' and '--json' cannot both have standard output");
    if (command.quiet) progress_disable();
    struct plan plan = {0};
    status = plan_read(options.operands[0], &plan, err);
    if (status == STATUS_OK) status = carry_out(&command, &plan, err);
    plan_release(&plan);
    return status;
}

/* --- checkpoints -------------------------------------------------------------------------------- */

static void put_found(struct json_out *json, const struct plan *plan, const struct resume_job *jobs)
{
    json_out_object_begin(json, NULL, false);
    json_out_u64(json, "spillway_checkpoints", RESULT_VERSION);
    json_out_array_begin(json, "jobs", false);
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        const struct checkpoint_found *const found = &jobs[j].found;
        json_out_object_begin(json, NULL, true);
        json_out_string(json, "name", plan->jobs.jobs[j].name);
        json_out_u64(json, "minibatches", found->step);
        if (found->step > 0) {
            put_loss(json, "first_loss", found->first_loss);
            put_loss(json, "final_loss", found->final_loss);
        }
        if (found->evaluation_count > 0) put_loss(json, "last_evaluation", found->last_evaluation);
        if (found->best_step > 0) {
            json_out_double(json, "best_evaluation", found->best_evaluation);
            json_out_u64(json, "best_step", found->best_step);
        }
        if (jobs[j].weights_path) json_out_string(json, "weights_path", jobs[j].weights_path);
        if (jobs[j].best_path) json_out_string(json, "best_weights_path", jobs[j].best_path);
        if (found->passed_over > 0) json_out_string(json, "passed_over", found->reason);
        json_out_object_end(json);
    }
    json_out_array_end(json);
    json_out_object_end(json);
}

static enum status write_found(const char *path, const struct plan *plan,
                               const struct resume_job *jobs, struct error *err)
{
    struct file_out *file;
    enum status status = file_out_create(path, &file, err);
    if (status != STATUS_OK) return status;
    struct json_out *json = json_out_create(file);
    if (json) put_found(json, plan, jobs);
    const bool complete = json && json_out_complete(json);
    json_out_destroy(json);
    if (complete) return file_out_commit(file, err);
    file_out_discard(file);
    return error_memory(err, "what was found", 0);
}

static enum status command_checkpoints(int argc, char **argv, struct error *err)
{
    const char *result = "-";
    bool write_weights = false, json = false;
    const struct option_spec specs[] = {
        OPTION_STRING("result", 0, "FILE", &result, "write it there instead of to standard output"),
        OPTION_FLAG("write-weights", 0, &write_weights,
                    "write the weights of jobs that are complete"),
        OPTION_FLAG("json", 0, &json, "accepted for symmetry: it is JSON"),
    };
    struct options options = {
        .command = "spillway-exec checkpoints",
        .arguments = "PLAN.json DIR",
        .summary = "the newest whole checkpoint of each job of a plan",
        .examples = (const char *const[]){"spillway-exec checkpoints plan.json checkpoints", NULL},
        .details = "Every byte of them is read and checked.",
        .specs = specs,
        .spec_count = ARRAY_COUNT(specs),
        .argument_min = 2,
        .argument_max = 2,
    };
    enum status status = options_parse(&options, argc, argv, err);
    if (status != STATUS_OK) return status;
    if (options.help) {
        options_print_help(&options, stdout);
        return STATUS_OK;
    }
    struct plan plan = {0};
    struct resume_job *jobs = NULL;
    status = plan_read(options.operands[0], &plan, err);
    if (status == STATUS_OK) {
        jobs = calloc(plan.jobs.count, sizeof *jobs);
        if (!jobs) status = error_memory(err, "a list of jobs", plan.jobs.count * sizeof *jobs);
    }
    if (status == STATUS_OK)
        status = resume_look(&plan, options.operands[1], write_weights, jobs, err);
    if (status == STATUS_OK) status = write_found(result, &plan, jobs, err);
    free(jobs);
    plan_release(&plan);
    return status;
}

/* --- measure ----------------------------------------------------------------------------------- */

static void show_measure(void *context, double done, double total, const char *what)
{
    struct progress *const progress = context;
    progress->total = total;
    progress_update(progress, done, what);
}

static enum status write_hardware(const struct hardware *hardware, const char *path,
                                  struct error *err)
{
    struct file_out *file;
    enum status status = file_out_create(path, &file, err);
    if (status != STATUS_OK) return status;
    struct json_out *json = json_out_create(file);
    if (json) hardware_write(hardware, json, NULL);
    const bool complete = json && json_out_complete(json);
    json_out_destroy(json);
    if (complete) return file_out_commit(file, err);
    file_out_discard(file);
    return error_memory(err, "the profile", 0);
}

/* `backend` NULL: that of the GPUs, if there are any. */
static enum status measure_machine(const char *backend, const struct measure_options *options,
                                   struct hardware *out, struct error *err)
{
    const struct backend *const cuda = backend_find("cuda");
    struct error none = {0};
    uint32_t count;
    if (!backend) backend = cuda && cuda->count(&count, &none) == STATUS_OK ? "cuda" : "host";
    if (strcmp(backend, "host") == 0) return measure_host(options, out, err);
#ifdef SPILLWAY_CUDA
    if (strcmp(backend, "cuda") == 0) return measure_cuda(options, out, err);
#endif
    return error_set(err, STATUS_BAD_INPUT, "option '--backend' is '%s' (this program was built with %s)",
                     backend, backend_names());
}

static enum status command_measure(int argc, char **argv, struct error *err)
{
    const char *output = "-", *name = NULL, *storage = NULL;
    bool json = false, quiet = false;
    double budget_s = 45;
    const struct option_spec specs[] = {
        OPTION_STRING("output", 'o', "FILE", &output,
                      "write the profile there instead of to standard output"),
        OPTION_STRING("backend", 0, "NAME", &name,
                      "host or cuda, default cuda where there is a GPU"),
        OPTION_QUANTITY("budget", 0, "TIME", DIMENSION_SECONDS, &budget_s,
                        "how long it may take, default 45s"),
        OPTION_STRING("storage", 0, "DIR", &storage,
                      "measure the disk there as well, for states that memory has no room for"),
        OPTION_FLAG("json", 0, &json, "accepted for symmetry: a profile is JSON"),
        OPTION_FLAG("quiet", 'q', &quiet, "no progress, no notes"),
    };
    struct options options = {
        .command = "spillway-exec measure",
        .arguments = "",
        .summary = "measure how fast this machine computes and copies",
        .examples = (const char *const[]){"spillway-exec measure -o machine.json", NULL},
        .details = "The machine should be idle meanwhile.",
        .specs = specs,
        .spec_count = ARRAY_COUNT(specs),
    };
    enum status status = options_parse(&options, argc, argv, err);
    if (status != STATUS_OK) return status;
    if (options.help) {
        options_print_help(&options, stdout);
        return STATUS_OK;
    }
    if (budget_s < BUDGET_MIN_S || budget_s > BUDGET_MAX_S)
        return error_set(err, STATUS_BAD_INPUT,
                         "option '--budget' is %g s (expected a time from 1s to 1h)", budget_s);
    if (quiet) progress_disable();
    struct progress progress;
    progress_begin(&progress, "measuring", 0);
    struct hardware hardware = {0};
    const struct measure_options measure = {.budget_s = budget_s,
                                            .storage = storage,
                                            .stop = &stop_asked,
                                            .notes = quiet ? NULL : stderr,
                                            .on_progress = show_measure,
                                            .context = &progress};
    status = measure_machine(name, &measure, &hardware, err);
    progress_end(&progress);
    if (status == STATUS_OK) status = write_hardware(&hardware, output, err);
    hardware_release(&hardware);
    return status;
}

/* --- rates of a GPU ------------------------------------------------------------------------------ */

#ifdef SPILLWAY_CUDA

static enum status command_gpu_rates(int argc, char **argv, struct error *err)
{
    const char *output = "-";
    const struct option_spec specs[] = {
        OPTION_STRING("output", 'o', "FILE", &output,
                      "write the rates there instead of to standard output"),
    };
    struct options options = {
        .command = "spillway-exec gpu-rates",
        .arguments = "",
        .summary = "copies, memory, products and attention of the first GPU, as JSON",
        .examples = (const char *const[]){"spillway-exec gpu-rates -o rates.json", NULL},
        .specs = specs,
        .spec_count = ARRAY_COUNT(specs),
    };
    enum status status = options_parse(&options, argc, argv, err);
    if (status != STATUS_OK) return status;
    if (options.help) {
        options_print_help(&options, stdout);
        return STATUS_OK;
    }
    struct file_out *file;
    status = file_out_create(output, &file, err);
    if (status != STATUS_OK) return status;
    struct json_out *json = json_out_create(file);
    status = json ? gpu_rates_write(json, err) : error_memory(err, "the rates", 0);
    if (status == STATUS_OK && !json_out_complete(json)) status = error_memory(err, "the rates", 0);
    json_out_destroy(json);
    if (status == STATUS_OK) return file_out_commit(file, err);
    file_out_discard(file);
    return status;
}

#endif

/* --- devices ----------------------------------------------------------------------------------- */

/* One line for each back end: how many devices it has, or why none. */
static enum status command_devices(int argc, char **argv, struct error *err)
{
    struct options options = {.command = "spillway-exec devices",
                              .arguments = "",
                              .summary = "how many devices each back end finds"};
    if (options_parse(&options, argc, argv, err) != STATUS_OK) return err->status;
    if (options.help) {
        options_print_help(&options, stdout);
        return STATUS_OK;
    }
    static const char *const names[] = {"host", "cuda"};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        const struct backend *backend = backend_find(names[i]);
        struct error why = {0};
        uint32_t count = 0;
        if (!backend) continue;
        if (backend->count(&count, &why) != STATUS_OK) printf("%s %s\n", names[i], why.text);
        else if (count == UINT32_MAX) printf("%s any\n", names[i]);
        else printf("%s %" PRIu32 "\n", names[i], count);
    }
    return STATUS_OK;
}

/* --- main -------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    enum status (*run)(int argc, char **argv, struct error *err);
    const char *summary;
} commands[] = {
    {"run", command_run, "carry out a plan on this machine"},
    {"checkpoints", command_checkpoints, "the newest whole checkpoint of each job of a plan"},
    {"measure", command_measure, "measure how fast this machine computes and copies"},
    {"devices", command_devices, "how many devices each back end finds"},
#ifdef SPILLWAY_CUDA
    {"gpu-rates", command_gpu_rates, "plain rates of the first GPU, see exec/gpu-check"},
#endif
};

static void print_usage(FILE *stream)
{
    fprintf(stream, "spillway-exec %s: the executor of spillway (back ends: %s)\n\n",
            SPILLWAY_VERSION, backend_names());
    for (size_t i = 0; i < ARRAY_COUNT(commands); i++)
        fprintf(stream, "  spillway-exec %-11s %s\n", commands[i].name, commands[i].summary);
    fprintf(stream, "\n'spillway-exec COMMAND --help' says more\n");
}

static enum status dispatch(int argc, char **argv, struct error *err)
{
    if (argc < 2)
        return error_set(err, STATUS_BAD_INPUT, "no command (expected run, checkpoints, measure or devices)");
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_usage(stdout);
        return STATUS_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("spillway-exec %s (back ends: %s)\n", SPILLWAY_VERSION, backend_names());
        return STATUS_OK;
    }
    for (size_t i = 0; i < ARRAY_COUNT(commands); i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1, err);
    return error_set(err, STATUS_BAD_INPUT, "unknown command '%s' (expected run, checkpoints, measure or devices)",
                     argv[1]);
}

int main(int argc, char **argv)
{
    wait_policy_passive(argv);
    watch_signals();
    struct error err = {0};
    enum status status = dispatch(argc, argv, &err);
    if (fflush(stdout) != 0 && status == STATUS_OK)
        status = error_io(&err, "cannot write to standard output");
    if (status != STATUS_OK) {
        const bool colour = isatty(STDERR_FILENO) && !getenv("NO_COLOR");
        fprintf(stderr, "%serror:%s %s\n", colour ? "\033[31m" : "", colour ? "\033[0m" : "",
                err.text);
    }
    return error_exit_code(status);
}
