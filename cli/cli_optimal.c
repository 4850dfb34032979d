/* See cli_optimal.h. */
#include "cli/cli_optimal.h"

#include <stdio.h>
#include <string.h>

#include "base/progress.h"
#include "base/size.h"
#include "models/try.h"
#include "planner/policies.h"

/* Shares of what is left of the time limit. */
static const double cut_share = 0.15;

struct portfolio {
    const struct cli_source *source;
    const struct planner_options *fixed; /* by the user */
    struct cli_field *field;
    struct planner_options best; /* of field->best */
    double until_s;              /* 0: no limit */
};

static bool over(const struct portfolio *p)
{
    return p->field->any && p->until_s > 0 && clock_s() >= p->until_s;
}

/* "optimal, 4 regions, recompute": what differs from the planner's own choice. */
static void label_of(const struct planner_options *fixed, const struct planner_options *options,
                     char *text, size_t bytes)
{
    size_t used = (size_t)snprintf(text, bytes, "%s", options->policy);
    if (options->regions != fixed->regions)
        used += (size_t)snprintf(text + used, bytes - used, ", %u regions", options->regions);
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

static bool tried(const struct portfolio *p, const char *label)
{
    for (size_t i = 0; i < p->field->count; i++)
        if (strcmp(p->field->outcomes[i].policy, label) == 0) return true;
    return false;
}

/* Unless it was tried before. `share` of the time that is left. */
static enum status attempt(struct portfolio *p, struct planner_options options, double share,
                           const char *note, struct error *err)
{
    char label[CLI_OUTCOME_NAME_BYTES], name[CLI_OUTCOME_NAME_BYTES - 16];
    label_of(p->fixed, &options, name, sizeof name);
    snprintf(label, sizeof label, "%s%s", name, note);
    if (over(p) || tried(p, label)) return STATUS_OK;
    size_t before = p->field->count, best = p->field->best;
    bool any = p->field->any;
    if (p->until_s > 0) {
        double left = p->until_s - clock_s();
        options.time_limit_s = left > 0 ? left * share : 1e-9;
    }
    TRY(cli_field_try(p->field, p->source, &options, label, err));
    if (p->field->count > before && p->field->any && (!any || p->field->best != best))
        p->best = options;
    return STATUS_OK;
}

/* The best so far, changed in one respect; false when there are no more such changes. */
static bool changed(const struct portfolio *p, uint32_t index, struct planner_options *out)
{
    enum { REGIONS = 5, KINDS = ACTIVATIONS_COUNT };
    *out = p->best;
    if (index < REGIONS - 1) {
        out->regions = p->fixed->regions == 0 ? index + 2 : p->best.regions;
    } else if (index < REGIONS - 1 + KINDS) {
        if (p->fixed->activations == PLANNER_AUTO) out->activations = index - (REGIONS - 1);
    } else if (index == REGIONS - 1 + KINDS) {
        out->no_persistence = true;
    } else if (index == REGIONS + KINDS) {
        if (p->fixed->activations == PLANNER_AUTO) {
            out->activations = PLANNER_AUTO;
            out->mixed = true;
        }
    } else if (index == REGIONS + KINDS + 1) {
        out->cuts = CUTS_BALANCED;
    } else if (index == REGIONS + KINDS + 2) {
        uint32_t most = 0;
        const struct plan *plan = &p->field->kept.plan;
        for (uint32_t j = 0; j < plan->jobs.count; j++) {
            uint32_t shards = plan->job_first_shard[j + 1] - plan->job_first_shard[j];
            if (shards > most) most = shards;
        }
        if (p->fixed->shards == 0 && most < PLAN_SHARDS_MAX / 2) out->shards = most + (most + 1) / 2;
    } else {
        return false;
    }
    return true;
}

/* Descend: each change of the best in turn, until a whole round brings nothing. */
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

enum status cli_optimal(const struct cli_source *source, const struct planner_options *options,
                        struct cli_field *field, struct error *err)
{
    struct portfolio p = {.source = source,
                          .fixed = options,
                          .field = field,
                          .best = *options,
                          .until_s = options->time_limit_s > 0 ? clock_s() + options->time_limit_s
                                                               : 0};
    struct planner_options first = *options;
    first.policy = policy_optimal.name;
    TRY(attempt(&p, first, cut_share, "", err));
    p.best.policy = first.policy;
    TRY(vary_cuts(&p, err));
    struct planner_options searched = p.best;
    for (uint32_t i = 0; policy_at(i); i++) {
        struct planner_options other = *options;
        other.policy = policy_at(i)->name;
        if (policy_at(i)->resident || policy_at(i)->one_device) TRY(attempt(&p, other, 1, "", err));
    }
    if (p.best.policy == searched.policy && p.until_s > 0) TRY(attempt(&p, searched, 1, ", longer", err));
    return cli_field_check(field, err);
}
