/*
 * `plan`: from a jobs file and a machine to a plan, its simulated makespan and how far that is from
 * a proven bound.
 *
 * planner_plan() takes jobs and machine over, so each policy of `--policy all` reads both anew. The
 * best plan of all is kept (by simulated makespan, the first of equal ones) and is what -o writes.
 * A policy that cannot place the jobs is a row of the answer; only when none can is the answer no.
 */
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "base/suggest.h"
#include "cli/cli.h"
#include "cli/cli_machine.h"
#include "cli/cli_plan_report.h"
#include "cli/cli_predict.h"
#include "planner/plan_io.h"
#include "planner/planner.h"

static const char *const activations_choices[] = {"auto", "recompute", "keep", "spill",
                                                 "keep-inputs", "spill-inputs", NULL};
static const char *const optimizer_choices[] = {"auto", "device", "cpu", "split", NULL};
static const char *const stored_choices[] = {"auto", "none", "all", NULL};

struct request {
    const char *jobs_path;
    const char *policy;
    const char *output; /* NULL: the plan is not kept */
    struct cli_machine machine;
    size_t activations; /* index into activations_choices */
    size_t optimizer;   /* index into optimizer_choices */
    size_t stored;      /* index into stored_choices: enum planner_storage */
    bool no_double_buffer;
    bool no_persistence;
    uint64_t regions, shards, seed;
    int argc;
    char **argv;
};

/* A plan and what the simulator says of it. */
struct candidate {
    struct plan plan;
    struct cli_prediction prediction;
};

static void candidate_release(struct candidate *candidate)
{
    cli_prediction_release(&candidate->prediction);
    plan_release(&candidate->plan);
    *candidate = (struct candidate){0};
}

/* --- one policy ------------------------------------------------------------------------------ */

static enum status make(const struct request *request, const char *policy, struct candidate *out,
                        struct error *err)
{
    struct planner_options options = {
        .policy = policy,
        .seed = request->seed,
        .no_double_buffer = request->no_double_buffer,
        .no_persistence = request->no_persistence,
        .regions = (uint32_t)request->regions,
        .activations = request->activations == 0 ? PLANNER_AUTO
                                                 : (uint32_t)request->activations - 1,
        .optimizer = request->optimizer == 0 ? PLANNER_AUTO : (uint32_t)request->optimizer - 1,
        .storage = (uint32_t)request->stored,
        .shards = (uint32_t)request->shards,
    };
    struct hardware hardware = {0};
    struct job_set jobs = {0};
    enum status status = cli_machine_read(&request->machine, &hardware, err);
    if (status == STATUS_OK) status = job_set_read(request->jobs_path, &jobs, err);
    if (status == STATUS_OK)
        status = planner_plan(&hardware, &jobs, &options, &out->plan, err);
    hardware_release(&hardware);
    job_set_release(&jobs);
    if (status == STATUS_OK)
        status = cli_predict(&out->plan, NULL, false, &out->prediction, err);
    return status;
}

static enum status check_policy(const char *policy, struct error *err)
{
    const char *names[CLI_POLICIES_MAX] = {"all"};
    size_t count = 1;
    for (uint32_t i = 0; planner_policy_name(i) && count < ARRAY_COUNT(names); i++)
        names[count++] = planner_policy_name(i);
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], policy) == 0) return STATUS_OK;
    const char *near = suggest(policy, names, count);
    if (near)
        return error_set(err, STATUS_BAD_INPUT, "unknown policy '%s' (did you mean '%s'?)", policy,
                         near);
    char list[512];
    return error_set(err, STATUS_BAD_INPUT, "unknown policy '%s' (expected %s)", policy,
                     suggest_list(names, count, list, sizeof list));
}

/* --- all policies ---------------------------------------------------------------------------- */

struct field { /* of all policies */
    struct cli_policy_outcome outcomes[CLI_POLICIES_MAX];
    size_t count, best;
    struct candidate kept; /* that of `best` */
    bool any;
};

static void note_outcome(struct cli_policy_outcome *outcome, const struct candidate *candidate)
{
    outcome->feasible = true;
    outcome->makespan_s = candidate->prediction.result.makespan_s;
    outcome->estimated_makespan_s = candidate->plan.estimated_makespan_s;
    outcome->lower_bound_s = candidate->plan.lower_bound_s;
    outcome->tokens_per_s = candidate->prediction.tokens_per_s;
    outcome->samples_per_s = candidate->prediction.samples_per_s;
    outcome->compute_share = candidate->prediction.compute_share;
}

static enum status try_policy(const struct request *request, const char *policy,
                              struct field *field, struct error *err)
{
    struct cli_policy_outcome *outcome = &field->outcomes[field->count];
    struct candidate candidate = {0};
    struct error why = {0};
    *outcome = (struct cli_policy_outcome){.policy = policy};
    if (make(request, policy, &candidate, &why) != STATUS_OK) {
        candidate_release(&candidate);
        if (why.status != STATUS_INFEASIBLE) return error_set(err, why.status, "%s", why.text);
        memcpy(outcome->reason, why.text, sizeof outcome->reason);
        field->count++;
        return STATUS_OK;
    }
    note_outcome(outcome, &candidate);
    if (!field->any || outcome->makespan_s < field->outcomes[field->best].makespan_s) {
        candidate_release(&field->kept);
        field->kept = candidate;
        field->best = field->count;
        field->any = true;
    } else {
        candidate_release(&candidate);
    }
    field->count++;
    return STATUS_OK;
}

