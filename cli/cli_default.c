/* See cli_default.h. */
#include "cli/cli_default.h"

#include <string.h>

#include "models/try.h"
#include "planner/policies.h"

const char cli_settled_name[] = "settled";

/* May it be another plan than the streamed one? Leases may be the file's own. */
static bool settled_anything(const struct plan *plan)
{
    bool streams = false;
    for (uint32_t j = 0; j < plan->jobs.count; j++) streams |= !parallel_is_set(&plan->jobs.jobs[j].parallel);
    return streams && strcmp(plan->policy, policy_sharded_lrtf.name) != 0;
}

static enum status make(const struct cli_source *source, const struct planner_options *options, bool predict,
                        struct cli_candidate *settled, struct cli_candidate *streamed, struct cli_field *field,
                        struct error *err)
{
    struct planner_options own = *options;
    own.settle = true;
    TRY(cli_candidate_plan(source, &own, settled, err));
    bool one = !settled_anything(&settled->plan);
    own.settle = false;
    if (!one) TRY(cli_candidate_plan(source, &own, streamed, err));
    if (!one) one = plan_fingerprint(&settled->plan) == plan_fingerprint(&streamed->plan);
    if (predict || !one) TRY(cli_predict(&settled->plan, NULL, NULL, &settled->prediction, err));
    if (one) {
        field->kept = *settled;
        *settled = (struct cli_candidate){0};
        return STATUS_OK;
    }
    TRY(cli_predict(&streamed->plan, NULL, NULL, &streamed->prediction, err));
    cli_field_take(field, settled, settled->plan.lease_count > 0 ? cli_settled_name : settled->plan.policy);
    cli_field_take(field, streamed, streamed->plan.policy);
    return STATUS_OK;
}

enum status cli_default_make(const struct cli_source *source, const struct planner_options *options, bool predict,
                             struct cli_field *field, struct error *err)
{
    struct cli_candidate settled = {0}, streamed = {0};
    enum status status = make(source, options, predict, &settled, &streamed, field, err);
    cli_candidate_release(&settled);
    cli_candidate_release(&streamed);
    return status;
}
