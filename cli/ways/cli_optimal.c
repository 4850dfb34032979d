#include "cli/ways/cli_optimal.h"

#include <stdio.h>
#include <string.h>

#include "base/process/clock.h"
#include "base/process/progress.h"
#include "base/try.h"
#include "planner/policy/policies.h"
#include "planner/strategy/resident_subproblem.h"

const char cli_resident_name[] = "resident placement";

/* Shares of the remaining time. */
static const double cut_share = 0.15;

struct portfolio {
    const struct cli_source *source;
    const struct planner_options *fixed; /* the user's */
    struct cli_field *field;
    struct planner_options best; /* of field->best */
    double until_s;              /* 0: no limit */
    double limit_s;              /* it was computed from */
    struct progress *progress;   /* of the time limit, else of candidates; may be NULL */
    const char *label;           /* current candidate */
};

/* Returns true if the time is up, and notes it. */
static bool over(struct portfolio *p)
{
    bool is_over = p->field->any && p->until_s > 0 && clock_s() >= p->until_s;
    p->field->search.cut_short |= is_over;
    return is_over;
}

void cli_optimal_label(const struct planner_options *fixed, const struct planner_options *options,
                       char text[CLI_OUTCOME_NAME_BYTES])
{
    const size_t bytes = CLI_OUTCOME_NAME_BYTES;
    size_t used = (size_t)snprintf(text, bytes, "%s", options->policy);
    if (options->weight_buffers != fixed->weight_buffers)
        used += (size_t)snprintf(text + used, bytes - used, ", %u weight buffers", options->weight_buffers);
    if (options->activations != fixed->activations)
        used += (size_t)snprintf(text + used, bytes - used, ", %s",
                                 plan_activations_names[options->activations]);
    if (options->mixed != fixed->mixed)
        used += (size_t)snprintf(text + used, bytes - used, ", mixed");
    if (options->cuts != fixed->cuts) used += (size_t)snprintf(text + used, bytes - used, ", balanced");
    if (options->no_persistence != fixed->no_persistence)
        used += (size_t)snprintf(text + used, bytes - used, ", none stay");
    if (options->shards != fixed->shards)
        snprintf(text + used, bytes - used, ", %s", CLI_COUNT(options->shards, "shard"));
}

static void show(void *context)
{
    struct portfolio *p = context;
    double now_s = clock_s(), spent_s = p->limit_s - (p->until_s - now_s);
    if (p->progress) progress_update(p->progress, p->until_s > 0 ? spent_s : (double)p->field->count, p->label);
}

/* Tries a new candidate with `share` of the remaining time. */
static enum status attempt(struct portfolio *p, struct planner_options options, double share,
                           const char *note, struct error *err)
{
    char label[CLI_OUTCOME_NAME_BYTES];
    cli_optimal_label(p->fixed, &options, label);
    strncat(label, note, sizeof label - strlen(label) - 1);
    if (!cli_field_lacks(p->field, label) || over(p)) return STATUS_OK;
    size_t before = p->field->count, best = p->field->best;
    bool any = p->field->any;
    if (p->until_s > 0) {
        double left = p->until_s - clock_s();
        options.time_limit_s = left > 0 ? left * share : 1e-9;
    }
    p->label = label;
    options.on_progress = show;
    options.progress_context = p;
    show(p);
    enum status status = cli_field_try(p->field, p->source, &options, label, err);
    p->label = NULL;
    options.on_progress = NULL;
    options.progress_context = NULL;
    if (status != STATUS_OK) return status;
    if (p->field->count > before && p->field->any && (!any || p->field->best != best))
        p->best = options;
    return STATUS_OK;
}

/* Changes one respect of the best so far; false at the end. */
static bool changed(const struct portfolio *p, uint32_t index, struct planner_options *out)
{
    enum { WEIGHT_BUFFERS = 5, KINDS = ACTIVATIONS_COUNT };
    *out = p->best;
    if (index < WEIGHT_BUFFERS - 1) {
        out->weight_buffers = p->fixed->weight_buffers == 0 ? index + 2 : p->best.weight_buffers;
    } else if (index < WEIGHT_BUFFERS - 1 + KINDS) {
        if (p->fixed->activations == PLANNER_AUTO) out->activations = index - (WEIGHT_BUFFERS - 1);
    } else if (index == WEIGHT_BUFFERS - 1 + KINDS) {
        out->no_persistence = true;
    } else if (index == WEIGHT_BUFFERS + KINDS) {
        if (p->fixed->activations == PLANNER_AUTO) {
            out->activations = PLANNER_AUTO;
            out->mixed = true;
        }
    } else if (index == WEIGHT_BUFFERS + KINDS + 1) {
        out->cuts = PLANNER_CUTS_BALANCED;
    } else if (index == WEIGHT_BUFFERS + KINDS + 2) {
        uint32_t most = 0;
        const struct plan *plan = &p->field->kept.plan;
        for (uint32_t j = 0; j < plan->jobs.count; j++) {
            uint32_t shards = plan_job_shards(plan, j);
            if (shards > most) most = shards;
        }
        if (p->fixed->shards == 0 && most < PLAN_SHARDS_MAX / 2) out->shards = most + (most + 1) / 2;
    } else {
        return false;
    }
    return true;
}

