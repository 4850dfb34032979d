/*
 * `plan`: a plan with its simulated makespan and its distance from a lower bound. With several plans
 * (`--policy all`, `--policy optimal`) the best is kept. A policy that cannot place the jobs is a row; only if all
 * fail, the answer is no.
 */
#include <float.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/json/json_in.h"
#include "base/size.h"
#include "base/try.h"
#include "base/files/file_kind.h"
#include "cli/common/cli.h"
#include "cli/common/cli_ignored.h"
#include "cli/document/cli_document.h"
#include "cli/history/cli_history.h"
#include "cli/process/cli_apart.h"
#include "cli/process/cli_load.h"
#include "cli/reports/cli_plan_report.h"
#include "cli/ways/cli_candidate.h"
#include "cli/ways/cli_keep.h"
#include "cli/ways/cli_milp.h"
#include "cli/ways/cli_optimal.h"
#include "cli/ways/cli_refusal.h"
#include "cli/ways/cli_saturn.h"
#include "cli/ways/cli_swap.h"
#include "cli/ways/cli_ways.h"
#include "models/jobs/job_files.h"
#include "planner/files/plan_io.h"
#include "planner/policy/policies.h"
#include "planner/policy/policy_load.h"
#include "planner/solve/instance/instance_io.h"
#include "plots/plot.h"

static const char *const activations_choices[] = {"auto", "recompute", "keep", "spill",
                                                 "keep-inputs", "spill-inputs", "mixed", "swap", NULL};
enum { ACTIVATIONS_MIXED = ACTIVATIONS_COUNT + 1, ACTIVATIONS_SWAP }; /* indexes into these */
static const char *const optimizer_choices[] = {"auto", "device", "cpu", "split", NULL};
static const char *const cuts_choices[] = {"greedy", "balanced", NULL};
static const char *const stored_choices[] = {"auto", "none", "all", NULL};

struct plan_request {
    struct cli_source source;
    const char *jobs_path;
    const char *policy; /* NULL: the planner's choice */
    const char *output; /* may be NULL */
    const char *instance; /* may be NULL */
    const char *timetable; /* may be NULL */
    size_t activations; /* index into activations_choices */
    size_t rule;        /* in cli_swap_rules, or CLI_SWAP_RULE_NONE */
    struct swap_options swap; /* from the options */
    size_t optimizer;   /* index into optimizer_choices */
    size_t cuts;        /* in cuts_choices: enum planner_cuts */
    size_t dispatch;    /* index into cli_dispatches */
    size_t stored;      /* in stored_choices: enum planner_storage */
    bool runnable;      /* only what `run` can carry out */
    bool no_double_buffer;
    bool no_persistence;
    uint64_t weight_buffers, shards, seed, iterations;
    double time_limit_s;
    double keep_bytes;  /* host memory for kept outputs */
    double interval_s, threshold_s, restart_s; /* saturn and its rivals; below 0: not given */
    int argc;
    char **argv;
};

/* --- options ----------------------------------------------------------------------------------- */

static bool swaps(const struct plan_request *request) { return request->activations == ACTIVATIONS_SWAP; }

static struct planner_options planner_options_of(const struct plan_request *request, const char *policy)
{
    return (struct planner_options){
        .policy = policy,
        .seed = request->seed,
        .live = request->dispatch > 0,
        .no_double_buffer = request->no_double_buffer,
        .no_persistence = request->no_persistence,
        .weight_buffers = (uint32_t)request->weight_buffers,
        .activations = request->activations == 0 || request->activations >= ACTIVATIONS_MIXED
                           ? PLANNER_AUTO
                           : (uint32_t)request->activations - 1,
        .mixed = request->activations == ACTIVATIONS_MIXED,
        .swap = swaps(request) ? &request->swap : NULL,
        .optimizer = request->optimizer == 0 ? PLANNER_AUTO : (uint32_t)request->optimizer - 1,
        .storage = (uint32_t)request->stored,
        .cuts = (uint32_t)request->cuts,
        .shards = (uint32_t)request->shards,
        .iterations = (uint32_t)request->iterations,
        .time_limit_s = request->time_limit_s == 0  ? DBL_MIN /* at once */
                        : request->time_limit_s < 0 ? 0
                                                    : request->time_limit_s,
    };
}

static bool asks_for(const struct plan_request *request, const char *policy)
{
    return request->policy && strcmp(request->policy, policy) == 0;
}

