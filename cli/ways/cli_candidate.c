#include "cli/ways/cli_candidate.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/extreme.h"
#include "base/files/file_kind.h"
#include "base/json/json_in.h"
#include "base/random.h"
#include "base/try.h"
#include "cli/process/cli_apart.h"
#include "cli/process/cli_child.h"
#include "models/jobs/jobs_file.h"
#include "planner/files/plan_io.h"
#include "planner/plan_runnable.h"
#include "planner/policy/policy_load.h"

/* Shuffles jobs (Fisher and Yates). */
static void reorder(struct job_set *jobs, uint64_t seed)
{
    for (uint32_t i = jobs->count; i > 1; i--) {
        uint32_t j = (uint32_t)random_below(seed, i, i);
        struct job swap = jobs->jobs[i - 1];
        jobs->jobs[i - 1] = jobs->jobs[j];
        jobs->jobs[j] = swap;
    }
}

enum status cli_jobs_read(const char *path, struct job_set *out, struct error *err)
{
    struct json_input *in = NULL;
    if (!file_kind_is_stream(path)) return job_set_read(path, out, err);
    TRY(json_input_read(path, &in, err));
    enum status status = job_set_parse(in, json_input_root(in), ".", out, err);
    json_input_destroy(in);
    return status;
}

/* Applies parallelism; minibatches stay the file's. */
static void make_parallel(const struct parallel *parallel, struct job_set *jobs)
{
    for (uint32_t j = 0; j < jobs->count; j++) {
        struct job *job = &jobs->jobs[j];
        uint64_t blocks = network_is_listed(&job->network) ? job->network.layer_count : job->network.blocks;
        job->parallel = *parallel;
        if (parallel->chunks > 1 && parallel->pipeline == 1)
            job->parallel.chunks = (uint32_t)min_u64(parallel->chunks, max_u64(blocks, 1));
    }
}

static void shorten(double share, struct job_set *jobs)
{
    for (uint32_t j = 0; j < jobs->count; j++) {
        if (job_makes_outputs(&jobs->jobs[j])) continue; /* of all samples */
        uint64_t minibatches = (uint64_t)(share * (double)jobs->jobs[j].minibatches);
        jobs->jobs[j].minibatches = min_u64(max_u64(minibatches, 2), jobs->jobs[j].minibatches);
    }
}

static enum status plan_here(const struct cli_source *source, const struct planner_options *options,
                               struct cli_candidate *out, struct error *err)
{
    struct hardware hardware = {0};
    struct job_set jobs = {0};
    struct planner_options reported = *options;
    reported.swap_report = &out->swap;
    enum status status = job_set_share(source->jobs, &jobs, err);
    if (status == STATUS_OK) status = cli_machine_read(&source->machine, &hardware, err);
    if (status == STATUS_OK) status = cli_parallel_apply(&source->parallel, &jobs, err);
    if (status == STATUS_OK && source->way) make_parallel(source->way, &jobs);
    if (status == STATUS_OK && source->shortened > 0) shorten(source->shortened, &jobs);
    if (status == STATUS_OK && source->order > 0) reorder(&jobs, source->order);
    if (status == STATUS_OK) status = planner_plan(&hardware, &jobs, &reported, &out->plan, err);
    hardware_release(&hardware);
    job_set_release(&jobs);
    return status;
}

struct candidate_planning {
    const struct cli_source *source;
    const struct planner_options *options;
    const char *path; /* of the plan */
};

static enum status plan_and_write(void *context, struct error *err)
{
    const struct candidate_planning *planning = context;
    struct cli_candidate candidate = {0};
    if (plan_here(planning->source, planning->options, &candidate, err) == STATUS_OK)
        (void)!plan_write(&candidate.plan, planning->path, err);
    cli_candidate_release(&candidate);
    return err->status;
}

/* Plans by a user's policy in a child process; this process reads and checks the plan, and never loads the policy. */
static enum status plan_apart(const struct cli_source *source, const struct planner_options *options,
                              struct cli_candidate *out, struct error *err)
{
    char path[CLI_PATH_BYTES];
    struct candidate_planning planning = {source, options, path};
    TRY(cli_child_file(path, err));
    if (cli_try_apart(options->policy, plan_and_write, &planning, err) == STATUS_OK &&
        plan_read(path, &out->plan, err) != STATUS_OK)
        error_add(err, "%s: the process of the policy left a plan that is wrong", options->policy);
    unlink(path);
    return err->status;
}

