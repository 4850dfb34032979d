/* Random: any ready job, equally likely; the seed and the number of the decision say which. */
#include "planner/policy.h"

#include "base/random.h"

static uint32_t choose(const struct policy_view *view, uint32_t device)
{
    uint32_t ready = 0;
    for (uint32_t j = 0; j < view->job_count; j++) ready += policy_may_run(view, j, device);
    if (ready == 0) return PLAN_NONE;
    uint64_t pick = random_below(view->seed, view->decision, ready);
    for (uint32_t j = 0; j < view->job_count; j++)
        if (policy_may_run(view, j, device) && pick-- == 0) return j;
    return PLAN_NONE;
}

const struct policy policy_random = {
    .name = "random",
    .summary = "any ready job (--seed)",
    .choose = choose,
};