static enum status open_and_close(void *context, struct error *err)
{
    struct policy_handle handle = {0};
    (void)!policy_open(*(const char **)context, &handle, err);
    policy_close(&handle);
    return err->status;
}

/* Checks a name before anything is read; a file is checked when it is loaded. */
static enum status check_policy(const char *policy, struct error *err)
{
    const char *others[SATURN_RULES + 4] = {NULL};
    enum saturn_rule rule;
    if (!policy || strcmp(policy, "all") == 0 || saturn_rule_find(policy, &rule)) return STATUS_OK;
    for (uint32_t r = 0; r < SATURN_RULES; r++) others[r] = saturn_rule_names[r];
    others[SATURN_RULES] = "all";
    others[SATURN_RULES + 1] = policy_milp.name;
    others[SATURN_RULES + 2] = policy_shared_base.name;
    if (strcmp(policy, cli_resident_name) == 0)
        return error_set(err, STATUS_BAD_INPUT, "'%s' is not a policy: it is chosen if it is better than spilling "
                         "(expected no '--policy')", cli_resident_name);
    if (!policy_is_file(policy) && !policy_find(policy)) return policy_unknown(policy, others, err);
    return cli_try_apart(policy, open_and_close, &policy, err);
}

/* Writes the instance of the planner's own spilling cut. */
static enum status write_instance(const struct plan_request *request, struct error *err)
{
    struct instance instance = {0};
    struct cli_candidate candidate = {0};
    struct planner_options options = planner_options_of(request, policy_sharded_lrtf.name);
    options.instance = &instance;
    if (!cli_candidate_make(&request->source, &options, &candidate, err) &&
        instance_write(&instance, request->instance, err)) {}
    cli_candidate_release(&candidate);
    instance_release(&instance);
    return err->status;
}

/* --- the verb -------------------------------------------------------------------------------- */

/* Warns of missing data, which must be where the plan runs. */
static void warn_missing_data(struct cli *cli, const struct plan *plan)
{
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        const struct job *job = &plan->jobs.jobs[j];
        if (!job->data || access(job->data, R_OK) == 0) continue;
        cli_warn(cli, "the data of job '%s' cannot be read: '%s'", job->name, job->data);
        return; /* one name is enough */
    }
}

/* Names an option of spilling, which states on devices do not use. */
static const char *spilling_option(const struct plan_request *request)
{
    const struct {
        bool given;
        const char *name;
    } options[] = {
        {request->optimizer > 0, "optimizer"},
        {request->cuts > 0, "cuts"},
        {request->stored > 0, "stored"},
        {request->no_double_buffer, "no-double-buffer"},
        {request->no_persistence, "no-persistence"},
        {request->weight_buffers > 0, "weight-buffers"},
        {request->shards > 0, "shards"},
        {request->timetable != NULL, "schedule-from"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(options); i++)
        if (options[i].given) return options[i].name;
    return NULL;
}

static enum status check_for_parallel(const struct plan_request *request, const struct plan *plan, struct error *err)
{
    const char *option = request->dispatch > 0 && !plan_is_open(plan) ? "dispatch" : spilling_option(request);
    if (request->activations > 0) option = "activations (expected --recompute)";
    bool spilled = false;
    for (uint32_t j = 0; j < plan->jobs.count; j++) spilled |= !parallel_is_set(&plan->jobs.jobs[j].parallel);
    if (spilled || !option) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT, "option '--%s' is not for parallel jobs", option);
}

static enum status check_for_swap(const struct plan_request *request, struct error *err)
{
    const char *option = spilling_option(request);
    if (!swaps(request) && request->rule != CLI_SWAP_RULE_NONE)
        return error_set(err, STATUS_BAD_INPUT, "option '--rule' is for --activations swap");
    if (!swaps(request)) return STATUS_OK;
    if (request->dispatch > 0) option = "dispatch";
    if (request->policy) option = "policy (a job's layers run in their order)";
    if (request->instance) option = "write-instance";
    if (!option) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT, "--activations swap cannot be used with --%s", option);
}

