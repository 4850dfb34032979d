/*
 * main() of spillway-exec: `run` carries a plan out, `measure` writes this machine's profile.
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
#include "exec/measure.h"
#include "exec/run.h"
#include "exec/wait_policy.h"
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
    const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN); /* write() then says EPIPE, reported like a full disk */
}

/* --- run: results ------------------------------------------------------------------------------ */

struct run_command {
    const char *trace, *log, *result;
    bool json, no_weights, quiet;
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

static void put_job(struct json_out *json, const struct plan *plan, const struct run_result *result,
                    const struct trace *trace, uint32_t j)
{
    const struct run_job_result *const job = &result->jobs[j];
    char fingerprint[17];
    snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, job->weights_fingerprint);
    json_out_object_begin(json, NULL, false);
    json_out_string(json, "name", plan->jobs.jobs[j].name);
    json_out_u64(json, "minibatches", job->minibatches);
    json_out_u64(json, "tokens", trace->jobs[j].tokens);
    json_out_double(json, "tokens_per_s", job_tokens_per_s(trace, j, false));
    json_out_double(json, "samples_per_s", job_tokens_per_s(trace, j, true));
    if (job->minibatches > 0) {
        put_loss(json, "first_loss", job->first_loss);
        put_loss(json, "final_loss", job->final_loss);
    }
    if (job->nonfinite > 0) json_out_u64(json, "nonfinite_losses", job->nonfinite);
    json_out_string(json, "weights_fingerprint", fingerprint);
    if (job->weights_path) json_out_string(json, "weights_path", job->weights_path);
    json_out_object_end(json);
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
    json_out_string(json, "policy", plan->policy);
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
        json_out_u64(json, "arena_bytes", plan_device_bytes(plan, d));
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
    printf("%s; %" PRIu32 " device%s with %" PRIu32 " thread%s\n\n", result->libraries,
           plan->hardware.device_count, plan->hardware.device_count == 1 ? "" : "s",
           result->threads, result->threads == 1 ? "" : "s each");
    printf("%-24s %12s %12s %12s %12s\n", "JOB", "MINIBATCHES", "TOKENS/S", "FIRST LOSS", "LAST LOSS");
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        const struct run_job_result *const job = &result->jobs[j];
        printf("%-24s %12" PRIu64 " %12.1f %12.6g %12.6g", plan->jobs.jobs[j].name,
               job->minibatches, job_tokens_per_s(trace, j, false), job->first_loss,
               job->final_loss);
        if (job->nonfinite > 0) printf("  (%" PRIu64 " losses not finite)", job->nonfinite);
        if (job->weights_path) printf("  %s", job->weights_path);
        printf("\n");
    }
}

static void print_kept(const struct plan *plan, const struct run_result *result)
{
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        const struct run_job_result *const job = &result->jobs[j];
        const struct job *const asked = &plan->jobs.jobs[j];
        fprintf(stderr, "%s: %" PRIu64 " of %" PRIu64 " minibatches", asked->name, job->minibatches,
                asked->minibatches);
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

static enum status carry_out(const struct run_command *command, const struct plan *plan,
                             struct error *err)
{
    struct run_bar bar = {.plan = plan};
    struct run_result result = {0};
    struct trace trace = {0};
    const struct run_options options = {
        .log_path = command->log,
        .save_weights = !command->no_weights,
        .record_spans = command->trace != NULL,
        .stop = &stop_asked,
        .on_progress = show_run,
        .context = &bar,
    };
    progress_begin(&bar.progress, "running", 0);
    enum status status = run_plan(plan, &options, &result, &trace, err);
    progress_end(&bar.progress);
    if (status == STATUS_OK && command->trace) status = trace_write(&trace, command->trace, err);
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
    trace_release(&trace);
    run_result_release(&result);
    return status;
}

static enum status command_run(int argc, char **argv, struct error *err)
{
    struct run_command command = {0};
    const struct option_spec specs[] = {
        OPTION_STRING("trace", 't', "FILE", &command.trace, "write what ran, where and when"),
        OPTION_STRING("log", 'l', "FILE", &command.log,
                      "write a JSON line per minibatch ('-': standard output)"),
        OPTION_STRING("result", 0, "FILE", &command.result, "write the result as JSON"),
        OPTION_FLAG("json", 0, &command.json, "print the result as JSON"),
        OPTION_FLAG("no-weights", 0, &command.no_weights, "do not write the jobs' weights"),
        OPTION_FLAG("quiet", 'q', &command.quiet, "no progress, no report"),
    };
    struct options options = {
        .command = "spillway-exec run",
        .arguments = "PLAN.json",
        .summary = "carry out a plan on this machine",
        .examples = (const char *const[]){"spillway-exec run plan.json --trace trace.json.gz", NULL},
        .details = "Interrupting it once ends the minibatches that have begun, keeps their weights "
                   "and exits with 130; interrupting it twice ends it at once.",
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

static enum status command_measure(int argc, char **argv, struct error *err)
{
    const char *output = "-";
    bool json = false, quiet = false;
    double budget_s = 45;
    const struct option_spec specs[] = {
        OPTION_STRING("output", 'o', "FILE", &output,
                      "write the profile there instead of to standard output"),
        OPTION_QUANTITY("budget", 0, "TIME", DIMENSION_SECONDS, &budget_s,
                        "how long it may take, default 45s"),
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
                                            .stop = &stop_asked,
                                            .notes = quiet ? NULL : stderr,
                                            .on_progress = show_measure,
                                            .context = &progress};
    status = measure_host(&measure, &hardware, err);
    progress_end(&progress);
    if (status == STATUS_OK) status = write_hardware(&hardware, output, err);
    hardware_release(&hardware);
    return status;
}

/* --- main -------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    enum status (*run)(int argc, char **argv, struct error *err);
    const char *summary;
} commands[] = {
    {"run", command_run, "carry out a plan on this machine"},
    {"measure", command_measure, "measure how fast this machine computes and copies"},
};

static void print_usage(FILE *stream)
{
    fprintf(stream, "spillway-exec %s: the executor of spillway\n\n", SPILLWAY_VERSION);
    for (size_t i = 0; i < ARRAY_COUNT(commands); i++)
        fprintf(stream, "  spillway-exec %-8s %s\n", commands[i].name, commands[i].summary);
    fprintf(stream, "\n'spillway-exec COMMAND --help' says more\n");
}

static enum status dispatch(int argc, char **argv, struct error *err)
{
    if (argc < 2)
        return error_set(err, STATUS_BAD_INPUT, "no command (expected run or measure)");
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_usage(stdout);
        return STATUS_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("spillway-exec %s\n", SPILLWAY_VERSION);
        return STATUS_OK;
    }
    for (size_t i = 0; i < ARRAY_COUNT(commands); i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1, err);
    return error_set(err, STATUS_BAD_INPUT, "unknown command '%s' (expected run or measure)",
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
