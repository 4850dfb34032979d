/* See cli_candidate.h. */
#include "cli/cli_candidate.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json_in.h"
#include "base/random.h"
#include "cli/cli_apart.h"
#include "cli/cli_child.h"
#include "planner/plan_io.h"
#include "planner/policy_load.h"

/* Fisher and Yates. */
static void reorder(struct job_set *jobs, uint64_t seed)
{
    for (uint32_t i = jobs->count; i > 1; i--) {
        uint32_t j = (uint32_t)random_below(seed, i, i);
        struct job swap = jobs->jobs[i - 1];
        jobs->jobs[i - 1] = jobs->jobs[j];
        jobs->jobs[j] = swap;
    }
}

enum status cli_source_jobs(const struct cli_source *source, struct job_set *out, struct error *err)
{
    if (!source->jobs) return job_set_read(source->jobs_path, out, err);
    return job_set_parse(source->jobs, json_input_root(source->jobs), ".", out, err);
}

static enum status plan_here(const struct cli_source *source, const struct planner_options *options,
                               struct cli_candidate *out, struct error *err)
{
    struct hardware hardware = {0};
    struct job_set jobs = {0};
    struct planner_options reported = *options;
    reported.swap_report = &out->swap;
    enum status status = cli_source_jobs(source, &jobs, err);
    if (status == STATUS_OK) status = cli_machine_read(&source->machine, &hardware, err);
    if (status == STATUS_OK) status = cli_parallel_apply(&source->parallel, &jobs, err);
    if (status == STATUS_OK && source->order > 0) reorder(&jobs, source->order);
    if (status == STATUS_OK) status = planner_plan(&hardware, &jobs, &reported, &out->plan, err);
    hardware_release(&hardware);
    job_set_release(&jobs);
    return status;
}

struct planning {
    const struct cli_source *source;
    const struct planner_options *options;
    const char *path; /* of the plan */
};

static enum status plan_and_write(void *context, struct error *err)
{
    const struct planning *planning = context;
    struct cli_candidate candidate = {0};
    if (plan_here(planning->source, planning->options, &candidate, err) == STATUS_OK)
        (void)!plan_write(&candidate.plan, planning->path, err);
    cli_candidate_release(&candidate);
    return err->status;
}

/* The user's code is never loaded here: a child plans, and its plan is read, and checked, as a file's is. */
static enum status plan_apart(const struct cli_source *source, const struct planner_options *options,
                              struct cli_candidate *out, struct error *err)
{
    char path[CLI_PATH_BYTES];
    struct planning planning = {source, options, path};
    if (cli_child_file(path, err) != STATUS_OK) return err->status;
    if (cli_try_apart(options->policy, plan_and_write, &planning, err) == STATUS_OK &&
        plan_read(path, &out->plan, err) != STATUS_OK)
        error_add(err, "%s: the process of the policy left a plan that is wrong", options->policy);
    unlink(path);
    return err->status;
}

/* Swapping asks no policy. */
enum status cli_candidate_plan(const struct cli_source *source, const struct planner_options *options,
                               struct cli_candidate *out, struct error *err)
{
    const bool apart = options->policy && policy_is_file(options->policy) && !options->swap && !source->contained;
    return apart ? plan_apart(source, options, out, err) : plan_here(source, options, out, err);
}

enum status cli_candidate_make(const struct cli_source *source, const struct planner_options *options,
                               struct cli_candidate *out, struct error *err)
{
    enum status status = cli_candidate_plan(source, options, out, err);
    return status ? status : cli_predict(&out->plan, NULL, NULL, &out->prediction, err);
}

void cli_candidate_release(struct cli_candidate *candidate)
{
    cli_prediction_release(&candidate->prediction);
    swap_report_release(&candidate->swap);
    plan_release(&candidate->plan);
    *candidate = (struct cli_candidate){0};
}

static void note_outcome(struct cli_policy_outcome *outcome, const struct cli_candidate *candidate)
{
    outcome->feasible = true;
    outcome->makespan_s = candidate->prediction.result.makespan_s;
    outcome->estimated_makespan_s = candidate->plan.estimated_makespan_s;
    outcome->lower_bound_s = candidate->plan.lower_bound_s;
    outcome->tokens_per_s = candidate->prediction.tokens_per_s;
    outcome->samples_per_s = candidate->prediction.samples_per_s;
    outcome->compute_share = candidate->prediction.compute_share;
}

enum status cli_field_try(struct cli_field *field, const struct cli_source *source,
                          const struct planner_options *options, const char *label,
                          struct error *err)
{
    if (field->count == CLI_POLICIES_MAX) return STATUS_OK;
    struct cli_policy_outcome *outcome = &field->outcomes[field->count];
    struct cli_candidate candidate = {0};
    struct error why = {0};
    *outcome = (struct cli_policy_outcome){0};
    snprintf(outcome->policy, sizeof outcome->policy, "%s", label);
    if (cli_candidate_make(source, options, &candidate, &why) != STATUS_OK) {
        cli_candidate_release(&candidate);
        if (why.status != STATUS_INFEASIBLE) return error_set(err, why.status, "%s", why.text);
        memcpy(outcome->reason, why.text, sizeof outcome->reason);
        field->count++;
        return STATUS_OK;
    }
    cli_field_take(field, &candidate, label);
    return STATUS_OK;
}

void cli_field_take(struct cli_field *field, struct cli_candidate *candidate, const char *label)
{
    struct cli_policy_outcome *outcome = &field->outcomes[field->count];
    *outcome = (struct cli_policy_outcome){0};
    snprintf(outcome->policy, sizeof outcome->policy, "%s", label);
    note_outcome(outcome, candidate);
    if (!field->any || outcome->makespan_s < field->outcomes[field->best].makespan_s) {
        cli_candidate_release(&field->kept);
        field->kept = *candidate;
        *candidate = (struct cli_candidate){0};
        field->best = field->count;
        field->any = true;
    } else {
        cli_candidate_release(candidate);
    }
    field->count++;
}

enum status cli_field_check(const struct cli_field *field, struct error *err)
{
    if (field->any) return STATUS_OK;
    return error_set(err, STATUS_INFEASIBLE, "no policy finds a plan: %s", field->outcomes[0].reason);
}

void cli_field_release(struct cli_field *field)
{
    cli_candidate_release(&field->kept);
}