static enum status check_for_saturn(const struct plan_request *request, struct error *err)
{
    const char *of_stops = request->restart_s >= 0 ? "restart" : request->threshold_s >= 0 ? "threshold" : NULL;
    const char *option = of_stops ? of_stops : request->interval_s >= 0 ? "interval" : NULL;
    enum saturn_rule rule = SATURN_RULE_SPASE;
    if (!option) return STATUS_OK;
    if (!saturn_rule_find(request->policy, &rule))
        return error_set(err, STATUS_BAD_INPUT, "option '--%s' is for --policy saturn and its rivals", option);
    if (of_stops && !(request->interval_s > 0) && rule != SATURN_RULE_OPTIMUS_DYNAMIC)
        return error_set(err, STATUS_BAD_INPUT, "option '--%s' is for replanning (expected '--interval')", of_stops);
    return STATUS_OK;
}

struct bars {
    struct plot_policy policies[CLI_POLICIES_MAX];
    uint32_t count;
    double lower_bound_s;
};

static enum status draw_bars(const void *context, const char *path, struct error *err)
{
    const struct bars *bars = context;
    return plot_throughput(bars->policies, bars->count, bars->lower_bound_s, path, &(struct plot_options){0}, err);
}

/* Draws policies, and the chosen plan, simulated with its operations. */
static void draw(struct cli *cli, const struct cli_candidate *candidate, const struct cli_field *field)
{
    struct bars bars = {.lower_bound_s = field && field->count > 0 ? field->outcomes[0].lower_bound_s : 0};
    struct cli_prediction prediction = {0};
    struct error err = {0};
    if (!cli->document) return;
    for (size_t i = 0; field && i < field->count; i++)
        if (field->outcomes[i].kind == CLI_OUTCOME_PLAN)
            bars.policies[bars.count++] = (struct plot_policy){.name = field->outcomes[i].policy,
                                                               .makespan_s = field->outcomes[i].makespan_s,
                                                               .tokens_per_s = field->outcomes[i].tokens_per_s};
    if (bars.count > 0) cli_document_draw(cli, "Throughput of the policies", draw_bars, &bars);
    cli_document_simulated(cli, &candidate->plan.hardware);
    if (!cli_document_wants_spans(cli, plan_operations(&candidate->plan))) return;
    const struct cli_predict_options how = {.spans = true};
    if (cli_predict(&candidate->plan, NULL, &how, &prediction, &err) == STATUS_OK)
        cli_document_traces(cli, &prediction.trace, NULL);
    else
        cli_warn(cli, "the report has no timeline: %s", err.text);
    cli_prediction_release(&prediction);
}

static enum status report(struct cli *cli, const struct plan_request *request,
                          const struct cli_candidate *candidate, const struct cli_field *field,
                          const struct order_claim *claim, const struct planner_search *search,
                          const struct cli_keep *keep, struct error *err)
{
    struct cli_refusal refusal;
    const struct saturn_report *saturn = candidate->by_saturn ? &candidate->saturn : NULL;
    struct cli_plan_report content = {
        .refusal = &refusal,
        .plan = &candidate->plan,
        .prediction = &candidate->prediction,
        .swap = &candidate->swap,
        .jobs_path = request->jobs_path,
        .plan_path = request->output,
        .policy = asks_for(request, "all") ? NULL : request->policy,
        .claim = request->timetable ? claim : NULL,
        .saturn = saturn,
        .by_default = field && !request->policy,
        .search = search,
        .keep = keep,
        .time_limit_s = request->time_limit_s,
        .argc = request->argc,
        .argv = request->argv,
    };
    bool by_milp = asks_for(request, "milp") || strcmp(candidate->plan.policy, "milp") == 0;
    if (field && by_milp) content.milp = &field->milp;
    if (field && field->count > 1) {
        content.outcomes = field->outcomes;
        content.outcome_count = field->count;
        content.plans_only = asks_for(request, "optimal") || asks_for(request, "milp");
        content.best = field->best;
    }
    TRY(check_for_parallel(request, &candidate->plan, err));
    TRY(job_set_files_declare(&candidate->plan.jobs, false, err));
    cli_load_warn_profile(cli, &candidate->plan.hardware);
    cli_warn_ignored(cli, &candidate->plan.jobs);
    cli_warn_tf32(cli, &candidate->plan.hardware, &candidate->plan.jobs);
    if (request->output && plan_write(&candidate->plan, request->output, err) != STATUS_OK)
        return err->status;
    TRY(cli_refusal_ask(cli, &candidate->plan, request->output, &refusal, err));
    if (!refusal.asked) warn_missing_data(cli, &candidate->plan);
    const struct cli_prediction *prediction = &candidate->prediction;
    cli_history_keep(cli, &(struct cli_outcome){.file = request->jobs_path, .policy = candidate->plan.policy,
                                                .plan = &candidate->plan, .hardware = &candidate->plan.hardware,
                                                .plan_fingerprint = prediction->trace.plan_fingerprint,
                                                .predicted_s = prediction->result.makespan_s,
                                                .predicted_tokens_per_s = prediction->tokens_per_s});
    draw(cli, candidate, field);
    return cli->json ? cli_plan_json(cli, &content, err) : cli_plan_text(cli, &content, err);
}