/* Descends until a whole round of changes improves nothing. */
static enum status vary_cuts(struct portfolio *p, struct error *err)
{
    bool better = true;
    for (int round = 0; better && round < 2; round++) {
        size_t best = p->field->best;
        struct planner_options options;
        for (uint32_t i = 0; changed(p, i, &options) && !over(p); i++)
            TRY(attempt(p, options, cut_share, "", err));
        better = p->field->best != best;
    }
    return STATUS_OK;
}

/* Tries cuts; the planner's own comes first, and its refusal is an error. */
static enum status search_cuts(struct portfolio *p, struct error *err)
{
    struct planner_options first = *p->fixed;
    first.policy = policy_optimal.name;
    TRY(attempt(p, first, cut_share, "", err));
    const struct cli_policy_outcome *outcome = &p->field->outcomes[0];
    if (outcome->kind == CLI_OUTCOME_REFUSED) return error_set(err, STATUS_BAD_INPUT, "%s", outcome->reason);
    p->best.policy = first.policy;
    return vary_cuts(p, err);
}

/* Tries resident placement, or the policy that is better than spilling by the planner's clock. */
static enum status try_resident_placement(struct portfolio *p, struct error *err)
{
    struct cli_candidate candidate = {0};
    struct error why = {0};
    struct planner_options options = *p->fixed;
    options.policy = NULL;
    options.resident = true;
    options.time_limit_s = 0;
    if (!resident_allowed(&options) || over(p)) return STATUS_OK;
    enum status status = cli_candidate_make(p->source, &options, &candidate, &why);
    const char *label = candidate.plan.reservation_count > 0 ? cli_resident_name : candidate.plan.policy;
    if (status == STATUS_OK && cli_field_lacks(p->field, label)) cli_field_add(p->field, &candidate, label);
    cli_candidate_release(&candidate);
    return status == STATUS_OK || status == STATUS_INFEASIBLE ? STATUS_OK : error_set(err, status, "%s", why.text);
}

static struct portfolio portfolio_of(const struct cli_source *source, const struct planner_options *options,
                                     struct cli_field *field)
{
    return (struct portfolio){.source = source,
                              .fixed = options,
                              .field = field,
                              .best = *options,
                              .limit_s = options->time_limit_s,
                              .until_s = options->time_limit_s > 0 ? clock_s() + options->time_limit_s : 0};
}

enum status cli_optimal_cuts(const struct cli_source *source, const struct planner_options *options,
                             struct cli_field *field, struct planner_options *best, struct error *err)
{
    struct portfolio p = portfolio_of(source, options, field);
    TRY(search_cuts(&p, err));
    *best = p.best;
    return STATUS_OK;
}

static enum status search_all(struct portfolio *p, struct error *err)
{
    TRY(search_cuts(p, err));
    struct planner_options searched = p->best;
    for (uint32_t i = 0; policy_at(i); i++) {
        struct planner_options other = *p->fixed;
        other.policy = policy_at(i)->name;
        if (policy_at(i)->resident || policy_at(i)->one_device) TRY(attempt(p, other, 1, "", err));
    }
    TRY(try_resident_placement(p, err));
    if (p->best.policy == searched.policy && p->until_s > 0) TRY(attempt(p, searched, 1, ", longer", err));
    return STATUS_OK;
}

enum status cli_optimal(const struct cli_source *source, const struct planner_options *options,
                        struct cli_field *field, struct error *err)
{
    struct portfolio p = portfolio_of(source, options, field);
    struct progress progress;
    p.progress = &progress;
    progress_begin(&progress, "planning", options->time_limit_s > 0 ? options->time_limit_s : 0);
    enum status status = search_all(&p, err);
    progress_end(&progress);
    return status ? status : cli_field_check(field, err);
}
