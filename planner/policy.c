/* The table of policies, and the choice that several of them make. */
#include "planner/policy.h"

#include <string.h>

#include "base/size.h"
#include "planner/planner.h"

static const struct policy *const policies[] = {
    &policy_sharded_lrtf, &policy_sharded_lrtf_cached, &policy_srtf,           &policy_fifo,
    &policy_random,       &policy_spill_sequential,    &policy_model_parallel, &policy_shard_parallel,
    &policy_optimal,
};

const struct policy *policy_at(uint32_t index)
{
    return index < ARRAY_COUNT(policies) ? policies[index] : NULL;
}

const struct policy *policy_find(const char *name)
{
    for (uint32_t i = 0; i < ARRAY_COUNT(policies); i++)
        if (strcmp(policies[i]->name, name) == 0) return policies[i];
    return NULL;
}

const char *planner_policy_name(uint32_t index)
{
    const struct policy *policy = policy_at(index);
    return policy ? policy->name : NULL;
}

const char *planner_policy_summary(uint32_t index)
{
    const struct policy *policy = policy_at(index);
    return policy ? policy->summary : NULL;
}

bool policy_may_run(const struct policy_view *view, uint32_t job, uint32_t device)
{
    const struct policy_job *j = &view->jobs[job];
    return j->admitted && !j->reserved && j->ready_s <= view->now_s && j->remaining_s > 0 &&
           (j->next_device == PLAN_NONE || j->next_device == device);
}

uint32_t policy_longest(const struct policy_view *view, uint32_t device)
{
    uint32_t best = PLAN_NONE;
    for (uint32_t j = 0; j < view->job_count; j++)
        if (policy_may_run(view, j, device) &&
            (best == PLAN_NONE || view->jobs[j].remaining_s > view->jobs[best].remaining_s))
            best = j;
    return best;
}