/* Plans all ways; without a policy, only the ways that take about a second. */
static enum status plan_ways(struct cli *cli, const struct plan_request *request, struct error *err)
{
    struct cli_field *field = alloc_zeroed(1, sizeof *field);
    if (!field) return error_memory(err, "plans", sizeof *field);
    struct planner_options options = planner_options_of(request, request->policy);
    const struct cli_ways_options how = {.fixed = &options, .every_policy = asks_for(request, "all"),
                                         .thorough = asks_for(request, "all"), .runnable = request->runnable};
    enum status status = asks_for(request, "optimal") ? cli_optimal(&request->source, &options, field, err)
                         : asks_for(request, "milp")  ? cli_milp(&request->source, &options, field, err)
                                                      : cli_ways(&request->source, &how, field, err);
    cli_field_sort(field);
    if (status == STATUS_OK)
        status = report(cli, request, &field->kept, field, NULL, &field->search, NULL, err);
    cli_field_release(field);
    free(field);
    return status;
}

/* Plans the jobs as they are. */
static enum status plan_without(void *context, struct cli_field *field, struct error *err)
{
    const struct plan_request *request = context;
    struct planner_options options = planner_options_of(request, request->policy);
    const struct cli_ways_options how = {.fixed = &options, .runnable = request->runnable};
    if (request->policy) return cli_field_try(field, &request->source, &options, request->policy, err);
    return cli_ways(&request->source, &how, field, err);
}

static enum status plan_keeping(struct cli *cli, struct plan_request *request, struct error *err)
{
    struct cli_keep keep = {.budget_bytes = request->keep_bytes};
    struct cli_field *field = alloc_zeroed(1, sizeof *field);
    if (!field) return error_memory(err, "plans", sizeof *field);
    const struct planner_options options = planner_options_of(request, request->policy);
    enum status status = cli_keep(&request->source, &options, plan_without, request, &keep, field, err);
    if (status == STATUS_OK) status = cli_field_check(field, err);
    cli_field_sort(field);
    if (status == STATUS_OK)
        status = report(cli, request, &field->kept, field, NULL, &field->search, &keep, err);
    cli_field_release(field);
    free(field);
    cli_keep_release(&keep);
    return status;
}

static enum status plan_saturn(struct cli *cli, const struct plan_request *request, enum saturn_rule rule,
                               struct error *err)
{
    struct cli_candidate candidate = {0};
    struct planner_search search = {0};
    struct planner_options spilled = planner_options_of(request, NULL);
    spilled.search = &search;
    const struct saturn_options options = {.spilled = &spilled, .rule = rule, .interval_s = request->interval_s,
                                           .threshold_s = request->threshold_s, .restart_s = request->restart_s};
    enum status status = cli_saturn(&request->source, &options, &candidate, &candidate.saturn, err);
    candidate.by_saturn = true;
    if (status == STATUS_OK) status = report(cli, request, &candidate, NULL, NULL, &search, NULL, err);
    cli_candidate_release(&candidate);
    return status;
}

static enum status plan_one(struct cli *cli, const struct plan_request *request, struct error *err)
{
    struct cli_candidate candidate = {0};
    struct order_claim claim = {0};
    struct planner_options options = planner_options_of(request, request->policy);
    options.timetable = request->timetable;
    options.claim = &claim;
    enum status status = cli_candidate_make(&request->source, &options, &candidate, err);
    if (status == STATUS_OK) status = report(cli, request, &candidate, NULL, &claim, NULL, NULL, err);
    cli_candidate_release(&candidate);
    return status;
}

