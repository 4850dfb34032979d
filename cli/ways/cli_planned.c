#include "cli/ways/cli_planned.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/ways/cli_ways.h"

/* Between simulations of one way. */
static const double equal = 1e-3;

static void note_best(const struct cli_field *field, const char *other, struct cli_planned *out)
{
    const struct cli_policy_outcome *best = &field->outcomes[field->best];
    *out = (struct cli_planned){.any = true, .run_s = best->makespan_s, .runnable = best->runnable};
    snprintf(out->way, sizeof out->way, "%s", best->policy);
    for (size_t i = 0; i < field->count; i++) {
        const struct cli_policy_outcome *outcome = &field->outcomes[i];
        if (outcome->kind != CLI_OUTCOME_PLAN || strcmp(outcome->policy, other) != 0) continue;
        out->other_s = outcome->makespan_s;
        if (outcome->makespan_s <= best->makespan_s * (1 + equal) && outcome->runnable >= best->runnable)
            snprintf(out->way, sizeof out->way, "%s", other);
    }
}

enum status cli_planned_find(const struct cli_source *source, const char *other, struct cli_planned *out,
                             struct error *err)
{
    const struct planner_options options = {.activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO};
    struct cli_field *field = alloc_zeroed(1, sizeof *field);
    struct error why = {0};
    *out = (struct cli_planned){.any = false};
    if (!field) return error_memory(err, "plans", sizeof *field);
    enum status status = cli_ways(source, &(struct cli_ways_options){.fixed = &options}, field, &why);
    bool none = status == STATUS_INFEASIBLE || status == STATUS_BAD_INPUT || status == STATUS_LIMIT;
    if (status == STATUS_OK) note_best(field, other, out);
    else if (!none) error_set(err, status, "%s", why.text);
    cli_field_release(field);
    free(field);
    return err->status;
}
