/* spillway-exec run: carries out a plan from a file. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/process/options.h"
#include "base/process/progress.h"
#include "base/size.h"
#include "base/try.h"
#include "exec/checkpoint/checkpoint.h"
#include "exec/command.h"
#include "exec/kernels/kernels.h"
#include "exec/ranks/rank_launch.h"
#include "exec/ranks/rank_mesh.h"
#include "exec/run/run.h"
#include "exec/run_report.h"
#include "exec/run/run_result.h"
#include "models/jobs/job_files.h"
#include "planner/files/plan_io.h"
#include "planner/policy/plan_executed.h"
#include "planner/policy/policy_process.h"

static const char *const nan_choices[] = {"continue", "stop", "skip", NULL};

static const char *const dispatch_choices[] = {"plan", "live", NULL};

struct run_request {
    size_t dispatch; /* 1: live */
    const char *policy, *executed_order;
    uint64_t seed;
    const char *trace, *log, *result, *checkpoint, *checkpoint_every, *storage;
    uint64_t keep;
    size_t on_nan; /* enum run_on_nan */
    uint64_t rank, ranks; /* RANK_LAUNCH_NONE: not given */
    const char *meet;
    double patience_s;
    bool json, log_goes_on, no_weights, tf32, nccl_sums, quiet, keep_going, force;
    bool follows; /* a rank after rank 0, which reports */
};

/* The interval of lines of progress where no bar is drawn. */
static const double line_interval_s = 60;

/* --- while it runs --------------------------------------------------------------------------- */

struct run_bar {
    struct progress progress;
    const struct plan *plan;
};

static void show_run(void *context, double done, double total, uint32_t job, double loss)
{
    struct run_bar *const bar = context;
    char note[96] = "";
    if (job != PLAN_NONE)
        snprintf(note, sizeof note, isfinite(loss) ? "%.60s loss %.4g" : "%.60s loss not finite",
                 bar->plan->jobs.jobs[job].name, loss);
    bar->progress.total = total;
    progress_update(&bar->progress, done, note);
}

/* Prints above the bar, which is drawn again a tenth of a second later. */
static void show_note(void *context, const char *text)
{
    (void)context;
    fprintf(stderr, "%swarning: %s\n", isatty(STDERR_FILENO) ? "\r\033[K" : "", text);
}

/* Reports "a: why; b: why": the first few. */
static enum status tell_failures(const struct plan *plan, const struct run_result *result,
                                 struct error *err)
{
    char text[800] = "";
    size_t used = 0;
    for (uint32_t j = 0; j < plan->jobs.count && used < sizeof text - 1; j++) {
        const struct run_job_result *const job = &result->jobs[j];
        if (!job->failure) continue;
        used += (size_t)snprintf(text + used, sizeof text - used, "%s'%s': %s", used > 0 ? "; " : "",
                                 plan->jobs.jobs[j].name, job->failure);
        if (used > sizeof text - 1) used = sizeof text - 1;
    }
    return error_set(err, STATUS_CHECK, "%" PRIu32 " of %" PRIu32 " jobs failed: %s", result->failed,
                     plan->jobs.count, text);
}

/* Reads "100": minibatches; "5min": a time. */
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

static enum status write_executed(const struct run_request *command, const struct plan *plan,
                                  const struct run_result *result, const struct trace *trace, struct error *err)
{
    struct plan_executed executed;
    if (!command->executed_order || !trace->complete) return STATUS_OK;
    TRY(plan_executed_make(plan, result->order, (uint32_t)result->order_count, &executed, err));
    executed.plan.policy = trace->policy;
    executed.plan.seed = command->seed;
    executed.plan.estimated_makespan_s = result->makespan_s;
    enum status status = plan_write(&executed.plan, command->executed_order, err);
    plan_executed_release(&executed);
    return status;
}

/* Writes both. Failures go into the result, and the report then has no path. Takes the writer over. */
static void write_traces(const struct run_request *command, struct run_result *result, struct trace_writer *writer,
                         struct run_report *report)
{
    struct error unwritten[2] = {{0}, {0}};
    if (writer && trace_writer_commit(writer, report->trace, &unwritten[0]) != STATUS_OK) {
        run_result_unwritten(result, &unwritten[0]);
        report->trace_path = NULL;
    }
    if (write_executed(command, report->plan, result, report->trace, &unwritten[1]) != STATUS_OK) {
        run_result_unwritten(result, &unwritten[1]);
        report->executed_order_path = NULL;
    }
}

static enum status judge(const struct plan *plan, const struct run_result *result, struct error *err)
{
    if (result->failed > 0) (void)!tell_failures(plan, result, err);
    else if (result->stopped) error_set(err, STATUS_INTERRUPTED, "stopped before the end of the plan");
    if (!result->unwritten[0]) return err->status;
    const struct error first = *err;
    *err = (struct error){.status = STATUS_OK};
    return error_set(err, STATUS_IO, "%s%s%s", first.text, first.text[0] ? "; " : "", result->unwritten);
}