static enum status plan_as_asked(struct cli *cli, struct plan_request *request, struct error *err)
{
    if (request->keep_bytes > 0) return plan_keeping(cli, request, err);
    if (request->instance && write_instance(request, err) != STATUS_OK) return err->status;
    enum saturn_rule rule;
    if (saturn_rule_find(request->policy, &rule)) return plan_saturn(cli, request, rule, err);
    bool searched = asks_for(request, "optimal") || asks_for(request, "milp");
    bool several = !request->policy || asks_for(request, "all") || searched;
    return several && !request->timetable && !swaps(request) ? plan_ways(cli, request, err)
                                                             : plan_one(cli, request, err);
}

/* Outputs are kept by jobs whose states are spilled, in an order that is planned. */
static enum status check_for_keeping(const struct plan_request *request, struct error *err)
{
    enum saturn_rule rule;
    const struct policy *policy = request->policy ? policy_find(request->policy) : NULL;
    const char *option = request->dispatch > 0 ? "dispatch live"
                         : swaps(request)      ? "activations swap"
                         : request->instance   ? "write-instance"
                         : request->timetable  ? "schedule-from"
                         : cli_parallel_given(&request->source.parallel) ? "parallel"
                         : request->stored > 1 ? "stored all" : NULL;
    if (!(request->keep_bytes > 0)) return STATUS_OK;
    if (option) return error_set(err, STATUS_BAD_INPUT, "option '--keep-outputs' cannot be used with --%s", option);
    const bool shares = asks_for(request, policy_shared_base.name);
    if (!request->policy || (policy && !policy->resident && !shares) || policy_is_file(request->policy))
        return STATUS_OK;
    const bool known = policy || saturn_rule_find(request->policy, &rule) || asks_for(request, "all") ||
                       asks_for(request, policy_milp.name) || shares;
    if (!known) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT, "option '--keep-outputs' is for policies that spill states and decide an "
                     "order (found --policy %s)", request->policy);
}

/* Refuses options that contradict each other or the policy. */
static enum status check_request(const struct plan_request *request, struct error *err)
{
    TRY(cli_refuse_dash("output", request->output, err));
    TRY(cli_refuse_dash("write-instance", request->instance, err));
    if (request->runnable && ((request->policy && !asks_for(request, "all")) || request->timetable || swaps(request)))
        return error_set(err, STATUS_BAD_INPUT, "option '--runnable' is for plans of which there is a choice "
                                                "(expected no '--policy', or 'all')");
    if (request->timetable && request->policy)
        return error_set(err, STATUS_BAD_INPUT,
                         "option '--schedule-from' takes the place of a policy's decisions (expected no '--policy')");
    TRY(check_for_swap(request, err));
    TRY(check_for_saturn(request, err));
    TRY(check_for_keeping(request, err));
    if (asks_for(request, "milp") && request->dispatch > 0)
        return error_set(err, STATUS_BAD_INPUT,
                         "--policy milp decides an order, which --dispatch live leaves to the run (expected another "
                         "policy, or '--dispatch plan')");
    return check_policy(request->policy, err);
}