/* Makes only the plan; swapping asks no policy. */
static enum status cli_candidate_plan(const struct cli_source *source, const struct planner_options *options,
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

/* --- fields ---------------------------------------------------------------------------------- */

static struct cli_policy_outcome *add_outcome(struct cli_field *field, const char *label)
{
    assert(field->count < CLI_POLICIES_MAX);
    struct cli_policy_outcome *outcome = &field->outcomes[field->count];
    *outcome = (struct cli_policy_outcome){0};
    snprintf(outcome->policy, sizeof outcome->policy, "%s", label);
    return outcome;
}

static void note_plan(struct cli_policy_outcome *outcome, const struct cli_candidate *candidate)
{
    struct error why = {0};
    outcome->kind = CLI_OUTCOME_PLAN;
    outcome->runnable = plan_runnable(&candidate->plan, &why) == STATUS_OK;
    snprintf(outcome->reason, sizeof outcome->reason, "%s", why.text);
    outcome->makespan_s = candidate->prediction.result.makespan_s;
    outcome->estimated_makespan_s = candidate->plan.estimated_makespan_s;
    outcome->lower_bound_s = candidate->plan.lower_bound_s;
    outcome->tokens_per_s = candidate->prediction.tokens_per_s;
    outcome->samples_per_s = candidate->prediction.samples_per_s;
    outcome->compute_share = candidate->prediction.compute_share;
}

bool cli_field_lacks(const struct cli_field *field, const char *label)
{
    for (size_t i = 0; i < field->count; i++)
        if (strcmp(field->outcomes[i].policy, label) == 0) return false;
    return field->count < CLI_POLICIES_MAX;
}

void cli_field_note(struct cli_field *field, const char *label, enum status status, const char *reason)
{
    if (field->count == CLI_POLICIES_MAX) return;
    struct cli_policy_outcome *outcome = add_outcome(field, label);
    outcome->kind = status == STATUS_OK           ? CLI_OUTCOME_NOT_TRIED
                    : status == STATUS_INFEASIBLE ? CLI_OUTCOME_NO_ROOM
                                                  : CLI_OUTCOME_REFUSED;
    snprintf(outcome->reason, sizeof outcome->reason, "%s", reason);
    field->count++;
}

enum status cli_field_fail(struct cli_field *field, const char *label, const struct error *why, struct error *err)
{
    bool only_this = why->status == STATUS_INFEASIBLE || why->status == STATUS_BAD_INPUT || why->status == STATUS_LIMIT;
    if (!only_this) return error_set(err, why->status, "%s", why->text);
    cli_field_note(field, label, why->status, why->text);
    return STATUS_OK;
}

enum status cli_field_try_within(struct cli_field *field, const struct cli_source *source,
                                 const struct planner_options *options, double limit_s, const char *label,
                                 struct error *err)
{
    if (field->count == CLI_POLICIES_MAX) return STATUS_OK;
    struct cli_candidate candidate = {0};
    struct error why = {0};
    struct planner_options own = *options;
    own.search = &field->search;
    enum status status = cli_candidate_plan(source, &own, &candidate, &why);
    bool slow = status == STATUS_OK && candidate.plan.estimated_makespan_s > limit_s;
    if (status == STATUS_OK && !slow) status = cli_predict(&candidate.plan, NULL, NULL, &candidate.prediction, &why);
    if (slow) cli_field_note(field, label, STATUS_OK, "too slow by the planner's clock to be simulated");
    else if (status == STATUS_OK) cli_field_add(field, &candidate, label);
    else (void)!cli_field_fail(field, label, &why, err);
    cli_candidate_release(&candidate);
    return err->status;
}

enum status cli_field_try(struct cli_field *field, const struct cli_source *source,
                          const struct planner_options *options, const char *label,
                          struct error *err)
{
    return cli_field_try_within(field, source, options, HUGE_VAL, label, err);
}

static bool is_better(const struct cli_field *field, const struct cli_policy_outcome *outcome)
{
    const struct cli_policy_outcome *best = &field->outcomes[field->best];
    if (!field->any) return true;
    if (field->runnable_first && outcome->runnable != best->runnable) return outcome->runnable;
    return outcome->makespan_s < best->makespan_s;
}

void cli_field_add(struct cli_field *field, struct cli_candidate *candidate, const char *label)
{
    if (field->count == CLI_POLICIES_MAX) return;
    struct cli_policy_outcome *outcome = add_outcome(field, label);
    note_plan(outcome, candidate);
    if (is_better(field, outcome)) {
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

void cli_field_adopt(struct cli_field *field, struct cli_field *other, const char *label)
{
    planner_search_add(&field->search, &other->search);
    if (other->any) {
        cli_field_add(field, &other->kept, label);
    } else if (other->count > 0) {
        const struct cli_policy_outcome *first = &other->outcomes[0];
        cli_field_note(field, label, first->kind == CLI_OUTCOME_NO_ROOM ? STATUS_INFEASIBLE : STATUS_BAD_INPUT,
                       first->reason);
    }
}

static bool stands_before(const struct cli_policy_outcome *a, const struct cli_policy_outcome *b)
{
    if (a->kind != b->kind) return a->kind < b->kind;
    return a->kind == CLI_OUTCOME_PLAN && a->makespan_s < b->makespan_s;
}

void cli_field_sort(struct cli_field *field)
{
    for (size_t i = 1; i < field->count; i++) {
        struct cli_policy_outcome moved = field->outcomes[i];
        size_t at = i;
        for (; at > 0 && stands_before(&moved, &field->outcomes[at - 1]); at--)
            field->outcomes[at] = field->outcomes[at - 1];
        field->outcomes[at] = moved;
        if (field->best == i) field->best = at;
        else if (field->best >= at && field->best < i) field->best++;
    }
}

enum status cli_field_check(const struct cli_field *field, struct error *err)
{
    const struct cli_policy_outcome *told = NULL;
    if (field->any) return STATUS_OK;
    for (size_t i = field->count; i-- > 0;)
        if (field->outcomes[i].kind == CLI_OUTCOME_NO_ROOM) told = &field->outcomes[i];
    if (told) return error_set(err, STATUS_INFEASIBLE, "no policy finds a plan: %s", told->reason);
    return error_set(err, STATUS_BAD_INPUT, "%s", field->outcomes[0].reason);
}

void cli_field_release(struct cli_field *field)
{
    cli_candidate_release(&field->kept);
}
