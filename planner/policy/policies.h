/* The built-in policies: one per file, the table in policies.c. */
#ifndef SPILLWAY_PLANNER_POLICIES_H
#define SPILLWAY_PLANNER_POLICIES_H

#include "planner/policy/policy.h"

/* Returns the policy, or NULL for an unknown name. */
const struct policy *policy_find(const char *name);
const struct policy *policy_at(uint32_t index); /* NULL past the end */

/* Returns the names of policies in the order of `--policy all`; NULL past the end. */
const char *policy_name_at(uint32_t index);

extern const struct policy policy_sharded_lrtf, policy_sharded_lrtf_cached, policy_fifo,
    policy_random, policy_srtf, policy_lrtf_emptiest, policy_spill_sequential, policy_model_parallel,
    policy_shard_parallel, policy_optimal;

/* Returns true when the policy is a search for orders (order_search.h), which is never asked. */
static inline bool policy_is_searched(const struct policy *policy)
{
    return !policy->choose && !policy->rank;
}

/* Returns the remaining computation: the rank of several policies. */
double policy_remaining(void *state, const struct policy_view *view, uint32_t job);

#endif