/*
 * Writes the result first, then the less important files, then the result again with the files that could not be
 * written.
 * *writer is NULL afterwards if it was handed over.
 */
static enum status hand_over(const struct run_request *command, const struct plan *plan, struct run_result *result,
                             const struct trace *trace, struct trace_writer **writer, struct error *err)
{
    struct run_report report = {.plan = plan, .result = result, .trace = trace, .live = command->dispatch != 0,
                                .trace_path = command->trace, .log_path = result->log_failed ? NULL : command->log,
                                .executed_order_path = command->executed_order};
    if (command->result) TRY(run_report_write(&report, command->result, err));
    write_traces(command, result, *writer, &report);
    *writer = NULL;
    if (command->result && result->unwritten[0]) TRY(run_report_write(&report, command->result, err));
    if (command->json) TRY(run_report_write(&report, "-", err));
    if (!command->json && !command->quiet) run_report_print(&report);
    if (result->stopped && !command->follows) run_report_print_kept(&report);
    const enum status status = judge(plan, result, err);
    if (command->result) err->text[0] = '\0';
    return status;
}

/* Joins the other processes, if there are any. Rank 0 has the files and the terminal. */
static enum status join_ranks(struct run_request *command, const struct plan *plan, struct ranks **out,
                              struct error *err)
{
    static const double least_s = 1;
    struct rank_launch launch;
    TRY(rank_launch_find(command->rank, command->ranks, command->meet, &launch, err));
    if (command->patience_s < least_s)
        return error_set(err, STATUS_BAD_INPUT, "option '--patience' is %g s (expected 1s or more)",
                         command->patience_s);
    if (launch.count == 1) return STATUS_OK;
    if (launch.rank > 0) {
        progress_disable();
        command->json = false;
        command->follows = command->quiet = command->no_weights = true;
        command->log = command->result = command->trace = command->executed_order = NULL;
    }
    char compared[96];
    snprintf(compared, sizeof compared, "--on-nan %s, %s, --dispatch %s%s", nan_choices[command->on_nan],
             command->checkpoint ? "--checkpoint" : "no --checkpoint", dispatch_choices[command->dispatch],
             command->keep_going ? ", --keep-going" : "");
    const struct ranks_options options = {.rank = launch.rank, .count = launch.count, .meet = launch.meet,
                                          .meet_file = launch.meet_file, .patience_s = command->patience_s,
                                          .plan = plan_fingerprint(plan), .machine = kernels_host_machine(),
                                          .options = compared, .folder = command->checkpoint};
    return ranks_join(&options, out, err);
}

static enum status carry_out(const struct run_request *command, const struct plan *plan, struct ranks *ranks,
                             const volatile bool *stop, struct error *err)
{
    struct run_bar bar = {.plan = plan};
    struct run_checkpoints checkpoints = {.folder = command->checkpoint, .keep = command->keep};
    TRY(parse_every(command->checkpoint_every, &checkpoints, err));
    struct run_result result = {0};
    struct trace trace = {0};
    struct policy_process *policy = NULL;
    if (command->dispatch && !command->follows)
        TRY(policy_process_open(command->policy ? command->policy : plan->policy, 0, &policy, err));
    struct trace_writer *writer = NULL;
    if (command->trace && trace_writer_create(command->trace, &writer, err) != STATUS_OK) {
        policy_process_close(policy);
        return err->status;
    }
    const struct run_options options = {
        .ranks = ranks,
        .live = policy,
        .live_elsewhere = command->dispatch && command->follows,
        .live_seed = command->seed,
        .record_order = command->executed_order != NULL,
        .log_path = command->log,
        .log_goes_on = command->log_goes_on,
        .save_weights = !command->no_weights,
        .writer = writer,
        .tf32 = command->tf32,
        .nccl_sums = command->nccl_sums,
        .checkpoints = command->checkpoint ? &checkpoints : NULL,
        .storage = {.folder = command->storage},
        .on_nan = (enum run_on_nan)command->on_nan,
        .keep_going = command->keep_going,
        .on_note = show_note,
        .stop = stop,
        .on_progress = show_run,
        .context = &bar,
    };
    progress_begin(&bar.progress, "running", 0);
    progress_lines(&bar.progress, line_interval_s);
    enum status status = run_plan(plan, &options, &result, &trace, err);
    progress_end(&bar.progress);
    if (status == STATUS_OK) status = hand_over(command, plan, &result, &trace, &writer, err);
    trace_writer_discard(writer);
    policy_process_close(policy);
    trace_release(&trace);
    run_result_release(&result);
    return status;
}

/* Reads the plan, meets the other ranks and carries the plan out. */
static enum status run_file(struct run_request *command, const char *path, const volatile bool *stop,
                            struct error *err)
{
    struct plan plan = {0};
    struct ranks *ranks = NULL;
    enum status status = plan_read(path, &plan, err);
    if (status == STATUS_OK && command->checkpoint)
        status = job_set_checkpoints_declare(&plan.jobs, command->checkpoint, err);
    if (status == STATUS_OK) status = join_ranks(command, &plan, &ranks, err);
    if (status == STATUS_OK) status = carry_out(command, &plan, ranks, stop, err);
    ranks_destroy(ranks);
    plan_release(&plan);
    return status;
}