static enum status try_all(const struct request *request, struct field *field, struct error *err)
{
    for (uint32_t i = 0; planner_policy_name(i) && field->count < CLI_POLICIES_MAX; i++)
        if (try_policy(request, planner_policy_name(i), field, err) != STATUS_OK)
            return err->status;
    if (!field->any)
        return error_set(err, STATUS_INFEASIBLE, "no policy finds a plan: %s",
                         field->outcomes[0].reason);
    return STATUS_OK;
}

/* --- the verb -------------------------------------------------------------------------------- */

/* Planning needs no data; whoever runs the plan does. */
static void warn_missing_data(struct cli *cli, const struct plan *plan)
{
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        const struct job *job = &plan->jobs.jobs[j];
        if (!job->data || access(job->data, R_OK) == 0) continue;
        cli_warn(cli, "the data of job '%s' cannot be read: '%s'", job->name, job->data);
        return; /* jobs that share a file are common, and one name is enough to look */
    }
}

static enum status report(struct cli *cli, const struct request *request,
                          const struct candidate *candidate, const struct field *field,
                          struct error *err)
{
    struct cli_plan_report content = {
        .plan = &candidate->plan,
        .prediction = &candidate->prediction,
        .jobs_path = request->jobs_path,
        .plan_path = request->output,
        .argc = request->argc,
        .argv = request->argv,
    };
    if (field) {
        content.outcomes = field->outcomes;
        content.outcome_count = field->count;
        content.best = field->best;
    }
    warn_missing_data(cli, &candidate->plan);
    if (request->output && plan_write(&candidate->plan, request->output, err) != STATUS_OK)
        return err->status;
    return cli->json ? cli_plan_json(cli, &content, err) : cli_plan_text(cli, &content, err);
}

static enum status plan(struct cli *cli, const struct request *request, struct error *err)
{
    enum status status;
    if (strcmp(request->policy, "all") == 0) {
        struct field field = {0};
        status = try_all(request, &field, err);
        if (status == STATUS_OK) status = report(cli, request, &field.kept, &field, err);
        candidate_release(&field.kept);
        return status;
    }
    struct candidate candidate = {0};
    status = make(request, request->policy, &candidate, err);
    if (status == STATUS_OK) status = report(cli, request, &candidate, NULL, err);
    candidate_release(&candidate);
    return status;
}

enum status verb_plan(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct request request = {
        .policy = "sharded-lrtf", .machine = CLI_MACHINE_NONE, .argc = argc, .argv = argv};
    const struct option_spec specs[] = {
        OPTION_STRING("output", 'o', "FILE", &request.output, "write the plan there"),
        OPTION_STRING("policy", 'p', "NAME", &request.policy,
                      "who decides the order, default sharded-lrtf; 'all' compares them"),
        CLI_MACHINE_NAME(&request.machine),
        CLI_MACHINE_SIZES(&request.machine),
        CLI_MACHINE_SPEEDS(&request.machine),
        CLI_MACHINE_STORAGE(&request.machine),
        OPTION_CHOICE("activations", 0, "HOW", activations_choices, &request.activations,
                      "what is kept for the backward pass, default auto"),
        OPTION_CHOICE("optimizer", 0, "PLACE", optimizer_choices, &request.optimizer,
                      "where streamed shards are updated, default auto"),
        OPTION_CHOICE("stored", 0, "STATES", stored_choices, &request.stored,
                      "states on storage, default auto: those that host memory has no room for"),
        OPTION_FLAG("no-double-buffer", 0, &request.no_double_buffer,
                    "load a shard only when the one before it has left"),
        OPTION_FLAG("no-persistence", 0, &request.no_persistence,
                    "keep no state on a device between its passes, whatever memory is left"),
        OPTION_U64("regions", 0, "N", 1, 8, &request.regions,
                   "regions for streamed shards on each device, default chosen"),
        OPTION_U64("shards", 0, "N", 1, PLAN_SHARDS_MAX, &request.shards,
                   "cut each job into at least so many shards, default as few as fit"),
        OPTION_U64("seed", 0, "N", 0, UINT64_MAX, &request.seed, "seed of the random policy"),
        CLI_COMMON_OPTIONS(cli),
    };
    struct options options = {
        .specs = specs,
        .spec_count = ARRAY_COUNT(specs),
        .argument_min = 1,
        .argument_max = 1,
        .examples =
            (const char *const[]){
                "spillway plan jobs.json -o plan.json",
                "spillway plan jobs.json --devices 2 --device-memory 96MiB --policy all",
                "spillway plan jobs.json --hw '4x rtx-3090-24gb' --json", NULL},
        .details = "Prints the plan's makespan as simulated, a lower bound that no plan can beat, "
                   "and where that bound comes from. Exit code 1 when the jobs fit in no way.",
    };
    bool go_on;
    if (cli_parse(cli, &options, argc, argv, &go_on, err) != STATUS_OK || !go_on)
        return err->status;
    request.jobs_path = options.operands[0];
    if (request.output && strcmp(request.output, "-") == 0)
        return error_set(err, STATUS_BAD_INPUT,
                         "option '--output' needs a file: standard output gets the report");
    if (check_policy(request.policy, err) != STATUS_OK) return err->status;
    return plan(cli, &request, err);
}
