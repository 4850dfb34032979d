/* The table of policies, and the choice that several of them make. */
#include "planner/policies.h"

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

bool policy_highest(const struct policy_view *view, policy_rank rank, struct policy_choice *out)
{
    double best = 0;
    bool found = false;
    for (uint32_t j = 0; j < view->job_count; j++) {
        if (!policy_is_ready(view, j)) continue;
        double value = rank(view, &view->jobs[j]);
        if (found && !(value > best)) continue;
        uint32_t device = policy_place(view, j); /* asked last: it costs the most */
        if (device == POLICY_NONE) continue;
        *out = (struct policy_choice){j, device};
        best = value;
        found = true;
    }
    return found;
}

static double remaining(const struct policy_view *view, const struct policy_job *job)
{
    (void)view;
    return job->remaining;
}

bool policy_longest(void *state, const struct policy_view *view, struct policy_choice *out)
{
    (void)state;
    return policy_highest(view, remaining, out);
}