enum status command_run(int argc, char **argv, const volatile bool *stop, struct error *err)
{
    struct run_request command = {.keep = 2, .on_nan = RUN_NAN_STOP, .rank = RANK_LAUNCH_NONE,
                                  .ranks = RANK_LAUNCH_NONE,
                                  .patience_s = 8};
    const struct option_spec specs[] = {
        OPTION_OUTPUT("trace", 't', "FILE", FILE_KIND_TRACE, &command.trace, "measured trace to write"),
        OPTION_OUTPUT("log", 'l', "FILE", FILE_KIND_LOG, &command.log,
                      "log to write, a JSON line per minibatch ('-': standard output)"),
        OPTION_FLAG("log-goes-on", 0, &command.log_goes_on,
                    "append to the log"),
        OPTION_CHOICE("dispatch", 0, "WHEN", dispatch_choices, &command.dispatch,
                      "plan: in the plan's order; live: ask a policy (default plan)"),
        OPTION_STRING("policy", 'p', "NAME", &command.policy,
                      "policy to ask live: a name or ./mine.so (default: the plan's)"),
        OPTION_U64("seed", 0, "N", 0, INT64_MAX, &command.seed, "random seed of the live policy"),
        OPTION_OUTPUT("executed-order", 0, "FILE", FILE_KIND_PLAN, &command.executed_order,
                      "plan to write, with the order that a live run took"),
        OPTION_OUTPUT("result", 0, "FILE", FILE_KIND_RESULT, &command.result,
                      "result to write as JSON, errors included"),
        OPTION_FLAG("json", 0, &command.json, "print the result as JSON"),
        OPTION_FLAG("no-weights", 0, &command.no_weights, "do not write the weights of the jobs"),
        OPTION_STRING("checkpoint", 0, "DIR", &command.checkpoint,
                      "folder for checkpoints of every job; started jobs continue from it"),
        OPTION_STRING("checkpoint-every", 0, "N|TIME", &command.checkpoint_every,
                      "interval: minibatches (100) or a time (5min) (default 10min)"),
        OPTION_U64("keep", 0, "N", 1, CHECKPOINT_KEEP_MAX, &command.keep,
                   "checkpoints to keep of each job (default 2)"),
        OPTION_STRING("storage", 0, "DIR", &command.storage,
                      "folder for the states that the plan keeps on storage"),
        OPTION_CHOICE("on-nan", 0, "WHAT", nan_choices, &command.on_nan,
                      "what to do with a job whose loss is not finite (default stop)"),
        OPTION_FLAG("keep-going", 0, &command.keep_going,
                    "go on with the other jobs if one fails"),
        OPTION_U64("rank", 0, "N", 0, RANKS_MAX - 1, &command.rank,
                   "number of this process among those that share the plan, from 0"),
        OPTION_U64("ranks", 0, "N", 1, RANKS_MAX, &command.ranks,
                   "number of processes, each with a part of the devices"),
        OPTION_STRING("meet", 0, "HOST:PORT", &command.meet, "address at which rank 0 waits for the others"),
        OPTION_QUANTITY("patience", 0, "TIME", DIMENSION_SECONDS, &command.patience_s,
                      "how long to wait for ranks that do not come or answer (default 8s)"),
        OPTION_FLAG("tf32", 0, &command.tf32,
                    "round operands of matrix products on GPUs to tf32, which is faster"),
        OPTION_FLAG("nccl-sums", 0, &command.nccl_sums,
                    "add up over three GPUs and more by NCCL, in its own order"),
        OPTION_FORCE(&command.force),
        OPTION_FLAG("quiet", 'q', &command.quiet, "print no progress and no report"),
    };
    struct options options = {
        .command = "spillway-exec run",
        .arguments = "PLAN.json",
        .summary = "carry out a plan on this machine",
        .examples = (const char *const[]){"spillway-exec run plan.json --trace trace.json.gz",
                                          "mpirun -n 4 spillway-exec run plan.json", NULL},
        .details = "The first interrupt ends the run after the current minibatches, keeps their weights and "
                   "checkpoints and exits with 130; the second ends it at once. Exit code 1 if a job or its "
                   "checkpoints failed.",
        OPTIONS_TABLE(specs, 1, 1),
    };
    bool go_on;
    if (command_parse(&options, argc, argv, &go_on, err) != STATUS_OK || !go_on) return err->status;
    if (!command.dispatch && (command.policy || command.seed || command.executed_order))
        return error_set(err, STATUS_BAD_INPUT, "option '--%s' needs '--dispatch live'",
                         command.policy ? "policy" : command.seed ? "seed" : "executed-order");
    if (command.json && command.log && strcmp(command.log, "-") == 0)
        return error_set(err, STATUS_BAD_INPUT,
                         "'--log -' and '--json' cannot both have standard output");
    if (command.quiet) progress_disable();
    return run_file(&command, options.operands[0], stop, err);
}
