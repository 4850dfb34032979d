#include "cli/ways/cli_keep.h"

#include <stdio.h>

#include "base/extreme.h"
#include "base/try.h"
#include "planner/policy/policies.h"
#include "planner/prefix/prefix_keep.h"

static const double program_s = 10; /* for GLPK */

/* Chooses what to keep, and sets *jobs, zeroed before, to the jobs that do. */
static enum status choose(const struct cli_source *source, const struct planner_options *options, struct cli_keep *keep,
                          struct job_set *jobs, struct error *err)
{
    struct hardware hardware = {0};
    const double limit_s = options->time_limit_s > 0 ? min_s(options->time_limit_s, program_s) : program_s;
    enum status status = cli_machine_read(&source->machine, &hardware, err);
    if (status == STATUS_OK)
        status = prefix_problem_make(&hardware, source->jobs, keep->budget_bytes, &keep->arena, &keep->problem, err);
    if (status == STATUS_OK) status = prefix_choose(&keep->problem, limit_s, &keep->arena, &keep->choice, err);
    if (status == STATUS_OK) status = job_set_share(source->jobs, jobs, err);
    if (status == STATUS_OK) status = prefix_keep(&keep->problem, &keep->choice, jobs, err);
    hardware_release(&hardware);
    return status;
}

static enum status try_policy(const struct cli_source *source, const struct planner_options *options,
                              const char *policy, struct cli_field *field, struct error *err)
{
    struct planner_options own = *options;
    char label[CLI_OUTCOME_NAME_BYTES];
    own.policy = policy;
    snprintf(label, sizeof label, "outputs kept, %.70s", policy);
    return cli_field_try(field, source, &own, label, err);
}

/* Tries the user's policy, or those that place no state on a device and search no order. */
static enum status try_policies(const struct cli_source *source, const struct planner_options *options,
                                struct cli_field *field, struct error *err)
{
    if (options->policy) return try_policy(source, options, options->policy, field, err);
    for (uint32_t i = 0; policy_at(i); i++)
        if (!policy_at(i)->resident && !policy_is_searched(policy_at(i)))
            TRY(try_policy(source, options, policy_at(i)->name, field, err));
    return STATUS_OK;
}

/* Returns the least simulated makespan of outcomes from `first` on; 0: none has a plan. */
static double least_s(const struct cli_field *field, size_t first)
{
    double least = 0;
    for (size_t i = first; i < field->count; i++) {
        const struct cli_policy_outcome *outcome = &field->outcomes[i];
        if (outcome->kind == CLI_OUTCOME_PLAN && (!(least > 0) || outcome->makespan_s < least))
            least = outcome->makespan_s;
    }
    return least;
}

enum status cli_keep(const struct cli_source *source, const struct planner_options *options, cli_keep_plan plan,
                     void *context, struct cli_keep *keep, struct cli_field *field, struct error *err)
{
    struct cli_source kept = *source;
    struct job_set jobs = {0};
    struct error own = {0};
    enum status status = choose(source, options, keep, &jobs, err);
    const bool keeps = status == STATUS_OK && jobs.count > source->jobs->count;
    if (status == STATUS_OK && plan(context, field, &own)) {
        if (!keeps || own.status != STATUS_INFEASIBLE) status = error_set(err, own.status, "%s", own.text);
    }
    const size_t first = field->count;
    keep->without_s = least_s(field, 0);
    kept.jobs = &jobs;
    if (keeps && status == STATUS_OK) status = try_policies(&kept, options, field, err);
    if (keeps && status == STATUS_OK) status = cli_field_check(field, err);
    keep->with_s = least_s(field, first);
    job_set_release(&jobs);
    return status;
}

void cli_keep_release(struct cli_keep *keep)
{
    arena_release(&keep->arena);
    *keep = (struct cli_keep){0};
}