enum status verb_plan(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct plan_request request = {
        .source.machine = CLI_MACHINE_NONE,
        .source.parallel = CLI_PARALLEL_NONE,
        .time_limit_s = -1,
        .interval_s = -1,
        .threshold_s = -1,
        .restart_s = -1,
        .rule = CLI_SWAP_RULE_NONE,
        .argc = argc,
        .argv = argv,
    };
    const struct option_spec specs[] = {
        OPTION_OUTPUT("output", 'o', "FILE", FILE_KIND_PLAN, &request.output, "plan to write"),
        OPTION_STRING("policy", 'p', "NAME", &request.policy,
                      "built-in policy, ./mine.so or 'all' (default: the fastest way of all)"),
        OPTION_OUTPUT("write-instance", 0, "FILE", FILE_KIND_INSTANCE, &request.instance,
                      "write the cut jobs as an instance for 'spillway solve'"),
        OPTION_STRING("schedule-from", 0, "FILE", &request.timetable,
                      "use the order of a timetable that 'solve' made of that instance"),
        CLI_MACHINE_NAME(&request.source.machine),
        CLI_MACHINE_SIZES(&request.source.machine),
        CLI_MACHINE_SPEEDS(&request.source.machine),
        CLI_MACHINE_STACK(&request.source.machine),
        CLI_MACHINE_STORAGE(&request.source.machine),
        CLI_PARALLEL(&request.source.parallel),
        OPTION_CHOICE("dispatch", 0, "WHEN", cli_dispatches, &request.dispatch,
                      "plan: a fixed order; live: leave the order to the run (default plan)"),
        OPTION_CHOICE("activations", 0, "HOW", activations_choices, &request.activations,
                      "what happens to activations until the backward pass (default auto)"),
        CLI_SWAP_RULE(&request.rule),
        OPTION_CHOICE("optimizer", 0, "PLACE", optimizer_choices, &request.optimizer,
                      "where the optimizer updates spilled shards (default auto)"),
        OPTION_CHOICE("stored", 0, "STATES", stored_choices, &request.stored,
                      "states to keep on storage (default auto: states that do not fit)"),
        OPTION_QUANTITY("keep-outputs", 0, "SIZE", DIMENSION_BYTES, &request.keep_bytes,
                        "host memory for outputs of frozen layers, kept if that is faster (default 0)"),
        OPTION_FLAG("runnable", 0, &request.runnable, "consider only plans that 'spillway run' can carry out"),
        OPTION_FLAG("no-double-buffer", 0, &request.no_double_buffer,
                    "load a shard only after the shard before it has left"),
        OPTION_FLAG("no-persistence", 0, &request.no_persistence,
                    "keep no state on a device between passes, even if memory is left"),
        OPTION_U64("weight-buffers", 0, "N", 1, 8, &request.weight_buffers,
                   "weight buffers for spilled shards on each device (default: chosen)"),
        OPTION_CHOICE("cuts", 0, "HOW", cuts_choices, &request.cuts,
                      "how jobs are cut into shards (default greedy: as few as fit)"),
        OPTION_U64("shards", 0, "N", 1, PLAN_SHARDS_MAX, &request.shards,
                   "least number of shards of each job (default: as few as fit)"),
        OPTION_U64("seed", 0, "N", 0, UINT64_MAX, &request.seed, "random seed of the policy (default 0)"),
        OPTION_U64("iterations", 0, "N", 1, UINT32_MAX, &request.iterations,
                   "orders that optimal tries for each cut (default 400), programs of milp (40)"),
        OPTION_QUANTITY("time-limit", 0, "TIME", DIMENSION_SECONDS, &request.time_limit_s,
                        "limit of policies optimal, milp (default none) and of each swap search (10s)"),
        OPTION_QUANTITY("interval", 0, "TIME", DIMENSION_SECONDS, &request.interval_s,
                        "replan at this interval, such as 1h, for saturn and rivals (default: never)"),
        OPTION_QUANTITY("threshold", 0, "TIME", DIMENSION_SECONDS, &request.threshold_s,
                        "gain that a new plan needs, such as 5min (default: half an interval)"),
        OPTION_QUANTITY("restart", 0, "TIME", DIMENSION_SECONDS, &request.restart_s,
                        "loss of a job that moves, such as 1min (default: to move the largest state)"),
        CLI_HISTORY_OPTION(cli),
        CLI_ANSWER_OPTIONS(cli),
    };
    struct options options = {
        OPTIONS_TABLE(specs, 1, 1),
        .examples =
            (const char *const[]){
                "spillway plan jobs.json -o plan.json",
                "spillway plan jobs.json --devices 2 --device-memory 96MiB --policy all",
                "spillway plan jobs.json --hw '4x rtx-3090-24gb' --json", NULL},
        .details = "Prints the simulated makespan of the plan, a lower bound that no plan of these jobs can "
                   "beat, and its proof; then the plan's own bound, where plans like it have a higher one. "
                   "Policy 'all' compares all ways and policies. Policy 'saturn' and its rivals "
                   "max-heuristic, min-heuristic, optimus, optimus-dynamic and randomized also choose the "
                   "parallelism and the devices of each job. A shared object (./mine.so) runs in a process of its "
                   "own. Policy optimus-dynamic replans every 1000s by default. Exit code 1 if the jobs fit in no "
                   "way.",
    };
    CLI_PARSE(cli, &options, argc, argv, err);
    request.jobs_path = options.operands[0];
    TRY(check_request(&request, err));
    request.swap = cli_swap_options(request.rule, request.time_limit_s);
    struct job_set jobs = {0};
    request.source.jobs = &jobs;
    enum status status = cli_jobs_read(request.jobs_path, &jobs, err);
    if (status == STATUS_OK) status = plan_as_asked(cli, &request, err);
    job_set_release(&jobs);
    return status;
}
