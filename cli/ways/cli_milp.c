#include "cli/ways/cli_milp.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/extreme.h"
#include "base/process/clock.h"
#include "base/try.h"
#include "cli/ways/cli_optimal.h"
#include "planner/policy/policies.h"

/* Adds the cuts' outcomes, and their plan if it ends earlier. Of equal plans GLPK's stays, whose bound is known. */
static void add_cuts(struct cli_field *field, struct cli_field *cuts)
{
    const struct cli_policy_outcome *ours = &field->outcomes[field->best];
    bool better = !field->any || cuts->outcomes[cuts->best].makespan_s < ours->makespan_s;
    planner_search_add(&field->search, &cuts->search);
    for (size_t i = 0; i < cuts->count && field->count < CLI_POLICIES_MAX; i++) {
        if (i == cuts->best && better) cli_field_add(field, &cuts->kept, cuts->outcomes[i].policy);
        else field->outcomes[field->count++] = cuts->outcomes[i];
    }
}

static enum status improve(const struct cli_source *source, const struct planner_options *options, double until_s,
                           struct cli_field *cuts, struct cli_field *field, struct error *err)
{
    struct planner_options best, quick = *options;
    char label[CLI_OUTCOME_NAME_BYTES];
    quick.iterations = 0;
    quick.time_limit_s = options->time_limit_s / 2;
    TRY(cli_optimal_cuts(source, &quick, cuts, &best, err));
    TRY(cli_field_check(cuts, err));
    best.policy = policy_milp.name;
    best.iterations = options->iterations;
    best.milp = &field->milp;
    best.time_limit_s = options->time_limit_s > 0 ? max_s(until_s - clock_s(), 1e-9) : 0;
    cli_optimal_label(options, &best, label);
    TRY(cli_field_try(field, source, &best, label, err));
    add_cuts(field, cuts);
    return STATUS_OK;
}

/* The cuts would refuse them by the name of another policy. */
static enum status refuse_parallel(const struct cli_source *source, struct error *err)
{
    bool parallel = source->way || cli_parallel_given(&source->parallel);
    for (uint32_t j = 0; j < source->jobs->count; j++) parallel |= parallel_is_set(&source->jobs->jobs[j].parallel);
    if (!parallel) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT, "policy '%s' for parallel jobs (they have none)", policy_milp.name);
}

enum status cli_milp(const struct cli_source *source, const struct planner_options *options, struct cli_field *field,
                     struct error *err)
{
    TRY(refuse_parallel(source, err));
    double until_s = clock_s() + options->time_limit_s;
    struct cli_field *cuts = alloc_zeroed(1, sizeof *cuts);
    if (!cuts) return error_memory(err, "plans", sizeof *cuts);
    cuts->runnable_first = field->runnable_first;
    enum status status = improve(source, options, until_s, cuts, field, err);
    cli_field_release(cuts);
    free(cuts);
    return status;
}
