/*
 * `run`: runs a plan with spillway-exec, and compares.
 *
 * Steps: read and check the plan; compare it with machine options; with --resume, plan the rest; simulate; run the
 * executor; read its result from a temporary file, also of an interrupted run. A crash is reported with the signal's
 * name.
 */
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/path.h"
#include "base/size.h"
#include "base/try.h"
#include "cli/common/cli_ignored.h"
#include "cli/common/cli_machine.h"
#include "cli/document/cli_document.h"
#include "cli/history/cli_history.h"
#include "cli/process/cli_child.h"
#include "cli/process/cli_load.h"
#include "cli/run/cli_hosts_run.h"
#include "cli/run/cli_run_report.h"
#include "cli/ways/cli_predict_live.h"
#include "models/jobs/job_files.h"
#include "planner/files/plan_io.h"
#include "planner/plan_runnable.h"
#include "planner/policy/policies.h"
#include "planner/saturn/saturn.h"

static const char *const nan_choices[] = {"continue", "stop", "skip", NULL};
enum { NAN_STOP = 1 }; /* index into these */

/* --- before the run -------------------------------------------------------------------------- */

static enum status check_contradiction(const struct cli_run_request *request, const struct plan *plan,
                                       struct error *err)
{
    uint64_t bytes = 0;
    TRY(cli_bytes(request->device_memory_bytes, "device-memory", &bytes, err));
    if (request->devices > 0 && request->devices != plan->hardware.device_count)
        return error_set(err, STATUS_BAD_INPUT,
                         "the plan was made for %s and not %" PRIu64
                         " (make another with 'spillway plan --devices %" PRIu64 "')",
                         CLI_COUNT(plan->hardware.device_count, "device"), request->devices, request->devices);
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

/* Compares "AMD EPYC, 2 cores; oneDNN ..." up to the semicolon. */
static bool same_machine(const char *a, const char *b)
{
    size_t length = strcspn(a, ";");
    return length == strcspn(b, ";") && strncmp(a, b, length) == 0;
}

/* Warns if the plan has other values than this machine's profile. */
static void warn_other_machine(struct cli *cli, const struct plan *plan)
{
    const char *made_for = plan->hardware.measured_on;
    char path[CLI_PATH_BYTES];
    struct hardware here = {0};
    struct error ignored = {0};
    if (!made_for) {
        cli_warn(cli, "the plan's times rest on values that were not measured ('%s'): expect the "
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

/* --- the run --------------------------------------------------------------------------------- */

/* The executor's command line. */
struct words {
    const char *all[48];
    size_t count;
};

static void add(struct words *words, const char *word)
{
    words->all[words->count++] = word;
}

/* Leaves out options without value. */
static void add_option(struct words *words, const char *option, const char *value)
{
    if (!value) return;
    add(words, option);
    add(words, value);
}

/* Adds the options that every rank of a run has. */
static void add_shared(struct words *words, const struct cli *cli, const struct cli_run_request *request,
                       const char *keep, const char *seed)
{
    add_option(words, "--checkpoint", request->checkpoint);
    add_option(words, "--storage", request->storage);
    add_option(words, "--checkpoint-every", request->checkpoint_every);
    add_option(words, "--keep", request->keep > 0 ? keep : NULL);
    add_option(words, "--on-nan", nan_choices[request->on_nan]);
    if (request->dispatch) {
        add_option(words, "--dispatch", cli_dispatches[request->dispatch]);
        add_option(words, "--seed", seed);
    }
    add_option(words, "--policy", request->policy);
    if (cli->force) add(words, "--force");
    if (request->keep_going) add(words, "--keep-going");
    if (request->tf32) add(words, "--tf32");
    if (request->nccl_sums) add(words, "--nccl-sums");
}

/* Starts the ranks of --hosts after rank 0, and adds the options of rank 0. */
static enum status start_others(const struct cli_run_request *request, const struct cli_hosts *hosts,
                                const char *program, const char *plan_path, struct words *words,
                                char meet[CLI_MEET_BYTES], char count[16], struct cli_hosts_run **out,
                                struct error *err)
{
    struct arena arena = {0};
    struct cli_hosts_start start = {.hosts = hosts, .program = program, .options = words->all + 2,
                                    .option_count = words->count - 2, .sends_plan = plan_path != request->plan_path};
    enum status status = path_absolute("", plan_path, &arena, &start.plan_path, err);
    if (status == STATUS_OK) status = cli_hosts_probe(&start, err);
    if (status == STATUS_OK) status = cli_hosts_begin(&start, meet, out, err);
    arena_release(&arena);
    if (status != STATUS_OK) return status;
    snprintf(count, 16, "%" PRIu32, hosts->ranks);
    add_option(words, "--rank", "0");
    add_option(words, "--ranks", count);
    add_option(words, "--meet", meet);
    return STATUS_OK;
}

/* Starts the plan `plan_path`: the request's or (`rest`) the remaining one. */
static enum status start(const struct cli *cli, const struct cli_run_request *request, const char *plan_path,
                         bool rest, const char *result_path, struct cli_child_end *end,
                         struct error *err)
{
    char program[CLI_PATH_BYTES], meet[CLI_MEET_BYTES], count[16];
    struct cli_hosts hosts = {0};
    struct cli_hosts_run *others = NULL;
    TRY(cli_child_find(program, err));
    struct words words = {.count = 0};
    char keep[24], seed[24];
    snprintf(keep, sizeof keep, "%" PRIu64, request->keep);
    snprintf(seed, sizeof seed, "%" PRIu64, request->seed);
    add(&words, program);
    add(&words, "run");
    add_shared(&words, cli, request, keep, seed);
    enum status status = request->hosts ? cli_hosts_read(request->hosts, &hosts, err) : STATUS_OK;
    if (status == STATUS_OK && hosts.ranks > 1)
        status = start_others(request, &hosts, program, plan_path, &words, meet, count, &others, err);
    add_option(&words, "--result", result_path);
    add_option(&words, "--trace", request->trace_path ? request->trace_path : request->scratch_trace);
    add_option(&words, "--log", request->log_path);
    if (request->log_path && rest) add(&words, "--log-goes-on"); /* complete jobs are in it */
    add_option(&words, "--executed-order", request->executed_order);
    if (request->no_weights) add(&words, "--no-weights");
    if (cli->quiet) add(&words, "--quiet");
    add(&words, "--");
    add(&words, plan_path);
    add(&words, NULL);
    if (status == STATUS_OK) status = cli_child_run(words.all, end, err);
    cli_hosts_end(others);
    cli_hosts_release(&hosts);
    return status;
}

/* Warns of a complete run above the peak: the machine was probably busy when measured. The training is not affected. */
static void warn_speed(struct cli *cli, const struct cli_run_report *report)
{
    double peak = report->prediction->peak_flops_per_s, speed = report->prediction->least_flops;
    char text[QUANTITY_TEXT_BYTES], most[QUANTITY_TEXT_BYTES];
    if (!cli_run_is_complete(report) || !(peak > 0) || !(report->measured->makespan_s > 0)) return;
    speed /= report->measured->makespan_s;
    if (speed > peak)
        cli_warn(cli, "the run computed at %s, but the machine's peak is %s in its profile: measure it "
                 "again when it is idle", quantity_text(speed, DIMENSION_FLOP_PER_S, text),
                 quantity_text(peak, DIMENSION_FLOP_PER_S, most));
}

/* Returns the run's status, also with failed jobs. Files that could not be written come last. */
static enum status judge(const struct cli_run_report *report, const struct cli_child_end *end, struct error *err)
{
    const struct cli_measured *measured = report->measured;
    struct error failed = {0};
    enum status ended = cli_child_status(end, "run", &failed);
    for (uint32_t j = 0; ended != STATUS_INTERRUPTED && j < report->plan->jobs.count; j++) {
        const struct cli_measured_job *job = &measured->jobs[j];
        if (!job->failure) continue;
        failed = (struct error){.status = STATUS_OK};
        ended = error_set(&failed, STATUS_CHECK, "%" PRIu32 " of %" PRIu32 " jobs failed%s '%s': %s",
                          measured->failed, report->plan->jobs.count,
                          measured->failed == 1 ? ":" : ", the first of them",
                          report->plan->jobs.jobs[j].name, job->failure);
        break;
    }
    if (!measured->unwritten) return ended == STATUS_OK ? ended : error_set(err, ended, "%s", failed.text);
    bool more = ended == STATUS_INTERRUPTED || measured->failed > 0;
    return error_set(err, STATUS_IO, "%s%s%s", more ? failed.text : "", more ? "; " : "", measured->unwritten);
}

static void keep(struct cli *cli, const struct cli_run_report *report)
{
    const struct cli_run_request *request = report->request;
    const struct plan *plan = report->plan;
    cli_history_keep(cli, &(struct cli_outcome){.file = request->plan_path,
                                                .policy = request->policy ? request->policy : plan->policy,
                                                .plan = plan, .hardware = &plan->hardware,
                                                .predicted_s = report->prediction->result.makespan_s,
                                                .predicted_tokens_per_s = report->prediction->tokens_per_s,
                                                .measured_s = report->measured->makespan_s,
                                                .measured_tokens_per_s = report->measured->tokens_per_s,
                                                .complete = cli_run_is_complete(report)});
}

/* Draws for --report. */
static void draw(struct cli *cli, const struct cli_run_report *report)
{
    const struct cli_run_request *request = report->request;
    struct trace measured = {0};
    struct error err = {0};
    if (!cli->document) return;
    if (trace_read(request->trace_path ? request->trace_path : request->scratch_trace, &measured, &err) == STATUS_OK)
        cli_document_traces(cli, &report->prediction->trace, &measured);
    else
        cli_warn(cli, "the report has no timeline: %s", err.text);
    trace_release(&measured);
    cli_document_simulated(cli, &report->plan->hardware);
}

/* Returns true if the executor has filled the empty file. */
static bool has_result(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && info.st_size > 0;
}

static enum status carry_out(struct cli *cli, struct cli_run_report *report, const char *plan_path,
                             const char *result_path, struct error *err)
{
    struct cli_child_end end;
    struct cli_measured measured = {0};
    TRY(start(cli, report->request, plan_path, report->resume != NULL, result_path, &end, err));
    if (!has_result(result_path)) {
        if (cli_child_status(&end, "run", err) == STATUS_OK)
            error_set(err, STATUS_DEVICE, "the executor left no result");
        return err->status;
    }
    report->measured = &measured;
    enum status status = cli_measured_read(result_path, report->plan, &measured, err);
    if (status != STATUS_OK) {
        status = err->status = STATUS_DEVICE;
        error_add(err, "the executor left an unreadable result");
    }
    if (status == STATUS_OK) warn_speed(cli, report);
    if (status == STATUS_OK) keep(cli, report);
    if (status == STATUS_OK) draw(cli, report);
    if (status == STATUS_OK) status = cli_run_report(cli, report, err);
    if (status == STATUS_OK) status = judge(report, &end, err);
    cli_measured_release(&measured);
    return status;
}

static enum status run_plan_file(struct cli *cli, struct cli_run_report *report, const char *plan_path,
                                 struct error *err)
{
    struct cli_prediction prediction = {0};
    char result_path[CLI_PATH_BYTES];
    const struct cli_run_request *request = report->request;
    const char *policy = request->policy ? request->policy : report->plan->policy;
    const struct cli_predict_options how = {.seed = request->seed, .spans = cli->document != NULL};
    enum status status = request->dispatch
                             ? cli_predict_live(report->plan, NULL, policy, &how, &prediction, err)
                             : cli_predict(report->plan, NULL, &how, &prediction, err);
    report->prediction = &prediction;
    if (status == STATUS_OK) status = cli_child_file(result_path, err);
    if (status == STATUS_OK) {
        status = carry_out(cli, report, plan_path, result_path, err);
        unlink(result_path);
    }
    cli_prediction_release(&prediction);
    return status;
}

/* Redirects all jobs' files for --output. */
static enum status redirect(const struct cli_run_request *request, struct plan *plan, struct error *err)
{
    const char *folder;
    if (!request->output) return STATUS_OK;
    if (path_folder(request->plan_path, &plan->arena, &folder, err) != STATUS_OK ||
        job_set_send(&plan->jobs, folder, request->output, err) != STATUS_OK)
        return error_add(err, "option '--output'");
    for (uint32_t j = 0; j < plan->jobs.count && !request->no_weights; j++)
        if (plan->jobs.jobs[j].weights_out && path_make_folders(plan->jobs.jobs[j].weights_out, err) != STATUS_OK)
            return err->status;
    return STATUS_OK;
}

/* Returns true if a policy that is not at hand ordered the jobs. */
static bool lacks_policy(const struct plan *plan)
{
    enum saturn_rule rule;
    bool ordered = false;
    for (uint32_t j = 0; j < plan->jobs.count; j++) ordered |= !parallel_is_set(&plan->jobs.jobs[j].parallel);
    return ordered && !policy_find(plan->policy) && !saturn_rule_find(plan->policy, &rule);
}

/* Plans the rest into a file. */
static enum status run_rest(struct cli *cli, struct cli_run_report *report, const char *plan_path, struct error *err)
{
    struct plan rest = {0};
    char path[CLI_PATH_BYTES];
    TRY(cli_child_file(path, err));
    if (lacks_policy(report->whole) && !report->request->dispatch)
        cli_warn(cli, "the plan's policy '%s' is not built in: the remaining minibatches are planned by %s",
                 report->whole->policy, policy_name_at(0));
    enum status status = cli_resume_plan(plan_path, report->resume, &rest, err);
    if (status == STATUS_OK) status = plan_write(&rest, path, err);
    report->plan = &rest;
    if (status == STATUS_OK) status = run_plan_file(cli, report, path, err);
    unlink(path);
    plan_release(&rest);
    return status;
}

static enum status run_on(struct cli *cli, struct cli_run_report *report, const char *plan_path, struct error *err)
{
    const struct cli_run_request *request = report->request;
    struct cli_resume resume = {0};
    enum status status = cli_resume_look(cli, plan_path, report->plan, request->checkpoint,
                                         !request->no_weights, &resume, err);
    if (status == STATUS_OK && !resume.begun) { /* a script may always resume, but a misspelt folder costs time */
        cli_warn(cli, "there is no checkpoint of these jobs in '%s': they start from the beginning",
                 request->checkpoint);
        status = run_plan_file(cli, report, plan_path, err);
    } else if (status == STATUS_OK) {
        report->whole = report->plan;
        report->resume = &resume;
        status = resume.complete == report->plan->jobs.count ? cli_run_report_nothing_left(cli, report, err)
                                                             : run_rest(cli, report, plan_path, err);
    }
    cli_resume_release(&resume);
    return status;
}

/* Runs the plan; a redirected one gets a file for the executor. */
static enum status run_from(struct cli *cli, struct cli_run_report *report, struct error *err)
{
    const struct cli_run_request *request = report->request;
    char path[CLI_PATH_BYTES] = "";
    const char *plan_path = request->plan_path;
    if (request->output) {
        if (cli_child_file(path, err) == STATUS_OK && plan_write(report->plan, path, err)) {} /* the error is in err */
        plan_path = path;
    }
    if (!err->status)
        (void)!(request->resume ? run_on(cli, report, plan_path, err) : run_plan_file(cli, report, plan_path, err));
    if (path[0]) unlink(path);
    return err->status;
}

static enum status run(struct cli *cli, const struct cli_run_request *request, struct error *err)
{
    struct plan plan = {0};
    struct cli_run_report report = {.request = request, .plan = &plan};
    enum status status = plan_read(request->plan_path, &plan, err);
    if (status == STATUS_OK) status = plan_runnable(&plan, err);
    if (status == STATUS_OK && request->dispatch && !plan_is_open(&plan))
        status = error_set(err, STATUS_BAD_INPUT,
                           "'%s' has only one order (make another plan with 'spillway plan --dispatch live')",
                           request->plan_path);
    if (status == STATUS_OK) status = check_contradiction(request, &plan, err);
    if (status == STATUS_OK) status = redirect(request, &plan, err);
    if (status == STATUS_OK && request->checkpoint)
        status = job_set_checkpoints_declare(&plan.jobs, request->checkpoint, err);
    if (status == STATUS_OK && !request->no_weights) status = job_set_files_declare(&plan.jobs, true, err);
    if (status == STATUS_OK) warn_other_machine(cli, &plan);
    if (status == STATUS_OK) cli_load_warn_profile(cli, &plan.hardware);
    if (status == STATUS_OK) cli_warn_ignored(cli, &plan.jobs);
    if (status == STATUS_OK) status = run_from(cli, &report, err);
    plan_release(&plan);
    return status;
}

/* Refuses options that need others, and a plan that cannot be read twice. */
static enum status check_request(const struct cli_run_request *request, struct error *err)
{
    TRY(cli_refuse_dash("trace", request->trace_path, err));
    TRY(cli_refuse_dash("log", request->log_path, err));
    TRY(cli_refuse_dash("executed-order", request->executed_order, err));
    if (!request->dispatch && (request->policy || request->seed > 0 || request->executed_order))
        return error_set(err, STATUS_BAD_INPUT, "option '--%s' needs '--dispatch live'",
                         request->policy ? "policy" : request->seed > 0 ? "seed" : "executed-order");
    if (!request->checkpoint && (request->resume || request->checkpoint_every || request->keep > 0))
        return error_set(err, STATUS_BAD_INPUT, "option '--%s' needs '--checkpoint DIR'",
                         request->resume ? "resume" : request->keep > 0 ? "keep" : "checkpoint-every");
    if (strcmp(request->plan_path, "-") == 0)
        return error_set(err, STATUS_BAD_INPUT, "the plan must be a file, because it is read twice (found '-')");
    return STATUS_OK;
}

enum status verb_run(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct cli_run_request request = {.device_memory_bytes = CLI_NOT_GIVEN, .on_nan = NAN_STOP};
    const struct option_spec specs[] = {
        OPTION_OUTPUT("trace", 0, "FILE", FILE_KIND_TRACE, &request.trace_path,
                      "measured trace to write, compressed if it ends in .gz"),
        OPTION_OUTPUT("log", 0, "FILE", FILE_KIND_LOG, &request.log_path,
                      "log to write: loss and speed of every minibatch as JSON lines"),
        OPTION_CHOICE("dispatch", 0, "WHEN", cli_dispatches, &request.dispatch,
                      "plan: in the plan's order; live: ask a policy (default plan)"),
        OPTION_STRING("policy", 'p', "NAME", &request.policy,
                      "policy to ask live: a name or ./mine.so (default: the plan's)"),
        OPTION_U64("seed", 0, "N", 0, INT64_MAX, &request.seed, "random seed of the live policy"),
        OPTION_OUTPUT("executed-order", 0, "FILE", FILE_KIND_PLAN, &request.executed_order,
                      "plan to write, with the order that a live run took"),
        OPTION_FLAG("tf32", 0, &request.tf32,
                    "round operands of matrix products on GPUs to tf32, which is faster"),
        OPTION_FLAG("nccl-sums", 0, &request.nccl_sums,
                    "add up over three GPUs and more by NCCL, in its own order"),
        OPTION_FLAG("no-weights", 0, &request.no_weights,
                    "do not write the weights that jobs name in 'weights_out'"),
        OPTION_STRING("output", 'o', "DIR", &request.output,
                      "write the weights below DIR instead of the plan's folder"),
        OPTION_STRING("checkpoint", 0, "DIR", &request.checkpoint,
                      "folder for checkpoints of every job"),
        OPTION_STRING("checkpoint-every", 0, "N|TIME", &request.checkpoint_every,
                      "interval: minibatches (100) or a time (5min) (default 10min)"),
        OPTION_U64("keep", 0, "N", 1, 1000000, &request.keep,
                   "checkpoints to keep of each job (default 2)"),
        OPTION_STRING("storage", 0, "DIR", &request.storage,
                      "folder for the states that the plan keeps on storage"),
        OPTION_FLAG("resume", 0, &request.resume,
                    "continue from the checkpoints and skip complete jobs"),
        OPTION_CHOICE("on-nan", 0, "WHAT", nan_choices, &request.on_nan,
                      "what to do with a job whose loss is not finite (default stop)"),
        OPTION_FLAG("keep-going", 0, &request.keep_going,
                    "go on with the other jobs if one fails"),
        OPTION_STRING("hosts", 0, "FILE", &request.hosts,
                      "hosts that share the plan, one per line: HOST [slots=N]"),
        OPTION_U64("devices", 0, "N", 1, HARDWARE_DEVICES_MAX, &request.devices,
                   "refuse plans for another number of devices"),
        OPTION_QUANTITY("device-memory", 0, "SIZE", DIMENSION_BYTES, &request.device_memory_bytes,
                        "refuse plans for devices with another amount of memory"),
        CLI_HISTORY_OPTION(cli),
        CLI_ANSWER_OPTIONS(cli),
    };
    struct options options = {
        OPTIONS_TABLE(specs, 1, 1),
        .examples = (const char *const[]){"spillway run plan.json",
                                          "spillway run plan.json --trace measured.json.gz "
                                          "--log run.jsonl",
                                          "spillway run plan.json --checkpoint kept --resume",
                                          "spillway run plan.json --hosts hosts.txt",
                                          "spillway run live.json --dispatch live --policy ./mine.so", NULL},
        .details = "Ctrl-C ends the run after the current minibatches and keeps their training (exit code 130); a "
                   "second Ctrl-C ends it at once. Exit code 1 if a job failed while others went on. A resumed run "
                   "gives the same bits as one that was never stopped, also with another plan for the same jobs. The "
                   "executor is the program spillway-exec: $SPILLWAY_EXEC, next to this program, or on PATH.",
    };
    CLI_PARSE(cli, &options, argc, argv, err);
    request.plan_path = options.operands[0];
    TRY(check_request(&request, err));
    if (!cli->document || request.trace_path) return run(cli, &request, err);
    char scratch[CLI_PATH_BYTES];
    TRY(cli_child_file(scratch, err));
    request.scratch_trace = scratch;
    enum status status = run(cli, &request, err);
    unlink(scratch);
    return status;
}
